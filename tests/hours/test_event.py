"""An event on the stack's own bus wakes an endpoint, within the limits of every wake."""

import json
from datetime import timedelta
from typing import Any

import pytest

from rightsizer import intake
from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.trigger import NoTrigger, WakeAsked
from rightsizer.errors import InputError
from tests.hours.world import CLOSES, NAME, HoursWorld, hours_world

HOUR = timedelta(hours=1)
NIGHT = CLOSES + 2 * HOUR


def event(number: int = 1, **detail: Any) -> dict[str, Any]:
    return {
        "id": f"e-{number}",
        "detail-type": "Wake Endpoint",
        "source": "rightsizer.wake",
        "account": "111122223333",
        "time": "2026-11-02T20:00:05Z",
        "detail": {"endpoint": NAME, **detail},
    }


def send(w: HoursWorld, number: int = 1, **detail: Any) -> list[str]:
    return w.flow.act_on(intake.parse(event(number, **detail)), w.now)


def test_an_event_wakes_it_at_once_and_the_same_event_again_spends_no_further_wake() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        assert send(w, minutes=180) == [NAME]
        assert (w.state, w.exists()) == (HoursState.STARTING, True), "it waits for no tick"
        send(w, minutes=180)
        (wake,) = w.record.wakes
        assert wake.by == "event of account 111122223333"
        w.until(NIGHT + 3 * HOUR)
        assert w.state is HoursState.RUNNING
        w.until(NIGHT + 5 * HOUR)
        assert not w.exists(), "and goes home again"


def test_the_limit_a_day_and_the_longest_stay_hold_and_a_refusal_is_told_once_an_event() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        for number, minutes in enumerate((15, 60, 120)):
            send(w, number, minutes=minutes)
        send(w, 9, minutes=4000)
        send(w, 9, minutes=4000)
        assert max(wake.until for wake in w.record.wakes) <= w.now + 12 * HOUR
        ((subject, text),) = w.told
        assert subject == f"{NAME} was not woken"
        assert "wakes_per_day is 3" in text


def test_a_name_that_never_slept_and_a_malformed_event_wake_nothing() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        assert send(w, endpoint="nobody") == []
        for bad in ({"minutes": 5}, {"minutes": "soon"}, {"endpoint": "../x"}):
            with pytest.raises(InputError):
                send(w, **bad)
        assert w.record.wakes == ()


def test_an_order_that_comes_by_the_evaluation_queue_or_from_another_source_is_none() -> None:
    assert isinstance(intake.parse(event()), WakeAsked)
    assert isinstance(intake.parse(event() | {"source": "somebody.else"}), NoTrigger)
    queued = {"Records": [{"messageId": "m", "body": json.dumps(event())}]}
    (received,) = intake.batch(queued)
    assert isinstance(received.trigger, NoTrigger)
