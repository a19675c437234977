"""Whatever AWS shows, the next move is a legal one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rightsizer.changes.reconcile import next_action
from rightsizer.domain.change import Change, ChangeState, Course, Entry, JournalEvent
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import AlarmSight, EndpointSight, Gone, LiveState, ProofVerdict, VariantSight
from rightsizer.domain.next_action import Do, Finish, Steer, Wait
from rightsizer.domain.plan import Before, Plan, Step, StepKind, VariantCount
from rightsizer.domain.policy import Switch
from rightsizer.domain.reason import Code, Reason
from tests import samples

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
WHO = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/chat/variant/v",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
CONFIG = Step(StepKind.CREATE_CONFIG, "new", {"EndpointConfigName": "new"})
ALARM = Step(StepKind.PUT_ALARM, "a", {"AlarmName": "a"})
CLEAR = Step(StepKind.DEREGISTER_TARGET, WHO["ResourceId"], WHO)
TURN = Step(StepKind.UPDATE_ENDPOINT, "chat to new", {"EndpointName": "chat", "EndpointConfigName": "new"})
BACK = Step(StepKind.UPDATE_ENDPOINT, "chat to old", {"EndpointName": "chat", "EndpointConfigName": "old"})
SETTLE = Step(StepKind.REGISTER_TARGET, WHO["ResourceId"], {**WHO, "MinCapacity": 2, "MaxCapacity": 4})
RESTORE = Step(StepKind.REGISTER_TARGET, WHO["ResourceId"], {**WHO, "MinCapacity": 1, "MaxCapacity": 2})
TIDY = Step(StepKind.DELETE_ALARMS, "a", {"AlarmNames": ["a"]})
PLAN = Plan(
    prepare=(CONFIG, ALARM),
    clear=(CLEAR,),
    turn=TURN,
    settle=(SETTLE,),
    back=BACK,
    restore=(RESTORE,),
    tidy=(TIDY,),
    new_config="new",
    back_config="old",
    after=(VariantCount("v", "ml.g5.xlarge", 1, 1.0),),
    alarms=("a",),
)
BEFORE = Before("old", NOW - timedelta(days=9), "", (VariantCount("v", "ml.g5.4xlarge", 1, 1.0),))
FORWARD = {CONFIG.key, ALARM.key, CLEAR.key, TURN.key}
STATUSES = ("InService", "Updating", "SystemUpdating", "RollingBack", "Failed", "UpdateRollbackFailed", "OutOfService")

entries = st.builds(
    Entry,
    at=st.integers(0, 5000).map(lambda m: NOW - timedelta(minutes=m)),
    step=st.sampled_from([s.key for s in (CONFIG, ALARM, CLEAR, TURN, BACK, SETTLE, RESTORE, TIDY)]),
    status=st.sampled_from(["intended", "done", "failed"]),
    detail=st.sampled_from(["", "again:unknown:x", "refused:quota:y", "again:permission:z", "nonsense"]),
)
changes = st.builds(
    lambda course, state, ending, journal, turned, mark, asked: samples.change(
        NOW - timedelta(hours=100),
        before=BEFORE,
        plan=PLAN,
        course=course,
        state=state,
        ending=ending if course is Course.CLOSE else None,
        journal=tuple(sorted(journal, key=lambda e: e.at)),
        turned_at=NOW - timedelta(hours=1) if turned else None,
        turn_mark=NOW - timedelta(hours=2) if mark else None,
        asked_back_by="U1" if asked else "",
    ),
    st.sampled_from(list(Course)),
    st.sampled_from([ChangeState.RUNNING, ChangeState.APPLIED, ChangeState.RETURNING]),
    st.sampled_from([ChangeState.PROVEN, ChangeState.APPLIED, ChangeState.ROLLED_BACK, ChangeState.HANDED_OVER]),
    st.lists(entries, max_size=12),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
sights = st.builds(
    lambda status, config, pending, counts, moved, why, same, target, alarm, verdict: LiveState(
        EndpointSight(
            status,
            config,
            NOW - timedelta(minutes=moved),
            why,
            pending,
            (VariantSight("v", counts[0], counts[1], 1.0, 1.0),),
        ),
        configs=frozenset({"new"}) if same is True else frozenset(),
        configs_differ=frozenset({"new"}) if same is None else frozenset(),
        scaling=(ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], *target),) if target else (),
        alarms={"a": AlarmSight("a", alarm, {"AlarmName": "a"})} if alarm else {},
        verdict=ProofVerdict(verdict, Reason(Code.UNPROVEN, "x")) if verdict else None,
    ),
    st.sampled_from(STATUSES),
    st.sampled_from(["old", "new", "theirs"]),
    st.sampled_from(["", "new", "old", "theirs"]),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.integers(0, 500),
    st.sampled_from(["", "InsufficientInstanceCapacity"]),
    st.sampled_from([True, False, None]),
    st.sampled_from([None, (1, 2), (2, 4), (3, 9)]),
    st.sampled_from(["", "OK", "ALARM", "INSUFFICIENT_DATA"]),
    st.sampled_from([None, "proven", "bad", "not-yet", "given-up"]),
)


@given(changes, sights | st.just(LiveState(Gone("chat"))), st.booleans(), st.booleans())
def test_every_move_is_legal(change: Change, sight: LiveState, frozen: bool, hard: bool) -> None:
    move = next_action(change, sight, NOW, Switch(frozen, hard, "U1"))
    status = getattr(sight.endpoint, "status", "Gone")
    match move:
        case Do(step=step):
            assert not (frozen and hard), "a hard freeze stops every step"
            if frozen and change.course is Course.FORWARD and change.turned_at is None:
                assert step.key not in FORWARD, "a freeze stops every forward step"
            if step.kind is StepKind.UPDATE_ENDPOINT:
                assert status == "InService"
                assert not sight.has_effect_of(step)
                assert change.course is not Course.CLOSE
            if step is TURN:
                assert sight.scaling == (), "SageMaker refuses a change of type while a target is registered"
                assert (sight.alarms or {})["a"].state == "OK", "the alarms are ready before the start"
        case Wait(until=until):
            assert until > NOW
        case Finish(state=state):
            assert change.course is Course.CLOSE or status == "Gone"
            if state is ChangeState.ROLLED_BACK:
                assert getattr(sight.endpoint, "config_name", "") != "new"
        case Steer():
            after = replace(change, course=move.course or change.course, ending=move.ending or change.ending)
            progress: tuple[Any, ...] = (
                after.course,
                after.ending,
                move.turned,
                move.applied,
                move.returned,
                move.remaining,
            )
            assert progress != (change.course, change.ending, False, False, False, ()), "a steer always moves on"


@given(sights)
def test_in_service_on_the_old_configuration_is_never_success(sight: LiveState) -> None:
    endpoint = sight.endpoint
    assert isinstance(endpoint, EndpointSight)
    tried = (Entry(NOW - timedelta(hours=2), TURN.key, "intended"), Entry(NOW - timedelta(hours=2), TURN.key, "done"))
    running = samples.change(
        NOW - timedelta(hours=3),
        before=Before("old", NOW - timedelta(days=9), "", ()),
        plan=PLAN,
        state=ChangeState.RUNNING,
        journal=tried,
        turn_mark=NOW - timedelta(hours=2),
    )
    back = replace(
        sight, endpoint=replace(endpoint, status="InService", config_name="old", pending_config="", modified_at=NOW)
    )
    move = next_action(running, back, NOW, Switch())
    assert isinstance(move, Steer)
    assert (move.course, move.ending) == (Course.CLOSE, ChangeState.ROLLED_BACK)


REGION = samples.change(NOW).ref.region
"""Of every change here; command lines name it."""


def change_after(*done: Step, **known: Any) -> Change:
    """A change that has done these steps a minute ago."""
    return samples.change(
        NOW - timedelta(hours=1),
        before=BEFORE,
        plan=PLAN,
        state=ChangeState.RUNNING,
        journal=tuple(Entry(NOW - timedelta(minutes=1), step.key, "done", "") for step in done),
        **known,
    )


def given_back(change: Change) -> Change:
    """The change once autoscaling was given back whole."""
    note = Entry(NOW - timedelta(minutes=1), JournalEvent.APPLIED, "noted", "it runs what was asked")
    return replace(change, journal=(*change.journal, note))


def _sight(config: str, alarm: str, count: int = 1) -> LiveState:
    variants = (VariantSight("v", count, count, 1.0, 1.0),)
    return LiveState(
        EndpointSight("InService", config, NOW, "", "", variants),
        configs=frozenset({"new"}),
        scaling=(),
        alarms={"a": AlarmSight("a", alarm, {"AlarmName": "a"})},
    )


def test_the_update_starts_only_once_its_alarms_are_ok() -> None:
    ready = change_after(CONFIG, ALARM, CLEAR)
    assert next_action(ready, _sight("old", "OK"), NOW, Switch()) == Do(TURN)
    waits = next_action(ready, _sight("old", "INSUFFICIENT_DATA"), NOW, Switch())
    assert isinstance(waits, Wait)
    assert "is INSUFFICIENT_DATA since Mon" in waits.why
    assert "is waited for until " in waits.why
    ringing = next_action(ready, _sight("old", "ALARM"), NOW, Switch())
    assert isinstance(ringing, Steer)
    assert ringing.reason.code is Code.ALARM_NOT_OK


def test_the_new_configuration_at_another_count_than_asked_is_no_success() -> None:
    turned = change_after(CONFIG, ALARM, CLEAR, TURN, turn_mark=NOW - timedelta(minutes=2))
    arrived = next_action(turned, _sight("new", "OK"), NOW, Switch())
    assert not (isinstance(arrived, Steer) and arrived.course is Course.BACK)
    misfit = next_action(turned, _sight("new", "OK", count=0), NOW, Switch())
    assert isinstance(misfit, Steer)
    assert (misfit.course, "counts that were asked" in misfit.reason.sentence) == (Course.BACK, True)


def test_autoscaling_that_moves_the_count_during_the_probation_is_waited_for() -> None:
    moved = samples.change(
        NOW - timedelta(hours=30),
        before=BEFORE,
        plan=PLAN,
        state=ChangeState.APPLIED,
        turned_at=NOW - timedelta(hours=20),
        journal=(Entry(NOW - timedelta(hours=20), SETTLE.key, "done"),),
    )
    scaling = EndpointSight("Updating", "new", NOW - timedelta(minutes=2), "", "", (VariantSight("v", 1, 2, 1.0, 1.0),))
    assert isinstance(next_action(moved, LiveState(scaling), NOW, Switch()), Wait)
    stuck = replace(scaling, modified_at=NOW - timedelta(hours=20))
    handed = next_action(moved, LiveState(stuck), NOW, Switch())
    assert isinstance(handed, Steer)
    assert handed.ending is ChangeState.HANDED_OVER


def _released(state: ChangeState, *done: Step) -> tuple[Change, LiveState]:
    """A customer's release with bounds of its own, on an endpoint whose change is in `state`."""
    at = NOW - timedelta(hours=20)
    change = replace(
        change_after(),
        state=state,
        turned_at=at,
        journal=tuple(Entry(at, step.key, "done") for step in done),
    )
    theirs = EndpointSight("InService", "release-42", NOW, "", "", (VariantSight("v", 6, 6, 1.0, 1.0),))
    bounds = ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], 5, 20)
    return change, LiveState(theirs, scaling=(bounds,), alarms={"a": AlarmSight("a", "OK", {"AlarmName": "a"})})


