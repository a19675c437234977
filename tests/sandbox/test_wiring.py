"""The wiring: an inline template stands for the product's, so that these tests hold the sandbox alone."""

from datetime import timedelta
from typing import Any

import pytest

from sandbox.account import Sandbox
from sandbox.delivery import Delivery
from sandbox.functions import Function
from sandbox.refusals import Killed, NotSimulated
from sandbox.wiring import Stack

TEMPLATE = """
Parameters: {Prefix: {Type: String, Default: ""}}
Conditions: {Never: !Equals [!Ref Prefix, never]}
Globals:
  Function:
    Handler: app.lambda_handler
    EventInvokeConfig: {MaximumRetryAttempts: 1, DestinationConfig: {OnFailure: {Destination: !GetAtt Dead.Arn}}}
    Environment: {Variables: {RIGHTSIZER_TABLE: !Ref Table, RIGHTSIZER_TOPIC_ARN: !Ref Topic}}
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 2}}
  Dead: {Type: AWS::SQS::Queue}
  Topic: {Type: AWS::SNS::Topic}
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      StreamSpecification: {StreamViewType: NEW_AND_OLD_IMAGES}
  Look:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: functions/evaluate/}
  Absent:
    Type: AWS::Serverless::Function
    Condition: Never
    Properties: {CodeUri: functions/respond/}
  Act:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/apply/
      Events:
        Tick:
          Type: ScheduleV2
          Properties: {ScheduleExpression: rate(5 minutes), Input: '{"time":"<aws.scheduler.scheduled-time>"}'}
        Moved:
          Type: EventBridgeRule
          Properties: {Pattern: {source: [aws.sagemaker], detail: {EndpointStatus: [UPDATING]}}}
  Rule:
    Type: AWS::Events::Rule
    Properties:
      EventPattern: {source: [aws.sagemaker], detail-type: [SageMaker Endpoint State Change]}
      Targets: [{Id: q, Arn: !GetAtt Queue.Arn}]
  FromQueue:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !Ref Look
      EventSourceArn: !GetAtt Queue.Arn
      FunctionResponseTypes: [ReportBatchItemFailures]
  FromStream:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !Ref Act
      EventSourceArn: !GetAtt Table.StreamArn
      BatchSize: 1
      MaximumRetryAttempts: 1
      FunctionResponseTypes: [ReportBatchItemFailures]
      DestinationConfig: {OnFailure: {Destination: !GetAtt Dead.Arn}}
      FilterCriteria:
        Filters: [{Pattern: '{"dynamodb":{"NewImage":{"state":{"S":["approved"]}}}}'}]
"""


