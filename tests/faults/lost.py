"""One decision in a deployed stack, an event of it lost in one of the places where that happens, and the laws after it.

    [row] = ...  lost(Case("the stream gives up", seed=7))

The doors, the stream with its retries, the dead letters and the schedules are those of the template; only what a
person, an evaluation and the fault do is played here. A seed chooses who decides, when the fault begins, and whether
and when a newer judgement comes.
"""

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer import bootstrap
from rightsizer.aws.journal import TableJournal
from rightsizer.aws.proposals import Messages
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table
from rightsizer.domain.endpoint import EndpointRef, Mode
from rightsizer.domain.option import Target
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.recommendation import Gate, Recommendation
from sandbox.account import Sandbox
from sandbox.gate import Call
from sandbox.wiring import Stack
from tests import samples
from tests.faults.lost_run import (
    AFTER,
    AGAINST,
    IMAGE,
    JUDGED,
    LIMITS,
    NAME,
    NEW,
    OLD,
    OTHER_LIMITS,
    ROOT,
    START,
    TURNS,
    UNREAD,
    WHO,
    Run,
)


@dataclass(frozen=True)
class Case:
    """A place where something is lost, and the seed of everything else."""

    place: str
    seed: int


def _journal_throttled(run: Run) -> None:
    for operation in ("PutItem", "TransactWriteItems"):
        run.box.fail("dynamodb", operation, "ThrottlingException", times=10**6, where=lambda p: "CHANGE#" in str(p))


def _nothing_read(run: Run) -> None:
    run.box.fail("dynamodb", "GetItem", "InternalServerError", times=10**6)


def _healed(run: Run) -> None:
    run.box.gate.heal()


def _off(*doors: str) -> Callable[[Run], None]:
    def switch(run: Run) -> None:
        run.stack.off |= set(doors)
        run.stack.quiet |= {"Apply.Tick"} if "apply" in doors else set()  # each would be throttled, and retried twice

    return switch


def _on(run: Run) -> None:
    run.stack.off.clear()
    run.stack.quiet.discard("Apply.Tick")


def _backed_up(run: Run) -> None:
    client = run.box.client("dynamodb")
    run.backup = client.create_backup(TableName=run.table.name, BackupName="before")["BackupDetails"]["BackupArn"]


def _restored(run: Run) -> None:
    """All rows are those of the backup, in a new table of the same name, and no stream tells of it."""
    client, name = run.box.client("dynamodb"), run.table.name
    client.delete_table(TableName=name)
    client.restore_table_from_backup(TargetTableName=name, BackupArn=run.backup)
    kept = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    client.update_table(TableName=name, StreamSpecification=kept)
    for stream in run.stack.streams:
        stream.begin_anew()


def _killed(run: Run) -> None:
    """The update of the stack ends an invocation in the middle."""
    run.box.gate.kill(run.dice.randint(1, 6), after=run.dice.random() < 0.5)


def _updated(run: Run) -> None:
    run.box.gate.heal()
    run.stack.redeploy(Limits=OTHER_LIMITS)


def _rolled_back(run: Run) -> None:
    _updated(run)
    run.stack.redeploy(Limits=LIMITS)


def _narrowed(to: str) -> Callable[[Run], None]:
    return lambda run: run.stack.redeploy(MayChange=to)


def _widened_or_not(to: str) -> Callable[[Run], None]:
    def perhaps(run: Run) -> None:
        if run.dice.random() < 0.5:
            run.stack.redeploy(MayChange=to)

    return perhaps


@dataclass(frozen=True)
class Place:
    """Where something is lost: what begins, how long it lasts, what ends it."""

    begins: Callable[[Run], None]
    ends: Callable[[Run], None]
    lasts: tuple[float, ...]
    """Minutes, one of them by the seed."""
    late: bool = True
    """Whether it may begin after the decision."""
    untagged: bool = False
    """Whether the endpoint has no tag, in a stack that may change such endpoints."""


