"""Who else looks after an instance or a group, read from its tags."""

from collections.abc import Collection

from rightsizer.domain.scaling_group import Handler

_BY_TAG: tuple[tuple[Handler, tuple[str, ...]], ...] = (
    (Handler.KARPENTER, ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")),
    (Handler.NODE_GROUP, ("eks:nodegroup-name",)),
    (Handler.TERMINATION_HANDLER, ("aws-node-termination-handler/managed",)),
    (Handler.FLEET, ("aws:ec2:fleet-id", "aws:ec2spot:fleet-request-id")),
    (Handler.KUBERNETES, ("eks:cluster-name", "kubernetes.io/cluster/", "k8s.io/cluster-autoscaler/")),
)
"""Tags that each tool puts on what it runs; a trailing slash is a prefix (documentation of each tool)."""


def handler_of(tag_keys: Collection[str], capacity_rebalance: bool = False) -> Handler:
    """Who replaces an interrupted instance besides us; the first in the order of the list above.

    Instances of a group carry ``aws:ec2:fleet-id`` too when Auto Scaling starts them through a fleet, so ask about a
    group with the group's own tags.
    """
    for handler, keys in _BY_TAG:
        if any(_matches(tag, key) for tag in tag_keys for key in keys):
            return handler
    return Handler.CAPACITY_REBALANCE if capacity_rebalance else Handler.NOBODY


def _matches(tag: str, key: str) -> bool:
    return tag.startswith(key) if key.endswith("/") else tag == key
