"""Nothing that AWS delivers to us can be lost without a trace."""

from typing import Any

import pytest

from tests.template.stack import DOORS, EVERYTHING, Stack, stack

DEAD = "DeadLetters.Arn"


@pytest.fixture(scope="module")
def deployed() -> Stack:
    return stack(**EVERYTHING)


@pytest.mark.parametrize("door", DOORS)
def test_every_function_that_fails_asynchronously_leaves_its_event_in_a_queue(door: str, deployed: Stack) -> None:
    configured = [
        config
        for config in deployed.of("AWS::Lambda::EventInvokeConfig").values()
        if config["FunctionName"] == door.capitalize()
    ]
    assert [config["DestinationConfig"]["OnFailure"]["Destination"] for config in configured] == [DEAD]


@pytest.mark.parametrize("door", DOORS)
def test_every_function_may_write_to_its_failure_queue(door: str, deployed: Stack) -> None:
    assert any(
        "sqs:SendMessage" in str(statement["Action"]) and statement["Resource"] == DEAD
        for statement in deployed.statements(door)
    )


def asynchronous_targets(deployed: Stack) -> list[tuple[str, dict[str, Any]]]:
    rules = deployed.of("AWS::Events::Rule").items()
    schedules = deployed.of("AWS::Scheduler::Schedule").items()
    return [(name, target) for name, rule in rules for target in rule["Targets"]] + [
        (name, schedule["Target"]) for name, schedule in schedules
    ]


def test_every_rule_and_schedule_has_a_dead_letter_queue_and_a_bound_on_retries(deployed: Stack) -> None:
    found = asynchronous_targets(deployed)
    assert len(found) >= 14
    for name, target in found:
        assert target["DeadLetterConfig"]["Arn"] == DEAD, name
        assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] <= 21600, name


def test_the_queue_policy_lets_the_rules_reach_queue_and_dead_letters(deployed: Stack) -> None:
    policy = deployed.of("AWS::SQS::QueuePolicy")["QueuePolicy"]
    allowed = [s for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Allow"]
    assert policy["Queues"] == ["EvaluationQueue", "DeadLetters"]
    assert {s["Principal"]["Service"] for s in allowed} == {"events.amazonaws.com", "sns.amazonaws.com"}
    assert all(statement["Resource"] == ["EvaluationQueue.Arn", DEAD] for statement in allowed)
    (rules,) = [s["Condition"] for s in allowed if s["Principal"]["Service"] == "events.amazonaws.com"]
    named = set(rules["ArnEquals"]["aws:SourceArn"])
    assert named == {f"{name}.Arn" for name in deployed.of("AWS::Events::Rule")}, (
        "a rule's name may be cut, its ARN not"
    )
    (topics,) = [s["Condition"] for s in allowed if s["Principal"]["Service"] == "sns.amazonaws.com"]
    assert ":111122223333:" in topics["ArnLike"]["aws:SourceArn"]


def test_the_queue_redrives_to_its_own_dead_letters_and_waits_six_timeouts(deployed: Stack) -> None:
    queue = deployed.of("AWS::SQS::Queue")["EvaluationQueue"]
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == "EvaluationDeadLetters.Arn"
    assert queue["VisibilityTimeout"] >= 6 * deployed.function("evaluate")["Timeout"]


def test_batches_fail_by_the_message_not_as_a_whole(deployed: Stack) -> None:
    for name, mapping in deployed.of("AWS::Lambda::EventSourceMapping").items():
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"], name


def test_a_stream_record_that_keeps_failing_goes_to_the_dead_letters_and_frees_the_stream(deployed: Stack) -> None:
    mappings = deployed.of("AWS::Lambda::EventSourceMapping")
    for name in ("ProposeFromStream", "ApplyFromStream"):
        assert mappings[name]["DestinationConfig"]["OnFailure"]["Destination"] == DEAD
        assert 0 < mappings[name]["MaximumRetryAttempts"] <= 10


def test_an_interruption_older_than_its_two_minutes_is_not_delivered(deployed: Stack) -> None:
    for name, target in asynchronous_targets(deployed):
        if name.startswith("Interruption"):
            assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == 120
    config = deployed.of("AWS::Lambda::EventInvokeConfig")["InterruptionEventInvokeConfig"]
    assert config["MaximumEventAgeInSeconds"] == 120


def test_every_queue_of_dead_letters_rings(deployed: Stack) -> None:
    watched = {
        dimension["Value"]
        for alarm in deployed.of("AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
        for dimension in alarm["Dimensions"]
    }
    assert watched == {"DeadLetters.QueueName", "EvaluationDeadLetters.QueueName"}


@pytest.mark.parametrize("slack", [True, False])
def test_the_error_alarm_counts_every_function_that_exists(slack: bool) -> None:
    deployed = stack(**EVERYTHING) if slack else stack()
    queries = deployed.of("AWS::CloudWatch::Alarm")["ErrorsAlarm"]["Metrics"]
    counted = {query["MetricStat"]["Metric"]["Dimensions"][0]["Value"] for query in queries if "MetricStat" in query}
    assert counted == set(deployed.of("AWS::Lambda::Function"))
    assert len(queries) <= 10  # the limit of PutMetricAlarm


def test_every_alarm_of_ours_tells_the_topic_but_the_grouped_one_which_is_no_incident(deployed: Stack) -> None:
    for name, alarm in deployed.of("AWS::CloudWatch::Alarm").items():
        assert alarm.get("AlarmActions") == (None if name == "GpuIdleAlarm" else ["Topic"]), name
