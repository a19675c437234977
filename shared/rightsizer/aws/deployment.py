"""Resources around the functions of a deployed stack, read with the caller's own credentials.

A function is asked for its self-test (Lambda Invoke); queues, topic, schedules, table and the roles' writes are looked
at from here, so that no role has to grow for it. What the caller may not look at is said to be not checked.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from rightsizer import wire
from rightsizer.aws.errors import code_of, translate_read_errors
from rightsizer.aws.read_checks import DELETED
from rightsizer.aws.session import Session
from rightsizer.domain.plan import region_option
from rightsizer.domain.self_test import Check, Outcome, Tested
from rightsizer.errors import PermissionMissingError, RightsizerError, SettingsError, VanishedError

FUNCTION, MAPPING, SCHEDULE = "AWS::Lambda::Function", "AWS::Lambda::EventSourceMapping", "AWS::Scheduler::Schedule"
EXPIRES = "expires"
"""The attribute by which rows of the table go (docs/ledger.md)."""
LONGEST_S = 120.0
"""Seconds that a self-test may take, cold start and every request included."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of the stack."""

    logical_id: str
    kind: str
    name: str
    """What AWS calls it: a function's name, a queue's URL, a topic's ARN."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and its remedy."""

    detail: str
    remedy: str


def resources_of(session: Session, stack: str) -> tuple[Resource, ...]:
    """Resources of the stack.

    Raises SettingsError where nothing of that name is deployed, or ReadError.
    """
    with translate_read_errors("cloudformation:ListStackResources", f"looking at the stack {stack}"):
        try:
            pages: Any = (
                session.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
            )
            rows = [row for page in pages for row in page["StackResourceSummaries"]]
        except ClientError as error:
            if code_of(error) == "ValidationError":
                text = f"looking for the stack {stack} in {session.region}: nothing of that name is deployed"
                raise SettingsError(f"{text}; name the stack with --stack") from error
            raise
    return tuple(Resource(r["LogicalResourceId"], r["ResourceType"], r.get("PhysicalResourceId", "")) for r in rows)


def test_functions(session: Session, resources: tuple[Resource, ...], event: Mapping[str, str]) -> Iterator[Tested]:
    """The self-test of each function, one after the other."""
    client = session.client("lambda", seconds=LONGEST_S)
    for function in (r for r in resources if r.kind == FUNCTION):
        yield _ask_function(client, function, event)


def _ask_function(client: Any, function: Resource, event: Mapping[str, str]) -> Tested:
    door, action = function.logical_id.lower(), "lambda:InvokeFunction"
    try:
        with translate_read_errors(action, f"asking {function.name} for its self-test"):
            answer = client.invoke(FunctionName=function.name, Payload=json.dumps(event).encode())
            said = json.loads(answer["Payload"].read() or b"null")
    except PermissionMissingError as error:
        remedy = f"allow {action} on {function.name} to these credentials, and run it again"
        return Tested(door, (Check(action, "asking for the self-test", Outcome.NOT_CHECKED, str(error), remedy),))
    except (RightsizerError, ValueError) as error:
        remedy = DELETED if isinstance(error, VanishedError) else "run it again"
        return Tested(door, (Check(action, "asking for the self-test", Outcome.FAILED, str(error), remedy),))
    if answer.get("FunctionError") or not isinstance(said, dict) or "checks" not in said:
        text = said.get("errorMessage", said) if isinstance(said, dict) else said
        remedy = f"read the function's log; its code may be older than this terminal's ({function.name})"
        failed = Check("self-test", "answering its self-test", Outcome.FAILED, f"{text}"[:500], remedy)
        return Tested(door, (failed,))
    return Tested(door, tuple(wire.revive(Check, check) for check in said["checks"]))


def check_surroundings(session: Session, resources: tuple[Resource, ...], table: str) -> Tested:
    """Queues, topic, schedules, event sources and the table, which another stack may have made."""
    parts = (_queues, _topics, _schedules, _event_sources)
    checks = [check for part in parts for check in part(session, resources)]
    return Tested("stack", (*checks, *_table(session, table)))


def _resources_of_kind(resources: tuple[Resource, ...], kind: str) -> Iterator[Resource]:
    return (resource for resource in resources if resource.kind == kind)


def _check_read[T](action: str, purpose: str, ask: Callable[[], T], judge: Callable[[T], Fault | str]) -> Check:
    """One read and what is wrong with its answer, or a word on what is right.

    What is gone has failed; what the caller may not read is not checked.
    """
    try:
        with translate_read_errors(action, purpose):
            answer = ask()
    except VanishedError as error:
        return Check(action, purpose, Outcome.FAILED, str(error), DELETED)
    except PermissionMissingError as error:
        remedy = f"allow {action} to these credentials, and run it again"
        return Check(action, purpose, Outcome.NOT_CHECKED, str(error), remedy)
    except RightsizerError as error:
        remedy = "the message names the cause; then run it again"
        return Check(action, purpose, Outcome.NOT_CHECKED, str(error), remedy)
    found = judge(answer)
    if isinstance(found, Fault):
        return Check(action, purpose, Outcome.FAILED, found.detail, found.remedy)
    return Check(action, purpose, Outcome.OK, found)


