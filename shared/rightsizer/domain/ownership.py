"""Which stack or tool owns a thing, by its tags: the next deployment of its source would undo a change from outside."""

from collections.abc import Mapping

STACKS = (
    ("aws:cloudformation:stack-name", "CloudFormation stack"),
    ("aws:servicecatalog:provisionedproductarn", "Service Catalog product"),
    ("aws:servicecatalog:provisioningartifactidentifier", "Service Catalog product"),
)
"""Tags that AWS alone may set, in lower case (guides of CloudFormation and Service Catalog)."""
TOOLS = ("terraform", "opentofu", "pulumi", "crossplane", "cloudformation")
"""Found in the key or the value of any tag but ours: no word of another meaning has them in it."""
SHORT_TOOLS = ("cdk", "ack")
"""Parts of common words, so that they count as whole words of a tag that names a tool."""
NAMING = frozenset(
    {"managed-by", "managedby", "created-by", "createdby", "deployed-by", "deployedby", "provisioner", "provisioned-by"}
    | {"iac", "tool", "cdk", "ack"}
)
"""Keys, with - for _, of tags that name a tool."""
NO = frozenset({"", "false", "no", "0", "none"})


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
            found = _tool(key.replace("_", "-"), value.lower())
            if found:
                return found
    return ""


def _tool(key: str, value: str) -> str:
    named = next((tool for tool in TOOLS if tool in key or tool in value), "")
    if named or key not in NAMING:
        return named.capitalize()
    words = f"{key} {value}".replace("-", " ").replace("/", " ").replace(":", " ").replace("_", " ").split()
    short = next((tool for tool in SHORT_TOOLS if tool in words), "")
    return short.upper()
