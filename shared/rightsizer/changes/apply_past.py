"""A change that ended, as the next decision and the report are to know it."""

from datetime import datetime
from decimal import Decimal
from typing import Literal

from rightsizer.changes.apply_class import given_up, lesson
from rightsizer.changes.measurement import taught
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.history import PastChange
from rightsizer.domain.option import ORDERED

type Ended = Literal["proven", "applied", "rolled-back", "update-failed", "handed-over", "tested", "running"]


def past_of(change: Change, catalogue: Catalogue, now: datetime) -> PastChange | None:
    """What the change promised and what was measured; None where it teaches nothing about the hardware.

    A refusal changed nothing, a deletion has no other type, and what was given up before it served tells nothing.
    """
    if change.before is None or change.plan.kind == "delete" or change.state is ChangeState.REFUSED:
        return None
    if given_up(change):
        return None
    old = next((v for v in change.before.variants if v.name == change.variant), change.before.variants[0])
    ended = _ended(change)
    promise = change.option.promise
    past = PastChange(
        at=now,
        from_type=old.instance_type,
        to_type=change.option.target.instance_type,
        from_count=old.count,
        to_count=change.option.target.instance_count,
        ended=ended,
        failure=lesson(change, ended),
        models=change.models if len(change.before.variants) == 1 else (),
        promised_slowdown=promise.slowdown if promise else None,
        promised_bound=promise.bound if promise else None,
        stated_risk=_risk(change),
        demand=promise.peak_busy_gpus if promise else None,
        framework=promise.framework if promise else "",
        from_routing=change.before.routing,
        usd=change.once_usd if ended == "tested" else Decimal(0),
        back_for=change.back_for.value,
        restores=change.option.restores,
    )
    return taught(past, change, catalogue)


def _risk(change: Change) -> int | None:
    """The risk that users were told; None where it was none of theirs (a shadow), a way back, or a person's order."""
    silent = change.plan.kind == "shadow-test" or change.option.restores or change.option.kind in ORDERED
    return None if silent else int(change.option.risk)


def _ended(change: Change) -> Ended:
    test = change.plan.kind == "shadow-test"
    if change.state in (ChangeState.PROVEN, ChangeState.APPLIED):
        stands: Ended = "proven" if change.state is ChangeState.PROVEN else "applied"
        return "tested" if test else stands
    if test and change.turned_at is not None:
        return "tested"
    if change.state is ChangeState.ROLLED_BACK:
        return "rolled-back" if change.turned_at is not None else "update-failed"
    return "handed-over"
