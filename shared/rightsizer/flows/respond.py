"""A click in Slack becomes one recorded decision, or a clear answer why not.

On the path of `respond`: neither pydantic nor boto3 nor Powertools here. Slack shows a person that an answer other than
200 came, so what was not recorded is never answered with 200 unless the message itself will show why.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never

from rightsizer.errors import ConflictError, RightsizerError, VanishedError
from rightsizer.model.proposal import Decision, ProposalState
from rightsizer.model.trigger import Click, Interaction, NotClicked, NotVerified

DECIDES: Mapping[str, ProposalState] = {
    "approve": ProposalState.APPROVED,
    "reject": ProposalState.REJECTED,
    "snooze": ProposalState.SNOOZED,
}
type Decide = Callable[[str, Decision, datetime], Any]
"""Records one decision by a conditional write: proposal id, decision, now."""
type AskBack = Callable[[str, str, datetime], Any]
"""Records by a conditional write that a change shall be undone: proposal id, who asks, now."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What Slack gets, and what the log says."""

    status: int
    text: str
    """For the person who clicked; empty for a plain acknowledgement."""
    log: str
    """For the operator: who did what, and why it was refused."""
    recorded: bool = False

    def response(self) -> dict[str, Any]:
        """The answer as a Function URL returns it."""
        if not self.text:
            return {"statusCode": self.status, "body": ""}
        body = {"response_type": "ephemeral", "replace_original": False, "text": self.text}
        return {
            "statusCode": self.status,
            "headers": {"Content-Type": "application/json; charset=utf-8"},
            "body": json.dumps(body),
        }


def respond(
    interaction: Interaction, approvers: frozenset[str], decide: Decide, ask_back: AskBack, now: datetime
) -> Answer:
    """Authorise the person and record the decision, or the wish to go back, once."""
    match interaction:
        case NotVerified(status, sentence):
            return Answer(status, "", f"refused: {sentence}")
        case NotClicked(sentence):
            return Answer(200, "", f"nothing to do: {sentence}")
        case Click():
            return _record(interaction, approvers, decide, ask_back, now)
        case unreachable:
            assert_never(unreachable)


def _record(click: Click, approvers: frozenset[str], decide: Decide, ask_back: AskBack, now: datetime) -> Answer:
    what = f"{click.user} clicked {click.verb} on {click.proposal_id}"
    if click.verb not in DECIDES and click.verb != "rollback":
        return Answer(200, "", f"{what}: a link, nothing to record")
    if click.user not in approvers:
        whom = "nobody is on the list of approvers" if not approvers else "they are not on the list of approvers"
        return Answer(403, "You are not on the list of approvers; nothing was recorded.", f"{what}: {whom}")
    by = f"slack:{click.user}"
    try:
        if click.verb == "rollback":
            ask_back(click.proposal_id, by, now)
            said = "Recorded: the endpoint goes back to what it ran before."
        else:
            decide(click.proposal_id, Decision(DECIDES[click.verb], by, now), now)
            said = f"Recorded: {DECIDES[click.verb]}."
    except (ConflictError, VanishedError) as error:
        return Answer(200, _sentence(error), f"{what}: {error}")
    except RightsizerError as error:
        return Answer(503, "Nothing was recorded; please try again in a minute.", f"{what}: {error}")
    return Answer(200, said, what, recorded=True)


def _sentence(error: Exception) -> str:
    text = str(error)
    return text[:1].upper() + text[1:] + "."
