"""Each request of a stop and of a start as AWS gets it, whether AWS shows it already, and the commands in order."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.changes.hours.steps import (
    LiveHours,
    commands_by_hand,
    create_step,
    created_by_us,
    delete_step,
    has_effect,
    missing_part,
    settle_steps,
    silence_steps,
    sound_steps,
    step_key,
)
from rightsizer.domain.hours_record import HoursState, config_command, intent_of, model_command
from rightsizer.domain.live_state import Gone, LiveState, VariantSight
from rightsizer.domain.plan import Step, StepKind, VariantCount
from tests.changes.hours.kit import (
    CONFIG,
    HOURS,
    MODEL,
    MORNING,
    NAME,
    NIGHT,
    PAGER,
    REF,
    SCALER,
    TARGET,
    alarm,
    before,
    done,
    endpoint,
    gone,
    live,
    record,
    rejected,
)

DELETE, CREATE = delete_step(REF), create_step(REF, before(), CONFIG)
(SILENCE,), (SOUND,) = silence_steps(before()), sound_steps(before())
PAIR = (VariantCount("a", "ml.g5.xlarge", 2, 0.9), VariantCount("b", "ml.g5.xlarge", 1, 0.1))


def capacity(subject: str, *rows: dict[str, Any]) -> Step:
    params = {"EndpointName": NAME, "DesiredWeightsAndCapacities": list(rows)}
    return Step(StepKind.SET_CAPACITY, subject, params)


def test_a_delete_and_a_creation_name_the_endpoint_and_a_creation_all_its_tags() -> None:
    assert delete_step(REF) == Step(StepKind.DELETE_ENDPOINT, NAME, {"EndpointName": NAME})
    names = {"EndpointName": NAME, "EndpointConfigName": "small"}
    tags = [{"Key": "rightsizer:hours", "Value": HOURS}, {"Key": "team", "Value": "search"}]
    assert create_step(REF, before(), "small") == Step(StepKind.CREATE_ENDPOINT, NAME, {**names, "Tags": tags})
    assert create_step(REF, before(tags={}), "small").params == names


def test_a_creation_has_one_key_from_whatever_configuration() -> None:
    assert step_key(StepKind.CREATE_ENDPOINT, REF) == CREATE.key == create_step(REF, before(), "small").key
    assert step_key(StepKind.DELETE_ENDPOINT, REF) == DELETE.key


def test_the_same_alarms_are_switched_off_and_on() -> None:
    names = {"AlarmNames": ["chat-errors"]}
    assert Step(StepKind.SILENCE_ALARMS, "chat-errors", names) == SILENCE
    assert Step(StepKind.SOUND_ALARMS, "chat-errors", names) == SOUND


def test_counts_and_weights_are_set_as_they_were_live() -> None:
    (count, _) = settle_steps(REF, before(), MORNING)
    assert count == capacity("chat AllTraffic", {"VariantName": "AllTraffic", "DesiredInstanceCount": 2})
    weights, first, second, _ = settle_steps(REF, before(variants=PAIR), MORNING)
    assert weights == capacity(
        "chat", {"VariantName": "a", "DesiredWeight": 0.9}, {"VariantName": "b", "DesiredWeight": 0.1}
    )
    assert (first.subject, second.subject) == ("chat a", "chat b")


def test_policies_are_put_after_their_target_with_the_arguments_that_were_stored() -> None:
    _, register, policy, *_ = settle_steps(REF, before(scaling=(TARGET,), alarms=(SCALER,)), MORNING)
    assert (register.params["MinCapacity"], register.params["MaxCapacity"]) == (1, 4)
    assert policy.params["StepScalingPolicyConfiguration"]["AdjustmentType"] == "ChangeInCapacity"


def shows(step: Step, **known: Any) -> bool:
    state = {"scaling": (), "alarms": {}, **known}
    return has_effect(step, LiveState(state.pop("seen", endpoint()), **state))


def test_an_endpoint_that_is_gone_shows_a_delete_and_no_creation() -> None:
    for seen, is_gone in ((Gone(NAME), True), (endpoint(), False)):
        assert (shows(DELETE, seen=seen), shows(CREATE, seen=seen)) == (is_gone, not is_gone)


@pytest.mark.parametrize(
    ("alarms", "is_silent", "is_loud"),
    [
        ({"chat-errors": alarm(ActionsEnabled=False)}, True, False),
        ({"chat-errors": alarm(ActionsEnabled=True)}, False, True),
        ({"chat-errors": replace(alarm(), body={"AlarmName": "chat-errors"})}, False, True),
        ({}, True, True),
        (None, False, False),
    ],
)
def test_alarms_show_whether_their_actions_are_on_and_those_that_are_gone_stand_against_nothing(
    alarms: Any, is_silent: bool, is_loud: bool
) -> None:
    assert (shows(SILENCE, alarms=alarms), shows(SOUND, alarms=alarms)) == (is_silent, is_loud)


def test_an_alarm_that_starts_a_policy_is_shown_by_its_body_and_not_where_nobody_looked() -> None:
    whole = before(scaling=(TARGET,), alarms=(SCALER,))
    put = next(step for step in settle_steps(REF, whole, MORNING) if step.kind is StepKind.PUT_ALARM)
    assert shows(put, scaling=(TARGET,), alarms={"chat-busy": alarm(SCALER)})
    assert not shows(put, scaling=(TARGET,), alarms={"chat-busy": alarm(SCALER, AlarmActions=[])})
    assert not shows(put, scaling=(TARGET,), alarms=None)


def test_autoscaling_is_shown_by_what_is_registered() -> None:
    register = settle_steps(REF, before(scaling=(TARGET,)), MORNING)[1]
    assert shows(register, scaling=(TARGET,))
    assert not shows(register)


@pytest.mark.parametrize(
    ("counts", "weights", "shown"),
    [
        ((2, 1), (0.9, 0.1), [True, True, True]),
        ((2, 1), (0.9, 0.2), [False, True, True]),
        ((3, 1), (0.9, 0.1), [True, False, True]),
        ((2, 2), (0.8, 0.1), [False, True, False]),
    ],
)
def test_each_count_and_the_weights_together_are_compared_with_what_is_live(
    counts: tuple[int, int], weights: tuple[float, float], shown: list[bool]
) -> None:
    rows = tuple(VariantSight(n, c, c, w, w) for n, c, w in zip("ab", counts, weights, strict=True))
    steps = settle_steps(REF, before(variants=PAIR, alarms=()), MORNING)
    assert [shows(step, seen=endpoint(variants=rows)) for step in steps] == shown


def test_a_variant_that_is_gone_shows_nothing() -> None:
    steps = settle_steps(REF, before(variants=PAIR, alarms=()), MORNING)
    only = (VariantSight("a", 2, 2, 0.9, 0.9),)
    assert [shows(step, seen=endpoint(variants=only)) for step in steps] == [False, True, False]


WHOLE = before(models=(MODEL,))
ONE = record(HoursState.STARTING, before=WHOLE)
CONFIG_LINE = f"# only where the configuration is gone: {config_command(WHOLE, REF.region)}"
MODEL_LINE = f"# only where the model is gone: {model_command(MODEL, REF.region)}"
SERVING = f"aws sagemaker wait endpoint-in-service --region {REF.region} --endpoint-name chat"
DELETED = f"aws sagemaker wait endpoint-deleted --region {REF.region} --endpoint-name chat"
SETTLE = tuple(step.command(REF.region) for step in settle_steps(REF, WHOLE, MORNING))


def by_hand(status: str) -> tuple[str, ...]:
    """The commands for an endpoint of that status, of which neither count nor alarm is as stored."""
    seen = endpoint(status=status, variants=(VariantSight("AllTraffic", 1, 1, 1.0, 1.0),))
    return commands_by_hand(ONE, MORNING, live(seen, alarm(ActionsEnabled=False)).state)


def test_the_commands_make_it_again_wait_for_it_and_then_put_everything_back() -> None:
    anew = (MODEL_LINE, CONFIG_LINE, CREATE.command(REF.region), SERVING, *SETTLE)
    assert commands_by_hand(ONE, MORNING) == commands_by_hand(ONE, MORNING, gone().state) == anew
    assert by_hand("Failed") == (DELETE.command(REF.region), DELETED, *anew)
    delete, create = DELETE.command(REF.region), CREATE.command(REF.region)
    again = f"# only where it ends as Failed, or is gone: {delete} ; {DELETED} && {create}"
    for status in ("Creating", "Deleting"):
        assert by_hand(status) == (SERVING, again, *SETTLE)
    assert by_hand("InService") == SETTLE


def test_the_first_part_that_is_not_as_stored_is_named() -> None:
    def missing(seen: LiveHours, one: Any = ONE) -> str:
        return missing_part(one, seen, MORNING)

    assert missing(live(None, alarm(ActionsEnabled=False))) == "EnableAlarmActions chat-errors"
    small = endpoint(variants=(VariantSight("AllTraffic", 1, 1, 1.0, 1.0),))
    assert missing(live(small)) == "UpdateEndpointWeightsAndCapacities chat AllTraffic"
    assert missing(live()) == ""
    assert missing(live(small), replace(ONE, before=None)) == ""


def test_bounds_are_those_of_the_actions_that_fired_since_it_was_stopped() -> None:
    """Also of actions that stay registered; the first look after the hour of one asks for its bounds."""
    action = {
        "ScheduledActionName": "morning",
        "Schedule": "cron(0 6 * * ? *)",
        "ScalableTargetAction": {"MinCapacity": 3, "MaxCapacity": 6},
        "ServiceNamespace": "sagemaker",
        "ResourceId": TARGET.resource_id,
        "ScalableDimension": TARGET.dimension,
    }
    one = replace(ONE, before=before(scaling=(replace(TARGET, policies=(), scheduled=(action,)),), alarms=()))
    fired = replace(TARGET, policies=(), scheduled=(action,), minimum=3, maximum=6)
    seen = live()
    seen = replace(seen, state=replace(seen.state, scaling=(fired,)))
    assert missing_part(one, seen, MORNING) == ""
    assert missing_part(one, seen, NIGHT) == f"RegisterScalableTarget {TARGET.resource_id}"
    lines = commands_by_hand(one, MORNING, seen.state)
    assert lines == ()


def test_a_start_of_ours_is_told_by_a_creation_that_aws_took_or_may_have() -> None:
    assert created_by_us(record(HoursState.STARTING, *done(CREATE)))
    assert created_by_us(record(HoursState.STARTING, intent_of(create_step(REF, before(), "small"), NIGHT)))
    assert not created_by_us(record(HoursState.STARTING, *rejected(CREATE)))
    assert not created_by_us(record(HoursState.STARTING, *done(DELETE)))
    assert not created_by_us(record(HoursState.STARTING, *done(CREATE), before=None))


def test_alarms_without_actions_are_left_as_they_are() -> None:
    silent = before(alarms=(PAGER, {**PAGER, "AlarmName": "z", "ActionsEnabled": False}))
    assert silence_steps(silent) == (SILENCE,)
