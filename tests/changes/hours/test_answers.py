"""What AWS answers to a delete or a creation, and what it proves: a stop of ours is not taken for somebody else's."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rightsizer.changes.hours import MOST_TRIES, HoursAction, Settle, next_hours_action, with_delete_seen
from rightsizer.changes.hours.steps import LiveHours, create_step, delete_step, silence_steps, sound_steps
from rightsizer.domain.change import Entry
from rightsizer.domain.hours_record import HoursRecord, HoursState, Untold
from rightsizer.domain.live_state import EndpointSight
from rightsizer.domain.next_action import Do, Wait
from rightsizer.domain.policy import Switch
from tests.changes.hours.kit import (
    CONFIG,
    MADE,
    MORNING,
    NIGHT,
    REF,
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

MINUTE, TICK = timedelta(minutes=1), timedelta(minutes=5)
SILENCED = alarm(ActionsEnabled=False)
DELETE, CREATE = delete_step(REF), create_step(REF, before(), CONFIG)
(SILENCE,), (SOUND,) = silence_steps(before()), sound_steps(before())
EARLY = MORNING - timedelta(minutes=40)
LOST = "again:unanswered:Chat: an earlier attempt of the same call may have deleted it"
ABSENT = 'refused:unknown:Could not find endpoint "chat"'
TAKEN = 'refused:unknown:Cannot create already existing endpoint "chat"'


def decide(one: HoursRecord, seen: LiveHours, now: Any = NIGHT) -> HoursAction:
    return next_hours_action(one, seen, demand(one, now), now, Switch())


def state(action: HoursAction) -> HoursState | str:
    return action.state if isinstance(action, Settle) else str(action)


def stopping(*lines: Entry) -> HoursRecord:
    return record(HoursState.STOPPING, *done(SILENCE), *lines)


def test_a_delete_of_which_the_answer_was_lost_is_ours() -> None:
    assert state(decide(stopping(*rejected(DELETE, detail=LOST)), gone())) is HoursState.STOPPED


def test_a_delete_before_which_one_of_ours_died_unseen_is_ours() -> None:
    died = Entry(NIGHT, DELETE.key, "intended", DELETE.kind.value)
    assert state(decide(stopping(died, *rejected(DELETE, detail=ABSENT)), gone())) is HoursState.STOPPED


def test_a_delete_that_finds_nothing_and_was_never_sent_before_is_somebody_elses() -> None:
    told = decide(stopping(*rejected(DELETE, detail=ABSENT), *done(SOUND)), live(gone().state.endpoint, alarm()))
    assert (state(told), isinstance(told, Settle) and told.tell) == (HoursState.HANDED_OVER, True)


def test_alarms_that_cannot_be_switched_on_are_tried_again_each_tick_and_not_at_once() -> None:
    changed = live(endpoint(config_name="other"), SILENCED)
    for one, seen in ((stopping(*rejected(SOUND)), changed), (stopping(*rejected(SOUND)), gone())):
        assert isinstance(decide(one, seen, NIGHT + MINUTE), Wait)
        assert decide(one, seen, NIGHT + TICK) == Do(SOUND)
    assert state(decide(stopping(*rejected(SOUND) * MOST_TRIES), changed)) is HoursState.HANDED_OVER


def test_only_a_refusal_that_another_type_may_not_meet_leads_to_the_fallback() -> None:
    spare = before(fallback_config="small")
    other = create_step(REF, spare, "small")
    for detail, wanted in (
        (TAKEN, CREATE),
        ("again:permission:no", CREATE),
        ("again:unknown:AWS throttles", CREATE),
        ("refused:quota:the service limit is 0", other),
        ("refused:capacity:none is left", other),
    ):
        lines = [Entry(EARLY - TICK, "begins", "noted", "start"), *rejected(CREATE, EARLY - TICK, detail) * 2]
        starting = record(HoursState.STARTING, *lines, before=spare)
        assert decide(starting, gone(fallback_exists=True), EARLY) == Do(wanted), detail


def test_a_write_that_aws_took_is_not_repeated_before_aws_may_show_it() -> None:
    silenced = stopping()
    assert decide(silenced, live(), NIGHT) == Do(DELETE), "the alarms are shown as before for a while"
    at = MORNING - 30 * MINUTE
    created = record(HoursState.STARTING, *done(CREATE, at))
    assert isinstance(decide(created, gone(), at + 5 * MINUTE), Wait)
    assert decide(created, gone(), at + 10 * MINUTE) == Do(CREATE)
    failed = record(HoursState.STARTING, *done(CREATE, at), *done(DELETE, at + 3 * MINUTE))
    assert decide(failed, gone(), at + 5 * MINUTE) == Do(CREATE), "it was deleted since"
    still = live(endpoint(status="Failed"))
    assert isinstance(decide(failed, still, at + 5 * MINUTE), Wait)
    again = replace(failed, journal=(*failed.journal, *done(CREATE, at + 5 * MINUTE)))
    assert decide(again, still, at + 8 * MINUTE) == Do(DELETE)


def test_a_delete_that_aws_does_not_finish_is_asked_again_and_never_taken_for_running() -> None:
    sent = stopping(*done(DELETE))
    assert decide(sent, live(endpoint(status="Failed"), SILENCED), NIGHT + 15 * MINUTE) == Do(DELETE)
    morning = decide(sent, live(endpoint(status="Failed"), SILENCED), MORNING + 15 * MINUTE)
    assert morning == Do(DELETE), "only a delete is left, and the creation after it"


def test_the_deleted_endpoint_that_aws_shows_once_more_is_still_being_deleted() -> None:
    stopped = replace(record(HoursState.STOPPED, *done(DELETE)), since=NIGHT)
    old = with_delete_seen(stopped, live(endpoint(created_at=MADE)), NIGHT + 5 * MINUTE).state.endpoint
    assert isinstance(old, EndpointSight)
    assert old.status == "Deleting"
    for seen, at in (
        (endpoint(created_at=NIGHT), NIGHT + 5 * MINUTE),  # somebody created it
        (endpoint(created_at=MADE), NIGHT + 10 * MINUTE),  # AWS goes on showing it
    ):
        assert with_delete_seen(stopped, live(seen), at).state.endpoint == seen


def test_messages_that_no_channel_takes_leave_room_in_the_row_and_the_newest_always_waits() -> None:
    one = record()
    for number in range(30):
        one = one.with_untold(Untold(f"late#{number}", NIGHT, "late", "x" * 10_000))
    assert [each.key for each in one.untold] == [f"late#{number}" for number in range(24, 30)]
    one = one.with_untold(Untold("long", NIGHT, "late", "x" * 90_000))
    assert [each.key for each in one.untold] == ["long"]