PLACES: dict[str, Place] = {
    "the stream gives up": Place(_journal_throttled, _healed, (9, 20, 45)),
    "the queue's dead letters": Place(_nothing_read, _healed, (9, 20, 45)),
    "apply is off for a day": Place(_off("apply"), _on, (60 * 24,)),
    "apply is off for eight days": Place(_off("apply"), _on, (60 * 24 * 8,)),
    "apply and propose are off": Place(_off("apply", "propose"), _on, (65, 120)),
    "propose is off for three days": Place(_off("propose"), _on, (60 * 24 * 3,)),
    "the table is restored": Place(_backed_up, _restored, (1, 6, 12, 30, 90)),
    "the stack is updated": Place(_killed, _updated, (3, 10)),
    "the stack is rolled back": Place(_killed, _rolled_back, (3, 10)),
    "MayChange is narrowed to nothing": Place(_narrowed("nothing"), _widened_or_not("tagged"), (30, 120)),
    "MayChange is narrowed to tagged": Place(
        _narrowed("tagged"), _widened_or_not("tagged-and-untagged"), (30, 120), untagged=True
    ),
}


def _at_once(*deeds: Callable[[Run], None]) -> Callable[[Run], None]:
    def all_of_them(run: Run) -> None:
        for deed in deeds:
            deed(run)

    return all_of_them


OFF_AND_RESTORED = Place(_at_once(_backed_up, _off("apply")), _at_once(_restored, _on), (60 * 24,))


def lost(case: Case) -> list[str]:
    """The laws that broke in this run, a sentence each."""
    dice = random.Random(f"{case.place}{case.seed}")
    place = PLACES[case.place]
    with _account(dice, untagged=place.untagged) as run:
        run.box.gate.after = lambda call: _watch(run, call)
        with run.box.gate.unrecorded():
            _prepare(run)
            began = dice.choice((-2, 0, 1, 3, 8)) if place.late else -2
            judged, when = dice.choice(JUDGED), dice.random()
        lasts = dice.choice(place.lasts)
        if began < 0:
            _meddle(run, place.begins)
            run.wait(minutes=-began)
            _meddle(run, Run.decide)
        else:
            _meddle(run, Run.decide)
            run.wait(minutes=began)
            _meddle(run, place.begins)
        run.wait(minutes=1 + when * lasts)
        _meddle(run, lambda run: run.judge(judged))
        run.wait(minutes=max(lasts - when * lasts, 1))
        _meddle(run, place.ends)
        run.box.clock.advance(AFTER)
        if run.backup or run.judged == UNREAD:
            _meddle(run, Run.judge_again)
            run.box.clock.advance(AFTER)
        _meddle(run, lambda run: run.store.tell_again(run.now, everything=True))
        run.stack.settle()
        with run.box.gate.unrecorded():
            return [*run.broken, *(said for law in LAWS for said in law(run))]


def _meddle(run: Run, deed: Callable[[Run], object]) -> None:
    """What is not the program's: nothing is recorded or refused; what follows from it comes with the clock."""
    with run.box.gate.unrecorded():
        deed(run)


def _prepare(run: Run) -> None:
    """The proposal was asked in peace; who goes back had it carried out before."""
    if run.who != "automatic mode":
        run.store.save(run.proposal.recommendation, run.proposal)
        run.box.clock.advance(timedelta(minutes=2))
    if run.who == WHO[2]:
        run.store.decide(run.proposal.id, Decision(ProposalState.APPROVED, "slack:U1", run.now), run.now)
        run.box.gate.recording = True
        run.box.clock.advance(timedelta(minutes=40))
        run.box.gate.recording = False


def _watch(run: Run, call: Call) -> None:
    """Nothing is carried out that the newest judgement does not allow: asked at each deployment that AWS accepted."""
    if call.operation not in TURNS or call.error is not None or call.params.get("EndpointConfigName") == run.old:
        return
    if run.judged in AGAINST:
        run.broken.append(f"{call.action} at {run.now:%H:%M}, and the newest judgement forbids it: {run.judged}")
    elif run.judged == UNREAD:
        run.broken.append(f"{call.action} at {run.now:%H:%M}, and nobody could read the newest judgement")


def every_approval_ends(run: Run) -> Iterator[str]:
    """Started, withdrawn with a reason, or expired and told; one that a backup does not hold is asked anew."""
    shown, change = run.shown(), run.change()
    match shown.state:
        case ProposalState.WITHDRAWN | ProposalState.EXPIRED:
            if not shown.outcome:
                yield f"the proposal is {shown.state.value} without a reason"
            approved = shown.decision is not None  # one that a backup does not hold was only asked
            if approved and not any(subject.startswith(f"{NAME}: ") for subject in run.told()):
                yield f"the proposal is {shown.state.value}, and nobody was told"
        case ProposalState.PENDING:
            if not run.backup:
                yield "the approval is gone, and the proposal asks again"
        case _ if change is None:
            yield f"the proposal is {shown.state.value}, and no change answers it"


