"""Who may decide, decides once; every refusal has its own answer."""

import subprocess
import sys
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.trigger import (
    ButtonAsk,
    Click,
    DecisionAsked,
    Interaction,
    NotClicked,
    NotVerified,
    OptionTaken,
    PageAsked,
    RollbackAsked,
    UnknownButton,
    WakePressed,
)
from rightsizer.errors import (
    ConflictError,
    InputError,
    ReadError,
    RightsizerError,
    ThrottledError,
    VanishedError,
    WriteRefusedError,
)
from rightsizer.flows.respond import Answer, Decide, RespondPorts, respond
from tests.samples import NOW

APPROVERS = frozenset({"U1"})


class Recorder:
    def __init__(self, error: RightsizerError | None = None) -> None:
        self.recorded: list[tuple[str, Decision]] = []
        self.error = error
        self.document: dict[str, Any] = {}

    def __call__(self, proposal_id: str, decision: Decision, now: datetime) -> dict[str, Any]:
        if self.error:
            raise self.error
        self.recorded.append((proposal_id, decision))
        return self.document or {"state": str(decision.state)}


def refused_back(proposal_id: str, by: str, now: datetime) -> Any:
    raise AssertionError(f"nobody asked to undo {proposal_id}")


@dataclass
class Person:
    """Stands for whoever clicked: what was answered, or why nothing could be."""

    told: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    deaf: RightsizerError | None = None
    no_modal: RightsizerError | None = None
    awake: RightsizerError | None = None
    modals: list[str] = field(default_factory=list)
    taken: list[tuple[str, int, int, str]] = field(default_factory=list)
    refusal: Any = lambda *_: ""

    def take(self, proposal_id: str, revision: int, place: int, by: str, now: datetime) -> dict[str, Any]:
        self.taken.append((proposal_id, revision, place, by))
        return {"state": "pending"}

    def wake(self, name: str, stay: timedelta, user: str, now: datetime) -> str:
        if self.awake:
            raise self.awake
        return f"Recorded: {name} serves for {stay} by {user}"

    def open_reason_form(self, click: Click, asked: DecisionAsked) -> None:
        self._open(f"why {asked.proposal_id}")

    def show_details(self, click: Click, proposal: str, link: str) -> None:
        self._open(f"details {proposal} {link}")

    def say(self, click: Click, text: str) -> dict[str, Any]:
        self._open(text)
        return {"response_action": "update", "says": text} if click.is_form else {}

    def _open(self, said: str) -> None:
        if self.no_modal:
            raise self.no_modal
        self.modals.append(said)

    def tell(self, click: Click, text: str, link: str) -> None:
        if self.deaf:
            raise self.deaf
        self.told.append(text)
        self.links.append(link)


def no_link(key: str) -> str:
    raise AssertionError(f"nobody asked for {key}")


def answered(
    interaction: Interaction,
    approvers: frozenset[str],
    decide: Decide,
    ask_back: Any = refused_back,
    person: Person | None = None,
    link: Any = no_link,
) -> Answer:
    one = person or Person()
    ports = RespondPorts(
        lambda: approvers, decide, ask_back, link, one.tell, one.take, one.open_reason_form, one.show_details, one.say,
        one.wake, one.refusal,
    )  # fmt: skip
    return respond(interaction, ports, NOW)


APPROVE, REJECT = DecisionAsked("approve", "p-1"), DecisionAsked("reject", "p-1")
SNOOZE, TEST = DecisionAsked("snooze", "p-1"), DecisionAsked("test", "p-1")
DETAILS, BACK, HOUR = PageAsked("details", "p-1"), RollbackAsked("p-1"), timedelta(hours=1)


def click(asked: ButtonAsk = APPROVE, user: str = "U1", **more: Any) -> Click:
    """A click; a rejection comes with its form."""
    is_form = isinstance(asked, DecisionAsked) and asked.verb == "reject"
    return replace(Click(asked, user, "T1", "C1", "", is_form=is_form), **more)


