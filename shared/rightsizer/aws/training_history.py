"""Finished training and processing jobs of an account with the use of their hosts, read.

Sources: SageMaker API reference, List and Describe of training and processing jobs; SageMaker developer guide,
"CloudWatch metrics for jobs": a namespace for each kind, dimension Host, ``job/algo-1`` for the first host; API
reference, AddTags: jobs take tags. That the Resource Groups Tagging API answers jobs, and those that ended, is taken
from exporters that filter by ``sagemaker:training-job``; no page of AWS that says so was read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import batched
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session
from rightsizer.aws.tags import TagReader, Tags
from rightsizer.aws.training import job_of, processing_job_of
from rightsizer.domain.job import TrainingJob
from rightsizer.domain.ownership import named_owner
from rightsizer.domain.reason import Reason
from rightsizer.domain.tags import parse_tags
from rightsizer.domain.training_run import TrainingRun

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_sagemaker import SageMakerClient

NAMESPACE, PROCESSING_NAMESPACE = "/aws/sagemaker/TrainingJobs", "/aws/sagemaker/ProcessingJobs"
STATISTICS: Mapping[str, tuple[str, str]] = {
    "cpu": ("CPUUtilization", "Average"),
    "memory": ("MemoryUtilization", "Maximum"),
    "gpu": ("GPUUtilization", "Average"),
    "gpu_memory": ("GPUMemoryUtilization", "Maximum"),
}
"""Figures of a run in their order there, and the metric and statistic that each is read from."""
PERIOD_S = 3600
"""Datapoints of an hour are kept for 455 days, those of a minute for 15."""
JOBS_AT_ONCE = 100
"""Jobs whose four metrics are asked for in one request; GetMetricData takes 500 queries."""
FINISHED = frozenset({"Completed", "Failed", "Stopped"})


type JobProgress = Callable[[int, int], None]
"""Told how many of how many jobs are read."""


def _quiet(done: int, of: int) -> None:
    """Tells nobody."""


class TrainingHistory:
    """Reads jobs that ended. ReadError says what could not be read, but for tags: TrainingRun.tags_unread says it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sagemaker: SageMakerClient = session.client("sagemaker")
        self._cloudwatch: CloudWatchClient = session.client("cloudwatch", validated=False)

    def runs(
        self, since: datetime, now: datetime, most: int, progress: JobProgress = _quiet
    ) -> tuple[TrainingRun, ...]:
        """The newest `most` training jobs that were created in the window and have ended, with their use."""
        names, jobs = self._names(since, now, most), []
        for number, name in enumerate(names, 1):
            with translate_read_errors("sagemaker:DescribeTrainingJob", f"reading the training job {name}"):
                raw: Mapping[str, Any] = dict(self._sagemaker.describe_training_job(TrainingJobName=name))
            progress(number, len(names))
            jobs.append(job_of(raw, {}))
        return self._measured(jobs, NAMESPACE, since, now)

    def processing_runs(
        self, since: datetime, now: datetime, most: int, progress: JobProgress = _quiet
    ) -> tuple[TrainingRun, ...]:
        """The newest `most` processing jobs that were created in the window and have ended, with their use."""
        names, jobs = self._processing_names(since, now, most), []
        for number, name in enumerate(names, 1):
            with translate_read_errors("sagemaker:DescribeProcessingJob", f"reading the processing job {name}"):
                raw: Mapping[str, Any] = dict(self._sagemaker.describe_processing_job(ProcessingJobName=name))
            progress(number, len(names))
            jobs.append(processing_job_of(raw))
        runs = self._measured(jobs, PROCESSING_NAMESPACE, since, now)
        return tuple(replace(run, is_processing=True) for run in runs)

    def _measured(
        self, jobs: Sequence[TrainingJob], namespace: str, since: datetime, now: datetime
    ) -> tuple[TrainingRun, ...]:
        """The jobs that ended, with the use of their hosts."""
        ended = [job for job in jobs if job.status in FINISHED]
        runs: list[TrainingRun] = []
        for some in batched(ended, JOBS_AT_ONCE):
            runs += self._with_use(some, namespace, since, now)
        return self._with_tags(runs)

    def tags_of(self, arns: Sequence[str]) -> Mapping[str, Tags | Reason]:
        """The tags of jobs, a hundred with one request; why they could not be read where they could not."""
        if not arns:
            return {}
        return TagReader(self._session.client("resourcegroupstaggingapi"), self._sagemaker).read_only_in_bulk(arns)

    def _with_tags(self, runs: Sequence[TrainingRun]) -> tuple[TrainingRun, ...]:
        """The runs with tags, owner and mode of their jobs."""
        tags = self.tags_of([run.job.arn for run in runs])
        return tuple(_tagged(run, tags[run.job.arn]) for run in runs)

    def _processing_names(self, since: datetime, now: datetime, most: int) -> list[str]:
        with translate_read_errors("sagemaker:ListProcessingJobs", "listing the processing jobs"):
            pages = self._sagemaker.get_paginator("list_processing_jobs").paginate(
                CreationTimeAfter=since,
                CreationTimeBefore=now,
                SortBy="CreationTime",
                SortOrder="Descending",
                PaginationConfig={"MaxItems": most},
            )
            return [row["ProcessingJobName"] for page in pages for row in page["ProcessingJobSummaries"]]

    def _names(self, since: datetime, now: datetime, most: int) -> list[str]:
        with translate_read_errors("sagemaker:ListTrainingJobs", "listing the training jobs"):
            pages = self._sagemaker.get_paginator("list_training_jobs").paginate(
                CreationTimeAfter=since,
                CreationTimeBefore=now,
                SortBy="CreationTime",
                SortOrder="Descending",
                PaginationConfig={"MaxItems": most},
            )
            return [row["TrainingJobName"] for page in pages for row in page["TrainingJobSummaries"]]

    def _with_use(
        self, jobs: Sequence[TrainingJob], namespace: str, since: datetime, now: datetime
    ) -> list[TrainingRun]:
        """The jobs with the use of their first hosts; all hosts of a job do the same work."""
        queries = [
            {"Id": f"{field}_{number}", "MetricStat": _statistic(namespace, job.name, field), "ReturnData": True}
            for number, job in enumerate(jobs)
            for field in STATISTICS
        ]
        values: dict[str, list[float]] = {}
        with translate_read_errors("cloudwatch:GetMetricData", "reading the use of training jobs"):
            pages: Any = self._cloudwatch.get_paginator("get_metric_data").paginate(
                MetricDataQueries=queries,  # type: ignore[arg-type]
                StartTime=_floor(since),
                EndTime=_floor(now) + timedelta(seconds=PERIOD_S),
            )
            for page in pages:
                for row in page["MetricDataResults"]:
                    values.setdefault(row["Id"], []).extend(row["Values"])
        return [_run(job, values, number) for number, job in enumerate(jobs)]


