"""What a change measured: billed instance hours, latency and GPU time since it, and its saving.

The ended change is made what the next decision and the report are to know of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from rightsizer.autoscaling.schedules import early_hours
from rightsizer.changes.failure import failure_to_remember, is_given_up
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.history import PastChange, PastEnd, PastVariant
from rightsizer.domain.live_state import EndpointSight, LiveState
from rightsizer.domain.office_hours import StoppedTime, stopped_hours
from rightsizer.domain.option import ORDERED
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.preflight import is_person
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.schedule import HOURS
from rightsizer.recommender.latency import ShadowRun, shadow_ratios

SAMPLED_S = 60.0
"""GPU seconds in all, of shadow and production each, from which samples of a minute tell a ratio."""
ENOUGH = 200
"""Requests before and after a change from which GPU seconds of a request are compared."""


def add_measurements(change: Change, live: LiveState, now: datetime) -> Change:
    """The change with the instance hours since the last look and the figures of its requests; none before its update.

    The live count is taken to have run since the look before: autoscaling moves it in between, and the looks are an
    hour apart at most on the first day.
    """
    if live.verdict is not None and live.verdict.figures:
        change = replace(change, measured=dict(live.verdict.figures))
    if change.returned_at is not None or not isinstance(live.endpoint, EndpointSight):
        return change
    return add_instance_hours(change, live.endpoint, now)


def add_instance_hours(
    change: Change,
    endpoint: EndpointSight,
    until: datetime,
    stopped: Sequence[StoppedTime] = (),
    *,
    by_plan: bool = False,
) -> Change:
    """The change with its instance hours up to `until`, at the live count or a closed schedule's planned mean.

    With `by_plan` at the planned count: a later change, which books its own hours, moved the live one. Hours in which
    office hours had the endpoint stopped had no instance, and are counted by themselves.
    """
    if change.turned_at is None:
        return change
    since = change.counted_until or change.turned_at
    changed = {change.variant, *(target.name for target in change.option.target.others)}
    running: float = sum(v.current_count for v in endpoint.variants if v.name in changed)
    if by_plan or (change.is_closed and change.option.target.hourly_counts):
        running = planned_instances(change)
    asleep = stopped_hours(stopped, since, until)
    hours = max(0.0, (until - since).total_seconds() / 3600 - asleep)
    fallback, unseen = _fallback_instances(change, endpoint)
    return replace(
        change,
        instance_hours=change.instance_hours + hours * running,
        fallback_hours=change.fallback_hours + hours * fallback,
        unseen_hours=change.unseen_hours + hours * unseen,
        asleep_hours=change.asleep_hours + asleep,
        counted_until=max(since, until),
    )


def _fallback_instances(change: Change, endpoint: EndpointSight) -> tuple[int, int]:
    """Instances that run on a fallback pool, and those of which AWS shows no pool; none where there are no pools."""
    variant = next((v for v in endpoint.variants if v.name == change.variant), None)
    if variant is None or not change.option.target.pools:
        return 0, 0
    first = sum(count for kind, count in variant.pools if kind == change.option.target.instance_type)
    others = sum(count for kind, count in variant.pools) - first
    return others, max(0, variant.current_count - first - others)


def realised_usd(change: Change, hours: float) -> Decimal:
    """US dollars saved in `hours` since the turn: old cost less the instance hours that ran.

    Hours that it was stopped are no saving of the change: the old fleet would have been stopped, too.

    Prices are those of the decision, net of commitments. Where no count was seen, the planned fleet stands in. Hours on
    a fallback pool, or on a pool that AWS does not show, cost what an instance of the old fleet cost. A change that
    promised nothing saves nothing in the books: instances that come and go with the load are no merit of its own. What
    growth adds is negative and only falls: hours with few instances are no saving of it.
    """
    if change.option.kind in ORDERED:
        return Decimal(0)
    if change.option.grows:
        return min(_usd_since_turn(change, hours), change.booked_usd, Decimal(0))
    return _usd_since_turn(change, hours)


def measured_usd_per_month(change: Change, now: datetime) -> Decimal | None:
    """Saving of a change that stands, measured at the hours that ran since it arrived.

    US dollars a month of the hours in which the endpoint runs, in whole cents. None while it runs, where it does not
    stand, and where it promised no saving, as growth does.
    """
    stands = change.is_closed and change.state in (ChangeState.PROVEN, ChangeState.APPLIED)
    plain = change.plan.kind is PlanKind.CHANGE and not change.option.grows and change.option.kind not in ORDERED
    if not stands or not plain or change.turned_at is None or not change.saves:
        return None
    hours = (now - change.turned_at).total_seconds() / 3600
    awake, month = hours - change.asleep_hours, change.option.price.hours_per_month
    if awake < 1:
        return None
    return (realised_usd(change, hours) / Decimal(str(awake)) * month).quantize(Decimal("0.01"))


def _usd_since_turn(change: Change, hours: float) -> Decimal:
    hours, month = max(hours - change.asleep_hours, 0.0), change.option.price.hours_per_month
    saving = change.saving_usd_per_month / month * Decimal(str(round(hours, 4)))
    before, planned = _old_instance_cost(change), planned_instances(change)
    if change.counted_until is None or planned <= 0 or change.option.usd_per_month <= 0:
        return saving
    each = change.option.usd_per_month / month / Decimal(str(planned))
    beyond = change.instance_hours - planned * hours
    dearer = before - each
    elsewhere = change.fallback_hours + change.unseen_hours
    return saving - each * Decimal(str(round(beyond, 4))) - dearer * Decimal(str(round(elsewhere, 4)))


def _old_instance_cost(change: Change) -> Decimal:
    """What an instance of the old fleet cost, USD per hour, by the decision."""
    before = change.before.variants if change.before else ()
    count = next((v.count for v in before if v.name == change.variant), 0) or planned_instances(change)
    hourly = (change.saving_usd_per_month + change.option.usd_per_month) / change.option.price.hours_per_month
    return hourly / Decimal(str(max(1, count)))


def planned_instances(change: Change) -> float:
    """Instances of the changed variants on average over the week, as decided and priced: autoscaling's included."""
    target, mean = change.option.target, change.option.mean_instances
    if mean is not None and change.option.price.hours_per_month < HOURS_PER_MONTH:
        return mean
    if target.hourly_counts:
        return target.mean_count + early_hours(target.week_counts) / HOURS
    if mean is not None:
        return mean
    return float(target.instance_count + sum(one.instance_count for one in target.others))


