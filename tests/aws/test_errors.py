"""AWS's refusals become errors that say what to do."""

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from rightsizer.aws.errors import reason_of, translate_read_errors
from rightsizer.domain.reason import Code
from rightsizer.errors import PermissionMissingError, ReadError, ThrottledError, VanishedError


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
