"""Whoever waits for an endpoint hears of it, also where no channel takes the first message."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.aws.hours import HoursTable
from rightsizer.aws.wake_requests import WakeRequests
from rightsizer.domain.hours_record import HoursState, Wake
from rightsizer.domain.message import SleepNote
from rightsizer.domain.outcome import Occurrence
from rightsizer.errors import ThrottledError
from rightsizer.flows.notify import tell_once
from tests.hours.world import CLOSES, KIND, NAME, OPENS, TICK, HoursWorld, hours_world, refuse_messages, whole
from tests.notifiers import Told

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
NIGHT = CLOSES + 2 * HOUR


def test_a_morning_without_capacity_is_told_as_soon_as_a_channel_takes_it() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        w.box.world.fleet.scarce.add(KIND)
        refuse_messages(w, OPENS + 20 * MINUTE)
        w.until(OPENS + 20 * MINUTE + TICK)
        assert [subject for subject, _ in w.told] == [f"{NAME} does not serve yet, Tue 3 Nov 2026, 07:00 UTC"]
        w.until(OPENS + HOUR)
        assert len(w.told) == 1, "once a channel took it, it is not said again"


@pytest.mark.parametrize("fails_first", [False, True])
@pytest.mark.parametrize(
    ("service", "operation"),
    [("cloudwatch", "DescribeAlarms"), ("application-autoscaling", "DescribeScalableTargets")],
)
def test_alarms_and_autoscaling_that_cannot_be_read_keep_no_endpoint_from_its_morning(
    service: str, operation: str, fails_first: bool
) -> None:
    with hours_world() as w:
        before = whole(w.box)
        w.until(NIGHT)
        if fails_first:
            w.box.world.fleet.scarce.add(KIND)
            w.until(OPENS - 40 * MINUTE)
            assert w.box.status(NAME) == "Creating"
        w.box.gate.fail(service, operation, "ThrottlingException", times=1e9)
        w.until(OPENS - 20 * MINUTE)
        w.box.world.fleet.scarce.clear()
        w.until(OPENS + 10 * MINUTE)
        assert w.box.status(NAME) == "InService", "a creation needs neither alarms nor autoscaling"
        assert w.state is HoursState.STARTING, "they are put back once they can be read"
        ((_, text),) = w.told
        assert "put-scaling-policy" in text
        assert "enable-alarm-actions" in text
        w.box.gate.heal()
        w.until(OPENS + HOUR)
        assert (w.state, whole(w.box)) == (HoursState.RUNNING, before)


def test_what_was_handed_over_while_no_channel_answered_is_told_later_with_the_commands() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        with w.others() as sagemaker:
            sagemaker.delete_endpoint_config(EndpointConfigName=f"{NAME}-config")
        refuse_messages(w, OPENS + HOUR)
        w.until(OPENS)
        assert (w.state, w.told) == (HoursState.HANDED_OVER, [])
        w.until(OPENS + HOUR + TICK)
        ((subject, text),) = w.told
        assert subject == f"{NAME} is handed over"
        assert "aws sagemaker create-endpoint-config" in text
        assert text.startswith("It was written on Tue 3 Nov 2026, 06:"), "its reader sees how old it is"
        assert w.record.untold == ()


def test_a_process_that_dies_after_the_message_says_it_again_and_one_that_dies_before_loses_none() -> None:
    with hours_world(scaled=False) as w:
        ledger, told = w.flow.ports.ledger, list[str]()
        what = Occurrence("hours#x", w.now, "hours", NAME, "it does not serve")

        def die(subject: str, text: str) -> None:
            told.append(text)
            raise KeyboardInterrupt

        for _ in range(2):
            try:
                tell_once(ledger, Told(die), what, "late")
            except KeyboardInterrupt:
                continue
        assert tell_once(ledger, Told(lambda _, text: told.append(text)), what, "late")
        assert tell_once(ledger, Told(lambda _, text: told.append(text)), replace(what, text="again"), "late")
        assert told == ["it does not serve"] * 3


def click(w: HoursWorld, stay: timedelta) -> None:
    """An order that a click in Slack leaves for the next tick."""
    book = w.flow.ports.book
    assert isinstance(book, HoursTable)
    with w.box.gate.unrecorded():
        WakeRequests(book.table).save(replace(w.record, wakes=(Wake(w.now, w.now + stay, "slack:U1"),)))


def test_an_order_that_the_tick_refuses_since_the_limits_were_lowered_is_told_once_with_its_author() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        click(w, HOUR)
        limits = w.flow.ports.limits
        lowered = replace(limits, hours=replace(limits.hours, wakes_a_day=0))
        w.flow = replace(w.flow, ports=replace(w.flow.ports, limits=lowered))
        w.until(NIGHT + HOUR)
        ((subject, text),) = w.told
        assert subject == f"{NAME} was not woken"
        assert "U1 asked for it on Mon 2 Nov 2026, 20:00 UTC" in text
        assert "wakes_per_day is 0; change its tag rightsizer:hours" in text
        assert (w.state, w.record.wakes) == (HoursState.STOPPED, ())


def test_an_order_that_no_tick_took_up_in_time_is_told() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        click(w, HOUR)
        w.box.clock.advance(2 * HOUR)
        w.until(w.now + 2 * TICK)
        ((subject, text),) = w.told
        assert (subject, w.state) == (f"{NAME} was not woken", HoursState.STOPPED)
        assert "no tick looked at it before the stay ended on Mon 2 Nov 2026, 21:00 UTC" in text


def test_a_note_of_the_night_that_could_not_be_written_is_written_at_a_later_tick() -> None:
    shown = list[SleepNote]()

    class Deaf(HoursTable):
        def show(self, note: SleepNote) -> None:
            if w.now < NIGHT:
                raise ThrottledError("the table is away")
            shown.append(note)

    with hours_world(scaled=False) as w:
        book = w.flow.ports.book
        assert isinstance(book, HoursTable)
        w.flow = replace(w.flow, ports=replace(w.flow.ports, book=Deaf(book.table)))
        w.until(NIGHT - TICK)
        assert (w.state, w.record.is_unshown, shown) == (HoursState.STOPPED, True, [])
        w.until(NIGHT + HOUR)
        (note,) = shown
        assert (note.state, note.serves_at, w.record.is_unshown) == (HoursState.STOPPED, OPENS, False)
