"""On a terminal of 60 or 80 columns every id is whole, no figure is broken, and nothing is cut off."""

import io
from dataclasses import replace
from decimal import Decimal

import pytest
from rich.console import Console
from rich.table import Table

from rightsizer.domain import self_test
from rightsizer.domain.change import Entry, JournalEvent
from rightsizer.domain.money import MoneyRow, Totals, sum_rows
from rightsizer.terminal import doctor, history, money, orders, policy, tables
from rightsizer.terminal.money import SAVINGS, WASTE, GroupBy
from tests.samples import change, proposal


def on(columns: int) -> Console:
    return Console(width=columns, file=io.StringIO(), force_terminal=True, color_system=None)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def shown_proposals(columns: int) -> str:
    console = on(columns)
    console.print(history.proposal_page([proposal()], columns))
    return text_of(console)


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_ids_that_an_order_takes_are_never_cut(columns: int) -> None:
    page = shown_proposals(columns)
    assert proposal().id in page
    assert proposal().ref.name in page
    assert "…" not in page


def test_a_proposal_without_an_option_says_that_more_is_needed_and_no_saving_of_zero() -> None:
    short = replace(proposal(), recommendation=replace(proposal().recommendation, options=()))
    console = on(200)
    console.print(history.proposal_page([short], 200))
    assert "no option is known" in text_of(console)
    assert "$0" not in text_of(console)


def row(name: str) -> MoneyRow:
    return MoneyRow("1", "eu-west-1", name, spend=Decimal("18433.44"))


@pytest.mark.parametrize("columns", [WASTE, SAVINGS])
def test_money_is_a_table_where_it_fits_and_else_a_list_without_broken_figures(columns: money.Columns) -> None:
    name = "an-endpoint-with-a-name-of-a-certain-length"
    rows: list[tuple[str, Totals]] = [(name, sum_rows([row(name)]))]
    wide, narrow = on(160), on(60)
    for console in (wide, narrow):
        console.print(money.money_page(GroupBy.ENDPOINT, rows, rows[0][1], columns, console))
    assert "Endpoint" in text_of(wide)
    assert name in text_of(wide)
    assert "Endpoint" not in text_of(narrow)
    assert name in text_of(narrow)
    assert all(len(line) <= 60 for line in text_of(narrow).splitlines())


def test_what_fits_is_measured_and_not_guessed() -> None:
    grid = Table("A", "B", box=None)
    grid.add_row("x" * 30, "y" * 30)
    assert tables.fits(on(80), grid)
    assert not tables.fits(on(50), grid)


def test_the_list_of_a_narrow_terminal_has_one_head_for_each_proposal() -> None:
    first, *others = shown_proposals(60).splitlines()
    assert first.split() == [proposal().ref.name, proposal().state.value]
    assert all(line.startswith("  ") for line in others)


def test_a_check_stands_beside_its_mark_and_its_commands_are_never_broken() -> None:
    command = "aws iam put-role-policy --role-name rightsizer-ApplyRole --policy-name rightsizer-pass-model"
    check = self_test.Check(
        "iam:PassRole",
        "changing the policy of " + "components " * 6,
        self_test.Outcome.FAILED,
        "no",
        f"do:\n  {command}",
    )
    console = on(60)
    doctor.tell([self_test.Tested("here", (check,))], console)
    lines = text_of(console).splitlines()
    assert [line for line in lines if len(line.rstrip()) > 60] == [f"{doctor.INDENT}  {command}"]
    assert all(line.startswith(doctor.INDENT) for line in lines[1:])


def test_a_step_that_ended_is_one_line_and_a_note_has_no_inside_name() -> None:
    at = proposal().created_at
    journal = (
        Entry(at, "plan", "noted", "canary of 1 of 2 instances"),
        Entry(at, "AddTags a", "intended", "sagemaker:AddTags"),
        Entry(at, "AddTags a", "done"),
        Entry(at, "UpdateEndpoint a", "intended", "sagemaker:UpdateEndpoint"),
    )
    said = list(orders.journal_lines(replace(change(at), journal=journal)))
    assert [line.partition(" UTC  ")[2] for line in said] == [
        "noted     canary of 1 of 2 instances",
        "done      AddTags a",
        "intended  UpdateEndpoint a  sagemaker:UpdateEndpoint",
    ]


def test_a_policy_that_does_not_fit_as_a_table_is_a_list_with_whole_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("owner search in development", "minimum_saving_usd", "50", "20"), ("production", "four_eyes", "a", "b")]
    console = on(50)
    monkeypatch.setattr(tables, "output", lambda: console)
    policy.print_rows(("For", "Key", "Now", "Then"), rows)
    assert text_of(console).splitlines()[:2] == ["owner search in development", "  minimum_saving_usd: now 50, then 20"]


def test_whoever_asked_for_the_way_back_is_named_as_a_person() -> None:
    at = proposal().created_at
    note = Entry(at, JournalEvent.ASK_BACK, "noted", "cli:arn:aws:sts::111122223333:assumed-role/apply/ada")
    (event,) = history.events_of_change(replace(change(at), journal=(note,)))
    assert (event.text, event.actor) == ("asked for the way back", "ada (role apply), terminal")
