"""A click in Slack becomes one recorded decision, or an answer that says why not and what to do.

On the path of `respond`: neither pydantic nor boto3 nor Powertools here. Slack takes no message in the HTTP answer to a
click and shows a warning triangle when that is not 200. So the person is told by the click's own `response_url`, and
the HTTP answer is another than 200 only where nothing was recorded and the person could not be told either.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, assert_never

from rightsizer.domain.approvers import may_decide
from rightsizer.domain.plan import own_command
from rightsizer.domain.proposal import SNOOZE_DAYS, USUAL_SNOOZE, DecidedBy, Decision, DecisionSource, ProposalState
from rightsizer.domain.trigger import (
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
from rightsizer.errors import ConflictError, NotApproverError, RightsizerError, VanishedError

DECIDES: Mapping[str, ProposalState] = {
    "approve": ProposalState.APPROVED,
    "test": ProposalState.APPROVED,
    "reject": ProposalState.REJECTED,
    "snooze": ProposalState.SNOOZED,
}
PAGES: Mapping[str, str] = {"details": "pages/{}.html", "report": "reports/{}.html"}
"""Where the pages are that a button asks for: anybody in the channel may read what the channel was told."""
TAKEN = "Recorded: the proposal asks for that option now. The message shows it, and waits for Approve."
UNKNOWN = (
    "Nothing was recorded: the release that runs now has no such button or form, or cannot read what it carries. Press "
    "a button of the newest message about the endpoint; a new one comes within a day where something waits."
)
FORM_LOST = (
    "Nothing was recorded: the form did not open in time, as Slack waits three seconds for it. Press the button again; "
    "the second try is fast."
)
TEST_RECORDED = (
    "Recorded: the shadow test runs first. The change follows where the test proves well, unless the rule of four eyes "
    "asks for somebody else's approval."
)
STOP_RECORDED = "Recorded: what was approved is stopped. Where it began in this moment, the endpoint goes back."
NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
type Decide = Callable[[str, Decision, datetime], dict[str, Any]]
"""Records one decision by a conditional write: proposal id, decision, now. Returns the proposal's document after it."""
type Take = Callable[[str, int, int, str, datetime], dict[str, Any]]
"""Puts another option in the recommended one's place: proposal id, revision, place, who, now. Returns the same."""
type AskWake = Callable[[str, timedelta, str, datetime], str]
"""Leaves an order to wake an endpoint: its name, the stay, the Slack user, now. Returns what the person is told.

ConflictError with the reason and what to do where it is not taken, NotApproverError where the person may not."""
type Recorded = DecisionAsked | OptionTaken | RollbackAsked | WakePressed
"""What only an approver may ask for."""
type AskBack = Callable[[str, str, datetime], dict[str, Any]]
"""Records by a conditional write the order to undo or stop a change: proposal id, who asks, now. Returns the same."""


@dataclass(frozen=True, slots=True)
class RespondPorts:
    """Ports of the answer to a click."""

    approvers: Callable[[], frozenset[str]]
    """Slack user ids of whoever may decide on something; asked only where a click decides."""
    decide: Decide
    ask_back: AskBack
    link: Callable[[str], str]
    """Signs a link to a file of the bucket, good for some minutes. RightsizerError."""
    tell: Callable[[Click, str, str], None]
    """Tells the person who clicked: text, and a link or nothing. RightsizerError when it was not taken."""
    take: Take
    open_reason_form: Callable[[Click, DecisionAsked], None]
    """Opens the form that asks why. RightsizerError where Slack did not open it."""
    show_details: Callable[[Click, str, str], None]
    """Opens the details of a proposal as a modal: its id, and a link to the page or nothing.

    RightsizerError where it did not open."""
    say_in_view: Callable[[Click, str], dict[str, Any]]
    """Says something in the modal in which was clicked; of a form that was sent, returns the answer that says it.

    RightsizerError where Slack did not take it."""
    wake: AskWake
    refusal: Callable[[str, str], str] = lambda *_: ""
    """Why a list of the policy document lets a person not decide: the proposal's id or none, who. Empty: none does."""
    freezer: Callable[[], str] = lambda: ""
    """Who froze all changes; empty where nobody did. RightsizerError."""
    region: str = ""
    """Region of the stack, for command lines."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to Slack, to the person, and for the log."""

    status: int
    """For Slack, where the person could not be told; 200 once the person was."""
    text: str
    """For the person who clicked; empty where there is nothing to say."""
    log: str
    """For the operator: who did what, and why it was refused."""
    recorded: bool = False
    link: str = ""
    """A page that the person asked for."""
    view: Mapping[str, Any] | None = None
    """What the modal shows after its form was sent; None closes it."""
    is_told: bool = False
    """Whether the person saw the answer already: a modal opened."""

    def response(self) -> dict[str, Any]:
        """The answer as a Function URL returns it: a status, and what a modal shows next."""
        if self.view is None:
            return {"statusCode": self.status, "body": ""}
        headers = {"Content-Type": "application/json"}
        return {"statusCode": 200, "headers": headers, "body": json.dumps(self.view)}


