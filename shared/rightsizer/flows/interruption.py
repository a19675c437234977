"""EC2 takes capacity back: act inside the two minutes, record everything, tell people afterwards.

The order matters. Claim (one conditional write), find the instance, read the cached facts, ask for the replacement:
nothing else stands before that request. Records, marks and messages come after it, and their failures undo nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from rightsizer.domain.message import Notice
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.plan import terminal_command
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import decider_name
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.scaling_group import (
    ForeignInstance,
    GroupMember,
    InstanceHome,
    Interruption,
    LeaveAlone,
    Note,
    Reaction,
    Replace,
)
from rightsizer.domain.spot import Pool, PoolSignal
from rightsizer.domain.trigger import (
    InstanceMoved,
    LaunchFailed,
    LookBeyond,
    LookReason,
    NoTrigger,
    RebalanceRecommended,
    SpotInterruption,
    Trigger,
)
from rightsizer.errors import InputError, PermissionMissingError, RightsizerError, WriteRefusedError
from rightsizer.ports.changes import SavingsLedger
from rightsizer.ports.evaluation import Notifier
from rightsizer.ports.spot import Claim, GroupChanger, GroupReader, LookQueue, SpotBook
from rightsizer.spot.interruption import has_gpu_name, is_capacity_failure, next_mark, note_of, reaction_to, stale_note
from rightsizer.telemetry import attempt, logger

GONE = ("not part of Auto Scaling group", "is not in", "not found", "No managed instance found", "does not exist")
"""Auto Scaling's texts for an instance that left the group before we came (ValidationError)."""


@dataclass(frozen=True, slots=True)
class InterruptPorts:
    """Ports of the interruption flow."""

    groups: GroupReader
    writes: GroupChanger
    book: SpotBook
    ledger: SavingsLedger
    notifier: Notifier | None
    """None in a stack that tells nobody."""
    dry_run: bool = False
    switch: Callable[[], Switch] = Switch
    """The freeze switch. Only a hard freeze stops a replacement: a plain one stops what saves, not what keeps alive."""
    queue: LookQueue | None = None
    """Where better capacity is asked for afterwards; None: the daily sweep does."""


def interrupt(ports: InterruptPorts, trigger: Trigger, now: datetime) -> Reaction:
    """Act on the event and return the reaction.

    Never lowers a capacity, never waits, does nothing twice.

    ThrottledError goes up, so that Lambda tries again while the two minutes last.
    """
    match trigger:
        case SpotInterruption():
            return _act_on_interruption(ports, trigger, now)
        case InstanceMoved():
            return note_of(trigger)  # counted by the door; a row for every instance that ends would drown the ledger
        case RebalanceRecommended():
            note = note_of(trigger)
            _record(
                ports,
                Occurrence(trigger.key, trigger.at, "rebalance-recommendation", trigger.instance_id, str(note.reason)),
            )
            return note
        case LaunchFailed():
            return _launch_failed(ports, trigger, now)
        case NoTrigger(reason):
            return Note(reason)
        case _:
            raise InputError(f"interruption takes EC2 and Auto Scaling events only, not {trigger.kind}")


def _act_on_interruption(ports: InterruptPorts, event: SpotInterruption, now: datetime) -> Reaction:
    claim = ports.book.claim(event.key, now)
    if claim is Claim.TAKEN:
        return Note(Reason(Code.ALREADY_SEEN, f"the interruption of {event.instance_id} is dealt with already"))
    late = stale_note(event, now)
    if late is not None:
        _settle(ports, event, None, late, now)
        return late
    found: InstanceHome | None = None
    try:
        found = ports.groups.find(event.instance_id)
        group = ports.book.group(found.group) if isinstance(found, GroupMember) else None
        reaction = reaction_to(event, found, group, now, claim is Claim.RESUMED)
        if isinstance(reaction, Replace):
            reaction = _replace(ports, reaction)
    except PermissionMissingError as error:
        reaction = LeaveAlone(Reason(Code.PERMISSION_MISSING, str(error)))
    _settle(ports, event, found, reaction, now)
    if isinstance(found, GroupMember):
        _look_again(ports, found.group, LookReason.INTERRUPTION, now)
    return reaction


def _replace(ports: InterruptPorts, replace: Replace) -> Reaction:
    """Ask for the replacement; a refusal becomes a note that says what AWS said."""
    if ports.dry_run:
        return Note(Reason(Code.RECORDED_ONLY, f"dry run, not done: {replace.reason}"))
    frozen = _freeze_reaction(ports)
    if frozen is not None:
        return frozen
    try:
        ports.writes.replace(replace.group, replace.instance_id, replace.way)
    except WriteRefusedError as error:
        if any(words in error.text for words in GONE):
            sentence = f"{replace.instance_id} had left {replace.group} already: {error.text}"
            return Note(Reason(Code.INSTANCE_GONE, sentence))
        return LeaveAlone(Reason(Code.REFUSED_BY_AWS, f"{error}; the group replaces it when it notices the loss"))
    return replace


def _freeze_reaction(ports: InterruptPorts) -> LeaveAlone | None:
    """That a hard freeze stops the replacement. A switch that cannot be read stops nothing: capacity is going away."""
    try:
        switch = ports.switch()
    except RightsizerError as error:
        logger.warning("the freeze switch could not be read; the replacement goes on", error=str(error))
        return None
    if not (switch.frozen and switch.hard):
        return None
    text = f"frozen hard by {decider_name(switch.by)}, not replaced; the group replaces it when it notices the loss"
    return LeaveAlone(Reason(Code.FROZEN, text))


