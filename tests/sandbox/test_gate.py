"""The gate: what passed, what was refused on purpose, and where the process died."""

import math

import pytest
from botocore.exceptions import ClientError

from sandbox.account import Sandbox
from sandbox.refusals import Killed, NotSimulated


def test_requests_are_recorded_in_order_with_their_parameters(box: Sandbox) -> None:
    box.add_endpoint("chat")
    assert not box.calls  # seeding makes no requests
    box.client("sagemaker").describe_endpoint(EndpointName="chat")
    box.client("dynamodb").list_tables()
    assert [call.action for call in box.calls] == ["sagemaker:DescribeEndpoint", "dynamodb:ListTables"]
    assert box.calls[0].params == {"EndpointName": "chat"}


def test_a_throttled_request_is_repeated_by_botocore_and_each_attempt_counts(box: Sandbox) -> None:
    box.add_endpoint("chat")
    box.gate.fail("sagemaker", "DescribeEndpoint", "ThrottlingException", times=2)
    assert box.client("sagemaker").describe_endpoint(EndpointName="chat")["EndpointStatus"] == "InService"
    assert [call.error for call in box.calls] == ["ThrottlingException", "ThrottlingException", None]


@pytest.mark.parametrize("service", ["sagemaker", "cloudwatch", "dynamodb", "sqs", "sns", "s3", "ec2", "autoscaling"])
def test_an_injected_error_arrives_in_the_protocol_of_each_service(box: Sandbox, service: str) -> None:
    box.gate.fail(service, "*", "AccessDeniedException", "no", times=math.inf)
    operation = {
        "sagemaker": "list_endpoints", "cloudwatch": "describe_alarms", "dynamodb": "list_tables", "sqs": "list_queues",
        "sns": "list_topics", "s3": "list_buckets",
        "ec2": "describe_vpcs", "autoscaling": "describe_auto_scaling_groups",
    }[service]  # fmt: skip
    with pytest.raises(ClientError) as refused:
        getattr(box.client(service), operation)()
    assert refused.value.response["Error"]["Code"] == "AccessDeniedException"
    assert refused.value.response["Error"]["Message"] == "no"


def test_a_denied_action_names_itself_until_it_is_allowed_again(box: Sandbox) -> None:
    box.deny("sagemaker:List*")
    with pytest.raises(ClientError, match="not authorized to perform: sagemaker:ListEndpoints"):
        box.client("sagemaker").list_endpoints()
    box.gate.allow("sagemaker:List*")
    assert box.client("sagemaker").list_endpoints()["Endpoints"] == []


def test_a_kill_after_a_write_leaves_the_write_in_place(box: Sandbox) -> None:
    box.gate.kill(1, after=True)
    with pytest.raises(Killed):
        box.client("sqs").create_queue(QueueName="q")
    assert box.client("sqs").list_queues()["QueueUrls"]


def test_a_kill_before_a_write_lets_nothing_happen(box: Sandbox) -> None:
    box.gate.kill(2, after=False)
    box.client("sqs").create_queue(QueueName="first")
    with pytest.raises(Killed):
        box.client("sqs").create_queue(QueueName="second")
    assert len(box.client("sqs").list_queues()["QueueUrls"]) == 1


def test_what_is_not_simulated_raises_instead_of_answering(box: Sandbox) -> None:
    with pytest.raises(NotSimulated, match="ListWorkteams"):
        box.client("sagemaker").list_workteams()
    with pytest.raises(NotSimulated, match="ListAutoMLJobs"):
        box.client("sagemaker").list_auto_ml_jobs()


def test_two_sandboxes_do_not_run_at_once(box: Sandbox) -> None:
    with pytest.raises(RuntimeError, match="already running"), Sandbox():
        pass
