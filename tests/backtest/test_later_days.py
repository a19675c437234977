"""Verdicts of the days after, and what the promises of a back-test were worth."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from rightsizer.backtest.later_days import Told, calibration_of, verdict_of
from rightsizer.domain.backtest import Backtest, Hindsight, Missed, Rehearsed, Verdict
from rightsizer.domain.option import Option, Risk
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from tests import samples

POLICY = Policy()
AT = datetime(2026, 11, 6, tzinfo=UTC)
STAYS = Told(10_000, 40, 40, 10, moves=False, declared=False, days=14)
"""Another count of the same type: 40 late, of which 10 were late anyway; 30 more may be."""


def test_as_many_more_late_requests_as_a_choice_may_cause_still_hold_and_one_more_does_not() -> None:
    verdict, why = verdict_of(STAYS, None, POLICY)
    assert (verdict, why.code) == (Verdict.HELD, Code.WOULD_HOLD)
    assert "40 of 10,000 requests (0.40 %) late, 10 on the fleet that ran" in why.sentence
    assert verdict_of(replace(STAYS, late=41, likely=41), None, POLICY)[0] is Verdict.LATE


@pytest.mark.parametrize(
    ("late", "likely", "verdict"),
    [(30, 20, Verdict.HELD), (900, 30, Verdict.UNKNOWN), (900, 60, Verdict.LATE)],
)
def test_another_type_holds_at_its_bound_and_is_late_only_where_it_is_at_its_likely_speed(
    late: int, likely: int, verdict: Verdict
) -> None:
    found, why = verdict_of(Told(10_000, late, likely, 10, moves=True, declared=False, days=14), None, POLICY)
    assert found is verdict
    assert f"{late if verdict is not Verdict.LATE else likely:,}" in why.sentence


def test_a_model_that_may_not_start_there_did_not_hold_by_its_speed_alone() -> None:
    verdict, why = verdict_of(Told(10_000, 0, 0, 0, moves=True, declared=False, days=14, fits=0.8), None, POLICY)
    assert verdict is Verdict.UNKNOWN
    assert "only a start tells whether the model fits (80 % likely)" in why.sentence
    late = Told(10_000, 900, 900, 0, moves=True, declared=False, days=14, fits=0.8)
    assert verdict_of(late, None, POLICY)[0] is Verdict.LATE


def test_memory_decides_before_speed() -> None:
    verdict, why = verdict_of(
        Told(10_000, 0, 0, 0, moves=True, declared=False, days=14, outgrown=(20.1, 14.6)), None, POLICY
    )
    assert (verdict, why.code) == (Verdict.NO_MEMORY, Code.MEMORY_TOO_SMALL)
    assert "20.1 GiB" in why.sentence


def test_few_requests_tell_nothing_and_a_reason_that_is_known_is_kept() -> None:
    few = replace(STAYS, requests=199, late=0, likely=0)
    assert verdict_of(few, None, POLICY)[0] is Verdict.UNKNOWN
    assert "199 requests came, 200 are needed" in verdict_of(few, None, POLICY)[1].sentence
    known = Reason(Code.CANNOT_TELL, "no whole day after it yet")
    assert verdict_of(None, known, POLICY) == (Verdict.UNKNOWN, known)


def after(verdict: Verdict = Verdict.HELD, late: int | None = 0, days: int = 10, saved: str = "95") -> Hindsight:
    why = Reason(Code.WOULD_HOLD, "it would")
    return Hindsight(days, 1000, late, late, 0, 2.0, None, Decimal(saved), verdict, why)


def change(told: Hindsight, risk: Risk = Risk.VERY_LOW, promised: float = 0.001, restores: bool = False) -> Rehearsed:
    """A change that promised a dollar an hour, and five dollars for the switch."""
    option = replace(samples.option(), risk=risk, saving_usd_per_month=Decimal(730), restores=restores)
    option = replace(option, switch_usd=Decimal(5))
    return Rehearsed(AT, AT.date(), None, samples.recommendation(), option, promised, None, told)


def tried(*changes: Rehearsed, missed: Missed | None = None) -> Backtest:
    return Backtest("chat", changes, None, {}, missed)


def test_promises_are_weighed_against_the_days_after() -> None:
    good = change(after(), promised=0.002)
    bad = change(after(Verdict.LATE, late=100, saved="-5"), Risk.MEDIUM, promised=0.0)
    found = calibration_of([tried(good), tried(bad)], POLICY)
    assert (found.changes, found.told, found.held) == (2, 2, 1)
    assert found.brier == pytest.approx((0.005**2 + (0.05 - 1) ** 2) / 2)
    assert found.brier_without == 0.5
    assert found.promised_late == pytest.approx(0.001)
    assert found.seen_late == pytest.approx(0.05)
    assert found.promised_usd == 2 * (Decimal(240) - 5), "a dollar an hour for ten days, less the switch"
    assert (found.replayed, found.saved_usd) == (2, Decimal(90))


def test_no_promise_is_weighed_against_dollars_of_the_plan_where_nothing_could_be_replayed() -> None:
    found = calibration_of([tried(change(after())), tried(change(after(Verdict.UNKNOWN, late=None)))], POLICY)
    assert (found.changes, found.replayed) == (2, 1)
    assert (found.promised_usd, found.saved_usd) == (Decimal(240) - 5, Decimal(95))


def test_what_cannot_be_told_counts_for_no_score_and_what_restores_promised_nothing() -> None:
    unknown = change(after(Verdict.UNKNOWN, late=None))
    found = calibration_of([tried(unknown, change(after(), restores=True))], POLICY)
    assert (found.changes, found.told, found.brier, found.seen_late) == (1, 0, None, None)


def test_a_change_that_was_taken_back_did_not_hold() -> None:
    back = replace(change(after()), until=date(2026, 11, 8), taken_back=Reason(Code.ROLLED_BACK, "its guard rang"))
    assert calibration_of([tried(back)], POLICY).held == 0


def test_regret_is_summed_over_the_account() -> None:
    def missed(usd: str) -> Missed:
        option: Option = samples.option()
        return Missed(option, AT, after(), Reason(Code.NO_OBJECTIVE, "no objective"), Decimal(usd))

    found = calibration_of([tried(missed=missed("10.50")), tried(), tried(missed=missed("4"))], POLICY)
    assert found.regret_usd == Decimal("14.50")
