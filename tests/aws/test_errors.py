"""AWS's refusals become errors that say what to do."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from rightsizer.aws.errors import DELETED, reason_of, translate_read_errors
from rightsizer.aws.journal import TableJournal
from rightsizer.aws.messaging import SqsPages
from rightsizer.aws.s3 import BucketReports
from rightsizer.aws.table import Table
from rightsizer.channels.sns import Topic
from rightsizer.domain.message import Notice
from rightsizer.domain.policy import Switch
from rightsizer.domain.reason import Code
from rightsizer.domain.trigger import LookBeyond, LookReason
from rightsizer.errors import (
    PermissionMissingError,
    ReadError,
    RightsizerError,
    ThrottledError,
    VanishedError,
    WriteRefusedError,
)


def refuse(code: str, text: str) -> ReadError:
    with pytest.raises(ReadError) as caught, translate_read_errors("sagemaker:DescribeEndpoint", "describing bert"):
        raise ClientError({"Error": {"Code": code, "Message": text}}, "DescribeEndpoint")
    return caught.value


def test_a_denied_call_names_the_permission_and_what_it_is_for() -> None:
    error = refuse("AccessDeniedException", "User is not authorized")
    assert isinstance(error, PermissionMissingError)
    assert error.action == "sagemaker:DescribeEndpoint"
    assert "describing bert: the permission sagemaker:DescribeEndpoint is missing" in str(error)
    assert reason_of(error).code is Code.PERMISSION_MISSING


def test_sagemaker_says_not_found_with_a_validation_error() -> None:
    error = refuse("ValidationException", 'Could not find endpoint "bert".')
    assert isinstance(error, VanishedError)
    assert reason_of(error).code is Code.VANISHED


def test_another_validation_error_is_not_a_vanished_thing() -> None:
    assert type(refuse("ValidationException", "1 validation error detected")) is ReadError


@pytest.mark.parametrize(("code", "text"), [("ThrottlingException", "slow down"), ("Odd", "Rate exceeded")])
def test_throttling_is_told_apart(code: str, text: str) -> None:
    error = refuse(code, text)
    assert isinstance(error, ThrottledError)
    assert reason_of(error).code is Code.THROTTLED


def test_expired_credentials_ask_to_sign_in_again() -> None:
    assert "sign in again" in str(refuse("ExpiredTokenException", "The security token included is expired"))


def test_missing_credentials_and_a_dead_network_are_read_errors() -> None:
    with pytest.raises(ReadError, match="aws configure"), translate_read_errors("a:B", "looking"):
        raise NoCredentialsError
    with pytest.raises(ReadError, match="looking"), translate_read_errors("a:B", "looking"):
        raise EndpointConnectionError(endpoint_url="https://sagemaker.eu-west-1.amazonaws.com")


NOW = datetime(2026, 11, 1, tzinfo=UTC)
type Write = Callable[[Any], object]
WRITES: dict[str, tuple[str, Write]] = {
    "sqs:SendMessage": (
        "https://sqs/q",
        lambda client: SqsPages(client, "https://sqs/q").send_look(
            LookBeyond("group", ("g",), LookReason.SWEEP, NOW, "k")
        ),
    ),
    "sns:Publish": ("arn:topic", lambda client: Topic(client, "arn:topic").post(Notice("a", "b"))),
    "s3:PutObject": ("bucket b", lambda client: BucketReports(client, "b").put("reports/a", b"", "text/html")),
    "dynamodb:PutItem": ("table t", lambda client: Table(client, "t").put({"pk": "a", "sk": "b"})),
    "dynamodb:PutItem of the switch": ("table t", lambda client: TableJournal(client, "t").set_switch(Switch(True))),
}
"""By IAM action: what the error names, and a write."""


def write_error_of(action: str, error: Exception) -> RightsizerError:
    """The error of ours that a write raises where AWS answers with `error`."""
    client = Mock()
    client.get_item.return_value = {}
    for method in ("send_message", "publish", "put_object", "put_item"):
        getattr(client, method).side_effect = error
    with pytest.raises(RightsizerError) as caught:
        WRITES[action][1](client)
    assert WRITES[action][0] in str(caught.value), "the thing is named"
    return caught.value


@pytest.mark.parametrize("action", WRITES)
def test_a_write_that_iam_denies_names_the_permission(action: str) -> None:
    error = write_error_of(action, ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Put"))
    assert isinstance(error, PermissionMissingError)
    assert f"the permission {action.partition(' ')[0]} is missing; add it to the role in use" in str(error)


@pytest.mark.parametrize("action", WRITES)
def test_a_write_that_aws_throttles_says_that_it_may_be_tried_again(action: str) -> None:
    error = write_error_of(action, ClientError({"Error": {"Code": "ThrottlingException", "Message": "no"}}, "Put"))
    assert isinstance(error, ThrottledError)


@pytest.mark.parametrize("action", WRITES)
def test_a_write_without_a_network_is_an_error_of_ours(action: str) -> None:
    error = write_error_of(action, EndpointConnectionError(endpoint_url="https://example.com"))
    assert isinstance(error, WriteRefusedError)
    assert error.code == "EndpointConnectionError"


def test_a_queue_that_was_deleted_is_told_with_its_remedy() -> None:
    gone = ClientError({"Error": {"Code": "QueueDoesNotExist", "Message": "no queue"}}, "SendMessage")
    error = write_error_of("sqs:SendMessage", gone)
    assert str(error) == f"sending a page to https://sqs/q: QueueDoesNotExist: no queue; {DELETED}"
