"""One decision in a deployed stack, an event of it lost in one of the places where that happens, and the laws after it.

    [row] = ...  lost(Case("the stream gives up", seed=7))

The doors, the stream with its retries, the dead letters and the schedules are those of the template; only what a
person, an evaluation and the fault do is played here. A seed chooses who decides, when the fault begins, and whether
and when a newer judgement comes.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer.aws.journal import TableJournal
from rightsizer.aws.message_book import Messages
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
from tests.faults.lost_errands import lost_errand
from tests.faults.lost_places import DECISIONS, ERRANDS, Place
from tests.faults.lost_run import (
    AFTER,
    AGAINST,
    JUDGED,
    NAME,
    NEW,
    OLD,
    TURNS,
    UNREAD,
    WHO,
    Run,
    deployed,
)
from tests.table import decide

PLACES: dict[str, Place] = {**DECISIONS, **ERRANDS}


@dataclass(frozen=True)
class Case:
    """A place where something is lost, and the seed of everything else."""

    place: str
    seed: int


def lost(case: Case) -> list[str]:
    """The laws that broke in this run, a sentence each."""
    dice = random.Random(f"{case.place}{case.seed}")
    place = PLACES[case.place]
    if case.place in ERRANDS:
        return lost_errand(place, dice)
    with deployed(untagged=place.untagged) as (box, stack), ExitStack() as healed:
        who = dice.choice(WHO[::2] if place.untagged else WHO)
        run = _run(box, stack, dice, who, healed)
        run.box.gate.after = lambda call: _watch(run, call)
        with run.box.gate.unrecorded():
            _prepare(run)
            began = dice.choice((-2, 0, 1, 3, 8)) if place.late else -2
            judged, when = dice.choice(JUDGED), dice.random()
        lasts = dice.choice(place.lasts)
        if began < 0:
            run.meddle(lambda: place.begins(run))
            run.wait(minutes=-began)
            run.meddle(run.decide)
        else:
            run.meddle(run.decide)
            run.wait(minutes=began)
            run.meddle(lambda: place.begins(run))
        run.wait(minutes=1 + when * lasts)
        run.meddle(lambda: run.judge(judged))
        run.wait(minutes=max(lasts - when * lasts, 1))
        run.meddle(lambda: place.ends(run))
        run.box.clock.advance(AFTER)
        if run.backup or run.judged == UNREAD:
            run.meddle(run.judge_again)
            run.box.clock.advance(AFTER)
        run.meddle(lambda: run.store.tell_again(run.now, everything=True))
        run.stack.settle()
        with run.box.gate.unrecorded():
            if run.backup and run.store.proposal(run.proposal.id) is None:
                return [*run.broken, *_asked_anew(run)]
            return [*run.broken, *(said for law in LAWS for said in law(run))]


def _asked_anew(run: Run) -> Iterator[str]:
    """A backup of before the proposal holds nothing of it: it is asked anew, where the newest judgement allows it."""
    if run.judged not in AGAINST:
        yield f"the backup does not hold the proposal, the judgement is {run.judged!r}, and nobody is asked again"


def _prepare(run: Run) -> None:
    """The proposal was asked in peace; who goes back had it carried out before."""
    if run.who != "automatic mode":
        run.store.save(run.proposal.recommendation, run.proposal)
        run.box.clock.advance(timedelta(minutes=2))
    if run.who == WHO[2]:
        decide(run.store, run.proposal.id, Decision(ProposalState.APPROVED, "slack:U1", run.now), run.now)
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
    """Who asked for the rollback gets it, or is told why not; one that a backup does not hold was never asked."""
    shown, change = run.shown(), run.change()
    if not run.asked_back or (run.backup and not shown.asked_back_by):
        return
    refused = any("rollback was not taken" in subject for subject in run.told())
    if change is None or not (change.asked_back_by or refused or change.state.value == "handed-over"):
        yield f"{shown.asked_back_by} asked for the rollback, and nobody took it"


def nothing_waits_for_a_judgement_that_is_there(run: Run) -> Iterator[str]:
    """A change that waited for a judgement begins, or ends, once there is one that can be read."""
    change = run.change()
    waits = change is not None and not change.is_closed and "recommendation of chat" in change.outcome
    if waits:
        yield f"a new judgement is there, and the change still waits: {change.outcome if change else ''}"


def what_may_begin_begins(run: Run) -> Iterator[str]:
    """A change that nothing holds back has its plan, or ended; one without may wait for a person or a judgement."""
    change = run.change()
    held = run.judged in AGAINST or run.narrowed or run.journal.switch().frozen
    if change is not None and not change.is_closed and change.before is None and not held:
        yield f"nothing holds the change back, and it is {change.state.value} without a plan: {change.outcome}"


def every_message_shows_how_it_stands(run: Run) -> Iterator[str]:
    """What people see is the state of the proposal, whatever was lost on the way."""
    shown, message = run.shown(), Messages(run.table).message(run.proposal.id)
    if message is None or not message.shown.startswith(f"{shown.state.value}|"):
        yield f"the proposal is {shown.state.value}, and its message shows {message.shown if message else 'nothing'!r}"


def nothing_blocks_the_endpoint(run: Run) -> Iterator[str]:
    """A lock belongs to a change that is open."""
    holder = run.journal.holder_of(NAME)
    change = run.journal.load(holder) if holder else None
    if holder and (change is None or change.is_closed):
        yield f"the endpoint is held by {holder}, which is not open"


LAWS: tuple[Callable[[Run], Iterator[str]], ...] = (
    every_approval_ends,
    every_order_is_taken,
    nothing_waits_for_a_judgement_that_is_there,
    what_may_begin_begins,
    every_message_shows_how_it_stands,
    nothing_blocks_the_endpoint,
)


def cases(count: int) -> list[Case]:
    """So many cases, the places in turn; the same ones each time."""
    places = list(PLACES)
    return [Case(places[number % len(places)], number // len(places)) for number in range(count)]


def _run(box: Sandbox, stack: Stack, dice: random.Random, who: str, healed: ExitStack) -> Run:
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
    journal = TableJournal(client, name)
    return Run(box, stack, dice, table, journal, healed, proposal=asked, store=store, who=who, old=config)


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
