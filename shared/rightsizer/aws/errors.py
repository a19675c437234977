"""AWS's refusals as our own errors: one error type for each remedy of a caller."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)

from rightsizer.domain.reason import one_line
from rightsizer.errors import (
    PermissionMissingError,
    ReadError,
    RightsizerError,
    ThrottledError,
    VanishedError,
    WriteRefusedError,
)

TRIES = 4
"""How often a conditional write is tried again when somebody else wrote in between."""
LONGEST_TEXT = 1024
"""Characters of an error message of AWS, which may quote what was sent."""

DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "AuthorizationErrorException",
        "UnauthorizedOperation",
        "NotAuthorized",
        "403",
    }
)
THROTTLED = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "429",
    }
)
GONE = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "NoSuchEntity",
        "NoSuchKey",
        "NotFound",
        "NotFoundException",
        "QueueDoesNotExist",
        "ResourceNotFound",
        "ResourceNotFoundException",
        "TableNotFoundException",
    }
)
DELETED = "it was deleted: `rightsizer doctor --deployed`, in the same Region, says how to get it back"
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId"})
SKEWED = frozenset({"RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"})
"""The request was signed at another time than AWS's. Sources: S3 API reference, "Error responses"; EC2 API reference,
"Error codes"; other services say it in the text of a wrong signature (IAM guide, "Troubleshoot signed requests")."""
SKEWED_TEXT = ("signature expired", "signature not yet current")
GONE_TEXT = ("could not find", "does not exist", "not found")
"""SageMaker answers ValidationException with `Could not find endpoint "..."` where others have a code."""


@contextmanager
def translate_read_errors(action: str, purpose: str) -> Iterator[None]:
    """Run one read; AWS's refusals come out as our own errors. `action` is the IAM action, `purpose` what for."""
    try:
        yield
    except ClientError as error:
        raise translate(error, action, purpose) from error
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise ReadError(f"{purpose}: {error}; run `aws configure`, or name a profile") from error
    except BotoCoreError as error:
        raise ReadError(f"{purpose}: {error}") from error


@contextmanager
def translate_write_errors(action: str, doing: str) -> Iterator[None]:
    """Run one write; AWS's refusals come out as our own errors. `action` is the IAM action, `doing` what is done."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise write_error(error, action, doing) from error


def write_error(error: ClientError | BotoCoreError, action: str, doing: str) -> RightsizerError:
    """The error of a failed write that says what to do about it."""
    if not isinstance(error, ClientError):
        return WriteRefusedError(doing, type(error).__name__, one_line(str(error)))
    code, text = code_of(error), text_of(error)
    if code in DENIED | THROTTLED:
        return translate(error, action, doing)
    return WriteRefusedError(doing, code, f"{text}; {DELETED}" if code in GONE | {"NoSuchBucket"} else text)


def translate(error: ClientError, action: str, purpose: str) -> ReadError:
    """The error of a failed read that says what to do about it."""
    code, text = code_of(error), text_of(error)
    if code in DENIED:
        return PermissionMissingError(action, purpose, text)
    if code in THROTTLED or "rate exceeded" in text.lower():
        return ThrottledError(f"{purpose}: AWS throttles {action} ({code}); try again later")
    if code in SKEWED or any(part in text.lower() for part in SKEWED_TEXT):
        cause = "the clock of this machine differs from AWS's; set the time and try again"
        return ReadError(f"{purpose}: AWS refuses the time of the request ({code}: {text}); {cause}")
    if code in GONE or (code.startswith("Validation") and any(part in text.lower() for part in GONE_TEXT)):
        return VanishedError(f"{purpose}: it no longer exists ({text})")
    if code in EXPIRED:
        return ReadError(f"{purpose}: the AWS credentials are expired or invalid ({code}); sign in again")
    return ReadError(f"{purpose}: {action} failed with {code}: {text}")


def is_transient(error: ClientError | BotoCoreError) -> bool:
    """Whether the same question may be answered later: AWS throttles, fails itself (HTTP 5xx), or gave no answer."""
    if not isinstance(error, ClientError):
        return isinstance(error, HTTPClientError)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return code_of(error) in THROTTLED or status >= 500 or "rate exceeded" in text_of(error).lower()


def raise_transient(error: ClientError | BotoCoreError, action: str, purpose: str) -> None:
    """Raise ReadError where a later answer may be another; do nothing where "nobody could ask" is the answer."""
    if isinstance(error, ClientError) and is_transient(error):
        raise translate(error, action, purpose) from error
    if is_transient(error):
        raise ReadError(f"{purpose}: {error}") from error


def code_of(error: ClientError) -> str:
    """AWS's error code; empty when the answer has none."""
    return one_line(str(error.response.get("Error", {}).get("Code", "")), 100)


def text_of(error: ClientError) -> str:
    """AWS's message."""
    return one_line(str(error.response.get("Error", {}).get("Message", "")), LONGEST_TEXT)