def _tagged(run: TrainingRun, tags: Tags | Reason) -> TrainingRun:
    if isinstance(tags, Reason):
        return replace(run, tags_unread=tags)
    return replace(run, job=replace(run.job, tags=tags, owner=named_owner(tags), mode=parse_tags(tags).mode))


def _run(job: TrainingJob, values: Mapping[str, Sequence[float]], number: int) -> TrainingRun:
    cpu, memory, gpu, gpu_memory = (_of(field, values.get(f"{field}_{number}", [])) for field in STATISTICS)
    return TrainingRun(job, cpu, memory, gpu, gpu_memory)


def _statistic(namespace: str, name: str, field: str) -> dict[str, Any]:
    metric, statistic = STATISTICS[field]
    host = [{"Name": "Host", "Value": f"{name}/algo-1"}]
    return {
        "Metric": {"Namespace": namespace, "MetricName": metric, "Dimensions": host},
        "Period": PERIOD_S,
        "Stat": statistic,
    }


def _of(field: str, values: Sequence[float]) -> float | None:
    """One figure of a job: the highest hour of a maximum, the mean of the hours of an average."""
    if not values:
        return None
    return max(values) if STATISTICS[field][1] == "Maximum" else sum(values) / len(values)


def _floor(at: datetime) -> datetime:
    return at - timedelta(seconds=at.timestamp() % PERIOD_S)
