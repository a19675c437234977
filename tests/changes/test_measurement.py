"""What a change is measured by: instance hours that ran, money that they saved, and what its end teaches."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

from rightsizer.changes.measurement import (
    add_instance_hours,
    add_measurements,
    measured_usd_per_month,
    planned_instances,
    realised_usd,
)
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.live_state import EndpointSight, Gone, LiveState, ProofVerdict, VariantSight
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.option import OptionKind, Target, VariantTarget
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.schedule import DayCounts
from rightsizer.flows.record_change import LedgerEntries, _note, book_savings
from tests import samples
from tests.changes.account import MONDAY, NEW_TYPE, OLD_TYPE, Load
from tests.changes.memory import World, an_option, world

POOLS = an_option(kind=OptionKind.INSTANCE_POOLS, target=Target(NEW_TYPE, 1, pools=(NEW_TYPE, OLD_TYPE)))


def ran(count: int, hours: float, **changes: object) -> Change:
    made = samples.change(MONDAY, variant="v", turned_at=MONDAY, **changes)
    return add_instance_hours(made, seen(count), MONDAY + timedelta(hours=hours))


def seen(count: int, *pools: tuple[str, int]) -> EndpointSight:
    variants = (VariantSight("v", count, count, 1.0, 1.0, (), pools),)
    return EndpointSight("InService", "new", MONDAY, "", "", variants)


def test_hours_are_counted_at_the_count_of_each_look_and_once() -> None:
    first = ran(2, 3)
    second = add_instance_hours(first, seen(5), MONDAY + timedelta(hours=4))
    assert (first.instance_hours, second.instance_hours) == (6.0, 11.0)
    assert add_instance_hours(second, seen(5), MONDAY + timedelta(hours=4)).instance_hours == 11.0
    assert add_instance_hours(second, seen(5), MONDAY).instance_hours == 11.0, "time does not run backwards"


def test_nothing_is_counted_before_the_turn_after_the_return_and_of_what_is_gone() -> None:
    at = MONDAY + timedelta(hours=2)
    before = samples.change(MONDAY, variant="v")
    assert add_instance_hours(before, seen(3), at) == before
    returned = samples.change(MONDAY, variant="v", turned_at=MONDAY, returned_at=MONDAY)
    assert add_measurements(returned, LiveState(seen(3)), at) == returned
    turned = samples.change(MONDAY, variant="v", turned_at=MONDAY)
    assert add_measurements(turned, LiveState(Gone("chat")), at) == turned
    verdict = ProofVerdict("not-yet", Reason(Code.UNPROVEN, "x"), figures={"mean_s": 0.1})
    looked = add_measurements(turned, LiveState(seen(3), verdict=verdict), at)
    assert (looked.measured, looked.instance_hours) == ({"mean_s": 0.1}, 6.0)


def test_pools_are_counted_by_where_they_ran() -> None:
    at, made = MONDAY + timedelta(hours=10), samples.change(MONDAY, variant="v", turned_at=MONDAY, option=POOLS)
    for pools, fallback, unseen in (
        (((NEW_TYPE, 3),), 0, 0),
        (((NEW_TYPE, 1), (OLD_TYPE, 2)), 20, 0),
        (((OLD_TYPE, 1),), 10, 20),
        ((), 0, 30),
    ):
        found = add_instance_hours(made, seen(3, *pools), at)
        assert (found.instance_hours, found.fallback_hours, found.unseen_hours) == (30, fallback, unseen)


def test_more_instances_than_priced_save_less_by_what_an_instance_costs() -> None:
    plain = samples.option().saving_usd_per_month / 730 * 10
    each = samples.option().usd_per_month / 730
    assert float(realised_usd(ran(1, 10), 10)) == pytest.approx(float(plain))
    assert float(realised_usd(ran(3, 10), 10)) == pytest.approx(float(plain - 2 * 10 * each))
    assert float(realised_usd(samples.change(MONDAY), 10)) == pytest.approx(float(plain)), "no count was seen"


@pytest.mark.parametrize("kind", [OptionKind.PLACEMENT, OptionKind.SCALE_IN])
def test_what_promised_nothing_saves_nothing(kind: OptionKind) -> None:
    assert realised_usd(ran(1, 10, option=replace(samples.option(), kind=kind)), 10) == 0


WEEK = (DayCounts((0, 1, 2, 3, 4), (8,) * 24), DayCounts((5, 6), (1,) * 24))


@pytest.mark.parametrize(
    ("target", "mean", "planned"),
    [
        (Target(NEW_TYPE, 4), None, 4.0),
        (Target(NEW_TYPE, 4), 2.5, 2.5),
        (Target(NEW_TYPE, 2, hourly_counts=(1,) * 12 + (2,) * 12), 9.0, 1.5 + 0.25 / 24),
        (Target(NEW_TYPE, 8, hourly_counts=(8,) * 24, day_counts=WEEK), None, 6.0 + 7 * 0.25 / 168),
    ],
)
def test_a_fleet_is_booked_by_the_instances_that_were_priced(
    target: Target, mean: float | None, planned: float
) -> None:
    option = replace(samples.option(), target=target, mean_instances=mean)
    assert planned_instances(samples.change(MONDAY, option=option)) == pytest.approx(planned)


def booked(w: World) -> list[tuple[float, float, bool, str]]:
    rows = [entry for entry in w.kept.booked_entries.values() if entry.kind == "realised"]
    return [(float(entry.usd), entry.hours, entry.proven, entry.note) for entry in rows]


def test_the_realised_saving_counts_the_instances_that_really_ran() -> None:
    w = world()
    w.start()
    w.until(lambda change: change.turned_at)
    w.account.scale(2)
    change = w.run(12)
    ((usd, hours, proven, _),) = booked(w)
    plain, each = (float(x) / 730 for x in (change.saving_usd_per_month, change.option.usd_per_month))
    assert (change.state, proven) == (ChangeState.PROVEN, True)
    assert change.instance_hours > 1.5 * hours
    assert usd == pytest.approx(plain * hours - each * (change.instance_hours - hours), rel=1e-3)


def test_a_fallback_that_runs_the_old_type_saves_nothing_and_proves_nothing() -> None:
    w = world(POOLS)
    w.account.pool = OLD_TYPE
    w.start()
    change = w.run(24 * 16)
    assert change.state is ChangeState.APPLIED, change.outcome
    assert "not known to have run on ml.g5.xlarge" in change.outcome
    monthly = float(change.saving_usd_per_month)
    assert sum(usd for usd, *_ in booked(w)) == pytest.approx(0.0, abs=0.05 * monthly / 2)
    assert not any(proven for _, _, proven, _ in booked(w))
    assert "on a fallback pool, which saves nothing" in booked(w)[-1][3]
    assert [(past.ended, past.latency_ratio) for past in w.past()] == [("applied", None)]


@pytest.mark.parametrize("hours", [1, 24])
def test_the_hours_since_the_last_look_count_before_the_verdict(hours: int) -> None:
    w = world(POOLS, limits=ChangeLimits(probation=timedelta(hours=hours)))
    w.account.pool = OLD_TYPE
    w.start()
    w.until(lambda change: change.turned_at)
    w.advance(timedelta(hours=hours, minutes=5))
    w.apply.tick(w.now)
    assert (w.change.state, w.change.is_closed) == (ChangeState.APPLIED, False)
    assert "not known to have run on ml.g5.xlarge" in w.change.outcome


def test_the_first_pool_is_booked_and_proven_as_the_new_type() -> None:
    w = world(POOLS)
    w.start()
    change = w.run(12)
    ((usd, hours, _, _),) = booked(w)
    assert change.state is ChangeState.PROVEN
    assert change.fallback_hours == change.unseen_hours == 0
    assert usd == pytest.approx(float(change.saving_usd_per_month) / 730 * hours, rel=0.02)


def test_a_change_teaches_how_much_slower_the_new_type_works_and_what_it_was_told_to_risk() -> None:
    w = world()
    w.account.load = lambda at, variant, kind: Load(
        p95_s=0.2 if kind == OLD_TYPE else 0.24, gpu=10.0 if kind == OLD_TYPE else 14.0
    )
    w.start()
    assert w.run(30).state is ChangeState.PROVEN
    (past,) = w.past()
    assert past.realised_slowdown == pytest.approx(1.4)
    assert past.latency_ratio == pytest.approx(1.2)
    assert (past.stated_risk, past.restores) == (int(w.change.option.risk), False)


def test_a_way_back_states_no_risk() -> None:
    w = world(an_option(restores=True))
    w.start()
    w.run(30)
    (past,) = w.past()
    assert (past.stated_risk, past.restores) == (None, True)


def test_a_tracked_fleet_is_remembered_by_what_ran_and_by_its_minimum() -> None:
    target = Target(
        OLD_TYPE, 1, minimum=1, maximum=3, metric="SageMakerVariantInvocationsPerInstance", target_value=84.0
    )
    w = world(an_option(kind=OptionKind.AUTOSCALING, target=target, mean_instances=2.4), count=3)
    w.start()
    w.run(24 * 3)
    (past,) = w.past()
    assert (past.from_count, past.to_count, past.mean_instances, past.tracked) == (3, 1, 2.4, True)


@pytest.mark.parametrize("test", [True, False])
def test_a_later_shadow_test_does_not_end_what_a_change_of_count_goes_on_to_save(test: bool) -> None:
    w = world(an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 1)), count=2)
    w.start()
    first = w.run(48)
    assert (first.state, first.plan.new_config) == (ChangeState.PROVEN, "")
    kind = PlanKind.SHADOW_TEST if test else PlanKind.CHANGE
    later = replace(first, id="c-later", plan=replace(first.plan, kind=kind))
    w.kept.save(w.kept.create(later))
    w.advance(timedelta(days=2))
    book_savings(cast("Any", w.kept), w.account, LedgerEntries(cast("Any", w.kept)), first.id, w.now)
    assert (w.change.saves, w.change.booked_until != first.booked_until) == (test, test)


@pytest.mark.parametrize("count", [1, 3])
def test_instances_that_a_later_change_took_or_added_are_not_booked_by_the_one_before_it_too(count: int) -> None:
    w = world(an_option(kind=OptionKind.TYPE_AND_COUNT, target=Target(NEW_TYPE, 2)), count=2)
    w.start()
    first = w.run(48)
    assert (first.state, first.plan.new_config != "") == (ChangeState.PROVEN, True)
    w.kept.lasting[first.ref.name] = "c-later"
    w.account.counts["AllTraffic"] = (count, count, 1.0)
    w.advance(timedelta(days=1, minutes=5))
    later = book_savings(cast("Any", w.kept), w.account, LedgerEntries(cast("Any", w.kept)), first.id, w.now)
    assert later is not None
    assert later.instance_hours == pytest.approx(first.instance_hours + 2 * 24)
    day = later.saving_usd_per_month / later.option.price.hours_per_month * 24
    assert float(later.booked_usd - first.booked_usd) == pytest.approx(float(day), abs=0.01)


def test_the_note_of_a_booking_names_every_type_whose_hours_it_adds_up() -> None:
    other = VariantTarget("w", "ml.g5.12xlarge", 2, Decimal(7))
    option = replace(samples.option(), target=Target(NEW_TYPE, 1, others=(other,)))
    change = samples.change(MONDAY, option=option, instance_hours=12.0)
    assert "12.0 instance hours of ml.g5.xlarge and ml.g5.12xlarge since the turn" in _note(change, 4.0)
    assert "12.0 instance hours of ml.g5.xlarge since" in _note(
        replace(change, option=replace(option, target=Target(NEW_TYPE, 1))), 4.0
    )


def test_hours_in_which_office_hours_stopped_the_endpoint_are_no_saving_of_a_change() -> None:
    w = world()
    w.start()
    proven = w.run(48)
    assert (proven.state, proven.booked_until is not None) == (ChangeState.PROVEN, True)
    since = proven.booked_until or MONDAY
    nights = tuple(
        StoppedTime(at, at + timedelta(hours=13)) for at in (since + timedelta(hours=5), since + timedelta(hours=29))
    )
    before = dict(w.kept.booked_entries)
    w.advance(timedelta(days=2, minutes=5))
    kept = cast("Any", w.kept)
    later = book_savings(kept, w.account, LedgerEntries(kept, lambda _: nights), proven.id, w.now)
    assert later is not None
    rows = [one for key, one in w.kept.booked_entries.items() if key not in before]
    hourly = later.saving_usd_per_month / 730
    assert [one.hours for one in rows] == [11.0, 11.0]
    assert [float(one.usd) for one in rows] == pytest.approx([float(11 * hourly)] * 2, rel=1e-3)
    assert later.asleep_hours == 26.0
    assert later.instance_hours == pytest.approx(proven.instance_hours + 22)


def test_a_saving_that_was_promised_for_the_hours_that_run_is_booked_by_these() -> None:
    price = replace(samples.option().price, hours_per_month=Decimal(365))
    made = samples.change(MONDAY, option=replace(samples.option(), price=price), turned_at=MONDAY)
    always = replace(made, option=samples.option())
    assert realised_usd(made, 10) == pytest.approx(2 * realised_usd(always, 10))
    w = world(an_option(price=price))
    w.start()
    w.run(12)
    (promise,) = [one for one in w.kept.booked_entries.values() if one.kind == "estimated"]
    assert promise.hours == 365


def test_a_month_of_a_sleeper_is_of_its_hours_awake() -> None:
    """What an hour awake saves, times the hours of the month in which it runs: as the estimate is made."""
    option = an_option()
    option = replace(option, price=replace(option.price, hours_per_month=Decimal(239)))
    change = samples.change(MONDAY, variant="v", turned_at=MONDAY, option=option)
    ended = replace(change, state=ChangeState.PROVEN, next_due=None)
    measured = measured_usd_per_month(ended, MONDAY + timedelta(hours=5))
    assert measured is not None
    assert abs(measured - ended.saving_usd_per_month) < Decimal("0.02")
