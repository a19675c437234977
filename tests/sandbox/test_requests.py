"""Requests over HTTP are named and read as in process, so that a built function is judged by its own role."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from sandbox.account import Sandbox
from sandbox.doors import Roles
from sandbox.server import serve
from sandbox.template import Template

ACCOUNT, REGION = "111122223333", "eu-west-1"
QUEUE = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/pages"
TAG = {"Key": "rightsizer:change", "Value": "c-1"}
ALARM = {
    "AlarmName": "rightsizer-c-1",
    "Namespace": "AWS/SageMaker",
    "MetricName": "ModelLatency",
    "Statistic": "Average",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 1.0,
    "ComparisonOperator": "GreaterThanThreshold",
    "Tags": [TAG],
}
CALLS: list[tuple[str, str, Mapping[str, Any]]] = [
    ("sagemaker", "DescribeEndpoint", {"EndpointName": "chat"}),
    ("dynamodb", "GetItem", {"TableName": "t", "Key": {"pk": {"S": "ENDPOINT#chat"}}}),
    ("sqs", "SendMessage", {"QueueUrl": QUEUE, "MessageBody": "{}"}),
    ("sns", "Publish", {"TopicArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:t", "Message": "hello"}),
    ("cloudwatch", "PutMetricAlarm", ALARM),
    ("autoscaling", "DescribeAutoScalingGroups", {"AutoScalingGroupNames": ["gpu"]}),
    ("ec2", "DescribeInstances", {"InstanceIds": ["i-1"]}),
    ("s3", "PutObject", {"Bucket": "reports", "Key": "pages/a b.html"}),
    ("s3", "GetObject", {"Bucket": "reports", "Key": "pages/a b.html"}),
    ("s3", "ListObjectsV2", {"Bucket": "weights", "Prefix": "llama/"}),
    ("savingsplans", "DescribeSavingsPlans", {"states": ["active"]}),
    ("secretsmanager", "GetSecretValue", {"SecretId": "slack"}),
]


@pytest.fixture
def url(box: Sandbox) -> Iterator[str]:
    with serve(box) as address:
        yield address


def ask(url: str, service: str, operation: str, params: Mapping[str, Any]) -> None:
    """Send the request; what the account answers is another test's matter."""
    config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    client: Any = boto3.Session(region_name=REGION).client(service, endpoint_url=url, config=config)  # type: ignore[call-overload]
    call: Callable[..., Any] = getattr(client, {v: k for k, v in client.meta.method_to_api_mapping.items()}[operation])
    try:
        call(**params)
    except ClientError:
        return


@pytest.mark.parametrize(("service", "operation", "params"), CALLS, ids=[f"{row[0]}:{row[1]}" for row in CALLS])
def test_a_request_over_http_has_the_name_and_the_parameters_of_the_call(
    box: Sandbox, url: str, service: str, operation: str, params: Mapping[str, Any]
) -> None:
    ask(url, service, operation, params)
    call = box.calls[-1]
    assert call.action == f"{service}:{operation}"
    assert {key: call.params.get(key) for key in params} == dict(params)


ROLE = """
Globals: {Function: {Handler: app.lambda_handler}}
Resources:
  Propose:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/propose/
      Policies:
        - Statement: [{Effect: Allow, Action: "s3:PutObject", Resource: "arn:aws:s3:::reports/pages/*"}]
        - Statement: [{Effect: Allow, Action: "ecr:BatchGetImage", Resource: "arn:aws:ecr:eu-west-1:*:repository/*"}]
"""


@pytest.mark.parametrize(
    ("service", "operation", "params", "allowed"),
    [
        ("s3", "PutObject", {"Bucket": "reports", "Key": "pages/a.html"}, True),
        ("s3", "PutObject", {"Bucket": "reports", "Key": "reports/a.html"}, False),
        ("s3", "GetObject", {"Bucket": "reports", "Key": "pages/a.html"}, False),
        ("sns", "Publish", {"TopicArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:t", "Message": "hello"}, False),
        ("ecr", "BatchGetImage", {"repositoryName": "chat", "imageIds": [{"imageTag": "1"}]}, True),
    ],
)
def test_a_request_over_http_is_judged_by_the_role_of_the_door(
    box: Sandbox, url: str, service: str, operation: str, params: Mapping[str, Any], allowed: bool
) -> None:
    with Roles(box, Template(ROLE, {}, {})).assumed("propose"):
        ask(url, service, operation, params)
    assert (box.calls[-1].error != "AccessDeniedException") == allowed
