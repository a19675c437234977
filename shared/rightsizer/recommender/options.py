"""The options of an endpoint: every type of the catalogue, sized, priced and rated; or ruled out with a reason."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.autoscaling.policies import may_scale_in
from rightsizer.domain.demand import Fleet
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.hardware import Accelerator
from rightsizer.domain.option import Excluded, Option, OptionKind, Risk
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason, seconds_text
from rightsizer.domain.schedule import HOURS
from rightsizer.recommender.candidates import CandidateType, check_candidates
from rightsizer.recommender.context import EvaluationContext, share_results
from rightsizer.recommender.fit import pool_refusal
from rightsizer.recommender.fleet_size import (
    FleetShape,
    carries_like_reference,
    find_fleet,
    largest_count,
    may_choose_bounds,
    mean_instances,
    registered_reason,
    replayed_p95_s,
)
from rightsizer.recommender.priced_option import price_fleet, sized_slowdown, was_test_skipped, with_late_share
from rightsizer.recommender.pricing import risk_level
from rightsizer.recommender.scaling_options import find_weekly_counts, minimum_like_owners, over_all_days, with_tracking
from rightsizer.recommender.shadow_test import ShadowTestCandidate, cost_of_test
from rightsizer.recommender.slowdown import Ratio, chance_weight, chance_within

GUESSED = 4
"""Unsure candidates whose fleet is computed, the most promising first."""
ENOUGH = 4
"""Sure options that are kept. From so many on, sizes of a card that one of them has are not computed: a larger host is
dearer, while a card that none of them has may be cheaper."""
SPARE = 2
"""Candidates that are tried beyond the cheapest, so that automatic mode has a second type."""
LIKELY = 0.9
SEVERAL_GPUS = 0.3
"""Chance from which a type on which several GPUs work together is tested."""
MIDDLE, QUICK = 1.0, 0.8
"""Slowdowns that are tried, over the middle one: quick is the lower quartile, 0.57 / 0.71 of phi (1,131 moves)."""


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that could be done."""

    sure: tuple[Option, ...]
    """Cheapest first."""
    unsure: tuple[ShadowTestCandidate, ...]
    excluded: tuple[Excluded, ...]
    later: tuple[CandidateType, ...] = ()
    """Types that serve and cannot be cheaper than the best: their fleets were not computed."""


def options_for(context: EvaluationContext) -> Options:
    """Options that save and every candidate that was ruled out."""
    candidates, excluded = check_candidates(context)
    sure: list[Option] = []
    hopeful: list[ShadowTestCandidate] = []
    best = context.usd_ceiling
    certain = [d for d in candidates if d.is_certain]
    cards: set[tuple[Accelerator | None, int]] = set()
    later: list[CandidateType] = []
    for candidate in certain:
        card = (candidate.hardware.accelerator, candidate.hardware.accelerator_count)
        if candidate.least_usd >= best or (len(sure) >= ENOUGH and card in cards):
            later.append(candidate)
            continue
        option = size_and_price(context, candidate)
        if isinstance(option, Option):
            sure.append(option)
            cards.add(card)
            if candidate.hardware.name not in context.types_without_capacity:
                best = min(best, float(option.usd_per_month))
        elif len(hopeful) < GUESSED and (less := _assume_faster(context, candidate)) is not None:
            hopeful.append(less)
        else:
            excluded.append(Excluded(candidate.hardware.name, option))
    sure = sorted(sure, key=lambda o: (o.usd_per_month + o.switch_usd, o.target.instance_type))[:ENOUGH]
    excluded += (_dearer_size(c) for c in later if _is_smaller_size(context, c))
    test_candidates = _find_test_candidates(context, candidates, best)
    unsure = tuple(one for one in (*test_candidates, *hopeful) if _is_chance_known(context, one))
    return Options(tuple(sure), unsure, tuple(excluded), tuple(later))