def every_order_is_taken(run: Run) -> Iterator[str]:
    """Who asked for the way back gets it, or is told why not; one that a backup does not hold was never asked."""
    shown, change = run.shown(), run.change()
    if not run.asked_back or (run.backup and not shown.asked_back_by):
        return
    refused = any("way back was not taken" in subject for subject in run.told())
    if change is None or not (change.asked_back_by or refused or change.state.value == "handed-over"):
        yield f"{shown.asked_back_by} asked for the way back, and nobody took it"


def nothing_waits_for_a_judgement_that_is_there(run: Run) -> Iterator[str]:
    """A change that waited for a judgement begins, or ends, once there is one that can be read."""
    change = run.change()
    waits = change is not None and not change.closed and "judgement of chat" in change.outcome
    if waits:
        yield f"a new judgement is there, and the change still waits: {change.outcome if change else ''}"


def every_message_shows_how_it_stands(run: Run) -> Iterator[str]:
    """What people see is the state of the proposal, whatever was lost on the way."""
    shown, message = run.shown(), Messages(run.table).message(run.proposal.id)
    if message is None or not message.shown.startswith(f"{shown.state.value}|"):
        yield f"the proposal is {shown.state.value}, and its message shows {message.shown if message else 'nothing'!r}"


def nothing_blocks_the_endpoint(run: Run) -> Iterator[str]:
    """A lock belongs to a change that is open."""
    holder = run.journal.held_by(NAME)
    change = run.journal.load(holder) if holder else None
    if holder and (change is None or change.closed):
        yield f"the endpoint is held by {holder}, which is not open"


LAWS: tuple[Callable[[Run], Iterator[str]], ...] = (
    every_approval_ends,
    every_order_is_taken,
    nothing_waits_for_a_judgement_that_is_there,
    every_message_shows_how_it_stands,
    nothing_blocks_the_endpoint,
)


def cases(count: int) -> list[Case]:
    """So many cases, the places in turn; the same ones each time."""
    places = list(PLACES)
    return [Case(places[number % len(places)], number // len(places)) for number in range(count)]


@contextmanager
def _account(dice: random.Random, *, untagged: bool) -> Iterator[Run]:
    with Sandbox(now=START) as box:
        may = "tagged-and-untagged" if untagged else "tagged"
        stack = Stack(box, ROOT / "template.yaml", parameters={"Limits": LIMITS, "MayChange": may})
        stack.quiet |= {s.name for s in stack.parts.schedules} - {"Apply.Tick"}
        stack.off |= {"evaluate"}  # what an evaluation says is played
        with box.gate.unrecorded():
            box.add_endpoint(NAME, OLD, 1, tags={} if untagged else {"rightsizer:mode": "auto"}, image=IMAGE)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="aws_lambda_powertools")  # of metrics that nobody flushes here
            try:
                yield _run(box, stack, dice, dice.choice(WHO[::2] if untagged else WHO))
            finally:
                bootstrap.reset()


def _run(box: Sandbox, stack: Stack, dice: random.Random, who: str) -> Run:
    client, name = box.client("dynamodb"), stack.parts.names["Table"]
    with box.gate.unrecorded():
        live = box.client("sagemaker").describe_endpoint(EndpointName=NAME)
    config = str(live["EndpointConfigName"])
    judged = _judged(f"{config}|{live['LastModifiedTime'].isoformat()}|AllTraffic=1", box.clock.now)
    asked = samples.proposal(
        recommendation=judged, created_at=box.clock.now, expires_at=box.clock.now + timedelta(days=14)
    )
    table = Table(client, name)
    store = Recommendations(table, lambda: box.clock.now)
    return Run(box, stack, dice, asked, store, TableJournal(client, name), table, who, config)


def _judged(fingerprint: str, now: datetime) -> Recommendation:
    option = samples.option(target=Target(NEW, 1))
    return replace(
        samples.recommendation(NAME),
        ref=EndpointRef("111122223333", "eu-west-1", NAME),
        fingerprint=fingerprint,
        options=(option,),
        instance_type=OLD,
        mode=Mode.AUTO,
        gate=Gate.APPLY,
        evaluated_at=now,
        excluded=(),
    )
