"""An approval is good for seven days, and what waits for its turn is carried out only on what was approved."""

from collections.abc import Callable
from dataclasses import replace
from datetime import time, timedelta

import pytest

from rightsizer.changes.reconcile import rollback_action
from rightsizer.domain.change import Change, ChangeState, Course, FailureClass
from rightsizer.domain.live_state import EndpointSight, LiveState
from rightsizer.domain.next_action import Steer
from rightsizer.domain.plan import StepKind
from rightsizer.domain.policy import ChangeWindow
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code
from rightsizer.errors import PermissionMissingError, ThrottledError
from tests.changes.account import NAME, NEW_TYPE, OLD, WHO
from tests.changes.memory import LIMITS, NIGHT, World, an_option, autoscaled, world
from tests.changes.test_reconcile import NOW, change_after

DEREGISTER, REGISTER = StepKind.DEREGISTER_TARGET, StepKind.REGISTER_TARGET
THROTTLED = ThrottledError("updating chat: Rate exceeded")


def planned(w: World) -> World:
    """The change has its plan and its roll-back alarms, and waits for them before its turn."""
    w.start()
    assert w.change.before is not None
    assert w.account.known_alarms
    assert w.account.writes(StepKind.UPDATE_ENDPOINT) == []
    return w


def assert_expired(w: World) -> None:
    change = w.change
    assert change.reason is not None
    assert (change.state, change.reason.code) == (ChangeState.REFUSED, Code.EXPIRED)
    assert "waited 7 days" in change.outcome
    assert (w.shown().state, w.shown().outcome) == (ProposalState.EXPIRED, change.outcome)
    assert [text for subject, text in w.told if subject == f"{NAME}: approval expired"] == [change.outcome]
    assert w.kept.holder_of(NAME) == ""


def narrowed(w: World) -> Callable[[], None]:
    """The stack is deployed again with a MayChange that allows no forward step; how it is widened again."""
    w.limit(dry_run=True)
    return lambda: w.limit(dry_run=False)


def frozen(w: World) -> Callable[[], None]:
    w.freeze()
    return w.thaw


@pytest.mark.parametrize("stop", [narrowed, frozen])
@pytest.mark.parametrize("long", [True, False])
def test_a_change_with_a_plan_that_waits_too_long_for_its_turn_is_closed_and_told(
    stop: Callable[[World], Callable[[], None]], long: bool
) -> None:
    w = planned(world())
    go_on = stop(w)
    w.run(24 * (8 if long else 6))
    if long:
        assert_expired(w)
        assert "no forward step is taken" in w.change.outcome
        assert w.account.known_alarms == {}, "its roll-back alarms are taken away"
    go_on()
    w.run(12)
    assert w.change.state is (ChangeState.REFUSED if long else ChangeState.PROVEN), w.change.outcome
    assert len(w.account.writes(StepKind.UPDATE_ENDPOINT)) == (0 if long else 1)


def test_what_expired_may_be_approved_again_at_once_and_waits_for_the_cooldown_of_what_was_written() -> None:
    w = planned(world())
    widen = narrowed(w)
    w.run(24 * 8)
    assert_expired(w)
    widen()
    last, first = w.kept.last_change_at(NAME), w.change.id
    assert last is not None
    decision = Decision(ProposalState.APPROVED, "slack:U1", w.now)
    w.kept.proposals[w.proposal.id] = replace(w.proposal, decision=decision)
    change = w.start()
    assert change.id != first
    assert (change.state, change.next_due) == (ChangeState.PLANNED, last + LIMITS.cooldown)
    assert "the last change of this endpoint was on" in change.outcome


def test_a_change_that_nobody_looked_at_for_eight_days_is_not_carried_on() -> None:
    w = planned(world())
    w.advance(timedelta(days=8))
    w.run(2)
    assert_expired(w)
    assert w.account.writes(StepKind.UPDATE_ENDPOINT) == []
    assert w.account.config_name == OLD


