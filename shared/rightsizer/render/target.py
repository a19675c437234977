"""What an option leads to, in facts beside its sentence: hours, bounds, routing, sleep, pools and other variants."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import groupby, islice

from rightsizer.domain.option import Option, ScaleIn, Target, fleet
from rightsizer.domain.reason import count, one_line
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.schedule import HOURS, WEEKDAYS, DayCounts, days_text
from rightsizer.render import sentences

EACH = "once what is before it is proven, as the evaluation of that time sizes it, for no higher risk"
"""When a later stage of a plan begins, and as what."""


def target_facts(target: Target) -> tuple[tuple[str, str], ...]:
    """Name and text of everything that the target sets beside type and count; () where it sets nothing more."""
    return tuple((name, one_line(text)) for name, text in _facts(target))


def classes_of_days(target: Target) -> tuple[DayCounts, ...]:
    """The counts by the hour of each class of days; () without a schedule."""
    if target.hourly_counts is None:
        return ()
    return target.day_counts or (DayCounts(tuple(range(len(WEEKDAYS))), target.hourly_counts),)


def stages_of(recommendation: Recommendation) -> tuple[Option, ...]:
    """The recommended option, and what follows it by the same approval, or could follow; () without one.

    The saving of each is what is saved in all then.
    """
    best = recommendation.chosen_option
    if best is None or best.grows:
        return recommendation.options[:1]
    if recommendation.stages:
        return tuple(_with_saving_in_all((best, *recommendation.stages)))
    more = (o for o in recommendation.options[1:] if o.in_place and o.saving_usd_per_month > best.saving_usd_per_month)
    return (best, *islice(more, 1))


def later_text(recommendation: Recommendation) -> str:
    """Sentence on what follows the recommended change, or could follow it, and on what is saved then; may be empty."""
    stages = stages_of(recommendation)
    if len(stages) < 2:
        return ""
    if recommendation.stages:
        parts = (
            f"{sentences.change(stage)} (saves {sentences.monthly_price(stage.saving_usd_per_month)} in all)"
            for stage in stages[1:]
        )
        return f"then, by the same approval, {', then '.join(parts)}; each {EACH}"
    saving = sentences.monthly_price(stages[1].saving_usd_per_month)
    return f"it could {sentences.change(stages[1])} (saves {saving} in all); judged again once this is proven"


def _with_saving_in_all(stages: Iterable[Option]) -> Iterator[Option]:
    """The stages, each with what it and those before it save."""
    saved = Decimal(0)
    for option in stages:
        saved += option.saving_usd_per_month
        yield replace(option, saving_usd_per_month=saved)


def _facts(target: Target) -> Iterator[tuple[str, str]]:
    days = (f"{days_text(counts.weekdays)} {_hours_text(counts.counts)}" for counts in classes_of_days(target))
    others = (f"{one.name} {fleet(Target(one.instance_type, one.instance_count))}" for one in target.others)
    told = {
        "Instances by the hour (UTC)": "; ".join(days),
        "Autoscaling": _bounds_text(target),
        "Routing": target.routing,
        "Sleeps after": f"{target.idle_minutes} minutes without a request" if target.idle_minutes else "",
        "Instance pools": ", then ".join(target.pools),
        "Other variants": ", ".join(others),
        "Copies": ", ".join(f"{name} {copies}" for name, copies in target.copies),
        "Least copies": ", ".join(f"{name} {copies}" for name, copies in target.least_copies),
        "Placement of copies": ", ".join(f"{name} {how}" for name, how in target.placement),
        "Scale-in": _scale_in_text(target.scale_in) if target.scale_in else "",
    }
    yield from ((name, text) for name, text in told.items() if text)


def _hours_text(counts: Sequence[int]) -> str:
    """``00-07 1, 07-19 3, 19-24 1``; the one count where all hours have it."""
    if len(set(counts)) == 1:
        return f"{counts[0]}"
    parts, hour = [], 0
    for number, same in groupby(counts[:HOURS]):
        until = hour + len(list(same))
        parts.append(f"{hour:02}-{until:02} {number}")
        hour = until
    return ", ".join(parts)


def _bounds_text(target: Target) -> str:
    """``2 to 4 instances, METRIC at 84``, or what of it the target sets."""
    parts = []
    if target.maximum is not None:
        parts.append(f"{target.minimum or 0} to {count(target.maximum, 'instance')}")
    elif target.minimum is not None:
        parts.append(f"a minimum of {count(target.minimum, 'instance')}")
    if target.target_value is not None:
        parts.append(
            f"{target.metric} at {target.target_value:g}" if target.metric else f"target {target.target_value:g}"
        )
    return ", ".join(parts)


def _scale_in_text(scale_in: ScaleIn) -> str:
    step = "" if scale_in.maximum_step is None else f", {count(scale_in.maximum_step, 'instance')} at a time"
    rest = "" if scale_in.cooldown_minutes is None else f", {scale_in.cooldown_minutes} minutes apart"
    return f"{scale_in.strategy} of {scale_in.variant}{step}{rest}"
