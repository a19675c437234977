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


def respond(interaction: Interaction, approvers: frozenset[str], decide: Decide, now: datetime) -> Answer:
    """Authorise the person and record the decision once."""
    match interaction:
        case NotVerified(status, sentence):
            return Answer(status, "", f"refused: {sentence}")
        case NotClicked(sentence):
            return Answer(200, "", f"nothing to do: {sentence}")
        case Click():
            return _decide(interaction, approvers, decide, now)
        case unreachable:
            assert_never(unreachable)


def _decide(click: Click, approvers: frozenset[str], decide: Decide, now: datetime) -> Answer:
    what = f"{click.user} clicked {click.verb} on {click.proposal_id}"
    if click.verb not in DECIDES:
        return Answer(200, "", f"{what}: a link, nothing to record")
    if click.user not in approvers:
        whom = "nobody is on the list of approvers" if not approvers else "they are not on the list of approvers"
        return Answer(403, "You are not on the list of approvers; nothing was recorded.", f"{what}: {whom}")
    decision = Decision(DECIDES[click.verb], f"slack:{click.user}", now)
    try:
        decide(click.proposal_id, decision, now)
    except (ConflictError, VanishedError) as error:
        return Answer(200, _sentence(error), f"{what}: {error}")
    except RightsizerError as error:
        return Answer(503, "Nothing was recorded; please try again in a minute.", f"{what}: {error}")
    return Answer(200, f"Recorded: {DECIDES[click.verb]}.", what, recorded=True)


def _sentence(error: Exception) -> str:
    text = str(error)
    return text[:1].upper() + text[1:] + "."
