"""Who manages a thing, by its tags: a stack or tool whose next deployment undoes a change, or another Spot handler."""

from collections.abc import Collection, Mapping

from rightsizer.domain.scaling_group import Handler

STACKS = (
    ("aws:cloudformation:stack-name", "CloudFormation stack"),
    ("aws:servicecatalog:provisionedproductarn", "Service Catalog product"),
    ("aws:servicecatalog:provisioningartifactidentifier", "Service Catalog product"),
)
"""Tags that AWS alone may set, in lower case (guides of CloudFormation and Service Catalog)."""
TOOLS = ("terraform", "terragrunt", "opentofu", "pulumi", "crossplane", "cloudformation", "ansible", "spacelift")
"""Found in the key or the value of any tag but ours: no word of another meaning has them in it."""
CONTROLLERS = (
    ("services.k8s.aws/", "ACK (Kubernetes)"),
    ("argocd.argoproj.io/", "Argo CD"),
    ("kustomize.toolkit.fluxcd.io/", "Flux"),
    ("helm.toolkit.fluxcd.io/", "Flux"),
    ("sst:", "SST"),
    ("sagemaker:project-", "SageMaker project"),
)
"""Prefixes of the tags by which these tell what they made from a manifest or an app, and put back (documentation of
each, resource tags and tracking)."""
SHORT_TOOLS = ("cdk", "ack", "sst", "helm", "flux", "argo")
"""Parts of common words, so that they count as whole words of a tag that names a tool."""
NAMING = frozenset(
    {"managed-by", "managedby", "created-by", "createdby", "deployed-by", "deployedby", "provisioner", "provisioned-by"}
    | {"iac", "tool", "cdk", "ack"}
)
"""Keys, with - for _ and without what stands before a slash, of tags that name a tool."""
OWNER_TAGS = ("rightsizer:owner", "owner", "Owner", "team", "Team")
"""Tags that name whom to ask, the first one that is there."""
NO = frozenset({"", "false", "no", "0", "none"})
_BY_TAG: tuple[tuple[Handler, tuple[str, ...]], ...] = (
    (Handler.KARPENTER, ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")),
    (Handler.NODE_GROUP, ("eks:nodegroup-name",)),
    (Handler.TERMINATION_HANDLER, ("aws-node-termination-handler/managed",)),
    (Handler.FLEET, ("aws:ec2:fleet-id", "aws:ec2spot:fleet-request-id")),
    (Handler.KUBERNETES, ("eks:cluster-name", "kubernetes.io/cluster/", "k8s.io/cluster-autoscaler/")),
)
"""Tags that each tool puts on what it runs; a trailing slash is a prefix (documentation of each tool)."""


def named_owner(tags: Mapping[str, str]) -> str:
    """The person or team that these tags name; empty when nobody is named."""
    return next((tags[key].strip() for key in OWNER_TAGS if tags.get(key, "").strip()), "")


def owner_of(tags: Mapping[str, str]) -> str:
    """The stack or tool that owns what carries these tags; empty when none is found.

    The one answer for the gate, the preflight, the components and the Spot groups. Total. In doubt it is owned: then
    it is asked about, with the property to change.
    """
    plain = {key.lower(): value for key, value in tags.items() if not key.lower().startswith("rightsizer:")}
    for key, kind in STACKS:
        if plain.get(key):
            return f"{kind} {plain[key]}"
    for key, value in plain.items():
        if value.strip().lower() not in NO:
            found = _tool_of_tag(key.replace("_", "-"), value.lower())
            if found:
                return found
    return ""


def _tool_of_tag(key: str, value: str) -> str:
    known = next((name for prefix, name in CONTROLLERS if key.startswith(prefix)), "")
    if known:
        return known
    named = next((tool for tool in TOOLS if tool in key or tool in value), "")
    if named or key.rpartition("/")[2] not in NAMING:
        return named.capitalize()
    words = f"{key} {value}".replace("-", " ").replace("/", " ").replace(":", " ").replace("_", " ").split()
    short = next((tool for tool in SHORT_TOOLS if tool in words), "")
    return short.upper()


def handler_of(tag_keys: Collection[str], capacity_rebalance: bool = False) -> Handler:
    """Other replacer of interrupted instances; the first in the order of the list above.

    Instances of a group carry ``aws:ec2:fleet-id`` too when Auto Scaling starts them through a fleet, so ask about a
    group with the group's own tags.
    """
    for handler, keys in _BY_TAG:
        if any(_is_match(tag, key) for tag in tag_keys for key in keys):
            return handler
    return Handler.CAPACITY_REBALANCE if capacity_rebalance else Handler.NOBODY


def _is_match(tag: str, key: str) -> bool:
    return tag.startswith(key) if key.endswith("/") else tag == key