@pytest.mark.parametrize(
    ("asked", "state"),
    [(APPROVE, ProposalState.APPROVED), (REJECT, ProposalState.REJECTED), (SNOOZE, ProposalState.SNOOZED)],
)
def test_a_click_of_an_approver_is_recorded(asked: DecisionAsked, state: ProposalState) -> None:
    recorder = Recorder()
    person = Person()
    answer = answered(click(asked), APPROVERS, recorder, person=person)
    assert recorder.recorded == [("p-1", Decision(state, "slack:U1", NOW, revision=0))]
    assert (answer.status, answer.recorded) == (200, True)
    days = " for 30 days" if asked is SNOOZE else ""
    assert person.told == [f"Recorded: {state}{days}."]


def test_run_the_test_is_an_approval_with_the_test_first_and_says_what_follows() -> None:
    recorder, person = Recorder(), Person()
    answered(click(TEST), APPROVERS, recorder, person=person)
    assert recorder.recorded == [
        ("p-1", Decision(ProposalState.APPROVED, "slack:U1", NOW, test_first=True, revision=0))
    ]
    (told,) = person.told
    assert told.startswith(
        "Recorded: the shadow test runs first. The change follows where the test proves well, unless"
    )
    assert "four eyes" in told
    answered(click(TEST, user="U2"), APPROVERS, recorder)
    assert len(recorder.recorded) == 1, "the list of approvers holds for it as for any approval"


def test_a_stranger_records_nothing_and_is_told_what_to_do() -> None:
    recorder, person = Recorder(), Person()
    answer = answered(click(user="U2"), APPROVERS, recorder, person=person)
    assert recorder.recorded == []
    assert answer.response() == {"statusCode": 200, "body": ""}
    for part in ("Nothing was recorded", "you are not on the list", "U2", "Approvers", "terminal"):
        assert part in person.told[0]


def test_whom_a_list_of_the_policy_document_refuses_is_sent_to_that_list_and_a_reader_asks_none() -> None:
    one, asked = Person(), []
    why = "the Slack user U2 is not on the list owners.search.approvers of the policy document"

    def approvers() -> frozenset[str]:
        asked.append("policy")
        return APPROVERS

    ports = RespondPorts(
        approvers, Recorder(), refused_back, "https://s3/{}".format, one.tell, one.take, one.open_reason_form,
        one.show_details, one.say, one.wake, lambda proposal, by: why if (proposal, by) == ("p-1", "slack:U2") else "",
    )  # fmt: skip
    respond(click(DETAILS, "U2"), ports, NOW)
    respond(click(PageAsked("report", "2026-11-16_2026-11-23"), "U2"), ports, NOW)
    assert asked == [], "a page is for everybody: nothing waits for Parameter Store"
    assert respond(click(user="U2"), ports, NOW).status == 200
    assert why in one.told[-1]
    assert "parameter Approvers" not in one.told[-1]


def test_a_list_that_cannot_be_asked_for_its_refusal_refuses_all_the_same() -> None:
    def unread(proposal: str, by: str) -> str:
        raise ReadError("DynamoDB is away")

    one = Person(refusal=unread)
    assert not answered(click(user="U2"), APPROVERS, Recorder(), person=one).recorded
    assert "Nothing was recorded" in one.told[0]


def test_with_an_empty_list_nobody_decides_and_everybody_is_told_why() -> None:
    recorder, person = Recorder(), Person()
    assert answered(click(), frozenset(), recorder, person=person).status == 200
    assert recorder.recorded == []
    assert "nobody is on the list of approvers yet" in person.told[0]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConflictError("the proposal p-1 is rejected already by slack:U2"), "rejected already by slack:U2"),
        (VanishedError("there is no such proposal"), "no such proposal"),
        (ReadError("DynamoDB is away"), "Nothing was recorded"),
    ],
)
def test_each_failure_is_an_answer_and_no_warning_triangle(error: RightsizerError, words: str) -> None:
    person = Person()
    answer = answered(click(), APPROVERS, Recorder(error), person=person)
    assert answer.response() == {"statusCode": 200, "body": ""}
    assert words in person.told[0]
    assert not answer.recorded


@pytest.mark.parametrize("deaf", [ThrottledError("no answer"), InputError("no address of Slack's")])
def test_an_answer_that_is_lost_neither_undoes_nor_repeats_the_decision(deaf: RightsizerError) -> None:
    recorder = Recorder()
    answer = answered(click(), APPROVERS, recorder, person=Person(deaf=deaf))
    assert len(recorder.recorded) == 1
    assert (answer.status, answer.recorded) == (200, True)
    assert "the person was not told" in answer.log


