"""What comes by the evaluation queue is believed only as far as its way is closed to others."""

import json
from pathlib import Path
from typing import Any

import pytest

from rightsizer import intake
from rightsizer.domain.reason import Code
from rightsizer.domain.trigger import JobMoved, LookAt, NoTrigger, Received
from rightsizer.flows.sweep import PAGE
from rightsizer.intake.fields import MOST_NAMES

EVENTS = Path(__file__).parents[2] / "events"
TOPIC = "arn:aws:sns:eu-west-1:111122223333:alarms"
OTHER = "arn:aws:sns:eu-west-1:111122223333:marketing"
ALARM: dict[str, Any] = {
    "AlarmName": "a",
    "NewStateValue": "ALARM",
    "StateChangeTime": "2026-11-01T00:00:00Z",
    "Trigger": {"Dimensions": [{"name": "EndpointName", "value": "chat"}]},
}


def event(path: str) -> Any:
    return json.loads((EVENTS / f"{path}.json").read_text())


def page(*names: str) -> dict[str, Any]:
    return {"kind": "look-at", "endpoints": names, "because": "full-sweep", "at": "2026-11-21T06:00:00Z", "key": "k"}


def published(message: object, topic: str = TOPIC) -> dict[str, Any]:
    return {"Type": "Notification", "TopicArn": topic, "Message": json.dumps(message)}


def queued(*bodies: object, topic: str = TOPIC) -> list[Received]:
    records = [{"messageId": str(n), "body": json.dumps(body)} for n, body in enumerate(bodies)]
    return intake.batch({"Records": records}, topic)


def refusal(body: object, topic: str = TOPIC) -> str:
    (found,) = queued(body, topic=topic)
    assert isinstance(found.trigger, NoTrigger), found
    assert found.trigger.reason.code is Code.NOT_TRUSTED
    return found.trigger.reason.sentence


@pytest.mark.parametrize(
    "forged",
    [
        page("chat"),
        event("training/completed"),
        event("alarm/metric"),
        event("scheduler/sweep-full"),
        {"alarmData": {}},
    ],
    ids=["page", "training", "event of an alarm", "sweep", "action"],
)
def test_a_topic_brings_alarms_and_nothing_else(forged: dict[str, Any]) -> None:
    assert "no alarm of CloudWatch" in refusal(published(forged))


def test_an_alarm_that_poses_as_an_event_is_refused() -> None:
    assert "no alarm of CloudWatch" in refusal(published(ALARM | event("training/completed")))


def test_an_alarm_of_another_topic_is_refused_and_names_the_topic_that_is_read() -> None:
    (good,) = queued(published(ALARM))
    assert isinstance(good.trigger, LookAt)
    said = refusal(published(ALARM, OTHER))
    assert OTHER in said
    assert TOPIC in said


def test_without_an_alarm_topic_no_message_of_sns_is_read_wrapped_or_raw() -> None:
    assert "AlarmTopicArn is empty" in refusal(published(ALARM), topic="")
    assert "no alarm topic is configured" in refusal(ALARM, topic="")


@pytest.mark.parametrize(
    "path",
    [
        *("scheduler/sweep-full", "scheduler/sweep-light", "scheduler/tick", "scheduler/report-weekly"),
        *("spot/interruption-terminate", "autoscaling/launch-unsuccessful", "direct/metric"),
    ],
)
def test_what_invokes_its_own_function_is_refused_when_it_comes_by_the_queue(path: str) -> None:
    assert "by the" in refusal(event(path))


def test_the_events_of_the_rules_are_read_from_the_queue() -> None:
    (found,) = queued(event("training/completed"))
    assert isinstance(found.trigger, JobMoved)


def test_a_page_has_no_more_names_than_the_sweep_sends() -> None:
    assert MOST_NAMES == PAGE
    whole, over, vast = queued(*(page(*(f"e{n}" for n in range(size))) for size in (PAGE, PAGE + 1, 20_000)))
    assert isinstance(whole.trigger, LookAt)
    for refused in (over, vast):
        assert refused.trigger is None
        assert "at most 25 items" in refused.problem


NO_NAMES = ["", "a b", "x" * 64, "-a", "a_b", "a\n", "../a", "é", "\u202ea", "*", "a;b"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_page_with_a_name_that_sagemaker_would_not_take_is_malformed(name: str) -> None:
    (found,) = queued(page("chat", name))
    assert found.trigger is None
    assert "endpoints.1" in found.problem


@pytest.mark.parametrize("name", NO_NAMES[1:])
def test_an_alarm_about_no_possible_endpoint_asks_nothing_and_the_alarm_beside_it_is_read(name: str) -> None:
    odd = ALARM | {"Trigger": {"Dimensions": [{"name": "EndpointName", "value": name}]}}
    found, good = queued(published(odd), published(ALARM))
    assert isinstance(found.trigger, NoTrigger)
    assert found.trigger.reason.code is Code.NOT_FOR_US
    assert found.trigger.reason.sentence.isprintable()
    assert isinstance(good.trigger, LookAt)


@pytest.mark.parametrize("name", NO_NAMES[1:])
def test_a_contributor_that_is_no_possible_endpoint_asks_nothing(name: str) -> None:
    fired = event("contributor/alarm")
    fired["detail"]["alarmContributor"]["attributes"]["EndpointName"] = name
    found = intake.parse(fired)
    assert isinstance(found, NoTrigger)
    assert found.reason.code is Code.NOT_FOR_US


@pytest.mark.parametrize(
    "at", ["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59Z", "1969-07-20", 4e15, -1e18]
)
def test_a_time_beyond_the_calendar_is_refused_at_the_door(at: object) -> None:
    moved = event("training/completed")
    moved["detail"]["LastModifiedTime"] = at
    found, good = queued(moved, event("training/completed"))
    assert found.trigger is None
    assert "LastModifiedTime" in found.problem
    assert isinstance(good.trigger, JobMoved)


def test_a_record_without_an_id_or_a_body_does_not_stop_the_others() -> None:
    body = json.dumps(page("chat"))
    records = [{"body": body}, 7, {"messageId": "2"}, {"messageId": "3", "body": body}]
    bad, good = intake.batch({"Records": records})
    assert (bad.message_id, bad.trigger) == ("2", None)
    assert "body" in bad.problem
    assert isinstance(good.trigger, LookAt)


def test_a_problem_is_bounded_and_printable_whatever_the_keys_are() -> None:
    hostile = "\u202e\x1b[31m\n" + "k" * 200_000
    fired = event("alarm/metric")
    fired["detail"]["configuration"]["metrics"][0]["metricStat"]["metric"]["dimensions"][hostile] = 5
    (found,) = queued(fired)
    assert found.trigger is None
    assert len(found.problem) < 500
    assert found.problem.isprintable()
