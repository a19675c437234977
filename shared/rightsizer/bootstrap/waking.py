"""What a click on Wake does, on the path of `respond`: it loads nothing of this before such a click."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from rightsizer.bootstrap import settings
from rightsizer.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from rightsizer.aws.table import Table
    from rightsizer.domain.policy_document import PolicyDocument

ENDPOINT = re.compile(r"[A-Za-z0-9](-*[A-Za-z0-9]){0,62}")
"""SageMaker API Reference, CreateEndpoint, EndpointName."""
LEAST, MOST = timedelta(minutes=15), timedelta(hours=72)
"""As the event that wakes an endpoint may ask."""
TAGGED = "tagged"


def wake_by_click(
    table: Table, document: Callable[[], PolicyDocument], name: str, stay: timedelta, user: str, at: datetime
) -> str:
    """Leave the order of a Slack user for the next tick; what the person is told.

    ConflictError, with the reason and what to do, where the order is not taken; NotApproverError.
    """
    from rightsizer.aws.wake_requests import WakeRequests
    from rightsizer.bootstrap.deciders import require_of_list
    from rightsizer.domain.message import wake_command
    from rightsizer.domain.plan import terminal_command
    from rightsizer.domain.policy_document import Subject, effective_approvers, effective_limits
    from rightsizer.domain.proposal import DecidedBy, DecisionSource
    from rightsizer.flows.wake import WakeOrders, wake_text

    known, nothing = settings(), "nothing was recorded"
    if known.may_stop != TAGGED:
        text = f"{nothing}: the stack has MayStop=nothing, so no function would wake {name[:80]!r}"
        raise ConflictError(f"{text}; deploy it with MayStop=tagged, or ask whoever runs rightsizer")
    if not ENDPOINT.fullmatch(name) or not LEAST <= stay <= MOST:
        raise ConflictError(f"{nothing}: the button names no endpoint and stay; press one of a newer message")
    book, by = WakeRequests(table), DecidedBy(DecisionSource.SLACK, user).text
    record = book.load(name)
    if record is None:
        text = f"{nothing}: the office hours never stopped an endpoint {name}"
        raise ConflictError(f"{text}; {terminal_command('doctor', table.region)} lists what is asleep")
    policy = document()
    if policy:
        subject = policy.subject(name, book.tags(name), record.owner)
        require_of_list(effective_approvers(known.limits.approvers, policy, subject), by, approves=False)
    limits = effective_limits(known.limits, policy, Subject()).hours
    answer = WakeOrders(book, limits, book.switch).wake(name, stay, by, at)
    said = wake_text(answer, limits)
    if answer.by_hand or answer.times is None:
        hand = (
            f" The commands by hand: {wake_command(name, record.ref.region)} at a terminal." if answer.by_hand else ""
        )
        raise ConflictError(f"{said.removesuffix('.')}.{hand}".removesuffix("."))
    return said if not answer.is_recorded else f"{said} The message here follows it."
