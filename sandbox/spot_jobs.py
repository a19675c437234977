"""Training and processing jobs and HyperPod clusters of the simulated account, as they are described.

Warm pools can be released. Source: SageMaker API reference, Describe and List of both kinds of job, UpdateTrainingJob,
DescribeCluster. moto's own
knows no warm pools and no transitions.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandbox.paging import page
from sandbox.refusals import AwsRefusal
from sandbox.strict import on
from sandbox.tagging import JOB

if TYPE_CHECKING:
    from sandbox.world import World

type Params = dict[str, Any]


SUMMARY = ("TrainingJobArn", "CreationTime", "TrainingEndTime", "LastModifiedTime", "TrainingJobStatus",
           "SecondaryStatus", "WarmPoolStatus")  # fmt: skip
"""Members of TrainingJobSummary that are members of the job too."""


PROCESSING_SUMMARY = ("ProcessingJobName", "ProcessingJobArn", "CreationTime", "ProcessingEndTime", "LastModifiedTime",
                      "ProcessingJobStatus")  # fmt: skip
"""Members of ProcessingJobSummary that are members of the job too."""


class Jobs:
    """Operations about jobs and clusters; everything else goes to the service that was there before."""

    def __init__(self, world: "World") -> None:
        self._world, self._inner = world, world.api("sagemaker")
        self.jobs: dict[str, Params] = {}
        self.processing: dict[str, Params] = {}
        self.clusters: dict[str, Params] = {}

    def __getattr__(self, operation: str) -> Any:
        """An operation of the other SageMaker; AttributeError where it has none."""
        return getattr(self._inner, operation)

    # what a test asks

    def train(self, name: str, *, hours_ago: float = 10.0, tags: dict[str, str] | None = None, **over: Any) -> Params:
        """A Spot training job that was created some hours ago; `over` replaces members of its description."""
        now = self._world.clock.now
        begun = now - timedelta(hours=hours_ago)
        arn = self._world.arn("sagemaker", f"training-job/{name}")
        self.jobs[name] = {
            "TrainingJobName": name,
            "TrainingJobArn": arn,
            "TrainingJobStatus": "InProgress",
            "SecondaryStatus": "Training",
            "AlgorithmSpecification": {"TrainingImage": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/t:1",
                                       "TrainingInputMode": "File"},
            "RoleArn": "arn:aws:iam::111122223333:role/training-role",
            "OutputDataConfig": {"S3OutputPath": "s3://out/"},
            "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 50},
            "StoppingCondition": {"MaxRuntimeInSeconds": 36_000, "MaxWaitTimeInSeconds": 72_000},
            "CheckpointConfig": {"S3Uri": "s3://out/ckpt/"},
            "EnableManagedSpotTraining": True,
            "CreationTime": begun,
            "LastModifiedTime": now,
            "SecondaryStatusTransitions": [{"Status": "Training", "StartTime": begun}],
            **over,
        }  # fmt: skip
        self._world.tags.put(arn, dict(tags or {}))
        return self.jobs[name]

    def process(
        self, name: str, begun: datetime, ended: datetime, *, tags: dict[str, str] | None = None, **over: Any
    ) -> Params:
        """A processing job that ended; `over` replaces members of its description."""
        arn = self._world.arn("sagemaker", f"processing-job/{name}")
        self._world.tags.put(arn, dict(tags or {}))
        self.processing[name] = {
            "ProcessingJobName": name,
            "ProcessingJobArn": arn,
            "ProcessingJobStatus": "Completed",
            "ProcessingResources": {
                "ClusterConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.xlarge", "VolumeSizeInGB": 30}
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
            "AppSpecification": {"ImageUri": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/p:1"},
            "RoleArn": "arn:aws:iam::111122223333:role/training-role",
            "CreationTime": begun - timedelta(minutes=4),
            "ProcessingStartTime": begun,
            "ProcessingEndTime": ended,
            "LastModifiedTime": ended,
            **over,
        }
        return self.processing[name]

    def emit(self, name: str) -> None:
        """SageMaker says that the job moved."""
        job = self.jobs[name]
        detail = _epoch(job) | {"Tags": self._world.tags.of(job["TrainingJobArn"])}
        self._world.emit("aws.sagemaker", "SageMaker Training Job State Change", [job["TrainingJobArn"]], detail)

    # operations

    def DescribeTrainingJob(self, p: Params) -> Params:
        """The job as it stands."""
        return self._job(p["TrainingJobName"], "DescribeTrainingJob")

    def ListTrainingJobs(self, p: Params) -> Params:
        """Pages of ten jobs, or as asked, by status, warm pool and part of the name."""
        rows = [
            {"TrainingJobName": name} | {key: job[key] for key in SUMMARY if key in job}
            for name, job in self.jobs.items()
            if p.get("CreationTimeAfter", job["CreationTime"]) <= job["CreationTime"]
            if p.get("CreationTimeBefore", job["CreationTime"]) >= job["CreationTime"]
            if p.get("StatusEquals") in (None, job["TrainingJobStatus"])
            and p.get("WarmPoolStatusEquals") in (None, job.get("WarmPoolStatus", {}).get("Status"))
            and p.get("NameContains", "") in name
        ]  # fmt: skip
        rows.sort(key=lambda row: row["CreationTime"], reverse=p.get("SortOrder") != "Ascending")
        found, token = page(rows, p.get("NextToken"), p.get("MaxResults", 10), operation="ListTrainingJobs")
        return {"TrainingJobSummaries": found} | ({"NextToken": token} if token else {})

    def DescribeProcessingJob(self, p: Params) -> Params:
        """The job as it stands."""
        if p["ProcessingJobName"] not in self.processing and on("DescribeProcessingJob", "unknown"):
            raise AwsRefusal("ValidationException", "Could not find requested job with name: " + p["ProcessingJobName"])
        return self.processing[p["ProcessingJobName"]]

    def ListProcessingJobs(self, p: Params) -> Params:
        """Pages of ten jobs, or as asked, by status, creation and part of the name."""
        rows = [
            {key: job[key] for key in PROCESSING_SUMMARY if key in job}
            for name, job in self.processing.items()
            if p.get("CreationTimeAfter", job["CreationTime"]) <= job["CreationTime"]
            if p.get("CreationTimeBefore", job["CreationTime"]) >= job["CreationTime"]
            if p.get("StatusEquals") in (None, job["ProcessingJobStatus"])
            and p.get("NameContains", "") in name
        ]  # fmt: skip
        rows.sort(key=lambda row: row["CreationTime"], reverse=p.get("SortOrder") != "Ascending")
        found, token = page(rows, p.get("NextToken"), p.get("MaxResults", 10), operation="ListProcessingJobs")
        return {"ProcessingJobSummaries": found} | ({"NextToken": token} if token else {})

    def UpdateTrainingJob(self, p: Params) -> Params:
        """Keep-alive 0 ends a warm pool that waits; AWS refuses it for a job without one."""
        job = self._job(p["TrainingJobName"], "UpdateTrainingJob")
        pool = job.get("WarmPoolStatus", {})
        if p.get("ResourceConfig", {}).get("KeepAlivePeriodInSeconds") == 0:
            if pool.get("Status") != "Available" and on("UpdateTrainingJob", "pool"):
                raise AwsRefusal("ValidationException", "The warm pool of this job is not available.")
            job["WarmPoolStatus"] = pool | {"Status": "Terminated"}
        return {"TrainingJobArn": job["TrainingJobArn"]}

    def DescribeCluster(self, p: Params) -> Params:
        """The cluster as it stands."""
        if p["ClusterName"] not in self.clusters and on("DescribeCluster", "unknown"):
            raise AwsRefusal("ResourceNotFound", f"Cluster {p['ClusterName']} not found")
        return self.clusters[p["ClusterName"]]

    def ListTags(self, p: Params) -> Params:
        """Tags of a job; of anything else as before."""
        if JOB.search(p["ResourceArn"]):
            return {"Tags": self._world.tags.listed(p["ResourceArn"])}
        inner: Params = self._inner.ListTags(p)  # type: ignore[attr-defined]
        return inner

    def _job(self, name: str, operation: str) -> Params:
        if name not in self.jobs and on(operation, "unknown"):
            raise AwsRefusal("ValidationException", "Requested resource not found.")
        return self.jobs[name]


def _epoch(value: Any) -> Any:
    """Moments as SageMaker's events carry them: milliseconds in a string, at every depth."""
    if isinstance(value, dict):
        return {key: _epoch(held) for key, held in value.items()}
    if isinstance(value, list):
        return [_epoch(held) for held in value]
    return str(int(value.timestamp() * 1000)) if isinstance(value, datetime) else value
