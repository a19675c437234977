"""Hold the newest judgement against what was approved, before each write that leads towards it."""

from dataclasses import replace
from datetime import datetime, timedelta

from rightsizer.changes.overruled import needs_no_judgement, overruled
from rightsizer.changes.reconcile import may_show_until, touched_scaling, updating
from rightsizer.domain.change import Change, ChangeState, Course, Do, Entry, FailureClass, Move, Steer, Wait
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.errors import PermissionMissingError, UnreadableError
from rightsizer.flows.notify import Told
from rightsizer.ports.evaluation import RecommendationStore
from rightsizer.telemetry import count

LOOK_AGAIN = timedelta(hours=1)
"""How often a change that waits for a judgement looks for one; the sweep evaluates each endpoint once a day."""
TOLD = "judgement"
"""Journal line of the message that a change waits for a judgement."""


def held_against(store: RecommendationStore, change: Change, proposal: Proposal | None) -> Reason | None:
    """Why the change is not carried out on the newest judgement of its endpoint; None where it may be.

    NEWER_JUDGEMENT where that forbids it. JUDGEMENT_UNKNOWN where nobody knows what the newest one says, so that the
    change waits: this release cannot read it, or it is older than the table. Such a table was restored from a backup,
    or copied, and what was judged after the backup is not in it. Raises ReadError. Without a proposal that can be read,
    what was judged since the change was created counts; the rest was looked at when it began.
    """
    if needs_no_judgement(change.option):
        return None
    name = change.ref.name
    try:
        newest = store.recommendation(name)
    except UnreadableError as error:
        count(RowsUnreadable=1)
        text = f"the newest judgement of {name} cannot be read by this release ({error}), so nobody knows what it says"
        return Reason(Code.JUDGEMENT_UNKNOWN, f"{text}; the next evaluation, within a day, writes a new one")
    decided = proposal.recommendation if proposal is not None else newest and _begun_on(newest, change)
    if decided is None:
        return None
    found = overruled(change.option, decided, newest, by_policy=_by_policy(proposal))
    return found if found is not None else _copied(newest or decided, name, store.made_at())


def _begun_on(newest: Recommendation, change: Change) -> Recommendation:
    """A judgement of the time when the change was created, in place of the one that cannot be read."""
    gate = Gate.TEST if change.plan.kind == "shadow-test" else Gate.PROPOSE
    return replace(newest, evaluated_at=change.created_at, gate=gate)


def _by_policy(proposal: Proposal | None) -> bool:
    """Whether automatic mode decided; where nobody knows, the stricter answer."""
    return proposal is None or (proposal.decision is not None and proposal.decision.by == "policy")


def _copied(newest: Recommendation, name: str, made: datetime) -> Reason | None:
    if newest.evaluated_at >= made:
        return None
    text = (
        f"the newest judgement of {name} is of {newest.evaluated_at:%Y-%m-%d %H:%M} UTC and older than the table,"
        f" which was restored or copied on {made:%Y-%m-%d %H:%M} UTC: a later one may be lost"
    )
    return Reason(Code.JUDGEMENT_UNKNOWN, f"{text}; the next evaluation, within a day, writes a new one")


def heard(store: RecommendationStore, change: Change, move: Move, now: datetime, tell: Told) -> tuple[Change, Move]:
    """The change and its move, where the newest judgement allows it; else the end of the change, or a wait.

    Asked before each write until the first that serves differently: between two of them a window, an alarm or a freeze
    may have kept the change waiting for days. While autoscaling is taken away nothing waits for a judgement, or for the
    permission to read it: autoscaling goes back at once. A read that failed otherwise is tried again (ReadError).
    An update of which the answer was lost is not asked again against the newest judgement. It may still show for an
    hour (`SHOWS`); until then it counts as made, and an endpoint with all its autoscaling waits for it.
    """
    if not isinstance(move, Do) or change.course is not Course.FORWARD or change.turned_at is not None:
        return change, move
    touched = touched_scaling(change)
    try:
        found = None if _step_by_step(change, now) else _against(store, change)
    except PermissionMissingError as error:
        if not touched:
            raise
        found = Reason(Code.JUDGEMENT_UNKNOWN, f"the newest judgement of {change.ref.name} may not be read: {error}")
    if found is None:
        return change, move
    if found.code is Code.JUDGEMENT_UNKNOWN and not touched:
        return told(change, found, now, tell), Wait(now + LOOK_AGAIN, found.sentence)
    until = may_show_until(change, now)
    if until is not None and not touched:
        text = f"{found.sentence}; the update that was asked already may still show until {until:%H:%M} UTC"
        return change, Wait(until, f"{text}, and is not asked again")
    text = f"{found.sentence}; seen right before the next write, and it was not made"
    if touched:
        text += "; autoscaling goes back as it was"
    ending = ChangeState.ROLLED_BACK if touched else ChangeState.REFUSED
    return change, Steer(Reason(found.code, text), Course.CLOSE, ending, FailureClass.OUTSIDE)


def told(change: Change, why: Reason, now: datetime, tell: Told) -> Change:
    """The change with the line of the message that it waits for a judgement; told once."""
    known = any(entry.step == TOLD for entry in change.journal)
    if known or not tell(f"{change.ref.name}: approved, and waits for a new judgement", why.sentence):
        return change
    return replace(change, journal=(*change.journal, Entry(now, TOLD, "noted", why.sentence)))


def brings_room(store: RecommendationStore, endpoint: str) -> Recommendation | None:
    """The newest recommendation, where it brings room back for users who suffer; None where it cannot be read."""
    try:
        newest = store.recommendation(endpoint)
    except UnreadableError:
        return None
    return newest if newest is not None and newest.chosen is not None and newest.chosen.restores else None


def _against(store: RecommendationStore, change: Change) -> Reason | None:
    try:
        proposal = store.proposal(change.proposal_id)
    except UnreadableError:
        return held_against(store, change, None)  # the change itself holds what was approved
    return held_against(store, change, proposal) if proposal is not None else None


def _step_by_step(change: Change, now: datetime) -> bool:
    """Whether a plan without an update of the endpoint was begun: AWS made one of its steps, or may have."""
    return change.plan.turn is None and updating(change, now)
