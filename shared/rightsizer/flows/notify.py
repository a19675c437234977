"""Messages that may fail: a refused message loses neither a journal nor another change.

That an endpoint is left without its autoscaling is told at once, and when it is back. A step that AWS refuses is tried
for about an hour, in which load may come that nothing answers. What is handed over is told by the hand-over itself.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

from rightsizer.domain.change import Change, ChangeState, Entry, FailureClass, JournalEvent, StepResult
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import LiveState
from rightsizer.domain.message import Notice
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.plan import Step, StepKind
from rightsizer.errors import RightsizerError
from rightsizer.ports.changes import SavingsLedger
from rightsizer.ports.evaluation import Notifier
from rightsizer.telemetry import count, logger

type SafeTell = Callable[[str, str], bool]
"""Sends a notice, subject and body; whether it was taken."""


def catch_send_errors(notifier: Notifier) -> SafeTell:
    """Wrap a sender so that it returns False instead of raising.

    A message that was not sent is logged in full and counted.
    """
    return partial(_try_to_send, notifier)


def _try_to_send(notifier: Notifier, subject: str, text: str) -> bool:
    try:
        notifier.post(Notice(subject, text))
    except RightsizerError as error:
        remedy = (
            "the function's role must be let publish to the stack's topic; `rightsizer proposals` shows what stands"
        )
        logger.error(
            "a message was not taken", extra={"subject": subject, "text": text, "why": str(error), "do": remedy}
        )
        count(MessagesLost=1)
        return False
    return True


def tell_once(ledger: SavingsLedger, notifier: Notifier, what: Occurrence, subject: str) -> bool:
    """Tell an occurrence until a channel took it, and never again; whether it was taken, now or before.

    It is noted after it was taken: a process that dies in between repeats a message, and loses none. Where the ledger
    cannot be read, the log has it.
    """
    try:
        if ledger.is_noted(what.key):
            return True
    except RightsizerError as error:
        logger.warning("not told yet", extra={"subject": subject, "text": what.text, "why": str(error)})
        return False
    if not catch_send_errors(notifier)(subject, what.text):
        return False
    try:
        ledger.note(what)
    except RightsizerError as error:
        logger.warning("told, and may be told again", extra={"subject": subject, "why": str(error)})
    return True


def tell_of_missing_autoscaling(change: Change, step: Step, live: LiveState, result: Entry, tell: SafeTell) -> Change:
    """The change with the line of the message, where this refusal leaves a resource without autoscaling; told once."""
    lack = _missing_part(change, step, live)
    if not lack or change.ending is ChangeState.HANDED_OVER or _is_incident_open(change, step.subject):
        return change
    if result.result not in (StepResult.RETRY, StepResult.UNANSWERED):
        return change
    if result.failure is not FailureClass.PERMISSION and change.attempts(step) < 2:
        return change  # it may pass soon, and is told when it comes again
    text = f"{lack}: {step.key} was refused ({result.detail}). It serves with the instances that it has. "
    told = tell(
        f"INCIDENT {change.ref.name}: its autoscaling is missing",
        f"{text}It is tried again for about an hour; until then this does it: {live.resolve_step(step).command}",
    )
    return _note_message(change, JournalEvent.INCIDENT, step.subject, result.at) if told else change


def tell_of_restored_autoscaling(change: Change, live: LiveState, now: datetime, tell: SafeTell) -> Change:
    """The change with the line of the message that ends each incident; told once, whoever gave autoscaling back."""
    stored = change.before.scaling if change.before is not None and live.scaling is not None else ()
    for had in stored:
        if not _is_incident_open(change, had.resource_id) or not _is_whole(had, live):
            continue
        text = f"{had.resource_id} has its scalable target and its policies, as seen at {now:%Y-%m-%d %H:%M} UTC"
        if tell(f"{change.ref.name}: its autoscaling is back", text):
            change = _note_message(change, JournalEvent.INCIDENT_OVER, had.resource_id, now)
    return change


def _is_whole(had: ScalableTarget, live_state: LiveState) -> bool:
    """Whether the target is there, with each policy that it had by its name; bounds follow the new fleet."""
    key = (had.resource_id, had.dimension)
    live = next((t for t in live_state.scaling or () if (t.resource_id, t.dimension) == key), None)
    if live is None:
        return False
    return {p.get("PolicyName") for p in had.policies} <= {p.get("PolicyName") for p in live.policies}


def _missing_part(change: Change, step: Step, live_state: LiveState) -> str:
    """What the resource of the step lacks that it had before the change; empty where it lacks nothing."""
    had = _target_before(change, step)
    if had is None or live_state.scaling is None:
        return ""
    live = live_state.target(step)
    if step.kind is StepKind.REGISTER_TARGET and live is None:
        return f"{step.subject} has no scalable target"
    if step.kind is StepKind.PUT_POLICY and had.policies and (live is None or not live.policies):
        return f"{step.subject} has no scaling policy"
    return ""


def _target_before(change: Change, step: Step) -> ScalableTarget | None:
    stored = change.before.scaling if change.before is not None else ()
    return next((t for t in stored if t.resource_id == step.subject), None)


def _is_incident_open(change: Change, resource: str) -> bool:
    told = (JournalEvent.INCIDENT, JournalEvent.INCIDENT_OVER)
    lines = (e.step for e in reversed(change.journal) if e.step in told and e.detail == resource)
    return next(lines, "") == JournalEvent.INCIDENT


def _note_message(change: Change, line: JournalEvent, resource: str, now: datetime) -> Change:
    return replace(change, journal=(*change.journal, Entry(now, line, "noted", resource)))
