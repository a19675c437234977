"""What a back-test prints and writes of changes that held, that did not, and that nothing can be told about."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from rich.console import Console

from rightsizer.backtest.later_days import calibrate
from rightsizer.domain.backtest import Backtest, BacktestChange, Hindsight, HindsightVerdict
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.terminal.backtest import document_of
from rightsizer.terminal.backtest_tables import BacktestedAccount, backtest_page
from tests import samples

AT = datetime(2026, 11, 6, tzinfo=UTC)
DARK = Reason(Code.CANNOT_TELL, "no latency was published on the days after it")


def change(
    saved: str, verdict: HindsightVerdict = HindsightVerdict.HELD, days: int = 10, restores: bool = False
) -> BacktestChange:
    """A change that the replay served, but for one that cannot be told."""
    late = None if verdict is HindsightVerdict.UNKNOWN else 0
    why = DARK if verdict is HindsightVerdict.UNKNOWN else Reason(Code.WOULD_HOLD, "it would")
    after = Hindsight(days, 1000, late, late, late, 2.0, None, Decimal(saved), verdict, why)
    option = samples.option(restores=restores)
    return BacktestChange(AT, AT.date(), None, samples.recommendation(), option, 0.001, None, after)


def account(*changes: BacktestChange) -> BacktestedAccount:
    tried = tuple(Backtest(f"chat-{i}", (each,), None, {}) for i, each in enumerate(changes))
    found = calibrate(tried, Policy())
    return BacktestedAccount("eu-west-1", AT, 14, "--limits", ChangeLimits(), tried, (), found)


def text(found: BacktestedAccount, width: int = 240) -> str:
    console = Console(width=width)
    with console.capture() as seen:
        console.print(backtest_page(found, width))
    return " ".join(seen.get().split())


@pytest.mark.parametrize("width", [240, 80])
def test_what_only_the_plan_says_was_saved_is_never_called_replayed(width: int) -> None:
    said = text(account(change("95", HindsightVerdict.UNKNOWN)), width)
    assert said.count("95 by plan") == 2, "beside the change and in the sum"
    assert "cannot be told: no latency was published" in said
    assert "1 changed, USD 95 by plan alone, on days that could not be replayed (by --limits)" in said
    assert "in the replay" not in said
    assert "promised for these days" not in said


def test_replayed_and_planned_dollars_stand_apart() -> None:
    found = account(change("100"), change("40", HindsightVerdict.LATE), change("95", HindsightVerdict.UNKNOWN))
    said = text(found)
    assert "of 3 changes that should save, 1 held, 1 did not, 1 cannot be told" in said
    assert "USD 140 in the replay; without 1 change that could not be replayed" in said
    assert "USD 140 saved in the replay, switches taken off, of which USD 100 on changes that held;" in said
    assert "; USD 95 by plan alone" in said
    document = document_of(found)
    assert (document["saved_usd"], document["saved_by_plan_usd"]) == ("235", "95")
    assert [row["changes"][0]["after"]["replayed"] for row in document["endpoints"]] == [True, True, False]
    assert (document["calibration"]["replayed"], document["calibration"]["saved_usd"]) == (2, "140.00")


def test_a_fleet_that_was_brought_back_without_a_replay_did_not_hold() -> None:
    said = text(account(change("100"), change("-30", HindsightVerdict.UNKNOWN, restores=True)))
    assert "USD 100 saved in the replay, switches taken off; USD -30 by plan alone" in said


def test_a_change_without_a_whole_day_after_it_has_saved_nothing_and_is_no_plan() -> None:
    said = text(account(change("0", HindsightVerdict.UNKNOWN, days=0)))
    assert "1 changed, USD 0 saved (by --limits)" in said
    assert "by plan" not in said


def test_a_change_that_was_taken_back_names_the_last_day_that_it_served() -> None:
    back = replace(change("5"), until=date(2026, 11, 8), taken_back=Reason(Code.ROLLED_BACK, "its guard rang"))
    assert "Taken back after 7 Nov: its guard rang" in text(account(back))
