"""The report of a deployed stack at a terminal."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rightsizer import bootstrap, wire
from rightsizer.aws.session import Session
from rightsizer.bootstrap.changes import report_sources
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.report import Report
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from tests.changing.world import MONDAY, NAME, World, world

TEMPLATE = {
    "Parameters": {"Limits": {"Type": "String"}},
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
    "Outputs": {"TableName": {"Value": "t"}},
}


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A stack's table, with a change that was measured 30 days ago and one that ended in the week before last."""
    monkeypatch.setenv("COLUMNS", "400")
    with world(judged={"evaluated_at": MONDAY, "evidence": None}) as w:
        monkeypatch.setenv("RIGHTSIZER_TABLE", "t")
        bootstrap.set_clock(lambda: w.box.clock.now)
        past = PastChange(
            w.now - timedelta(days=40), "ml.g5.2xlarge", "ml.g6.2xlarge", 1, 1, PastEnd.PROVEN, stated_risk=1
        )
        w.apply.history.record(NAME, "c-9", replace(past, promised_slowdown=1.2, realised_slowdown=1.5))
        w.apply.history.record(NAME, "c-8", replace(past, at=w.now - timedelta(days=9), stated_risk=None))
        yield w
        bootstrap.reset()


def test_the_report_at_a_terminal_says_what_the_mail_says(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report"]) == Exit.NOTHING_TO_DO
    out, _ = capsys.readouterr()
    assert "1 endpoint" in out
    assert "1 showed how fast the new type is. It ran 25 % slower than promised" in out
    assert "2 changes ended" in out


def test_its_json_is_the_report_that_the_stack_stores_but_for_its_own_cost(
    deployed: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "--json"]) == Exit.NOTHING_TO_DO
    report = wire.revive(Report, json.loads(capsys.readouterr().out))
    assert report.end - report.start == timedelta(days=7)
    assert report.end <= deployed.now
    assert [one.ref.name for one in report.recommendations] == [NAME]
    assert report.track_record is not None
    assert (report.track_record.ended, report.track_record.overall.n) == (2, 1)
    assert report.running_cost is None


def test_the_last_whole_month_is_told_on_request(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    run(["report", "--monthly", "--json"])
    report = wire.revive(Report, json.loads(capsys.readouterr().out))
    assert (report.start.day, report.end.day, report.end.month) == (1, 1, deployed.now.month)


def test_a_report_at_a_terminal_writes_nothing(deployed: World) -> None:
    before = len(deployed.box.calls.writes())
    run(["report"])
    assert len(deployed.box.calls.writes()) == before


def test_without_a_deployed_stack_there_is_no_report(
    deployed: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RIGHTSIZER_TABLE")
    assert run(["report"]) == Exit.FAILED
    assert "nothing of that name is deployed" in " ".join(capsys.readouterr().err.split())


def test_the_stack_is_found_with_what_a_saving_must_be_worth_there(
    deployed: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RIGHTSIZER_TABLE")
    with deployed.box.gate.unrecorded():
        deployed.box.client("cloudformation").create_stack(
            StackName="rightsizer",
            TemplateBody=json.dumps(TEMPLATE),
            Parameters=[
                {"ParameterKey": "Limits", "ParameterValue": '{"minimum_saving_usd": 700, "window": "nonsense"}'}
            ],
        )
    assert run(["report"]) == Exit.NOTHING_TO_DO
    told = " ".join(capsys.readouterr().out.split())
    assert "2 changes ended" in told
    assert "cannot be understood" in told
    assert "'nonsense'; it should look like" in told
    account = Session(region=deployed.box.region, attempts=1)
    assert report_sources(account, "rightsizer", "").policy.minimum_saving_usd == Decimal(700)
    assert report_sources(account, "rightsizer", "t").policy.minimum_saving_usd == Decimal(50)
