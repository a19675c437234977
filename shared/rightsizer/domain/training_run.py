"""One finished training or processing job and what its hosts did."""

from dataclasses import dataclass

from rightsizer.domain.job import TrainingJob, base_name
from rightsizer.domain.reason import Reason

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