def respond(interaction: Interaction, ports: RespondPorts, now: datetime) -> Answer:
    """Authorise the person, record the decision or the wish to go back once, and tell the person.

    An answer that cannot be told neither undoes nor repeats what was recorded.
    """
    match interaction:
        case NotVerified(status, sentence):
            return Answer(status, "", f"refused: {sentence}")
        case NotClicked(sentence):
            return Answer(200, "", f"nothing to do: {sentence}")
        case Click():
            return _tell_answer(interaction, _answer(interaction, ports, now), ports)
        case unreachable:
            assert_never(unreachable)


def _answer(click: Click, ports: RespondPorts, now: datetime) -> Answer:
    asked = click.asked
    if isinstance(asked, UnknownButton):
        return Answer(200, UNKNOWN, f"{_what(click)}: no button of this release, or without a proposal")
    if isinstance(asked, PageAsked):
        return _page_answer(click, asked, ports)
    approvers = ports.approvers()
    if not is_approver(click.user, approvers):
        whom = "nobody is on the list of approvers" if not approvers else "they are not on the list of approvers"
        return Answer(403, _approver_refusal(click, asked, approvers, ports), f"{_what(click)}: {whom}")
    if isinstance(asked, DecisionAsked) and asked.verb == "reject" and not click.is_form:
        return _open_reason_form(click, asked, ports)
    return _record(click, asked, ports, now)


def _open_reason_form(click: Click, decision_asked: DecisionAsked, ports: RespondPorts) -> Answer:
    what = f"{click.user} was asked why {decision_asked.proposal_id[:80]} is rejected"
    try:
        ports.open_reason_form(click, decision_asked)
    except RightsizerError as error:
        return Answer(200, FORM_LOST, f"{what}: {error}")
    return Answer(200, "", what, is_told=True)


def _what(click: Click) -> str:
    """Who clicked what, for the log."""
    match click.asked:
        case DecisionAsked(verb, subject):
            text = f"clicked {verb} on {subject[:80]}"
        case OptionTaken(subject, _, place):
            text = f"clicked option {place} of {subject[:80]}"
        case RollbackAsked(subject):
            text = f"clicked rollback on {subject[:80]}"
        case WakePressed(endpoint):
            text = f"clicked wake on the endpoint {endpoint[:80]}"
        case PageAsked(page, name):
            text = f"asked for the page {page} {name[:80]}"
        case UnknownButton(action):
            text = f"clicked {action[:80]}"
        case unreachable:
            assert_never(unreachable)
    return f"{click.user} {text}"


def _tell_answer(click: Click, answer: Answer, ports: RespondPorts) -> Answer:
    """Tell the person: in the modal in which was clicked, else by the click's response_url."""
    if answer.is_told:
        return answer
    try:
        if click.view_id and (not answer.recorded or not click.is_form):
            return replace(answer, status=200, view=ports.say_in_view(click, answer.text) or None)
        ports.tell(click, answer.text, answer.link)
    except RightsizerError as error:
        lost = replace(answer, log=f"{answer.log}; the person was not told: {error}")
        return replace(lost, status=200, view=ports.say_in_view(click, answer.text)) if click.is_form else lost
    return replace(answer, status=200)


def _page_answer(click: Click, page_asked: PageAsked, ports: RespondPorts) -> Answer:
    what = _what(click)
    if not NAME.fullmatch(page_asked.name):
        return Answer(404, "There is no such page.", f"{what}: no name of a page")
    try:
        link = ports.link(PAGES[page_asked.page].format(page_asked.name))
    except RightsizerError as error:
        return Answer(503, "The link could not be made; please try again in a minute.", f"{what}: {error}")
    if page_asked.page == "details":
        try:
            ports.show_details(click, page_asked.name, link)
        except RightsizerError as error:
            what = f"{what}; the modal did not open: {error}"
        else:
            return Answer(200, "", what, is_told=True)
    text = (
        "The page opens for at most 15 minutes, for you only. Where it does not open, press the button of the message "
        "again for another link."
    )
    return Answer(200, text, what, link=link)


