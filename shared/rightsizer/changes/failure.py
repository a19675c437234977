"""Classify why a change did not stand, and what comes next.

The texts are SageMaker's FailureReason values and ValidationException messages as users quoted them; they are matched
as phrases of whole words, and an unknown text is UNKNOWN: rejected, not retried, proposed only.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from rightsizer.domain.change import FailureClass

type Next = Literal["retry-later", "next-option", "blacklist", "propose-only", "ask-quota", "restore-permission"]


@dataclass(frozen=True, slots=True)
class Failure:
    """What a text means."""

    failure: FailureClass
    next: Next
    again: bool
    """Whether the very same call may succeed if it is repeated soon."""
    wait: timedelta = timedelta(0)
    """How long to leave the endpoint alone before the next try."""


_TEXTS: tuple[tuple[tuple[str, ...], Failure], ...] = (
    (
        ("insufficientinstancecapacity", "insufficient capacity", "capacityerror", "unable to provision"),
        Failure(FailureClass.CAPACITY, "next-option", False, timedelta(hours=6)),
    ),
    (
        ("ping health check", "pass ping", "health check", "cannotstartcontainererror", "container failed"),
        Failure(FailureClass.HEALTH_CHECK, "blacklist", False, timedelta(days=30)),
    ),
    (
        ("out of memory", "outofmemory", "cuda out of memory"),
        Failure(FailureClass.MEMORY, "blacklist", False, timedelta(days=30)),
    ),
    (
        ("alarm", "alarms"),
        Failure(FailureClass.ALARM, "propose-only", False, timedelta(days=30)),
    ),
    (
        ("timed out", "timeout", "execution time exceeded", "exceeded the maximum execution time"),
        Failure(FailureClass.TIMEOUT, "retry-later", False, timedelta(hours=24)),
    ),
    (
        ("service limit", "resourcelimitexceeded", "quota"),
        Failure(FailureClass.QUOTA, "ask-quota", False, timedelta(days=1)),
    ),
)
_AGAIN_CODES = frozenset(
    {
        "ConcurrentUpdateException",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServiceError",
        "InternalServiceException",
        "InternalServiceFault",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    }
)
"""Common errors of SageMaker and CloudWatch, and those of Application Auto Scaling, that speak of AWS alone."""
_AGAIN = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        r"cannot update in-progress endpoint\b",
        r"could not find endpoint configuration\b",
        r"request to service failed\b",
        r"rate exceeded\b",
        r"no scalable target registered\b",
    )
)
"""How a message begins that another try may not meet: words inside a refusal say nothing."""
_NOT_ALLOWED = re.compile(r"\bis not authorized to perform\b", re.IGNORECASE)
"""IAM's phrase, which SageMaker hands on inside a ValidationException."""


def classify(text: str) -> Failure:
    """What a FailureReason means. Total: an unknown text is UNKNOWN and never retried."""
    low = text.lower()
    for words, failure in _TEXTS:
        if any(re.search(rf"\b{word}\b", low) for word in words):
            return failure
    return Failure(FailureClass.UNKNOWN, "propose-only", False, timedelta(days=30))


def refusal(code: str, text: str) -> Failure:
    """What a refused call means. `code` and `text` are AWS's own."""
    if code.startswith("AccessDenied") or _NOT_ALLOWED.search(text):
        return Failure(FailureClass.PERMISSION, "restore-permission", True)
    if code in _AGAIN_CODES or any(known.match(text) for known in _AGAIN):
        return Failure(FailureClass.UNKNOWN, "retry-later", True)
    return classify(f"{code} {text}")
