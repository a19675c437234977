"""Hours and money of a change to the figure: what ran, what each instance hour costs, and what a month saves."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.changes.measurement import (
    add_instance_hours,
    add_measurements,
    measured_usd_per_month,
    planned_instances,
    realised_usd,
)
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.live_state import EndpointSight, LiveState, ProofVerdict, VariantSight
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.option import Option, OptionKind, Target, VariantTarget
from rightsizer.domain.plan import Before, Plan, PlanKind, VariantCount
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.schedule import DayCounts
from tests import samples
from tests.changes.account import MONDAY, NEW_TYPE, OLD_TYPE

HOUR = timedelta(hours=1)
OTHER = VariantTarget("w", OLD_TYPE, 2, Decimal(1))
BY_HOUR = Target(NEW_TYPE, 4, hourly_counts=(2,) * 24)
POOLS = Target(NEW_TYPE, 1, pools=(NEW_TYPE, OLD_TYPE))
CLOSED: dict[str, Any] = {"state": ChangeState.PROVEN, "next_due": None}


def option(target: Target | None = None, **changes: Any) -> Option:
    """An instance hour of the new fleet costs 1 USD where one is planned; the change saves 2 USD an hour."""
    made = samples.option(
        target=target or Target(NEW_TYPE, 1), usd_per_month=Decimal(730), saving_usd_per_month=Decimal(1460)
    )
    return replace(made, **changes)


def turned(target: Target | None = None, wanted: Option | None = None, **changes: Any) -> Change:
    """A change that arrived on Monday, from two instances of 1.50 USD an hour each."""
    chosen = wanted or option(target)
    before = Before("old", MONDAY, "", (VariantCount("other", OLD_TYPE, 7, 1.0), VariantCount("v", OLD_TYPE, 2, 1.0)))
    known = {"saving_usd_per_month": chosen.saving_usd_per_month, "turned_at": MONDAY, "before": before}
    return samples.change(MONDAY, option=chosen, **{**known, **changes})


def seen(v: int = 3, w: int = 5, pools: tuple[tuple[str, int], ...] = ()) -> EndpointSight:
    """The changed variant, another one `w`, and a third that no change is about."""
    rows = (
        VariantSight("x", 9, 9, 1.0, 1.0),
        VariantSight("v", v, 8, 1.0, 1.0, (), pools),
        VariantSight("w", w, w, 1, 1),
    )
    return EndpointSight("InService", "new", MONDAY, "", "", rows)


def after(change: Change, hours: float = 2, *stopped: StoppedTime, by_plan: bool = False) -> Change:
    return add_instance_hours(change, seen(), MONDAY + hours * HOUR, stopped, by_plan=by_plan)


def test_the_instances_of_the_changed_variants_are_counted_and_of_no_other() -> None:
    assert after(turned()).instance_hours == 2 * 3
    assert after(turned(Target(NEW_TYPE, 1, others=(OTHER,)))).instance_hours == 2 * (3 + 5)


def test_hours_add_up_from_the_last_look() -> None:
    before = turned(
        POOLS, instance_hours=10.0, fallback_hours=1.0, unseen_hours=2.0, asleep_hours=0.5, counted_until=MONDAY + HOUR
    )
    nap = StoppedTime(MONDAY + 2 * HOUR, MONDAY + 2.5 * HOUR)
    found = add_instance_hours(before, seen(3, pools=((NEW_TYPE, 1), (OLD_TYPE, 1))), MONDAY + 3 * HOUR, (nap,))
    assert found.instance_hours == 10 + 1.5 * 3
    assert (found.fallback_hours, found.unseen_hours, found.asleep_hours) == (1 + 1.5, 2 + 1.5, 0.5 + 0.5)
    assert found.counted_until == MONDAY + 3 * HOUR


def test_a_look_into_the_past_counts_nothing_and_moves_nothing_back() -> None:
    before = turned(counted_until=MONDAY + 3 * HOUR, instance_hours=9.0)
    found = after(before, 1)
    assert (found.instance_hours, found.counted_until) == (9.0, MONDAY + 3 * HOUR)


def test_a_night_that_stopped_it_the_whole_time_counts_as_asleep_and_as_no_instance_hour() -> None:
    found = after(turned(), 2, StoppedTime(MONDAY - HOUR, None))
    assert (found.instance_hours, found.asleep_hours) == (0.0, 2.0)


@pytest.mark.parametrize(
    ("change", "by_plan", "running"),
    [
        (turned(), False, 3),
        (turned(), True, 1),
        (turned(**CLOSED), False, 3),
        (turned(BY_HOUR), False, 3),
        (turned(BY_HOUR, **CLOSED), False, 2),
    ],
)
def test_a_schedule_that_nobody_watches_any_more_and_a_later_change_count_the_planned_instances(
    change: Change, by_plan: bool, running: float
) -> None:
    assert after(change, 1, by_plan=by_plan).instance_hours == running


@pytest.mark.parametrize(
    ("pools", "fallback", "unseen"),
    [
        (((NEW_TYPE, 3),), 0, 0),
        (((NEW_TYPE, 1), (NEW_TYPE, 1), (OLD_TYPE, 1)), 1, 0),
        (((OLD_TYPE, 1),), 1, 2),
        (((OLD_TYPE, 2), (NEW_TYPE, 2)), 2, 0),
    ],
)
def test_an_instance_beside_the_first_pool_is_a_fallback_and_one_without_a_pool_is_not_seen(
    pools: tuple[tuple[str, int], ...], fallback: int, unseen: int
) -> None:
    for target, counted in ((POOLS, (fallback, unseen)), (Target(NEW_TYPE, 1), (0, 0))):
        found = add_instance_hours(turned(target), seen(3, pools=pools), MONDAY + HOUR)
        assert (found.fallback_hours, found.unseen_hours) == counted


def test_a_variant_that_is_gone_ran_on_no_pool() -> None:
    found = add_instance_hours(turned(POOLS, variant="gone"), seen(), MONDAY + HOUR)
    assert (found.instance_hours, found.fallback_hours, found.unseen_hours) == (0, 0, 0)


def test_the_figures_of_a_verdict_are_kept_and_an_empty_one_does_not_wipe_them() -> None:
    known = turned(measured={"mean_s": 0.1})
    for figures, kept in (({}, {"mean_s": 0.1}), ({"mean_s": 0.2}, {"mean_s": 0.2})):
        verdict = ProofVerdict("not-yet", Reason(Code.UNPROVEN, "x"), figures=figures)
        found = add_measurements(known, LiveState(seen(), verdict=verdict), MONDAY + HOUR)
        assert (found.measured, found.instance_hours) == (kept, 3)


# money


def money(hours: float, change: Change) -> float:
    return float(realised_usd(change, hours))


def counted(instance_hours: float, **changes: Any) -> Change:
    return turned(counted_until=MONDAY, instance_hours=instance_hours, **changes)


def test_each_instance_hour_beside_the_plan_changes_the_saving_by_what_it_costs() -> None:
    assert money(10, counted(10)) == pytest.approx(20)
    assert money(10, counted(13)) == pytest.approx(20 - 3)
    assert money(10, counted(8)) == pytest.approx(20 + 2)
    two = option(Target(NEW_TYPE, 2))
    assert money(10, counted(26, wanted=two)) == pytest.approx(20 - 6 * 0.5), "two were planned for 1 USD an hour"


def test_where_no_count_was_seen_or_none_was_planned_or_priced_the_promise_stands_in() -> None:
    assert money(10, turned(instance_hours=99.0)) == pytest.approx(20)
    assert money(10, counted(99, wanted=option(Target(NEW_TYPE, 0)))) == pytest.approx(20)
    assert money(10, counted(99, wanted=option(usd_per_month=Decimal(0)))) == pytest.approx(20)


def test_a_cheap_fleet_is_booked_by_its_count_too() -> None:
    cheap = option(usd_per_month=Decimal("0.73"))
    assert money(1000, counted(2000, wanted=cheap)) == pytest.approx(2000 - 1)


def test_hours_on_another_pool_or_on_an_unseen_one_cost_what_an_instance_of_the_old_fleet_costs() -> None:
    """3 USD an hour for two instances before, so 1.50 USD for each in place of 1 USD."""
    assert money(10, counted(10, fallback_hours=4.0)) == pytest.approx(20 - 4 * 0.5)
    assert money(10, counted(10, unseen_hours=3.0)) == pytest.approx(20 - 3 * 0.5)
    assert money(10, counted(10, fallback_hours=4.0, unseen_hours=3.0)) == pytest.approx(20 - 7 * 0.5)


@pytest.mark.parametrize("changes", [{"before": None}, {"variant": "gone"}])
def test_an_old_fleet_that_is_not_known_had_the_planned_instances(changes: dict[str, Any]) -> None:
    two = option(Target(NEW_TYPE, 2))
    found = money(10, counted(20, wanted=two, fallback_hours=4.0, **changes))
    assert found == pytest.approx(20 - 4 * (3 / 2 - 1 / 2))


def test_a_part_of_an_instance_on_average_is_taken_as_one_old_instance() -> None:
    half = option(mean_instances=0.5)
    found = money(10, counted(5, wanted=half, before=None, fallback_hours=2.0))
    assert found == pytest.approx(20 - 2 * (3 / 1 - 1 / 0.5))


def test_hours_asleep_save_nothing() -> None:
    assert money(10, counted(6, asleep_hours=4.0)) == pytest.approx(12)
    assert money(3, counted(0, asleep_hours=4.0)) == 0


def test_hours_are_booked_to_a_ten_thousandth() -> None:
    assert realised_usd(turned(), 1.00004) == realised_usd(turned(), 1)
    assert realised_usd(turned(), 1.00006) > realised_usd(turned(), 1)


@pytest.mark.parametrize("kind", [OptionKind.PLACEMENT, OptionKind.SCALE_IN])
def test_what_promised_nothing_saves_nothing_however_few_run(kind: OptionKind) -> None:
    assert realised_usd(counted(0, wanted=option(kind=kind)), 10) == Decimal(0)


@pytest.mark.parametrize(
    ("saving", "booked", "found"),
    [(-1460, 0, -20), (-1460, -30, -30), (-1460, -10, -20), (1460, 0, 0), (1460, 5, 0)],
)
def test_what_growth_adds_is_negative_and_only_falls(saving: int, booked: int, found: int) -> None:
    grows = option(growth_usd=Decimal(9), saving_usd_per_month=Decimal(saving))
    assert money(10, turned(wanted=grows, booked_usd=Decimal(booked))) == pytest.approx(found)


def measured(hours: float = 10, **changes: Any) -> Decimal | None:
    chosen = {"instance_hours": hours, "counted_until": MONDAY, **CLOSED, **changes}
    return measured_usd_per_month(turned(**chosen), MONDAY + hours * HOUR)


def test_a_month_is_what_an_hour_saved_times_the_hours_of_a_month() -> None:
    assert measured() == Decimal("1460.00")
    assert measured(instance_hours=15.0) == Decimal("1095.00"), "1.50 USD an hour in place of 2"
    assert measured(3, instance_hours=2.0) == Decimal("1703.33"), "in whole cents"
    assert measured(10, asleep_hours=4.0, instance_hours=6.0) == Decimal("1460.00")


def test_the_month_of_an_endpoint_that_sleeps_is_of_the_hours_in_which_it_runs() -> None:
    price = replace(samples.option().price, hours_per_month=Decimal(365))
    asleep = option(price=price, mean_instances=1.0)
    assert measured(wanted=asleep, instance_hours=10.0) == Decimal("1460.00")


def test_a_month_is_measured_from_one_hour_on() -> None:
    assert measured(1) == Decimal("1460.00")
    assert measured(0.99) is None
    assert measured(5, asleep_hours=4.5) is None


APPLIED = ChangeState.APPLIED


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        ({"state": APPLIED}, True),
        ({"state": APPLIED, "next_due": MONDAY}, False),
        ({"state": ChangeState.ROLLED_BACK}, False),
        ({"state": ChangeState.RUNNING}, False),
        ({"plan": Plan(kind=PlanKind.SHADOW_TEST)}, False),
        ({"plan": Plan(kind=PlanKind.DELETE)}, False),
        ({"wanted": option(growth_usd=Decimal(1))}, False),
        ({"wanted": option(kind=OptionKind.PLACEMENT)}, False),
        ({"turned_at": None}, False),
        ({"saves": False}, False),
    ],
)
def test_only_a_change_that_stands_and_promised_a_saving_has_a_measured_month(
    changes: dict[str, Any], is_told: bool
) -> None:
    assert (measured(**changes) is not None) is is_told


WEEK = (DayCounts((0, 1, 2, 3, 4), (8,) * 24), DayCounts((5, 6), (1,) * 24))


@pytest.mark.parametrize(
    ("target", "mean", "hours", "planned"),
    [
        (Target(NEW_TYPE, 4), None, 730, 4),
        (Target(NEW_TYPE, 4, others=(OTHER, OTHER)), None, 730, 8),
        (Target(NEW_TYPE, 4, others=(OTHER,)), 2.5, 730, 2.5),
        (BY_HOUR, 9.0, 730, 2),
        (BY_HOUR, 9.0, 729, 9),
        (BY_HOUR, None, 729, 2),
        (Target(NEW_TYPE, 4), None, 365, 4),
        (Target(NEW_TYPE, 8, hourly_counts=(8,) * 24, day_counts=WEEK), None, 730, 6 + 7 * 0.25 / 168),
    ],
)
def test_the_planned_instances_are_those_that_were_priced(
    target: Target, mean: float | None, hours: int, planned: float
) -> None:
    price = replace(samples.option().price, hours_per_month=Decimal(hours))
    assert planned_instances(turned(wanted=option(target, mean_instances=mean, price=price))) == pytest.approx(planned)