def _queues(session: Session, resources: tuple[Resource, ...]) -> Iterator[Check]:
    """Dead letters are lost work: somebody has to read them."""
    counted = "ApproximateNumberOfMessages"
    for queue in _resources_of_kind(resources, "AWS::SQS::Queue"):

        def ask(url: str = queue.name) -> int:
            answer = session.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=[counted])
            return int(answer["Attributes"][counted])

        def judge(waiting: int, queue: Resource = queue) -> Fault | str:
            if "Dead" not in queue.logical_id or not waiting:
                return f"{waiting} waiting"
            remedy = f"read them ({queue.name}), mend the cause, and start a redrive; the logs name each one"
            return Fault(f"{waiting} dead letters wait", remedy)

        yield _check_read("sqs:GetQueueAttributes", f"messages in {queue.logical_id}", ask, judge)


def _topics(session: Session, resources: tuple[Resource, ...]) -> Iterator[Check]:
    for topic in _resources_of_kind(resources, "AWS::SNS::Topic"):

        def ask(arn: str = topic.name) -> list[str]:
            pages: Any = session.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=arn)
            return [row["SubscriptionArn"] for page in pages for row in page["Subscriptions"]]

        def judge(subscriptions: list[str], arn: str = topic.name) -> Fault | str:
            pending = subscriptions.count("PendingConfirmation")
            text = f"{len(subscriptions) - pending} confirmed, {pending} not confirmed"
            if len(subscriptions) > pending:
                return text
            return Fault(text, f"subscribe an address to {arn} and confirm it; reports and warnings go there")

        yield _check_read("sns:ListSubscriptionsByTopic", "somebody hears what is published", ask, judge)


def _schedules(session: Session, resources: tuple[Resource, ...]) -> Iterator[Check]:
    for schedule in _resources_of_kind(resources, SCHEDULE):

        def ask(name: str = schedule.name) -> str:
            return str(session.client("scheduler").get_schedule(Name=name)["State"])

        judge = _require_enabled(f"enable the schedule {schedule.name}")
        yield _check_read("scheduler:GetSchedule", f"the schedule {schedule.logical_id} fires", ask, judge)


def _event_sources(session: Session, resources: tuple[Resource, ...]) -> Iterator[Check]:
    for source in _resources_of_kind(resources, MAPPING):

        def ask(uuid: str = source.name) -> str:
            return str(session.client("lambda").get_event_source_mapping(UUID=uuid)["State"])

        judge = _require_enabled(f"enable the event source mapping {source.name}")
        yield _check_read("lambda:GetEventSourceMapping", f"{source.logical_id} delivers", ask, judge)


def _require_enabled(remedy: str) -> Callable[[str], Fault | str]:
    return lambda state: state if state.upper() == "ENABLED" else Fault(f"its state is {state}", remedy)


def _table(session: Session, name: str) -> Iterator[Check]:
    """Schema, expiry and backups. The template sets them on its own table; on an adopted one a person has to."""
    client = session.client("dynamodb")
    where = f"{region_option(client.meta.region_name)} --table-name {name}"
    give = f"give the table {name} what docs/ledger.md lists; docs/upgrade.md has the commands for a restored one"

    def schema(found: Mapping[str, Any]) -> Fault | str:
        keys = [key["AttributeName"] for key in found["KeySchema"]]
        indexes = {index["IndexName"] for index in found.get("GlobalSecondaryIndexes", ())}
        stream = found.get("StreamSpecification", {}).get("StreamEnabled", False)
        faults = {
            f"its state is {found['TableStatus']}": found["TableStatus"] != "ACTIVE",
            f"its keys are {', '.join(keys)}, not pk and sk": keys != ["pk", "sk"],
            "it has no index GSI1": "GSI1" not in indexes,
            "it has no stream, so that nothing is posted and no approval is heard at once": not stream,
        }
        wrong = "; ".join(fault for fault, is_wrong in faults.items() if is_wrong)
        return Fault(wrong, give) if wrong else f"{name}: pk, sk, GSI1 and a stream"

    def expiry(found: Mapping[str, Any]) -> Fault | str:
        if found.get("TimeToLiveStatus") in ("ENABLED", "ENABLING") and found.get("AttributeName") == EXPIRES:
            return "rows go when they expire"
        remedy = f"aws dynamodb update-time-to-live{where} --time-to-live-specification "
        return Fault("old rows are kept for ever, and billed", f"{remedy}AttributeName={EXPIRES},Enabled=true")

    def backups(found: Mapping[str, Any]) -> Fault | str:
        if found.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus") == "ENABLED":
            return "any moment of the last 35 days can be restored"
        remedy = f"aws dynamodb update-continuous-backups{where} --point-in-time-recovery-specification "
        return Fault("a lost table is lost with its journal", f"{remedy}PointInTimeRecoveryEnabled=true")

    yield _check_read(
        "dynamodb:DescribeTable",
        "the table has the schema that this release reads",
        lambda: client.describe_table(TableName=name)["Table"],
        schema,
    )
    yield _check_read(
        "dynamodb:DescribeTimeToLive",
        "the table forgets what has expired",
        lambda: client.describe_time_to_live(TableName=name)["TimeToLiveDescription"],
        expiry,
    )
    yield _check_read(
        "dynamodb:DescribeContinuousBackups",
        "the table can be restored",
        lambda: client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"],
        backups,
    )
