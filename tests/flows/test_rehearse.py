"""Past mornings under automatic mode: what it would have changed, and what the days after say about it."""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal

import pytest

from rightsizer.backtest.later_days import FleetMove, LaterDay, LaterFleet, later_fleet, usage_as_served
from rightsizer.backtest.simulate import Allowance, BacktestInputs
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.backtest import Backtest, HindsightVerdict
from rightsizer.domain.endpoint import Mode, Objective
from rightsizer.domain.history import History
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import TYPE_AND_COUNT, ChangeLimits, ChangeWindow, Policy
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.reason import Code
from rightsizer.domain.usage import BIN, VariantUsage
from rightsizer.flows.backtest import backtest
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from tests import samples
from tests.recommender import kit

FIRST = date(2026, 11, 15)
"""The first of six mornings; 23 days lie before it, and the last one has no day after it."""
type Signals = dict[tuple[str, str], Callable[[int], float] | float]


def stage(limits: ChangeLimits | None = None, policy: Policy | None = None) -> BacktestInputs:
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), policy or Policy(), kit.NOW)
    return BacktestInputs(inputs, DIMENSIONS, Allowance(limits or ChangeLimits()), FIRST, kit.NOW.date())


def tried(
    values: Signals,
    instance_type: str = "ml.g6e.xlarge",
    count: int = 1,
    p95_s: float | None = 60.0,
    at: BacktestInputs | None = None,
    days: int = 28,
) -> Backtest:
    """The back-test of one endpoint with these signals, which may run on a single instance."""
    hardware = kit.catalogue().types[instance_type]
    usage = VariantUsage(
        "chat", "AllTraffic", daily_usage(kit.window(values, days=days), VariantSetup(hardware, count))
    )
    endpoint = kit.endpoint(instance_type, count=count, mode=Mode.REPORT)
    endpoint = replace(endpoint, objective=Objective(p95_s, min_instances=1))
    return backtest(endpoint, usage, at or stage())


def from_day(day: int, before: float, since: float) -> Callable[[int], float]:
    """A signal that changes at the midnight that begins that day."""
    return lambda slot: before if slot < 288 * day else since


def calls(signal: Callable[[int], float] | float, latency_s: float = 0.5) -> Signals:
    return {**kit.steady(latency_s=latency_s), ("Invocations", "Sum"): signal}


def pair(signal: Callable[[int], float] | float, at: BacktestInputs | None = None) -> Backtest:
    """Two instances of the cheapest type, of which one is enough for 12 requests in five minutes."""
    return tried(calls(signal, 2.5), "ml.g4dn.xlarge", 2, 25.0, at)


def latency(day: int, factor: float) -> Signals:
    """Requests that take `factor` times as long from that day on."""
    values: Signals = dict(kit.steady())
    for name, over in (("Average", 1.0), ("p50", 1.0), ("p95", 1.3), ("p99", 1.4)):
        values["ModelLatency", name] = from_day(day, 0.5e6 * over, 0.5e6 * over * factor)
    return values


def test_a_change_holds_where_the_days_after_are_like_those_before() -> None:
    found = tried(kit.steady())
    (change,) = found.changes
    assert (change.first_day, change.until, change.taken_back) == (FIRST, None, None)
    assert change.option.target.instance_type == "ml.g4dn.xlarge"
    assert (change.after.verdict, change.after.days, change.after.requests) == (HindsightVerdict.HELD, 5, 5 * 288 * 6)
    promised = change.option.saving_usd_per_month * 24 * 5 / HOURS_PER_MONTH - change.option.switch_usd
    assert found.saved_usd == pytest.approx(promised, abs=Decimal("0.02"))
    assert found.by_plan_usd == 0
    assert change.after.strain is not None
    assert change.after.strain.memory_margin_gib == pytest.approx(14.6 - 0.2 * 44.7, abs=0.01)
    assert found.missed is None


def test_while_another_type_serves_nothing_is_judged_for_its_metrics_are_not_known() -> None:
    assert tried(kit.steady()).mornings == {"apply": 1, "watched": 5}


def test_days_after_that_the_smaller_fleet_does_not_carry_are_called_late_and_it_grows_again() -> None:
    found = pair(from_day(25, 12, 140))
    smaller, larger = found.changes
    assert (smaller.option.target.instance_count, smaller.first_day) == (1, FIRST)
    assert smaller.after.verdict is HindsightVerdict.LATE
    assert smaller.after.reason.code is Code.WOULD_BE_LATE
    assert smaller.until == larger.first_day == date(2026, 11, 18), "the morning after the day of the jump"
    assert (larger.option.target.instance_count, larger.option.restores) == (2, True)
    assert larger.after.verdict is HindsightVerdict.HELD
    assert found.saved_usd < smaller.option.saving_usd_per_month * 24 * 3 / HOURS_PER_MONTH


