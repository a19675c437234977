"""What to do about training jobs on Spot capacity and about HyperPod clusters: the program tells, and its owner acts.

Managed Spot training: will a job end before MaxWait, what to do if not, and what to change next time. The type, the
count and the limits of a running job are fixed, so the program only tells and hands over requests. Source: SageMaker
Developer Guide, "Managed Spot Training", "SageMaker managed warm pools"; API, UpdateTrainingJob.

HyperPod: when capacity is short, what to ask for; always the whole cluster in the request. Whether a group that is left
out stays or goes is told in two ways, so every group is sent, in full. Source: SageMaker API, UpdateCluster; Developer
Guide, HyperPod on EKS, "Update a cluster" and "Spot instances".
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.job import Handover, NoHandover, ReleaseWarmPool, TrainingJob, WaitProjection
from rightsizer.domain.reason import Code, Reason

IDLE_POOL = timedelta(minutes=30)
"""A warm pool that no job took for so long is released."""
LEAST_SHARE = 0.05
"""A job that hardly trains at all is projected as if it trained a twentieth of the time."""
WAIT_FACTOR = 2.0
"""MaxWait proposed for the first Spot run: twice the runtime limit."""
_CARRIED = (
    "HyperParameters", "AlgorithmSpecification", "RoleArn", "InputDataConfig", "OutputDataConfig", "ResourceConfig",
    "VpcConfig", "StoppingCondition", "EnableNetworkIsolation", "EnableInterContainerTrafficEncryption",
    "CheckpointConfig", "DebugHookConfig", "DebugRuleConfigurations", "TensorBoardOutputConfig", "ExperimentConfig",
    "ProfilerConfig", "ProfilerRuleConfigurations", "Environment", "RetryStrategy", "RemoteDebugConfig",
    "InfraCheckConfig",
)  # fmt: skip
"""Members that DescribeTrainingJob and CreateTrainingJob share and that mean the same in both (botocore shapes)."""
_NOT_CARRIED = ("SessionChainingConfig", "ServerlessJobConfig", "MlflowConfig", "ModelPackageConfig")
"""Members of a job whose request we do not know how to repeat: such a job is not handed over."""
SESSIONS = "whether the job chains sessions: DescribeTrainingJob does not say (SessionChainingConfig)"
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


def wait_projection(job: TrainingJob, now: datetime, usual_s: float | None = None) -> WaitProjection | None:
    """How a running Spot job stands against MaxWait; None for a job without one, or that runs no more.

    `usual_s` is what earlier runs of the same work trained; without it the runtime limit stands in, the worst case.
    """
    if not job.spot or job.max_wait_s is None or job.status != "InProgress":
        return None
    age = (now - job.created_at).total_seconds()
    trained = job.training_s(now)
    total = usual_s if usual_s is not None else job.max_runtime_s
    share = min(1.0, max(LEAST_SHARE, trained / age)) if age > 0 and job.interruptions else 1.0
    basis = "earlier runs" if usual_s is not None else "MaxRuntimeInSeconds, for lack of earlier runs"
    return WaitProjection(job.max_wait_s - age, max(0.0, total - trained) / share, share, basis)


def wait_warning(job: TrainingJob, seen: WaitProjection) -> Reason:
    """Warning to the owner before MaxWait runs out."""
    return Reason(
        Code.WAIT_RUNS_OUT,
        f"{job.name} was interrupted {job.interruptions} times and trained {seen.share:.0%} of its time; "
        f"{_hours(seen.needs_s)} are still needed by {seen.basis}, MaxWait leaves {_hours(seen.left_s)}",
    )


def restart_request(job: TrainingJob, instance_type: str = "", *, spot: bool = False) -> Handover | NoHandover:
    """The CreateTrainingJob request that goes on from the checkpoint; on another type if one is named.

    On-Demand, unless `spot`: then with the limits that the job has now, counted anew.
    """
    if not job.checkpoint_uri:
        sentence = f"{job.name} writes no checkpoints: a restart begins from nothing"
        return NoHandover(job.name, Reason(Code.NO_CHECKPOINT, sentence))
    if (unknown := _unknown_fields_refusal(job)) is not None:
        return unknown
    request = _request(job, f"{job.name[:55]}-resumed")
    if spot:
        request["EnableManagedSpotTraining"] = True
    else:
        limits = request["StoppingCondition"]
        request["StoppingCondition"] = {key: limits[key] for key in limits if key != "MaxWaitTimeInSeconds"}
    if instance_type:
        request["ResourceConfig"] = {**request["ResourceConfig"], "InstanceType": instance_type}
    sentence = (
        f"goes on from {job.checkpoint_uri} {'on Spot' if spot else 'On-Demand'} on "
        f"{instance_type or job.instance_type}; stop {job.name} first"
    )
    return Handover(
        job.name,
        "CreateTrainingJob",
        request,
        Reason(Code.WAIT_RUNS_OUT, sentence),
        ("whether the script reads its checkpoints", "quota of the type", SESSIONS),
    )


def spot_request(job: TrainingJob) -> Handover | NoHandover:
    """For a finished On-Demand job: the request that runs it on Spot the next time, if it checkpoints."""
    if job.spot or job.status != "Completed":
        sentence = (
            f"{job.name} is {job.status}{' on Spot' if job.spot else ''}: only finished On-Demand jobs are proposed"
        )
        return NoHandover(job.name, Reason(Code.NOT_FOR_US, sentence))
    if not job.checkpoint_uri:
        sentence = f"{job.name} writes no checkpoints: each interruption would begin it anew"
        return NoHandover(job.name, Reason(Code.NO_CHECKPOINT, sentence))
    if job.keep_alive_s > 0:
        sentence = f"{job.name} uses a warm pool, which Spot instances cannot"
        return NoHandover(job.name, Reason(Code.UNKNOWN_FIELD, sentence))
    if (no := _training_plan_refusal(job) or _unknown_fields_refusal(job)) is not None:
        return no
    request = _request(job, f"{job.name[:58]}-spot")
    wait = int(job.max_runtime_s * WAIT_FACTOR)
    request["EnableManagedSpotTraining"] = True
    request["StoppingCondition"] = {**request["StoppingCondition"], "MaxWaitTimeInSeconds": wait}
    sentence = (
        f"{job.name} trained {_hours(job.trained_s or 0)} On-Demand and writes checkpoints to {job.checkpoint_uri}: "
        f"run it on Spot next time, with MaxWait {_hours(wait)}"
    )
    return Handover(
        job.name,
        "CreateTrainingJob",
        request,
        Reason(Code.SPOT_NEXT_TIME, sentence),
        ("whether the script reads its checkpoints", "the Spot quota of the type", SESSIONS),
    )


def warm_pool_release(job: TrainingJob, now: datetime) -> ReleaseWarmPool | NoHandover:
    """Release of a warm pool that idles, for owners who opted in; the next start only takes longer."""
    if job.warm_pool != "Available" or job.ended_at is None:
        reason = Reason(Code.NOT_FOR_US, f"{job.name} has no idle warm pool ({job.warm_pool or 'none'})")
        return NoHandover(job.name, reason)
    idle = now - job.ended_at
    left = job.keep_alive_s - idle.total_seconds()
    sentence = (
        f"the warm pool of {job.name} ({job.instance_count} x {job.instance_type}) idles for "
        f"{_hours(idle.total_seconds())}, and would for {_hours(left)} more"
    )
    if idle < IDLE_POOL or left <= 0:
        return NoHandover(job.name, Reason(Code.EVALUATED_RECENTLY, sentence))
    if job.mode is not Mode.AUTO:
        return NoHandover(
            job.name, Reason(Code.NOT_OPTED_IN, f"{sentence}; rightsizer:mode=auto on the job releases it")
        )
    return ReleaseWarmPool(job.name, Reason(Code.WARM_POOL_IDLE, sentence))


def _training_plan_refusal(job: TrainingJob) -> NoHandover | None:
    """A job on a training plan runs on capacity that is paid for already."""
    if not (job.raw.get("ResourceConfig") or {}).get("TrainingPlanArn"):
        return None
    sentence = f"{job.name} runs on a training plan, whose capacity is paid for: Spot would cost more, not less"
    return NoHandover(job.name, Reason(Code.NOT_FOR_US, sentence))


def _unknown_fields_refusal(job: TrainingJob) -> NoHandover | None:
    for name in _NOT_CARRIED:
        if job.raw.get(name):
            reason = Reason(
                Code.UNKNOWN_FIELD, f"{job.name} uses {name}, which is not understood well enough to repeat"
            )
            return NoHandover(job.name, reason)
    return None


def _request(job: TrainingJob, name: str) -> dict[str, Any]:
    """What the job says, without what it leaves empty, and with its own tags (those of AWS cannot be set)."""
    request = {key: _plain(job.raw[key]) for key in _CARRIED if job.raw.get(key)}
    tags = [{"Key": key, "Value": value} for key, value in sorted(job.tags.items()) if not key.startswith("aws:")]
    empty: dict[str, Any] = {"TrainingJobName": name, "StoppingCondition": {}, "ResourceConfig": {}}
    return empty | request | ({"Tags": tags} if tags else {})


def _plain(value: Any) -> Any:
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h"


def is_capacity_text(text: str) -> bool:
    """Whether an event's text speaks of missing capacity."""
    return any(words in text.lower() for words in NO_CAPACITY)


