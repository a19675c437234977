"""Endpoint configurations, reduced to what decisions need and cached, and one endpoint put together from its parts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.models import ModelFacts, framework_of
from rightsizer.domain.endpoint import (
    Endpoint,
    EndpointKind,
    EndpointRef,
    Image,
    Mode,
    ScalableTarget,
    Variant,
    variant_resource_id,
)
from rightsizer.domain.live_state import uncarried_fields
from rightsizer.domain.reason import Reason
from rightsizer.domain.tags import parse_tags

if TYPE_CHECKING:
    from types_boto3_sagemaker import SageMakerClient


PRECEDENCE = (
    EndpointKind.UNKNOWN,
    EndpointKind.SERVERLESS,
    EndpointKind.INFERENCE_COMPONENTS,
    EndpointKind.MARKETPLACE,
    EndpointKind.RESERVED,
    EndpointKind.MIG,
    EndpointKind.INSTANCE_POOLS,
    EndpointKind.SHADOW,
    EndpointKind.MULTI_MODEL,
    EndpointKind.PIPELINE,
    EndpointKind.MULTI_VARIANT,
    EndpointKind.ASYNC,
    EndpointKind.REAL_TIME,
)
"""The first that applies names the endpoint: what keeps us furthest from acting comes first."""

VARIANT_KEYS: Mapping[str, EndpointKind] = {
    "ServerlessConfig": EndpointKind.SERVERLESS,
    "CapacityReservationConfig": EndpointKind.RESERVED,
    "AcceleratorPartitionLayouts": EndpointKind.MIG,
    "InstancePools": EndpointKind.INSTANCE_POOLS,
}
UNKNOWN = "RightsizerUnknownFields"
"""Key under which `keep_unknown_fields` leaves the paths in the parsed answer."""


@dataclass(frozen=True, slots=True)
class ConfiguredVariant:
    """One production variant as its configuration asks for it."""

    name: str
    model_name: str
    instance_type: str
    weight: float
    routing: str


@dataclass(frozen=True, slots=True)
class EndpointConfiguration:
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
    models: tuple[str, ...] = ()
    """Models that its variants name, shadows included."""
    elastic_inference: tuple[str, ...] = ()
    """Elastic Inference accelerators that its variants name."""


class InMemoryConfigurations:
    """Configurations by endpoint ARN and LastModifiedTime, for the life of the process: a name alone can be re-used."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[datetime, EndpointConfiguration]] = {}

    def load(self, arn: str, modified_at: datetime) -> EndpointConfiguration | None:
        """The configuration that the endpoint had at that modification, or None."""
        match self._kept.get(arn):
            case (known, configuration) if known == modified_at:
                return configuration
            case _:
                return None

    def keep(self, arn: str, modified_at: datetime, configuration: EndpointConfiguration) -> None:
        """Remember the endpoint's latest configuration."""
        self._kept[arn] = (modified_at, configuration)


class ConfigurationReader:
    """Describes configurations, through the cache."""

    def __init__(self, client: "SageMakerClient", cache: InMemoryConfigurations) -> None:
        self._client = client
        self._cache = cache
        keep_unknown_fields(client, "DescribeEndpointConfig")

    def read(self, arn: str, modified_at: datetime, name: str) -> EndpointConfiguration:
        """The configuration of an endpoint as it was last modified; ReadError when it cannot be read."""
        known = self._cache.load(arn, modified_at)
        if known is not None and known.name == name:
            return known
        with translate_read_errors("sagemaker:DescribeEndpointConfig", f"describing the endpoint configuration {name}"):
            answer: Any = self._client.describe_endpoint_config(EndpointConfigName=name)
        configuration = parse(answer)
        if configuration.created_at <= modified_at:
            self._cache.keep(arn, modified_at, configuration)
        return configuration


def parse(answer: Mapping[str, Any]) -> EndpointConfiguration:
    """A DescribeEndpointConfig answer, reduced."""
    return EndpointConfiguration(
        name=answer["EndpointConfigName"],
        created_at=answer["CreationTime"],
        variants=tuple(_variant(variant) for variant in answer.get("ProductionVariants") or ()),
        kinds=frozenset(_kinds_of_configuration(answer)),
        unknown_fields=(
            *answer.get(UNKNOWN, ()),
            *uncarried_fields({key: value for key, value in answer.items() if key != UNKNOWN}),
        ),
        kms_key=answer.get("KmsKeyId", ""),
        enhanced_metrics=bool((answer.get("MetricsConfig") or {}).get("EnableEnhancedMetrics")),
        detailed_observability=bool((answer.get("MetricsConfig") or {}).get("EnableDetailedObservability")),
        publish_s=int((answer.get("MetricsConfig") or {}).get("MetricPublishFrequencyInSeconds") or 60),
        models=models_of(answer),
        elastic_inference=tuple(
            dict.fromkeys(
                v["AcceleratorType"] for v in answer.get("ProductionVariants") or () if v.get("AcceleratorType")
            )
        ),
    )