def add_lessons(past: PastChange, change: Change, catalogue: Catalogue) -> PastChange:
    """The record with what was measured: GPU seconds and latency against before, largest GPU memory, mean instances."""
    figures, base = change.measured, change.baseline
    if change.off_target_share > 0:
        return past  # the metrics are of several types together, so they tell nothing about the new one
    gpu, ratio = _ratios_to_baseline(figures, base)
    if change.plan.kind is PlanKind.SHADOW_TEST:
        gpu, ratio = _shadow_ratios(past, change)
    if past.from_type == past.to_type or (change.before and len(change.before.variants) != 1):
        gpu = None  # fewer instances overlap more requests; and several variants are measured together
    hardware = catalogue.find(change.option.target.instance_type)
    memory, chip = figures.get("gpu_memory_percent"), hardware.accelerator if hardware else None
    gib = None
    if memory and chip is not None and hardware is not None and not change.option.target.pools:
        gib = memory / 100 / max(1, hardware.accelerator_count) * chip.memory_gib
    target = change.option.target
    mean = planned_instances(change) if target.hourly_counts or target.metric else None
    return replace(
        past,
        latency_ratio=ratio,
        realised_slowdown=gpu,
        memory_gib=gib,
        mean_instances=mean,
        day_counts=target.day_counts,
        tracked=target.metric is not None,
        wake_s=figures.get("wake_s"),
    )


def _shadow_ratios(past: PastChange, change: Change) -> tuple[float | None, float | None]:
    """GPU seconds and latency on the shadow over production's, as `recommender.latency` reckons them."""
    found, alone = change.measured, past.from_count == 1 and not change.has_scaled_out
    if "requests" not in found:
        return None, None
    worked = min(found.get("gpu_s", 0.0), found.get("live_gpu_s", 0.0)) * found["requests"] >= SAMPLED_S
    run = ShadowRun(
        found["requests"],
        found["hours"],
        found.get("mean_s"),
        found.get("live_mean_s"),
        found.get("gpu_s") if worked else None,
        found.get("live_gpu_s"),
        found["live_spread"],
        queued=alone or past.from_routing != LEAST,
        alike=False,  # of the same requests, but GPU seconds are samples
    )
    return shadow_ratios(run)