def _is_chance_known(context: EvaluationContext, test: ShadowTestCandidate) -> bool:
    """Whether a low chance means what it says: the measured moves are of one GPU, and where several work on a model
    the links between them differ too.
    """
    hardware = context.inputs.catalogue.find(test.option.target.instance_type)
    used = context.demand.gpus_used or context.reference.accelerator_count
    together = min(used, hardware.accelerator_count if hardware is not None else 1)
    return together <= 1 or test.chance >= SEVERAL_GPUS


def _is_smaller_size(context: EvaluationContext, candidate: CandidateType) -> bool:
    """Whether it is what runs with a smaller host: as many of the same GPU, for less."""
    now, then = context.runs, candidate.hardware
    alike = (then.accelerator, then.accelerator_count) == (now.accelerator, now.accelerator_count)
    return alike and then.name != now.name and candidate.price.usd_per_hour < context.price.usd_per_hour


def _dearer_size(candidate: CandidateType) -> Excluded:
    """Why a smaller size of what runs is not looked at: something else is cheaper, whatever its fleet would be."""
    text = f"{candidate.hardware.name}, the same GPU in a smaller size, would cost at least"
    text += f" ${candidate.least_usd:,.0f} a month, and what is offered costs less"
    return Excluded(candidate.hardware.name, Reason(Code.DEARER_THAN_OFFERED, text))


def stand_ins(context: EvaluationContext, options: Options) -> Iterator[Option]:
    """Options of the types behind the cheapest that save too, for a lack of capacity; a few at most."""
    for candidate in options.later[:SPARE]:
        option = size_and_price(context, candidate) if candidate.least_usd < context.usd_ceiling else None
        if isinstance(option, Option):
            yield option


def _find_test_candidates(
    context: EvaluationContext, candidates: Sequence[CandidateType], best: float
) -> list[ShadowTestCandidate]:
    """The most promising candidates that a test could make sure of, cheaper than `best` US dollars a month."""
    enough = (1 - context.policy.minimum_saving_share) * best
    found = [
        d for d in candidates if not d.is_certain and d.hardware.name != context.runs.name and d.least_usd < enough
    ]
    found.sort(key=lambda d: d.fit * d.fast * (d.least_usd - best))
    return [guess for d in found[:GUESSED] if (guess := _assume_test_passes(context, d)) is not None]


def _assume_test_passes(context: EvaluationContext, candidate: CandidateType) -> ShadowTestCandidate | None:
    """The option as it would be if a test went well, and how likely that is.

    The slowdown is a little below what the objective allows. Where no fleet carries the load at the middle of what
    is likely, a quick one may.
    """
    ratio = min(candidate.ratio.mid, LIKELY * context.allowed_slowdown)
    quick, chance_of_quick = _ratio_and_chance(context, candidate, QUICK)
    for tried, chance in ((ratio, candidate.fast), (min(quick, ratio), min(candidate.fast, chance_of_quick))):
        option = size_and_price(context, replace(candidate, ratio=Ratio(tried, tried), fit=1.0, fast=1.0))
        if isinstance(option, Option) and has_gpu_room(context, candidate, option, tried):
            return test_candidate(context, candidate, option, chance)
        if not candidate.speed.source.is_guess:
            break
    return None


def _assume_faster(context: EvaluationContext, candidate: CandidateType) -> ShadowTestCandidate | None:
    """A candidate whose fleet is too busy at the bound of its slowdown, but not at less: worth measuring."""
    open_question = candidate.speed.source.is_guess and candidate.ratio.bound > candidate.ratio.mid
    if not open_question or candidate.hardware.name == context.runs.name:
        return None
    shares = dict.fromkeys((_share_as_today(context, candidate), MIDDLE))
    found = [test for share in shares if (test := _sized_at(context, candidate, share)) is not None]
    return max(found, key=lambda test: test.expected_saving) if found else _sized_at(context, candidate, QUICK)


def _share_as_today(context: EvaluationContext, candidate: CandidateType) -> float:
    """The slowdown, over the middle one, at which a likely faster card is as fast as today's card."""
    own = context.demand.gpu_share * candidate.speed.mid
    return MIDDLE + (1 - candidate.ratio.mid) / own if own > 0 and candidate.ratio.mid < 1 else MIDDLE


