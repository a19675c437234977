"""The parts of a stack, made from its template: what moto can hold is made in moto, the rest is data for the wiring."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.account import Sandbox
from sandbox.cloudwatch.insights import is_query
from sandbox.functions import Function
from sandbox.template import Template


@dataclass(frozen=True, slots=True)
class Rule:
    """An EventBridge rule with its one target."""

    name: str
    pattern: Mapping[str, Any]
    enabled: bool
    function: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule of EventBridge Scheduler."""

    name: str
    expression: str
    input: str
    function: str


@dataclass(frozen=True, slots=True)
class StreamSource:
    """An event source mapping from the table's stream."""

    name: str
    function: str
    table: str
    batch: int
    retries: int
    filters: tuple[Mapping[str, Any], ...]
    on_failure: str | None


@dataclass(slots=True)
class QueueMapping:
    """An event source mapping from a queue."""

    queue: str
    arn: str
    function: str
    batch: int
    partial: bool
    waiting: dict[str, Any] = field(default_factory=dict)
    """Message id to the moment of the next attempt."""

    def take(self, box: Sandbox, url: str) -> list[dict[str, Any]]:
        """Up to a batch of messages that may be tried now."""
        from datetime import timedelta

        from moto.sqs.models import sqs_backends

        held = sqs_backends[box.account][box.region].queues[url.rpartition("/")[2]].messages
        if not any(self._may(box, message.id) for message in held):
            return []
        with box.gate.unrecorded():
            received = box.client("sqs").receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0, AttributeNames=["All"]
            )
        messages = [row for row in received.get("Messages", []) if self._may(box, row["MessageId"])][: self.batch]
        for row in messages:
            self.waiting[row["MessageId"]] = box.clock.now + timedelta(minutes=1)
        return messages

    def _may(self, box: Sandbox, message_id: str) -> bool:
        due = self.waiting.get(message_id)
        return due is None or due <= box.clock.now

    def record(self, box: Sandbox, message: Mapping[str, Any], template: Template) -> dict[str, Any]:
        """The message as Lambda passes it on."""
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": {
                "ApproximateReceiveCount": message["Attributes"]["ApproximateReceiveCount"],
                "SentTimestamp": str(int(box.clock.now.timestamp() * 1000)),
                "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                "ApproximateFirstReceiveTimestamp": str(int(box.clock.now.timestamp() * 1000)),
            },
            "messageAttributes": {},
            "md5OfBody": message["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": self.arn,
            "awsRegion": box.region,
        }

    def settle(self, box: Sandbox, url: str, messages: list[dict[str, Any]], failed: set[str]) -> None:
        """Delete what succeeded; what failed waits, and goes to the dead-letter queue after its last attempt."""
        lost = {row["MessageId"] for row in messages} if failed and not self.partial else failed
        with box.gate.unrecorded():
            for row in messages:
                if row["MessageId"] not in lost:
                    box.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=row["ReceiptHandle"])
                    self.waiting.pop(row["MessageId"], None)


@dataclass(slots=True)
class Parts:
    """Everything of a stack."""

    functions: dict[str, Function] = field(default_factory=dict)
    queues: dict[str, str] = field(default_factory=dict)
    """Logical name to URL."""
    dead_letter_queues: list[str] = field(default_factory=list)
    on_failure: str | None = None
    rules: list[Rule] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    streams: list[StreamSource] = field(default_factory=list)
    queue_mappings: list[QueueMapping] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Logical name of table, bucket or topic to its physical name or ARN."""


def deploy(box: Sandbox, template: Template, stack: str) -> Parts:
    """Make the stack's resources."""
    parts = Parts()
    _queues(box, template, stack, parts)
    _table(box, template, stack, parts)
    for name in template.resources("AWS::S3::Bucket"):
        bucket = f"{stack}-{name.lower()}-{box.account}"
        where = {"CreateBucketConfiguration": {"LocationConstraint": box.region}} if box.region != "us-east-1" else {}
        box.client("s3").create_bucket(Bucket=bucket, **where)
        template.names(name, bucket, Arn=f"arn:aws:s3:::{bucket}")
        parts.names[name] = bucket
    for name in template.resources("AWS::SNS::Topic"):
        arn = box.client("sns").create_topic(Name=f"{stack}-{name}")["TopicArn"]
        template.names(name, arn, TopicName=f"{stack}-{name}")
        parts.names[name] = arn
    for name in template.resources("AWS::Logs::LogGroup", "AWS::Serverless::LayerVersion"):
        template.names(name, f"/sandbox/{stack}/{name}", Arn=f"arn:aws:sandbox:::{name}")
    _functions(box, template, stack, parts)
    _rules(template, parts)
    mappings(template, parts)
    _subscriptions(box, template)
    _alarms(box, template)
    return parts