@pytest.mark.parametrize(("user", "error", "status"), [("U2", None, 403), ("U1", ReadError("DynamoDB is away"), 503)])
def test_a_refusal_that_cannot_be_told_is_a_warning_triangle(
    user: str, error: RightsizerError | None, status: int
) -> None:
    person = Person(deaf=ThrottledError("no answer"))
    assert answered(click(user=user), APPROVERS, Recorder(error), person=person).status == status


def test_a_click_on_the_report_is_answered_with_a_link_and_records_nothing() -> None:
    recorder, person = Recorder(), Person()
    name = "2026-11-16_2026-11-23"
    answer = answered(
        click(PageAsked("report", name), "U2"), APPROVERS, recorder, person=person, link=lambda k: f"https://s3/{k}"
    )
    assert recorder.recorded == []
    assert (answer.status, person.links) == (200, [f"https://s3/reports/{name}.html"])
    assert "15 minutes" in person.told[0]


def test_details_open_as_a_modal_and_as_a_link_where_slack_opens_none() -> None:
    person, link = Person(), "https://s3/pages/p-1.html"
    answer = answered(click(DETAILS, "U2"), APPROVERS, Recorder(), person=person, link=lambda k: f"https://s3/{k}")
    assert (answer.status, person.modals, person.told) == (200, [f"details p-1 {link}"], [])
    late = Person(no_modal=WriteRefusedError("opening", "expired_trigger_id", ""))
    answer = answered(click(DETAILS, "U2"), APPROVERS, Recorder(), person=late, link=lambda k: f"https://s3/{k}")
    assert (answer.status, late.links) == (200, [link])


def test_reject_asks_why_before_anything_is_recorded() -> None:
    recorder, person = Recorder(), Person()
    answer = answered(click(REJECT, is_form=False), APPROVERS, recorder, person=person)
    assert (answer.status, answer.recorded, person.modals, person.told) == (200, False, ["why p-1"], [])
    assert recorder.recorded == []
    sent = click(replace(REJECT, comment="launch in May"), view_id="V1")
    answer = answered(sent, APPROVERS, recorder, person=person)
    assert recorder.recorded[0][1].comment == "launch in May"
    assert (answer.response(), person.told) == ({"statusCode": 200, "body": ""}, ["Recorded: rejected."])


def test_a_form_that_does_not_open_in_time_says_to_press_again() -> None:
    person = Person(no_modal=WriteRefusedError("opening", "expired_trigger_id", ""))
    answered(click(REJECT, is_form=False), APPROVERS, Recorder(), person=person)
    assert "Nothing was recorded" in person.told[0]
    assert "Press the button again" in person.told[0]


def test_a_stranger_is_not_even_asked_why() -> None:
    person = Person()
    answered(click(REJECT, "U2", is_form=False), APPROVERS, Recorder(), person=person)
    assert person.modals == []
    assert "not on the list" in person.told[0]


def test_a_refusal_of_a_form_stands_in_the_modal_and_so_does_an_answer_that_is_lost() -> None:
    refused = Recorder(ConflictError("it is approved already by slack:U9"))
    answer = answered(click(REJECT, view_id="V1"), APPROVERS, refused, person=Person())
    assert "approved already" in answer.response()["body"]
    lost = Person(deaf=InputError("no address"))
    answer = answered(click(REJECT, view_id="V1"), APPROVERS, Recorder(), person=lost)
    assert answer.recorded
    assert "Recorded: rejected." in answer.response()["body"]


def test_another_option_is_taken_by_an_approver_only_and_said_in_the_modal() -> None:
    person = Person()
    answered(click(OptionTaken("p-1", 0, 2), "U2", view_id="V1"), APPROVERS, Recorder(), person=person)
    assert person.taken == []
    answer = answered(click(OptionTaken("p-1", 1, 2), view_id="V1"), APPROVERS, Recorder(), person=person)
    assert person.taken == [("p-1", 1, 2, "slack:U1")]
    assert answer.recorded
    assert "waits for Approve" in person.modals[-1]


