"""A batch: each message by itself."""

import json
from pathlib import Path

import pytest

from rightsizer import intake
from rightsizer.domain.trigger import LookAt, NoTrigger
from rightsizer.errors import InputError

EVENTS = Path(__file__).parents[2] / "events"
TOPIC = "arn:aws:sns:eu-west-1:111122223333:alarms"


def test_a_malformed_message_carries_its_problem_and_the_next_one_its_trigger() -> None:
    page = {"kind": "look-at", "endpoints": ["bert"], "because": "full-sweep", "at": "2026-11-21T06:00:00Z", "key": "k"}
    bodies = ["{not json", json.dumps(page), json.dumps({"source": "x", "detail-type": "y", "detail": {}})]
    event = {"Records": [{"messageId": str(i), "body": body} for i, body in enumerate(bodies)]}
    bad, good, unknown = intake.batch(event)
    assert bad.trigger is None
    assert bad.problem
    assert isinstance(good.trigger, LookAt)
    assert isinstance(unknown.trigger, NoTrigger)


def test_an_alarm_action_that_invokes_the_function_is_a_batch_of_one() -> None:
    event = json.loads(next((EVENTS / "direct").glob("*.json")).read_text())
    (only,) = intake.batch(event)
    assert only.trigger is not None


def test_a_direct_invocation_with_nonsense_is_refused_loudly() -> None:
    with pytest.raises(InputError):
        intake.batch("nonsense")


@pytest.mark.parametrize(
    "poison",
    [
        {"AlarmContributorId": "x" * 1025},
        {"AlarmContributorId": "\ud800"},
        {"Trigger": {"Metrics": [[[[[[[[[[[[[[[["deep"]]]]]]]]]]]]]]]]}},
    ],
    ids=["long", "surrogate", "deep"],
)
def test_an_alarm_message_that_nobody_could_have_sent_fails_alone(poison: dict[str, object]) -> None:
    alarm = {"AlarmName": "a", "NewStateValue": "ALARM", "StateChangeTime": "2026-11-01T00:00:00Z"}
    bodies = [json.dumps(alarm | poison), json.dumps(alarm)]
    records = [{"messageId": str(i), "body": body} for i, body in enumerate(bodies)]
    bad, good = intake.batch({"Records": records}, TOPIC)
    assert bad.trigger is None
    assert bad.problem.startswith("reading a")
    assert isinstance(good.trigger, NoTrigger)
