"""A proposal that somebody answers with "test first", disturbed at one request between the answer and the last end.

The decision is the conditional write of a click; the person presses again until it is recorded. The approval begins
its test and, after it, its change by ticks alone: no event of the stream comes a second time. An evaluation that knows
the history of the table is played once the test is over: it lists the type without a test where the test was kept.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.option import Option, Risk
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.proposal import Decision, ProposalState, change_id_of
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.trigger import TickDue
from rightsizer.errors import ConflictError, RightsizerError
from rightsizer.flows.apply_orders import advance_changes
from sandbox.refusals import Killed
from tests.changing.scenarios import autoscaled
from tests.changing.world import NAME, World, an_option, world
from tests.faults.branch import Branches, Row
from tests.faults.drive import KILLED, TICK, Disturbance
from tests.faults.laws import broken, snapshot
from tests.table import decide

HOURS = 30
"""Longer than a test of an hour, the wait for an evaluation and a change with two hours of probation."""
ASKED = an_option(
    test_hours=1.0,
    test_usd=Decimal("4.5"),
    test_tells="whether the model fits 22 GiB of GPU memory",
    risk=Risk.LOW,
    untested_risk=Risk.HIGH,
)


def runs_with_test(*, every: int = 1, disturbance: Disturbance = KILLED, load: object = None) -> list[Row]:
    """The whole run, and one copy for each request at which it was disturbed."""
    with asked_world(load) as w:
        branches = Branches(disturbance.at, disturbance.happens(w), every)
        name = f"test first / {disturbance.name}" if disturbance.name else "test first"
        try:
            with w.box.gate.unrecorded():
                before = snapshot(w)
                w.box.client("cloudwatch")
            branches.watch(w.box.gate)
            live(w)
            w.box.gate.after = None
            w.box.gate.heal()
            with w.box.gate.unrecorded():
                found = [*broken(w, before), *broken_after_test(w)]
                ended = w.shown().state.value
            branches.report(name, ended, found)
        except BaseException as error:
            branches.failed(name, error)
    return branches.rows


def asked_world(load: object = None) -> AbstractContextManager[World]:
    """An autoscaled endpoint without leave to serve twice, and a pending proposal that offers a test."""
    why = Reason(Code.TEST_WORTH_IT, "worth a test first")
    pending = {"state": ProposalState.PENDING, "decision": None}
    judged = {"gate": Gate.PROPOSE, "gate_reason": why, "mode": Mode.PROPOSE}
    return world(ASKED, load=load, seed=autoscaled, count=1, proposed=pending, judged=judged)


def live(w: World) -> None:
    """Ticks until the change that follows the test is over, or the test is, where none follows."""
    end, judged = w.now + timedelta(hours=HOURS), False
    _until_answered(lambda: _decide(w))
    while w.now < end:
        _once(lambda: advance_changes(w.apply, TickDue(w.now), w.now))
        with w.box.gate.unrecorded():
            change, shown = w.journal.load(change_id_of(w.proposal)), w.shown()
            over = change is not None and change.is_closed
            if over and not judged:
                judged = _evaluate(w)
            if judged and _all_closed(w) and shown.state not in (ProposalState.APPROVED, ProposalState.APPLYING):
                return
        w.box.clock.advance(TICK)


def _decide(w: World) -> None:
    decision = Decision(ProposalState.APPROVED, "slack:U1", w.now, test_first=True)
    try:
        decide(w.store, w.proposal.id, decision, w.now)
    except ConflictError:
        if w.shown().state is ProposalState.PENDING:
            raise


def _until_answered(invoke: Callable[[], object]) -> None:
    """A person presses again until the answer comes."""
    for _ in range(5):
        try:
            invoke()
        except (Killed, RightsizerError):
            continue
        return


def _once(invoke: Callable[[], object]) -> None:
    """One invocation; where it dies, the next tick comes."""
    try:
        invoke()
    except (Killed, RightsizerError):
        return


def _evaluate(w: World) -> bool:
    """The next evaluation: sure of the type where a test of it is in the history, else it asks for the test again."""
    tested = any(past.to_type == ASKED.target.instance_type for past in w.store.history(NAME).endpoint)
    option: Option = replace(ASKED, test_usd=Decimal(0), untested_risk=None) if tested else ASKED
    at = w.now + timedelta(minutes=1)
    found: Recommendation = replace(w.proposal.recommendation, evaluated_at=at, options=(option,))
    w.store.save(found, None)
    return True


def changes(w: World) -> list[Change]:
    """Every change of the endpoint that the table holds, the test first."""
    table = w.box.client("dynamodb")
    rows = table.scan(TableName="t")["Items"]
    ids = [row["pk"]["S"].removeprefix("CHANGE#") for row in rows if row["pk"]["S"].startswith("CHANGE#")]
    found = [change for change_id in ids if (change := w.journal.load(change_id)) is not None]
    return sorted(found, key=lambda change: change.created_at)


def _all_closed(w: World) -> bool:
    return all(change.is_closed for change in changes(w))


def broken_after_test(w: World) -> Iterator[str]:
    """Laws of the whole: one decision is one test and one change, and both are told, kept and booked."""
    found, shown = changes(w), w.shown()
    kinds = [change.plan.kind for change in found]
    if kinds != [PlanKind.SHADOW_TEST, PlanKind.CHANGE]:
        yield f"the decision began {[kind.value for kind in kinds]}, not a test and then its change"
        return
    test, change = found
    if change.state is not ChangeState.PROVEN or shown.state is not ProposalState.PROVEN:
        yield f"the test passed, and the change is {change.state.value}, the proposal {shown.state.value}"
    if shown.change_id != change.id or test.id == change.id:
        yield f"the proposal shows {shown.change_id or 'no change'}, and {change.id} followed the test {test.id}"
    if "ShadowProductionVariants" in w.live():
        yield "a shadow still runs"
    past = [(one.ended.value, one.to_type) for one in w.store.history(NAME).endpoint]
    if past != [("tested", ASKED.target.instance_type), ("proven", ASKED.target.instance_type)]:
        yield f"the history holds {past}"
    paid = sorted(e.note for e in w.ledger.entries(test.created_at, w.now) if e.kind == "switch-cost")
    if paid != ["overlap of both fleets", "price of the shadow test"]:
        yield f"the ledger holds {paid} as paid once"
