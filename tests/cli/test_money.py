"""`rightsizer waste` and `rightsizer savings`: the report's table of money at a terminal."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.aws.session import Session
from rightsizer.bootstrap.changes import report_sources
from rightsizer.domain.money import NOBODY, MoneyRow, MoneyTable, Stage
from rightsizer.flows import report as reporting
from rightsizer.terminal import money
from rightsizer.terminal.app import Exit
from rightsizer.terminal.money import GroupBy, grouped
from rightsizer.terminal.run import run
from tests.changing.world import MONDAY, NAME, World, world


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A stack's table with one endpoint that was judged today."""
    monkeypatch.setenv("COLUMNS", "200")
    with world(judged={"evaluated_at": MONDAY}) as w:
        monkeypatch.setenv("RIGHTSIZER_TABLE", "t")
        bootstrap.set_clock(lambda: w.box.clock.now)
        yield w
        bootstrap.reset()


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run([*words, "--json"]) == Exit.NOTHING_TO_DO
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def row(name: str, owner: str, kind: str, spend: str, **stages: str) -> MoneyRow:
    savings = {Stage(stage.replace("_", "-")): Decimal(usd) for stage, usd in stages.items()}
    return MoneyRow(
        "1", "eu-west-1", name, owner, "production", kind, judged=True, spend=Decimal(spend), savings=savings
    )


TABLE = MoneyTable(
    rows=(
        row("a", "ml", "ml.g5.xlarge", "100.10", waiting="40.01"),
        row("b", "ml", "ml.g6.xlarge", "50.05", proven="20"),
        row("c", "", "ml.g5.xlarge", "10"),
    )
)


@pytest.mark.parametrize(
    ("by", "spend"),
    [
        (GroupBy.ENDPOINT, {"a": "100.10", "b": "50.05", "c": "10.00"}),
        (GroupBy.OWNER, {"ml": "150.15", NOBODY: "10.00"}),
        (GroupBy.TYPE, {"ml.g5.xlarge": "110.10", "ml.g6.xlarge": "50.05"}),
        (GroupBy.ENVIRONMENT, {"production": "160.15"}),
    ],
)
def test_the_rows_of_a_grouping_add_up_to_the_table(by: GroupBy, spend: dict[str, str]) -> None:
    found = grouped(TABLE, by)
    assert {name: str(one.spend) for name, one in found.items()} == spend
    assert sum(one.open for one in found.values()) == TABLE.totals().open == Decimal("40.01")


@pytest.mark.parametrize("command", ["waste", "savings"])
def test_the_figures_are_those_of_the_report_of_the_same_days(
    command: str, deployed: World, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(capsys, command, "--days", "7")
    with deployed.box.gate.unrecorded():
        start, end = (datetime.fromisoformat(found[key]) for key in ("start", "end"))
        made = reporting.assemble_report(report_sources(Session(), "rightsizer", "t"), start, end, end)
    assert found["totals"] == money.totals_document(made.totals)
    assert [one["name"] for one in found["rows"]] == [NAME]
    assert sum(Decimal(one["spend"]) for one in found["rows"]) == Decimal(found["totals"]["spend"])


def test_a_person_reads_a_table_with_its_sum_and_its_days(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    before = len(deployed.box.calls.writes())
    assert run(["waste"]) == Exit.NOTHING_TO_DO
    out = capsys.readouterr().out
    for part in ("Endpoint", "Wasted", NAME, "in all", "US dollars a month, "):
        assert part in out
    assert len(deployed.box.calls.writes()) == before, "it only reads"


def test_days_of_which_nothing_is_known_are_no_zeros(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.box.load(NAME, None)  # else each minute of sixty days is played
    deployed.box.clock.advance(timedelta(days=60))
    run(["waste", "--days", "1"])
    assert "Nothing is known of these days" in capsys.readouterr().out


@pytest.mark.parametrize("words", [("--by", "colour"), ("--days", "0")])
def test_what_cannot_be_asked_is_a_usage_error(words: tuple[str, ...]) -> None:
    assert run(["waste", *words]) == Exit.USAGE