class Handlers:
    """Plays the functions; a door that is listed in `broken` fails."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []
        self.broken: dict[str, BaseException] = {}
        self.refused: set[str] = set()

    def __call__(self, function: Function, event: Any, request_id: str) -> Any:
        self.seen.append((function.door, event))
        if function.door in self.broken:
            raise self.broken[function.door]
        records = event.get("Records", []) if isinstance(event, dict) else []
        bad = [row["messageId"] for row in records if any(word in row.get("body", "") for word in self.refused)]
        return {"batchItemFailures": [{"itemIdentifier": one} for one in bad]}

    def cold(self) -> None:
        """Nothing is kept between two events."""

    def of(self, door: str) -> list[Any]:
        return [event for name, event in self.seen if name == door]


@pytest.fixture
def handlers() -> Handlers:
    return Handlers()


@pytest.fixture
def stack(box: Sandbox, handlers: Handlers) -> Stack:
    return Stack(box, TEMPLATE, invoker=handlers)


def change(box: Sandbox, name: str = "chat") -> None:
    box.add_endpoint(name)
    row = {"VariantName": "AllTraffic", "DesiredInstanceCount": 2}
    box.client("sagemaker").update_endpoint_weights_and_capacities(EndpointName=name, DesiredWeightsAndCapacities=[row])
    box.clock.advance(timedelta(minutes=1))


def put(box: Sandbox, stack: Stack, key: str, state: str) -> None:
    item = {"pk": {"S": key}, "state": {"S": state}}
    box.client("dynamodb").put_item(TableName=stack.parts.names["Table"], Item=item)


def test_events_reach_the_targets_whose_patterns_match(box: Sandbox, stack: Stack, handlers: Handlers) -> None:
    change(box)
    assert [event["detail"]["EndpointStatus"] for event in handlers.of("apply")] == ["UPDATING"]
    (batch,) = handlers.of("evaluate")
    assert "SageMaker Endpoint State Change" in batch["Records"][0]["body"]
    assert batch["Records"][0]["eventSource"] == "aws:sqs"


def test_schedules_fire_by_the_account_s_clock(box: Sandbox, stack: Stack, handlers: Handlers) -> None:
    box.clock.advance(timedelta(minutes=16))
    assert [event["time"][11:16] for event in handlers.of("apply")] == ["09:05", "09:10", "09:15"]


def test_a_poisoned_message_is_retried_alone_and_ends_in_the_dead_letter_queue(
    box: Sandbox, stack: Stack, handlers: Handlers
) -> None:
    handlers.refused.add("poison")
    for body in ("good", "poison"):
        box.client("sqs").send_message(QueueUrl=stack.parts.queues["Queue"], MessageBody=body)
    stack.settle()
    box.clock.advance(timedelta(minutes=4))
    bodies = [[row["body"] for row in event["Records"]] for event in handlers.of("evaluate")]
    assert sorted(bodies[0]) == ["good", "poison"]
    assert bodies[1:] == [["poison"]]
    assert stack.peek("Dead") == ["poison"]
    assert stack.peek("Queue") == []


def test_an_asynchronous_failure_is_retried_and_then_buried(box: Sandbox, stack: Stack, handlers: Handlers) -> None:
    handlers.broken["apply"] = ValueError("broken")
    box.clock.advance(timedelta(minutes=5))
    handlers.broken.clear()
    assert len(stack.failures) == 1
    box.clock.advance(timedelta(minutes=1))
    assert len(handlers.of("apply")) == 2
    assert stack.peek("Dead") == []
    handlers.broken["apply"] = Killed("dead")
    box.clock.advance(timedelta(minutes=9))
    assert any("dead" in body for body in stack.peek("Dead"))


def test_the_stream_brings_what_the_filter_lets_through_in_order(
    box: Sandbox, stack: Stack, handlers: Handlers
) -> None:
    for key, state in (("a", "pending"), ("a", "approved"), ("b", "approved")):
        put(box, stack, key, state)
    stack.settle()
    keys = [event["Records"][0]["dynamodb"]["Keys"]["pk"]["S"] for event in handlers.of("apply")]
    assert keys == ["a", "b"]
    assert handlers.of("apply")[0]["Records"][0]["eventName"] == "MODIFY"


def test_a_failing_stream_record_blocks_the_next_until_it_is_given_up(
    box: Sandbox, stack: Stack, handlers: Handlers
) -> None:
    handlers.broken["apply"] = ValueError("broken")
    put(box, stack, "a", "approved")
    put(box, stack, "b", "approved")
    stack.settle()
    assert len(handlers.of("apply")) == 1
    box.clock.advance(timedelta(minutes=1))
    handlers.broken.clear()
    box.clock.advance(timedelta(minutes=2))
    keys = [event["Records"][0]["dynamodb"]["Keys"]["pk"]["S"] for event in handlers.of("apply") if "Records" in event]
    assert keys == ["a", "a", "b", "b"]  # b is tried at once when a is given up, and again a minute later
    assert len(stack.peek("Dead")) == 1


def test_events_may_come_late_twice_and_in_another_order(box: Sandbox, handlers: Handlers) -> None:
    Stack(box, TEMPLATE, invoker=handlers, delivery=Delivery(3, timedelta(hours=1), copies=5, exactly=True))
    for name in ("one", "two", "three"):
        change(box, name)
    box.clock.advance(timedelta(hours=1, minutes=5))
    names = [event["detail"]["EndpointName"] for event in handlers.of("apply") if "detail" in event]
    assert sorted(names) == sorted(["one", "two", "three"] * 5)
    assert names != sorted(names, key=["one", "two", "three"].index)


def test_what_the_sandbox_cannot_make_of_a_template_raises(box: Sandbox) -> None:
    with pytest.raises(NotSimulated, match="Base64"):
        Stack(box, TEMPLATE.replace("!Ref Topic", "!Base64 [0, [a]]"))


def test_the_product_s_own_template_deploys(box: Sandbox, handlers: Handlers) -> None:
    stack = Stack(box, invoker=handlers)
    assert {function.door for function in stack.parts.functions.values()} >= {"sweep", "evaluate", "propose", "apply"}
    box.clock.advance(timedelta(hours=24))
    fired = {event["detail-type"] for _, event in handlers.seen if "detail-type" in event}
    assert {"Sweep Due", "Tick"} <= fired