def _settle(
    ports: InterruptPorts, event: SpotInterruption, found: InstanceHome | None, done: Reaction, now: datetime
) -> None:
    """Record, tell, and close last: a process that dies before that is made good by the retry, without a second act."""
    known = found if found is not None and not isinstance(found, ForeignInstance) else None
    pool = Pool(known.instance_type, known.zone) if known and known.instance_type and known.zone else None
    group = known.group if isinstance(known, GroupMember) else ""
    if pool is not None:
        _mark(ports, pool, PoolSignal.INTERRUPTED, now)
    ours = pool is None or has_gpu_name(pool.instance_type) or isinstance(done, Replace)
    subject = group or event.instance_id
    if ours and _record(ports, Occurrence(event.key, event.at, event.kind, subject, str(done.reason))):
        _tell(ports, done, subject, now)
    kind = f"{done.kind} {done.way}" if isinstance(done, Replace) else done.kind
    age = max((now - event.at).total_seconds(), 0.0)
    ports.book.settle(event.key, Interruption(event.instance_id, group, pool, event.at, kind, done.reason, age))


def _tell(ports: InterruptPorts, done: Reaction, subject: str, now: datetime) -> None:
    """Say it where a person can do something about it, or where we changed something; many at once are one message.

    Once an hour for a group and a reason; once a day what does not change from one interruption to the next.
    """
    period = f"{now:%Y-%m-%dT%H}"
    match done:
        case Replace():
            title = f"Spot interruption: replacement started in {subject}"
        case LeaveAlone():
            title = f"Spot interruption: left alone, {subject}"
            if done.reason.code in (Code.REPLACES_ITSELF, Code.SOMEONE_ELSE_HANDLES):
                period = f"{now:%Y-%m-%d}"
        case Note() if done.reason.code in (Code.NO_GROUP, Code.NOT_OPTED_IN):
            title = f"Spot interruption: not handled, {subject}"
            period = f"{now:%Y-%m-%d}"
        case Note():
            return
        case _:
            assert_never(done)
    if ports.notifier is not None and ports.book.is_first(f"{subject}|{done.reason.code}|{period}", now):
        _publish(ports, title, subject, done.reason)


def _publish(ports: InterruptPorts, title: str, subject: str, reason: Reason) -> None:
    """Telling may fail: the record is made already, and the next report has it."""
    if ports.notifier is None:
        return
    try:
        ports.notifier.post(Notice(f"rightsizer: {title}", str(reason)))
    except RightsizerError as error:
        logger.error("an interruption was recorded, but telling it failed", error=str(error), subject=subject)


def _launch_failed(ports: InterruptPorts, event: LaunchFailed, now: datetime) -> Note:
    note = note_of(event)
    known = ports.book.group(event.group)
    if is_capacity_failure(event) and event.zone and known is not None:
        for pool in known.pools:
            if pool.zone == event.zone:
                _mark(ports, pool, PoolSignal.REFUSED, now)
    _record(ports, Occurrence(event.key, event.at, "launch-failure", event.group, str(note.reason)))
    cause = str(note.reason.code)
    because = LookReason.INTERRUPTION
    if _are_all_pools_marked(ports, event, now):
        cause, because = "every-pool", LookReason.NO_CAPACITY
        proposals = terminal_command("proposals", known.region if known else "")
        sentence = (
            f"every Spot pool of {event.group} refused a launch: {event.message}; "
            f"more types and zones, or an On-Demand base, bring the capacity back ({proposals})"
        )
        note = Note(Reason(Code.NO_OPEN_POOL, sentence))
    # The group tries again every few minutes: it is told once an hour for each cause.
    hourly = f"{event.group}|{cause}|{now:%Y-%m-%dT%H}"
    if _record(ports, Occurrence(hourly, event.at, "launch-failures", event.group, str(note.reason))):
        _publish(ports, f"launch failed in {event.group}", event.group, note.reason)
    if is_capacity_failure(event):
        _look_again(ports, event.group, because, now)
    return note


def _look_again(ports: InterruptPorts, name: str, because: LookReason, now: datetime) -> None:
    """Ask for better capacity, once an hour for a group and a cause; last, since nothing depends on it."""
    group = ports.book.group(name) if ports.queue is not None else None
    if ports.queue is None or group is None or not group.purchase.may_use_spot:
        return
    key = f"{name}|{because}|{now:%Y-%m-%dT%H}"
    try:
        if ports.book.is_first(key, now):
            ports.queue.send_look(LookBeyond("group", (name,), because, now, key))
    except RightsizerError as error:
        logger.error("an interruption was recorded, but options were not asked for", error=str(error), group=name)


def _are_all_pools_marked(ports: InterruptPorts, event: LaunchFailed, now: datetime) -> bool:
    group = ports.book.group(event.group) if is_capacity_failure(event) else None
    if group is None or not group.pools:
        return False
    marks = [ports.book.mark(pool) for pool in group.pools]
    return all(mark is not None and mark.until > now for mark in marks)


def _mark(ports: InterruptPorts, pool: Pool, signal: PoolSignal, now: datetime) -> None:
    """Note what EC2 showed of the pool. A mark is a hint: one that cannot be kept stops neither record nor message."""

    def note() -> None:
        before = ports.book.mark(pool)
        after = next_mark(pool, signal, now, before)
        if after is not before:
            ports.book.remember(after)

    attempt("marking a pool", f"{pool.instance_type}|{pool.zone}", note)


def _record(ports: InterruptPorts, occurrence: Occurrence) -> bool:
    return ports.ledger.note(occurrence)
