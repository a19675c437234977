"""Who may decide, decides once; every refusal has its own answer."""

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from rightsizer.errors import ConflictError, ReadError, RightsizerError, VanishedError
from rightsizer.flows.respond import respond
from rightsizer.model.proposal import Decision, ProposalState
from rightsizer.model.trigger import Click, NotClicked, NotVerified, Verb
from tests.samples import NOW

APPROVERS = frozenset({"U1"})


class Recorder:
    def __init__(self, error: RightsizerError | None = None) -> None:
        self.recorded: list[tuple[str, Decision]] = []
        self.error = error

    def __call__(self, proposal_id: str, decision: Decision, now: datetime) -> Any:
        if self.error:
            raise self.error
        self.recorded.append((proposal_id, decision))


def refused_back(proposal_id: str, by: str, now: datetime) -> Any:
    raise AssertionError(f"nobody asked to undo {proposal_id}")


def click(verb: Verb = "approve", user: str = "U1") -> Click:
    return Click(verb, "p-1", user, "T1", "C1", "")


@pytest.mark.parametrize(
    ("verb", "state"),
    [
        ("approve", ProposalState.APPROVED),
        ("reject", ProposalState.REJECTED),
        ("snooze", ProposalState.SNOOZED),
    ],
)
def test_a_click_of_an_approver_is_recorded(verb: Verb, state: ProposalState) -> None:
    recorder = Recorder()
    answer = respond(click(verb), APPROVERS, recorder, refused_back, NOW)
    assert recorder.recorded == [("p-1", Decision(state, "slack:U1", NOW))]
    assert (answer.status, answer.recorded) == (200, True)


def test_a_stranger_records_nothing_and_sees_so() -> None:
    recorder = Recorder()
    answer = respond(click(user="U2"), APPROVERS, recorder, refused_back, NOW)
    assert recorder.recorded == []
    assert answer.status == 403
    assert "list of approvers" in answer.text


def test_with_an_empty_list_nobody_decides() -> None:
    recorder = Recorder()
    assert respond(click(), frozenset(), recorder, refused_back, NOW).status == 403
    assert recorder.recorded == []


def test_a_click_on_the_details_link_records_nothing() -> None:
    recorder = Recorder()
    assert respond(click("details", "U2"), APPROVERS, recorder, refused_back, NOW).status == 200
    assert recorder.recorded == []


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ConflictError("the proposal p-1 is rejected already by slack:U2"), 200, "rejected already by slack:U2"),
        (VanishedError("there is no such proposal"), 200, "no such proposal"),
        (ReadError("DynamoDB is away"), 503, "Nothing was recorded"),
    ],
)
def test_each_failure_has_its_answer(error: RightsizerError, status: int, words: str) -> None:
    answer = respond(click(), APPROVERS, Recorder(error), refused_back, NOW)
    assert answer.status == status
    assert words in json.loads(answer.response()["body"])["text"]
    assert not answer.recorded


def test_what_slack_did_not_sign_is_told_nothing() -> None:
    answer = respond(NotVerified(401, "the signature does not fit"), APPROVERS, Recorder(), refused_back, NOW)
    assert answer.response() == {"statusCode": 401, "body": ""}
    assert "signature" in answer.log


def test_what_asks_nothing_is_acknowledged() -> None:
    assert respond(NotClicked("a view"), APPROVERS, Recorder(), refused_back, NOW).response() == {
        "statusCode": 200,
        "body": "",
    }


def test_responding_imports_neither_pydantic_nor_boto3_nor_powertools() -> None:
    wanted = "{'pydantic', 'boto3', 'botocore', 'aws_lambda_powertools'}"
    code = f"import sys, rightsizer.flows.respond; print(sorted({wanted} & set(sys.modules)))"
    root = str(Path(__file__).parents[2] / "shared")
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": root}
    )
    assert ran.stdout.strip() == "[]"


def test_an_approver_asks_for_the_way_back_by_a_button() -> None:
    asked: list[tuple[str, str]] = []

    def ask_back(proposal_id: str, by: str, now: datetime) -> None:
        asked.append((proposal_id, by))

    answer = respond(click("rollback"), APPROVERS, Recorder(), ask_back, NOW)
    assert asked == [("p-1", "slack:U1")]
    assert (answer.status, answer.recorded) == (200, True)
    assert respond(click("rollback", "U2"), APPROVERS, Recorder(), ask_back, NOW).status == 403
    assert asked == [("p-1", "slack:U1")]


def test_a_way_back_that_was_asked_before_is_answered_so() -> None:
    def ask_back(proposal_id: str, by: str, now: datetime) -> None:
        raise ConflictError("slack:U2 asked for the way back of p-1 already")

    answer = respond(click("rollback"), APPROVERS, Recorder(), ask_back, NOW)
    assert (answer.status, answer.recorded) == (200, False)
    assert "U2 asked" in answer.text
