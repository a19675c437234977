"""Texts of AWS are classified by what is in them; what is unknown is never retried."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.changes.failure import error_detail, failure_of_code, failure_of_reason
from rightsizer.domain.change import FailureClass
from rightsizer.errors import PermissionMissingError, ReadError, RightsizerError, ThrottledError, WriteRefusedError

ICE = (
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error. Please retry using a "
    "different ML instance type or after some time. Consider configuring InstancePools in your EndpointConfig."
)
QUOTA = (
    "The account-level service limit 'ml.g5.xlarge for endpoint usage' is 2 Instances, with current utilization of 2 "
    "Instances and a request delta of 1 Instances."
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (ICE, "capacity"),
        ("The container for production variant AllTraffic did not pass the ping health check.", "health-check"),
        ("CannotStartContainerError. Please ensure the model container starts.", "health-check"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", "memory"),
        ("Alarms rightsizer-c-1-AllTraffic-p95 were in ALARM; the deployment was rolled back.", "alarm"),
        ("The deployment timed out.", "timeout"),
        ("The container did not pass ping.", "health-check"),
        ("The role mapping is not valid", "unknown"),
        ("Stopping the previous deployment failed", "unknown"),
        ("MaximumExecutionTimeoutInSeconds is not valid", "unknown"),
        ("ContainerStartupHealthCheckTimeoutInSeconds must be at least 60", "unknown"),
        (QUOTA, "quota"),
        ("Something that nobody has ever seen", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_failure_reason_has_the_class_of_its_words(text: str, kind: str) -> None:
    assert failure_of_reason(text) is FailureClass(kind)
    assert not failure_of_code("ValidationException", text).again


def test_an_endpoint_in_progress_is_asked_again() -> None:
    assert failure_of_code("ValidationException", 'Cannot update in-progress endpoint "arn:aws:sagemaker:..."').again


@pytest.mark.parametrize(
    "text",
    [
        "The internal load balancer of the model is not supported",
        "Variant internal-search has an invalid weight",
        "The policy says: rate exceeded",
        "You are not authorized by the license of this model package",
    ],
)
def test_words_inside_a_refusal_do_not_make_it_one_to_try_again(text: str) -> None:
    assert not failure_of_code("ValidationException", text).again


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("InternalServiceException", ""),
        ("InternalFailure", "An unknown error"),
        ("ConcurrentUpdateException", "Another update is under way"),
        ("ValidationException", 'Could not find endpoint configuration "arn:aws:sagemaker:..."'),
        ("ObjectNotFoundException", "No scalable target registered for service namespace: sagemaker"),
        ("ValidationException", "User: arn:aws:sts::1:role/x is not authorized to perform: kms:CreateGrant"),
    ],
)
def test_what_may_pass_is_tried_again_by_its_code_or_by_the_text_that_it_begins_with(code: str, text: str) -> None:
    assert failure_of_code(code, text).again


def test_a_quota_is_not_asked_again() -> None:
    found = failure_of_code("ResourceLimitExceeded", QUOTA)
    assert (found.failure, found.again) == (FailureClass.QUOTA, False)


@given(st.text(), st.text())
def test_any_text_is_classified(code: str, text: str) -> None:
    assert failure_of_code(code, text).failure in set(FailureClass)
    assert failure_of_reason(text) in set(FailureClass)


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (WriteRefusedError("w", "ServiceUnavailable", "down"), "again:unanswered:down"),
        (WriteRefusedError("w", "ConcurrentUpdateException", "busy"), "again:unknown:busy"),
        (WriteRefusedError("w", "ValidationException", "no such model"), "refused:unknown:no such model"),
        (WriteRefusedError("w", "ResourceLimitExceeded", QUOTA), f"refused:quota:{QUOTA}"),
        (
            PermissionMissingError("a:B", "w"),
            "again:permission:w: the permission a:B is missing; add it to the role in use",
        ),
        (ThrottledError("slow down"), "again:unknown:slow down"),
        (ReadError("connection lost"), "again:unanswered:connection lost"),
    ],
)
def test_the_journal_says_whether_a_failed_write_was_refused_or_may_have_been_done(
    error: RightsizerError, detail: str
) -> None:
    assert error_detail(error) == detail
