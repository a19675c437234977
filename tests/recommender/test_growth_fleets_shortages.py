"""Why an endpoint needs more than it runs: each shortage by itself, from both sides of its bound."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.demand import MemoryClass
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender import growth_fleets
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.growth_fleets import (
    GrowthNeed,
    NeedKind,
    growth_need,
    todays_count,
)
from tests.recommender import plain
from tests.recommender.plain_context import OTHER, SCALED, context, noted, ours, stub

LARGER = "ml.g6e.xlarge"
WHY = Reason(Code.UNDER_PROVISIONED, "it is short")
HOURS_OF_DAY = replace(SCALED, policies=(), scheduled=({"ScheduledActionName": "day"},))


def need(kind: NeedKind = NeedKind.LATE, least: int = 1) -> GrowthNeed:
    return GrowthNeed(kind, WHY, least)


def of_kind(seen: EvaluationContext, kind: EndpointKind) -> EvaluationContext:
    return replace(seen, endpoint=replace(seen.endpoint, kind=kind, kinds=(kind,)))


def wanting(seen: EvaluationContext, least: int | None) -> EvaluationContext:
    objective = replace(seen.endpoint.objective, min_instances=least)
    return replace(seen, endpoint=replace(seen.endpoint, objective=objective))


def demanding(seen: EvaluationContext, **more: Any) -> EvaluationContext:
    return replace(seen, demand=replace(seen.demand, **more))


# why more is needed


@pytest.mark.parametrize("first", range(5))
def test_the_first_shortage_that_is_found_is_the_need(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    names = ("_full_memory_reason", "_late_reason", "_failing_reason", "_queue_reason", "_minimum_reason")
    for number, name in enumerate(names):
        stub(monkeypatch, growth_fleets, name, lambda _, number=number: WHY if number >= first else None)
    found = growth_need(wanting(context(), 3))
    kinds = (NeedKind.MEMORY, NeedKind.LATE, NeedKind.FAILING, NeedKind.QUEUE, NeedKind.MINIMUM)
    assert found == GrowthNeed(kinds[first], WHY, 3)
    ours_now = wanting(context(past=(ours(),), instances=2.0), None)
    assert growth_need(ours_now) == GrowthNeed(NeedKind.MINIMUM, WHY, 1), "a fleet of ours has rules of its own"
    stub(monkeypatch, growth_fleets, names[4], lambda _: None)
    assert growth_need(ours_now) is None


@pytest.mark.parametrize(
    ("past", "instances", "more", "owners"),
    [
        (False, 2.0, {}, True),
        (True, 4.0, {}, True),
        (True, 3.98, {}, False),
        (True, 3.991, {}, True),
        (False, 4.0, {"is_strained": True}, False),
    ],
)
def test_what_runs_is_its_owners_where_no_change_of_ours_left_fewer(
    past: bool, instances: float, more: dict[str, Any], owners: bool
) -> None:
    seen = context(past=(ours(),) if past else (), instances=instances, **more)
    assert growth_fleets._is_owners_fleet(seen) is owners
    other = seen.inputs.catalogue.find(OTHER)
    assert other is not None
    assert not growth_fleets._is_owners_fleet(replace(seen, runs=other))


def test_late_requests_are_those_on_the_fleet_that_runs_now(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    stub(
        monkeypatch,
        growth_fleets,
        "latency_of",
        lambda days: noted(asked, list(days), (plain.LATENCY if days else None)),
    )
    counted: list[Any] = []
    stub(monkeypatch, growth_fleets, "too_late_reason", lambda *given: noted(counted, given, WHY))
    seen = context()
    runs: tuple[tuple[float | None, ...], ...] = (
        (3.5, *(4.0,) * 23),
        (3.51, None, *(4.0,) * 22),
        (None,) * 24,
        (4.0,) * 24,
    )
    days = [replace(one, instances=counts) for one, counts in zip(seen.days, runs, strict=False)]
    days[3] = replace(days[3], instance_type=OTHER)
    mixed = replace(seen, days=days)
    assert growth_fleets._late_reason(mixed) == WHY
    assert asked[-1] == [days[1]]
    assert counted[-1] == (mixed.demand, plain.LATENCY, mixed.objective, mixed.policy, 4.0)
    growth_fleets._late_reason(replace(mixed, endpoint=replace(seen.endpoint, scaling=(SCALED,))))
    assert asked[-1] == days[:3]
    assert growth_fleets._late_reason(replace(seen, days=days[2:])) is None


def test_failures_and_refusals_for_want_of_capacity_are_a_need(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = context((3.0,) * 12 + (1.0,) * 12)
    assert growth_fleets._failing_reason(demanding(seen, error_share=0.5, gpu_peak=0.99)) is not None
    assert growth_fleets._failing_reason(seen) is None
    counted: list[Any] = []
    stub(monkeypatch, growth_fleets, "busy_and_refusing_reason", lambda *given: noted(counted, given, WHY))
    assert growth_fleets._failing_reason(seen) == WHY
    assert counted[-1] == (seen.demand, seen.demand.latency, seen.objective, seen.policy, 2.0)
    assert growth_fleets._failing_reason(demanding(seen, latency=None)) is None


@pytest.mark.parametrize(
    ("errors", "held", "kind", "declared", "full"),
    [
        (0.05, 21.34, MemoryClass.STATIC, None, True),
        (0.05, 21.33, MemoryClass.STATIC, None, False),
        (0.05, 21.5, MemoryClass.ELASTIC, None, True),
        (0.05, 21.5, MemoryClass.PREALLOCATED, None, False),
        (0.05, 21.5, MemoryClass.STATIC, 0.05, False),
        (0.051, 21.5, MemoryClass.STATIC, 0.05, True),
    ],
)
def test_memory_is_full_from_97_per_cent_where_more_requests_fail_than_may(
    errors: float, held: float, kind: MemoryClass, declared: float | None, full: bool
) -> None:
    seen = context()
    seen = replace(seen, objective=replace(seen.objective, error_share=declared))
    seen = demanding(seen, error_share=errors, memory=replace(plain.NEED, kind=kind, peak_gib=held))
    said = growth_fleets._full_memory_reason(seen)
    assert (said is not None) is full
    if full and declared is not None:
        assert said == Reason(
            Code.UNDER_PROVISIONED,
            "5.10 % of the requests failed (5 % are allowed) while the GPU memory was full: 21.5 of 22.0 GiB",
        )
    cpu = replace(seen.runs, accelerator=None)
    assert growth_fleets._full_memory_reason(replace(seen, runs=cpu)) is None


def queued(
    backlog: tuple[float | None, ...] = (), expired: tuple[float, ...] = (), rate: float = 0.1
) -> EvaluationContext:
    """Four instances of one request a second each, and what their queue held and lost on each day."""
    seen = of_kind(context(), EndpointKind.ASYNC)
    days = [
        replace(one, backlog=backlog[n] if n < len(backlog) else None, expired=expired[n] if n < len(expired) else 0.0)
        for n, one in enumerate(seen.days)
    ]
    seen = replace(seen, days=days, latency=replace(seen.latency, mean_s=1.0))
    return demanding(seen, load=replace(seen.demand.load, peak_rate=rate))


def test_a_queue_is_too_long_with_more_than_an_hour_of_work_on_two_days() -> None:
    hour = 4 * 3600.0
    said = growth_fleets._queue_reason(queued((hour + 1, 2 * hour, 10.0)))
    assert said == Reason(
        Code.UNDER_PROVISIONED,
        "up to 28,800 requests waited in its queue, 2.0 h of work for what runs; on 2 of 7 days it held more than 1 h"
        " of work",
    )
    for calm in ((hour, 2 * hour), (2 * hour,), ()):
        assert growth_fleets._queue_reason(queued(calm)) is None
    long = queued((2 * hour, 2 * hour))
    assert growth_fleets._queue_reason(of_kind(long, EndpointKind.REAL_TIME)) is None
    few = queued((3601.0, 3601.0))
    assert growth_fleets._queue_reason(replace(few, instances=0.5)) is not None, "one instance at least works it off"
    twice = queued((3600.0 * 2 + 1,) * 2)
    vars(twice)["workers"] = 2
    assert growth_fleets._queue_reason(replace_workers(twice, 1.0, 2)) is not None
    assert growth_fleets._queue_reason(replace_workers(twice, 1.0, 3)) is None


def replace_workers(seen: EvaluationContext, instances: float, workers: int) -> EvaluationContext:
    made = replace(seen, instances=instances)
    vars(made)["workers"] = workers
    return made


@pytest.mark.parametrize(
    ("expired", "rate", "short"),
    [((10.0, 10.0), 2.5, True), ((10.0, 9.9), 2.5, False), ((10.0, 10.0), 2.4, False), ((99.0,), 2.5, False)],
)
def test_a_busy_queue_that_loses_ten_requests_on_two_days_is_too_small(
    expired: tuple[float, ...], rate: float, short: bool
) -> None:
    """Busy is more than rho_one of the workers: 0.6 of four."""
    said = growth_fleets._queue_reason(queued(expired=expired, rate=rate))
    why = Reason(Code.UNDER_PROVISIONED, "20 requests expired in its queue before an instance took them, on 2 days")
    assert said == (why if short else None)


@pytest.mark.parametrize(
    ("least", "scaling", "now", "said"),
    [
        (None, (), 1, None),
        (3, (), 3, None),
        (3, (), 2, "it runs 2"),
        (3, (replace(SCALED, minimum=3), replace(SCALED, minimum=4)), 2, None),
        (3, (SCALED, replace(SCALED, minimum=4)), 9, "the minimum of its autoscaling is 2"),
        (3, (HOURS_OF_DAY,), 1, None),
        (3, (replace(HOURS_OF_DAY, scheduled=()),), 9, "the minimum of its autoscaling is 2"),
    ],
)
def test_fewer_than_the_owner_wants_at_all_times_are_a_shortage(
    least: int | None, scaling: tuple[Any, ...], now: int, said: str | None
) -> None:
    seen = wanting(context(scaling=scaling), least)
    variant = replace(seen.variant, current_count=now - 1, desired_count=now)
    found = growth_fleets._minimum_reason(replace(seen, endpoint=replace(seen.endpoint, variants=(variant,))))
    assert (found.sentence if found else None) == (
        said and f"{said}, and the tag rightsizer:min-instances says 3 at all times"
    )
    assert found is None or found.code is Code.UNDER_PROVISIONED


@pytest.mark.parametrize(("mean", "count"), [(2.01, 2), (2.02, 3), (0.0, 1)])
def test_whole_instances_run(mean: float, count: int) -> None:
    assert todays_count(context(instances=mean)) == count