def test_a_first_day_that_rings_the_guard_brings_the_old_fleet_back_and_the_count_rests() -> None:
    found = pair(from_day(23, 12, 200))
    (change,) = found.changes
    assert change.taken_back is not None
    assert (change.taken_back.code, change.until) == (Code.ROLLED_BACK, FIRST + timedelta(days=1))
    assert change.after.days == 1
    assert found.last is not None
    assert found.last.gate.value != "apply"


def test_a_type_of_which_only_its_speed_tells_is_neither_held_nor_late() -> None:
    found = tried(latency(25, 2.4), p95_s=4.0)
    (change,) = found.changes
    late, likely = change.after.late, change.after.late_likely
    assert late is not None
    assert likely is not None
    assert late > 0.003 * change.after.requests > likely
    assert (change.after.verdict, change.after.reason.code) == (HindsightVerdict.UNKNOWN, Code.CANNOT_TELL)
    assert change.taken_back is None


def test_a_model_that_outgrows_the_smaller_card_is_taken_back_on_that_day() -> None:
    values: Signals = dict(kit.steady())
    values["GPUMemoryUtilization", "Maximum"] = from_day(25, 20.0, 60.0)
    values["GPUMemoryUtilization", "Average"] = from_day(25, 18.0, 50.0)
    found = tried(values)
    (change,) = found.changes
    assert change.after.verdict is HindsightVerdict.NO_MEMORY
    assert change.taken_back is not None
    assert (change.taken_back.code, change.until) == (Code.MEMORY_TOO_SMALL, date(2026, 11, 18))
    assert found.mornings["silent"] == 3, "judged again on the card that holds it"


def test_a_type_that_is_taken_back_leaves_the_change_before_it_standing() -> None:
    values: Signals = dict(kit.steady())
    for statistic, level in (("Maximum", 1.0), ("Average", 0.9)):
        # Too much for a smaller card until the tenth day and again from 18 November on.
        values["GPUMemoryUtilization", statistic] = lambda slot, level=level: (  # type: ignore[misc]
            level * (20.0 if 288 * 10 <= slot < 288 * 26 else 60.0)
        )
    count, moved = tried(values, count=2).changes
    assert (count.option.kind, moved.option.target.instance_type) == (OptionKind.INSTANCE_COUNT, "ml.g4dn.xlarge")
    assert (moved.first_day, moved.until) == (date(2026, 11, 16), date(2026, 11, 19))
    assert (count.after.days, moved.after.days) == (2, 3), "15 and 19 November; 16 to 18"
    assert count.until is None


def test_days_after_without_requests_tell_nothing() -> None:
    values = calls(from_day(23, 6, 0))
    for name in ("Average", "p50", "p95", "p99"):
        before = values["ModelLatency", name]
        assert isinstance(before, float)
        values["ModelLatency", name] = from_day(23, before, math.nan)
    found = tried(values)
    (change,) = found.changes
    assert (change.after.verdict, change.after.late, change.after.strain) == (HindsightVerdict.UNKNOWN, None, None)
    assert not change.after.was_replayed
    assert found.saved_usd == found.by_plan_usd > 0
    assert "no latency" in change.after.reason.sentence


@pytest.mark.parametrize("per_slot", [4.0, 250.0])
def test_requests_are_counted_once_however_few_or_many_of_them_the_replay_serves(per_slot: float) -> None:
    slow = {**latency(23, 20.0), ("Invocations", "Sum"): per_slot, ("GPUUtilization", "Average"): 0.1}
    usage = daily_usage(kit.window(slow, days=28), VariantSetup(kit.catalogue().types["ml.g6e.xlarge"], 1))
    days = [usage for usage in usage if usage.day >= FIRST]
    real = kit.endpoint(p95_s=1.0)
    option = samples.option(target=Target("ml.g6e.xlarge", 2))
    serving = later_fleet(FleetMove(real, real, option, None), days, stage().given)
    assert isinstance(serving, LaterFleet)
    day = serving.replay_day(days[0])
    assert day.requests == per_slot * 288
    assert (day.late, day.likely, day.before) == pytest.approx((day.requests,) * 3, rel=0.02)


