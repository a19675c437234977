"""Dimensions that the settings keep closed: what they would save on the type that runs, offered for an approval."""

from dataclasses import replace

from rightsizer.flows.drafts import Draft, draft_of
from rightsizer.flows.lateness import budget_spent, caution, hurt
from rightsizer.flows.priced import offer
from rightsizer.flows.situation import Situation
from rightsizer.model.option import Option, OptionKind
from rightsizer.model.policy import ADDABLE
from rightsizer.model.recommendation import Gate, Recommendation


def closed_options(found: Recommendation, at: Situation) -> list[Option]:
    """The option of each closed dimension that saves more than what is open, none while users wait or a test is due."""
    asked = at.endpoint.plain and not at.policy.several_at_once
    if not asked or found.gate is Gate.TEST or at.jumped or at.runs.name != at.reference.name:
        return []
    if hurt(at) is not None or budget_spent(at) is not None:
        return []
    chosen = found.chosen if found.gate is not Gate.SILENT else None
    least = chosen.saving_usd_per_month if chosen is not None else 0
    careful = replace(at, cautious=at.cautious + caution(at))
    kinds = sorted(kind for kind in ADDABLE - at.policy.by_itself if _promising(at, kind))
    options = [option for kind in kinds if (option := _opened(careful, kind)) is not None]
    return [option for option in options if option.saving_usd_per_month > least]


def _promising(at: Situation, kind: OptionKind) -> bool:
    """Whether the dimension can save at all: no fleet is computed for the others."""
    if at.peak < 2:
        return False
    load = at.demand.load
    needed = [max(1.0, rate * at.latency.mean_s / at.workers) for rate in load.hourly_rate]
    spread = 1 - sum(needed) / 24 / at.instances >= at.policy.minimum_saving_share if at.instances > 0 else False
    match kind:
        case OptionKind.ROUTING:
            return at.random and not at.endpoint.scaling
        case OptionKind.SCHEDULE:
            return load.hourly_known and spread and not at.endpoint.scaling
        case OptionKind.AUTOSCALING:
            return spread and any(t.policies and t.minimum > 1 for t in at.endpoint.scaling)
        case _:
            return False


def _opened(at: Situation, kind: OptionKind) -> Option | None:
    """What the type that runs would need with that dimension open; None where that is another kind of change."""
    policy = replace(at.policy, by_itself=at.policy.by_itself | {kind})
    opened = replace(at, given=replace(at.given, policy=policy))
    draft = draft_of(opened, at.runs)
    option = offer(opened, draft) if isinstance(draft, Draft) else None
    if not isinstance(option, Option) or option.kind is not kind:
        return None
    note = f'automatic mode may do this where the stack\'s Limits say {{"dimensions": ["{kind.value}"]}}'
    return replace(option, notes=(*option.notes, note))