def models_of(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """Models that the variants of a DescribeEndpointConfig answer name, shadows included, each once."""
    variants = [*(answer.get("ProductionVariants") or ()), *(answer.get("ShadowProductionVariants") or ())]
    return tuple(dict.fromkeys(each["ModelName"] for each in variants if each.get("ModelName")))


def _variant(variant: Mapping[str, Any]) -> ConfiguredVariant:
    return ConfiguredVariant(
        name=variant["VariantName"],
        model_name=variant.get("ModelName", ""),
        instance_type=variant.get("InstanceType", ""),
        weight=float(variant.get("InitialVariantWeight", 1.0)),
        routing=(variant.get("RoutingConfig") or {}).get("RoutingStrategy", ""),
    )


def kinds_of_model(facts: ModelFacts) -> frozenset[EndpointKind]:
    """The kinds that a model shows."""
    shown = (
        (EndpointKind.MULTI_MODEL, facts.multi_model),
        (EndpointKind.PIPELINE, facts.containers > 1 or facts.direct),
        (EndpointKind.MARKETPLACE, facts.marketplace),
    )
    return frozenset(kind for kind, applies in shown if applies)


def order_kinds(kinds: frozenset[EndpointKind]) -> tuple[EndpointKind, ...]:
    """Every kind that applies, the one that keeps us furthest from acting first; real-time when none is special."""
    return tuple(kind for kind in PRECEDENCE if kind in kinds) or (EndpointKind.REAL_TIME,)


def _kinds_of_configuration(config: Mapping[str, Any]) -> Iterator[EndpointKind]:
    variants: Sequence[Mapping[str, Any]] = config.get("ProductionVariants") or ()
    if not variants:
        yield EndpointKind.UNKNOWN
    if len(variants) > 1:
        yield EndpointKind.MULTI_VARIANT
    if config.get("ShadowProductionVariants"):
        yield EndpointKind.SHADOW
    if config.get("AsyncInferenceConfig"):
        yield EndpointKind.ASYNC
    for variant in variants:
        yield from (kind for key, kind in VARIANT_KEYS.items() if variant.get(key))
        if not variant.get("ModelName"):
            yield EndpointKind.INFERENCE_COMPONENTS
        if not any(variant.get(key) for key in ("InstanceType", "InstancePools", "ServerlessConfig")):
            yield EndpointKind.UNKNOWN


def keep_unknown_fields(client: Any, operation: str) -> None:
    """Let every answer of the operation carry the paths of its unknown fields under `UNKNOWN`."""
    client.meta.events.register(
        f"after-call.{client.meta.service_model.service_id.hyphenize()}.{operation}",
        _mark,
        unique_id=f"rightsizer-raw-{operation}",
    )


def unknown_paths(shape: Any, value: Any, path: str = "") -> Iterator[str]:
    """Paths of the keys in `value` that the botocore shape has no member for."""
    if value is None:
        return
    if shape.type_name == "structure" and isinstance(value, dict):
        members = {member.serialization.get("name", name): member for name, member in shape.members.items()}
        for key, inner in value.items():
            here = f"{path}.{key}" if path else str(key)
            if key in members:
                yield from unknown_paths(members[key], inner, here)
            else:
                yield here
    elif shape.type_name == "list" and isinstance(value, list):
        for number, inner in enumerate(value):
            yield from unknown_paths(shape.member, inner, f"{path}[{number}]")
    elif shape.type_name == "map" and isinstance(value, dict):
        for key, inner in value.items():
            yield from unknown_paths(shape.value, inner, f"{path}.{key}")


def _mark(http_response: Any, parsed: dict[str, Any], model: Any, **_: Any) -> None:
    if http_response.status_code >= 300:
        return
    try:
        body = json.loads(http_response.content)
    except ValueError:
        parsed[UNKNOWN] = ("(the raw answer is not JSON)",)
        return
    parsed[UNKNOWN] = tuple(unknown_paths(model.output_shape, body))


@dataclass(frozen=True, slots=True)
class EndpointParts:
    """Parts read of one endpoint."""

    ref: EndpointRef
    described: Mapping[str, Any]
    configuration: EndpointConfiguration
    models: tuple[ModelFacts, ...]
    tags: Mapping[str, str] | Reason
    """Why the tags could not be read, in place of them: then nobody allowed anything."""
    scaling: Mapping[str, tuple[ScalableTarget, ...]] | None
    """None when autoscaling could not be read: then the kind is unknown, so that nobody acts against it."""


def endpoint_from(parts: EndpointParts, notes: tuple[Reason, ...]) -> Endpoint:
    """The endpoint as a whole. `notes` tell what could not be read."""
    described, configuration = parts.described, parts.configuration
    unread = parts.tags if isinstance(parts.tags, Reason) else None
    tags = parts.tags if not isinstance(parts.tags, Reason) else {}
    tag_wishes = parse_tags(tags)
    variants = _variants(described, configuration)
    images = tuple(image.specified for variant in variants for image in variant.images)
    images += tuple(image for model in parts.models for image in model.images)
    applicable = order_kinds(_kinds(parts, variants))
    return Endpoint(
        ref=parts.ref,
        status=described["EndpointStatus"],
        config_name=configuration.name,
        created_at=described["CreationTime"],
        modified_at=described["LastModifiedTime"],
        kind=applicable[0],
        kinds=applicable,
        variants=variants,
        tags=dict(tags),
        tags_unread=unread,
        mode=tag_wishes.mode if unread is None else Mode.REPORT,
        mode_declared=tag_wishes.mode_declared,
        objective=tag_wishes.objective,
        owner=tag_wishes.owner,
        owned_by=tag_wishes.owned_by,
        scaling=tuple(
            target
            for variant in variants
            for target in (parts.scaling or {}).get(variant_resource_id(described["EndpointName"], variant.name), ())
        ),
        unknown_fields=configuration.unknown_fields,
        configuration_replaced=configuration.created_at > described["LastModifiedTime"],
        framework=framework_of(images),
        failure_reason=described.get("FailureReason", ""),
        bad_tags=tag_wishes.bad,
        asks_because=tag_wishes.asks_because,
        kms_key=configuration.kms_key,
        enhanced_metrics=configuration.enhanced_metrics,
        detailed_observability=configuration.detailed_observability,
        publish_s=configuration.publish_s,
        deploying=bool(described.get("PendingDeploymentSummary")),
        models=configuration.models,
        elastic_inference=configuration.elastic_inference,
        notes=notes,
    )


def _kinds(parts: EndpointParts, variants: tuple[Variant, ...]) -> frozenset[EndpointKind]:
    found = set(parts.configuration.kinds)
    for model in parts.models:
        found |= kinds_of_model(model)
    if parts.described.get("ShadowProductionVariants"):
        found.add(EndpointKind.SHADOW)
    if parts.described.get("AsyncInferenceConfig"):
        found.add(EndpointKind.ASYNC)
    named = {variant.model_name for variant in variants if variant.model_name}
    if len(parts.models) < len(named) or parts.scaling is None:
        found.add(EndpointKind.UNKNOWN)
    return frozenset(found)


def _variants(described: Mapping[str, Any], configuration: EndpointConfiguration) -> tuple[Variant, ...]:
    live = {variant["VariantName"]: variant for variant in described.get("ProductionVariants") or ()}
    return tuple(_live_variant(live.get(configured.name, {}), configured) for configured in configuration.variants)


def _live_variant(live: Mapping[str, Any], configured: ConfiguredVariant) -> Variant:
    current = int(live.get("CurrentInstanceCount", 0))
    return Variant(
        name=configured.name,
        model_name=configured.model_name,
        instance_type=configured.instance_type,
        current_count=current,
        desired_count=int(live.get("DesiredInstanceCount", current)),
        weight=float(live.get("DesiredWeight", live.get("CurrentWeight", configured.weight))),
        images=tuple(
            Image(image.get("SpecifiedImage", ""), image.get("ResolvedImage", ""))
            for image in live.get("DeployedImages") or ()
        ),
        routing=(live.get("RoutingConfig") or {}).get("RoutingStrategy", configured.routing),
        least_instances=_least_instances(live.get("ManagedInstanceScaling") or {}),
        consolidates=_is_consolidating(live.get("ManagedInstanceScaling") or {}),
    )


def _least_instances(managed: Mapping[str, Any]) -> int | None:
    return int(managed.get("MinInstanceCount", 1)) if managed.get("Status") == "ENABLED" else None


def _is_consolidating(managed: Mapping[str, Any]) -> bool:
    return (managed.get("ScaleInPolicy") or {}).get("Strategy") == "CONSOLIDATION"
