"""One endpoint as a whole, put together from the parts that AWS keeps apart."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rightsizer.aws.configuration import ConfiguredVariant, EndpointConfiguration, kinds_of_model, order_kinds
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
from rightsizer.domain.reason import Reason
from rightsizer.domain.tags import parse_tags


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
    return tuple(_variant(live.get(configured.name, {}), configured) for configured in configuration.variants)


def _variant(live: Mapping[str, Any], configured: ConfiguredVariant) -> Variant:
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
