"""From a stored record and what AWS shows follows the one next action; no path leads to an endpoint that is gone."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from rightsizer.changes.hours import (
    IN_FLIGHT,
    MOST_TRIES,
    HoursAction,
    Settle,
    demand_at,
    late_notice,
    next_hours_action,
)
from rightsizer.changes.hours.steps import (
    LiveHours,
    create_step,
    delete_step,
    settle_steps,
    silence_steps,
    sound_steps,
)
from rightsizer.domain.change import Entry
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.hours_record import KEPT_ENTRIES, HoursRecord, HoursState, LetGo, Wake, take_wake
from rightsizer.domain.live_state import Gone, VariantSight
from rightsizer.domain.next_action import Do, Wait
from rightsizer.domain.office_hours import HoursLimits
from rightsizer.domain.plan import StepKind
from rightsizer.domain.policy import Switch
from rightsizer.domain.reason import Reason
from tests.changes.hours.kit import (
    CONFIG,
    IMAGE,
    MADE,
    MORNING,
    NAME,
    NIGHT,
    PAGER,
    REF,
    RESOURCE,
    SCALER,
    TARGET,
    alarm,
    before,
    demand,
    done,
    endpoint,
    gone,
    live,
    record,
    rejected,
)

MINUTE = timedelta(minutes=1)
SILENCED = alarm(ActionsEnabled=False)
DELETE, CREATE = delete_step(REF), create_step(REF, before(), CONFIG)
(SILENCE,), (SOUND,) = silence_steps(before()), sound_steps(before())
WIRED = before(scaling=(TARGET,), alarms=(PAGER, SCALER))
START = Entry(MORNING - timedelta(minutes=45), "begins", "noted", "start")
EARLY = MORNING - timedelta(minutes=40)
STOPPING, STOPPED, STARTING = HoursState.STOPPING, HoursState.STOPPED, HoursState.STARTING


def decide(one: HoursRecord, seen: LiveHours, now: datetime = NIGHT, switch: Switch | None = None) -> HoursAction:
    return next_hours_action(one, seen, demand(one, now), now, switch or Switch())


def kind(action: HoursAction) -> Any:
    match action:
        case Do():
            return action.step.kind
        case Settle():
            return action.state
        case Wait():
            return "wait"


# a stop


def test_alarms_are_silenced_before_the_endpoint_is_deleted() -> None:
    assert decide(record(), live()) == Do(SILENCE)
    assert decide(record(STOPPING, *done(SILENCE)), live(None, SILENCED)) == Do(DELETE)


def test_a_delete_is_waited_for_until_the_endpoint_is_gone() -> None:
    sent = record(STOPPING, *done(SILENCE), *done(DELETE))
    assert kind(decide(sent, live(endpoint(status="Deleting"), SILENCED), NIGHT + MINUTE)) == "wait"
    assert kind(decide(sent, gone(), NIGHT + 5 * MINUTE)) is STOPPED


@pytest.mark.parametrize(
    "seen",
    [
        endpoint(config_name="other"),
        endpoint(modified_at=NIGHT),
        endpoint(created_at=NIGHT),
        endpoint(status="Updating"),
    ],
)
def test_who_changes_it_in_between_keeps_it_and_its_alarms(seen: Any) -> None:
    assert decide(record(STOPPING, *done(SILENCE)), live(seen, SILENCED)) == Do(SOUND)
    assert kind(decide(record(STOPPING, *done(SILENCE), *done(SOUND)), live(seen))) is HoursState.RUNNING


def test_a_tag_that_changed_in_between_undoes_the_stop() -> None:
    assert decide(record(), live(None, SILENCED, tags={})) == Do(SOUND)


def test_a_freeze_stops_no_endpoint_and_gives_the_alarms_back() -> None:
    frozen = Switch(frozen=True, by="U1")
    assert decide(record(), live(None, SILENCED), NIGHT, frozen) == Do(SOUND)
    assert kind(decide(record(), live(), NIGHT, Switch(frozen=True, hard=True))) == "wait"


def test_a_delete_that_was_sent_is_not_undone_while_it_may_still_come() -> None:
    """Else the record would say that it runs, and nobody would create it again."""
    sent = record(STOPPING, *done(SILENCE), Entry(NIGHT, DELETE.key, "intended", DELETE.kind.value))
    woken = take_wake(sent, Wake(NIGHT, NIGHT + timedelta(hours=2), "U1"), HoursLimits())
    assert isinstance(woken, HoursRecord)
    assert kind(decide(woken, live(None, SILENCED), NIGHT + MINUTE)) == "wait"
    assert decide(woken, live(None, SILENCED), NIGHT + IN_FLIGHT) == Do(SOUND)
    refused = record(STOPPING, *done(SILENCE), *rejected(DELETE), wakes=woken.wakes)
    assert decide(refused, live(None, SILENCED), NIGHT + MINUTE) == Do(SOUND)


def test_a_stop_that_resumes_late_is_undone_since_callers_may_be_back() -> None:
    """Killed or frozen in between: what was read before the stop says nothing about now."""
    late = NIGHT + timedelta(hours=3)
    assert decide(record(STOPPING, *done(SILENCE)), live(None, SILENCED), late) == Do(SOUND)
    assert kind(decide(record(STOPPING, *done(SILENCE), *done(SOUND)), live(), late)) is HoursState.RUNNING
    unsent = record(STOPPING, *done(SILENCE), Entry(NIGHT, DELETE.key, "intended", DELETE.kind.value))
    assert decide(unsent, live(None, SILENCED), late) == Do(SOUND)
    tried = record(STOPPING, *done(SILENCE), *rejected(DELETE))
    assert decide(tried, live(None, SILENCED), NIGHT + 10 * MINUTE) == Do(DELETE), "the next tick tries again"
    assert decide(tried, live(None, SILENCED), late) == Do(SOUND)


def test_a_delete_that_aws_refuses_three_times_is_given_up_and_told() -> None:
    refused = record(STOPPING, *done(SILENCE), *rejected(DELETE), *rejected(DELETE), *rejected(DELETE))
    assert decide(refused, live(None, SILENCED), NIGHT + 5 * MINUTE) == Do(SOUND)
    assert decide(refused, live(), NIGHT + 5 * MINUTE) == Do(SOUND), "AWS may still show the alarms of before"
    sounded = replace(refused, journal=(*refused.journal, *done(SOUND)))
    over = decide(sounded, live(), NIGHT + 5 * MINUTE)
    assert isinstance(over, Settle)
    assert (over.state, over.tell) == (HoursState.RUNNING, True)


def test_alarms_that_cannot_be_silenced_keep_the_endpoint() -> None:
    refused = record(STOPPING, *rejected(SILENCE), *rejected(SILENCE), *rejected(SILENCE))
    action = decide(refused, live(), NIGHT + 5 * MINUTE)
    assert isinstance(action, Settle)
    assert (action.state, action.tell) == (HoursState.RUNNING, True)


def test_an_endpoint_that_somebody_else_deletes_is_handed_over_with_its_alarms_on() -> None:
    assert decide(record(), gone()) == Do(SOUND)
    action = decide(record(), live(Gone(NAME)))
    assert isinstance(action, Settle)
    assert (action.state, action.tell) == (HoursState.HANDED_OVER, True)


# a night


def test_a_stopped_endpoint_rests_until_its_lead_before_the_opening() -> None:
    action = decide(record(STOPPED), gone(), NIGHT + timedelta(hours=1))
    assert action == Wait(
        MORNING - timedelta(minutes=45), "stopped by its hours; it serves again on Tue 3 Nov 2026, 07:00 UTC"
    )
    assert kind(decide(record(STOPPED), gone(), MORNING - timedelta(minutes=45))) is STARTING


def test_the_lead_follows_its_own_starts() -> None:
    slow = record(STOPPED, starts=(3600.0,))
    assert demand_at(slow, MORNING - timedelta(minutes=99), frozenset()).runs
    assert not demand_at(slow, MORNING - timedelta(minutes=111), frozenset()).runs


def test_an_endpoint_that_its_owner_created_again_gets_its_autoscaling_or_is_handed_over() -> None:
    assert kind(decide(record(STOPPED), live(endpoint(created_at=NIGHT)))) is STARTING
    assert decide(record(STOPPED), live(endpoint(config_name="other"), SILENCED)) == Do(SOUND)
    assert kind(decide(record(STOPPED), live(endpoint(config_name="other")))) is HoursState.HANDED_OVER


def test_a_tag_that_cannot_be_read_means_always_on() -> None:
    found = demand_at(record(hours="mo-fr 8-19"), NIGHT, frozenset())
    assert found.runs
    assert "rightsizer:hours is 'mo-fr 8-19'" in found.problem


# a start


def starting(*lines: Entry, **changes: Any) -> HoursRecord:
    return record(STARTING, *done(SILENCE), *done(DELETE), START, *lines, **changes)


def test_it_is_created_with_its_own_name_configuration_and_tags() -> None:
    action = decide(starting(), gone(), EARLY)
    assert action == Do(CREATE)
    assert CREATE.params["Tags"] == [
        {"Key": "rightsizer:hours", "Value": "mon-fri 08:00-19:00 Europe/Berlin"},
        {"Key": "team", "Value": "search"},
    ]


def test_a_name_that_is_still_being_deleted_and_a_creation_are_waited_for() -> None:
    for status in ("Deleting", "Creating"):
        assert kind(decide(starting(), live(endpoint(status=status), SILENCED), EARLY)) == "wait"


def test_a_failed_creation_is_deleted_and_made_again() -> None:
    tried = starting(*done(CREATE, EARLY))
    failed = live(endpoint(status="Failed", failure_reason="InsufficientInstanceCapacity"), SILENCED)
    assert decide(tried, failed, EARLY) == Do(DELETE)
    assert decide(starting(*done(CREATE, EARLY), *done(DELETE, EARLY)), gone(), EARLY) == Do(CREATE)


def test_a_refused_creation_rests_for_a_tick() -> None:
    tried = starting(*rejected(CREATE, EARLY))
    assert decide(tried, gone(), EARLY + MINUTE) == Wait(EARLY + 5 * MINUTE, "AWS rejected CreateEndpoint: no")
    assert decide(tried, gone(), EARLY + 5 * MINUTE) == Do(CREATE)


def test_the_named_fallback_is_tried_after_two_lost_tries_and_then_each_in_turn() -> None:
    spare = before(fallback_config="small")
    other = create_step(REF, spare, "small")
    lost = [*done(CREATE, EARLY), *done(DELETE, EARLY)]
    at = EARLY + timedelta(minutes=10)
    assert decide(starting(*lost, before=spare), gone(fallback_exists=True), at) == Do(CREATE)
    assert decide(starting(*lost * 2, before=spare), gone(fallback_exists=True), at) == Do(other)
    after = starting(*lost * 2, before=spare).with_intent(other, EARLY)
    assert decide(after, gone(fallback_exists=True), at) == Do(CREATE)
    assert decide(after.with_intent(CREATE, EARLY), gone(fallback_exists=True), at) == Do(other)
    assert decide(starting(*lost * 2, before=spare), gone(), at) == Do(CREATE), "the fallback is gone"
    assert decide(starting(before=spare), gone(config_exists=False, fallback_exists=True), at) == Do(other)


@pytest.mark.parametrize("refused", [True, False])
def test_the_own_type_and_the_fallback_still_have_their_turns_once_the_journal_is_full(refused: bool) -> None:
    spare, now, tried = before(fallback_config="small"), EARLY, list[str]()
    one, sight = starting(before=spare, let_go=LetGo(EARLY, "U1", "")), gone(fallback_exists=True)
    for _ in range(KEPT_ENTRIES):
        action = decide(one, sight, now)
        assert isinstance(action, Do)
        tried.append(action.step.params["EndpointConfigName"])
        lines = rejected(action.step, now) if refused else (*done(action.step, now), *done(DELETE, now))
        one = one.with_intent(action.step, now)
        for line in lines[1:]:
            one = one.with_entry(line)
        now += timedelta(minutes=20)
    assert set(tried[-4:]) == {"small", spare.config_name}
    assert tried[-4:-2] == tried[-2:], "each in turn, also after a day without capacity"


def test_a_configuration_that_was_deleted_at_night_is_handed_over_with_its_whole_content() -> None:
    action = decide(starting(), gone(config_exists=False), EARLY)
    assert isinstance(action, Settle)
    assert (action.state, action.tell) == (HoursState.HANDED_OVER, True)


def test_a_configuration_that_was_made_anew_with_other_content_is_not_deployed() -> None:
    action = decide(starting(), gone(config_replaced=True), EARLY)
    assert isinstance(action, Settle)
    assert (action.state, action.tell) == (HoursState.HANDED_OVER, True)
    assert "made anew with other content" in action.reason.sentence


def test_an_opening_that_is_over_before_the_start_is_waited_for_until_the_next() -> None:
    assert kind(decide(starting(), gone(), MORNING + timedelta(hours=12))) is STOPPED


def test_counts_autoscaling_and_alarms_come_back_in_this_order() -> None:
    whole = before(
        scaling=(TARGET,), alarms=(PAGER, {"AlarmName": "chat-busy", "AlarmActions": [TARGET.policies[0]["PolicyARN"]]})
    )
    one = starting(before=whole)
    busy = alarm({"AlarmName": "chat-busy", "ActionsEnabled": False, "AlarmActions": []})
    small = endpoint(variants=(VariantSight("AllTraffic", 1, 1, 1.0, 1.0, (IMAGE,)),))
    assert kind(decide(one, live(small, SILENCED, busy), EARLY)) is StepKind.SET_CAPACITY
    assert kind(decide(one, live(None, SILENCED, busy), EARLY)) is StepKind.REGISTER_TARGET
    bare = live(None, SILENCED, busy)
    registered = ScalableTarget(RESOURCE, TARGET.dimension, 1, 4)
    bare = replace(bare, state=replace(bare.state, scaling=(registered,)))
    assert kind(decide(one, bare, EARLY)) is StepKind.PUT_POLICY
    bare = replace(bare, state=replace(bare.state, scaling=(TARGET,)))
    assert kind(decide(one, bare, EARLY)) is StepKind.PUT_ALARM
    wired = alarm(
        {"AlarmName": "chat-busy", "ActionsEnabled": False, "AlarmActions": [TARGET.policies[0]["PolicyARN"]]}
    )
    bare = replace(bare, state=replace(bare.state, alarms={"chat-errors": SILENCED, "chat-busy": wired}))
    assert kind(decide(one, bare, EARLY)) is StepKind.SOUND_ALARMS
    on = {"chat-errors": alarm(), "chat-busy": alarm({**wired.body, "ActionsEnabled": True})}
    bare = replace(bare, state=replace(bare.state, alarms=on))
    assert kind(decide(one, bare, EARLY)) is HoursState.RUNNING


def test_a_step_that_aws_rejects_keeps_no_other_one_waiting() -> None:
    one = starting(before=before(scaling=(TARGET,)))
    small = endpoint(variants=(VariantSight("AllTraffic", 1, 1, 1.0, 1.0, (IMAGE,)),))
    first = decide(one, live(small, SILENCED), EARLY)
    assert isinstance(first, Do)
    assert first.step.kind is StepKind.SET_CAPACITY
    refused = starting(*rejected(first.step, EARLY), before=before(scaling=(TARGET,)))
    assert kind(decide(refused, live(small, SILENCED), EARLY + MINUTE)) is StepKind.REGISTER_TARGET


def test_an_alarm_whose_policy_cannot_be_put_is_not_sent_with_the_place_of_the_policy() -> None:
    policy = next(s for s in settle_steps(REF, WIRED, EARLY) if s.kind is StepKind.PUT_POLICY)
    seen = live(None, alarm(), alarm({"AlarmName": "chat-busy", "ActionsEnabled": True, "AlarmActions": []}))
    seen = replace(seen, state=replace(seen.state, scaling=(replace(TARGET, policies=()),)))
    waits = decide(starting(*rejected(policy, EARLY), before=WIRED), seen, EARLY + MINUTE)
    assert kind(waits) == "wait"
    given_up = starting(*rejected(policy, EARLY) * MOST_TRIES, before=WIRED)
    assert kind(decide(given_up, seen, EARLY + MINUTE)) is HoursState.HANDED_OVER


def test_what_aws_keeps_refusing_is_handed_over_while_it_serves() -> None:
    refused = starting(*rejected(SOUND, EARLY) * MOST_TRIES)
    action = decide(refused, live(None, SILENCED), EARLY + timedelta(hours=1))
    assert isinstance(action, Settle)
    assert (action.state, action.tell) == (HoursState.HANDED_OVER, True)


@pytest.mark.parametrize("status", ["OutOfService", "UpdateRollbackFailed"])
def test_an_endpoint_that_does_not_serve_is_handed_over_and_not_called_running(status: str) -> None:
    assert decide(starting(), live(endpoint(status=status), SILENCED), EARLY) == Do(SOUND)
    action = decide(starting(), live(endpoint(status=status)), EARLY)
    assert isinstance(action, Settle)
    assert (action.state, action.tell) == (HoursState.HANDED_OVER, True)
    assert status in action.reason.sentence


def test_a_freeze_lets_a_due_start_go_on_and_a_hard_one_stops_it() -> None:
    assert decide(starting(), gone(), EARLY, Switch(frozen=True)) == Do(CREATE)
    assert kind(decide(starting(), gone(), EARLY, Switch(frozen=True, hard=True))) == "wait"


# who waits


def test_who_waits_is_told_from_five_minutes_after_the_hour_with_the_commands() -> None:
    one = starting(*rejected(CREATE, EARLY, "refused:capacity:InsufficientInstanceCapacity"))
    assert late_notice(one, gone(), demand(one, MORNING), MORNING, "x") is None
    now = MORNING + timedelta(minutes=5)
    found = late_notice(one, gone(), demand(one, now), now, "it waits")
    assert found is not None
    assert found.subject == "chat does not serve yet, Tue 3 Nov 2026, 07:00 UTC"
    assert "InsufficientInstanceCapacity" in found.text
    assert "aws sagemaker create-endpoint --region eu-west-1 --cli-input-json" in found.text
    assert "aws cloudwatch enable-alarm-actions" in found.text


def test_a_delete_that_does_not_end_before_the_hour_is_told() -> None:
    sent, now = record(STOPPING, *done(SILENCE), *done(DELETE)), MORNING + timedelta(minutes=5)
    found = late_notice(
        sent, live(endpoint(status="Deleting"), SILENCED), demand(sent, now), now, "it is being deleted"
    )
    assert found is not None
    assert "chat had to serve on Tue 3 Nov 2026, 07:00 UTC and does not serve yet: it is Deleting" in found.text
    again = late_notice(sent, live(endpoint(status="Creating")), demand(sent, now), now, "it is Creating")
    assert again is not None
    assert again.text.splitlines()[0].count("it is Creating") == 1
    assert late_notice(sent, live(), demand(sent, now), now, "its delete is not seen yet") is None, "it serves"


def test_a_wake_runs_until_its_end_and_is_late_after_its_lead() -> None:
    one = take_wake(record(STOPPED), Wake(NIGHT, NIGHT + timedelta(hours=2), "U1"), HoursLimits())
    assert isinstance(one, HoursRecord)
    assert demand(one, NIGHT).serves_at == NIGHT + timedelta(minutes=45)
    assert kind(decide(one, gone(), NIGHT)) is STARTING
    assert not demand(one, NIGHT + timedelta(hours=2)).runs


def test_wakes_are_limited_a_day_and_in_length() -> None:
    limits, one = HoursLimits(wakes_a_day=1), record(STOPPED)
    woken = take_wake(one, Wake(NIGHT, NIGHT + timedelta(days=9), "U1"), limits)
    assert isinstance(woken, HoursRecord)
    assert woken.wakes[-1].until == NIGHT + timedelta(hours=12)
    again = take_wake(woken, Wake(NIGHT + MINUTE, NIGHT + timedelta(hours=1), "U1"), limits)
    assert isinstance(again, Reason)
    assert "woken 1 times" in again.sentence
    assert isinstance(
        take_wake(woken, Wake(NIGHT + timedelta(days=2), NIGHT + timedelta(days=3), "U1"), limits), HoursRecord
    )
    assert isinstance(take_wake(one, Wake(NIGHT, NIGHT, "U1"), limits), Reason)


def test_the_record_knows_when_it_was_made() -> None:
    assert before().modified_at == MADE
    assert record().id == "hours-chat"
    assert record().holds_lock
    assert not record(HoursState.HANDED_OVER).holds_lock
