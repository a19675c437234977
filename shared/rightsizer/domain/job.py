"""SageMaker training jobs and HyperPod clusters: their facts, the recommended next step, and finished runs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from rightsizer.domain.checks import aware, not_empty, not_negative
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.plan import command
from rightsizer.domain.reason import Reason

_STAMP = re.compile(r"-\d{4}-\d{2}-\d{2}-\d{2}-\d{2}-\d{2}(-\d{1,3})?$|-\d{10,}$|-\d{1,4}$")
"""What the SDKs and people put behind the name of a repeated job."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One entry of SecondaryStatusTransitions."""

    status: str
    """``Starting``, ``Training``, ``Interrupted`` and so on."""
    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A training job as DescribeTrainingJob gives it."""

    name: str
    arn: str
    mode: Mode
    owner: str
    status: str
    """``InProgress``, ``Completed``, ``Failed``, ``Stopping``, ``Stopped``."""
    spot: bool
    instance_type: str
    instance_count: int
    created_at: datetime
    max_runtime_s: float
    max_wait_s: float | None
    """Waiting and running together, from the creation; None for an On-Demand job."""
    transitions: tuple[Transition, ...]
    trained_s: float | None
    """TrainingTimeInSeconds; None while it runs."""
    billable_s: float | None
    checkpoint_uri: str
    """Empty without CheckpointConfig."""
    warm_pool: str = ""
    """WarmPoolStatus: ``Available``, ``InUse``, ``Reused``, ``Terminated``; empty without one."""
    keep_alive_s: float = 0.0
    ended_at: datetime | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The answer as it came, for the request that is handed over."""
    tags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        not_empty("TrainingJob.name", self.name)
        aware("TrainingJob.created_at", self.created_at)
        not_negative("TrainingJob.max_runtime_s", self.max_runtime_s)

    @property
    def base_arn(self) -> str:
        """Names all runs of the work: the ARN without what the SDKs put behind the name of each run."""
        return base_name(self.arn)

    @property
    def interruptions(self) -> int:
        """How often Spot capacity was taken from it."""
        return sum(1 for transition in self.transitions if transition.status == "Interrupted")

    def training_s(self, now: datetime) -> float:
        """Seconds in the secondary status ``Training`` so far."""
        return sum(
            ((transition.end or now) - transition.start).total_seconds()
            for transition in self.transitions
            if transition.status == "Training"
        )


@dataclass(frozen=True, slots=True)
class WaitProjection:
    """How a Spot job stands against its MaxWaitTimeInSeconds."""

    left_s: float
    """Seconds until MaxWait ends the job; negative when it is over."""
    needs_s: float
    """Seconds that the rest is expected to take, interruptions included."""
    share: float
    """0..1 of the time so far that was training."""
    basis: str
    """What the remaining work was taken from."""

    @property
    def is_stopped_early(self) -> bool:
        """Whether the job will be stopped before it is done."""
        return self.needs_s > self.left_s


@dataclass(frozen=True, slots=True)
class Handover:
    """A request for a person to send; the program does not send it."""

    subject: str
    """Job or cluster."""
    operation: Literal["CreateTrainingJob", "UpdateCluster"]
    request: Mapping[str, Any]
    reason: Reason
    not_checked: tuple[str, ...] = ()
    kind: Literal["handover"] = "handover"

    def command(self, region: str) -> str:
        """The AWS CLI line that sends it."""
        return command("sagemaker", self.operation, self.request, region)


@dataclass(frozen=True, slots=True)
class NoHandover:
    """No handover, and the reason."""

    subject: str
    reason: Reason
    kind: Literal["no-handover"] = "no-handover"


@dataclass(frozen=True, slots=True)
class ReleaseWarmPool:
    """UpdateTrainingJob with KeepAlivePeriodInSeconds 0: an idle warm pool ends."""

    job: str
    reason: Reason
    kind: Literal["release-warm-pool"] = "release-warm-pool"


def base_name(name: str) -> str:
    """The name without what the SDKs put behind it for each run."""
    return _STAMP.sub("", name) or name


LACKS_MEMORY = ("outofmemory", "memoryerror", "exitcode:137", "exitcode137")
"""How frameworks and containers say that memory ran out, in small letters without spaces; 137 is a killed process."""


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A job with its use, as CloudWatch publishes it for a host; None where no datapoint is left."""

    job: TrainingJob
    cpu: float | None = None
    """Mean of CPUUtilization: 0 to 100 for each vCPU, summed over the vCPUs of a host."""
    memory: float | None = None
    """Highest MemoryUtilization, 0 to 100."""
    gpu: float | None = None
    """Mean of GPUUtilization, summed over the GPUs of a host."""
    gpu_memory: float | None = None
    """Highest GPUMemoryUtilization, summed over the GPUs of a host."""
    is_processing: bool = False
    """Whether it is a processing job, which has no managed Spot, no checkpoints and no warm pool."""
    tags_unread: Reason | None = None
    """Why the tags of the job could not be read; its owner and its mode are then not known."""

    @property
    def work(self) -> str:
        """The experiment that the run belongs to, else its name without the stamp."""
        return str(self.job.raw.get("ExperimentConfig", {}).get("ExperimentName") or base_name(self.job.name))

    @property
    def lacked_memory(self) -> bool:
        """Whether it failed because it had too little memory, by the words of its FailureReason."""
        text = str(self.job.raw.get("FailureReason", "")).lower().replace(" ", "")
        return self.job.status == "Failed" and any(words in text for words in LACKS_MEMORY)

    @property
    def hours(self) -> float:
        """Hours that the job trained; 0 where it never began."""
        return (self.job.trained_s or 0.0) / 3600

    @property
    def billed_hours(self) -> float:
        """Instance hours that are billed, of all instances."""
        seconds = self.job.billable_s if self.job.billable_s is not None else self.job.trained_s
        return (seconds or 0.0) / 3600 * self.job.instance_count

    @property
    def retained_hours(self) -> float:
        """Instance hours that a warm pool was billed for after the job."""
        pool = self.job.raw.get("WarmPoolStatus", {})
        return float(pool.get("ResourceRetainedBillableTimeInSeconds", 0) or 0) / 3600 * self.job.instance_count

    @property
    def is_reused(self) -> bool:
        """Whether another job took the warm pool over."""
        return bool(self.job.raw.get("WarmPoolStatus", {}).get("ReusedByJob"))
