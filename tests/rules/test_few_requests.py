"""Of few requests a share is none: how many may be late there, and how many are asked for before anything is dared."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.flows.drafts import Draft, draft_of
from rightsizer.flows.given import Given
from rightsizer.flows.seen import situated
from rightsizer.flows.situation import Situation
from rightsizer.model.backtest import Verdict
from rightsizer.model.candidate import Goal
from rightsizer.model.digest import SLOTS, DayDigest, Spread
from rightsizer.model.history import History, PastChange
from rightsizer.model.policy import Policy
from rightsizer.model.reason import Code, Reason
from rightsizer.rules.finding import spent, suffering
from rightsizer.rules.hindsight import Told, verdict_of
from tests.rules import kit
from tests.rules.test_failed_fleets import TYPE, index

POLICY = Policy()
SMALL = "ml.g6.xlarge"
SHARE = 0.002
LOW = Spread(0.1, 0.1, 0.11, 0.11, 0.11)
"""Little GPU memory and host memory in use."""
GOAL = Goal(4.5, True, "tag")


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


def sparse(number: int, requests: int, heavy: int = 0, instance_type: str = TYPE) -> DayDigest:
    """A day with that many requests of a second, hours apart, the last `heavy` of which take four."""
    slots = [0.0] * SLOTS
    for n in range(requests):
        slots[(n * SLOTS) // requests] = 1.0
    bins = ((index(1.0), float(requests - heavy)), (index(4.0), float(heavy)))
    return DayDigest(
        date(2026, 11, 1) + timedelta(days=number), instance_type, 1, tuple(slots), tuple(slots), (1.0,) * 24,
        tuple(b for b in bins if b[1]), requests + 3.0 * heavy, 0.0, LOW, LOW, LOW, None,
    )  # fmt: skip


def at_of(days: Sequence[DayDigest], p95_s: float | None, policy: Policy, slowdown: float | None = None) -> Situation:
    tested = PastChange(
        kit.NOW - timedelta(days=2), TYPE, SMALL, 1, 1, "tested", realised_slowdown=slowdown, latency_ratio=slowdown
    )
    history = History((tested,) if slowdown else ())
    given = Given(kit.prices(), kit.catalogue(), {}, history, policy, kit.NOW)
    found = situated(kit.endpoint(p95_s=p95_s), days, given)
    assert found is not None
    return found


def draft(at: Situation) -> Draft | Reason:
    small = at.given.catalogue.find(SMALL)
    assert small is not None
    return draft_of(at, small)


RARE = replace(POLICY, act_without_gpu_metrics=True)


def test_one_heavy_request_in_a_week_does_not_rule_out_a_type_that_carries_all_the_others() -> None:
    days = [sparse(n, 12, heavy=1 if n == 12 else 0) for n in range(5, 19)]
    at = at_of(days, GOAL.p95_s, RARE, slowdown=1.5)
    found = draft(at)
    assert isinstance(found, Draft)
    assert found.sure
    strict = at_of(days, GOAL.p95_s, replace(RARE, late_a_week=0.0), slowdown=1.5)
    refused = draft(strict)
    assert isinstance(refused, Reason)
    assert refused.code is Code.TOO_SLOW


def test_where_no_objective_is_declared_every_request_counts() -> None:
    days = [sparse(n, 12, heavy=1 if n == 12 else 0) for n in range(5, 19)]
    strict = at_of(days, None, replace(RARE, late_a_week=0.0))
    assert at_of(days, None, RARE).stretch == strict.stretch


def test_what_a_choice_may_cause_does_not_bring_the_type_before_back_and_one_more_does() -> None:
    """Two a week in two weeks are four: fewer than that was foreseen."""
    for late, back in ((4, False), (5, True)):
        days = [sparse(n, 10, heavy=1 if n < late else 0) for n in range(14)]
        assert (suffering(days, replace(GOAL, p95_s=3.0), 0.0, POLICY) is not None) == back
    days = [sparse(n, 10, heavy=1 if n < 3 else 0) for n in range(14)]
    assert suffering(days, replace(GOAL, p95_s=3.0, declared=False), 0.0, POLICY) is not None


def test_the_budget_of_few_requests_is_their_count() -> None:
    days = [sparse(n, 10, heavy=1 if n < 2 else 0) for n in range(14)]
    goal = replace(GOAL, p95_s=3.0)
    assert spent(days, goal, 0.0, POLICY) == pytest.approx(0.5)
    assert spent(days, replace(goal, declared=False), 0.0, POLICY) == pytest.approx(2 / (POLICY.late_budget * 140))


def test_the_back_test_judges_few_requests_as_the_choice_did() -> None:
    told = Told(400, 4, 4, 0, moves=False, declared=True, days=14)
    verdict, why = verdict_of(told, None, POLICY)
    assert verdict is Verdict.HELD
    assert "1 % more may be" in why.sentence
    assert verdict_of(replace(told, late=5, likely=5), None, POLICY)[0] is Verdict.LATE
    assert verdict_of(replace(told, declared=False), None, POLICY)[0] is Verdict.LATE


def test_nothing_is_dared_untested_on_fewer_requests_than_a_test_would_need() -> None:
    policy = replace(RARE, tests=False, untested_chance=0.5, test_requests=20)
    for days, taken in (([sparse(18, 19)], False), ([sparse(18, 20)], True)):
        found = draft(at_of(days, 3.0, policy))
        assert isinstance(found, Draft)
        assert found.sure == taken
