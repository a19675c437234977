"""Classify why a change did not stand, and what comes next.

The texts are SageMaker's FailureReason values and ValidationException messages as users quoted them; they are matched
as phrases of whole words, and an unknown text is UNKNOWN: rejected, not retried, proposed only.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from rightsizer.model.change import FailureClass

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
_AGAIN = (
    "cannot update in-progress endpoint",
    "could not find endpoint configuration",
    "request to service failed",
    "rate exceeded",
    "concurrentupdateexception",
    "no scalable target registered",
    "serviceunavailable",
    "internal",
)


def classify(text: str) -> Failure:
    """What a FailureReason means. Total: an unknown text is UNKNOWN and never retried."""
    low = text.lower()
    for words, failure in _TEXTS:
        if any(re.search(rf"\b{word}\b", low) for word in words):
            return failure
    return Failure(FailureClass.UNKNOWN, "propose-only", False, timedelta(days=30))


def refusal(code: str, text: str) -> Failure:
    """What a refused call means. `code` and `text` are AWS's own."""
    low = f"{code} {text}".lower()
    if "accessdenied" in low or "not authorized" in low:
        return Failure(FailureClass.PERMISSION, "restore-permission", True)
    if any(word in low for word in _AGAIN):
        return Failure(FailureClass.UNKNOWN, "retry-later", True)
    return classify(low)
