"""After a failure for want of capacity: the next option, or the same change later with the old type as a fallback.

In automatic mode the next option is one of the same judgement that passed the same gate. Instance pools are tried in
the order of their priority (SageMaker InstancePools), so [new, old] takes what there is and can never be worse than
today. What an approver was asked stays what is done: the new type, or the old one.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.plan import Plan
from rightsizer.domain.reason import Code, Reason

WAITS = (timedelta(hours=6), timedelta(hours=24))
"""How long the endpoint is left alone before each further try."""
ELSEWHERE = timedelta(hours=1)
"""The same where the next try is for another type, whose capacity the lack says nothing about."""
POOLED = frozenset({OptionKind.INSTANCE_TYPE, OptionKind.TYPE_AND_COUNT, OptionKind.FEWER_GPUS})


def again(change: Change, ending: ChangeState, now: datetime, ranking: Sequence[Option] = ()) -> Change | None:
    """The change planned anew, or None when it is over. Only a roll-back for want of capacity is tried again.

    `ranking` are the options that may stand in, the chosen one first; () where a person approved that one alone.

    The journal keeps what was done, under the number of its try, so that no step of an earlier try counts as done.
    """
    wanted = ending is ChangeState.ROLLED_BACK and change.failure is FailureClass.CAPACITY
    if not wanted or change.tries >= len(WAITS) or change.before is None or change.turned_at is not None:
        return None
    if change.asked_back_by or change.remaining:
        return None
    behind = _behind(change, ranking)
    option, number = behind or _pooled(change), change.tries + 1
    due = now + (ELSEWHERE if behind else WAITS[change.tries])
    said = f"try {number} ended for want of capacity; the next is at {due:%Y-%m-%d %H:%M} UTC"
    if behind is not None:
        said += f", with the next option, {option.target.instance_count} x {option.target.instance_type}"
    elif option is not change.option:
        said += f", from the pools {' and '.join(option.target.pools)}"
    earlier = tuple(replace(e, step=f"try {number}: {e.step}") for e in change.journal)
    return replace(
        change,
        option=option,
        saving_usd_per_month=option.saving_usd_per_month if behind else change.saving_usd_per_month,
        before=None,
        plan=Plan(),
        state=ChangeState.PLANNED,
        course=Course.FORWARD,
        ending=None,
        journal=(*earlier, Entry(now, "again", "noted", said)),
        next_due=due,
        not_before=due,
        lease_until=None,
        turn_mark=None,
        failure=FailureClass.NONE,
        reason=None,
        outcome=said,
        looks=0,
        tries=number,
    )


def _behind(change: Change, ranking: Sequence[Option]) -> Option | None:
    """The next option of another type that may stand in; None once the pools were tried."""
    if change.option.kind not in POOLED or change.before is None:
        return None
    names = [o.target.instance_type for o in ranking]
    here = change.option.target.instance_type
    old = {v.instance_type for v in change.before.variants}
    later = ranking[names.index(here) + 1 :] if here in names else ()
    free = (o for o in later if o.by_itself and o.in_place and o.kind in POOLED)
    return next((o for o in free if o.target.instance_type not in {here, *old}), None)


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


def instead(change: Change, chosen: Option | None, reasons: Sequence[Reason], now: datetime) -> Change | None:
    """The chosen type again, where the option that stood in for it cannot be had at all; None where none stood in.

    Only for refusals that speak about the type (its quota, where it is offered): nothing else is planned around.
    """
    own = {Code.NO_QUOTA, Code.NOT_SOLD}
    if not change.tries or not change.option.by_itself or chosen is None or not {r.code for r in reasons} <= own:
        return None
    due = now + WAITS[min(change.tries, len(WAITS)) - 1]
    kind = chosen.target.instance_type
    said = f"{reasons[0].sentence}; {kind} is tried again at {due:%Y-%m-%d %H:%M} UTC"
    return replace(
        change,
        option=chosen,
        saving_usd_per_month=chosen.saving_usd_per_month,
        journal=(*change.journal, Entry(now, "again", "noted", said)),
        next_due=due,
        not_before=due,
        lease_until=None,
        outcome=said,
    )
