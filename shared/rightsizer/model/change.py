"""A change of an endpoint as a journal of small steps, each written before it is done."""

from enum import StrEnum


class ChangeState(StrEnum):
    """Where a change stands as a whole; what reports and messages show."""

    PLANNED = "planned"
    RUNNING = "running"
    APPLIED = "applied"
    """The endpoint runs what was asked, but has not served enough requests to call it proven."""
    PROVEN = "proven"
    RETURNING = "returning"
    """The way back is being walked."""
    ROLLED_BACK = "rolled-back"
    HANDED_OVER = "handed-over"
    REFUSED = "refused"
    """Preflight said no; nothing was written to AWS."""