def _sized_at(context: EvaluationContext, candidate: CandidateType, share: float) -> ShadowTestCandidate | None:
    """The candidate at that share of its middle slowdown, with the chance that it is no slower."""
    tried, chance = _ratio_and_chance(context, candidate, share)
    option = size_and_price(context, replace(candidate, ratio=Ratio(tried, tried), fast=chance))
    if not isinstance(option, Option) or not has_gpu_room(context, candidate, option, tried):
        return None
    return test_candidate(context, candidate, option, chance)


def has_gpu_room(context: EvaluationContext, candidate: CandidateType, option: Option, tried: float) -> bool:
    """Whether its cards can do the work that is planned for the busiest hour.

    None is at work for longer than the hour (utilisation law), whatever the latency lets hope.
    """
    busy, share = context.demand.load.peak_busy_gpus, context.demand.gpu_share
    if busy is None or share <= 0:
        return True
    slower = max(candidate.speed.mid + (tried - candidate.ratio.mid) / share, 0.0)
    cards = max(option.target.week_counts) * max(candidate.hardware.accelerator_count, 1)
    return busy * slower <= cards


def test_candidate(
    context: EvaluationContext, candidate: CandidateType, option: Option, fast: float
) -> ShadowTestCandidate:
    """The option, `fast` enough with that chance, with what its test costs beside today's fleet."""
    fleet = float(context.price.usd_per_hour) * context.instances
    return ShadowTestCandidate(
        option,
        candidate.fit * fast,
        cost_of_test(option, fleet, context.policy),
        context.share_of_wanted_requests,
        untested_risk(option, candidate.fit, fast, context.policy),
        test_tells(context, candidate, fast),
    )


def _ratio_and_chance(context: EvaluationContext, candidate: CandidateType, share: float) -> tuple[float, float]:
    """The latency ratio where the GPU's part is that share of its middle, and the chance that it is so quick."""
    seen, speed = context.outcomes, candidate.speed
    ratio = candidate.ratio.mid - (1 - share) * context.demand.gpu_share * speed.mid
    return ratio, chance_within(share * speed.mid, speed.phi, seen, chance_weight(seen, context.policy))


def size_and_price(context: EvaluationContext, candidate: CandidateType) -> Option | Reason:
    """The candidate's cheapest fleet as an option, or the reason why it is none."""
    option = _size_fleet(context, candidate)
    if isinstance(option, Reason) and _may_save_as_routed(context, candidate):
        closed = replace(context.policy, by_itself=context.policy.by_itself - {OptionKind.ROUTING})
        context = share_results(context, replace(context, inputs=replace(context.inputs, policy=closed)))
        option = _size_fleet(context, candidate)
    return check_fleet(context, candidate, option) if isinstance(option, Option) else option


def _may_save_as_routed(context: EvaluationContext, candidate: CandidateType) -> bool:
    """Whether the type that runs is sized again with today's routing, since a better routing saved no instance."""
    return (
        candidate.hardware.name == context.runs.name
        and context.is_random_routing
        and context.may_change(OptionKind.ROUTING)
        and not context.is_fleet_too_small
    )


def check_fleet(context: EvaluationContext, candidate: CandidateType, option: Option) -> Option | Reason:
    """The priced fleet with its late requests and its p95, or the reason why it is no option."""
    refused = registered_reason(context, option) or _quota_reason(context, option)
    refused = refused or _pool_reason(context, candidate, option)
    found = with_late_share(context, option, candidate.hardware, sized_slowdown(context, candidate))
    return refused or replace(found, p95_s=replayed_p95_s(context, found, candidate.hardware))


def _pool_reason(context: EvaluationContext, candidate: CandidateType, option: Option) -> Reason | None:
    """Why the KV cache of its cards would not hold the requests of today's peak; None where a start has shown it."""
    if candidate.started:
        return None
    runs = option.target.week_counts
    fewer = (
        1.0
        if context.endpoint.scaling
        else max(then / max(n, 1) for then, n in zip(context.reference_counts * 7, runs, strict=True))
    )
    return pool_refusal(
        context.reference, candidate.hardware, context.demand.memory, candidate.ratio.bound * max(fewer, 1.0)
    )


