"""What an option leads to, its effects and its rollback, and a test before it, as people read them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import groupby, islice
from typing import assert_never

from rightsizer.dimensions import dimension_of
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.older_option import with_older_facts
from rightsizer.domain.option import Option, OptionKind, ScaleIn, Target, WayBack, fleet
from rightsizer.domain.plan import order_command
from rightsizer.domain.policy import TYPE_AND_COUNT
from rightsizer.domain.preflight import WAY_BACK
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.reason import count, one_line
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.schedule import HOURS, WEEKDAYS, DayCounts, days_text
from rightsizer.recommender.dimension import Restart
from rightsizer.render import sentences

TEST_DEPLOYS = "the fleet is deployed twice, to add and to remove the shadow"
"""What a shadow test does to what serves (`cost_of_test` prices it)."""
TEST_ENDS = "the shadow of the test is removed when it ends"


def restart_text(option: Option) -> str:
    """Whether the model starts again: ``the model starts on new instances``."""
    return dimension_of(option.kind).restart_of(option) if option.restart_needed else Restart.NOTHING


def callers_text(option: Option) -> str:
    """Duties of callers; of an option that sleeps also who waits or fails, and how long."""
    sleeps = option.kind is OptionKind.SCALE_TO_ZERO
    return "; ".join(part for part in (option.client_change, *(option.notes if sleeps else ())) if part)


def way_back(option: Option, ours: bool = True) -> WayBack:
    """Who brings back what was there before; `ours` as of `rollback_text`."""
    if not dimension_of(option.kind).keeps:
        return WayBack.NONE
    return WayBack.PROGRAM if option.in_place and ours else WayBack.OWNER


def rollback_text(option: Option, ours: bool = True) -> str:
    """How the option is undone: ``can be rolled back: rightsizer deploys the old configuration again``.

    `ours`: the program may change the endpoint; where it may not, who changes it also undoes it.
    """
    does = dimension_of(option.kind).undo(option)
    match way_back(option, ours):
        case WayBack.PROGRAM:
            return f"can be rolled back: rightsizer {does}"
        case WayBack.OWNER:
            return f"can be rolled back by its owner, who {does}"
        case WayBack.NONE:
            return f"cannot be rolled back: once it is deleted, its owner {does}"
        case unreachable:
            assert_never(unreachable)


def effect_note(option: Option, ours: bool = True) -> str:
    """Both, as a note beside the effort; of a shadow test before it too."""
    test = f"the test first: {TEST_DEPLOYS}; then: " if option.test_usd else ""
    return f"{test}{restart_text(option)}; {rollback_text(option, ours)}"


def restart_of(recommendation: Recommendation) -> str:
    """Restart that an approval causes; a shadow test redeploys all variants, though it changes none."""
    if recommendation.gate is Gate.TEST:
        return TEST_DEPLOYS
    return (
        restart_text(recommendation.chosen_option) if recommendation.chosen_option is not None else "nothing restarts"
    )


def way_back_of(recommendation: Recommendation, approvable: bool = True) -> str:
    """How what is recommended is undone; a shadow test changes nothing that would have to be."""
    if recommendation.gate is Gate.TEST:
        return TEST_ENDS
    ours = approvable and not recommendation.owned_by
    return (
        rollback_text(recommendation.chosen_option, ours)
        if recommendation.chosen_option is not None
        else "nothing is changed"
    )


def guard_sentence(recommendation: Recommendation) -> str:
    """Automatic steps after an approval, as a sentence; empty where nothing is changed."""
    option = recommendation.chosen_option
    if option is None:
        return ""
    if recommendation.gate is Gate.TEST:
        shadow = "A shadow gets copies of the requests, and is removed when the test ends or its alarms say so."
        return f"{shadow} For that {TEST_DEPLOYS}."
    if option.kind is OptionKind.DELETE:
        return "It is marked and watched; any request ends that, and its owner gets the command. Nothing is deleted."
    if option.grows and option.adds_only:
        return "It stays, also where requests are still slow; whoever approved it can roll it back."
    alarms = dimension_of(option.kind).is_watched(option.kind) or dimension_of(option.kind).is_deployed(option)
    watches = "its alarms or requests say" if alarms else "the requests that it serves say"
    return f"It goes back by itself when {watches} so. {approval_note(recommendation)}".strip()


def approval_note(found: Recommendation) -> str:
    """Sentence that an approval of a type or count permits the way back too; empty of other changes."""
    option = found.chosen_option
    if option is None or found.kind is not EndpointKind.REAL_TIME or option.kind not in TYPE_AND_COUNT:
        return ""
    if option.restores or option.grows or option.target.others or option.target.minimum is not None:
        return ""
    fleet = f"{found.instance_count} × {found.instance_type}"
    return (
        f"For {WAY_BACK.days} days this also permits the way back to {fleet}, if users suffer and nothing else changed."
    )


TWICE = "each request is served twice meanwhile"
CARE = "Do not run it where a request writes, bills or sends something."
"""What only the owner can know, and has to be said before they allow it."""
FOLLOWS = "Where it proves well, the change follows."


def offer_text(recommendation: Recommendation) -> str:
    """The offered test in one sentence: length, cost, what it tells and does. Empty where none is offered."""
    option = recommendation.chosen_option
    if option is None or not recommendation.offers_test:
        return ""
    text = f"; it tells {option.test_tells}" if option.test_tells else ""
    return f"{_length(option)}{text}; {TWICE}, and {TEST_DEPLOYS}"


def _length(option: Option) -> str:
    """``2 h on ml.g5.xlarge for about $9.10``; the cost only where it was stored."""
    hours = with_older_facts(option).test_hours
    lasts = f"{hours:g} h on" if hours is not None else "on"
    cost = f" for about {sentences.money(option.test_usd)}" if option.test_usd else ""
    return f"{lasts} {option.target.instance_type}{cost}"


def risk_text(option: Option) -> str:
    """Performance risk and a lost zone: ``low (1 of 4) after the test, high (3 of 4) without it``."""
    text, zone = sentences.risk(option.performance_risk), ", and one Availability Zone in place of two"
    if option.untested_risk is not None and option.test_usd:
        text += f" after the test, {sentences.risk(option.untested_risk)} without it"
    return text + (zone if option.leaves_one_zone else "")


def test_confirmation(recommendation: Recommendation) -> str:
    """Text that a person confirms before a test is run."""
    option = recommendation.chosen_option
    done = f"{TEST_DEPLOYS}, and {TWICE}"
    return f"{_length(option)}; {done}. {CARE} {FOLLOWS}" if option is not None else ""


def untested_warning(recommendation: Recommendation) -> str:
    """Warning before a change is approved without its test. Empty where none is offered."""
    option = recommendation.chosen_option
    if option is None or not recommendation.offers_test or option.untested_risk is None:
        return ""
    return f"Without the test the performance risk is {sentences.risk(option.untested_risk)}."


def commands(proposal: Proposal) -> list[tuple[str, str]]:
    """The commands that say yes, each with what it does. Empty where nobody may."""
    if not proposal.approvable:
        return []
    approve = order_command("approve", proposal.id, proposal.ref.region)
    if not proposal.recommendation.offers_test:
        return [(approve, "")]
    test = order_command("test", proposal.id, proposal.ref.region)
    found = [(test, "the shadow test first; where it proves well, the change follows")]
    if proposal.may_skip_test:
        option = proposal.recommendation.chosen_option
        risk = option.untested_risk if option is not None else None
        text = f", at performance risk {int(risk)} of 4" if risk is not None else ""
        found.append((approve, f"the change without the test{text}"))
    return found


EACH = "Each stage begins once the one before is proven, is sized anew then, and takes no higher risk"
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
        return f"By the same approval, {', then '.join(parts)}. {EACH}"
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
