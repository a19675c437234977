"""Read the inference components of an endpoint: what each reserves, its own autoscaling, its own metrics.

What could not be read stands in its place as a reason. One component that cannot be read stops no other, and neither
stops the endpoint.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rightsizer.domain.component import (
    COMPONENT_SIGNALS,
    PER_COPY,
    Component,
    ComponentSight,
    ReadComponents,
    UnreadComponent,
)
from rightsizer.domain.endpoint import Endpoint, EndpointKind, EndpointRef, ScalableTarget
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Reason, reason_of
from rightsizer.domain.usage import SLOT_S
from rightsizer.errors import ReadError
from rightsizer.ports.evaluation import ComponentReader, MetricReader, MetricRequest
from rightsizer.recommender.component_usage import component_usage


def read_components(
    reader: ComponentReader | None, metrics: MetricReader, endpoint: Endpoint, policy: Policy, now: datetime
) -> ReadComponents | None:
    """Every component of the endpoint with its usage over the look-back, or why they could not be listed.

    None where it has none or nothing reads them.
    """
    if reader is None or EndpointKind.INFERENCE_COMPONENTS not in endpoint.kinds:
        return None
    ref = endpoint.ref
    try:
        described = reader.describe(ref.name)
    except ReadError as error:
        return reason_of(error)
    known = [one for one in described if not isinstance(one, UnreadComponent)]
    lost = [one for one in described if isinstance(one, UnreadComponent)]
    return (*_with_usage(metrics, ref, known, policy, now), *lost)


def _with_usage(
    metrics: MetricReader,
    ref: EndpointRef,
    known: Sequence[tuple[ComponentSight, ScalableTarget | Reason | None]],
    policy: Policy,
    now: datetime,
) -> list[Component]:
    """The components with what CloudWatch knows of each, in one reading."""
    if not known:
        return []
    start = now - timedelta(days=policy.lookback_days)
    moved = (*COMPONENT_SIGNALS, PER_COPY)
    requests = [
        MetricRequest(ref.name, sight.name, COMPONENT_SIGNALS if scaling is None else moved, of_component=True)
        for sight, scaling in known
    ]
    windows = metrics.read(requests, start, now, SLOT_S)
    return [
        Component(sight, scaling, component_usage(sight, isinstance(scaling, ScalableTarget), window, policy))
        for (sight, scaling), window in zip(known, windows, strict=True)
    ]
