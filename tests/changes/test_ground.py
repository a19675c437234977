"""Facts may change between the plan and the first write that the endpoint feels; nobody's counts are overwritten."""

from dataclasses import replace
from datetime import time, timedelta

from rightsizer.changes.reconcile import leftover_configs
from rightsizer.domain.change import ChangeState
from rightsizer.domain.plan import StepKind
from rightsizer.domain.policy import ChangeLimits, ChangeWindow
from rightsizer.domain.proposal import ProposalState
from rightsizer.errors import ThrottledError
from tests.changes.account import MONDAY, NAME, NEW_TYPE, OLD
from tests.changes.memory import World, autoscaled, world

PAGED = ChangeLimits(probation=timedelta(hours=2), incident_alarms=("pager",))


def count(w: World) -> int:
    return w.account.counts["AllTraffic"][1]


def bounds(w: World) -> list[tuple[int, int]]:
    return [(target.minimum, target.maximum) for target in w.account.targets.values()]


def taken(w: World) -> World:
    """Autoscaling was taken away, and the update is throttled for a while."""
    w.refuse(StepKind.UPDATE_ENDPOINT, ThrottledError("updating chat: Rate exceeded"), 3)
    w.start()
    w.until(lambda change: not w.account.targets)
    return w


def paged(w: World, state: str) -> None:
    w.account.known_alarms["pager"] = (MONDAY, {"AlarmName": "pager"})
    w.account.states["pager"] = state


def test_a_fleet_that_grew_while_the_alarms_warmed_up_is_planned_again_at_its_new_size() -> None:
    w = world(scaling=autoscaled(1, 6))
    w.start()
    assert bounds(w) == [(1, 6)], "the alarms are not OK yet"
    w.account.scale(3)
    change = w.run(6)
    assert (change.state, count(w)) == (ChangeState.PROVEN, 3)
    assert any(entry.step == "moved" for entry in change.journal)
    assert change.plan.new_config in leftover_configs(change)
    assert len(leftover_configs(change)) > 1, "the configuration of the first plan stays, and is listed"


def test_a_person_who_scales_before_anything_was_touched_is_not_overwritten() -> None:
    w = world()
    w.start()
    w.account.scale(3)
    change = w.run(6)
    assert change.state is ChangeState.REFUSED
    assert "AllTraffic 1 x weight 1 and is AllTraffic 3 x weight 1" in change.outcome
    assert (count(w), w.account.config_name, w.shown().state) == (3, OLD, ProposalState.WITHDRAWN)
    assert w.account.known_alarms == {}
    assert w.past() == (), "a refusal teaches nothing about the hardware"


def test_a_person_who_scales_after_autoscaling_was_taken_away_brings_the_change_back() -> None:
    w = taken(world(scaling=autoscaled(1, 6)))
    w.account.scale(4)
    change = w.run(6)
    assert change.state is ChangeState.ROLLED_BACK
    assert change.outcome.startswith(f"{NAME} was never updated by this change: the fleet moved since the plan")
    assert "autoscaling goes back as it was" in change.outcome
    assert (count(w), bounds(w), w.account.config_name) == (4, [(1, 6)], OLD)


def test_bounds_that_were_edited_while_the_alarms_warmed_up_are_those_that_are_given_back() -> None:
    w = world(scaling=autoscaled(1, 6))
    w.start()
    resource, target = next(iter(w.account.targets.items()))
    w.account.targets[resource] = replace(target, maximum=9)
    assert (w.run(6).state, bounds(w)) == (ChangeState.PROVEN, [(1, 9)])


def test_a_window_that_closes_while_the_alarms_warm_up_is_waited_for() -> None:
    window = ChangeWindow(start=time(8, 0), end=time(9, 1))
    w = world(limits=ChangeLimits(probation=timedelta(hours=2), window=window), scaling=autoscaled(1, 6))
    w.start()
    w.advance(timedelta(minutes=2))
    w.run(6)
    assert (w.account.config_name, bounds(w)) == (OLD, [(1, 6)])
    assert "the change window opens on Tue 3 Nov 2026, 08:00 UTC" in w.change.outcome
    change = w.run(48)
    assert change.state is ChangeState.PROVEN
    assert change.turned_at is not None
    assert change.turned_at.date() == (MONDAY + timedelta(days=1)).date()


def test_an_incident_that_begins_while_the_alarms_warm_up_keeps_autoscaling_where_it_is() -> None:
    w = world(limits=PAGED, scaling=autoscaled(1, 6))
    paged(w, "OK")
    w.start()
    paged(w, "ALARM")
    w.run(2)
    assert bounds(w) == [(1, 6)]
    assert "the incident alarm pager is firing" in w.change.outcome
    paged(w, "OK")
    assert w.run(6).state is ChangeState.PROVEN


def test_an_incident_that_begins_after_autoscaling_was_taken_away_gives_it_back() -> None:
    w = world(limits=PAGED, scaling=autoscaled(1, 6))
    paged(w, "OK")
    taken(w)
    paged(w, "ALARM")
    assert w.run(6).state is ChangeState.ROLLED_BACK
    assert (bounds(w), w.account.config_name) == ([(1, 6)], OLD)


def test_an_incident_alarm_that_does_not_exist_lets_nothing_begin() -> None:
    w = world(limits=PAGED)
    assert w.start().state is ChangeState.PLANNED
    assert "pager does not exist, so nobody knows of an incident" in w.change.outcome
    paged(w, "OK")
    w.run(12)
    assert w.account.instance_type("AllTraffic") == NEW_TYPE


def test_a_change_that_is_over_holds_nothing_and_begins_the_cooldown() -> None:
    w = world()
    w.start()
    assert w.run(12).state is ChangeState.PROVEN
    assert w.kept.last_change_at(NAME) == w.change.journal[-1].at
    assert w.kept.locks == {}
