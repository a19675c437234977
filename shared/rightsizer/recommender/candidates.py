"""Types that may serve an endpoint: fit, speed and least cost, before any fleet is computed."""

from dataclasses import dataclass

from rightsizer.domain.demand import MemoryClass
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import PastEnd
from rightsizer.domain.option import Excluded
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Code, Reason, day_text, seconds_text
from rightsizer.domain.slowdown import Slowdown, SlowdownSource
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.demand import latency_of
from rightsizer.recommender.fit import CandidateLimits, fit_refusal
from rightsizer.recommender.slowdown import (
    FALSE_ALARM,
    LEFT,
    Lesson,
    Ratio,
    allowed_gpu_slowdown,
    chance_weight,
    chance_within,
    expected_slowdown,
    failures,
    host_factor,
    host_threads,
    learn_about,
    measured_slowdown,
    ratio_of,
    rest_until,
    slowdown_bound,
    slowdown_middle,
    workers_of,
)

UNSEEN_FIT = 0.95
"""Most that is believed of a model whose memory need is unknown, on a card without room for what today's can hold."""
FEWER_GPUS = 0.8
"""Chance that a model runs on fewer GPUs where only their sum was seen: a server may split it over all (assumed)."""


@dataclass(frozen=True, slots=True)
class CandidateType:
    """A candidate that may serve, before its fleet is computed."""

    hardware: InstanceType
    price: Price
    speed: Slowdown
    ratio: Ratio
    workers: int
    fit: float
    """0..1 that the model fits and starts."""
    fast: float
    """0..1 that it is fast enough."""
    started: bool
    least_usd: float
    """Lower bound of the monthly cost."""
    likely: float = 1.0
    """0..1 that it is fast enough, also where it is taken untested and `fast` is 1."""

    @property
    def is_certain(self) -> bool:
        """Whether nothing remains to be measured."""
        return self.fit >= 1 and self.fast >= 1


def check_candidates(context: EvaluationContext) -> tuple[list[CandidateType], list[Excluded]]:
    """Check every GPU type: those that may serve, by their least possible cost, and those ruled out."""
    candidates: list[CandidateType] = []
    excluded: list[Excluded] = []
    for hardware in context.inputs.catalogue:
        if not hardware.has_gpu:
            continue
        candidate = check_candidate(context, hardware)
        if isinstance(candidate, CandidateType):
            candidates.append(candidate)
        else:
            excluded.append(Excluded(hardware.name, candidate))
    candidates.sort(key=lambda d: (d.least_usd, -d.hardware.vcpu, d.hardware.name))
    return candidates, excluded


def check_candidate(context: EvaluationContext, hardware: InstanceType) -> CandidateType | Reason:
    """Check one instance type: the candidate with its expected slowdown, or the reason against it.

    Ruled out by fit, speed, cost or an earlier failure.
    """
    price = context.inputs.prices.find(hardware.name)
    reason = fit_refusal(context.reference, hardware, context.demand, _limits(context, hardware.name, price))
    old, new = context.reference.accelerator, hardware.accelerator
    if reason is not None or price is None or old is None or new is None:
        return reason or Reason(Code.NO_ACCELERATOR, f"{hardware.name} has no accelerator")
    tried = sum(1 for p in context.inputs.history.endpoint if p.ended is PastEnd.TESTED and p.to_type == hardware.name)
    lesson = _lesson(context, hardware)
    if (rests := _rest_reason(context, hardware, lesson)) is not None:
        return rests
    if lesson.too_small_gib >= new.usable_gib and old.model != new.model:
        sentence = f"the model did not fit {lesson.too_small_gib:.1f} GiB, {hardware.name} has {new.usable_gib:.1f} GiB"
        return Reason(Code.MEMORY_TOO_SMALL, sentence)
    ratio_phi = old.phi(new)
    speed, host, ratio = _slowdowns(context, lesson, hardware)
    same_chip, guessed = old.model == new.model, speed.source.is_guess
    fit = fit_chance(context, hardware)
    fast = 1.0
    seen = speed.source.is_measured or lesson.latency_ratio is not None
    if not _is_fast_enough(context, ratio, seen):
        room = allowed_gpu_slowdown(context.demand, host, context.allowed_slowdown)
        seen_here = context.outcomes
        fast = (
            chance_within(room, ratio_phi, seen_here, chance_weight(seen_here, context.policy))
            if guessed and not same_chip and not (ratio_phi > 1 and is_missed_today(context))
            else 0.0
        )
        if lesson.latency_ratio is not None or (tried > 1 and (lesson.gpu_ratio is None or tried > 2)):
            fast = 0.0  # measured on exactly this type, or tests that told nothing
        elif same_chip:
            fast = 0.5  # only the bound of the host factor speaks against it
    likely = fast
    if may_skip_test(context, fast):
        fast = 1.0  # the change is the test: its guard and the days after it tell
    if fast <= 0 and fit > 0:
        return _too_slow_reason(context, hardware, ratio, speed.source, seen)
    workers = workers_of(hardware, context.reference, context.demand, context.latency)
    busy = context.demand.load.mean_rate * context.latency.mean_s * ratio.mid / workers * 0.8
    least = float(price.usd_per_instance_month) * max(busy, 1.0)
    if least >= 0.999 * context.usd_ceiling and hardware.name != context.runs.name:
        several = f", for {busy:.1f} instances on average" if busy > 1 else ""
        return Reason(Code.NOT_CHEAPER, f"{hardware.name} would cost at least ${least:,.0f} a month{several}")
    return CandidateType(hardware, price, speed, ratio, workers, fit, fast, lesson.started, least, likely)


