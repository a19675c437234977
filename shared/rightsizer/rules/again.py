"""After a failure for want of capacity: the same change once more, later, with the old type as a fallback.

Instance pools are tried in the order of their priority (SageMaker InstancePools), so [new, old] takes what there is and
can never be worse than today. What the approver was asked stays what is done: the new type, or the old one.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from rightsizer.model.change import Change, ChangeState, Course, Entry, FailureClass
from rightsizer.model.option import Option, OptionKind
from rightsizer.model.plan import Plan

WAITS = (timedelta(hours=6), timedelta(hours=24))
"""How long the endpoint is left alone before each further try."""
POOLED = frozenset({OptionKind.INSTANCE_TYPE, OptionKind.TYPE_AND_COUNT})


def again(change: Change, ending: ChangeState, now: datetime) -> Change | None:
    """The change planned anew, or None when it is over. Only a roll-back for want of capacity is tried again.

    The journal keeps what was done, under the number of its try, so that no step of an earlier try counts as done.
    """
    wanted = ending is ChangeState.ROLLED_BACK and change.failure is FailureClass.CAPACITY
    if not wanted or change.tries >= len(WAITS) or change.before is None or change.turned_at is not None:
        return None
    if change.asked_back_by or change.remaining:
        return None
    due, number = now + WAITS[change.tries], change.tries + 1
    option = _pooled(change)
    said = f"try {number} ended for want of capacity; the next is at {due:%Y-%m-%d %H:%M} UTC"
    if option is not change.option:
        said += f", from the pools {' and '.join(option.target.pools)}"
    earlier = tuple(replace(e, step=f"try {number}: {e.step}") for e in change.journal)
    return replace(
        change,
        option=option,
        before=None,
        plan=Plan(),
        state=ChangeState.PLANNED,
        course=Course.FORWARD,
        ending=None,
        journal=(*earlier, Entry(now, "again", "noted", said)),
        next_due=due,
        lease_until=None,
        turn_mark=None,
        failure=FailureClass.NONE,
        reason=None,
        outcome=said,
        looks=0,
        tries=number,
    )


def _pooled(change: Change) -> Option:
    """The option with the old type as its second pool, where one variant alone changes its type."""
    target, before = change.option.target, change.before
    if before is None or len(before.variants) != 1 or target.pools or change.option.kind not in POOLED:
        return change.option
    old = before.variants[0]
    if not old.instance_type or old.count != target.instance_count or old.instance_type == target.instance_type:
        return change.option
    pools = (target.instance_type, old.instance_type)
    return replace(change.option, kind=OptionKind.INSTANCE_POOLS, target=replace(target, pools=pools))
