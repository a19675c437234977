"""Managed Spot training: will a job end before MaxWait, what to do if not, and what to change next time.

Source: SageMaker Developer Guide, "Managed Spot Training", "SageMaker managed warm pools"; API, UpdateTrainingJob.
The type, the count and the limits of a running job are fixed, so the program only tells and hands over requests.
"""

from collections.abc import Mapping
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


def projection(job: TrainingJob, now: datetime, usual_s: float | None = None) -> WaitProjection | None:
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


def warning(job: TrainingJob, seen: WaitProjection) -> Reason:
    """What the owner is told before MaxWait runs out."""
    return Reason(
        Code.WAIT_RUNS_OUT,
        f"{job.name} was interrupted {job.interruptions} times and trained {seen.share:.0%} of its time; "
        f"{_hours(seen.needs_s)} are still needed by {seen.basis}, MaxWait leaves {_hours(seen.left_s)}",
    )


def restart(job: TrainingJob, instance_type: str = "", *, spot: bool = False) -> Handover | NoHandover:
    """The CreateTrainingJob request that goes on from the checkpoint; on another type if one is named.

    On-Demand, unless `spot`: then with the limits that the job has now, counted anew.
    """
    if not job.checkpoint_uri:
        sentence = f"{job.name} writes no checkpoints: a restart begins from nothing"
        return NoHandover(job.name, Reason(Code.NO_CHECKPOINT, sentence))
    if (unknown := _unknown(job)) is not None:
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


def spot_next_time(job: TrainingJob) -> Handover | NoHandover:
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
    if (no := _planned(job) or _unknown(job)) is not None:
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


def warm_pool(job: TrainingJob, now: datetime) -> ReleaseWarmPool | NoHandover:
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


def _planned(job: TrainingJob) -> NoHandover | None:
    """A job on a training plan runs on capacity that is paid for already."""
    if not (job.raw.get("ResourceConfig") or {}).get("TrainingPlanArn"):
        return None
    sentence = f"{job.name} runs on a training plan, whose capacity is paid for: Spot would cost more, not less"
    return NoHandover(job.name, Reason(Code.NOT_FOR_US, sentence))


def _unknown(job: TrainingJob) -> NoHandover | None:
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
