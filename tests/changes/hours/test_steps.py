"""Steps of a stop and of a start: each is a request as it is sent, and a command for whoever does it by hand."""

from dataclasses import replace

from rightsizer.changes.hours.steps import commands_by_hand, create_step, has_effect, settle_steps, silence_steps
from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.live_state import Gone, LiveState, VariantSight
from rightsizer.domain.plan import StepKind, VariantCount
from tests.changes.hours.kit import (
    CONFIG,
    MORNING,
    NAME,
    PAGER,
    REF,
    SCALER,
    TARGET,
    alarm,
    before,
    endpoint,
    gone,
    live,
    record,
)

KINDS = [
    StepKind.SET_CAPACITY,
    StepKind.REGISTER_TARGET,
    StepKind.PUT_POLICY,
    StepKind.PUT_ALARM,
    StepKind.SOUND_ALARMS,
]


def test_a_start_puts_everything_back_that_a_delete_takes_away() -> None:
    whole = before(scaling=(TARGET,), alarms=(PAGER, SCALER))
    assert [step.kind for step in settle_steps(REF, whole, MORNING)] == KINDS


def test_a_scheduled_action_that_fired_meanwhile_leaves_its_bounds() -> None:
    action = {
        "ScheduledActionName": "morning",
        "Schedule": "cron(0 6 * * ? *)",
        "ScalableTargetAction": {"MinCapacity": 3, "MaxCapacity": 6},
        "ServiceNamespace": "sagemaker",
        "ResourceId": TARGET.resource_id,
        "ScalableDimension": TARGET.dimension,
    }
    whole = before(scaling=(replace(TARGET, policies=(), scheduled=(action,)),), alarms=())
    register = next(s for s in settle_steps(REF, whole, MORNING) if s.kind is StepKind.REGISTER_TARGET)
    assert (register.params["MinCapacity"], register.params["MaxCapacity"]) == (3, 6)


def test_weights_go_in_one_request_and_each_count_in_its_own() -> None:
    both = before(variants=(VariantCount("a", "ml.g5.xlarge", 2, 0.9), VariantCount("b", "ml.g5.xlarge", 1, 0.1)))
    rows = [s.params["DesiredWeightsAndCapacities"] for s in settle_steps(REF, both, MORNING) if "Weights" in s.key]
    assert rows == [
        [{"VariantName": "a", "DesiredWeight": 0.9}, {"VariantName": "b", "DesiredWeight": 0.1}],
        [{"VariantName": "a", "DesiredInstanceCount": 2}],
        [{"VariantName": "b", "DesiredInstanceCount": 1}],
    ]
    assert len({s.key for s in settle_steps(REF, both, MORNING)}) == 4, "each has a key of its own"


def test_alarms_go_a_hundred_at_once_and_silent_ones_stay_as_they_are() -> None:
    many = tuple({**PAGER, "AlarmName": f"a{n:03}"} for n in range(101))
    silent = {**PAGER, "AlarmName": "z", "ActionsEnabled": False}
    named = [step.params["AlarmNames"] for step in silence_steps(before(alarms=(*many, silent)))]
    assert [len(names) for names in named] == [100, 1]
    assert "z" not in named[1]


def test_a_count_that_autoscaling_moves_is_left_to_it() -> None:
    capacity = settle_steps(REF, before(scaling=(TARGET,)), MORNING)[0]
    scaled_out = endpoint(variants=(VariantSight("AllTraffic", 4, 4, 1.0, 1.0),))
    assert not has_effect(capacity, LiveState(scaled_out, scaling=()))
    assert has_effect(capacity, LiveState(scaled_out, scaling=(TARGET,)))
    assert not has_effect(capacity, LiveState(Gone(NAME), scaling=()))


def test_an_alarm_that_its_owner_deleted_meanwhile_is_not_made_again() -> None:
    whole = before(scaling=(TARGET,), alarms=(SCALER,))
    put = next(s for s in settle_steps(REF, whole, MORNING) if s.kind is StepKind.PUT_ALARM)
    assert has_effect(put, LiveState(endpoint(), scaling=(TARGET,), alarms={}))


def test_the_commands_by_hand_leave_out_what_is_done() -> None:
    one = record(HoursState.STARTING)
    lines = commands_by_hand(one, MORNING, gone().state)
    assert lines[0].startswith("# only where the configuration is gone: aws sagemaker create-endpoint-config")
    assert lines[1] == create_step(REF, before(), CONFIG).command(REF.region)
    assert lines[-1].startswith("aws cloudwatch enable-alarm-actions")
    failed = commands_by_hand(one, MORNING, live(endpoint(status="Failed")).state)
    assert failed[0].startswith("aws sagemaker delete-endpoint")
    creating = commands_by_hand(one, MORNING, live(endpoint(status="Creating"), alarm(ActionsEnabled=False)).state)
    assert creating[0] == "aws sagemaker wait endpoint-in-service --region eu-west-1 --endpoint-name chat"
    assert create_step(REF, before(), CONFIG).command(REF.region) in creating[1]
    left = commands_by_hand(one, MORNING, live(None, alarm(ActionsEnabled=False)).state)
    assert len(left) == 1
    assert left[0].startswith("aws cloudwatch enable-alarm-actions")
    assert commands_by_hand(replace(one, before=None), MORNING) == ()