def _queues(box: Sandbox, template: Template, stack: str, parts: Parts) -> None:
    rows = template.resources("AWS::SQS::Queue")
    sqs = box.client("sqs")
    for name in rows:
        url = sqs.create_queue(QueueName=f"{stack}-{name}")["QueueUrl"]
        template.names(name, url, Arn=box.world.arn("sqs", f"{stack}-{name}"), QueueName=f"{stack}-{name}")
        parts.queues[name] = url
    for name, raw in rows.items():
        properties = template.resolve(raw)
        attributes = {"VisibilityTimeout": str(properties.get("VisibilityTimeout", 30))}
        if redrive := properties.get("RedrivePolicy"):
            attributes["RedrivePolicy"] = json.dumps(redrive)
        sqs.set_queue_attributes(QueueUrl=parts.queues[name], Attributes=attributes)
        target = (properties.get("RedrivePolicy") or {}).get("deadLetterTargetArn", "")
        parts.dead_letter_queues += [one for one in rows if target.endswith(f":{stack}-{one}")]


def _table(box: Sandbox, template: Template, stack: str, parts: Parts) -> None:
    for name, raw in template.resources("AWS::DynamoDB::Table").items():
        properties = template.resolve(raw)
        stream = (
            {"StreamEnabled": True, **properties["StreamSpecification"]} if "StreamSpecification" in properties else {}
        )
        client, physical = box.client("dynamodb"), f"{stack}-{name}"
        table = client.create_table(
            TableName=physical,
            StreamSpecification=stream or {"StreamEnabled": False},
            **{
                key: properties[key]
                for key in ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
                if key in properties
            },
        )["TableDescription"]
        if "TimeToLiveSpecification" in properties:
            expiry = properties["TimeToLiveSpecification"]
            client.update_time_to_live(TableName=physical, TimeToLiveSpecification=expiry)
        if "PointInTimeRecoverySpecification" in properties:
            backups = properties["PointInTimeRecoverySpecification"]
            client.update_continuous_backups(TableName=physical, PointInTimeRecoverySpecification=backups)
        template.names(name, physical, Arn=table["TableArn"], StreamArn=table.get("LatestStreamArn", ""))
        parts.names[name] = physical


def _functions(box: Sandbox, template: Template, stack: str, parts: Parts) -> None:
    rows = template.resources("AWS::Serverless::Function")
    for name in rows:
        arn = box.world.arn("lambda", f"function:{stack}-{name}")
        template.names(name, f"{stack}-{name}", Arn=arn)
        template.names(
            f"{name}Url", f"https://{name.lower()}.lambda-url/", FunctionUrl=f"https://{name.lower()}.lambda-url/"
        )
    defaults = template.globals()
    failure = ((defaults.get("EventInvokeConfig") or {}).get("DestinationConfig") or {}).get("OnFailure") or {}
    parts.on_failure = next(
        (one for one in parts.queues if failure.get("Destination", "").endswith(f":{stack}-{one}")), None
    )
    if parts.on_failure and parts.on_failure not in parts.dead_letter_queues:
        parts.dead_letter_queues.append(parts.on_failure)
    for name, raw in rows.items():
        own = template.resolve({key: value for key, value in raw.items() if key not in {"Policies", "Events"}})
        merged = defaults | own
        environment = (defaults.get("Environment") or {}).get("Variables", {}) | (own.get("Environment") or {}).get(
            "Variables", {}
        )
        invoke = (defaults.get("EventInvokeConfig") or {}) | (own.get("EventInvokeConfig") or {})
        parts.functions[name] = Function(
            name=f"{stack}-{name}",
            door=merged["CodeUri"].strip("/").rpartition("/")[2],
            arn=box.world.arn("lambda", f"function:{stack}-{name}"),
            handler=merged["Handler"],
            environment={key: str(value) for key, value in environment.items()},
            retries=int(invoke.get("MaximumRetryAttempts", 2)),
            timeout=int(merged.get("Timeout", 3)),
            memory=int(merged.get("MemorySize", 128)),
        )
        for event, row in template.resolve(raw.get("Events") or {}).items():
            _event(f"{name}.{event}", name, row, parts)