def is_short(row: Mapping[str, Any]) -> bool:
    """Whether a group of DescribeCluster has fewer instances than it wants."""
    return int(row.get("CurrentCount", 0)) < int(row.get("TargetCount", 0))


def is_spot(row: Mapping[str, Any]) -> bool:
    """Whether a group of DescribeCluster runs on Spot."""
    return "Spot" in (row.get("CapacityRequirements") or {})


def more_types_request(cluster: Mapping[str, Any], group: str, types: Sequence[str]) -> Handover | NoHandover:
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


def further_group_request(
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
    label = _free_name(f"{like}-{'spot' if spot else 'od'}", taken)
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
        f"{', '.join(unsent_settings(cluster))} are left out: that UpdateCluster keeps them was not confirmed on AWS",
    )
    return Handover(name, "UpdateCluster", request, Reason(Code.CLUSTER_SHORT, sentence), unchecked)


def unsent_settings(cluster: Mapping[str, Any]) -> tuple[str, ...]:
    """Settings of the cluster that UpdateCluster could change and that the request does not name."""
    named = ("TieredStorageConfig", "NodeProvisioningMode", "ClusterRole", "AutoScaling")
    return ("image ids", *(name for name in named if cluster.get(name)))


def _free_name(label: str, taken: set[str]) -> str:
    label = label[:60]
    numbers = (f"{label}-{n}" for n in range(2, len(taken) + 3))
    return label if label not in taken else next(name for name in numbers if name not in taken)
