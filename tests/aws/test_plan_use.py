"""Cost Explorer is asked for the use of Savings Plans once a week, however many processes evaluate."""

from datetime import timedelta
from decimal import Decimal

import pytest

from rightsizer.aws.plan_use import PlanUse
from rightsizer.aws.prices import SavingsPlans
from rightsizer.aws.session import Session
from rightsizer.aws.table import Table
from rightsizer.errors import ReadError
from sandbox.account import Sandbox
from tests.table import create_table

ASKS = "ce:GetSavingsPlansUtilization"


@pytest.fixture
def kept(box: Sandbox, account: Session) -> PlanUse:
    create_table(box.client("dynamodb"))
    box.add_endpoint("chat", "ml.g5.xlarge", created=box.clock.now - timedelta(days=30))
    box.world.plans.buy(2.0)
    return PlanUse(Table(account.client("dynamodb"), "t"), lambda: box.clock.now)


def look(box: Sandbox, account: Session, kept: PlanUse) -> tuple[float, int]:
    """The use of the plans as a new process sees it, and how often Cost Explorer was asked for it."""
    box.calls.clear()
    found = SavingsPlans(account, lambda: box.clock.now, kept)()
    return found.utilisation, box.calls.counts()[ASKS]


def test_a_month_of_hourly_processes_costs_less_than_a_nickel(box: Sandbox, account: Session, kept: PlanUse) -> None:
    first, asked = look(box, account, kept)
    for _ in range(30 * 4):
        box.clock.advance(timedelta(hours=6))
        use, more = look(box, account, kept)
        assert use == pytest.approx(first, abs=0.1)
        asked += more
    assert asked == 5


def test_a_plan_that_was_bought_is_asked_about_at_once(box: Sandbox, account: Session, kept: PlanUse) -> None:
    first, _ = look(box, account, kept)
    box.world.plans.buy(100.0)
    use, asked = look(box, account, kept)
    assert asked == 1
    assert use < first


def test_of_two_processes_at_once_one_asks_and_the_other_takes_the_old_use(box: Sandbox, kept: PlanUse) -> None:
    kept.recall(["a"], lambda: 0.9)
    box.clock.advance(timedelta(days=7, minutes=1))
    seen: list[float] = []

    def ask() -> float:
        seen.append(kept.recall(["a"], lambda: pytest.fail("two ask at once")))
        return 0.4

    assert kept.recall(["a"], ask) == 0.4
    assert seen == [0.9]
    assert kept.recall(["a"], lambda: 0.0) == 0.4


def test_an_old_use_serves_a_day_longer_where_nobody_can_ask_and_then_no_more(box: Sandbox, kept: PlanUse) -> None:
    def fails() -> float:
        raise ReadError("denied")

    kept.recall(["a"], lambda: 0.9)
    box.clock.advance(timedelta(days=7))
    with pytest.raises(ReadError):
        kept.recall(["a"], fails)
    assert kept.recall(["a"], fails) == 0.9, "another process, within ten minutes"
    box.clock.advance(timedelta(days=1))
    with pytest.raises(ReadError):
        kept.recall(["a"], fails)


def test_a_table_that_fails_costs_a_request_and_nothing_else(box: Sandbox, account: Session, kept: PlanUse) -> None:
    look(box, account, kept)
    for action in ("dynamodb:GetItem", "dynamodb:PutItem"):
        box.deny(action)
    use, asked = look(box, account, kept)
    assert (asked, 0 < use <= 1) == (1, True)


def test_who_may_not_write_reads_what_is_kept(box: Sandbox, account: Session, kept: PlanUse) -> None:
    reader = PlanUse(Table(account.client("dynamodb"), "t"), lambda: box.clock.now, writes=False)
    assert reader.recall(["a"], lambda: 0.1) == 0.1
    kept.recall(["a"], lambda: float(Decimal("0.9")))
    assert reader.recall(["a"], lambda: 0.1) == 0.9
    box.clock.advance(timedelta(days=7, hours=1))
    assert reader.recall(["a"], lambda: 0.1) == 0.9, "the next evaluation asks"
    box.clock.advance(timedelta(days=1))
    assert reader.recall(["a"], lambda: 0.1) == 0.1