def _event(label: str, function: str, row: Mapping[str, Any], parts: Parts) -> None:
    properties = row["Properties"]
    match row["Type"]:
        case "ScheduleV2" | "Schedule":
            expression = properties.get("ScheduleExpression") or properties["Schedule"]
            parts.schedules.append(Schedule(label, expression, " ".join(properties["Input"].split()), function))
        case "EventBridgeRule" | "CloudWatchEvent":
            enabled = properties.get("State", "ENABLED") == "ENABLED"
            parts.rules.append(Rule(label, properties["Pattern"], enabled, function=function))
        case other:
            raise NotImplementedError(f"{label}: events of type {other} are not simulated")


def _rules(template: Template, parts: Parts) -> None:
    for name, raw in template.resources("AWS::Events::Rule").items():
        properties = template.resolve(raw)
        enabled = properties.get("State", "ENABLED") == "ENABLED"
        for target in properties["Targets"]:
            queue = next(
                (one for one in parts.queues if target["Arn"].endswith(f"-{one}") and ":sqs:" in target["Arn"]), None
            )
            function = next((one for one, row in parts.functions.items() if row.arn == target["Arn"]), None)
            if queue is None and function is None:
                raise NotImplementedError(f"{name}: the target {target['Arn']} is not simulated")
            parts.rules.append(Rule(name, properties["EventPattern"], enabled, function=function, queue=queue))


def mappings(template: Template, parts: Parts) -> None:
    """Add the event source mappings of queues and streams to the parts."""
    for name, raw in template.resources("AWS::Lambda::EventSourceMapping").items():
        properties = template.resolve(raw)
        function = next(one for one, row in parts.functions.items() if row.name == properties["FunctionName"])
        source, partial = (
            properties["EventSourceArn"],
            "ReportBatchItemFailures" in properties.get("FunctionResponseTypes", []),
        )
        if ":sqs:" in source:
            queue = next(one for one in parts.queues if source.endswith(f"-{one}"))
            parts.queue_mappings.append(QueueMapping(queue, source, function, properties.get("BatchSize", 10), partial))
            continue
        table = source.partition(":table/")[2].partition("/")[0]
        failure = ((properties.get("DestinationConfig") or {}).get("OnFailure") or {}).get("Destination", "")
        filters = (properties.get("FilterCriteria") or {}).get("Filters", [])
        parts.streams.append(
            StreamSource(
                name, function, table, properties.get("BatchSize", 100), properties.get("MaximumRetryAttempts", 2**31),
                tuple(json.loads(row["Pattern"]) for row in filters),
                next((one for one in parts.queues if failure.endswith(f"-{one}")), None),
            )
        )  # fmt: skip


def _subscriptions(box: Sandbox, template: Template) -> None:
    for raw in template.resources("AWS::SNS::Subscription").values():
        properties = template.resolve(raw)
        box.client("sns").subscribe(
            TopicArn=properties["TopicArn"], Protocol=properties["Protocol"], Endpoint=properties["Endpoint"]
        )


def _alarms(box: Sandbox, template: Template) -> None:
    """The alarms on SageMaker's metrics; nothing here publishes the metrics of SQS and Lambda."""
    for properties in _simulated_alarms(template):
        box.client("cloudwatch").put_metric_alarm(**properties)


def _simulated_alarms(template: Template) -> Iterator[dict[str, Any]]:
    for raw in template.resources("AWS::CloudWatch::Alarm").values():
        expression = (raw.get("Metrics") or [{}])[0].get("Expression")
        if "SageMaker" in str(raw.get("Namespace", "")) or (expression and is_query(expression)):
            yield template.resolve(raw)
