"""The same account over HTTP: the answers in process and on loopback are the same."""

import json
import math
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from sandbox.__main__ import welcome
from sandbox.account import Sandbox
from sandbox.history import ASLEEP
from sandbox.server import serve


@pytest.fixture
def url(box: Sandbox) -> Iterator[str]:
    box.add_endpoint("chat", "ml.g5.xlarge", tags={"owner": "nlp"})
    box.put_series("chat", "AllTraffic", "GPUUtilization", box.clock.now - timedelta(hours=2), 60, [10.0] * 120)
    with serve(box) as address:
        yield address


def client(url: str, service: str, region: str = "eu-west-1") -> Any:
    config = Config(retries={"total_max_attempts": 1})
    return boto3.Session(region_name=region).client(service, endpoint_url=url, config=config)  # type: ignore[call-overload]


def test_a_client_elsewhere_sees_the_account(box: Sandbox, url: str) -> None:
    assert client(url, "sagemaker").describe_endpoint(EndpointName="chat")["EndpointStatus"] == "InService"
    metric = {
        "Namespace": "/aws/sagemaker/Endpoints",
        "MetricName": "GPUUtilization",
        "Dimensions": [{"Name": "EndpointName", "Value": "chat"}, {"Name": "VariantName", "Value": "AllTraffic"}],
    }
    query = {"Id": "q", "MetricStat": {"Metric": metric, "Period": 3600, "Stat": "Average"}}
    answer = client(url, "cloudwatch").get_metric_data(
        MetricDataQueries=[query], StartTime=box.clock.now - timedelta(hours=2), EndTime=box.clock.now
    )
    assert answer["MetricDataResults"][0]["Values"] == [10.0, 10.0]
    products = client(url, "pricing", "us-east-1").get_products(ServiceCode="AmazonSageMaker", MaxResults=1)
    assert json.loads(products["PriceList"][0])["serviceCode"] == "AmazonSageMaker"
    assert client(url, "savingsplans", "us-east-1").describe_savings_plans()["savingsPlans"] == []
    assert (
        client(url, "application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")[
            "ScalableTargets"
        ]
        == []
    )
    client(url, "dynamodb").list_tables()
    actions = [call.action for call in box.calls]
    assert actions[:3] == ["sagemaker:DescribeEndpoint", "cloudwatch:GetMetricData", "pricing:GetProducts"]
    assert "application-autoscaling:DescribeScalableTargets" in actions


def test_refusals_and_faults_arrive_as_aws_errors(box: Sandbox, url: str) -> None:
    with pytest.raises(ClientError, match="Could not find endpoint"):
        client(url, "sagemaker").describe_endpoint(EndpointName="nope")
    assert box.calls[-1].error == "ValidationException"
    box.gate.fail("cloudwatch", "*", "AccessDeniedException", "no", times=math.inf)
    with pytest.raises(ClientError, match="AccessDeniedException"):
        client(url, "cloudwatch").describe_alarms()
    with pytest.raises(ClientError, match="NotSimulated"):
        client(url, "sagemaker").list_workteams()


def test_time_can_be_moved_over_http(box: Sandbox, url: str) -> None:
    before = box.clock.now
    with urllib.request.urlopen(urllib.request.Request(f"{url}/sandbox/advance?seconds=90", method="POST")) as answer:
        assert json.load(answer)["now"] == (before + timedelta(seconds=90)).isoformat()


@pytest.mark.parametrize(
    ("service", "operation", "request_", "code"),
    [
        ("sns", "publish", {"TopicArn": "t", "PhoneNumber": "1", "Message": "m"}, "InvalidParameter"),
        ("autoscaling", "terminate_instance_in_auto_scaling_group",
         {"InstanceIds": ["i-1"], "ShouldDecrementDesiredCapacity": False}, "ValidationError"),
        ("dynamodb", "put_item", {"TableName": "t", "Item": {"pk": {"S": "a"}}, "ReturnValues": "ALL_NEW"},
         "ValidationException"),
        ("resourcegroupstaggingapi", "get_resources", {"ResourceARNList": ["a"], "PaginationToken": ""},
         "InvalidParameterException"),
    ],
    ids=["query", "query with lists", "moto's JSON", "our JSON"],
)  # fmt: skip
def test_the_server_is_as_strict_as_the_process(
    url: str, service: str, operation: str, request_: dict[str, Any], code: str
) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(client(url, service), operation)(**request_)
    assert refused.value.response["Error"]["Code"] == code
    assert "Not allowed" in refused.value.response["Error"]["Message"]


def test_each_answer_has_one_date_and_it_is_the_accounts(box: Sandbox, url: str) -> None:
    box.clock.advance(timedelta(days=2))
    answer = client(url, "sts").get_caller_identity()
    assert answer["ResponseMetadata"]["HTTPHeaders"]["date"] == "Wed, 04 Nov 2026 09:00:00 GMT"
    with urllib.request.urlopen(f"{url}/sandbox/clock") as own:
        assert own.headers.get_all("date") == ["Wed, 04 Nov 2026 09:00:00 GMT"]


def test_the_welcome_counts_what_runs_and_names_what_sleeps(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.add_endpoint(ASLEEP)
    box.add_endpoint("chat")
    welcome(box, "http://127.0.0.1:1", ["slack"], 18.4)
    assert "# 2 endpoints in eu-west-1, ready after 18 s." in capsys.readouterr().out
    del box.world.fleet.endpoints[ASLEEP]
    welcome(box, "http://127.0.0.1:1", ["slack"], 18.4)
    said = f"# 1 endpoints and {ASLEEP}, asleep by its office hours, in eu-west-1, ready after 18 s."
    assert said in capsys.readouterr().out
