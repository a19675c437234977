"""Any sequence of events, deaths, refusals and other people's deeds leaves the laws whole.

A sequence is data, so that what broke a law once is kept here as a case. After it the world heals, the freeze is
lifted, and the ordinary ticks go on until the change is closed.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rightsizer import intake
from rightsizer.domain.proposal import change_id_of
from rightsizer.errors import RightsizerError
from rightsizer.flows.apply_orders import advance_changes
from rightsizer.flows.orders import Orders
from sandbox.gate import Call
from sandbox.refusals import Killed
from sandbox.sagemaker.deployment import Ending
from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.changing.world import NAME, World
from tests.faults.courses import grow
from tests.faults.drive import scenario_world
from tests.faults.laws import broken, snapshot

type Deed = tuple[str, int]
"""What is done, and its number: minutes, times, or which."""
SCENARIOS = {
    s.name: s for s in (scenarios.PLAIN, scenarios.AUTOSCALED, scenarios.SCHEDULED, scenarios.COUNT, scenarios.BOUNDS)
}
ENDINGS = (Ending.ALARM, Ending.CAPACITY, Ending.HEALTH_CHECK, Ending.SYSTEM_UPDATING)
deeds = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([1, 4, 9, 30, 61, 200])),
    st.tuples(st.just("tick"), st.integers(1, 3)),
    st.tuples(st.just("event"), st.integers(1, 5)),
    st.tuples(st.just("old event"), st.integers(0, 3)),
    st.tuples(st.just("die after a write"), st.integers(1, 6)),
    st.tuples(st.just("throttle"), st.integers(1, 6)),
    st.tuples(st.just("scale"), st.integers(1, 2)),
    st.tuples(
        st.sampled_from(["ask back", "freeze", "freeze hard", "thaw", "redeploy", "remove", "start"]), st.just(0)
    ),
)


def start(w: World, number: int) -> None:
    w.start()


def wait(w: World, minutes: int) -> None:
    w.box.clock.advance(timedelta(minutes=minutes))


def tick(w: World, times: int) -> None:
    for _ in range(times):
        w.apply.tick(w.now)


def event(w: World, times: int) -> None:
    """The newest event, so many times."""
    for one in [e for e in w.box.events if e["source"] == "aws.sagemaker"][-1:] * times:
        advance_changes(w.apply, intake.parse(one), w.now)


def old_event(w: World, number: int) -> None:
    """An event of long ago, after newer ones."""
    for one in [e for e in w.box.events if e["source"] == "aws.sagemaker"][number : number + 1]:
        advance_changes(w.apply, intake.parse(one), w.now)


def die_after_a_write(w: World, number: int) -> None:
    """The process of the next delivery dies after its so-manieth write."""
    left = [number]

    def after(call: Call) -> None:
        left[0] -= call.writes
        if call.writes and left[0] == 0:
            raise Killed(f"killed after {call.action}")

    w.box.gate.after = after
    try:
        w.apply.tick(w.now)
    finally:
        w.box.gate.after = None


def throttle(w: World, times: int) -> None:
    w.box.gate.fail("*", "*", "ThrottlingException", "Rate exceeded", times=times)


def _order(what: Callable[[Orders, World], Any]) -> Callable[[World, int], None]:
    def given_(w: World, number: int) -> None:
        with w.box.gate.unrecorded():
            what(Orders(w.journal), w)

    return given_


def redeploy(w: World, number: int) -> None:
    """Somebody deploys a configuration of theirs, where AWS lets them."""
    sagemaker = w.box.client("sagemaker")
    with w.box.gate.unrecorded():
        if w.box.status(NAME) != "InService" or w.box.config_name(NAME) == "theirs":
            return
        body = sagemaker.describe_endpoint_config(EndpointConfigName=w.box.config_name(NAME))
        kept = {k: body[k] for k in ("ProductionVariants", "MetricsConfig") if k in body}
        sagemaker.create_endpoint_config(EndpointConfigName="theirs", **kept)
        sagemaker.update_endpoint(EndpointName=NAME, EndpointConfigName="theirs")


def scale(w: World, more: int) -> None:
    """Somebody or autoscaling makes the fleet larger, once."""
    if w.grown is None and NAME in w.box.world.fleet.endpoints and w.box.config_name(NAME) != "theirs":
        with w.box.gate.unrecorded():
            grow(w, more)


def remove(w: World, number: int) -> None:
    if NAME in w.box.world.fleet.endpoints:
        w.box.remove_endpoint(NAME)


DOES: dict[str, Callable[[World, int], None]] = {
    "start": start,
    "wait": wait,
    "tick": tick,
    "event": event,
    "old event": old_event,
    "die after a write": die_after_a_write,
    "throttle": throttle,
    "ask back": _order(lambda orders, w: orders.request_rollback(change_id_of(w.proposal), "U1", w.now)),
    "freeze": _order(lambda orders, w: orders.freeze("U1", w.now)),
    "freeze hard": _order(lambda orders, w: orders.freeze("U1", w.now, hard=True)),
    "thaw": _order(lambda orders, w: orders.thaw("U1", w.now)),
    "redeploy": redeploy,
    "remove": remove,
    "scale": scale,
}


OF_OTHERS = frozenset({"remove", "redeploy", "scale"})


def violations(scenario: Scenario, ending: Ending | None, sequence: Sequence[Deed]) -> list[str]:
    """Every law that the sequence breaks."""
    with scenario_world(scenario) as w:
        with w.box.gate.unrecorded():
            before = snapshot(w)
        if ending is not None:
            w.box.script_deployment(NAME, ending)
        for name, number in (("start", 0), *sequence):
            if name in OF_OTHERS and _over(w):
                continue  # what somebody does after the end is no part of the change
            try:
                DOES[name](w, number)
            except (Killed, RightsizerError):
                continue
        w.box.gate.heal()
        _order(lambda orders, one: orders.thaw("U1", one.now))(w, 0)
        if w.journal.load(change_id_of(w.proposal)) is None:
            w.start()
        w.run(24 * 6)
        with w.box.gate.unrecorded():
            return list(broken(w, before))


def _over(w: World) -> bool:
    with w.box.gate.unrecorded():
        change = w.journal.load(change_id_of(w.proposal))
    return change is not None and change.is_closed


COUNTER_EXAMPLES: tuple[tuple[str, Ending | None, tuple[Deed, ...]], ...] = (
    ("plain type change", None, (("wait", 9), ("throttle", 6), ("event", 5), ("old event", 0))),
    ("autoscaling bounds", None, (("wait", 200), ("tick", 2), ("remove", 0))),
    ("autoscaled type change", None, (("die after a write", 4), ("freeze hard", 0), ("wait", 61), ("ask back", 0))),
)


@pytest.mark.parametrize(("scenario", "ending", "sequence"), COUNTER_EXAMPLES)
def test_what_broke_a_law_once_keeps_it_now(scenario: str, ending: Ending | None, sequence: Sequence[Deed]) -> None:
    assert violations(SCENARIOS[scenario], ending, sequence) == []


RARELY = settings(
    deadline=None, derandomize=True, max_examples=4, database=None, suppress_health_check=[HealthCheck.too_slow]
)


@RARELY
@example("count only", None, [("remove", 0), ("start", 0)])
@given(st.sampled_from(sorted(SCENARIOS)), st.sampled_from((None, *ENDINGS)), st.lists(deeds, max_size=8))
def test_any_sequence_keeps_the_laws(scenario: str, ending: Ending | None, sequence: list[Deed]) -> None:
    assert violations(SCENARIOS[scenario], ending, sequence) == []


@pytest.mark.grid
@settings(RARELY, max_examples=16)
@given(st.sampled_from(sorted(SCENARIOS)), st.sampled_from((None, *ENDINGS)), st.lists(deeds, max_size=12))
def test_many_sequences_keep_the_laws(scenario: str, ending: Ending | None, sequence: list[Deed]) -> None:
    assert violations(SCENARIOS[scenario], ending, sequence) == []
