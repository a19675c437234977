"""Orders at a terminal: the same conditional writes as a click in Slack, and a clear no without a deployed stack."""

import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.aws.capacity_changes import CapacityChangeTable
from rightsizer.aws.decisions import decide, find
from rightsizer.aws.journal import TableJournal
from rightsizer.aws.table import Table, document
from rightsizer.domain.capacity_change import CapacityChange, GroupPolicy
from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import Risk
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import SNOOZE_DAYS, Decision, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import ReadError
from rightsizer.flows.apply_orders import start_lost_rollbacks
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from tests.changing.world import NAME, World, an_option, world

PENDING = {"state": ProposalState.PENDING, "decision": None}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A deployed table with one pending proposal."""
    monkeypatch.setenv("COLUMNS", "300")
    with world(proposed=PENDING, by="cli:somebody") as w:  # no list of approvers: IAM alone decides
        monkeypatch.setenv("RIGHTSIZER_TABLE", "t")
        bootstrap.set_clock(lambda: w.box.clock.now)
        yield w
        bootstrap.reset()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    code = run([*arguments, "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def table_of(w: World) -> Table:
    return Table(w.box.client("dynamodb"), "t")


def test_an_approval_is_recorded_with_who_gave_it_and_starts_the_change(
    asked: World, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found, _ = said(capsys, "approve", asked.proposal.id)
    assert code == Exit.NOTHING_TO_DO
    assert found["proposal"]["state"] == "approved"
    assert found["proposal"]["by"].startswith("cli:arn:aws:")
    assert asked.start().state is ChangeState.RUNNING


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A deployed table with one pending proposal that offers a shadow test."""
    option = an_option(test_usd=Decimal("9.10"), test_hours=2.0, test_tells="how fast it is", untested_risk=Risk.HIGH)
    with world(option, proposed=PENDING, by="cli:somebody") as w:
        monkeypatch.setenv("RIGHTSIZER_TABLE", "t")
        bootstrap.set_clock(lambda: w.box.clock.now)
        yield w
        bootstrap.reset()


