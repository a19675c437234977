"""The journal on the table: every write is conditional, locks and budgets are taken all or nothing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.aws.journal import TableJournal
from rightsizer.changes.start_limits import budget_share
from rightsizer.domain.change import Change, ChangeState, Entry
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.plan import Before, Plan, PlanKind, VariantCount
from rightsizer.domain.policy import ChangeLimits, Switch
from rightsizer.errors import BudgetUnreadableError, ConflictError, ReadError
from sandbox.account import Sandbox
from tests import samples
from tests.table import create_table

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
DAY = "2026-11-02"
LIMITS = ChangeLimits(changes_per_day=2, usd_per_day=Decimal(100))
BEFORE = Before("old", NOW, "", (VariantCount("v", "ml.g5.4xlarge", 1, 1.0),))


@pytest.fixture
def journal(box: Sandbox) -> TableJournal:
    client = box.client("dynamodb")
    create_table(client)
    return TableJournal(client, "t")


def change(number: int = 1, endpoint: str = "chat", **fields: Any) -> Change:
    made = Change(
        id=f"c-{number}",
        proposal_id=f"p-{number}",
        ref=EndpointRef("111122223333", "eu-west-1", endpoint),
        owner="search",
        variant="v",
        option=samples.option(),
        saving_usd_per_month=Decimal("12.34"),
        created_at=NOW,
        next_due=NOW,
        outcome="waits",
    )
    return replace(made, **fields)


WRITE = Entry(NOW - timedelta(hours=1), "UpdateEndpoint chat", "intended")


def closed(one: Change) -> Change:
    return replace(one, state=ChangeState.PROVEN, next_due=None, journal=(WRITE, Entry(NOW, "finish", "noted")))


def test_a_change_comes_back_as_it_was_stored(journal: TableJournal) -> None:
    stored = journal.create(change(before=BEFORE, journal=(Entry(NOW, "UpdateEndpoint chat", "intended", "x"),)))
    assert journal.load("c-1") == stored
    assert stored.version == 1
    assert journal.load("c-2") is None


def test_one_endpoint_has_one_change(journal: TableJournal) -> None:
    journal.create(change())
    with pytest.raises(ConflictError, match="endpoint chat is held by another change"):
        journal.create(change(2))
    assert journal.load("c-2") is None
    assert journal.holder_of("chat") == "c-1"
    journal.create(change(3, "other"))


def test_of_two_that_read_the_same_version_one_saves(journal: TableJournal) -> None:
    first = journal.create(change())
    saved = journal.save(replace(first, outcome="mine"))
    with pytest.raises(ConflictError, match="somebody saved it in between"):
        journal.save(replace(first, outcome="theirs"))
    assert journal.load("c-1") == saved


def test_closing_gives_back_the_locks_in_the_same_write_and_remembers_when(journal: TableJournal) -> None:
    begun = journal.begin(
        replace(journal.create(change()), before=BEFORE, models=("m",)), budget_share(DAY, Decimal(1), LIMITS)
    )
    journal.save(closed(begun))
    assert journal.holder_of("chat") == ""
    assert journal.last_change_at("chat") == NOW
    assert list(journal.open_changes()) == []
    assert journal.due(NOW + timedelta(days=9)) == ()
    again = journal.create(change(2))
    journal.begin(replace(again, before=BEFORE, models=("m",)), budget_share(DAY, Decimal(1), LIMITS))


def test_a_change_that_wrote_nothing_is_not_the_last_change_of_its_endpoint(journal: TableJournal) -> None:
    refused = replace(journal.create(change()), state=ChangeState.REFUSED, next_due=None)
    journal.save(replace(refused, journal=(Entry(NOW, "finish", "noted"),)))
    assert journal.holder_of("chat") == ""
    assert journal.last_change_at("chat") is None


def test_a_shadow_test_is_the_last_change_and_leaves_the_last_that_lasts_as_it_was(journal: TableJournal) -> None:
    test = Plan(kind=PlanKind.SHADOW_TEST)
    journal.save(closed(journal.create(change(9, "fresh", plan=test))))
    assert (journal.last_change("fresh"), journal.last_lasting_change("fresh")) == ("c-9", "")
    journal.save(closed(journal.create(change())))
    assert journal.last_lasting_change("chat") == "c-1"
    for number in (2, 3):
        journal.save(closed(journal.create(change(number, plan=test))))
        assert (journal.last_change("chat"), journal.last_lasting_change("chat")) == (f"c-{number}", "c-1")
    journal.save(closed(journal.create(change(4))))
    assert journal.last_lasting_change("chat") == "c-4"


def test_the_last_change_of_a_row_of_an_earlier_release_is_one_that_lasts(journal: TableJournal) -> None:
    key = {"pk": {"S": "LAST#chat"}, "sk": {"S": "LAST"}}
    journal.dynamodb.put_item(TableName="t", Item=key | {"change": {"S": "c-1"}, "at": {"S": NOW.isoformat()}})
    journal.save(closed(journal.create(change(2, plan=Plan(kind=PlanKind.SHADOW_TEST)))))
    assert journal.last_lasting_change("chat") == "c-1"


def test_where_no_change_is_allowed_a_day_the_first_one_does_not_pass(journal: TableJournal) -> None:
    made = journal.create(change())
    with pytest.raises(ConflictError, match="no change is allowed"):
        journal.begin(made, budget_share(DAY, Decimal(1), replace(LIMITS, changes_per_day=0)))


def test_endpoints_that_share_a_model_wait_for_each_other(journal: TableJournal) -> None:
    journal.begin(
        replace(journal.create(change()), before=BEFORE, models=("m", "n")), budget_share(DAY, Decimal(1), LIMITS)
    )
    other = journal.create(change(2, "other"))
    with pytest.raises(ConflictError, match="another endpoint with model n is being changed"):
        journal.begin(replace(other, before=BEFORE, models=("n",)), budget_share(DAY, Decimal(1), LIMITS))
    assert journal.load("c-2") == other


def test_the_day_has_so_many_changes(journal: TableJournal) -> None:
    for number in (1, 2):
        journal.begin(journal.create(change(number, f"e{number}")), budget_share(DAY, Decimal(1), LIMITS))
    third = journal.create(change(3, "e3"))
    with pytest.raises(ConflictError, match="the budget of 2 Nov 2026"):
        journal.begin(third, budget_share(DAY, Decimal(1), LIMITS))
    journal.begin(third, budget_share("2026-11-03", Decimal(1), LIMITS))


SPOILT: list[dict[str, Any]] = [
    {"usd": {"N": "1"}},
    {"changes": {"N": "1"}},
    {"changes": {"S": "1"}, "usd": {"N": "1"}},
    {"changes": {"N": "1"}, "usd": {"S": "1.50"}},
    {"changes": {"N": "1"}, "usd": {"L": []}},
    {"changes": {"N": "1"}, "usd": {"N": "9E+37"}},
]


@pytest.mark.parametrize("row", SPOILT, ids=str)
def test_a_spoilt_budget_stops_the_day_and_says_so_but_not_what_restores(
    journal: TableJournal, row: dict[str, Any]
) -> None:
    key = {"pk": {"S": f"BUDGET#{DAY}"}, "sk": {"S": "BUDGET"}}
    journal.dynamodb.put_item(TableName="t", Item=key | row)
    made = journal.create(change())
    with pytest.raises(BudgetUnreadableError, match=f"the row BUDGET#{DAY} BUDGET, .* cannot be read: it"):
        journal.begin(made, budget_share(DAY, Decimal(1), LIMITS))
    assert journal.load("c-1") == made
    grows = replace(change(2, "other"), option=replace(samples.option(), restores=True), models=("m",))
    assert journal.begin(journal.create(grows), budget_share(DAY, Decimal(1), LIMITS, restores=True)).version == 2
    with pytest.raises(ConflictError, match="model m"):
        journal.begin(
            journal.create(replace(change(3, "third"), models=("m",))), budget_share("2026-11-03", Decimal(1), LIMITS)
        )


def test_what_a_day_has_spent_is_no_spoilt_budget(journal: TableJournal) -> None:
    journal.begin(journal.create(change(1, "e1")), budget_share(DAY, Decimal("99.50"), LIMITS))
    with pytest.raises(ConflictError, match="is spent") as caught:
        journal.begin(journal.create(change(2, "e2")), budget_share(DAY, Decimal(1), LIMITS))
    assert not isinstance(caught.value, BudgetUnreadableError)


def test_the_day_has_so_many_dollars(journal: TableJournal) -> None:
    journal.begin(journal.create(change(1, "e1")), budget_share(DAY, Decimal("60.10"), LIMITS))
    second = journal.create(change(2, "e2"))
    with pytest.raises(ConflictError, match="USD 100"):
        journal.begin(second, budget_share(DAY, Decimal("39.91"), LIMITS))
    journal.begin(second, budget_share(DAY, Decimal("39.90"), LIMITS))


def test_a_closed_change_is_opened_again_only_while_nobody_holds_the_endpoint(journal: TableJournal) -> None:
    done = journal.save(closed(journal.create(change())))
    journal.create(change(2))
    back = replace(done, state=ChangeState.RETURNING, next_due=NOW)
    with pytest.raises(ConflictError, match="held by another change"):
        journal.reopen(back)
    other = journal.load("c-2")
    assert other is not None
    journal.save(closed(other))
    assert journal.reopen(back).state is ChangeState.RETURNING
    assert journal.holder_of("chat") == "c-1"


def test_due_are_those_whose_time_has_come_the_longest_waiting_first(journal: TableJournal) -> None:
    for number, minutes in ((1, 5), (2, 60), (3, -60)):
        journal.create(change(number, f"e{number}", next_due=NOW + timedelta(minutes=minutes)))
    assert journal.due(NOW + timedelta(minutes=5)) == ("c-3", "c-1")


def test_the_switch_is_off_until_somebody_freezes(journal: TableJournal) -> None:
    assert journal.switch() == Switch()
    frozen = Switch(True, True, "cli:me", NOW)
    journal.set_switch(frozen)
    assert journal.switch() == frozen


def test_a_table_that_does_not_answer_is_a_read_error_and_not_a_lost_condition(
    box: Sandbox, journal: TableJournal
) -> None:
    first = journal.create(change())
    box.gate.fail("dynamodb", "PutItem", "ProvisionedThroughputExceededException", "slow down", times=9)
    with pytest.raises(ReadError):
        journal.save(replace(first, outcome="mine"))
