"""Dimensions that the settings keep closed: what they would save on the type that runs, offered for an approval.

Those that are open are part of every option already; here is said why none of the options moves them.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from rightsizer.domain.option import Excluded, Option, OptionKind
from rightsizer.domain.policy import ADDABLE
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.recommender.candidates import Draft, draft_of
from rightsizer.recommender.context import Situation
from rightsizer.recommender.fleet_size import jumped
from rightsizer.recommender.late_requests import budget_spent, caution, hurt, overdrawn
from rightsizer.recommender.options import offer

KEPT = ("stream", "service", "fleet", "workers", "usual", "links", "past")
"""What was computed of a situation and does not depend on the dimensions that are open."""


def answers(
    found: Recommendation, at: Situation, kind: OptionKind, saves_nothing: Callable[[Situation], Reason | None]
) -> list[Option | Excluded]:
    """Of a closed dimension the option that saves more than what is open, or why there is none; of an open one why no
    option moves it, where none does.
    """
    if at.policy.several_at_once:
        return []
    if kind in at.policy.by_itself:
        offered = any(option.kind is kind for option in found.options)
        return [] if offered else [Excluded(at.runs.name, _unmoved(found, at, kind, saves_nothing), kind)]
    no = _not_now(found, at) or _idle(at, kind) or saves_nothing(at)
    answer = no or _answer(at, kind, found.saving_usd_per_month)
    return [Excluded(at.runs.name, answer, kind) if isinstance(answer, Reason) else answer]


def _not_now(found: Recommendation, at: Situation) -> Reason | None:
    """Why no closed dimension is looked at: another kind, a test first, users who wait, a type not measured."""
    other = _other_kind(at)
    if other is not None:
        return other
    if found.gate is Gate.TEST:
        return Reason(Code.TEST_WORTH_IT, "a shadow test of another type comes first")
    if at.runs.name != at.reference.name:
        text = f"it was measured on {at.reference.name}, whose days have to leave the look-back first"
        return Reason(Code.TOO_FEW_DAYS, text)
    if jumped(at):
        return Reason(Code.UNDER_PROVISIONED, "the traffic jumped, and a day of the new traffic has to be seen first")
    return _waiting(at)


def _other_kind(at: Situation) -> Reason | None:
    """Why neither an open nor a closed dimension is looked at on such an endpoint."""
    if at.endpoint.plain:
        return None
    return Reason(Code.OTHER_KIND, f"only where one real-time variant serves, not for {at.endpoint.kind.value}")


def _waiting(at: Situation) -> Reason | None:
    """Why nothing gets smaller now: users wait, or waited too often."""
    harm = hurt(at)
    if harm is not None:
        return harm.reason
    used = budget_spent(at)
    return Reason(Code.LATE_BUDGET_SPENT, overdrawn(used, at)) if used is not None else None


def _unmoved(
    found: Recommendation, at: Situation, kind: OptionKind, saves_nothing: Callable[[Situation], Reason | None]
) -> Reason:
    """Why the fleets that were computed with the dimension do not move it."""
    why = _other_kind(at) or _idle(at, kind) or saves_nothing(at) or _waiting(at)
    if why is not None:
        return why
    first = found.chosen.kind if found.chosen is not None and found.chosen.kind in ADDABLE else None
    if first is not None:
        text = f"{first.value} is offered, and one change moves one of them: {kind.value} is looked at again after it"
        return Reason(Code.NOT_APPLICABLE, text)
    mine = next((e.reason for e in found.excluded if e.instance_type == at.runs.name and e.dimension is None), None)
    if mine is not None:
        return mine
    return _less(kind, found.saving_usd_per_month)


def _less(kind: OptionKind, least: Decimal) -> Reason:
    sentence = f"{kind.value} saves no more than what is offered without it (${least:,.2f} a month)"
    return Reason(Code.NOT_CHEAPER, sentence)


def _answer(at: Situation, kind: OptionKind, least: Decimal) -> Option | Reason:
    """The option of the search with that dimension open too."""
    at = _alike(at, replace(at, cautious=at.cautious + caution(at)))
    dimensions = at.policy.by_itself | {kind}
    opened = _alike(at, replace(at, given=replace(at.given, policy=replace(at.policy, by_itself=dimensions))))
    draft = draft_of(opened, at.runs)
    option = offer(opened, draft) if isinstance(draft, Draft) else draft
    if isinstance(option, Reason):
        return option
    if option.kind is not kind or option.saving_usd_per_month <= least:
        return _less(kind, least)
    setting = json.dumps({"dimensions": sorted(ADDABLE & dimensions)})
    return replace(option, notes=(*option.notes, f"automatic mode looks at this only where Limits says {setting}"))


def _idle(at: Situation, kind: OptionKind) -> Reason | None:
    """Why no dimension of the search can save anything; told before any fleet is computed."""
    if at.peak >= 2:
        return None
    return Reason(Code.NOT_APPLICABLE, f"{kind.value} helps only where two instances or more run")


def even(at: Situation) -> Reason | None:
    """Why counts that follow the hours save too little: the least that the hours of the day can need, on average."""
    load = at.demand.load
    if not load.hourly_known:
        days = len({day.day for day in at.days})
        return Reason(
            Code.TOO_FEW_DAYS, f"the load of each hour is not known after {days} of {at.policy.days_for_hours} days"
        )
    needed = sum(max(float(at.floor), rate * at.latency.mean_s / at.workers) for rate in load.hourly_rate) / 24
    saved = 1 - needed / max(at.instances, 1.0)
    if saved >= at.policy.minimum_saving_share:
        return None
    return Reason(
        Code.NOT_CHEAPER,
        f"the hours of the day need {needed:.1f} of {at.instances:.1f} instances at least: following them would save"
        f" {100 * max(saved, 0.0):.0f} % at most",
    )


def _alike(at: Situation, other: Situation) -> Situation:
    """The other situation with what was computed for this one and is the same there."""
    vars(other).update({name: value for name, value in vars(at).items() if name in KEPT})
    return other
