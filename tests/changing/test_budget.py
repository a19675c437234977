"""What a change costs to carry out: invocations that read or write for it, and the tick when nothing is due."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from rightsizer import intake
from rightsizer.domain.change import ChangeState
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.proposal import ProposalState
from rightsizer.flows.apply_orders import advance_changes
from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.changing.world import World, steady, world

TICK = timedelta(minutes=5)
DAY = ChangeLimits(probation=timedelta(hours=24), rewire_alarms=True)


def tick(at: Any) -> dict[str, Any]:
    return {
        "source": "rightsizer.scheduler",
        "detail-type": "Tick",
        "id": f"{at}",
        "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "detail": {},
    }


def invocations(w: World, days: int = 2) -> int:
    """Every event of the account, a tick each hour and each that is due; the invocations that looked at the change.

    Of the twelve ticks of an hour those that are not due do the same nothing, which costs most of the time here.
    """
    busy, seen = 1, len(w.box.events)
    w.start()
    change = w.change
    for _ in range(days * 24 * 12):
        if change.is_closed:
            break
        w.box.clock.advance(TICK)
        fresh, seen = w.box.events[seen:], len(w.box.events)
        due = change.next_due is None or change.next_due <= w.now
        ticks = [tick(w.now)] if due or w.now.minute < TICK.seconds // 60 else []
        for event in (*(e for e in fresh if e["source"] == "aws.sagemaker"), *ticks):
            before = len(w.box.calls)
            advance_changes(w.apply, intake.parse(event), w.now)
            looked = len(w.box.calls) - before > _lists(w.now)
            busy += looked
            change = w.change if looked else change
    return busy


def _lists(at: datetime) -> int:
    """The calls of a tick with nothing to do: what is due and what was decided; more of it once an hour and a day."""
    if at.minute >= 5:
        return 4
    return 8 if at.hour else 11


SOME = (scenarios.AUTOSCALED, scenarios.SHADOW, scenarios.PLACEMENT)
"""Autoscaling is given back; the end takes away what was deployed; several components are rolled."""
REST = [s for s in scenarios.ALL if s.limits is None and s not in SOME]


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario", [*SOME, *(pytest.param(one, marks=pytest.mark.grid) for one in REST)], ids=lambda s: s.name
)
def test_a_change_with_a_day_of_probation_costs_at_most_forty_invocations(scenario: Scenario) -> None:
    with world(
        scenario.option,
        seed=scenario.seed,
        kind=scenario.kind,
        limits=DAY,
        judged=scenario.judged,
        **scenario.endpoint,
    ) as w:
        count = invocations(w)
        state = w.change.state
    tested = scenario is scenarios.SHADOW
    assert state is (ChangeState.ROLLED_BACK if tested else ChangeState.PROVEN)
    assert count <= 40, count


@pytest.mark.grid
def test_a_change_that_nobody_proves_for_a_fortnight_costs_at_most_forty_invocations() -> None:
    with world(limits=DAY, load=steady(requests=0)) as w:
        count = invocations(w, days=17)
        state = w.change.state
    assert state is ChangeState.APPLIED
    assert count <= 40, count


def test_a_tick_with_nothing_due_makes_at_most_four_calls() -> None:
    with world(proposed={"state": ProposalState.PENDING, "decision": None}) as w:
        w.box.clock.advance(TICK)
        before = len(w.box.calls)
        assert advance_changes(w.apply, intake.parse(tick(w.now)), w.now) == []
        assert len(w.box.calls) - before <= 4


def test_no_tick_between_two_looks_looks_at_the_change() -> None:
    with world(limits=DAY) as w:
        w.start()
        w.run(4)
        due, ticks = w.change.next_due, 0
        while due is not None and w.now + TICK < due:
            w.box.clock.advance(TICK)
            before = len(w.box.calls)
            advance_changes(w.apply, intake.parse(tick(w.now)), w.now)
            assert len(w.box.calls) - before <= _lists(w.now)
            ticks += 1
        assert w.change.state is ChangeState.APPLIED
    assert ticks > 5


def test_an_event_about_a_deployment_that_goes_on_costs_no_call() -> None:
    with world() as w:
        w.start()
        w.run(0.2)
        ongoing = [e for e in w.box.events if e["detail"].get("EndpointStatus") == "UPDATING"]
        before = len(w.box.calls)
        for event in ongoing:
            advance_changes(w.apply, intake.parse(event), w.now)
        assert ongoing
        assert len(w.box.calls) == before
