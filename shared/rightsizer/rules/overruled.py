"""Whether the newest judgement of an endpoint still allows what was approved before it."""

from collections.abc import Iterable

from rightsizer.model.option import ORDERED, Option, OptionKind, Target
from rightsizer.model.reason import Code, Reason
from rightsizer.model.recommendation import Finding, Recommendation

FLEETS = frozenset(
    {
        OptionKind.INSTANCE_TYPE,
        OptionKind.INSTANCE_COUNT,
        OptionKind.TYPE_AND_COUNT,
        OptionKind.INSTANCE_POOLS,
        OptionKind.SCHEDULE,
    }
)
"""Options that say how many instances of which type serve, so that one can be held against another."""


def overruled(option: Option, decided: Recommendation, newest: Recommendation | None) -> Reason | None:
    """Why the newest judgement forbids the option that was approved on `decided`; None where it allows it.

    It allows the target where it needs no more capacity of it than the target gives. What brings room back is always
    allowed, and so is what a person ordered, of which no evaluation speaks. Missing data forbids nothing.
    """
    if newest is None or newest.evaluated_at <= decided.evaluated_at or option.restores or option.kind in ORDERED:
        return None
    when = f"the judgement of {newest.evaluated_at:%Y-%m-%d %H:%M} UTC"
    if newest.finding is Finding.NOT_ENOUGH_DATA:
        return None
    if newest.finding is Finding.UNDER_PROVISIONED:
        return _no(f"{when} finds the endpoint under-provisioned: {newest.reason.sentence}")
    if option.kind is OptionKind.DELETE:
        return (
            None if newest.finding is Finding.IDLE else _no(f"{when} does not find it idle: {newest.reason.sentence}")
        )
    if newest.finding is Finding.IDLE:
        return None  # nobody calls it, so that no target is too small
    wanted = option.target.instance_type
    out = next((e for e in newest.excluded if e.dimension is None and e.instance_type == wanted), None)
    if out is not None:
        return _no(f"{when} rules {wanted} out: {out.reason.sentence}")
    return _capacity(option, newest, when)


def _capacity(option: Option, newest: Recommendation, when: str) -> Reason | None:
    target = option.target
    alike = [o for o in newest.options if o.target.instance_type == target.instance_type and _alike(o, option)]
    if any(_within(o.target, target) for o in alike):
        return None
    if alike:
        needs, gives = _said(alike[0].target), _said(target)
        return _no(f"{when} needs {needs} of {target.instance_type}, and {gives} was approved")
    what = f"{target.instance_count} x {target.instance_type} ({option.kind.value})"
    return _no(f"{when} no longer lists {what} among what serves: {newest.reason.sentence}")


def _alike(one: Option, other: Option) -> bool:
    return one.kind is other.kind or {one.kind, other.kind} <= FLEETS


def _within(needed: Target, given: Target) -> bool:
    """Whether what is needed is no more than what is given, at each hour and in each bound that both have."""
    bounds = ((needed.minimum, given.minimum), (needed.maximum, given.maximum))
    hours = zip(_hours(needed), _hours(given), strict=True)
    return _no_more(hours) and _no_more((a, b) for a, b in bounds if a is not None and b is not None)


def _no_more(pairs: Iterable[tuple[int, int]]) -> bool:
    return all(needed <= given for needed, given in pairs)


def _hours(target: Target) -> tuple[int, ...]:
    return target.hourly_counts or (target.instance_count,) * 24


def _said(target: Target) -> str:
    if target.minimum is not None and target.maximum is not None:
        return f"{target.minimum} to {target.maximum} instances"
    hours = _hours(target)
    return f"{min(hours)} to {max(hours)} instances" if min(hours) != max(hours) else f"{hours[0]} instance(s)"


def _no(sentence: str) -> Reason:
    return Reason(Code.NEWER_JUDGEMENT, sentence)
