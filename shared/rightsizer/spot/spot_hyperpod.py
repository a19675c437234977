"""HyperPod: when capacity is short, what to ask for; always the whole cluster in the request.

Source: SageMaker API, UpdateCluster; Developer Guide, HyperPod on EKS, "Update a cluster" and "Spot instances". Whether
a group that is left out stays or goes is told in two ways, so every group is sent, in full. Proposals only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rightsizer.domain.job import Handover, NoHandover
from rightsizer.domain.reason import Code, Reason

MOST_TYPES = 20
"""Types in InstanceRequirements (botocore shape ClusterInstanceRequirements)."""
_SAME = (
    "InstanceGroupName", "InstanceType", "LifeCycleConfig", "ExecutionRole", "ThreadsPerCore", "InstanceStorageConfigs",
    "OnStartDeepHealthChecks", "TrainingPlanArn", "OverrideVpcConfig", "ScheduledUpdateConfig", "SlurmConfig",
    "CapacityRequirements", "NetworkInterface",
)  # fmt: skip
_STATE = frozenset(
    {"CurrentCount", "TargetCount", "MinCount", "InstanceRequirements", "InstanceTypeDetails", "Status",
     "TrainingPlanStatus", "CurrentImageId", "DesiredImageId", "CurrentImageReleaseVersion",
     "DesiredImageReleaseVersion", "ImageVersionStatus", "ActiveOperations", "KubernetesConfig", "TargetStateCount",
     "SoftwareUpdateStatus", "ActiveSoftwareUpdateConfig"}
)  # fmt: skip
"""Members of the description that are state, or are translated below."""


NO_CAPACITY = ("sufficient capacity", "insufficient", "capacity error", "lack of capacity", "not enough capacity")
"""How HyperPod says that EC2 has nothing to give (cluster events; the texts are not documented)."""


def lacks_capacity(text: str) -> bool:
    """Whether an event's text speaks of missing capacity."""
    return any(words in text.lower() for words in NO_CAPACITY)


def is_short(row: Mapping[str, Any]) -> bool:
    """Whether a group of DescribeCluster has fewer instances than it wants."""
    return int(row.get("CurrentCount", 0)) < int(row.get("TargetCount", 0))


def is_spot(row: Mapping[str, Any]) -> bool:
    """Whether a group of DescribeCluster runs on Spot."""
    return "Spot" in (row.get("CapacityRequirements") or {})


def more_types(cluster: Mapping[str, Any], group: str, types: Sequence[str]) -> Handover | NoHandover:
    """UpdateCluster that lets a group with InstanceRequirements use further types."""
    if (no := _hindrance(cluster)) is not None:
        return no
    name = str(cluster["ClusterName"])
    rows = [specification(row) for row in cluster["InstanceGroups"]]
    row = next((row for row in rows if row["InstanceGroupName"] == group), None)
    if row is None:
        return NoHandover(name, Reason(Code.NO_GROUP, f"{name} has no instance group {group}"))
    if "InstanceRequirements" not in row:
        sentence = f"{group} of {name} has a fixed InstanceType, and cannot change to several: add a group"
        return NoHandover(name, Reason(Code.UNKNOWN_FIELD, sentence))
    present = row["InstanceRequirements"]["InstanceTypes"]
    new = [kind for kind in types if kind not in present]
    if not new or len(present) + len(new) > MOST_TYPES:
        sentence = f"{group} of {name} has {len(present)} types; {len(new)} further ones, {MOST_TYPES} at most"
        return NoHandover(name, Reason(Code.MORE_POOLS, sentence))
    row["InstanceRequirements"] = {"InstanceTypes": [*present, *new]}
    sentence = f"{group} of {name} may also use {', '.join(new)}: capacity that one type lacks another may have"
    return _handover(cluster, rows, sentence)


