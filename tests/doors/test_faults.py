"""Bad input and faults, at the real handlers: a clear error or a reason, nothing lost, the others left alone."""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding
from rightsizer.errors import InputError
from tests.doors.scene import BIG, PROPOSE, Scene, scene

SMALL = "checkout-risk"


def send(at: Scene, *bodies: str) -> None:
    """Messages on the evaluation queue."""
    with at.box.gate.unrecorded():
        for body in bodies:
            at.box.client("sqs").send_message(QueueUrl=at.stack.parts.queues["EvaluationQueue"], MessageBody=body)


def page(*names: str) -> str:
    asked = {"endpoints": names, "because": "full-sweep", "at": "2026-11-16T04:20:00Z", "key": "|".join(names)}
    return json.dumps({"kind": "look-at"} | asked)


def named(endpoint: str) -> Any:
    def where(params: Mapping[str, Any]) -> bool:
        return params.get("EndpointName") == endpoint

    return where


def test_what_is_no_event_is_refused_with_a_sentence_and_writes_nothing() -> None:
    nothing: list[Any] = [{}, {"nonsense": True}, "text", [], None, {"Records": "many"}]
    with scene() as at:
        for door in ("sweep", "evaluate", "propose", "apply", "interruption", "report"):
            for event in nothing:
                before = len(at.box.calls.writes())
                with suppress(InputError):
                    at.stack.invoke(door, event)
                assert at.box.calls.writes()[before:] == [], (door, event)


def test_the_public_door_answers_nonsense_with_a_refusal_and_reads_no_proposal() -> None:
    nonsense: list[Any] = [{}, {"body": "payload=%7Bnot"}, "text", None]
    with scene() as at:
        for event in nonsense:
            answer = at.stack.invoke("respond", event)
            assert answer["statusCode"] in (400, 401, 403), event
        assert at.box.calls.of("dynamodb") == []


def test_an_unknown_event_is_taken_from_the_queue_and_does_nothing() -> None:
    with scene() as at:
        send(at, json.dumps({"source": "aws.sagemaker", "detail-type": "SageMaker Of Next Year", "detail": {"x": 1}}))
        at.stack.settle()
        assert at.stack.peek("EvaluationQueue") == []
        assert at.stack.dead_letters() == []


def test_a_poisoned_message_ends_in_the_dead_letters_and_the_rest_of_its_batch_succeeds() -> None:
    with scene() as at:
        at.add(SMALL)
        send(at, "{not json", page(SMALL), json.dumps({"kind": "look-at", "endpoints": 5}))
        at.stack.settle()
        (first, *_) = at.stack.runs("evaluate")
        assert len(first.answer["batchItemFailures"]) == 2
        assert set(at.recommendations()) == {SMALL}
        at.pass_time(minutes=10)
        bodies = at.stack.peek("EvaluationDeadLetters")
        assert sorted(bodies) == sorted(["{not json", json.dumps({"kind": "look-at", "endpoints": 5})])
        good = [run for run in at.stack.runs("evaluate") if any(SMALL in r["body"] for r in run.event["Records"])]
        assert len(good) == 1


def test_a_poisoned_record_of_the_stream_is_told_once_and_holds_up_no_other_proposal() -> None:
    with scene() as at:
        poison = {"pk": {"S": "PROPOSAL#p-bad"}, "sk": {"S": "PROPOSAL"}, "state": {"S": "pending"}, "doc": {"S": "{"}}
        with at.box.gate.unrecorded():
            at.box.client("dynamodb").put_item(TableName=at.stack.parts.names["Table"], Item=poison)
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        assert "Approve" in at.message(BIG).buttons()
        at.pass_time(minutes=30)
        assert len(at.slack.messages) == 1
        assert at.stack.dead_letters() == []
        told = [call for call in at.box.calls.of("sns", "Publish") if "p-bad" in str(call.params)]
        assert [call.params["Subject"] for call in told] == ["proposal p-bad cannot be read and waits"]


def test_a_tag_with_nonsense_is_noted_and_the_endpoint_is_judged_without_it() -> None:
    with scene() as at:
        at.add("odd-tags")
        at.add(SMALL)
        at.sweep()
        found = at.recommendations()
        notes = [note.sentence for note in found["odd-tags"].notes if note.code is Code.BAD_TAG]
        assert any("yolo" in note for note in notes)
        assert any("fast please" in note for note in notes)
        assert found[SMALL].finding is Finding.OPTIMIZED


@pytest.mark.parametrize("operation", ["DescribeEndpoint", "DescribeEndpointConfig"])
def test_an_endpoint_that_is_deleted_between_list_and_describe_leaves_the_others_alone(operation: str) -> None:
    with scene() as at:
        at.add(SMALL)
        at.add("chat-small")
        gone = f'Could not find endpoint "{SMALL}".'
        where = named(SMALL) if operation == "DescribeEndpoint" else lambda p: p["EndpointConfigName"].startswith(SMALL)
        at.box.gate.fail("sagemaker", operation, "ValidationException", gone, times=math.inf, where=where)
        at.sweep()
        assert set(at.recommendations()) == {"chat-small"}
        assert at.stack.peek("EvaluationQueue") == []
        assert at.stack.failures == []


def test_a_gap_of_six_hours_is_neither_idleness_nor_a_reason_to_give_up() -> None:
    with scene() as at:
        at.add("metric-gap")
        at.sweep()
        found = at.recommendations()["metric-gap"]
        assert found.finding is not Finding.IDLE
        assert found.evidence is not None
        assert 0.97 < found.evidence.valid_share < 1


