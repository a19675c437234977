"""Run one change in one scenario to one ending, disturbed at one request, and say which laws broke."""

import random
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from rightsizer import intake
from rightsizer.domain.change import Change
from rightsizer.domain.proposal import change_id_of
from rightsizer.errors import RightsizerError
from rightsizer.flows.apply_orders import advance_changes
from rightsizer.flows.orders import Orders
from sandbox.gate import Call
from sandbox.refusals import Killed
from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.changing.world import NAME, Frozen, World, world
from tests.faults.branch import Branches, Row
from tests.faults.courses import COURSES, Course
from tests.faults.laws import broken, snapshot

HOURS = 80
"""Longer than any path through the journal: maintenance, retries and probation included."""
TICK = timedelta(minutes=5)
THAWS = timedelta(hours=2)
"""How long a freeze lasts: longer than a deployment and its roll-back."""


@dataclass(frozen=True)
class Delivery:
    """How events and ticks reach the door."""

    name: str = ""
    times: int = 1
    late: timedelta = timedelta(0)
    """Each event and tick comes up to this late, by a seed."""
    reverse: bool = False


PROMPT = Delivery()
DELIVERIES = (
    Delivery("five times", times=5),
    Delivery("up to an hour late", late=timedelta(hours=1)),
    Delivery("late and reversed, twice", times=2, late=timedelta(hours=1), reverse=True),
)


def every_point(sample: int, *, in_grid: int) -> pytest.MarkDecorator:
    """A test of the points of a run: each `sample`-th one with all tests, each `in_grid`-th one by `make faults`."""
    return pytest.mark.parametrize("every", [sample, pytest.param(in_grid, marks=pytest.mark.grid)])


def killed(call: Call) -> None:
    """The process dies here."""
    raise Killed(f"killed after {call.action}")


def changed_something(call: Call) -> bool:
    """A death after a read leaves what the death after the write before it left, so each is tried once."""
    return call.writes


def talks(call: Call) -> bool:
    """Any request; metrics are read in a thread of their own, and change nothing in between."""
    return call.operation != "GetMetricData"


@dataclass(frozen=True)
class Disturbance:
    """What happens at a request, and at which ones."""

    name: str
    at: Callable[[Call], bool]
    happens: Callable[[World], Callable[[Call], None]]


def _frozen(hard: bool) -> Callable[[World], Callable[[Call], None]]:
    def at(w: World) -> Callable[[Call], None]:
        def freeze(call: Call) -> None:
            with w.box.gate.unrecorded():
                Orders(w.journal).freeze("U1", w.now, hard=hard)
            seen = call.service != "dynamodb"  # else the intent is written, and its step follows
            w.frozen = Frozen(w.now, hard, len(w.box.calls) if seen else None)

        return freeze

    return at


def _second(w: World) -> Callable[[Call], None]:
    def invoked(call: Call) -> None:
        w.apply.tick(w.now + timedelta(seconds=1))
        w.apply.advance_endpoint(NAME, w.now)

    return invoked


KILLED = Disturbance("", changed_something, lambda w: killed)
READS = Disturbance("killed after reads too", talks, lambda w: killed)
SECOND = Disturbance("a second invocation", talks, _second)
"""It runs, whole, between two requests of the first."""
FROZEN = Disturbance("frozen", changed_something, _frozen(False))
FROZEN_HARD = Disturbance("frozen hard", changed_something, _frozen(True))


def runs(
    scenario: Scenario,
    course: Course,
    delivery: Delivery = PROMPT,
    *,
    every: int = 1,
    disturbance: Disturbance = KILLED,
) -> list[Row]:
    """The whole run, and one copy for each request at which it was disturbed."""
    with scenario_world(scenario) as w:
        branches = Branches(disturbance.at, disturbance.happens(w), every)
        parts = (scenario.name, course.name, delivery.name, disturbance.name)
        name = " / ".join(part for part in parts if part)
        try:
            with w.box.gate.unrecorded():
                before = snapshot(w)
                w.box.client("cloudwatch")  # the laws need one, and each copy would make its own
            course.prepare(w)
            branches.watch(w.box.gate)
            _live(w, course, delivery)
            w.box.gate.after = None
            w.box.gate.heal()
            with w.box.gate.unrecorded():
                found, ended = list(broken(w, before)), w.change.state.value
            branches.report(name, ended, found)
        except BaseException as error:
            branches.failed(name, error)
    return branches.rows


