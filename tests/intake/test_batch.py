"""A batch: each message by itself."""

import json
from pathlib import Path

import pytest

from rightsizer import intake
from rightsizer.domain.trigger import EvaluationReason, LookAt, LookBeyond, LookReason, NoTrigger, SweepKind
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


@pytest.mark.parametrize("word", [*EvaluationReason, "a word of another release"])
def test_a_page_is_looked_at_whatever_the_reason_that_another_release_gave_it(word: str) -> None:
    page = {"kind": "look-at", "endpoints": ["bert"], "because": word, "at": "2026-11-21T06:00:00Z", "key": "k"}
    (found,) = intake.batch({"Records": [{"messageId": "1", "body": json.dumps(page)}]})
    assert isinstance(found.trigger, LookAt)
    assert found.trigger.because is (EvaluationReason(word) if word in EvaluationReason else EvaluationReason.OTHER)


@pytest.mark.parametrize("word", [*LookReason, "a word of another release"])
def test_a_group_is_looked_at_whatever_the_reason_that_another_release_gave_it(word: str) -> None:
    look = {"kind": "look-beyond", "subject": "group", "names": ["gpu"], "because": word, "key": "k"}
    body = json.dumps({**look, "at": "2026-11-21T06:00:00Z"})
    (found,) = intake.batch({"Records": [{"messageId": "1", "body": body}]})
    assert isinstance(found.trigger, LookBeyond)
    assert found.trigger.because is (LookReason(word) if word in LookReason else LookReason.OTHER)


def test_the_endpoints_of_a_sweep_are_evaluated_for_that_sweep() -> None:
    assert {kind: kind.reason.value for kind in SweepKind} == {"full": "full-sweep", "light": "light-sweep"}