def further_group(
    cluster: Mapping[str, Any], like: str, instance_type: str, count: int, spot: bool
) -> Handover | NoHandover:
    """UpdateCluster that adds a group like an existing one, of another type or another capacity type."""
    if (no := _hindrance(cluster)) is not None:
        return no
    name = str(cluster["ClusterName"])
    rows = [specification(row) for row in cluster["InstanceGroups"]]
    row = next((row for row in rows if row["InstanceGroupName"] == like), None)
    if row is None:
        return NoHandover(name, Reason(Code.NO_GROUP, f"{name} has no instance group {like}"))
    if spot and (cluster.get("NodeProvisioningMode") != "Continuous" or "Eks" not in cluster.get("Orchestrator", {})):
        sentence = f"{name} is not on EKS with continuous provisioning: HyperPod has Spot groups only there"
        return NoHandover(name, Reason(Code.OTHER_KIND, sentence))
    taken = {found["InstanceGroupName"] for found in rows}
    label = _free(f"{like}-{'spot' if spot else 'od'}", taken)
    dropped = ("InstanceRequirements", "TrainingPlanArn", "ImageId", "MinInstanceCount")
    added = {key: value for key, value in row.items() if key not in dropped}
    added |= {"InstanceGroupName": label, "InstanceType": instance_type, "InstanceCount": count}
    added["CapacityRequirements"] = {"Spot": {}} if spot else {"OnDemand": {}}
    sentence = (
        f"{name} gets the group {label}: {count} x {instance_type}, {'Spot' if spot else 'On-Demand'}, set up "
        f"as {like}; move the work, then shrink the old group"
    )
    return _handover(cluster, [*rows, added], sentence)


def specification(row: Mapping[str, Any]) -> dict[str, Any]:
    """An instance group as UpdateCluster takes it, from how DescribeCluster gives it: counts become targets."""
    found = {key: row[key] for key in _SAME if key in row}
    found["InstanceCount"] = row["TargetCount"]
    if row.get("MinCount") is not None:
        found["MinInstanceCount"] = row["MinCount"]
    if requirements := row.get("InstanceRequirements"):
        types = requirements.get("DesiredInstanceTypes") or requirements.get("CurrentInstanceTypes", [])
        found["InstanceRequirements"] = {"InstanceTypes": list(types)}
        found.pop("InstanceType", None)
    if kubernetes := row.get("KubernetesConfig"):
        found["KubernetesConfig"] = {
            key: kubernetes[f"Desired{key}"] for key in ("Labels", "Taints") if f"Desired{key}" in kubernetes
        }
    return found


def _hindrance(cluster: Mapping[str, Any]) -> NoHandover | None:
    name = str(cluster["ClusterName"])
    if cluster.get("AutoScaling", {}).get("Mode") == "Enable":
        sentence = f"Karpenter scales {name} and chooses among its groups itself: a change of counts would fight it"
        return NoHandover(name, Reason(Code.SOMEONE_ELSE_HANDLES, sentence))
    if cluster.get("RestrictedInstanceGroups"):
        sentence = f"{name} has restricted instance groups, which are not understood: nothing is proposed"
        return NoHandover(name, Reason(Code.UNKNOWN_FIELD, sentence))
    for row in cluster.get("InstanceGroups", ()):
        unknown = sorted(set(row) - set(_SAME) - _STATE)
        if unknown:
            group = row.get("InstanceGroupName", "?")
            sentence = (
                f"the group {group} of {name} has {', '.join(unknown)}, which is not understood: nothing is proposed"
            )
            return NoHandover(name, Reason(Code.UNKNOWN_FIELD, sentence))
    return None


def _handover(cluster: Mapping[str, Any], rows: list[dict[str, Any]], sentence: str) -> Handover:
    name = str(cluster["ClusterName"])
    request: dict[str, Any] = {"ClusterName": name, "InstanceGroups": rows}
    if "NodeRecovery" in cluster:
        request["NodeRecovery"] = cluster["NodeRecovery"]
    unchecked = (
        "quota of the type for clusters",
        "whether the work tolerates eviction",
        f"{', '.join(left_out(cluster))} are left out: that UpdateCluster keeps them was not confirmed on AWS",
    )
    return Handover(name, "UpdateCluster", request, Reason(Code.CLUSTER_SHORT, sentence), unchecked)


def left_out(cluster: Mapping[str, Any]) -> tuple[str, ...]:
    """Settings of the cluster that UpdateCluster could change and that the request does not name."""
    named = ("TieredStorageConfig", "NodeProvisioningMode", "ClusterRole", "AutoScaling")
    return ("image ids", *(name for name in named if cluster.get(name)))


def _free(label: str, taken: set[str]) -> str:
    label = label[:60]
    numbers = (f"{label}-{n}" for n in range(2, len(taken) + 3))
    return label if label not in taken else next(name for name in numbers if name not in taken)
