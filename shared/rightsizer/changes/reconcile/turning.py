"""The one write that changes what serves: whether it was accepted, shows yet, or was rolled back by AWS."""

from datetime import datetime, timedelta

from rightsizer.changes.reconcile.journal import UNANSWERED
from rightsizer.changes.reconcile.steps import LAG
from rightsizer.domain.change import Change, Entry, Wait
from rightsizer.domain.live_state import EndpointSight
from rightsizer.domain.plan import Step

SHOWS = timedelta(hours=1)
"""An update of the endpoint that does not show after this was not made, whatever its answer was (inferred)."""


def accepted(change: Change, turn: Step | None) -> Entry | None:
    """The last line of the turn where AWS accepted it, or may have; None where it was not asked, or was refused."""
    last = change.last(turn, "intended", "done", "failed") if turn is not None else None
    refused = last is not None and last.status == "failed" and not last.detail.startswith(UNANSWERED)
    return None if refused else last


def may_show_until(change: Change, now: datetime) -> datetime | None:
    """Until when the last update of the endpoint counts as made though AWS does not show it.

    None where AWS refused it, where the time is over, and for a plan without an update.
    """
    last = accepted(change, change.plan.turn)
    return last.at + SHOWS if last is not None and now - last.at < SHOWS else None


def rolled_back(change: Change, turn: Step, endpoint: EndpointSight) -> bool:
    """Whether the update was accepted once, and the endpoint is back where it was.

    LastModifiedTime moved, and the call is known to have been accepted or there is a reason that was not there before
    the change. A quick refusal can look like "never left InService", so the mark is taken right before the call.
    """
    tried = change.last(turn, "intended", "done", "failed")
    if tried is None or not _moved(change, endpoint):
        return False
    maybe = tried.status == "intended" or tried.detail.startswith("again:")
    return tried.status == "done" or (maybe and _new_reason(change, endpoint))


def not_shown(change: Change, turn: Step | None, endpoint: EndpointSight, now: datetime) -> Wait | None:
    """Wait while an update that was asked a moment ago may just not show yet: no verdict and no order before that."""
    last = accepted(change, turn)
    if (
        turn is None
        or last is None
        or now - last.at >= LAG
        or (_moved(change, endpoint) and _new_reason(change, endpoint))
    ):
        return None
    return Wait(last.at + LAG, f"{turn.operation} of {change.ref.name} was asked and does not show yet")


def _moved(change: Change, endpoint: EndpointSight) -> bool:
    return change.turn_mark is not None and endpoint.modified_at > change.turn_mark


def _new_reason(change: Change, endpoint: EndpointSight) -> bool:
    """Whether AWS gives a reason that it did not give before the change: one of a year ago may still stand there."""
    old = change.before.failure_reason if change.before else ""
    return endpoint.failure_reason not in ("", old)
