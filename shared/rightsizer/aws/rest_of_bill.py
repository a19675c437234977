"""What an account holds and pays beside its endpoints: configurations, models, warm pools.

A page of 100 costs one call. Single things are described only where no list says it, and never more than the caller
allows. Sources: SageMaker API reference, ListEndpointConfigs, ListModels, ListTrainingJobs (its rows have the
WarmPoolStatus), ListInferenceComponents; CloudWatch API reference, ListMetrics (series of the last two weeks).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rightsizer.aws.configuration import models_of
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session
from rightsizer.domain.account_finding import ServedResources, StoredResource, WarmPoolUse
from rightsizer.domain.job import base_name
from rightsizer.errors import ReadError, VanishedError

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_sagemaker import SageMakerClient

MOST_COMPONENTS = 300
"""Inference components that are described; with more of them their models are not known."""
MOST_JOBS = 1000
"""Newest training jobs whose rows are read: ten calls."""
MOST_WORKS = 20
"""Works of which the newest job is described, those with the most unused seconds first."""


class AccountBill:
    """Reads them (port `AccountReader`). ReadError says what could not be read."""

    def __init__(self, session: Session) -> None:
        self._sagemaker: SageMakerClient = session.client("sagemaker")
        self._cloudwatch: CloudWatchClient = session.client("cloudwatch")

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
        return tuple(self._use(work, works[work]) for work in largest if _unused(works[work]) > 0)

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


def _retained(row: Mapping[str, Any]) -> float:
    return float((row.get("WarmPoolStatus") or {}).get("ResourceRetainedBillableTimeInSeconds", 0) or 0)


def _is_reused(row: Mapping[str, Any]) -> bool:
    return bool((row.get("WarmPoolStatus") or {}).get("ReusedByJob"))


def _unused(rows: Iterable[Mapping[str, Any]]) -> float:
    return sum(_retained(row) for row in rows if not _is_reused(row))