def is_missed_today(context: EvaluationContext) -> bool:
    """Whether the p95 is above a declared objective today: then no card is guessed at that is slower by datasheet."""
    return context.objective.declared and context.latency.p95_s > context.objective.p95_s


def may_skip_test(context: EvaluationContext, chance: float) -> bool:
    """Whether a type with that chance of being fast enough is taken untested.

    Then no test would tell more, and the load is known.

    One request says nothing about the latency, and less about a slower type.
    """
    known = context.demand.requests >= context.policy.untested_requests
    untold = not context.may_test or context.share_of_wanted_requests < context.policy.test_tells
    return known and untold and chance >= context.policy.untested_chance


def latency_ratio_on(context: EvaluationContext, hardware: InstanceType) -> Ratio | None:
    """Middle and bound of the latency ratio on that type; None for a type without an accelerator."""
    if context.reference.accelerator is None or hardware.accelerator is None:
        return None
    return _slowdowns(context, _lesson(context, hardware), hardware)[2]


def fit_chance(context: EvaluationContext, hardware: InstanceType) -> float:
    """Chance that the model starts and fits on that type, 0 to 1; 1 after a test or a change."""
    return 1.0 if _lesson(context, hardware).started else _fit_chance(context, hardware)


def _lesson(context: EvaluationContext, hardware: InstanceType) -> Lesson:
    return learn_about(
        context.history,
        context.reference,
        hardware,
        context.inputs.catalogue.find,
        lambda t: _phi(context, t),
        context.measured_types,
    )


def _slowdowns(context: EvaluationContext, lesson: Lesson, hardware: InstanceType) -> tuple[Slowdown, float, Ratio]:
    """Slowdown of the GPU's part, bound of the host's part, and both together."""
    speed = _slowdown(context, lesson, hardware)
    shown = host_threads(
        context.inputs.history, context.reference, context.inputs.catalogue.find, context.demand.gpu_share
    )
    host = host_factor(context.reference, hardware, context.demand, shown)
    return speed, host, ratio_of(context.demand, speed, host, lesson.latency_ratio, context.policy)


def _is_fast_enough(context: EvaluationContext, ratio: Ratio, seen: bool) -> bool:
    """Whether the slowdown is within what the objective allows.

    A measured one has its bound only for the error of the measurement: its middle must hold, and at the bound a day
    must stay bearable. What is worse than twice the allowance shows within days, and the type before comes back.
    """
    return ratio.bound <= context.allowed_slowdown or (
        seen and ratio.mid <= context.allowed_slowdown and ratio.bound <= context.worst_slowdown
    )


def _too_slow_reason(
    context: EvaluationContext, hardware: InstanceType, ratio: Ratio, source: SlowdownSource, seen: bool
) -> Reason:
    worst = f", {context.worst_slowdown:.2f}-fold at worst" if ratio.mid <= context.allowed_slowdown and seen else ""
    return Reason(
        Code.TOO_SLOW,
        f"{hardware.name} may be too slow: latency may grow {ratio.bound:.2f}-fold ({source}), and the p95 of"
        f" {seconds_text(context.objective.p95_s)} allows {context.allowed_slowdown:.2f}-fold{worst}",
    )


