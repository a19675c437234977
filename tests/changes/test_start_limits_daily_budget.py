"""One rule for what a day may start: the journal's condition and the back-test ask it alike."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rightsizer.aws.journal import TableJournal
from rightsizer.backtest.simulate import Allowance
from rightsizer.changes.start_limits import budget_refusal, budget_share
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Code
from rightsizer.errors import ConflictError
from sandbox.account import Sandbox
from tests import samples
from tests.table import create_table

DAY = datetime(2026, 11, 2, 9, tzinfo=UTC)
STARTS = st.lists(st.tuples(st.sampled_from((0, 10, 90, 400)), st.booleans()), max_size=6)


def test_a_change_dearer_than_the_budget_starts_on_an_empty_day_and_on_no_other() -> None:
    limits = ChangeLimits(usd_per_day=Decimal(100))
    dear, cheap = samples.option(switch_usd=Decimal(400)), samples.option(switch_usd=Decimal(1))
    assert Allowance(limits).take_budget(dear, DAY) is None
    spent = Allowance(limits)
    assert spent.take_budget(cheap, DAY) is None
    assert spent.take_budget(dear, DAY) is not None
    assert spent.take_budget(dear, DAY + timedelta(days=1)) is None


def test_a_change_dearer_than_the_budget_does_not_start_after_one_that_cost_nothing() -> None:
    day = Allowance(ChangeLimits(usd_per_day=Decimal(100)))
    assert day.take_budget(samples.option(switch_usd=Decimal(0)), DAY) is None
    assert day.take_budget(samples.option(switch_usd=Decimal(400)), DAY) is not None
    assert day.take_budget(samples.option(switch_usd=Decimal(100)), DAY) is None


@pytest.mark.parametrize(
    ("changes", "usd", "words"),
    [
        (0, 0, None),
        (1, 60, None),
        (1, 61, "more than $100"),
        (2, 0, "2 changes started that day, Limits allows 2"),
        (3, 500, "3 changes started that day, Limits allows 2"),
    ],
)
def test_a_refusal_names_the_limit_that_the_day_has_reached(changes: int, usd: int, words: str | None) -> None:
    limits = ChangeLimits(changes_per_day=2, usd_per_day=Decimal(100))
    share = budget_share("2026-11-02", Decimal(40), limits)
    refusal = budget_refusal(share, limits, changes, Decimal(usd))
    assert (refusal is None) == (words is None)
    assert refusal is None or (refusal.code is Code.BUDGET_SPENT and str(words) in refusal.sentence)
    assert (share.day, share.usd, share.limit) == ("2026-11-02", Decimal(40), "2 changes, USD 100")
    growing = budget_share("2026-11-02", Decimal(40), limits, restores=True)
    assert budget_refusal(growing, limits, changes, Decimal(usd)) is None


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(starts=STARTS, most=st.integers(0, 3), budget=st.sampled_from((0, 90, 100)))
def test_the_journal_and_the_back_test_start_the_same_changes(
    starts: list[tuple[int, bool]], most: int, budget: int
) -> None:
    limits = ChangeLimits(changes_per_day=most, usd_per_day=Decimal(budget))
    allowance = Allowance(limits)
    with Sandbox(now=DAY) as box:
        create_table(box.client("dynamodb"))
        journal = TableJournal(box.client("dynamodb"), "t")
        for number, (usd, restores) in enumerate(starts):
            option = samples.option(switch_usd=Decimal(usd), restores=restores)
            ref = EndpointRef("1", "eu-west-1", f"chat-{number}")
            made = journal.create(replace(samples.change(DAY, id=f"c-{number}"), ref=ref, option=option))
            share = budget_share("2026-11-02", Decimal(usd), limits, restores=restores)
            if allowance.take_budget(option, DAY) is None:
                journal.begin(made, share)
            else:
                with pytest.raises(ConflictError, match=r"budget|no change is allowed"):
                    journal.begin(made, share)