def _quota_reason(context: EvaluationContext, option: Option) -> Reason | None:
    """Why the account may not run the new fleet, which starts beside the old one; None where no quota forbids it."""
    name, count = option.target.instance_type, option.target.instance_count
    quota = context.inputs.quotas.get(name)
    if quota is None or count <= quota or name == context.runs.name:
        return None
    sentence = f"the account's quota for {name} endpoints is {quota}, and {count} instances are needed"
    return Reason(Code.NO_QUOTA, sentence)


def _size_fleet(context: EvaluationContext, candidate: CandidateType) -> Option | Reason:
    """The smallest fleet of the candidate that carries the load.

    Counts are sized with the middle of a measured slowdown, for they can be changed again and the days on the type
    show it; memory, and a slowdown that nobody measured, with the bound (but where a likely one is dared untested).
    """
    if (
        context.endpoint.scaling
        and not context.has_active_change
        and not may_choose_bounds(context, candidate.hardware.name)
    ):
        return _rescale_bounds(context, candidate)
    switch = context.may_change(OptionKind.ROUTING)
    random_routing = context.is_random_routing and not switch
    hourly = context.may_set_hourly_counts(candidate.hardware.name, switch and context.is_random_routing)
    hourly = hourly and context.policy.days_for_hours <= len({d.day for d in context.days})
    today = math.ceil(context.peak_count * context.workers / candidate.workers)
    name, policy = candidate.hardware.name, context.policy
    most = largest_count(context, name, policy.count_factor * today + policy.count_spare)
    slower = sized_slowdown(context, candidate)
    one_for_one = candidate.ratio.mid if was_test_skipped(context, candidate) else slower  # no count is chosen
    single = Fleet((1,) * 24, candidate.workers, random_routing, one_for_one)
    shape = FleetShape(name, slower, candidate.workers, random_routing, hourly, most)
    keeps, fleet = _may_keep_count(context, candidate), None
    if context.peak_count == 1 and (name == context.reference.name or carries_like_reference(context, single)):
        fleet = single
    elif not (today == 1 and 2 * float(candidate.price.usd_per_hour) >= float(context.price.usd_per_hour)):
        fleet = find_fleet(context, shape, keeps)
    elif keeps:
        fleet = Fleet(context.reference_counts, candidate.workers, random_routing, slower)
    if fleet is not None and (classes := find_weekly_counts(context, shape, fleet, keeps)):
        fleet = over_all_days(fleet, classes)
    fleet = with_tracking(context, shape, fleet, switch and context.is_random_routing)
    if fleet is None:
        return Reason(
            Code.TOO_BUSY,
            f"{candidate.hardware.name} would miss the p95 of {seconds_text(context.objective.p95_s)} even with {most}"
            f" {'instance' if most == 1 else 'instances'}{_bound_text(candidate)}",
        )
    option = price_fleet(
        context, candidate, fleet, LEAST if switch and context.is_random_routing and max(fleet.counts) > 1 else None
    )
    if option.saving_usd_per_month <= 0 and not context.is_fleet_too_small:
        return Reason(
            Code.NOT_CHEAPER,
            f"{_fleet_text(fleet)} {candidate.hardware.name} would cost ${option.usd_per_month:,.2f} a month",
        )
    return option


def _bound_text(candidate: CandidateType) -> str:
    """Words on a speed that only datasheets tell, as the end of a sentence; else empty."""
    return ", were it as slow as datasheets allow" if candidate.speed.source.is_guess else ""


def _may_keep_count(context: EvaluationContext, candidate: CandidateType) -> bool:
    """Whether as many instances as today are no worse than today's, whatever room to grow there is."""
    alike = (
        candidate.workers == context.workers
        and candidate.ratio.bound <= 1
        and context.is_random_routing == context.random_base
    )
    return alike and not context.has_active_change and not context.endpoint.scaling