def scenario_world(scenario: Scenario) -> AbstractContextManager[World]:
    """The account of a scenario."""
    return world(
        scenario.option,
        seed=scenario.seed,
        kind=scenario.kind,
        judged=scenario.judged,
        limits=scenario.limits,
        **scenario.endpoint,
    )


def _live(w: World, course: Course, delivery: Delivery) -> None:
    """The stream delivers the approval until it was taken; events and ticks follow; somebody meddles once."""
    end, meddled, seen = w.now + timedelta(hours=HOURS), course.meddle is None, len(w.box.events)
    later, answered = cast("Callable[[], object] | None", None), False
    dice, waiting = random.Random(f"{course.name}{delivery.name}"), list[tuple[datetime, Any]]()
    tick, change = w.now, _change(w)
    while w.now < end:
        if change is not None and not meddled and course.meddle is not None:
            meddled = course.meddle(w)
        if change is None:
            _deliver(delivery, lambda: w.start())
        for event in _arrived(w, waiting, delivery):
            _deliver(delivery, lambda event=event: advance_changes(w.apply, intake.parse(event), w.now))  # type: ignore[misc]
        if w.now >= tick:
            _deliver(delivery, lambda: w.apply.tick(w.now))
        change = _change(w)
        if change is not None and change.is_closed:
            if course.afterwards is None:
                return
            later = later or course.afterwards(w)
            answered = answered or _answered(later)
            change = _change(w)
            if answered and change is not None and change.is_closed:
                return
        _thaw(w)
        due = change.next_due if change is not None and change.next_due is not None else w.now + TICK
        tick = max(due, w.now + timedelta(minutes=1)) + _late(delivery, dice)
        rest = min([tick, *(at for at, _ in waiting)]) - w.now
        watched = change is not None and change.turned_at is not None
        slow = meddled or (course.patient and watched)
        w.box.clock.advance(max(min(rest, timedelta(hours=1) if slow else 0.8 * TICK), timedelta(minutes=1)))
        w.frozen = w.frozen and w.frozen.noticed(w.now, len(w.box.calls))
        waiting += [(w.now + _late(delivery, dice), event) for event in w.box.events[seen:]]
        seen = len(w.box.events)


def _thaw(w: World) -> None:
    """After a while the freeze is lifted; until then what restores went on."""
    frozen = w.frozen
    if frozen is None or frozen.thawed is not None or w.now < frozen.at + THAWS:
        return
    with w.box.gate.unrecorded():
        bare = not w.apply.changer.scaling(NAME, ["AllTraffic"])
        Orders(w.journal).thaw("U1", w.now)
    w.frozen = replace(frozen, thawed=len(w.box.calls), bare=bare)


def _late(delivery: Delivery, dice: random.Random) -> timedelta:
    return delivery.late * dice.random()


def _arrived(w: World, waiting: list[tuple[datetime, Any]], delivery: Delivery) -> Iterable[Any]:
    """Events about endpoints whose time has come; a rule matches them by source and detail type."""
    here = [(at, event) for at, event in waiting if at <= w.now]
    waiting[:] = [pair for pair in waiting if pair[0] > w.now]
    ours = [event for _, event in here if event["source"] == "aws.sagemaker"]
    return reversed(ours) if delivery.reverse else ours


def _deliver(delivery: Delivery, invoke: Callable[[], object]) -> None:
    """One delivery is one invocation; a dead one and a failed one are delivered again by the service, or by a tick."""
    for _ in range(delivery.times):
        try:
            invoke()
        except (Killed, RightsizerError):
            continue


def _answered(invoke: Callable[[], object]) -> bool:
    """Deliver one invocation; a refusal is an answer, a death is none."""
    try:
        invoke()
    except Killed:
        return False
    except RightsizerError:
        return True
    return True


def _change(w: World) -> Change | None:
    with w.box.gate.unrecorded():
        return w.journal.load(change_id_of(w.proposal))


def plan(
    some: tuple[Scenario, ...] = scenarios.ALL, courses: tuple[Course, ...] = COURSES
) -> list[tuple[Scenario, Course]]:
    """Every pair that makes sense."""
    return [(s, c) for s in some for c in courses if c.suits(s)]