def test_the_day_that_is_not_over_is_neither_judged_from_nor_served() -> None:
    yesterday = replace(stage(ChangeLimits(changes_per_day=0)), today=kit.NOW.date() - timedelta(days=1))
    found = tried(kit.steady(), at=yesterday)
    assert sum(found.mornings.values()) == 5
    assert found.missed is not None
    assert found.missed.after.days == 4


def test_a_morning_knows_the_look_back_before_it_and_nothing_later() -> None:
    found = tried(kit.steady(), days=9)
    (change,) = found.changes
    assert change.first_day == FIRST + timedelta(days=3), "another type needs seven days of evidence, four were there"
    assert found.mornings["propose"] == 3


def test_the_changes_of_one_day_are_shared_by_the_account() -> None:
    at = stage(ChangeLimits(changes_per_day=1))
    first, second = tried(kit.steady(), at=at), pair(12, at)
    assert (first.changes[0].first_day, second.changes[0].first_day) == (FIRST, FIRST + timedelta(days=1))
    assert second.mornings["waits"] == 1


def test_one_change_dearer_than_the_budget_of_a_day_starts_on_an_empty_day() -> None:
    found = tried(kit.steady(), at=stage(ChangeLimits(usd_per_day=Decimal("0.01"))))
    assert len(found.changes) == 1
    assert found.missed is None


def test_no_change_starts_where_limits_allows_none_on_any_day() -> None:
    found = tried(kit.steady(), at=stage(ChangeLimits(changes_per_day=0)))
    assert (found.changes, found.mornings) == ((), {"waits": 6})
    assert found.missed is not None
    assert found.missed.why.code is Code.BUDGET_SPENT


def test_a_change_waits_for_its_window_and_its_first_whole_day_is_the_next() -> None:
    mondays = ChangeWindow(days=frozenset({0}), start=time(9), end=time(17))
    (change,) = pair(12, stage(ChangeLimits(window=mondays))).changes
    assert (change.decided_at.weekday(), change.decided_at.hour) == (0, 9)
    assert change.first_day == change.decided_at.date() + timedelta(days=1)


def late_start(signal: Callable[[int], float], rest_hours: int = 24) -> Backtest:
    """Four instances; changes start at nine, so that the next day is their first."""
    window, rest = ChangeWindow(start=time(9), end=time(17)), timedelta(hours=rest_hours)
    at = stage(ChangeLimits(window=window, cooldown=rest), Policy(cooldown_hours=rest_hours))
    return tried(calls(signal, 2.5), "ml.g4dn.xlarge", 4, 25.0, at)


def test_until_its_first_whole_day_a_change_leaves_the_days_to_the_one_that_stands() -> None:
    found = late_start(from_day(11, 120, 12))
    first, second = found.changes
    assert [c.option.target.instance_count for c in found.changes] == [2, 1]
    assert (second.decided_at.date(), second.first_day) == (date(2026, 11, 17), date(2026, 11, 18))
    assert (first.first_day, first.until, first.after.days) == (date(2026, 11, 16), second.first_day, 2)
    assert (first.after.verdict, second.after.days) == (HindsightVerdict.HELD, 2)


def test_a_change_that_is_taken_back_on_the_day_that_the_next_one_starts_takes_that_one_with_it() -> None:
    jump = from_day(24, 12, 300)
    found = late_start(lambda slot: 120 if slot < 288 * 10 else jump(slot), rest_hours=12)
    (change,) = found.changes
    assert change.taken_back is not None
    assert (change.taken_back.code, change.after.days) == (Code.ROLLED_BACK, 1)
    assert (change.first_day, change.until) == (date(2026, 11, 16), date(2026, 11, 17))
    assert (found.mornings["apply"], found.mornings["waits"]) == (1, 1), "the second was refused by its preflight"
    assert found.last is not None
    assert found.last.instance_count == 4


def test_a_change_of_the_last_morning_has_no_day_yet_and_the_one_before_keeps_all_of_its_days() -> None:
    first, second = late_start(from_day(14, 120, 12)).changes
    assert (second.decided_at.date(), second.after.days, second.until) == (kit.NOW.date(), 0, None)
    assert (first.until, first.after.days) == (second.first_day, 4)


