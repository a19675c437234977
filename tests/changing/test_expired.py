"""An approval is good for seven days: a change that waits longer for its endpoint's update is closed and told."""

from dataclasses import replace
from datetime import time, timedelta

import pytest

from rightsizer.changes.reconcile.courses import expired
from rightsizer.changes.reconcile.steps import SHOWS
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.policy import ChangeLimits, ChangeWindow
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code
from rightsizer.flows.orders import Orders
from sandbox.refusals import Killed
from tests.changing import scenarios
from tests.changing.test_lost import ticks
from tests.changing.world import NAME, World, world

LIMITS = ChangeLimits(probation=timedelta(hours=2), rewire_alarms=True)
HOURLY = timedelta(hours=1)
UPDATES = ("UpdateEndpoint", "UpdateEndpointWeightsAndCapacities")


def updates(w: World) -> int:
    return len([call for call in w.box.calls if call.operation in UPDATES])


def alarms(w: World) -> list[str]:
    with w.box.gate.unrecorded():
        return [a["AlarmName"] for a in w.box.client("cloudwatch").describe_alarms()["MetricAlarms"]]


def narrowed(w: World) -> None:
    """The stack is deployed again with a MayChange that allows no forward step."""
    w.apply = replace(w.apply, limits=replace(w.apply.limits, dry_run=True))


def widened(w: World) -> None:
    w.apply = replace(w.apply, limits=replace(w.apply.limits, dry_run=False))


def frozen(w: World) -> None:
    Orders(w.journal).freeze("U1", w.now)


def thawed(w: World) -> None:
    Orders(w.journal).thaw("U1", w.now)


def closed_window(w: World) -> None:
    """A window that opens for a minute, six days from now."""
    shut = ChangeWindow(days=frozenset({(w.now.weekday() - 1) % 7}), start=time(3), end=time(3, 1))
    w.apply = replace(w.apply, limits=replace(w.apply.limits, window=shut))


def no_window(w: World) -> None:
    w.apply = replace(w.apply, limits=replace(w.apply.limits, window=ChangeWindow()))


STOPS = {"narrowed": (narrowed, widened), "frozen": (frozen, thawed)}


def planned(w: World) -> None:
    """The change has its plan and its roll-back alarms, and waits for them before its turn."""
    w.start()
    assert w.change.before is not None
    assert alarms(w), "the roll-back alarms are there"
    assert updates(w) == 0


def assert_expired(w: World, change: Change) -> None:
    assert change.reason is not None
    assert (change.state, change.reason.code) == (ChangeState.REFUSED, Code.EXPIRED)
    assert "waited 7 days" in change.outcome
    assert (w.shown().state, w.shown().outcome) == (ProposalState.EXPIRED, change.outcome)
    assert [text for subject, text in w.told if subject == f"{NAME}: approval expired"] == [change.outcome]
    assert w.journal.held_by(NAME) == ""


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("long", [True, False])
def test_a_change_with_a_plan_that_waits_too_long_for_its_turn_is_closed_and_told(stop: str, long: bool) -> None:
    begins, ends = STOPS[stop]
    with world(limits=LIMITS) as w:
        planned(w)
        begins(w)
        ticks(w, timedelta(days=8 if long else 6), HOURLY)
        if long:
            assert_expired(w, w.change)
            assert "no forward step is taken" in w.change.outcome
            assert alarms(w) == [], "its roll-back alarms are taken away"
        ends(w)
        ticks(w, timedelta(hours=12))
        assert w.change.state is (ChangeState.REFUSED if long else ChangeState.PROVEN), w.change.outcome
        assert updates(w) == (0 if long else 1)


def test_what_expired_may_be_approved_again_at_once_and_waits_for_the_cooldown_of_what_was_written() -> None:
    with world(limits=LIMITS) as w:
        planned(w)
        narrowed(w)
        ticks(w, timedelta(days=7, hours=12), timedelta(hours=12))
        assert_expired(w, w.change)
        widened(w)
        last = w.journal.last_change_at(NAME)
        assert last is not None
        decision = Decision(ProposalState.APPROVED, "slack:U1", w.now)
        w.store.save(w.proposal.recommendation, replace(w.proposal, decision=decision))
        change = w.start()
        assert change.id != w.change.id
        assert (change.state, change.next_due) == (ChangeState.PLANNED, last + LIMITS.cooldown)
        assert "the last change of this endpoint was at" in change.outcome