def test_a_change_without_a_plan_that_nobody_looked_at_for_eight_days_is_not_begun() -> None:
    w = world()
    w.limit(window=ChangeWindow(days=frozenset({6}), start=time(3), end=time(3, 1)))
    w.start()
    w.limit(window=ChangeWindow())
    w.advance(timedelta(days=8))
    w.apply.tick(w.now)
    assert_expired(w)
    assert w.account.done == []


def test_the_seven_days_begin_with_the_approval_and_not_with_the_change() -> None:
    w = world()
    w.advance(timedelta(days=6))
    planned(w)
    w.freeze()
    w.run(48)
    assert_expired(w)


def test_autoscaling_that_was_taken_away_comes_back_when_the_approval_is_too_old() -> None:
    w = world(scaling=autoscaled())
    w.refuse(StepKind.UPDATE_ENDPOINT, THROTTLED)
    w.start()
    w.upto(StepKind.UPDATE_ENDPOINT)
    w.heal()
    w.advance(timedelta(days=8))
    change = w.run(2)
    (target,) = w.account.targets.values()
    assert (change.state, change.reason and change.reason.code) == (ChangeState.ROLLED_BACK, Code.EXPIRED)
    assert (w.account.writes(StepKind.UPDATE_ENDPOINT), w.kept.holder_of(NAME)) == ([], "")
    assert (target.minimum, target.maximum) == (1, 4)
    assert [text for subject, text in w.told if subject == f"{NAME}: approval expired"] == [change.outcome]


def test_a_change_whose_update_was_made_is_never_expired() -> None:
    w = world()
    w.advance(timedelta(days=6, hours=23, minutes=40))
    w.start()
    w.upto(StepKind.UPDATE_ENDPOINT)
    w.advance(timedelta(minutes=30))
    assert w.run(12).state is ChangeState.PROVEN, w.change.outcome


@pytest.mark.parametrize("made", [True, False])
def test_of_an_update_whose_answer_was_lost_the_endpoint_itself_tells_whether_it_was_made(made: bool) -> None:
    w = planned(world())
    if made:
        w.account.loses = lambda step: step.kind is StepKind.UPDATE_ENDPOINT
    else:
        w.refuse(StepKind.UPDATE_ENDPOINT, THROTTLED)
    w.upto(StepKind.UPDATE_ENDPOINT)
    w.heal()
    w.account.loses = lambda step: False
    w.advance(timedelta(days=8))
    w.run(12)
    if made:
        assert w.change.state is ChangeState.PROVEN, w.change.outcome
    else:
        assert_expired(w)
        assert w.account.config_name == OLD


def test_a_change_that_deployed_nothing_is_back_with_the_reason_for_which_it_went() -> None:
    change = replace(change_after(), course=Course.BACK, failure=FailureClass.ASKED)
    change = replace(change, plan=replace(change.plan, back=None))
    sight = EndpointSight("InService", "old", NOW, "", "", ())
    end = rollback_action(change, LiveState(sight, scaling=()), sight, NOW)
    assert isinstance(end, Steer)
    assert (end.course, end.ending, end.failure, end.returned) == (
        Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.ASKED, True,
    )  # fmt: skip
    assert end.reason.sentence == f"{change.ref.name} is back on what it ran before"


def begun(w: World, kind: StepKind) -> Callable[[], Change]:
    """A freeze that somebody orders right after the first write of this kind."""
    perform = w.account._make

    def make(step: object) -> None:
        perform(step)  # type: ignore[arg-type]
        if getattr(step, "kind", None) is kind and not w.kept.frozen.frozen:
            w.freeze()

    w.account._make = make  # type: ignore[method-assign]
    return w.start


def test_a_freeze_between_two_steps_of_one_invocation_stops_the_second() -> None:
    w = world()
    begun(w, StepKind.CREATE_CONFIG)()
    assert [step.kind for step in w.account.done] == [StepKind.CREATE_CONFIG]
    assert w.change.outcome == "frozen by U1: no forward step is taken"


