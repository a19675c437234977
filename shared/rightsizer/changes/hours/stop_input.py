"""What is looked at before an endpoint is stopped, and what the others that sleep need in the morning. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
from rightsizer.domain.hours_record import EndpointBefore, HoursRecord, ModelBefore
from rightsizer.domain.live_state import AlarmSight, ConfigSight, EndpointSight, ImageSight, ReservationSight
from rightsizer.domain.office_hours import Opening, lead_time, parse_hours
from rightsizer.domain.policy import ChangeLimits, Switch
from rightsizer.errors import InputError


@dataclass(frozen=True, slots=True)
class StopInput:
    """Everything that is looked at before an endpoint is stopped."""

    ref: EndpointRef
    now: datetime
    endpoint: EndpointSight
    config: ConfigSight | None
    tags: Mapping[str, str]
    limits: ChangeLimits
    switch: Switch
    scaling: tuple[ScalableTarget, ...] = ()
    alarms: tuple[Mapping[str, Any], ...] = ()
    """Metric alarms that name the endpoint or start its policies."""
    composites: tuple[Mapping[str, Any], ...] = ()
    """Composite alarms of the account, with their rules."""
    wired: tuple[Mapping[str, Any], ...] = ()
    """Alarms that start a scaling policy of the endpoint."""
    registry: Mapping[str, ImageSight] = field(default_factory=dict)
    monitors: tuple[str, ...] = ()
    """Names of the Model Monitor schedules that watch the endpoint."""
    components: tuple[str, ...] = ()
    """Names of its inference components."""
    quotas: Mapping[str, int] = field(default_factory=dict)
    asleep: Mapping[str, int] = field(default_factory=dict)
    """Instances by type that other endpoints, which we stopped, need while this one has to run."""
    opens_at: datetime | None = None
    """When it has to serve next; None where that is not known."""
    reservations: Mapping[str, ReservationSight] = field(default_factory=dict)
    """Training plans that its configuration or its fallback names, by ARN; one that AWS does not know is absent."""
    fallback: ConfigSight | None = None
    """The configuration that the tag names for mornings without capacity; None where it names none, or none is."""
    incident_alarms: tuple[AlarmSight, ...] = ()
    models: Mapping[str, ModelBefore] = field(default_factory=dict)
    """The models of the configuration that exist: what runs does not need them, a creation does."""
    holder: str = ""
    """Id of the change that holds the endpoint; empty: none."""
    ordered_back: str = ""
    """Id of a proposal of which the rollback is ordered and not begun."""
    last_request: datetime | None = None
    requests_known: bool = True
    """Whether CloudWatch shows for the grace time that instances ran and how many requests came."""
    denied: tuple[str, ...] = ()
    """IAM actions that a restart needs and that our role is denied."""

    @property
    def rows(self) -> tuple[Mapping[str, Any], ...]:
        """Production variants as the configuration has them."""
        return tuple(self.config.body.get("ProductionVariants") or ()) if self.config else ()


def reservation_of(row: Mapping[str, Any]) -> str:
    """ARN of the training plan that a variant runs in; empty: none."""
    return str((row.get("CapacityReservationConfig") or {}).get("MlReservationArn") or "")


def instances_asleep(
    record: HoursRecord, opening: Opening | None, others: Iterable[HoursRecord], holidays: frozenset[date]
) -> Mapping[str, int]:
    """Instances by type that others, stopped or on their way, run at most at one moment of its next opening.

    Each runs from its lead time before an opening on. They run nothing now, so no quota shows what they need.
    """
    if opening is None:
        return {}
    mine = Opening(opening.start - lead_time(record.starts), opening.end)
    runs = [
        (run, other.before)
        for other in others
        if other.ref != record.ref and other.holds_lock and other.before is not None
        for run in _runs_within(other, mine, holidays)
    ]
    most = dict[str, int]()
    for moment in {mine.start, *(run.start for run, _ in runs if run.start in mine)}:
        at_once = dict[str, int]()
        for before in (before for run, before in runs if moment in run):
            for kind, count in _counts_before(before):
                at_once[kind] = at_once.get(kind, 0) + count
        most = {kind: max(most.get(kind, 0), at_once.get(kind, 0)) for kind in most | at_once}
    return most


def _runs_within(record: HoursRecord, span: Opening, holidays: frozenset[date]) -> Iterator[Opening]:
    try:
        hours = parse_hours(record.hours)
    except InputError:  # always on
        yield span
        return
    lead = lead_time(record.starts)
    opening = hours.opening(span.start, holidays) or hours.next_opening(span.start, holidays)
    while opening is not None and opening.start - lead < span.end:
        yield Opening(opening.start - lead, opening.end)
        opening = hours.next_opening(opening.start, holidays)


def _counts_before(before: EndpointBefore) -> Iterator[tuple[str, int]]:
    """What its creation needs: it is created at the configuration's count, and set to that of before."""
    rows = {row.get("VariantName"): row for row in before.config_body.get("ProductionVariants") or ()}
    for variant in (v for v in before.variants if v.instance_type):
        first = (rows.get(variant.name) or {}).get("InitialInstanceCount")
        yield variant.instance_type, max(variant.count, int(first or 0))
