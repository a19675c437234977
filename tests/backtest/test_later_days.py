"""Verdicts of the days after, and what the promises of a back-test were worth."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from rightsizer.backtest.later_days import LaterFigures, calibrate, hindsight_verdict
from rightsizer.domain.backtest import Backtest, BacktestChange, Hindsight, HindsightVerdict, MissedOption
from rightsizer.domain.option import Option, Risk, RiskResource
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from tests import samples

POLICY = Policy()
AT = datetime(2026, 11, 6, tzinfo=UTC)
STAYS = LaterFigures(10_000, 40, 40, 10, moves=False, declared=False, days=14)
"""Another count of the same type: 40 late, of which 10 were late anyway; 30 more may be."""


def test_as_many_more_late_requests_as_a_choice_may_cause_still_hold_and_one_more_does_not() -> None:
    verdict, why = hindsight_verdict(STAYS, None, POLICY)
    assert (verdict, why.code) == (HindsightVerdict.HELD, Code.WOULD_HOLD)
    assert "40 of 10,000 requests (0.40 %) late, 10 on the fleet that ran" in why.sentence
    assert hindsight_verdict(replace(STAYS, late=41, likely=41), None, POLICY)[0] is HindsightVerdict.LATE


@pytest.mark.parametrize(
    ("late", "likely", "verdict"),
    [(30, 20, HindsightVerdict.HELD), (900, 30, HindsightVerdict.UNKNOWN), (900, 60, HindsightVerdict.LATE)],
)
def test_another_type_holds_at_its_bound_and_is_late_only_where_it_is_at_its_likely_speed(
    late: int, likely: int, verdict: HindsightVerdict
) -> None:
    found, why = hindsight_verdict(
        LaterFigures(10_000, late, likely, 10, moves=True, declared=False, days=14), None, POLICY
    )
    assert found is verdict
    assert f"{late if verdict is not HindsightVerdict.LATE else likely:,}" in why.sentence


def test_a_model_that_may_not_start_there_did_not_hold_by_its_speed_alone() -> None:
    verdict, why = hindsight_verdict(
        LaterFigures(10_000, 0, 0, 0, moves=True, declared=False, days=14, fits=0.8), None, POLICY
    )
    assert verdict is HindsightVerdict.UNKNOWN
    assert "only a start tells whether the model fits (80 % likely)" in why.sentence
    late = LaterFigures(10_000, 900, 900, 0, moves=True, declared=False, days=14, fits=0.8)
    assert hindsight_verdict(late, None, POLICY)[0] is HindsightVerdict.LATE


def test_memory_decides_before_speed() -> None:
    verdict, why = hindsight_verdict(
        LaterFigures(10_000, 0, 0, 0, moves=True, declared=False, days=14, outgrown=(20.1, 14.6)), None, POLICY
    )
    assert (verdict, why.code) == (HindsightVerdict.NO_MEMORY, Code.MEMORY_TOO_SMALL)
    assert "20.1 GiB" in why.sentence


def test_few_requests_tell_nothing_and_a_reason_that_is_known_is_kept() -> None:
    few = replace(STAYS, requests=199, late=0, likely=0)
    assert hindsight_verdict(few, None, POLICY)[0] is HindsightVerdict.UNKNOWN
    assert "199 requests came, 200 are needed" in hindsight_verdict(few, None, POLICY)[1].sentence
    known = Reason(Code.CANNOT_TELL, "no whole day after it yet")
    assert hindsight_verdict(None, known, POLICY) == (HindsightVerdict.UNKNOWN, known)


def after(
    verdict: HindsightVerdict = HindsightVerdict.HELD, late: int | None = 0, days: int = 10, saved: str = "95"
) -> Hindsight:
    why = Reason(Code.WOULD_HOLD, "it would")
    return Hindsight(days, 1000, late, late, 0, 2.0, None, Decimal(saved), verdict, why)


def change(
    told: Hindsight, risk: Risk = Risk.VERY_LOW, promised: float = 0.001, restores: bool = False
) -> BacktestChange:
    """A change that promised a dollar an hour, and five dollars for the switch."""
    option = replace(
        samples.option(),
        risk=risk,
        risks={RiskResource.LATENCY: risk},
        saving_usd_per_month=Decimal(730),
        restores=restores,
    )
    option = replace(option, switch_usd=Decimal(5))
    return BacktestChange(AT, AT.date(), None, samples.recommendation(), option, promised, None, told)


def tried(*changes: BacktestChange, missed: MissedOption | None = None) -> Backtest:
    return Backtest("chat", changes, None, {}, missed)


def test_promises_are_weighed_against_the_days_after() -> None:
    good = change(after(), promised=0.002)
    bad = change(after(HindsightVerdict.LATE, late=100, saved="-5"), Risk.MEDIUM, promised=0.0)
    found = calibrate([tried(good), tried(bad)], POLICY)
    assert (found.changes, found.told, found.held) == (2, 2, 1)
    assert found.brier == pytest.approx((0.005**2 + (0.05 - 1) ** 2) / 2)
    assert found.brier_without == 0.5
    assert found.promised_late == pytest.approx(0.001)
    assert found.seen_late == pytest.approx(0.05)
    assert found.promised_usd == 2 * (Decimal(240) - 5), "a dollar an hour for ten days, less the switch"
    assert (found.replayed, found.saved_usd) == (2, Decimal(90))


def test_no_promise_is_weighed_against_dollars_of_the_plan_where_nothing_could_be_replayed() -> None:
    found = calibrate([tried(change(after())), tried(change(after(HindsightVerdict.UNKNOWN, late=None)))], POLICY)
    assert (found.changes, found.replayed) == (2, 1)
    assert (found.promised_usd, found.saved_usd) == (Decimal(240) - 5, Decimal(95))


def test_what_cannot_be_told_counts_for_no_score_and_what_restores_promised_nothing() -> None:
    unknown = change(after(HindsightVerdict.UNKNOWN, late=None))
    found = calibrate([tried(unknown, change(after(), restores=True))], POLICY)
    assert (found.changes, found.told, found.brier, found.seen_late) == (1, 0, None, None)


def test_a_change_that_was_taken_back_did_not_hold() -> None:
    back = replace(change(after()), until=date(2026, 11, 8), taken_back=Reason(Code.ROLLED_BACK, "its guard rang"))
    assert calibrate([tried(back)], POLICY).held == 0


def test_regret_is_summed_over_the_account() -> None:
    def missed(usd: str) -> MissedOption:
        option: Option = samples.option()
        return MissedOption(option, AT, after(), Reason(Code.NO_OBJECTIVE, "no objective"), Decimal(usd))

    found = calibrate([tried(missed=missed("10.50")), tried(), tried(missed=missed("4"))], POLICY)
    assert found.regret_usd == Decimal("14.50")
