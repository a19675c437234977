"""Which kind of endpoint it is, from the answers of DescribeEndpointConfig and DescribeModel."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rightsizer.aws.models import ModelFacts
from rightsizer.domain.endpoint import EndpointKind

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


def of_configuration(config: Mapping[str, Any]) -> frozenset[EndpointKind]:
    """The kinds that a DescribeEndpointConfig answer shows."""
    return frozenset(_of_configuration(config))


def of_model(facts: ModelFacts) -> frozenset[EndpointKind]:
    """The kinds that a model shows."""
    shown = (
        (EndpointKind.MULTI_MODEL, facts.multi_model),
        (EndpointKind.PIPELINE, facts.containers > 1 or facts.direct),
        (EndpointKind.MARKETPLACE, facts.marketplace),
    )
    return frozenset(kind for kind, applies in shown if applies)


def ordered(kinds: frozenset[EndpointKind]) -> tuple[EndpointKind, ...]:
    """Every kind that applies, the one that keeps us furthest from acting first; real-time when none is special."""
    return tuple(kind for kind in PRECEDENCE if kind in kinds) or (EndpointKind.REAL_TIME,)


def _of_configuration(config: Mapping[str, Any]) -> Iterator[EndpointKind]:
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
