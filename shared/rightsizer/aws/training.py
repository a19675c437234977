"""SageMaker training jobs and HyperPod clusters, read (JobReader, ClusterReader).

Sources: SageMaker API reference, ListTrainingJobs, DescribeTrainingJob, DescribeCluster.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.groups import mode_of
from rightsizer.domain.endpoint import MODE_TAG, Mode
from rightsizer.domain.job import TrainingJob, Transition, base_name
from rightsizer.domain.ownership import named_owner
from rightsizer.errors import InputError

if TYPE_CHECKING:
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
            secondary=str(raw.get("SecondaryStatus", "")),
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
            secondary="",
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