@pytest.mark.parametrize(("number", "days"), [(7, 7), (30, 30), (90, 90), (0, 30), (36500, 30)])
def test_a_snooze_lasts_one_of_the_times_that_are_offered(number: int, days: int) -> None:
    recorder, person = Recorder(), Person()
    answered(click(replace(SNOOZE, days=number)), APPROVERS, recorder, person=person)
    assert recorder.recorded[0][1].snooze_days == days
    assert person.told == [f"Recorded: snoozed for {days} days."]


@pytest.mark.parametrize("name", ["../reports/x", "a/b", "p-1\n", "", "x" * 300])
def test_no_other_file_of_the_bucket_is_linked(name: str) -> None:
    person = Person()
    answered(click(PageAsked("details", name)), APPROVERS, Recorder(), person=person)
    assert (person.told, person.links) == (["There is no such page."], [""])


def test_a_link_that_cannot_be_signed_is_told() -> None:
    def unsigned(key: str) -> str:
        raise ReadError("no credentials")

    person = Person()
    assert answered(click(DETAILS), APPROVERS, Recorder(), person=person, link=unsigned).status == 200
    assert "try again" in person.told[0]


def test_what_slack_did_not_sign_is_told_nothing() -> None:
    answer = answered(NotVerified(401, "the signature does not fit"), APPROVERS, Recorder())
    assert answer.response() == {"statusCode": 401, "body": ""}
    assert "signature" in answer.log


def test_what_asks_nothing_is_acknowledged() -> None:
    assert answered(NotClicked("a view"), APPROVERS, Recorder()).response() == {
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

    def ask_back(proposal_id: str, by: str, now: datetime) -> dict[str, Any]:
        asked.append((proposal_id, by))
        return {"state": "proven", "asked_back_by": by}

    person = Person()
    answer = answered(click(BACK), APPROVERS, Recorder(), ask_back, person)
    assert asked == [("p-1", "slack:U1")]
    assert (answer.status, answer.recorded) == (200, True)
    assert person.told == ["Recorded: the endpoint goes back to what it ran before."]
    assert not answered(click(BACK, "U2"), APPROVERS, Recorder(), ask_back).recorded
    assert asked == [("p-1", "slack:U1")]


@pytest.mark.parametrize("asked", [BACK, REJECT])
def test_who_stops_what_was_approved_hears_that_it_does_not_begin(asked: ButtonAsk) -> None:
    person, recorder = Person(), Recorder()
    recorder.document = {"state": "approved", "asked_back_by": "slack:U1"}
    answered(click(asked), APPROVERS, recorder, lambda *given: recorder.document, person)
    assert person.told == [
        "Recorded: what was approved is stopped. Where it began in this moment, the endpoint goes back."
    ]


def test_a_way_back_that_was_asked_before_is_answered_so() -> None:
    def ask_back(proposal_id: str, by: str, now: datetime) -> None:
        raise ConflictError("slack:U2 asked for the rollback of p-1 already")

    person = Person()
    answer = answered(click(BACK), APPROVERS, Recorder(), ask_back, person)
    assert (answer.status, answer.recorded) == (200, False)
    assert "U2 asked" in person.told[0]


def test_a_wake_of_somebody_on_no_list_asks_for_no_proposal_of_that_name() -> None:
    one, pressed = Person(refusal=lambda proposal, by: f"asked of {proposal!r} {by}"), WakePressed("chat", HOUR)
    answer = answered(click(pressed, "U2"), APPROVERS, Recorder(), person=one)
    assert (answer.recorded, answer.log.split(":")[0]) == (False, "U2 clicked wake on the endpoint chat")
    assert "asked of '' slack:U2" in one.told[0]
    assert answered(click(pressed), APPROVERS, Recorder()).text == "Recorded: chat serves for 1:00:00 by U1"


def test_a_button_of_another_release_is_named_in_the_log() -> None:
    person = Person()
    answer = answered(click(UnknownButton("pause"), "U2"), APPROVERS, Recorder(), person=person)
    assert (answer.recorded, "no such button" in person.told[0]) == (False, True)
    assert answer.log == "U2 clicked pause: no button of this release, or without a proposal"
