"""Whoever waits for an endpoint hears of it, also where no channel takes the first message."""

from dataclasses import replace
from datetime import timedelta

from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.outcome import Occurrence
from rightsizer.flows.notify import tell_once
from tests.hours.world import CLOSES, KIND, NAME, OPENS, TICK, hours_world, refuse_messages
from tests.notifiers import Told

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
NIGHT = CLOSES + 2 * HOUR


def test_a_morning_without_capacity_is_told_as_soon_as_a_channel_takes_it() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        w.box.world.fleet.scarce.add(KIND)
        refuse_messages(w, OPENS + 20 * MINUTE)
        w.until(OPENS + 20 * MINUTE + TICK)
        assert [subject for subject, _ in w.told] == [f"{NAME} does not serve yet, 2026-11-03 07:00 UTC"]
        w.until(OPENS + HOUR)
        assert len(w.told) == 1, "once a channel took it, it is not said again"


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
        assert text.startswith("It was written on 2026-11-03 06:"), "its reader sees how old it is"
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
