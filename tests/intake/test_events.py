"""Every file of events/ through its parser, by the promises of events/README.md."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rightsizer import intake
from rightsizer.domain.reason import Code
from rightsizer.domain.trigger import (
    EndpointMoved,
    InstanceMoved,
    JobMoved,
    LaunchFailed,
    LookAt,
    LookAtAlarm,
    NoTrigger,
    RebalanceRecommended,
    ReportDue,
    SpotInterruption,
    SweepDue,
    SweepKind,
    TickDue,
    Trigger,
)
from rightsizer.errors import InputError

EVENTS = Path(__file__).parents[2] / "events"


def event(path: str) -> Any:
    return json.loads((EVENTS / f"{path}.json").read_text())


TOPIC = "arn:aws:sns:eu-west-1:111122223333:alarms"
"""The topic of the examples."""


def parse(path: str) -> Trigger:
    return intake.parse(event(path), topic=TOPIC)


def nothing(path: str) -> Code:
    found = parse(path)
    assert isinstance(found, NoTrigger), found
    return found.reason.code


def names(folder: str) -> list[str]:
    return [f"{folder}/{path.stem}" for path in sorted((EVENTS / folder).glob("*.json"))]


@pytest.mark.parametrize("path", [f"{f}" for r in ("alarm", "contributor", "direct", "sns") for f in names(r)])
def test_an_alarm_of_any_shape_asks_to_look_or_says_why_not(path: str) -> None:
    assert isinstance(parse(path), LookAt | LookAtAlarm | NoTrigger)


@pytest.mark.parametrize(
    ("path", "endpoints"),
    [
        ("alarm/metric", ("chat-7b",)),
        ("alarm/metric-math", ("rank-v3",)),
        ("alarm/metric-math-two-endpoints", ("blue", "green")),
        ("alarm/anomaly-band", ("chat-7b",)),
        ("alarm/first-state-without-reason-data", ("chat-7b",)),
        ("contributor/alarm", ("chat-7b",)),
        ("direct/metric", ("chat-7b",)),
        ("direct/contributor", ("chat-7b",)),
        ("sns/alarm-raw", ("chat-7b",)),
        ("sns/alarm-wrapped", ("chat-7b",)),
        ("sns/alarm-metric-math", ("rank-v3",)),
        ("sns/alarm-contributor", ("chat-7b",)),
    ],
)
def test_an_alarm_names_its_endpoints(path: str, endpoints: tuple[str, ...]) -> None:
    found = parse(path)
    assert isinstance(found, LookAt)
    assert found.endpoints == endpoints


@pytest.mark.parametrize(
    "path", ["alarm/query", "alarm/query-partial-data", "alarm/composite", "direct/composite", "sns/alarm-composite"]
)
def test_an_alarm_without_an_endpoint_is_asked_which_ones_it_means(path: str) -> None:
    assert isinstance(parse(path), LookAtAlarm)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("alarm/muted", Code.MUTED),
        ("contributor/muted", Code.MUTED),
        ("alarm/composite-suppressed", Code.MUTED),
        ("alarm/replayed", Code.REPLAYED),
        ("spot/interruption-replayed", Code.REPLAYED),
        ("alarm/of-something-else", Code.NOT_FOR_US),
        ("contributor/without-endpoint-label", Code.NOT_FOR_US),
        ("sns/alarm-returned-to-ok", Code.NOT_ALARMING),
        ("sns/not-an-alarm", Code.UNKNOWN_EVENT),
        ("unrouted/alarm-returned-to-ok", Code.NOT_ALARMING),
        ("unrouted/contributor-returned-to-ok", Code.NOT_ALARMING),
        ("unrouted/alarm-configuration-change", Code.UNKNOWN_EVENT),
        ("unrouted/endpoint-config-created", Code.UNKNOWN_EVENT),
        ("unrouted/capacity-reservation-interruption", Code.UNKNOWN_EVENT),
        ("unrouted/autoscaling-terminate-lifecycle", Code.UNKNOWN_EVENT),
        ("unrouted/scheduler-without-input", Code.UNKNOWN_EVENT),
    ],
)
def test_an_event_that_asks_nothing_has_a_typed_reason(path: str, code: Code) -> None:
    assert nothing(path) is code


def test_the_same_transition_has_the_same_key_on_every_way() -> None:
    keys = {found.key for path in ("alarm/metric", "sns/alarm-raw") if isinstance(found := parse(path), LookAt)}
    assert len(keys) == 1


def test_two_transitions_of_one_alarm_have_different_keys() -> None:
    later = event("alarm/metric")
    later["detail"]["state"]["timestamp"] = "2026-01-03T17:04:40.989+0000"
    first, second = parse("alarm/metric"), intake.parse(later)
    assert isinstance(first, LookAt)
    assert isinstance(second, LookAt)
    assert first.key != second.key


def test_a_replay_is_parsed_when_a_dry_run_asks_for_it() -> None:
    assert isinstance(intake.parse(event("spot/interruption-replayed"), replays=True), SpotInterruption)


@pytest.mark.parametrize("path", names("endpoint"))
def test_every_endpoint_event_moves_the_endpoint(path: str) -> None:
    found = parse(path)
    assert isinstance(found, EndpointMoved)
    assert found.endpoint == "chat-7b"
    assert found.at == datetime(2026, 1, 2, 16, 59, 54, 287000, UTC)
    assert found.deployment == path.startswith("endpoint/deployment")
    assert "_" not in found.status


def test_upper_case_statuses_become_the_spelling_of_the_api() -> None:
    statuses = {path: found.status for path in names("endpoint") if isinstance(found := parse(path), EndpointMoved)}
    assert statuses["endpoint/in-service"] == statuses["endpoint/in-service-api-spelling"] == "InService"
    assert statuses["endpoint/update-rollback-failed"] == "UpdateRollbackFailed"


def test_a_pending_deployment_names_the_configuration_that_it_leads_to() -> None:
    found = parse("endpoint/deployment-baking")
    assert isinstance(found, EndpointMoved)
    assert found.config_name == "chat-7b-cfg-rightsizer-1"


def test_two_steps_of_one_deployment_have_different_keys() -> None:
    keys = [found.key for path in names("endpoint") if isinstance(found := parse(path), EndpointMoved)]
    assert len({k for k in keys if "chat-7b-cfg-rightsizer-1" in k}) == 2


def test_a_spot_warning_keeps_the_zone_and_needs_no_account() -> None:
    found = parse("spot/interruption-terminate")
    assert isinstance(found, SpotInterruption)
    assert (found.instance_id, found.action, found.zone) == ("i-0123456789abcdef0", "terminate", "eu-west-1b")


def test_a_region_in_the_arn_is_not_taken_for_a_zone() -> None:
    warned = event("spot/interruption-terminate")
    warned["resources"] = ["arn:aws:ec2:eu-west-1:111122223333:instance/i-0123456789abcdef0"]
    found = intake.parse(warned)
    assert isinstance(found, SpotInterruption)
    assert found.zone == ""


def test_capacity_events_are_recognised() -> None:
    assert isinstance(parse("spot/rebalance"), RebalanceRecommended)
    assert isinstance(parse("spot/rebalance-zone-in-arn"), RebalanceRecommended)
    assert isinstance(parse("spot/instance-running"), InstanceMoved)
    launch = parse("autoscaling/launch-unsuccessful")
    assert isinstance(launch, LaunchFailed)
    assert (launch.group, launch.zone) == ("gpu-batch", "eu-west-1b")
    assert "InsufficientInstanceCapacity" in launch.message


@pytest.mark.parametrize("path", names("training") + names("hyperpod"))
def test_jobs_and_clusters_are_recognised(path: str) -> None:
    assert isinstance(parse(path), JobMoved)


def test_an_interrupted_training_job_says_so() -> None:
    found = parse("training/interrupted")
    assert isinstance(found, JobMoved)
    assert (found.status, found.detail) == ("InProgress", "Interrupted")


def test_schedules_say_what_is_due() -> None:
    at = datetime(2026, 1, 2, 17, tzinfo=UTC)
    assert parse("scheduler/sweep-light") == SweepDue(SweepKind.LIGHT, at)
    assert parse("scheduler/sweep-full") == SweepDue(SweepKind.FULL, at)
    assert parse("scheduler/report-weekly") == ReportDue("weekly", at)
    assert parse("scheduler/report-monthly") == ReportDue("monthly", at)
    assert parse("scheduler/tick") == TickDue(at)


@pytest.mark.parametrize("path", names("sqs"))
def test_every_good_message_of_a_batch_is_parsed_whatever_the_others_are(path: str) -> None:
    found = intake.batch(event(path), TOPIC)
    assert all(one.trigger is not None for one in found) or path == "sqs/one-poisoned-among-good"
    good = sum(one.trigger is not None and not isinstance(one.trigger, NoTrigger) for one in found)
    assert good == (2 if path == "sqs/one-poisoned-among-good" else 1)


def test_a_malformed_event_names_the_field_and_the_cause() -> None:
    broken = event("contributor/alarm")
    del broken["detail"]["state"]
    with pytest.raises(InputError, match=r"Contributor State Change: detail\.state: Field required"):
        intake.parse(broken)


@pytest.mark.parametrize("wrong", [None, 7, [], {}, {"Records": 3}, {"Records": [1]}, {"Records": [{"body": "x"}]}])
def test_what_is_no_batch_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError):
        intake.records(wrong)