def test_the_test_of_a_proposal_is_recorded_as_test_first_and_begins(
    offered: World, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found, _ = said(capsys, "test", offered.proposal.id)
    assert (code, found["proposal"]["state"], found["proposal"]["test_first"]) == (Exit.NOTHING_TO_DO, "approved", True)
    assert offered.start().plan.kind is PlanKind.SHADOW_TEST
    _, listed, _ = said(capsys, "proposals")
    (row,) = listed["proposals"]
    assert (row["offers_test"], row["decision"]["test_first"]) == (True, True)
    assert [row["recommended"][key] for key in ("test_usd", "test_hours", "test_tells", "untested_risk")] == [
        "9.10",
        2.0,
        "how fast it is",
        3,
    ]


def test_approve_goes_without_the_test(offered: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, found, _ = said(capsys, "approve", offered.proposal.id)
    assert found["proposal"]["test_first"] is False
    assert offered.start().plan.kind is PlanKind.CHANGE


def test_a_proposal_without_a_test_has_none_to_run(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "test", asked.proposal.id)
    assert (code, "has no shadow test to run" in " ".join(err.split())) == (Exit.FAILED, True)


def test_a_second_answer_is_refused_and_says_who_was_first(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "reject", asked.proposal.id, "--reason", "the launch")
    code, _, err = said(capsys, "approve", asked.proposal.id)
    shown = asked.shown()
    assert code == Exit.FAILED
    assert "is rejected already by session (role " in " ".join(err.split())
    assert shown.state is ProposalState.REJECTED
    assert shown.decision is not None
    assert shown.decision.comment == "the launch"


def test_reject_stops_what_was_approved_and_has_not_begun(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "approve", asked.proposal.id)
    code, found, _ = said(capsys, "reject", asked.proposal.id)
    assert code == Exit.NOTHING_TO_DO
    assert found["proposal"]["stopped_by"].startswith("cli:arn:aws:")
    assert start_lost_rollbacks(asked.apply, asked.now, everything=False) == []
    assert asked.shown().state is ProposalState.REJECTED
    code, _, err = said(capsys, "reject", asked.proposal.id)
    assert (code, "is rejected already" in " ".join(err.split())) == (Exit.FAILED, True)


def test_a_snooze_is_recorded(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "snooze", asked.proposal.id)[0] == Exit.NOTHING_TO_DO
    assert asked.shown().state is ProposalState.SNOOZED


@pytest.mark.parametrize("days", SNOOZE_DAYS)
def test_a_snooze_of_these_days_is_stored_as_the_menu_in_slack_stores_it(
    days: int, asked: World, capsys: pytest.CaptureFixture[str]
) -> None:
    before = find(table_of(asked), asked.proposal.id)
    assert before is not None
    said(capsys, "snooze", asked.proposal.id, "--days", str(days))
    at_terminal = find(table_of(asked), asked.proposal.id)
    assert at_terminal is not None
    by = document(at_terminal)["decision"]["by"]
    table_of(asked).put(before)
    in_slack = Decision(ProposalState.SNOOZED, by, asked.now, "", False, days, 0)
    decide(table_of(asked), asked.proposal.id, in_slack, asked.now)
    assert find(table_of(asked), asked.proposal.id) == at_terminal


def test_a_reason_is_stored_as_the_form_in_slack_stores_it(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    before = find(table_of(asked), asked.proposal.id)
    assert before is not None
    said(capsys, "reject", asked.proposal.id, "--reason", "  the launch in May ")
    at_terminal = find(table_of(asked), asked.proposal.id)
    assert at_terminal is not None
    stored = document(at_terminal)["decision"]
    table_of(asked).put(before)
    decide(
        table_of(asked),
        asked.proposal.id,
        Decision(ProposalState.REJECTED, stored["by"], asked.now, "the launch in May", revision=0),
        asked.now,
    )
    assert find(table_of(asked), asked.proposal.id) == at_terminal


@pytest.mark.parametrize(
    "line", [("snooze", "--days", "14"), ("snooze", "--days", "0"), ("reject", "--reason", "x" * 501)]
)
def test_days_and_reasons_that_slack_does_not_have_are_wrong_usage(
    line: tuple[str, ...], asked: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([line[0], asked.proposal.id, *line[1:]]) == Exit.USAGE
    told = " ".join(capsys.readouterr().err.split())
    assert "7, 30, 90" in told or "501 characters" in told
    assert asked.shown().state is ProposalState.PENDING


def test_proposals_lists_what_waits_and_filters_by_state(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, found, _ = said(capsys, "proposals", "--state", "pending")
    _, none, _ = said(capsys, "proposals", "--state", "proven")
    assert [(p["endpoint"], p["state"], p["approvable"]) for p in found["proposals"]] == [(NAME, "pending", True)]
    assert none["proposals"] == []
    assert run(["proposals"]) == Exit.NOTHING_TO_DO
    assert asked.proposal.id in capsys.readouterr().out


def test_apply_approves_once_and_then_shows_the_journal(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, first, _ = said(capsys, "apply", asked.proposal.id)
    asked.start()
    code, second, _ = said(capsys, "apply", asked.proposal.id)
    assert (first["proposal"]["state"], first["change"]) == ("approved", None)
    assert code == Exit.NOTHING_TO_DO
    assert second["proposal"]["state"] == "applying"
    assert "CreateEndpointConfig" in {e["step"].split()[0] for e in second["change"]["journal"]}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"approvable": None}, "does not say whether it may be approved (approvable is neither true nor false)"),
        ({"approvable": "false"}, "does not say whether it may be approved"),
        ({"approvable": False, "enable": ""}, "its row does not name what would allow it; ask whoever runs rightsizer"),
        ({"approvable": False, "enable": "tag it: aws x"}, "cannot be carried out yet: tag it: aws x"),
    ],
)
def test_an_approval_of_what_may_not_be_approved_is_refused_with_the_cause(
    asked: World, capsys: pytest.CaptureFixture[str], fields: dict[str, Any], why: str
) -> None:
    table, key = asked.box.client("dynamodb"), {"pk": {"S": f"PROPOSAL#{asked.proposal.id}"}, "sk": {"S": "PROPOSAL"}}
    item = table.get_item(TableName="t", Key=key)["Item"]
    body = {name: value for name, value in (json.loads(item["doc"]["S"]) | fields).items() if value is not None}
    table.put_item(TableName="t", Item=item | {"doc": {"S": json.dumps(body)}})
    code, _, err = said(capsys, "approve", asked.proposal.id)
    assert (code, why in " ".join(err.split())) == (Exit.FAILED, True), err
    assert table.get_item(TableName="t", Key=key)["Item"]["state"] == {"S": "pending"}


def test_apply_does_not_overrule_a_no(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "reject", asked.proposal.id)
    code, _, err = said(capsys, "apply", asked.proposal.id)
    assert code == Exit.FAILED
    assert "nothing was recorded" in err


def test_a_proven_change_is_rolled_back_by_one_order(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "approve", asked.proposal.id)
    asked.start()
    change = asked.run(12)
    assert change.state is ChangeState.PROVEN
    code, found, _ = said(capsys, "rollback", change.id)
    assert (code, found["change"]["state"]) == (Exit.NOTHING_TO_DO, "returning")
    assert asked.run(6).state is ChangeState.ROLLED_BACK
    assert asked.box.config_name(NAME) == f"{NAME}-config"


def an_errand(asked: World, **fields: Any) -> CapacityChange:
    """An errand about the policy of the group `gpu`."""
    given: dict[str, Any] = {"state": ProposalState.APPROVED} | fields
    return CapacityChange(
        id="e-1",
        subject="gpu",
        owner="ml",
        work=GroupPolicy("gpu", {"old": True}, {"new": True}),
        headline="gpu can use more pools",
        reason=Reason(Code.MORE_POOLS, "two types are steadier than one"),
        created_at=asked.now,
        expires_at=asked.now + timedelta(days=14),
        approvable=True,
        **given,
    )


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("hard", [True, False])
def test_a_freeze_lists_the_errands_that_are_open(
    asked: World, capsys: pytest.CaptureFixture[str], sent: bool, hard: bool
) -> None:
    book = CapacityChangeTable(Table(asked.box.client("dynamodb"), "t"))
    how = ["--hard"] if hard else []
    assert said(capsys, "freeze", *how)[1]["errands"] == []
    fields = {"state": ProposalState.APPLYING, "sent_at": asked.now} if sent else {}
    book.add(an_errand(asked, outcome="Frozen: nothing is begun.", **fields))
    (row,) = said(capsys, "freeze", *how)[1]["errands"]
    line = "aws autoscaling update-auto-scaling-group"
    assert (row["id"], row["subject"], row["outcome"]) == ("e-1", "gpu", "Frozen: nothing is begun.")
    assert [one.startswith(line) for one in row["remaining"]] == ([True] if sent and hard else [])
    assert run(["freeze", *how]) == Exit.NOTHING_TO_DO
    out = capsys.readouterr().out
    assert f"e-1  gpu  {'applying' if sent else 'approved'}  Frozen: nothing is begun." in out
    assert (line in out) == (sent and hard)


def test_a_proven_policy_of_a_group_is_rolled_back_by_the_same_order(
    asked: World, capsys: pytest.CaptureFixture[str]
) -> None:
    book, now = CapacityChangeTable(Table(asked.box.client("dynamodb"), "t")), asked.now
    book.add(an_errand(asked, state=ProposalState.PROVEN, sent_at=now, done_at=now))
    code, found, _ = said(capsys, "rollback", "e-1")
    stored = book.load("e-1")
    assert (code, found["errand"]["state"]) == (Exit.NOTHING_TO_DO, "applying")
    assert stored is not None
    assert stored.back is not None
    assert stored.back.sentence.startswith("session (role ")
    assert book.due(now) == ("e-1",)
    code, _, err = said(capsys, "rollback", "e-1")
    assert (code, "nothing to undo" in " ".join(err.split())) == (Exit.FAILED, True)


@pytest.mark.parametrize("how", [["--json"], []])
def test_a_freeze_ends_well_beside_a_change_that_cannot_be_read_and_names_it(
    asked: World, capsys: pytest.CaptureFixture[str], how: list[str]
) -> None:
    said(capsys, "approve", asked.proposal.id)
    key = {"pk": {"S": f"CHANGE#{asked.start().id}"}, "sk": {"S": "CHANGE"}}
    table = asked.box.client("dynamodb")
    item = table.get_item(TableName="t", Key=key)["Item"]
    table.put_item(TableName="t", Item=item | {"doc": {"S": item["doc"]["S"].replace('"running"', '"paused"')}})
    assert run(["freeze", *how]) == Exit.NOTHING_TO_DO
    out = capsys.readouterr().out
    assert asked.journal.switch().frozen
    if how:
        (row,) = json.loads(out)["unreadable"]
        assert row["row"] == f"{key['pk']['S']} CHANGE"
        assert row["cause"].startswith("reading a Change: state: ")
    else:
        assert f"{key['pk']['S']} CHANGE cannot be read and is left as it is: reading a Change: state: " in out
        assert "use the release that wrote it, or restore it from a backup: docs/upgrade.md." in out


def spoilt(asked: World) -> str:
    """The key of the proposal's row after something wrote a state into it that nobody knows."""
    key = {"pk": {"S": f"PROPOSAL#{asked.proposal.id}"}, "sk": {"S": "PROPOSAL"}}
    table = asked.box.client("dynamodb")
    item = table.get_item(TableName="t", Key=key)["Item"]
    table.put_item(TableName="t", Item=item | {"doc": {"S": item["doc"]["S"].replace('"pending"', '"asked"')}})
    return f"{key['pk']['S']} PROPOSAL"


@pytest.mark.parametrize("command", ["proposals", "report"])
def test_a_row_that_cannot_be_read_is_named_with_its_remedy(
    asked: World, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    row = spoilt(asked)
    assert run([command]) == Exit.NOTHING_TO_DO
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if row in line]
    assert line.startswith(f"{row} cannot be read and is left as it is: reading a Proposal: state: ")
    assert line.rstrip().endswith("use the release that wrote it, or restore it from a backup: docs/upgrade.md.")
    assert "There is no such proposal" not in out, "there is one"


def test_the_json_lists_the_rows_that_cannot_be_read(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    row = spoilt(asked)
    _, listed, _ = said(capsys, "proposals")
    assert listed["proposals"] == []
    assert [one["row"] for one in listed["unreadable"]] == [row]
    _, told, _ = said(capsys, "report")
    assert [one["key"] for one in told["unread"]] == [row]


def test_an_order_about_a_row_that_cannot_be_read_is_one_sentence_with_a_remedy(
    asked: World, capsys: pytest.CaptureFixture[str]
) -> None:
    spoilt(asked)
    assert run(["apply", asked.proposal.id]) == Exit.FAILED
    said = " ".join(capsys.readouterr().err.split())
    assert "error: the stored row cannot be read: reading a Proposal: state: " in said
    assert said.endswith("use the release that wrote it, or restore it from a backup: docs/upgrade.md")


def test_what_does_not_exist_is_said_in_one_line(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "rollback", "c-none")
    assert (code, "there is no change c-none" in err) == (Exit.FAILED, True)
    code, _, err = said(capsys, "approve", "p-none")
    assert (code, "there is no such proposal" in err) == (Exit.FAILED, True)
    code, _, err = said(capsys, "apply", "p-" + "0" * 20)
    assert f"see rightsizer proposals --region {asked.box.region}" in " ".join(err.split())


def test_a_freeze_stops_the_next_step_and_lists_what_is_open(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "approve", asked.proposal.id)
    code, found, _ = said(capsys, "freeze", "--hard")
    asked.start()
    assert (code, found["freeze"]["hard"]) == (Exit.NOTHING_TO_DO, True)
    assert asked.change.state is ChangeState.PLANNED
    _, thawed, _ = said(capsys, "freeze", "--off")
    assert [row["endpoint"] for row in thawed["open"]] == [NAME]
    assert asked.run(12).state is ChangeState.PROVEN


def test_whoever_approves_under_a_freeze_reads_that_nothing_begins_yet(
    asked: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["freeze"]) == Exit.NOTHING_TO_DO
    assert run(["approve", asked.proposal.id]) == Exit.NOTHING_TO_DO
    told = " ".join(capsys.readouterr().out.split())
    assert "Changes are frozen by session (role apply): it begins once that is lifted" in told
    assert told.count(f": rightsizer freeze --off --region {asked.box.region}") == 2, "the freeze says it too"
    assert "The stack starts" not in told


def test_an_approval_is_recorded_though_nobody_can_read_whether_changes_are_frozen(
    asked: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(_: object) -> Switch:
        raise ReadError("dynamodb:GetItem timed out")

    monkeypatch.setattr(TableJournal, "switch", unread)
    assert run(["approve", asked.proposal.id]) == Exit.NOTHING_TO_DO
    told = capsys.readouterr().out
    assert "is approved" in told
    assert "Whether changes are frozen is not known: dynamodb:GetItem timed out" in told


@pytest.mark.parametrize(
    "command", ["approve p-1", "reject p-1", "snooze p-1", "apply p-1", "rollback c-1", "freeze", "wake --all"]
)
def test_without_a_deployed_stack_an_order_is_refused_and_says_so(
    command: str, capsys: pytest.CaptureFixture[str], asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RIGHTSIZER_TABLE")
    code, _, err = said(capsys, *command.split(), "--stack", "absent")
    assert code == Exit.FAILED
    assert "looking for the stack absent in eu-west-1: nothing of that name is deployed" in " ".join(err.split())