def test_a_freeze_right_after_autoscaling_was_taken_away_gives_it_back_and_deploys_nothing() -> None:
    w = world(scaling=autoscaled())
    begun(w, DEREGISTER)()
    change = w.run(4)
    (target,) = w.account.targets.values()
    assert change.state is ChangeState.ROLLED_BACK
    assert w.past() == (), "a freeze teaches nothing about the type"
    assert w.account.writes(StepKind.UPDATE_ENDPOINT) == []
    assert (target.minimum, target.maximum) == (1, 4)


@pytest.mark.parametrize("kind", [DEREGISTER, StepKind.PUT_POLICY])
def test_a_hard_freeze_between_two_steps_stops_also_what_restores(kind: StepKind) -> None:
    w = world(scaling=autoscaled())
    made = w.account._make

    def make(step: object) -> None:
        made(step)  # type: ignore[arg-type]
        if getattr(step, "kind", None) is kind:
            w.freeze(hard=True)

    w.account._make = make  # type: ignore[method-assign]
    w.start()
    w.run(4)
    assert w.account.done[-1].kind is kind


def test_a_roll_back_alarm_that_never_gets_ok_ends_the_change_and_says_nothing_about_the_type() -> None:
    w = world()
    w.start()
    w.account.states = dict.fromkeys(w.account.known_alarms, "INSUFFICIENT_DATA")
    change = w.run(6)
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert (change.reason and change.reason.code, change.failure) == (Code.ALARM_NOT_OK, FailureClass.ALARM)
    assert (w.account.writes(StepKind.UPDATE_ENDPOINT), w.past()) == ([], ())


def test_autoscaling_comes_back_for_the_new_capacity_with_its_policies_and_schedule() -> None:
    w = world(an_option(target=replace(an_option().target, instance_count=2)), scaling=autoscaled(1, 4, NIGHT))
    w.start()
    assert w.run(12).state is ChangeState.PROVEN
    (target,) = w.account.targets.values()
    assert (target.minimum, target.maximum) == (2, 8), "one old instance is two new ones"
    (policy,), (action,) = target.policies, target.scheduled
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 50.0
    assert action["ScalableTargetAction"] == {"MinCapacity": 2, "MaxCapacity": 4}
    assert w.account.instance_type("AllTraffic") == NEW_TYPE


def test_autoscaling_that_cannot_be_registered_is_told_at_once_once_and_again_when_it_is_back() -> None:
    w = world(scaling=autoscaled())
    w.start()
    w.upto(StepKind.UPDATE_ENDPOINT)
    w.refuse(REGISTER, PermissionMissingError("application-autoscaling:RegisterScalableTarget", "registering"))
    w.until(lambda change: w.told)
    failed = next(e.at for e in w.change.journal if e.status == "failed")
    (told,), at = list(w.told), w.now
    w.run(0.2)
    assert len(w.told) == 1, "said once, however often it is tried"
    w.heal()
    assert w.run(6).state is ChangeState.PROVEN
    assert (at, told[0]) == (failed, f"INCIDENT {NAME}: its autoscaling is missing")
    assert str(WHO["ResourceId"]) in told[1]
    assert "application-autoscaling:RegisterScalableTarget is missing" in told[1]
    assert "aws application-autoscaling register-scalable-target " in told[1]
    assert [subject for subject, _ in w.told[1:]] == [f"{NAME}: its autoscaling is back"]


@pytest.mark.parametrize(("times", "told"), [(1, []), (3, ["its autoscaling is missing", "its autoscaling is back"])])
def test_one_throttled_call_is_no_incident_and_a_second_one_is(times: int, told: list[str]) -> None:
    w = world(scaling=autoscaled())
    w.start()
    w.upto(StepKind.UPDATE_ENDPOINT)
    w.refuse(REGISTER, THROTTLED, times)
    assert w.run(6).state is ChangeState.PROVEN
    assert [subject.partition(": ")[2] for subject, _ in w.told] == told
