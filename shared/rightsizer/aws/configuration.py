"""Endpoint configurations, reduced to what decisions need, and kept while they cannot have changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from rightsizer.aws import kinds, raw
from rightsizer.aws.errors import reading
from rightsizer.domain.endpoint import EndpointKind

if TYPE_CHECKING:
    from types_boto3_sagemaker import SageMakerClient


@dataclass(frozen=True, slots=True)
class ConfiguredVariant:
    """One production variant as its configuration asks for it."""

    name: str
    model_name: str
    instance_type: str
    weight: float
    routing: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """One endpoint configuration. Plain values only, so that a cache may keep it as JSON."""

    name: str
    created_at: datetime
    variants: tuple[ConfiguredVariant, ...]
    kinds: frozenset[EndpointKind]
    unknown_fields: tuple[str, ...]
    kms_key: str
    enhanced_metrics: bool
    detailed_observability: bool
    publish_s: int = 60
    """Seconds between two samples of utilisation of one instance (MetricPublishFrequencyInSeconds)."""


class ConfigurationCache(Protocol):
    """Keeps configurations by endpoint ARN and the endpoint's LastModifiedTime: a name alone can be re-used."""

    def load(self, arn: str, modified_at: datetime) -> Configuration | None:
        """The configuration that the endpoint had at that modification, or None."""
        ...

    def keep(self, arn: str, modified_at: datetime, configuration: Configuration) -> None:
        """Remember it; an older one of the same endpoint may be dropped."""
        ...


class InMemoryConfigurations:
    """A cache for the life of the process."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[datetime, Configuration]] = {}

    def load(self, arn: str, modified_at: datetime) -> Configuration | None:
        """The configuration that the endpoint had at that modification, or None."""
        match self._kept.get(arn):
            case (known, configuration) if known == modified_at:
                return configuration
            case _:
                return None

    def keep(self, arn: str, modified_at: datetime, configuration: Configuration) -> None:
        """Remember the endpoint's latest configuration."""
        self._kept[arn] = (modified_at, configuration)


class ConfigurationReader:
    """Describes configurations, through the cache."""

    def __init__(self, client: "SageMakerClient", cache: ConfigurationCache) -> None:
        self._client = client
        self._cache = cache
        raw.watch(client, "DescribeEndpointConfig")

    def read(self, arn: str, modified_at: datetime, name: str) -> Configuration:
        """The configuration of an endpoint as it was last modified; ReadError when it cannot be read."""
        known = self._cache.load(arn, modified_at)
        if known is not None and known.name == name:
            return known
        with reading("sagemaker:DescribeEndpointConfig", f"describing the endpoint configuration {name}"):
            answer: Any = self._client.describe_endpoint_config(EndpointConfigName=name)
        configuration = parse(answer)
        if configuration.created_at <= modified_at:
            self._cache.keep(arn, modified_at, configuration)
        return configuration


def parse(answer: Mapping[str, Any]) -> Configuration:
    """A DescribeEndpointConfig answer, reduced."""
    return Configuration(
        name=answer["EndpointConfigName"],
        created_at=answer["CreationTime"],
        variants=tuple(_variant(variant) for variant in answer.get("ProductionVariants") or ()),
        kinds=kinds.of_configuration(answer),
        unknown_fields=tuple(answer.get(raw.UNKNOWN, ())),
        kms_key=answer.get("KmsKeyId", ""),
        enhanced_metrics=bool((answer.get("MetricsConfig") or {}).get("EnableEnhancedMetrics")),
        detailed_observability=bool((answer.get("MetricsConfig") or {}).get("EnableDetailedObservability")),
        publish_s=int((answer.get("MetricsConfig") or {}).get("MetricPublishFrequencyInSeconds") or 60),
    )


def _variant(variant: Mapping[str, Any]) -> ConfiguredVariant:
    return ConfiguredVariant(
        name=variant["VariantName"],
        model_name=variant.get("ModelName", ""),
        instance_type=variant.get("InstanceType", ""),
        weight=float(variant.get("InitialVariantWeight", 1.0)),
        routing=(variant.get("RoutingConfig") or {}).get("RoutingStrategy", ""),
    )