def _rescale_bounds(context: EvaluationContext, candidate: CandidateType) -> Option | Reason:
    """Another type under the customer's own autoscaling: same policy, bounds scaled by what the type can do."""
    low = min(t.minimum for t in context.endpoint.scaling)
    high = max(t.maximum for t in context.endpoint.scaling)
    roomy = candidate.ratio.bound <= 1.05 or candidate.ratio.bound * 1.3 <= context.allowed_slowdown
    if not roomy:
        return Reason(
            Code.TOO_SLOW,
            f"{candidate.hardware.name} may be {candidate.ratio.bound:.2f} times slower; "
            f"{context.allowed_slowdown:.2f} times is the most,"
            " which leaves too little room while autoscaling takes minutes to add instances",
        )
    grown, workers = max(candidate.ratio.mid, 1.0), candidate.workers
    maximum, routed = max(math.ceil(high * grown), low), context.may_change(OptionKind.ROUTING)
    first = Fleet(
        (max(low, 1),) * HOURS,
        workers,
        context.is_random_routing and not routed,
        sized_slowdown(context, candidate),
        maximum=maximum,
    )
    followed = all(t.policies and may_scale_in(t) for t in context.endpoint.scaling)
    fleet = minimum_like_owners(context, first) if followed else first
    if fleet is None:
        text = f"{candidate.hardware.name} would have more late requests than today where instances come as late"
        return Reason(Code.TOO_BUSY, f"{text}, whatever its minimum{_bound_text(candidate)}")
    minimum = min(fleet.counts)
    busy = context.demand.load.mean_rate * context.latency.mean_s * candidate.ratio.mid / workers
    mean = max(low, min(context.instances * grown, max(context.instances, busy / context.policy.rho_one)))
    mean = max(mean * mean_instances(context, fleet) / mean_instances(context, first), minimum)
    shown = replace(fleet, counts=(max(math.ceil(mean - 1e-9), 1),) * HOURS, slower=candidate.ratio.bound, maximum=0)
    option = price_fleet(context, candidate, shown, LEAST if routed and context.is_random_routing else None, mean)
    bounds = replace(option.target, minimum=minimum, maximum=maximum, per_instance=round(1 / grown, 4))
    option = replace(option, target=bounds)
    if option.saving_usd_per_month <= 0:
        return Reason(Code.NOT_CHEAPER, f"{candidate.hardware.name} would cost ${option.usd_per_month:,.2f} a month")
    return option


def _fleet_text(fleet: Fleet) -> str:
    low, high = min(fleet.counts), max(fleet.counts)
    return f"{low} ×" if low == high else f"{low} to {high} ×"


def saving_share(context: EvaluationContext, option: Option) -> float:
    """Saving as a share of what the endpoint costs now."""
    return float(option.saving_usd_per_month / context.usd_per_month) if context.usd_per_month > Decimal(0) else 0.0


def untested_risk(option: Option, fit: float, fast: float, policy: Policy) -> Risk:
    """Performance risk of the option without its test. Its own `risk` counts on a test that went well.

    `fit`: 0..1 that the model starts and fits; where it does not, the deployment fails or the model runs out of memory
    under load, which is a high risk whatever the odds. `fast`: 0..1 that the type is fast enough.
    """
    return max(option.risk, Risk.HIGH if fit < 1 else Risk.VERY_LOW, risk_level(1 - fast, policy))


def test_tells(context: EvaluationContext, candidate: CandidateType, fast: float) -> str:
    """Answers of a shadow test of the candidate, as the end of "it tells"."""
    old, new = context.reference, candidate.hardware
    parts = []
    if new.accelerator_count < old.accelerator_count and candidate.fit < 1:
        parts.append(f"whether the model starts on {new.accelerator_count} of {old.accelerator_count} GPUs")
    elif candidate.fit < 1 and new.accelerator is not None:
        parts.append(f"whether the model fits {new.accelerator.usable_gib:.0f} GiB of GPU memory")
    if fast < 1 or not parts:
        parts.append(f"how fast {new.name} answers the same requests")
    return " and ".join(parts)