def _record(click: Click, asked: Recorded, ports: RespondPorts, now: datetime) -> Answer:
    what = _what(click)
    try:
        said = _recorded(click.user, asked, ports, now)
    except (ConflictError, VanishedError, NotApproverError) as error:
        return Answer(200, _sentence(error), f"{what}: {error}")
    except RightsizerError as error:
        text = (
            "Nothing was recorded, because the table did not answer; please try again in a minute. If it goes on, "
            "whoever runs rightsizer finds the cause in the log of the function respond."
        )
        return Answer(503, text, f"{what}: {error}")
    return Answer(200, said, what, recorded=True)


def _recorded(user: str, asked: Recorded, ports: RespondPorts, now: datetime) -> str:
    """Record what was asked for; what the person is told."""
    by = DecidedBy(DecisionSource.SLACK, user).text
    match asked:
        case RollbackAsked(proposal):
            stops = _is_stop(ports.ask_back(proposal, by, now))
            return STOP_RECORDED if stops else "Recorded: the endpoint goes back to what it ran before."
        case WakePressed(endpoint, stay):
            return ports.wake(endpoint, stay, user, now)
        case OptionTaken(proposal, revision, place):
            ports.take(proposal, revision, place, by, now)
            return TAKEN
        case DecisionAsked():
            return _decide(asked, ports, by, now)
        case unreachable:
            assert_never(unreachable)


def _decide(decision_asked: DecisionAsked, ports: RespondPorts, by: str, now: datetime) -> str:
    """Record the decision; what the person is told."""
    state, test_first = DECIDES[decision_asked.verb], decision_asked.verb == "test"
    days = decision_asked.days if decision_asked.days in SNOOZE_DAYS else USUAL_SNOOZE
    decision = Decision(state, by, now, decision_asked.comment, test_first, days, decision_asked.revision)
    stops = _is_stop(ports.decide(decision_asked.proposal_id, decision, now))
    if state is ProposalState.SNOOZED:
        return f"Recorded: snoozed for {days} days."
    text = TEST_RECORDED if test_first else STOP_RECORDED if stops else f"Recorded: {state}."
    return f"{text}{_freeze_note(ports)}" if state is ProposalState.APPROVED else text


def _freeze_note(ports: RespondPorts) -> str:
    """What holds back what was just approved, and how that ends; empty where nothing does, or nothing could be read."""
    try:
        by = ports.freezer()
    except RightsizerError:
        return ""  # the approval is recorded, and `apply` asks again
    command = own_command("freeze --off", ports.region)
    lifted = f"it begins once somebody lifts that at a terminal with {command}, within 7 days"
    return f" Changes are frozen by {by}: {lifted}." if by else ""


def _is_stop(recorded: dict[str, Any]) -> bool:
    """Whether the proposal's document, after an order, says that what was approved is not to begin."""
    return recorded.get("state") == ProposalState.APPROVED and bool(recorded.get("asked_back_by"))


def is_approver(user: str, approvers: frozenset[str]) -> bool:
    """Whether the person with this Slack user id may decide. An empty list lets nobody.

    Nothing but the list keeps the public door: `may_decide` has the reason, and why it is otherwise in `apply`.
    """
    return may_decide(is_listed=user in approvers, has_list=bool(approvers), is_behind_iam=False)


def _approver_refusal(click: Click, asked: Recorded, approvers: frozenset[str], ports: RespondPorts) -> str:
    proposal = "" if isinstance(asked, WakePressed) else asked.proposal_id
    try:
        text = ports.refusal(proposal, DecidedBy(DecisionSource.SLACK, click.user).text)
    except RightsizerError:
        text = ""  # the row could not be read: the stack's list is a beginning, and nobody decides anyway
    if text:
        return (
            f"Nothing was recorded: {text}. Whoever keeps the policy document can change that; or answer at a "
            "terminal with the command in the message, if your AWS role may."
        )
    why = "you are not on the list of approvers" if approvers else "nobody is on the list of approvers yet"
    return (
        f"Nothing was recorded: {why}. Whoever deploys rightsizer adds your Slack user id, {click.user}, to the "
        "stack's parameter Approvers; or answer at a terminal with the command in the message, if your AWS role may."
    )


def _sentence(error: Exception) -> str:
    text = str(error)
    return text[:1].upper() + text[1:] + "."
