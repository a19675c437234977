"""Compose the rules into options: every type of the catalogue, sized, priced, rated; or ruled out with a reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rightsizer.domain.option import Excluded, Option
from rightsizer.recommender.candidates import Draft, drafts_of
from rightsizer.recommender.context import Situation
from rightsizer.recommender.priced import offer
from rightsizer.recommender.shadow_test import Unsure, cost_of_test
from rightsizer.recommender.sizing import Ratio

GUESSED = 4
"""Unsure candidates whose fleet is computed, the most promising first."""
SPARE = 2
"""Candidates that are tried beyond the cheapest, so that automatic mode has a second type."""
LIKELY = 0.9
UNTRIED = ("datasheet", "learnt")
"""Sources of a slowdown that no test on this type has measured."""
MIDDLE, QUICK = 0.5, 0.25
"""Chances of the middle slowdown or less, and of a quick one."""
QUICKER = 0.8
"""A quick slowdown over the middle one: the lower quartile over the median, 0.57 / 0.71 of phi (1,131 moves)."""


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that could be done."""

    sure: tuple[Option, ...]
    """Cheapest first."""
    unsure: tuple[Unsure, ...]
    excluded: tuple[Excluded, ...]
    later: tuple[Draft, ...] = ()
    """Types that serve and cannot be cheaper than the best: their fleets were not computed."""


def options_for(at: Situation) -> Options:
    """Options that save and every candidate that was ruled out."""
    drafts, excluded = drafts_of(at)
    sure: list[Option] = []
    hopeful: list[Unsure] = []
    best = at.ceiling
    certain = [d for d in drafts if d.sure]
    tried = 0
    for draft in certain:
        if draft.least_usd >= best or len(sure) >= 4:
            break
        tried += 1
        found = offer(at, draft)
        if isinstance(found, Option):
            sure.append(found)
            if draft.hardware.name not in at.lacking:
                best = min(best, float(found.usd_per_month))
        elif len(hopeful) < GUESSED and (less := _if_faster(at, draft)) is not None:
            hopeful.append(less)
        else:
            excluded.append(Excluded(draft.hardware.name, found))
    sure.sort(key=lambda o: (o.usd_per_month + o.switch_usd, o.target.instance_type))
    unsure = _unsure(at, drafts, best)
    return Options(tuple(sure), (*unsure, *hopeful), tuple(excluded), tuple(certain[tried:]))


def stand_ins(at: Situation, options: Options) -> Iterator[Option]:
    """Options of the types behind the cheapest that save too, for a lack of capacity; a few at most."""
    for draft in options.later[:SPARE]:
        found = offer(at, draft) if draft.least_usd < at.ceiling else None
        if isinstance(found, Option):
            yield found


def _unsure(at: Situation, drafts: Sequence[Draft], best: float) -> list[Unsure]:
    """The most promising candidates that a test could make sure of, cheaper than `best` US dollars a month."""
    enough = (1 - at.policy.minimum_saving_share) * best
    found = [d for d in drafts if not d.sure and d.hardware.name != at.runs.name and d.least_usd < enough]
    found.sort(key=lambda d: d.fit * d.fast * (d.least_usd - best))
    return [guess for d in found[:GUESSED] if (guess := _guess(at, d)) is not None]


def _guess(at: Situation, draft: Draft) -> Unsure | None:
    """The option as it would be if a test went well, and how likely that is.

    The slowdown is a little below what the objective allows. Where no fleet carries the load at the middle of what
    is likely, a quick one may.
    """
    ratio = min(draft.ratio.mid, LIKELY * at.stretch)
    quick = min(_quick(at, draft), ratio)
    for tried, chance in ((ratio, draft.fast), (quick, min(draft.fast, QUICK))):
        found = offer(at, replace(draft, ratio=Ratio(tried, tried), fit=1.0, fast=1.0))
        if isinstance(found, Option):
            return _unsure_of(at, found, draft.fit * chance)
        if draft.speed.source not in UNTRIED:
            break
    return None


def _if_faster(at: Situation, draft: Draft) -> Unsure | None:
    """A candidate whose fleet is too busy at the bound of its slowdown, but not at less: worth measuring."""
    open_question = draft.speed.source in UNTRIED and draft.ratio.bound > draft.ratio.mid
    if not open_question or draft.hardware.name == at.runs.name:
        return None
    for tried, chance in ((draft.ratio.mid, MIDDLE), (_quick(at, draft), QUICK)):
        found = offer(at, replace(draft, ratio=Ratio(tried, tried), fast=chance))
        if isinstance(found, Option):
            return _unsure_of(at, found, draft.fit * chance)
    return None


def _unsure_of(at: Situation, option: Option, chance: float) -> Unsure:
    """The option with what its test costs beside today's fleet."""
    fleet = float(at.price.usd_per_hour) * at.instances
    return Unsure(option, chance, cost_of_test(option, fleet, at.policy), at.told)


def _quick(at: Situation, draft: Draft) -> float:
    """The latency ratio where the GPU's part is as quick as one move in four is."""
    return draft.ratio.mid - (1 - QUICKER) * at.demand.gpu_share * draft.speed.mid