def _ratios_to_baseline(after: Mapping[str, float], before: Mapping[str, float]) -> tuple[float | None, float | None]:
    """GPU seconds and latency of a request since the change over those before it; None where too little is known."""
    enough = min(after.get("gpu_requests", 0.0), before.get("gpu_requests", 0.0)) >= ENOUGH
    return _figure_ratio(after, before, "gpu_s") if enough else None, _figure_ratio(after, before, "mean_s")


def _figure_ratio(after: Mapping[str, float], before: Mapping[str, float], name: str) -> float | None:
    return after[name] / before[name] if after.get(name) and before.get(name) else None


def past_change_of(change: Change, catalogue: Catalogue, now: datetime) -> PastChange | None:
    """Promise and measurement of a change; None for a change that teaches nothing about hardware.

    A refusal changed nothing, a deletion has no other type, and what was given up before it served tells nothing.
    """
    if change.before is None or change.plan.kind is PlanKind.DELETE or change.state is ChangeState.REFUSED:
        return None
    if is_given_up(change):
        return None
    old = next((v for v in change.before.variants if v.name == change.variant), change.before.variants[0])
    ended = _past_end(change)
    promise = change.option.promise
    past = PastChange(
        at=now,
        from_type=old.instance_type,
        to_type=change.option.target.instance_type,
        from_count=old.count,
        to_count=change.option.target.instance_count,
        ended=ended,
        failure=failure_to_remember(change, ended),
        models=change.models if len(change.before.variants) == 1 else (),
        promised_slowdown=promise.slowdown if promise else None,
        promised_bound=promise.bound if promise else None,
        stated_risk=_stated_risk(change),
        demand=promise.peak_busy_gpus if promise else None,
        framework=promise.framework if promise else "",
        from_routing=change.before.routing,
        usd=change.once_usd if ended is PastEnd.TESTED else Decimal(0),
        back_for=change.back_for.value,
        restores=change.option.restores,
        variant=change.variant if len(change.before.variants) > 1 else "",
        others=tuple(_past_variants(change)),
        grows=change.option.grows,
        late_share=change.option.late_share,
        from_minimum=_minimum_before(change),
        approved_by=change.decided_by if is_person(change.decided_by) else "",
        approved_at=change.approval_given_at if is_person(change.decided_by) else None,
        to_config=change.plan.new_config or change.before.config_name,
        configured_at=change.before.modified_at if ended is PastEnd.TESTED else None,
    )
    return add_lessons(past, change, catalogue)


def _minimum_before(change: Change) -> int | None:
    """The minimum that the autoscaling of the changed variant had; None where it had none."""
    scaled = change.before.scaling if change.before is not None else ()
    return max((t.minimum for t in scaled if t.variant_name == change.variant), default=None)


def _past_variants(change: Change) -> Iterator[PastVariant]:
    """What became of the other variants that the same deployment changed."""
    old = {v.name: v for v in (change.before.variants if change.before else ())}
    for target in change.option.target.others:
        was = old.get(target.name)
        if was is not None:
            yield PastVariant(target.name, was.instance_type, target.instance_type, was.count, target.instance_count)


def _stated_risk(change: Change) -> int | None:
    """The risk that users were told; None where it was none of theirs (a shadow), a rollback, or a person's order."""
    silent = change.plan.kind is PlanKind.SHADOW_TEST or change.option.restores or change.option.kind in ORDERED
    untested = change.option.untested_risk if change.after is None else None
    return None if silent else int(change.option.performance_risk if untested is None else untested)


def _past_end(change: Change) -> PastEnd:
    test = change.plan.kind is PlanKind.SHADOW_TEST
    if change.state in (ChangeState.PROVEN, ChangeState.APPLIED):
        stands = PastEnd.PROVEN if change.state is ChangeState.PROVEN else PastEnd.APPLIED
        return PastEnd.TESTED if test else stands
    if test and change.turned_at is not None:
        return PastEnd.TESTED
    if change.state is ChangeState.ROLLED_BACK:
        return PastEnd.ROLLED_BACK if change.turned_at is not None else PastEnd.UPDATE_FAILED
    return PastEnd.HANDED_OVER
