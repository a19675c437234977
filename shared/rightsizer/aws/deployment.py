"""What is around the functions of a deployed stack, looked at with the caller's own credentials.

A function is asked for its self-test (Lambda Invoke); queues, topic, schedules, table and the roles' writes are looked
at from here, so that no role has to grow for it. What the caller may not look at is said to be not checked.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from rightsizer import wire
from rightsizer.aws.errors import code_of, reading
from rightsizer.aws.reads import DELETED
from rightsizer.aws.session import Session
from rightsizer.errors import PermissionMissingError, RightsizerError, SettingsError, VanishedError
from rightsizer.model.self_test import Check, Outcome, Tested

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


def resources_of(session: Session, stack: str) -> tuple[Resource, ...]:
    """What the stack is made of. Raises SettingsError where nothing of that name is deployed, or ReadError."""
    with reading("cloudformation:ListStackResources", f"looking at the stack {stack}"):
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


def functions(session: Session, resources: tuple[Resource, ...], event: Mapping[str, str]) -> Iterator[Tested]:
    """The self-test of each function, one after the other."""
    client = session.client("lambda", seconds=LONGEST_S)
    for function in (r for r in resources if r.kind == FUNCTION):
        yield _asked(client, function, event)


def _asked(client: Any, function: Resource, event: Mapping[str, str]) -> Tested:
    door, action = function.logical_id.lower(), "lambda:InvokeFunction"
    try:
        with reading(action, f"asking {function.name} for its self-test"):
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


def around(session: Session, resources: tuple[Resource, ...], table: str) -> Tested:
    """Queues, topic, schedules, event sources and the table of this name, which the stack may have adopted."""
    found = [check for part in (_queues, _topics, _schedules, _sources) for check in part(session, resources)]
    return Tested("stack", (*found, *_tables(session, table)))


def _named(resources: tuple[Resource, ...], kind: str) -> Iterator[Resource]:
    return (resource for resource in resources if resource.kind == kind)


def _unasked(error: RightsizerError, action: str, purpose: str) -> Check:
    """What could not be looked at; what is gone is no question of permissions."""
    if isinstance(error, VanishedError):
        return Check(action, purpose, Outcome.FAILED, str(error), DELETED)
    remedy = "the message names the cause; then run it again"
    if isinstance(error, PermissionMissingError):
        remedy = f"allow {action} to these credentials, and run it again"
    return Check(action, purpose, Outcome.NOT_CHECKED, str(error), remedy)


def _queues(session: Session, resources: tuple[Resource, ...]) -> Iterator[Check]:
    """Dead letters are lost work: somebody has to read them."""
    action, wanted = "sqs:GetQueueAttributes", ["ApproximateNumberOfMessages"]
    for queue in _named(resources, "AWS::SQS::Queue"):
        purpose = f"messages in {queue.logical_id}"
        try:
            with reading(action, purpose):
                answer = session.client("sqs").get_queue_attributes(QueueUrl=queue.name, AttributeNames=wanted)
        except RightsizerError as error:
            yield _unasked(error, action, purpose)
            continue
        waiting = int(answer["Attributes"]["ApproximateNumberOfMessages"])
        if "Dead" in queue.logical_id and waiting:
            remedy = f"read them ({queue.name}), mend the cause, and start a redrive; the logs name each one"
            yield Check(action, purpose, Outcome.FAILED, f"{waiting} dead letters wait", remedy)
        else:
            yield Check(action, purpose, Outcome.OK, f"{waiting} waiting")


def _topics(session: Session, resources: tuple[Resource, ...]) -> Iterator[Check]:
    action, purpose = "sns:ListSubscriptionsByTopic", "somebody hears what is published"
    for topic in _named(resources, "AWS::SNS::Topic"):
        try:
            with reading(action, purpose):
                pages: Any = (
                    session.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic.name)
                )
                rows = [row for page in pages for row in page["Subscriptions"]]
        except RightsizerError as error:
            yield _unasked(error, action, purpose)
            continue
        pending = sum(row["SubscriptionArn"] == "PendingConfirmation" for row in rows)
        detail = f"{len(rows) - pending} confirmed, {pending} not confirmed"
        if len(rows) > pending:
            yield Check(action, purpose, Outcome.OK, detail)
        else:
            remedy = f"subscribe an address to {topic.name} and confirm it; reports and warnings go there"
            yield Check(action, purpose, Outcome.FAILED, detail, remedy)


def _schedules(session: Session, resources: tuple[Resource, ...]) -> Iterator[Check]:
    action = "scheduler:GetSchedule"
    for schedule in _named(resources, SCHEDULE):
        purpose = f"the schedule {schedule.logical_id} fires"
        try:
            with reading(action, purpose):
                state = session.client("scheduler").get_schedule(Name=schedule.name)["State"]
        except RightsizerError as error:
            yield _unasked(error, action, purpose)
            continue
        yield _enabled(action, purpose, state, f"enable the schedule {schedule.name}")


def _sources(session: Session, resources: tuple[Resource, ...]) -> Iterator[Check]:
    action = "lambda:GetEventSourceMapping"
    for source in _named(resources, MAPPING):
        purpose = f"{source.logical_id} delivers"
        try:
            with reading(action, purpose):
                state = session.client("lambda").get_event_source_mapping(UUID=source.name)["State"]
        except RightsizerError as error:
            yield _unasked(error, action, purpose)
            continue
        yield _enabled(action, purpose, state, f"enable the event source mapping {source.name}")


def _enabled(action: str, purpose: str, state: str, remedy: str) -> Check:
    if state.upper() == "ENABLED":
        return Check(action, purpose, Outcome.OK, state)
    return Check(action, purpose, Outcome.FAILED, f"its state is {state}", remedy)


def _tables(session: Session, table: str) -> Iterator[Check]:
    action, purpose = "dynamodb:DescribeTable", "the table has the keys, the index and the stream of this release"
    client = session.client("dynamodb")
    try:
        with reading(action, purpose):
            found: Mapping[str, Any] = client.describe_table(TableName=table)["Table"]
    except RightsizerError as error:
        yield _unasked(error, action, purpose)
    else:
        yield _table(action, purpose, table, found)
    action, purpose = "dynamodb:DescribeTimeToLive", "rows of the table go when their time is over"
    try:
        with reading(action, purpose):
            lives: Mapping[str, Any] = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    except RightsizerError as error:
        yield _unasked(error, action, purpose)
    else:
        yield _time_to_live(action, purpose, table, lives)


def _table(action: str, purpose: str, table: str, found: Mapping[str, Any]) -> Check:
    keys = [key["AttributeName"] for key in found["KeySchema"]]
    indexes = {index["IndexName"] for index in found.get("GlobalSecondaryIndexes", ())}
    stream = found.get("StreamSpecification", {}).get("StreamEnabled", False)
    wrong = [
        said
        for said, is_wrong in (
            (f"its state is {found['TableStatus']}", found["TableStatus"] != "ACTIVE"),
            (f"its keys are {', '.join(keys)}, not pk and sk", keys != ["pk", "sk"]),
            ("it has no index GSI1", "GSI1" not in indexes),
            ("it has no stream, so that nothing is posted and no approval is heard at once", not stream),
        )
        if is_wrong
    ]
    if wrong:
        remedy = (
            f"give the table {table} what docs/ledger.md lists; docs/upgrade.md has the commands for a restored one"
        )
        return Check(action, purpose, Outcome.FAILED, "; ".join(wrong), remedy)
    return Check(action, purpose, Outcome.OK, f"{table}: pk, sk, GSI1 and a stream")


def _time_to_live(action: str, purpose: str, table: str, lives: Mapping[str, Any]) -> Check:
    """A restored table has none until it is set: the rejections and notes in it would never end."""
    state, attribute = lives.get("TimeToLiveStatus", "DISABLED"), lives.get("AttributeName", "none")
    if state in ("ENABLED", "ENABLING") and attribute == EXPIRES:
        return Check(action, purpose, Outcome.OK, f"by {attribute}")
    remedy = (
        f"aws dynamodb update-time-to-live --table-name {table} "
        f"--time-to-live-specification 'Enabled=true,AttributeName={EXPIRES}'"
    )
    detail = f"its state is {state}, by the attribute {attribute}; refusals and notes in it never end"
    return Check(action, purpose, Outcome.FAILED, detail, remedy)
