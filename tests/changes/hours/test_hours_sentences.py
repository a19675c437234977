"""The next action of office hours, whole: how long it waits, what it settles to, and the sentence that people read."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from rightsizer.changes.hours import (
    HoursAction,
    HoursDemand,
    Settle,
    demand_at,
    next_hours_action,
    with_delete_seen,
)
from rightsizer.changes.hours.steps import (
    LiveHours,
    create_step,
    delete_step,
    silence_steps,
    sound_steps,
)
from rightsizer.domain.change import Entry
from rightsizer.domain.hours_record import HoursRecord, HoursState, LetGo, Wake
from rightsizer.domain.live_state import Gone
from rightsizer.domain.next_action import Do, Wait
from rightsizer.domain.policy import Switch
from rightsizer.domain.reason import Code, Reason
from tests.changes.hours.kit import (
    CONFIG,
    HOURS,
    MADE,
    MORNING,
    NAME,
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

MINUTE, TICK, HOUR = timedelta(minutes=1), timedelta(minutes=5), timedelta(hours=1)
EARLY = MORNING - 40 * MINUTE
SILENCED = alarm(ActionsEnabled=False)
DELETE, CREATE = delete_step(REF), create_step(REF, before(), CONFIG)
(SILENCE,), (SOUND,) = silence_steps(before()), sound_steps(before())
STOPPING, STOPPED, STARTING = HoursState.STOPPING, HoursState.STOPPED, HoursState.STARTING
RUNNING, HANDED_OVER = HoursState.RUNNING, HoursState.HANDED_OVER
AGAIN = "Tue 3 Nov 2026, 07:00 UTC"


def act(one: HoursRecord, seen: LiveHours, now: datetime = NIGHT, switch: Switch | None = None) -> HoursAction:
    return next_hours_action(one, seen, demand(one, now), now, switch or Switch())


def settled(state: HoursState, code: Code, text: str, *, tell: bool = False) -> Settle:
    return Settle(state, Reason(code, text), tell)


def stopping(*lines: Entry, **changes: Any) -> HoursRecord:
    return record(STOPPING, *done(SILENCE), *lines, **changes)


def starting(*lines: Entry, **changes: Any) -> HoursRecord:
    begins = Entry(MORNING - 45 * MINUTE, "begins", "noted", "start")
    return record(STARTING, *done(DELETE), begins, *lines, **changes)


def undone(**known: Any) -> HoursRecord:
    """A stop whose alarms were switched on again."""
    return stopping(*done(SOUND), **known)


# whether it has to run


def test_it_runs_in_its_hours_until_they_close_and_rests_until_its_lead() -> None:
    noon, evening = MORNING + 5 * HOUR, datetime(2026, 11, 3, 18, tzinfo=UTC)
    assert demand(record(), noon) == HoursDemand(True, MORNING, evening)
    lead = 45 * MINUTE
    assert demand(record(), NIGHT) == HoursDemand(False, MORNING, MORNING - lead)
    assert demand(record(), MORNING - lead) == HoursDemand(True, MORNING, evening)
    assert demand(record(), MORNING - lead - MINUTE).runs is False


def test_a_holiday_is_no_opening() -> None:
    found = demand_at(record(), NIGHT, frozenset({date(2026, 11, 3)}))
    assert found == HoursDemand(False, MORNING + 24 * HOUR, MORNING + 24 * HOUR - 45 * MINUTE)


def test_a_wake_serves_after_the_lead_until_its_end() -> None:
    wake = Wake(NIGHT, NIGHT + 2 * HOUR, "U1")
    assert demand(record(wakes=(wake,)), NIGHT) == HoursDemand(True, NIGHT + 45 * MINUTE, NIGHT + 2 * HOUR)
    late = Wake(MORNING - HOUR, MORNING + HOUR, "U1")
    assert demand(record(wakes=(late,)), MORNING - 30 * MINUTE).serves_at == MORNING, "the opening comes first"


def test_what_was_let_go_has_to_serve_after_its_lead_for_good() -> None:
    for said in ("", HOURS):
        assert demand(record(let_go=LetGo(NIGHT, "U1", said)), NIGHT) == HoursDemand(True, NIGHT + 45 * MINUTE)
    assert not demand(record(let_go=LetGo(NIGHT, "U1", "other hours")), NIGHT).runs


def test_hours_that_do_not_open_for_more_than_a_year_are_always_on_with_the_problem() -> None:
    holidays = frozenset(NIGHT.date() + timedelta(days=day) for day in range(-1, 420))
    problem = f"the hours {HOURS!r} never close, or do not open within 400 days"
    assert demand_at(record(), NIGHT, holidays) == HoursDemand(True, problem=problem)


def test_a_holiday_that_began_closes_an_opening() -> None:
    noon = MORNING + 5 * HOUR
    assert not demand_at(record(), noon, frozenset({date(2026, 11, 3)})).runs


# a stop


def test_nothing_is_done_without_a_record_of_before_and_under_a_hard_freeze() -> None:
    assert act(record(before=None), live()) == settled(
        RUNNING, Code.CHANGED_SINCE, "nothing was stored, so nothing is to be done"
    )
    frozen = Switch(True, True, "slack:U1")
    wait = Wait(NIGHT + TICK, "every step is frozen by U1, also those that bring it back")
    for state in (STOPPING, STOPPED, STARTING):
        assert act(record(state), live(), switch=frozen) == wait
    assert act(record(), live(), switch=Switch(False, True, "slack:U1")) == Do(SILENCE)


@pytest.mark.parametrize("state", [RUNNING, HANDED_OVER])
def test_what_runs_or_is_a_persons_waits_for_the_next_tick(state: HoursState) -> None:
    assert act(record(state), live()) == Wait(NIGHT + TICK, "nothing is under way")


def test_a_stop_is_over_once_the_endpoint_is_gone() -> None:
    text = f"stopped, and everything that brings it back is stored; it serves again on {AGAIN}"
    assert act(stopping(*done(DELETE)), gone()) == settled(STOPPED, Code.SAFE_TO_APPLY, text)


def test_a_delete_is_waited_for_a_minute_at_a_time() -> None:
    sent = stopping(*done(DELETE))
    assert act(sent, live(endpoint(status="Deleting"), SILENCED)) == Wait(NIGHT + MINUTE, "it is being deleted")
    unseen = "its delete was sent and is not seen yet"
    assert act(sent, live(None, SILENCED), NIGHT + 9 * MINUTE) == Wait(NIGHT + 10 * MINUTE, unseen)
    assert act(stopping(*rejected(DELETE)), live(None, SILENCED), NIGHT + 9 * MINUTE) == Do(DELETE)


def test_a_rejected_delete_is_tried_again_after_a_minute() -> None:
    wait = Wait(NIGHT + 1.5 * MINUTE, "AWS rejected DeleteEndpoint: no")
    assert act(stopping(*rejected(DELETE)), live(None, SILENCED), NIGHT + 0.5 * MINUTE) == wait
    assert act(stopping(*rejected(DELETE)), live(None, SILENCED), NIGHT + MINUTE) == Do(DELETE)


def test_somebody_elses_delete_is_handed_over() -> None:
    text = "somebody else deleted it while it was about to be stopped"
    assert act(record(), live(Gone(NAME))) == settled(HANDED_OVER, Code.VANISHED, text, tell=True)


CHANGED = "somebody changed it after everything was stored, so it is not stopped"


@pytest.mark.parametrize(
    ("seen", "now", "switch", "code", "text"),
    [
        (live(), NIGHT, Switch(True, False, "slack:U1"), Code.FROZEN, "changes are frozen by U1, so it is not stopped"),
        (live(), MORNING, None, Code.CHANGED_SINCE, "it has to run again, so it is not stopped"),
        (live(endpoint(config_name="other")), NIGHT, None, Code.CHANGED_SINCE, CHANGED),
        (live(endpoint(modified_at=NIGHT)), NIGHT, None, Code.CHANGED_SINCE, CHANGED),
        (live(endpoint(created_at=NIGHT)), NIGHT, None, Code.CHANGED_SINCE, CHANGED),
        (live(endpoint(status="Updating")), NIGHT, None, Code.CHANGED_SINCE, CHANGED),
        (
            live(tags={"team": "other"}),
            NIGHT,
            None,
            Code.CHANGED_SINCE,
            "its tags changed after everything was stored, so it is not stopped",
        ),
        (
            live(),
            NIGHT + 7 * MINUTE,
            None,
            Code.CHANGED_SINCE,
            "the stop was interrupted, and callers may be back; everything is read again before the next one",
        ),
    ],
)
def test_a_stop_that_is_undone_says_why_and_tells_nobody(
    seen: LiveHours, now: datetime, switch: Switch | None, code: Code, text: str
) -> None:
    assert act(undone(), seen, now, switch) == settled(RUNNING, code, text)


def test_hours_that_cannot_be_read_any_more_undo_a_stop_with_the_problem() -> None:
    found = act(undone(hours="mo-fr 8-19"), live())
    assert isinstance(found, Settle)
    assert "rightsizer:hours is 'mo-fr 8-19'" in found.reason.sentence


def test_what_was_read_before_a_stop_holds_six_minutes_and_as_long_again_for_each_rejection() -> None:
    shown = live(None, SILENCED)
    assert act(stopping(), shown, NIGHT + 6 * MINUTE) == Do(DELETE)
    assert act(stopping(), shown, NIGHT + 6 * MINUTE + timedelta(seconds=1)) == Do(SOUND)
    tried = stopping(*rejected(DELETE))
    assert act(tried, shown, NIGHT + 12 * MINUTE) == Do(DELETE)
    assert act(tried, shown, NIGHT + 12 * MINUTE + timedelta(seconds=1)) == Do(SOUND)


def test_a_step_that_aws_rejects_three_times_gives_the_stop_up_and_tells_the_answer() -> None:
    text = "AWS keeps rejecting DeleteEndpoint, so it is not stopped: it is busy"
    lines = (*rejected(DELETE) * 2, *rejected(DELETE, detail="refused:unknown:it is busy"))
    assert act(undone(journal=(*undone().journal, *lines)), live()) == settled(
        RUNNING, Code.REFUSED_BY_AWS, text, tell=True
    )
    assert act(stopping(*rejected(DELETE) * 2), live(None, SILENCED), NIGHT + MINUTE) == Do(DELETE)


def test_alarms_that_stay_off_hand_the_endpoint_over() -> None:
    off = stopping(*rejected(SOUND) * 12)
    assert act(off, live(endpoint(config_name="other"), SILENCED)) == settled(
        HANDED_OVER, Code.CHANGED_SINCE, CHANGED, tell=True
    )


@pytest.mark.parametrize(
    "hands_over",
    [
        (starting(*done(SOUND, EARLY), serving_at=EARLY), live(Gone(NAME), SILENCED)),
        (starting(*done(SOUND, EARLY)), live(endpoint(config_name="other"), SILENCED)),
        (starting(*done(SOUND, EARLY)), live(endpoint(status="OutOfService"), SILENCED)),
        (starting(*done(SOUND, EARLY)), live(None, SILENCED)),
        (stopping(*done(SOUND, EARLY)), live(endpoint(config_name="other"), SILENCED)),
    ],
)
def test_alarms_that_were_switched_on_are_given_ten_minutes_to_show(hands_over: tuple[HoursRecord, LiveHours]) -> None:
    now = EARLY + 9 * MINUTE
    assert act(*hands_over, now) == Wait(now + MINUTE, "AWS took EnableAlarmActions and does not show it yet")


# a night


def test_a_stopped_endpoint_says_when_it_serves_again_and_is_started_in_time() -> None:
    wait = Wait(MORNING - 45 * MINUTE, f"stopped by its hours; it serves again on {AGAIN}")
    assert act(record(STOPPED), gone()) == wait
    due = settled(STARTING, Code.SAFE_TO_APPLY, f"it has to serve on {AGAIN}")
    assert act(record(STOPPED), gone(), MORNING - 45 * MINUTE) == due
    wait = Wait(NIGHT + MINUTE, "it is being deleted")
    assert act(record(STOPPED), live(endpoint(status="Deleting"))) == wait


@pytest.mark.parametrize("config", [CONFIG, "small"])
def test_an_endpoint_that_is_back_from_its_own_configuration_gets_its_autoscaling(config: str) -> None:
    text = "somebody created it again from the same configuration; its autoscaling and alarms are put back"
    one = record(STOPPED, before=before(fallback_config="small"))
    assert act(one, live(endpoint(config_name=config))) == settled(STARTING, Code.CHANGED_SINCE, text)


def test_an_endpoint_that_is_back_from_another_configuration_is_its_owners() -> None:
    text = "somebody created it again from configuration other"
    found = act(record(STOPPED), live(endpoint(config_name="other")))
    assert found == settled(HANDED_OVER, Code.CHANGED_SINCE, text, tell=True)


@pytest.mark.parametrize("state", [STOPPED, STARTING])
def test_the_endpoint_of_before_that_aws_still_shows_counts_as_being_deleted_for_ten_minutes(state: HoursState) -> None:
    one, seen = record(state, since=NIGHT), live(endpoint(created_at=MADE))
    found = with_delete_seen(one, seen, NIGHT + 10 * MINUTE - timedelta(seconds=1))
    assert found == replace(seen, state=replace(seen.state, endpoint=endpoint(status="Deleting")))
    for other, shown, now in (
        (one, seen, NIGHT + 10 * MINUTE),
        (one, live(endpoint(created_at=NIGHT)), NIGHT),
        (replace(one, since=None), seen, NIGHT),
        (replace(one, before=None), seen, NIGHT),
        (replace(one, state=STOPPING), seen, NIGHT),
        (one, gone(), NIGHT),
    ):
        assert with_delete_seen(other, shown, now) == shown


# a start


@pytest.mark.parametrize("status", ["Deleting", "Creating", "Updating", "SystemUpdating", "RollingBack"])
def test_a_start_waits_for_what_is_under_way(status: str) -> None:
    assert act(starting(), live(endpoint(status=status)), EARLY) == Wait(EARLY + MINUTE, f"it is {status}")


def test_a_start_meets_another_configuration_a_delete_or_a_status_that_nobody_repairs() -> None:
    other = "somebody deployed configuration other while it was being started"
    found = act(starting(), live(endpoint(config_name="other")), EARLY)
    assert found == settled(HANDED_OVER, Code.CHANGED_SINCE, other, tell=True)
    lost = "somebody deleted it after it was in service again, so it is not created once more"
    one = replace(starting(serving_at=EARLY), before=before(alarms=()))
    assert act(one, gone(), EARLY) == settled(HANDED_OVER, Code.VANISHED, lost, tell=True)
    for why, said in (("no disk", "no disk"), ("", "AWS names no reason")):
        found = act(starting(), live(endpoint(status="OutOfService", failure_reason=why)), EARLY)
        text = f"it is OutOfService and does not serve; {said}"
        assert found == settled(HANDED_OVER, Code.NOT_IN_SERVICE, text, tell=True)


def test_a_start_that_failed_after_it_served_is_deleted_and_made_again() -> None:
    one = starting(*done(DELETE, EARLY - 20 * MINUTE), serving_at=EARLY)
    assert act(one, gone(), EARLY) == Do(CREATE)
    assert act(starting(), live(endpoint(status="Failed", config_name=CONFIG)), EARLY) == Do(DELETE)


def test_a_start_ends_as_before_or_with_what_could_not_be_put_back() -> None:
    assert act(starting(), live(), EARLY) == settled(
        RUNNING, Code.PROVEN, "it runs as before, with its autoscaling and alarms"
    )
    off = starting(*rejected(SOUND, EARLY, "refused:permission:denied") * 12)
    text = "it serves, and not everything could be put back: denied"
    assert act(off, live(None, SILENCED), EARLY) == settled(HANDED_OVER, Code.REFUSED_BY_AWS, text, tell=True)
    waits = Wait(EARLY + TICK, "AWS rejected EnableAlarmActions: no")
    assert act(starting(*rejected(SOUND, EARLY) * 11), live(None, SILENCED), EARLY + MINUTE) == waits


def test_a_creation_that_aws_took_is_not_asked_again_before_it_may_show() -> None:
    one = starting(*done(CREATE, EARLY))
    wait = Wait(EARLY + 10 * MINUTE, "AWS took CreateEndpoint and does not show it yet")
    assert act(one, gone(), EARLY + 9 * MINUTE) == wait
    assert act(one, gone(), EARLY + 10 * MINUTE) == Do(CREATE)


@pytest.mark.parametrize("lines", [rejected(DELETE, EARLY - 20 * MINUTE) * 2, done(CREATE, EARLY - 20 * MINUTE) * 2])
def test_only_a_creation_that_failed_and_was_deleted_is_a_lost_try(lines: tuple[Entry, ...]) -> None:
    one = starting(*lines, before=before(fallback_config="small"))
    assert act(one, gone(fallback_exists=True), EARLY) == Do(CREATE)


def test_an_opening_that_is_over_sends_it_back_to_rest() -> None:
    evening = MORNING + 12 * HOUR
    text = "its hours are over before it could be started; it serves again on Wed 4 Nov 2026, 07:00 UTC"
    assert act(starting(), gone(), evening) == settled(STOPPED, Code.EXPIRED, text)


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (
            {"model_problem": "model m is gone"},
            "model m is gone, so it cannot be created as before",
        ),
        (
            {"config_exists": False},
            f"configuration {CONFIG} was deleted while it was stopped, so it cannot be created as before",
        ),
        (
            {"config_replaced": True},
            f"configuration {CONFIG} was made anew with other content while it was stopped, "
            "so it cannot be created as before",
        ),
    ],
)
def test_what_cannot_be_created_as_before_is_handed_over(known: dict[str, Any], text: str) -> None:
    wanted = settled(HANDED_OVER, Code.CONFIGURATION_REPLACED, text, tell=True)
    assert act(starting(), gone(**known), EARLY) == wanted
    spare = starting(before=before(fallback_config="small"))
    assert act(spare, gone(**known), EARLY) == wanted, "the fallback is gone too"
