"""What an account holds and pays beside its endpoints: configurations, models, warm pools.

A page of 100 costs one call. Single things are described only where no list says it, and never more than the caller
allows. Sources: SageMaker API reference, ListEndpointConfigs, ListModels, ListTrainingJobs (its rows have the
WarmPoolStatus), ListInferenceComponents; CloudWatch API reference, ListMetrics (series of the last two weeks).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import batched
from typing import TYPE_CHECKING, Any

from rightsizer.aws.configuration import models_of
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session
from rightsizer.aws.tags import TagReader, Tags
from rightsizer.aws.training import TrainingHistory
from rightsizer.domain.account_finding import (
    EndpointTraffic,
    ServedResources,
    ServerlessSize,
    StoredResource,
    WarmPoolUse,
)
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.job import TrainingRun, base_name
from rightsizer.domain.ownership import named_owner
from rightsizer.domain.reason import Reason
from rightsizer.domain.tags import parse_tags
from rightsizer.errors import ReadError, VanishedError

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_sagemaker import SageMakerClient
    from types_boto3_savingsplans import SavingsPlansClient

MOST_COMPONENTS = 300
"""Inference components that are described; with more of them their models are not known."""
MOST_JOBS = 1000
"""Newest training jobs whose rows are read: ten calls."""
MOST_WORKS = 20
"""Works of which the newest job is described, those with the most unused seconds first."""
VARIANTS_AT_ONCE = 160
"""Variants of one request of GetMetricData, which takes 500 queries."""
YEAR_S = 31_536_000
"""durationSeconds of a plan of one year."""
TRAFFIC = (
    ("calls", "AWS/SageMaker", "Invocations", "Sum"),
    ("busy", "AWS/SageMaker", "ModelLatency", "Sum"),
    ("memory", "/aws/sagemaker/Endpoints", "MemoryUtilization", "Maximum"),
)


class AccountBill:
    """Reads them (port `AccountReader`). ReadError says what could not be read."""

    def __init__(self, session: Session) -> None:
        self._sagemaker: SageMakerClient = session.client("sagemaker")
        self._cloudwatch: CloudWatchClient = session.client("cloudwatch")
        self._plans: SavingsPlansClient = session.client("savingsplans", "us-east-1")
        self._history = TrainingHistory(session)
        self._region = session.region
        self._session = session

    def configurations(self) -> tuple[StoredResource, ...]:
        """Every endpoint configuration."""
        with translate_read_errors("sagemaker:ListEndpointConfigs", "listing the endpoint configurations"):
            pages: Any = self._sagemaker.get_paginator("list_endpoint_configs").paginate(
                PaginationConfig={"PageSize": 100}
            )
            rows = [row for page in pages for row in page["EndpointConfigs"]]
        return tuple(StoredResource(row["EndpointConfigName"], row["CreationTime"]) for row in rows)

    def models(self) -> tuple[StoredResource, ...]:
        """Every model."""
        with translate_read_errors("sagemaker:ListModels", "listing the models"):
            pages: Any = self._sagemaker.get_paginator("list_models").paginate(PaginationConfig={"PageSize": 100})
            rows = [row for page in pages for row in page["Models"]]
        return tuple(StoredResource(row["ModelName"], row["CreationTime"]) for row in rows)

    def endpoint_names(self) -> tuple[str, ...]:
        """Every endpoint."""
        with translate_read_errors("sagemaker:ListEndpoints", "listing the endpoints"):
            pages: Any = self._sagemaker.get_paginator("list_endpoints").paginate(PaginationConfig={"PageSize": 100})
            return tuple(row["EndpointName"] for page in pages for row in page["Endpoints"])

    def served_by(self, endpoints: Sequence[str]) -> ServedResources:
        """Configurations and models of these endpoints, described one by one; an endpoint that is gone uses nothing."""
        configurations: set[str] = set()
        for name in endpoints:
            try:
                with translate_read_errors("sagemaker:DescribeEndpoint", f"describing the endpoint {name}"):
                    answer: Mapping[str, Any] = self._sagemaker.describe_endpoint(EndpointName=name)
            except VanishedError:
                continue
            pending = answer.get("PendingDeploymentSummary") or {}
            configurations |= {answer.get("EndpointConfigName", ""), pending.get("EndpointConfigName", "")} - {""}
        return ServedResources(frozenset(configurations), frozenset(self._models_of(configurations)))

    def _models_of(self, configurations: Iterable[str]) -> Iterator[str]:
        for name in sorted(configurations):
            try:
                with translate_read_errors("sagemaker:DescribeEndpointConfig", f"describing the configuration {name}"):
                    yield from models_of(self._sagemaker.describe_endpoint_config(EndpointConfigName=name))
            except VanishedError:
                continue  # deleted while its endpoint serves on

    def endpoint_tags(self, arns: Sequence[str]) -> Mapping[str, Mapping[str, str] | Reason]:
        """Tags of these endpoints, a hundred with one request; a reason where they could not be read."""
        return TagReader(self._session.client("resourcegroupstaggingapi"), self._sagemaker).read(arns)

    def component_models(self) -> frozenset[str]:
        """Models that inference components name. ReadError where there are more than `MOST_COMPONENTS`."""
        with translate_read_errors("sagemaker:ListInferenceComponents", "listing the inference components"):
            pages: Any = self._sagemaker.get_paginator("list_inference_components").paginate(
                PaginationConfig={"PageSize": 100}
            )
            names = [row["InferenceComponentName"] for page in pages for row in page["InferenceComponents"]]
        if len(names) > MOST_COMPONENTS:
            raise ReadError(f"reading which models serve: {len(names)} inference components are too many to describe")
        found: set[str] = set()
        for name in names:
            try:
                with translate_read_errors("sagemaker:DescribeInferenceComponent", f"describing the component {name}"):
                    answer: Any = self._sagemaker.describe_inference_component(InferenceComponentName=name)
            except VanishedError:
                continue
            shown = [answer.get("Specification") or {}, *(answer.get("Specifications") or ())]
            found |= {each["ModelName"] for each in shown if each.get("ModelName")}
        return frozenset(found)

    def configurations_seen_lately(self) -> frozenset[str]:
        """Configurations with metrics of their own in the last two weeks: published around guarded deployments only."""
        with translate_read_errors("cloudwatch:ListMetrics", "looking for configurations that served lately"):
            pages: Any = self._cloudwatch.get_paginator("list_metrics").paginate(
                Namespace="AWS/SageMaker", MetricName="Invocations", Dimensions=[{"Name": "EndpointConfigName"}]
            )
            dimensions = [each for page in pages for row in page["Metrics"] for each in row["Dimensions"]]
        return frozenset(each["Value"] for each in dimensions if each["Name"] == "EndpointConfigName")

    def plan_rates(self, instance_types: Collection[str]) -> Mapping[str, Decimal]:
        """US dollars of a hosting hour under a SageMaker Savings Plan of one year without upfront payment, by type.

        The rows of the Region are read whole, since a usage type begins with a billing code that no API names. Where a
        type has several rates the highest counts.
        """
        found: dict[str, Decimal] = {}
        token: dict[str, Any] = {}
        while True:
            with translate_read_errors("savingsplans:DescribeSavingsPlansOfferingRates", "asking for rates of plans"):
                page: Any = self._plans.describe_savings_plans_offering_rates(
                    savingsPlanPaymentOptions=["No Upfront"],
                    savingsPlanTypes=["SageMaker"],
                    products=["SageMaker"],
                    serviceCodes=["AmazonSageMaker"],
                    filters=[{"name": "region", "values": [self._region]}],
                    maxResults=1000,
                    **token,
                )
            for row in page["searchResults"]:
                name = f"-{row['usageType']}".rpartition("-Host:")[2]
                is_year = row["savingsPlanOffering"]["durationSeconds"] == YEAR_S and row["unit"] == "Hrs"
                if is_year and f"-{row['usageType']}".endswith(f"-Host:{name}") and name in instance_types:
                    found[name] = max(Decimal(row["rate"]), found.get(name, Decimal(0)))
            if not page.get("nextToken"):
                return found
            token = {"nextToken": page["nextToken"]}

    def training_runs(self, since: datetime, now: datetime, most: int) -> tuple[TrainingRun, ...]:
        """The newest `most` training and as many processing jobs that ended, with the use of their hosts."""
        return self._history.runs(since, now, most) + self._history.processing_runs(since, now, most)

    def warm_pools(self, since: datetime, now: datetime) -> tuple[WarmPoolUse, ...]:
        """Billed seconds of the warm pools of each work, of the newest jobs; the most unused first."""
        with translate_read_errors("sagemaker:ListTrainingJobs", "listing the training jobs"):
            pages: Any = self._sagemaker.get_paginator("list_training_jobs").paginate(
                CreationTimeAfter=since,
                CreationTimeBefore=now,
                SortBy="CreationTime",
                SortOrder="Descending",
                PaginationConfig={"PageSize": 100, "MaxItems": MOST_JOBS},
            )
            rows = [row for page in pages for row in page["TrainingJobSummaries"]]
        works: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            if _retained(row) > 0:
                works[base_name(row["TrainingJobName"])].append(row)
        largest = sorted(works, key=lambda work: (-_unused(works[work]), work))[:MOST_WORKS]
        uses = [(works[work][0], self._use(work, works[work])) for work in largest if _unused(works[work]) > 0]
        tags = self._history.tags_of([row["TrainingJobArn"] for row, _ in uses])
        return tuple(_tagged(use, tags[row["TrainingJobArn"]]) for row, use in uses)

    def serverless_sizes(self, endpoints: Sequence[str]) -> Mapping[str, ServerlessSize]:
        """Memory and provisioned concurrency of serverless endpoints; one call each. Deleted ones are left out."""
        found: dict[str, ServerlessSize] = {}
        for name in endpoints:
            try:
                with translate_read_errors("sagemaker:DescribeEndpoint", f"describing the endpoint {name}"):
                    answer: Any = self._sagemaker.describe_endpoint(EndpointName=name)
            except VanishedError:
                continue
            shown = [each.get("CurrentServerlessConfig") for each in answer.get("ProductionVariants") or ()]
            if len(shown) == 1 and shown[0]:
                gigabytes = int(shown[0]["MemorySizeInMB"]) // 1024
                found[name] = ServerlessSize(gigabytes, int(shown[0].get("ProvisionedConcurrency") or 0))
        return found

    def traffic(
        self, variants: Sequence[tuple[str, str]], since: datetime, now: datetime
    ) -> Mapping[str, EndpointTraffic]:
        """Requests, their seconds and the memory of (endpoint, variant), by the hour; three metrics of each."""
        start, end = _hour_of(since), _hour_of(now)
        days, found = (end - start) / timedelta(days=1), dict[str, EndpointTraffic]()
        for some in batched(variants, VARIANTS_AT_ONCE):
            queries: Any = [query for at, each in enumerate(some) for query in _traffic_queries(at, *each)]
            values: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
            with translate_read_errors("cloudwatch:GetMetricData", "reading the traffic of endpoints without GPUs"):
                pages: Any = self._cloudwatch.get_paginator("get_metric_data").paginate(
                    MetricDataQueries=queries, StartTime=start, EndTime=end
                )
                for page in pages:
                    for row in page["MetricDataResults"]:
                        values[row["Id"]] += zip(row["Timestamps"], row["Values"], strict=True)
            for at, (name, _) in enumerate(some):
                calls = [value for _, value in values[f"calls{at}"]]
                busy = [value / 1e6 for _, value in values[f"busy{at}"]]
                memory = [value / 100 for _, value in values[f"memory{at}"]]
                found[name] = EndpointTraffic(
                    name,
                    days,
                    sum(calls),
                    sum(busy),
                    max(busy, default=0.0) / 3600,
                    max(memory, default=None),
                    len(memory) / 24,
                )
        return found

    def _use(self, work: str, rows: Sequence[Mapping[str, Any]]) -> WarmPoolUse:
        name = rows[0]["TrainingJobName"]
        with translate_read_errors("sagemaker:DescribeTrainingJob", f"reading the training job {name}"):
            resources = self._sagemaker.describe_training_job(TrainingJobName=name).get("ResourceConfig", {})
        reused = sum(1 for row in rows if _is_reused(row))
        return WarmPoolUse(
            work,
            len(rows),
            reused,
            _unused(rows),
            str(resources.get("InstanceType", "")),
            int(resources.get("InstanceCount", 0)),
        )


def _hour_of(at: datetime) -> datetime:
    return at - timedelta(seconds=at.timestamp() % 3600)


def _traffic_queries(at: int, endpoint: str, variant: str) -> Iterator[dict[str, Any]]:
    """Queries of one variant, by the hour. ModelLatency is in microseconds, so its Sum is the work of the hour."""
    dimensions = [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": variant}]
    for name, namespace, metric, statistic in TRAFFIC:
        asked = {"Namespace": namespace, "MetricName": metric, "Dimensions": dimensions}
        yield {"Id": f"{name}{at}", "MetricStat": {"Metric": asked, "Period": 3600, "Stat": statistic}}


def _tagged(use: WarmPoolUse, tags: Tags | Reason) -> WarmPoolUse:
    if isinstance(tags, Reason):
        return replace(use, tags_unread=tags)
    return replace(use, owner=named_owner(tags), is_opted_out=parse_tags(tags).mode is Mode.OFF)


def _retained(row: Mapping[str, Any]) -> float:
    return float((row.get("WarmPoolStatus") or {}).get("ResourceRetainedBillableTimeInSeconds", 0) or 0)


def _is_reused(row: Mapping[str, Any]) -> bool:
    return bool((row.get("WarmPoolStatus") or {}).get("ReusedByJob"))


def _unused(rows: Iterable[Mapping[str, Any]]) -> float:
    return sum(_retained(row) for row in rows if not _is_reused(row))
