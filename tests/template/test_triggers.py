"""Every file of events/ goes through the template's own patterns, filters and schedules."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from moto.events.models import EventPattern

from tests.template.stack import EVERYTHING, ROOT, Stack, stack

EVENTS = ROOT / "events"
QUEUE = "EvaluationQueue.Arn"


@pytest.fixture(scope="module")
def deployed() -> Stack:
    return stack(**EVERYTHING)


def rules(found: Stack) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, rule in found.of("AWS::Events::Rule").items():
        if rule.get("State", "ENABLED") == "ENABLED":
            yield name, rule


def targets_of(event: Mapping[str, Any], found: Stack) -> dict[str, str]:
    """Which rules match the event, and what each of them calls."""
    return {
        name: ", ".join(target["Arn"] for target in rule["Targets"])
        for name, rule in rules(found)
        if EventPattern.load(json.dumps(rule["EventPattern"])).matches_event(dict(event))
    }


ROUTES = {
    "alarm": {"UserAlarmRule": QUEUE},
    "contributor": {"GroupedAlarmRule": QUEUE},
    "endpoint": {"ServingRule": QUEUE, "ApplyEndpointMoved": "Apply.Arn", "HoursEndpointMoved": "Hours.Arn"},
    "endpoint/deployment": {"ApplyEndpointMoved": "Apply.Arn"},
    "training": {"TrainingRule": QUEUE},
    "hyperpod": {"HyperPodRule": QUEUE},
    "wake": {"WakeRule": "Hours.Arn"},
    "spot": {"InterruptionSpot": "Interruption.Arn"},
    "spot/instance": {"InterruptionInstanceMoved": "Interruption.Arn"},
    "autoscaling": {"InterruptionLaunchFailed": "Interruption.Arn"},
}
"""The rules of each route, and what they call; a longer key is for files that begin so."""
OTHERWISE = {"scheduler", "sns", "direct", "sqs", "slack", "stream", "unrouted"}
"""These do not come by a rule, or must not."""


def expected(path: Path) -> dict[str, str]:
    route = path.parent.name
    if route in OTHERWISE:
        return {}
    return ROUTES.get(f"{route}/{path.stem.split('-')[0]}", ROUTES[route])


@pytest.mark.parametrize("path", sorted(EVENTS.glob("*/*.json")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_each_event_is_matched_by_exactly_the_rules_that_should(path: Path, deployed: Stack) -> None:
    assert targets_of(json.loads(path.read_text()), deployed) == expected(path)


def test_there_are_events_for_every_rule(deployed: Stack) -> None:
    seen = {name for path in EVENTS.glob("*/*.json") for name in expected(path)}
    assert seen == {name for name, _ in rules(deployed)}


def test_without_a_prefix_no_alarm_of_the_user_is_listened_to() -> None:
    event = json.loads((EVENTS / "alarm" / "metric.json").read_text())
    assert targets_of(event, stack()) == {}


def sent(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule's input with Scheduler's own values filled in."""
    text = schedule["Target"]["Input"].replace("<aws.scheduler.scheduled-time>", "2026-01-02T17:00:00Z")
    filled: dict[str, Any] = json.loads(text.replace("<aws.scheduler.execution-id>", "d32c5kddcf5bb8c3"))
    return filled


@pytest.mark.parametrize(
    ("schedule", "door", "file"),
    [
        ("SweepHourly", "Sweep.Arn", "sweep-light"),
        ("SweepDaily", "Sweep.Arn", "sweep-full"),
        ("ApplyTick", "Apply.Arn", "tick"),
        ("HoursTick", "Hours.Arn", "tick"),
        ("ReportWeekly", "Report.Arn", "report-weekly"),
        ("ReportMonthly", "Report.Arn", "report-monthly"),
    ],
)
def test_a_schedule_sends_exactly_what_intake_is_tested_with(
    schedule: str, door: str, file: str, deployed: Stack
) -> None:
    found = deployed.of("AWS::Scheduler::Schedule")[schedule]
    assert found["Target"]["Arn"] == door
    assert sent(found) == json.loads((EVENTS / "scheduler" / f"{file}.json").read_text())


def test_there_are_six_schedules_and_a_file_for_each_but_the_second_tick(deployed: Stack) -> None:
    assert len(deployed.of("AWS::Scheduler::Schedule")) == len(list((EVENTS / "scheduler").glob("*.json"))) + 1 == 6


def stream_filter(deployed: Stack, mapping: str, record: Mapping[str, Any]) -> bool:
    filters = deployed.of("AWS::Lambda::EventSourceMapping")[mapping]["FilterCriteria"]["Filters"]
    return any(EventPattern.load(one["Pattern"]).matches_event(dict(record)) for one in filters)


def record(pk: str, name: str = "MODIFY", **attributes: str) -> dict[str, Any]:
    image = {"pk": {"S": pk}, "sk": {"S": "PROPOSAL"}} | {key: {"S": value} for key, value in attributes.items()}
    return {"eventName": name, "dynamodb": {"Keys": {"pk": {"S": pk}, "sk": {"S": "PROPOSAL"}}, "NewImage": image}}


@pytest.mark.parametrize("state", ["pending", "approved", "rejected", "withdrawn", "proven"])
def test_propose_gets_every_state_of_a_proposal(state: str, deployed: Stack) -> None:
    assert stream_filter(deployed, "ProposeFromStream", record("PROPOSAL#p1", state=state))
    assert stream_filter(deployed, "ProposeFromStream", record("ASLEEP#chat", state=state))
    assert not stream_filter(deployed, "ProposeFromStream", record("HOURS#chat", state=state)), (
        "it is saved at each tick"
    )


@pytest.mark.parametrize("pk", ["CHANGE#c1", "MESSAGE#p1", "ENDPOINT#e1", "CONTROL", "LEDGER#2026-01"])
def test_the_stream_calls_nobody_for_other_items(pk: str, deployed: Stack) -> None:
    for mapping in ("ProposeFromStream", "ApplyFromStream"):
        assert not stream_filter(deployed, mapping, record(pk, state="approved"))


def test_apply_gets_a_proposal_only_when_it_is_approved(deployed: Stack) -> None:
    assert stream_filter(deployed, "ApplyFromStream", record("PROPOSAL#p1", state="approved"))
    assert stream_filter(deployed, "ApplyFromStream", record("PROPOSAL#p1", "INSERT", state="approved"))
    for state in ("pending", "rejected", "snoozed", "applying", "handed-over"):
        assert not stream_filter(deployed, "ApplyFromStream", record("PROPOSAL#p1", state=state))


def test_apply_gets_a_proposal_whose_change_somebody_wants_undone(deployed: Stack) -> None:
    for state in ("applying", "applied", "proven"):
        assert stream_filter(deployed, "ApplyFromStream", record("PROPOSAL#p1", state=state, asked_back="slack:U1"))
    assert not stream_filter(deployed, "ApplyFromStream", record("CHANGE#c1", state="proven", asked_back="slack:U1"))


def test_a_proposal_that_expires_from_the_table_calls_nobody(deployed: Stack) -> None:
    removed = record("PROPOSAL#p1", "REMOVE", state="approved")
    assert not stream_filter(deployed, "ProposeFromStream", removed)
    assert not stream_filter(deployed, "ApplyFromStream", removed)
