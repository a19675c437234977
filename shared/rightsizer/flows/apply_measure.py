"""What a change is measured by while it is watched: instance hours that were billed, and how it served."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from rightsizer.model.change import Change
from rightsizer.model.hardware import Catalogue
from rightsizer.model.history import PastChange
from rightsizer.model.price import HOURS_PER_MONTH
from rightsizer.model.sight import EndpointSight, Sight


def measured(change: Change, sight: Sight, now: datetime) -> Change:
    """The change with the instance hours since the last look, and what its requests say. Nothing before it turned.

    The count of a look is taken to have run since the look before: autoscaling moves it in between, and the looks are
    an hour apart at most on the first day.
    """
    if sight.verdict is not None and sight.verdict.figures:
        change = replace(change, measured=dict(sight.verdict.figures))
    if change.turned_at is None or change.returned_at is not None or not isinstance(sight.endpoint, EndpointSight):
        return change
    return counted(change, sight.endpoint, now)


def counted(change: Change, endpoint: EndpointSight, until: datetime) -> Change:
    """The change with the instance hours until then, at the count of now, or the plan's where hours have counts."""
    if change.turned_at is None:
        return change
    since = change.counted_until or change.turned_at
    running: float = next((v.current_count for v in endpoint.variants if v.name == change.variant), 0)
    if change.closed and change.option.target.hourly_counts:
        running = planned_instances(change)
    hours = max(0.0, (until - since).total_seconds() / 3600)
    return replace(change, instance_hours=change.instance_hours + hours * running, counted_until=max(since, until))


def realised_usd(change: Change, hours: float) -> Decimal:
    """What `hours` on the new fleet saved: the old fleet's cost, less the instance hours that really ran.

    Prices are those of the decision, net of commitments. Where no count was seen, the planned fleet stands in.
    """
    saving = change.saving_usd_per_month / HOURS_PER_MONTH * Decimal(str(round(hours, 4)))
    planned = planned_instances(change)
    if change.counted_until is None or planned <= 0 or change.option.usd_per_month <= 0:
        return saving
    each = change.option.usd_per_month / HOURS_PER_MONTH / Decimal(str(planned))
    beyond = change.instance_hours - planned * hours
    return saving - each * Decimal(str(round(beyond, 4)))


def planned_instances(change: Change) -> float:
    """Instances of the changed variant on average over the day, as decided."""
    counts = change.option.target.hourly_counts
    return sum(counts) / len(counts) if counts else float(change.option.target.instance_count)


def taught(past: PastChange, change: Change, catalogue: Catalogue) -> PastChange:
    """The record with what the change measured: latency against before, largest GPU memory, mean instances."""
    figures, base = change.measured, change.baseline
    ratio = figures.get("latency_ratio")
    if ratio is None and figures.get("mean_s") and base.get("mean_s"):
        ratio = figures["mean_s"] / base["mean_s"]
    hardware = catalogue.find(change.option.target.instance_type)
    memory, chip = figures.get("gpu_memory_percent"), hardware.accelerator if hardware else None
    gib = None
    if memory and chip is not None and hardware is not None and not change.option.target.pools:
        gib = memory / 100 / max(1, hardware.accelerator_count) * chip.memory_gib
    mean = planned_instances(change) if change.option.target.hourly_counts else None
    return replace(past, latency_ratio=ratio, memory_gib=gib, mean_instances=mean)