def _limits(context: EvaluationContext, name: str, price: Price | None) -> CandidateLimits:
    """What is asked of a candidate beside the load."""
    runs_now = name in (context.runs.name, context.reference.name)
    return CandidateLimits(price, context.inputs.quotas.get(name), runs_now=runs_now)


def _phi(context: EvaluationContext, hardware: InstanceType) -> float:
    old, new = context.reference.accelerator, hardware.accelerator
    return old.phi(new) if old and new else 1.0


def _rest_reason(context: EvaluationContext, hardware: InstanceType, lesson: Lesson) -> Reason | None:
    if lesson.refuted is None or hardware.name == context.reference.name:
        return None
    times = failures(context.history.endpoint, hardware.name)
    if times < 2 and lesson.refuted.failure in ("alarm", LEFT) and _is_no_slower(context, hardware):
        return None
    if times < 2 and lesson.refuted.is_of_another_model(context.variant.model_name):
        return None  # a new version of the model; what failed twice is the type's fault
    until = rest_until(lesson.refuted, times, context.demand.load.peak_busy_gpus, context.policy, context.inputs.now)
    if until is None:
        return None
    elsewhere = lesson.refuted.has_failed_start and lesson.refuted not in context.inputs.history.endpoint
    where = " behind another endpoint with the same model" if elsewhere else ""
    return Reason(
        Code.BLACKLISTED,
        f"{hardware.name} failed {'once' if times == 1 else f'{times} times'}, last on"
        f" {day_text(lesson.refuted.at)}{where} ({lesson.refuted.failure or 'unknown cause'}); it is not tried again"
        f" before {day_text(until)}",
    )


def _is_no_slower(context: EvaluationContext, hardware: InstanceType) -> bool:
    """Whether the hours on the type show no slower median and p95: then the alarm had another cause."""
    there, usual = latency_of([d for d in context.days if d.instance_type == hardware.name]), context.latency
    if there is None:
        return False
    return there.p50_s <= FALSE_ALARM * usual.p50_s and there.p95_s <= FALSE_ALARM * usual.p95_s


def _slowdown(context: EvaluationContext, lesson: Lesson, hardware: InstanceType) -> Slowdown:
    old, new = context.reference.accelerator, hardware.accelerator
    assert old is not None
    assert new is not None
    if lesson.gpu_ratio is not None and old.model != new.model:
        error = context.policy.served_error if lesson.served else context.policy.measured_error
        return measured_slowdown(old, new, lesson.gpu_ratio, error)
    bound, mid = slowdown_bound(context.outcomes, context.policy), slowdown_middle(context.outcomes, context.policy)
    if lesson.other_q is not None:
        bound = min(bound, lesson.other_q * (1 + context.policy.other_type_spread))
    taught = bool(context.outcomes) or bound != context.policy.slowdown_bound
    return expected_slowdown(old, new, context.policy, bound if taught else None, mid)


def _is_counted(context: EvaluationContext, hardware: InstanceType) -> bool:
    """Whether its number of GPUs is known to be enough: no fewer than today, or fewer of today's card, seen one by one.

    A sum over GPUs is a bound: it does not tell whether the model is split over them. Another card and fewer of them at
    once are two open questions.
    """
    used, count = context.demand.gpus_used, hardware.accelerator_count
    if count >= context.reference.accelerator_count:
        return True
    same = hardware.accelerator == context.reference.accelerator
    return same and context.demand.gpus_seen and used is not None and used <= count


def _fit_chance(context: EvaluationContext, hardware: InstanceType) -> float:
    """Probability that the model fits: certain with a known need, by the share of the card when it is unknown."""
    old, new = context.reference.accelerator, hardware.accelerator
    if old is None or new is None:
        return 0.0
    share = 1.0 if _is_counted(context, hardware) else FEWER_GPUS
    memory, room = context.demand.memory, new.usable_gib
    if memory.kind is MemoryClass.UNKNOWN and old.model != new.model:
        room /= 1 + context.policy.memory_margin  # the room that a need which was seen must have too
    if memory.need_gib is not None or room >= old.usable_gib:
        return share
    low = memory.lower_gib
    return share * max(0.0, min(UNSEEN_FIT, (room - low) / max(old.usable_gib - low, 0.1)))