def test_the_rest_that_limits_asks_for_is_kept_between_two_changes() -> None:
    ebbing = calls(from_day(11, 120, 12), 2.5)  # its last busy day leaves the look-back on the third morning
    rest = ChangeLimits(cooldown=timedelta(days=3))
    quick, slow = (tried(ebbing, "ml.g4dn.xlarge", 4, 25.0, stage(limits)) for limits in (None, rest))
    assert [c.option.target.instance_count for c in quick.changes] == [2, 1]
    assert [c.first_day for c in quick.changes] == [FIRST, FIRST + timedelta(days=2)]
    assert [c.first_day for c in slow.changes] == [FIRST, FIRST + timedelta(days=3)]


def test_a_dimension_that_limits_opens_is_changed_and_a_closed_one_is_not() -> None:
    values: Signals = dict(kit.steady())
    for name, statistic, busy in (("Invocations", "Sum", 1500.0), ("GPUUtilization", "Average", 1.0)):
        values[name, statistic] = lambda slot, busy=busy: busy if 96 <= slot % 288 < 216 else busy / 20  # type: ignore[misc]
    opened = Policy(by_itself=TYPE_AND_COUNT | {OptionKind.SCHEDULE})
    closed, scheduled = (
        tried(values, "ml.g4dn.xlarge", 3, 2.0, replace(stage(policy=policy), first=FIRST + timedelta(days=3)))
        for policy in (Policy(by_itself=TYPE_AND_COUNT), opened)
    )
    assert closed.changes == ()
    (change,) = scheduled.changes
    assert (change.option.kind, change.after.verdict) == (OptionKind.SCHEDULE, HindsightVerdict.HELD)


def test_what_would_have_held_and_was_not_dared_is_regretted() -> None:
    hardware = kit.catalogue().types["ml.g4dn.xlarge"]
    usage = VariantUsage(
        "chat", "AllTraffic", daily_usage(kit.window(calls(12, 2.5), days=28), VariantSetup(hardware, 2))
    )
    found = backtest(kit.endpoint("ml.g4dn.xlarge", count=2, p95_s=25.0), usage, stage())
    assert found.changes == ()
    assert found.missed is not None
    assert (found.missed.option.target.instance_count, found.missed.after.verdict) == (1, HindsightVerdict.HELD)
    assert found.missed.regret_usd == found.missed.after.saved_usd > 0
    assert "min-instances" in found.missed.why.sentence


def test_days_lost_by_waiting_are_regretted_too() -> None:
    at = stage(ChangeLimits(window=ChangeWindow(days=frozenset({2}))))
    found = pair(12, at)
    assert found.changes[0].first_day == date(2026, 11, 18)
    assert found.missed is not None
    assert found.missed.why.code is Code.OUTSIDE_WINDOW
    assert found.missed.regret_usd == found.missed.after.saved_usd - found.saved_usd


@pytest.mark.parametrize(
    "asked",
    [
        Policy(minimum_saving_usd=Decimal(10_000)),
        Policy(minimum_saving_share=0.99),
        Policy(confidence_propose=20.0),
    ],
)
def test_what_the_settings_call_too_small_or_too_little_known_is_not_regretted(asked: Policy) -> None:
    found = tried(kit.steady(), at=stage(policy=asked))
    assert (found.changes, found.missed) == ((), None)


def test_what_would_not_have_held_is_not_regretted() -> None:
    hardware = kit.catalogue().types["ml.g4dn.xlarge"]
    values = calls(from_day(25, 12, 140), 2.5)
    usage = VariantUsage("chat", "AllTraffic", daily_usage(kit.window(values, days=28), VariantSetup(hardware, 2)))
    assert backtest(kit.endpoint("ml.g4dn.xlarge", count=2, p95_s=25.0), usage, stage()).missed is None


def test_a_day_on_a_fleet_that_never_ran_keeps_its_latencies_and_gets_the_late_requests_on_top() -> None:
    hardware = kit.catalogue().types["ml.g4dn.xlarge"]
    usage = daily_usage(kit.window(calls(60), days=1), VariantSetup(hardware, 2))[0]
    total = sum(weight for _, weight in usage.latency)
    day = LaterDay(usage, 17280.0, 1728.0, 1728.0, 0.0, False, 1.0, 1.0, (1.0,) * 24, None)
    shown = usage_as_served(day, 5.0)
    late = sum(weight for index, weight in shown.latency if BIN**index / 1000 > 5.0)
    assert late == pytest.approx(0.1 * total)
    assert sum(weight for _, weight in shown.latency) == pytest.approx(total)
    assert (shown.instances, shown.requests) == ((1.0,) * 24, usage.requests)
    assert shown.latency_total_s > usage.latency_total_s