def _closing(change: Change, live: LiveState) -> tuple[Steer, Change]:
    steer = next_action(change, live, NOW, Switch())
    assert isinstance(steer, Steer)
    return steer, replace(change, course=Course.CLOSE, ending=steer.ending, failure=steer.failure, reason=steer.reason)


def test_a_release_during_the_probation_keeps_its_own_autoscaling() -> None:
    change, live = _released(ChangeState.APPLIED, CLEAR, TURN, SETTLE)
    steer, closing = _closing(change, live)
    assert steer.ending is ChangeState.HANDED_OVER
    assert "autoscaling is left as it is" in steer.reason.sentence
    assert next_action(closing, live, NOW, Switch()) == Do(TIDY), "our own alarms go"
    clean = replace(live, alarms={})
    assert isinstance(next_action(closing, clean, NOW, Switch()), Finish)
    assert isinstance(clean.endpoint, EndpointSight)
    sent = replace(clean, endpoint=replace(clean.endpoint, config_name="old", pending_config="release-42"))
    assert isinstance(next_action(closing, sent, NOW, Switch()), Finish), (
        "a release that is still being deployed is theirs"
    )


def test_a_release_before_autoscaling_was_given_back_gets_back_what_was_taken() -> None:
    change, live = _released(ChangeState.RUNNING, CLEAR, TURN)
    steer, closing = _closing(change, replace(live, scaling=()))
    assert "left as it is" not in steer.reason.sentence
    assert next_action(closing, replace(live, scaling=()), NOW, Switch()) == Do(RESTORE)


def test_autoscaling_stays_registered_until_the_roll_back_alarms_are_ok() -> None:
    live = (ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], 1, 2),)
    ready = change_after(CONFIG, ALARM)
    assert isinstance(
        next_action(ready, replace(_sight("old", "INSUFFICIENT_DATA"), scaling=live), NOW, Switch()), Wait
    )
    assert next_action(ready, replace(_sight("old", "OK"), scaling=live), NOW, Switch()) == Do(CLEAR)