def test_a_change_that_nobody_looked_at_for_eight_days_is_not_carried_on() -> None:
    with world(limits=LIMITS) as w:
        planned(w)
        w.box.clock.advance(timedelta(days=8))
        ticks(w, timedelta(hours=2))
        assert_expired(w, w.change)
        assert updates(w) == 0
        assert w.box.config_name(NAME) == f"{NAME}-config"


def test_a_change_without_a_plan_that_nobody_looked_at_for_eight_days_is_not_begun() -> None:
    with world(limits=LIMITS) as w:
        closed_window(w)
        w.start()
        no_window(w)
        w.box.clock.advance(timedelta(days=8))
        ticks(w, timedelta(hours=2))
        assert_expired(w, w.change)
        assert [call.action for call in w.box.calls.writes() if call.service != "dynamodb"] == []


def test_the_seven_days_begin_with_the_approval_and_not_with_the_change() -> None:
    with world(limits=LIMITS) as w:
        w.box.clock.advance(timedelta(days=6))
        planned(w)
        frozen(w)
        ticks(w, timedelta(days=2), HOURLY)
        assert_expired(w, w.change)


def test_autoscaling_that_was_taken_away_before_the_turn_comes_back_when_the_approval_is_too_old() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, limits=LIMITS, **scenario.endpoint) as w:
        w.box.fail("sagemaker", "UpdateEndpoint", "ThrottlingException", times=10**6)
        w.start()
        while not any(entry.detail == "sagemaker:UpdateEndpoint" for entry in w.change.journal):
            w.run(0.05)
        w.box.gate.heal()
        w.box.clock.advance(timedelta(days=8))
        ticks(w, timedelta(hours=2))
        change, (target,) = w.change, w.apply.changer.scaling(NAME, ["AllTraffic"])
        made = [call for call in w.box.calls.of("sagemaker", "UpdateEndpoint") if call.error is None]
        held = w.journal.held_by(NAME)
    assert (change.state, change.reason and change.reason.code) == (ChangeState.ROLLED_BACK, Code.EXPIRED)
    assert (made, held) == ([], "")
    assert (target.minimum, target.maximum) == (1, 4)
    assert [text for subject, text in w.told if subject == f"{NAME}: approval expired"] == [change.outcome]


def test_a_change_whose_update_was_made_is_never_expired() -> None:
    with world(limits=LIMITS) as w:
        w.box.clock.advance(timedelta(days=6, hours=23, minutes=40))
        w.start()
        while not updates(w):
            w.run(0.05)
        w.box.clock.advance(timedelta(minutes=30))
        ticks(w, timedelta(hours=12))
        assert w.change.state is ChangeState.PROVEN, w.change.outcome


@pytest.mark.parametrize("made", [True, False])
def test_of_an_update_that_was_cut_off_the_endpoint_itself_tells_whether_it_was_made(made: bool) -> None:
    with world(limits=LIMITS) as w:
        planned(w)
        w.box.gate.kill(1, after=made, matches=lambda call: call.operation == "UpdateEndpoint")
        with pytest.raises(Killed):
            w.run(2)
        w.box.gate.heal()
        w.box.clock.advance(timedelta(days=8))
        ticks(w, timedelta(hours=12))
        if made:
            assert w.change.state is ChangeState.PROVEN, w.change.outcome
        else:
            assert_expired(w, w.change)
            assert w.box.config_name(NAME) == f"{NAME}-config"


def test_an_update_that_was_asked_a_moment_ago_is_not_taken_for_one_that_was_never_made() -> None:
    with world(limits=LIMITS) as w:
        w.box.clock.advance(timedelta(days=6, hours=23, minutes=40))
        planned(w)
        w.run(0.3)
        asked = next(e for e in w.change.journal if e.detail == "sagemaker:UpdateEndpoint")
        late = w.change.expires_at + timedelta(minutes=1)
        assert expired(w.change, late) is None
        assert expired(w.change, asked.at + SHOWS) is not None
