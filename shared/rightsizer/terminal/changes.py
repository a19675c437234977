"""Changes as `--json` prints them."""

from typing import Any

from rightsizer.changes.reconcile import left_open
from rightsizer.domain.capacity_change import Errand
from rightsizer.domain.change import Change


def left(one: Change, hard: bool) -> dict[str, Any]:
    """An open change; after a hard freeze with the lines that would bring its endpoint back."""
    shown = of_change(one) or {}
    return shown | ({"remaining": list(left_open(one))} if hard else {})


def errand_left(one: Errand, hard: bool) -> dict[str, Any]:
    """An open errand; after a hard freeze with the line that would bring the old policy back."""
    return {
        "id": one.id,
        "subject": one.subject,
        "state": one.state.value,
        "outcome": one.outcome,
        "remaining": [one.back_line] if hard and one.back_line else [],
        "next_due": one.next_due.isoformat() if one.next_due else None,
    }


def of_change(one: Change | None) -> dict[str, Any] | None:
    """A change with its journal; None where there is none."""
    if one is None:
        return None
    return {
        "id": one.id,
        "endpoint": one.ref.name,
        "state": one.state.value,
        "outcome": one.outcome,
        "remaining": list(one.remaining),
        "next_due": one.next_due.isoformat() if one.next_due else None,
        "restore": list(one.plan.restore_file),
        "journal": [
            {"at": e.at.isoformat(), "step": e.step, "status": e.status, "detail": e.detail} for e in one.journal
        ],
    }
