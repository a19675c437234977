"""SageMaker training jobs and HyperPod clusters, read: running ones, and finished ones with the use of their hosts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import batched
from statistics import median
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.groups import mode_of
from rightsizer.aws.session import Session
from rightsizer.aws.tags import TagReader, Tags
from rightsizer.domain.endpoint import MODE_TAG, Mode
from rightsizer.domain.job import TrainingJob, TrainingRun, Transition, base_name
from rightsizer.domain.ownership import named_owner
from rightsizer.domain.reason import Reason
from rightsizer.domain.tags import parse_tags
from rightsizer.errors import InputError

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_sagemaker import SageMakerClient


MOST_OPEN = 500
EARLIER = 5
"""Earlier runs that are looked at."""


class TrainingJobs:
    """Keeps the promises of `ports.spot.JobReader` and `ClusterReader`."""

    def __init__(self, sagemaker: "SageMakerClient") -> None:
        self._sagemaker = sagemaker

    def open_jobs(self) -> Sequence[str]:
        """Names of the jobs in progress, and of those whose warm pool waits; 500 of each at most."""
        names: dict[str, None] = {}
        for only in ({"StatusEquals": "InProgress"}, {"WarmPoolStatusEquals": "Available"}):
            with translate_read_errors("sagemaker:ListTrainingJobs", "listing the training jobs"):
                pages = self._sagemaker.get_paginator("list_training_jobs").paginate(
                    **only,  # type: ignore[arg-type]
                    PaginationConfig={"MaxItems": MOST_OPEN},
                )
                names |= {row["TrainingJobName"]: None for page in pages for row in page["TrainingJobSummaries"]}
        return tuple(names)

    def job(self, name: str) -> TrainingJob:
        """The job with its tags; VanishedError when it is gone."""
        with translate_read_errors("sagemaker:DescribeTrainingJob", f"reading the training job {name}"):
            raw: Mapping[str, Any] = dict(self._sagemaker.describe_training_job(TrainingJobName=name))
        with translate_read_errors("sagemaker:ListTags", f"reading the tags of {name}"):
            rows = self._sagemaker.list_tags(ResourceArn=str(raw["TrainingJobArn"]))["Tags"]
        return job_of(raw, {row["Key"]: row["Value"] for row in rows})

    def usual_s(self, job: TrainingJob) -> float | None:
        """Median seconds that up to five earlier completed runs of the same name trained; None without any."""
        base = base_name(job.name)
        with translate_read_errors("sagemaker:ListTrainingJobs", f"looking for earlier runs of {base}"):
            rows = self._sagemaker.list_training_jobs(
                NameContains=base[:63], StatusEquals="Completed", SortBy="CreationTime", SortOrder="Descending"
            )["TrainingJobSummaries"]
        same = [row["TrainingJobName"] for row in rows if base_name(row["TrainingJobName"]) == base]
        trained = []
        for name in [found for found in same if found != job.name][:EARLIER]:
            with translate_read_errors("sagemaker:DescribeTrainingJob", f"reading the training job {name}"):
                seconds = self._sagemaker.describe_training_job(TrainingJobName=name).get("TrainingTimeInSeconds")
            if seconds:
                trained.append(float(seconds))
        return median(trained) if trained else None

    def cluster(self, name: str) -> Mapping[str, Any]:
        """DescribeCluster, raw; VanishedError when it is gone."""
        with translate_read_errors("sagemaker:DescribeCluster", f"reading the HyperPod cluster {name}"):
            found: Any = self._sagemaker.describe_cluster(ClusterName=name)
        return {key: value for key, value in found.items() if key != "ResponseMetadata"}


def job_of(raw: Mapping[str, Any], tags: Mapping[str, str]) -> TrainingJob:
    """A job from DescribeTrainingJob; InputError names what is missing."""
    try:
        stopping, resources = raw.get("StoppingCondition", {}), raw.get("ResourceConfig", {})
        name = str(raw["TrainingJobName"])
        wait = stopping.get("MaxWaitTimeInSeconds")
        return TrainingJob(
            name=name,
            arn=str(raw["TrainingJobArn"]),
            mode=mode_of(tags, name) if MODE_TAG in tags else Mode.REPORT,
            owner=named_owner(tags),
            status=str(raw["TrainingJobStatus"]),
            spot=bool(raw.get("EnableManagedSpotTraining")),
            instance_type=str(resources.get("InstanceType", "")),
            instance_count=int(resources.get("InstanceCount", 0)),
            created_at=_utc(raw["CreationTime"]),
            max_runtime_s=float(stopping.get("MaxRuntimeInSeconds", 86_400)),
            max_wait_s=float(wait) if wait else None,
            transitions=tuple(_transition(row) for row in raw.get("SecondaryStatusTransitions", ())),
            trained_s=_seconds(raw.get("TrainingTimeInSeconds")),
            billable_s=_seconds(raw.get("BillableTimeInSeconds")),
            checkpoint_uri=str(raw.get("CheckpointConfig", {}).get("S3Uri", "")),
            warm_pool=str(raw.get("WarmPoolStatus", {}).get("Status", "")),
            keep_alive_s=float(resources.get("KeepAlivePeriodInSeconds", 0) or 0),
            ended_at=_utc(raw["TrainingEndTime"]) if raw.get("TrainingEndTime") else None,
            raw=raw,
            tags=tags,
        )
    except (KeyError, TypeError, ValueError) as error:
        name = raw.get("TrainingJobName", "?")
        raise InputError(f"reading the training job {name}: the answer lacks or garbles {error}") from None


def processing_job_of(raw: Mapping[str, Any]) -> TrainingJob:
    """A processing job in the form of a training job, from DescribeProcessingJob; InputError names what is missing.

    It is billed for its instances from ProcessingStartTime to ProcessingEndTime (SageMaker pricing).
    """
    try:
        resources = raw["ProcessingResources"]["ClusterConfig"]
        begun, ended = raw.get("ProcessingStartTime"), raw.get("ProcessingEndTime")
        seconds = (ended - begun).total_seconds() if begun and ended else None
        return TrainingJob(
            name=str(raw["ProcessingJobName"]),
            arn=str(raw["ProcessingJobArn"]),
            mode=Mode.REPORT,
            owner="",
            status=str(raw["ProcessingJobStatus"]),
            spot=False,
            instance_type=str(resources["InstanceType"]),
            instance_count=int(resources["InstanceCount"]),
            created_at=_utc(raw["CreationTime"]),
            max_runtime_s=float(raw.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", 86_400)),
            max_wait_s=None,
            transitions=(),
            trained_s=seconds,
            billable_s=seconds,
            checkpoint_uri="",
            ended_at=_utc(ended) if ended else None,
            raw=raw,
        )
    except (KeyError, TypeError, ValueError) as error:
        name = raw.get("ProcessingJobName", "?")
        raise InputError(f"reading the processing job {name}: the answer lacks or garbles {error}") from None


def _transition(row: Mapping[str, Any]) -> Transition:
    return Transition(str(row["Status"]), _utc(row["StartTime"]), _utc(row["EndTime"]) if row.get("EndTime") else None)


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)


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