def test_throttling_loses_nothing_the_page_comes_again() -> None:
    with scene() as at:
        at.add(SMALL)
        at.box.gate.fail("cloudwatch", "GetMetricData", "ThrottlingException", times=math.inf)
        at.sweep()
        assert at.recommendations() == {}
        assert len(at.stack.peek("EvaluationQueue")) == 1
        at.box.gate.heal()
        at.pass_time(minutes=2)
        assert set(at.recommendations()) == {SMALL}
        assert at.stack.peek("EvaluationQueue") == []
        assert at.stack.dead_letters() == []


@pytest.mark.parametrize(
    ("action", "judged"),
    [
        ("cloudwatch:GetMetricData", False),
        ("pricing:GetProducts", True),
        ("servicequotas:ListServiceQuotas", True),
        ("savingsplans:DescribeSavingsPlans", True),
        ("application-autoscaling:DescribeScalingPolicies", True),
        ("sagemaker:DescribeModel", True),
        ("tag:GetResources", True),
    ],
)
def test_a_missing_permission_costs_what_it_is_for_and_says_its_name(action: str, judged: bool) -> None:
    with scene() as at:
        at.add(SMALL)
        at.box.deny(action)
        at.sweep()
        assert at.stack.failures == []
        found = at.recommendations()[SMALL]
        if not judged:
            assert found.reason.code is Code.PERMISSION_MISSING
            assert action in found.reason.sentence
        else:
            assert found.price is not None


def test_a_type_without_a_price_is_judged_without_money_and_no_other_endpoint_suffers() -> None:
    with scene() as at:
        at.add(SMALL)
        with at.box.gate.unrecorded():
            at.box.add_endpoint("unpriced", instance_type="ml.p5e.48xlarge", count=1)
        at.sweep()
        found = at.recommendations()
        assert found["unpriced"].usd_per_month is None
        assert found["unpriced"].options == ()
        assert found[SMALL].usd_per_month is not None


def test_a_page_of_the_list_that_fails_is_listed_again_and_every_endpoint_is_seen() -> None:
    with scene() as at:
        with at.box.gate.unrecorded():
            at.box.set_quota("ml.m5.xlarge", 200)
            for number in range(101):
                at.box.add_endpoint(f"e{number:03}", instance_type="ml.m5.xlarge", count=1)
        pages = {"skip": 1}

        def second(params: Mapping[str, Any]) -> bool:
            return "NextToken" in params and pages["skip"] > 0

        at.box.gate.fail("sagemaker", "ListEndpoints", "InternalFailure", times=20, where=second)
        at.sweep()
        assert at.stack.failures
        at.box.gate.heal()
        at.pass_time(minutes=5)
        assert len(at.recommendations()) == 101
        assert at.stack.dead_letters() == []


def test_a_channel_that_is_down_is_told_later() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.slack.refusals = [(503, {})]
        at.sweep()
        assert at.slack.messages == []
        at.pass_time(minutes=5)
        assert "Approve" in at.message(BIG).buttons()
        assert [one.state for one in at.proposals()] == [ProposalState.PENDING]


def test_the_same_sweep_delivered_twice_asks_once() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.pass_time(minutes=1)
        at.sweep()
        assert len(at.slack.messages) == 1
        assert len(at.proposals()) == 1


def saved(endpoint: str) -> Any:
    def where(params: Mapping[str, Any]) -> bool:
        puts = [one["Put"]["Item"] for one in params.get("TransactItems", ()) if "Put" in one]
        puts += [one["PutRequest"]["Item"] for some in params.get("RequestItems", {}).values() for one in some]
        return any(item["pk"] == {"S": f"ENDPOINT#{endpoint}"} for item in puts)

    return where


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ValidationException", "Item size has exceeded the maximum allowed size"),
        ("ProvisionedThroughputExceededException", "The level of configured provisioned throughput was exceeded."),
        ("AccessDeniedException", "not authorized to perform dynamodb:PutItem"),
        ("InternalServerError", "Internal server error"),
    ],
)
def test_a_judgement_that_cannot_be_stored_costs_its_own_message_and_the_rest_of_the_page_is_judged_once(
    code: str, text: str
) -> None:
    with scene() as at:
        for name in ("chat-small", SMALL, "vision-ocr"):
            at.add(SMALL, as_name=name)
        at.box.gate.fail("dynamodb", "*WriteItem*", code, text, times=math.inf, where=saved("chat-small"))
        send(at, page("chat-small", SMALL), page("vision-ocr"))
        at.stack.settle()
        assert set(at.recommendations()) == {SMALL, "vision-ocr"}
        (only,) = at.stack.peek("EvaluationQueue")
        assert "chat-small" in only
        first = {name: one.evaluated_at for name, one in at.recommendations().items()}
        at.pass_time(minutes=10)
        assert len(at.stack.peek("EvaluationDeadLetters")) == 1
        assert {name: one.evaluated_at for name, one in at.recommendations().items()} == first
        assert at.stack.failures == []


def test_an_endpoint_that_cannot_be_described_costs_its_own_message() -> None:
    with scene() as at:
        at.add(SMALL)
        at.add("chat-small")
        where = named("chat-small")
        at.box.gate.fail("sagemaker", "DescribeEndpoint", "ValidationException", "odd", times=math.inf, where=where)
        send(at, page("chat-small"), page(SMALL))
        at.stack.settle()
        assert set(at.recommendations()) == {SMALL}
        assert len(at.stack.peek("EvaluationQueue")) == 1


def test_a_page_of_twenty_thousand_names_costs_no_call() -> None:
    with scene() as at:
        before = len(list(at.box.calls))
        send(at, page(*(f"e{n}" for n in range(20_000))))
        at.stack.settle()
        assert len(list(at.box.calls)) == before
        assert at.stack.failures == []
