"""Of few requests a share is none: how many may be late there, and how many are asked for before anything is dared."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.backtest.later_days import FleetMove, LaterDay, LaterFigures, hindsight, hindsight_verdict, later_fleet
from rightsizer.domain.backtest import HindsightVerdict
from rightsizer.domain.demand import Fleet
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import LatencyObjective, Option, Risk, RiskResource, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import SLOTS, DailyUsage, Spread
from rightsizer.recommender.candidates import CandidateType, check_candidate
from rightsizer.recommender.context import AccountInputs, EvaluationContext
from rightsizer.recommender.finding import late_budget_multiple, latency_degradation
from rightsizer.recommender.fleet_size import carries_like_reference, replay_if_carried
from rightsizer.recommender.options import size_and_price
from rightsizer.recommender.workload import evaluation_context
from tests import samples
from tests.recommender import kit
from tests.recommender.test_failed_fleets import TYPE, index

POLICY = Policy()
SMALL = "ml.g6.xlarge"
SHARE = 0.002
LOW = Spread(0.1, 0.1, 0.11, 0.11, 0.11)
"""Little GPU memory and host memory in use."""
GOAL = LatencyObjective(4.5, True, "tag")


@pytest.mark.parametrize(
    ("declared", "usual", "requests", "days", "most"),
    [
        (True, 0.0, 100, 7, 0.02),  # two of a hundred in a week
        (True, 0.0, 200, 14, 0.02),
        (True, 0.0, 100, 1, 2 / 700),
        (True, 0.0, 10, 7, 0.05),  # two of ten would be late beyond any p95
        (True, 0.04, 10, 7, 0.01),
        (True, 0.06, 10, 7, SHARE),  # more than that is late today
        (True, 0.0, 10_000, 7, SHARE),  # more than two are allowed anyway
        (True, 0.0, 0, 7, SHARE),
        (False, 0.0, 100, 7, SHARE),  # nobody said that one request in twenty may be late
    ],
)
def test_two_requests_a_week_may_be_late_where_the_share_is_less_and_the_objective_lets_them(
    declared: bool, usual: float, requests: float, days: int, most: float
) -> None:
    assert POLICY.late_allowed(SHARE, declared, usual, requests, days) == pytest.approx(most)


@given(
    share=st.floats(0, 0.02), usual=st.floats(0, 1), requests=st.floats(0, 1e6), days=st.integers(0, 60),
    declared=st.booleans(),
)  # fmt: skip
def test_no_more_are_allowed_than_the_share_the_count_or_the_objective_lets(
    share: float, usual: float, requests: float, days: int, declared: bool
) -> None:
    may = POLICY.late_allowed(share, declared, usual, requests, days)
    assert may >= share
    assert may == share or may + usual <= POLICY.late_most + 1e-9
    assert may == share or may * requests <= POLICY.late_a_week * days / 7 + 1e-9


def sparse(number: int, requests: int, heavy: int = 0, instance_type: str = TYPE) -> DailyUsage:
    """A day with that many requests of a second, hours apart, the last `heavy` of which take four."""
    slots = [0.0] * SLOTS
    for n in range(requests):
        slots[(n * SLOTS) // requests] = 1.0
    bins = ((index(1.0), float(requests - heavy)), (index(4.0), float(heavy)))
    return DailyUsage(
        date(2026, 11, 1) + timedelta(days=number), instance_type, 1, tuple(slots), tuple(slots), (1.0,) * 24,
        tuple(b for b in bins if b[1]), requests + 3.0 * heavy, 0.0, LOW, LOW, LOW, None,
    )  # fmt: skip


def at_of(
    days: Sequence[DailyUsage], p95_s: float | None, policy: Policy, slowdown: float | None = None
) -> EvaluationContext:
    tested = PastChange(
        kit.NOW - timedelta(days=2),
        TYPE,
        SMALL,
        1,
        1,
        PastEnd.TESTED,
        realised_slowdown=slowdown,
        latency_ratio=slowdown,
    )
    history = History((tested,) if slowdown else ())
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, history, policy, kit.NOW)
    found = evaluation_context(kit.endpoint(p95_s=p95_s), days, inputs)
    assert found is not None
    return found


def draft(context: EvaluationContext) -> CandidateType | Reason:
    small = context.inputs.catalogue.find(SMALL)
    assert small is not None
    return check_candidate(context, small)


def test_one_heavy_request_in_a_week_does_not_rule_out_a_type_that_carries_all_the_others() -> None:
    days = [sparse(n, 12, heavy=1 if n == 12 else 0) for n in range(5, 19)]
    context = at_of(days, GOAL.p95_s, POLICY, slowdown=1.5)
    found = draft(context)
    assert isinstance(found, CandidateType)
    assert found.is_certain
    strict = at_of(days, GOAL.p95_s, replace(POLICY, late_a_week=0.0, grown_share=0.0), slowdown=1.5)
    assert (
        context.worst_slowdown
        == at_of(days, GOAL.p95_s, replace(POLICY, grown_share=0.0)).worst_slowdown
        > strict.worst_slowdown
    )
    refused = draft(strict)
    assert isinstance(refused, Reason)
    assert refused.code is Code.TOO_SLOW


def test_where_no_objective_is_declared_every_request_counts() -> None:
    days = [sparse(n, 12, heavy=1 if n == 12 else 0) for n in range(5, 19)]
    strict = at_of(days, None, replace(POLICY, late_a_week=0.0))
    assert at_of(days, None, POLICY).allowed_slowdown == strict.allowed_slowdown


def late_on(count: int, days: int = 14, each: int = 10) -> list[DailyUsage]:
    """Days of a few requests, each of the first `count` with one of four seconds."""
    return [sparse(n, each, heavy=1 if n < count else 0) for n in range(days)]


SHORT = replace(GOAL, p95_s=3.0)
UNDECLARED = replace(SHORT, declared=False)


def test_what_a_choice_may_cause_does_not_bring_the_type_before_back_and_chance_beyond_it_neither() -> None:
    """Two a week in two weeks are four, and two standard deviations of four are four more."""
    for late, back in ((4, False), (8, False), (9, True)):
        assert (latency_degradation(late_on(late), SHORT, 0.0, POLICY) is not None) == back
    assert latency_degradation(late_on(3), UNDECLARED, 0.0, POLICY) is not None
    assert latency_degradation(late_on(3, each=36), UNDECLARED, 0.0, POLICY) is not None


def test_of_many_requests_twice_the_share_brings_the_type_before_back_as_ever() -> None:
    """Two thousand a day: 0.4 % of them are 112 in two weeks; four more or less are no matter."""
    for heavy, back in ((8, False), (9, True)):
        bins = ((index(1.0), 2000.0 - heavy), (index(4.0), float(heavy)))
        many = [replace(sparse(n, 250), latency=bins) for n in range(14)]
        assert (latency_degradation(many, SHORT, 0.0, POLICY) is not None) == back


def test_requests_that_were_late_anyway_leave_less_to_be_allowed() -> None:
    """Four of a hundred late before: one more of a hundred may be, and no count beyond it."""
    days = [sparse(n, 20, heavy=2 if n < 5 else 1) for n in range(14)]  # 11.2 of 280 were to be expected, 19 came
    assert latency_degradation(days, SHORT, 0.04, POLICY) is not None
    assert latency_degradation(days, SHORT, 0.05, POLICY) is None
    assert at_of(days, 3.0, POLICY).allowed_late_share(SHARE) == SHARE, "6.8 % are late as it is"
    few = late_on(14, each=5)
    assert late_budget_multiple(few, SHORT, 0.04, POLICY) == pytest.approx((14 - 2.8) / (0.01 * 70))
    assert late_budget_multiple(few, SHORT, 0.06, POLICY) == pytest.approx((14 - 4.2) / (POLICY.late_budget * 70))


def test_the_budget_of_few_requests_is_their_count_and_that_of_a_week_from_the_first_day() -> None:
    assert late_budget_multiple(late_on(2), SHORT, 0.0, POLICY) == pytest.approx(0.5)
    assert late_budget_multiple(late_on(1, days=1, each=60), SHORT, 0.0, POLICY) == pytest.approx(0.5)
    assert late_budget_multiple(late_on(2), UNDECLARED, 0.0, POLICY) == pytest.approx(2 / (POLICY.late_budget * 140))


def test_a_day_on_two_types_is_one_day() -> None:
    twice = [d for day in late_on(4) for d in (replace(day, latency=day.latency[:1]), day)]
    assert late_budget_multiple(twice, SHORT, 0.0, POLICY) == pytest.approx(
        late_budget_multiple(late_on(4), SHORT, 0.0, POLICY)
    )
    halves = [d for n in range(14) for d in (sparse(n, 10), sparse(n, 10, heavy=1 if n < 9 else 0))]
    assert latency_degradation(halves, SHORT, 0.0, POLICY) is not None
    both = [d for n in range(14) for d in (sparse(n, 10), sparse(n, 10))]
    assert at_of(both, 4.5, POLICY).allowed_late_share(SHARE) == pytest.approx(2 * 14 / 7 / 280)


def test_quiet_days_do_not_make_a_busy_week_one_of_few_requests() -> None:
    busy_days = [sparse(n, 100) for n in (17, 18)]
    quiet = [sparse(n, 5) for n in range(5, 17)]
    silent = [replace(sparse(n, 1), requests=(0.0,) * SLOTS, latency=(), latency_total_s=0.0) for n in range(5, 17)]
    unknown = [replace(d, requests=(None,) * SLOTS) for d in silent]
    alone = at_of(busy_days, 4.5, POLICY).allowed_late_share(SHARE)
    assert alone == pytest.approx(2 * 2 / 7 / 200)
    for others in (quiet, silent, unknown):
        assert at_of([*others, *busy_days], 4.5, POLICY).allowed_late_share(SHARE) == pytest.approx(alone)


def test_the_replay_of_a_fleet_allows_few_requests_their_count_now_grown_and_alone() -> None:
    """One request in four weeks takes longer than the objective once it is half as slow again: two a week may."""
    days = [sparse(n, 12, heavy=1 if n in (6, 12) else 0) for n in range(5, 19)]
    fleet = Fleet((1,) * 24, 1, False, 1.5)
    context = at_of(days, 4.5, POLICY)
    strict = at_of(days, 4.5, replace(POLICY, late_a_week=0.0))
    late, most = context.replay(fleet).late, context.stream.requests
    assert POLICY.grown_share * most < late <= context.allowed_late_share(POLICY.excess_share) * most
    for load in (1.0, 1.1):
        assert replay_if_carried(context, replace(fleet, load=load)) is not None
        assert replay_if_carried(strict, replace(fleet, load=load)) is None
    assert carries_like_reference(context, fleet)
    assert not carries_like_reference(strict, fleet)
    lenient = replace(POLICY, late_a_week=0.0, excess_share=1.0)
    grown = at_of(days, 4.5, lenient)
    assert replay_if_carried(grown, replace(fleet, load=1.1)) is None, "by the share at 20 % more load"
    assert not carries_like_reference(grown, fleet)
    counted = at_of(days, 4.5, replace(lenient, late_a_week=2.0))
    assert replay_if_carried(counted, replace(fleet, load=1.1)) is not None
    assert carries_like_reference(counted, fleet)


def test_where_a_count_of_late_requests_decides_the_latency_is_no_longer_the_lowest_risk() -> None:
    for heavy, risk in ((0, Risk.LOW), (None, Risk.VERY_LOW)):
        each = 12 if heavy is not None else 280
        context = at_of([sparse(n, each) for n in range(5, 19)], 30.0, POLICY, slowdown=1.2)
        found = draft(context)
        assert isinstance(found, CandidateType)
        option = size_and_price(context, found)
        assert isinstance(option, Option)
        assert option.risks[RiskResource.LATENCY] is risk


def test_the_back_test_judges_few_requests_as_the_choice_did() -> None:
    told = LaterFigures(400, 4, 4, 0, moves=False, declared=True, days=14)
    verdict, why = hindsight_verdict(told, None, POLICY)
    assert verdict is HindsightVerdict.HELD
    assert "1 % more may be" in why.sentence
    assert hindsight_verdict(replace(told, late=5, likely=5), None, POLICY)[0] is HindsightVerdict.LATE
    assert hindsight_verdict(replace(told, declared=False), None, POLICY)[0] is HindsightVerdict.LATE
    usual = replace(told, late=21, likely=21, before=18)
    assert hindsight_verdict(usual, None, POLICY)[0] is HindsightVerdict.LATE, (
        "4.5 % were late anyway: 0.5 % more may be"
    )
    assert hindsight_verdict(replace(usual, late=20, likely=20), None, POLICY)[0] is HindsightVerdict.HELD


def test_nothing_is_dared_untested_on_fewer_requests_than_a_test_would_need() -> None:
    policy = replace(POLICY, tests_per_month=0, untested_chance=0.5, untested_requests=20)
    for days, taken in (([sparse(18, 19)], False), ([sparse(18, 20)], True)):
        found = draft(at_of(days, 3.0, policy))
        assert isinstance(found, CandidateType)
        assert found.is_certain == taken


@pytest.mark.parametrize(("declared", "verdict"), [(True, HindsightVerdict.HELD), (False, HindsightVerdict.LATE)])
def test_the_days_after_are_judged_by_the_objective_that_was_declared_and_by_their_number(
    declared: bool, verdict: HindsightVerdict
) -> None:
    days = [sparse(n, 30) for n in range(14)]
    known = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), POLICY, kit.NOW)
    target = Target(TYPE, 1)
    moved = FleetMove(kit.endpoint(), kit.endpoint(), samples.option(target=target), replace(GOAL, declared=declared))
    serving = later_fleet(moved, days, known)
    late = [1.0 if n < 4 else 0.0 for n in range(14)]
    served = [LaterDay(d, 30.0, x, x, 0.0, False, 1.0, 1.0, (1.0,) * 24, None) for d, x in zip(days, late, strict=True)]
    assert hindsight(moved, serving, served, days, known).verdict is verdict
    on_two_types = [sparse(n // 2, 15) for n in range(28)]
    shares = [LaterDay(d, 15.0, 5 / 28, 5 / 28, 0.0, False, 1.0, 1.0, (1.0,) * 24, None) for d in on_two_types]
    assert hindsight(moved, serving, shares, on_two_types, known).verdict is HindsightVerdict.LATE


def test_quiet_days_do_not_lengthen_what_is_counted_by_weeks_anywhere() -> None:
    """Two busy days of two hundred requests beside twelve of five: what the choice counts as two days is two days."""
    busy_days = [sparse(n, 100, heavy=2) for n in (12, 13)]
    days = [*(sparse(n, 5) for n in range(12)), *busy_days]
    assert latency_degradation(days, SHORT, 0.0, POLICY) is not None
    assert late_budget_multiple([*days, sparse(14, 100), sparse(15, 100)], SHORT, 0.0, POLICY) == pytest.approx(2.0)
    assert late_budget_multiple(days, SHORT, 0.0, POLICY) == pytest.approx(2.0)
    known = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), POLICY, kit.NOW)
    moved = FleetMove(kit.endpoint(), kit.endpoint(), samples.option(target=Target(TYPE, 1)), SHORT)
    late = [0.0] * 12 + [1.5, 1.5]
    served = [
        LaterDay(d, d.request_count, x, x, 0.0, False, 1.0, 1.0, (1.0,) * 24, None)
        for d, x in zip(days, late, strict=True)
    ]
    assert hindsight(moved, later_fleet(moved, days, known), served, days, known).verdict is HindsightVerdict.LATE
