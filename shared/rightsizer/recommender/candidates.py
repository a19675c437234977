"""Which types may serve an endpoint at all: fit, speed and a lower bound of the cost, before any fleet is computed."""

from dataclasses import dataclass

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import PastEnd
from rightsizer.domain.option import Excluded
from rightsizer.domain.price import HOURS_PER_MONTH, Price
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.slowdown import Slowdown, SlowdownSource
from rightsizer.recommender.context import Situation
from rightsizer.recommender.demand import latency_of
from rightsizer.recommender.fit import Limits, refusal
from rightsizer.recommender.past_changes import FALSE_ALARM, LEFT, Lesson, failures, lesson, resting, threads
from rightsizer.recommender.slowdown import (
    Ratio,
    chance,
    gpu_room,
    host_factor,
    measured,
    middle,
    ratio_of,
    slowdown,
    weight,
    width,
    workers_of,
)


@dataclass(frozen=True, slots=True)
class Draft:
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

    @property
    def sure(self) -> bool:
        """Whether nothing remains to be measured."""
        return self.fit >= 1 and self.fast >= 1


def drafts_of(at: Situation) -> tuple[list[Draft], list[Excluded]]:
    """Every type with a GPU: those that may serve, by the least that they could cost, and those that are ruled out."""
    drafts: list[Draft] = []
    excluded: list[Excluded] = []
    for hardware in at.given.catalogue:
        if not hardware.has_gpu:
            continue
        found = draft_of(at, hardware)
        if isinstance(found, Draft):
            drafts.append(found)
        else:
            excluded.append(Excluded(hardware.name, found))
    drafts.sort(key=lambda d: (d.least_usd, -d.hardware.vcpu, d.hardware.name))
    return drafts, excluded


def draft_of(at: Situation, hardware: InstanceType) -> Draft | Reason:
    """The candidate as a draft, or the reason why it is none."""
    price = at.given.prices.find(hardware.name)
    reason = refusal(at.reference, hardware, at.demand, _limits(at, hardware.name, price))
    old, new = at.reference.accelerator, hardware.accelerator
    if reason is not None or price is None or old is None or new is None:
        return reason or Reason(Code.NO_ACCELERATOR, f"{hardware.name} has no accelerator")
    tried = sum(1 for p in at.given.history.endpoint if p.ended is PastEnd.TESTED and p.to_type == hardware.name)
    known = _known(at, hardware)
    if (rests := _resting(at, hardware, known)) is not None:
        return rests
    if known.too_small_gib >= new.usable_gib and old.model != new.model:
        sentence = f"the model did not fit {known.too_small_gib:.1f} GiB, {hardware.name} has {new.usable_gib:.1f} GiB"
        return Reason(Code.MEMORY_TOO_SMALL, sentence)
    ratio_phi = old.phi(new)
    speed, host, ratio = _slower(at, known, hardware)
    same_chip, guessed = old.model == new.model, speed.source.is_guess
    fit = fit_on(at, hardware)
    fast = 1.0
    seen = speed.source.is_measured or known.latency_ratio is not None
    if not _holds(at, ratio, seen):
        room = gpu_room(at.demand, host, at.stretch)
        seen_here = at.outcomes
        fast = chance(room, ratio_phi, seen_here, weight(seen_here, at.policy)) if guessed and not same_chip else 0.0
        if known.latency_ratio is not None or (tried > 1 and (known.gpu_ratio is None or tried > 2)):
            fast = 0.0  # measured on exactly this type, or tests that told nothing
        elif same_chip:
            fast = 0.5  # only the bound of the host factor speaks against it
    if _dares(at, fast):
        fast = 1.0  # the change is the test: its guard and the days after it tell
    if fast <= 0 and fit > 0:
        return _too_slow(at, hardware, ratio, speed.source, seen)
    workers = workers_of(hardware, at.reference, at.demand, at.latency)
    busy = at.demand.load.mean_rate * at.latency.mean_s * ratio.mid / workers * 0.8
    least = float(price.usd_per_hour * HOURS_PER_MONTH) * max(busy, 1.0)
    if least >= 0.999 * at.ceiling and hardware.name != at.runs.name:
        return Reason(Code.NOT_CHEAPER, f"{hardware.name} would cost at least ${least:,.0f} a month")
    return Draft(hardware, price, speed, ratio, workers, fit, fast, known.started, least)


def _dares(at: Situation, chance: float) -> bool:
    """Whether a type with that chance of being fast enough is taken untested: no test would tell, the load is known.

    One request says nothing about the latency, and less about a slower type.
    """
    known = at.demand.requests >= at.policy.untested_requests
    untold = not at.policy.tests or at.told < at.policy.test_tells
    return known and untold and chance >= at.policy.untested_chance


def ratio_on(at: Situation, hardware: InstanceType) -> Ratio | None:
    """How much slower requests get on that type, in the middle and at the bound; None where one has no accelerator."""
    if at.reference.accelerator is None or hardware.accelerator is None:
        return None
    return _slower(at, _known(at, hardware), hardware)[2]


def fit_on(at: Situation, hardware: InstanceType) -> float:
    """The chance that the model starts and fits on that type, 0..1; 1 where a test or a change showed it."""
    return 1.0 if _known(at, hardware).started else _fit(at, hardware)


def _known(at: Situation, hardware: InstanceType) -> Lesson:
    return lesson(at.past, at.reference, hardware, at.given.catalogue.find, lambda t: _phi(at, t), at.links)


def _slower(at: Situation, known: Lesson, hardware: InstanceType) -> tuple[Slowdown, float, Ratio]:
    """Slowdown of the GPU's part, bound of the host's part, and both together."""
    speed = _speed(at, known, hardware)
    shown = threads(at.given.history, at.reference, at.given.catalogue.find, at.demand.gpu_share)
    host = host_factor(at.reference, hardware, at.demand, shown)
    return speed, host, ratio_of(at.demand, speed, host, known.latency_ratio, at.policy)


def _holds(at: Situation, ratio: Ratio, seen: bool) -> bool:
    """Whether the slowdown is within what the objective allows.

    A measured one has its bound only for the error of the measurement: its middle must hold, and at the bound a day
    must stay bearable. What is worse than twice the allowance shows within days, and the type before comes back.
    """
    return ratio.bound <= at.stretch or (seen and ratio.mid <= at.stretch and ratio.bound <= at.bearable)


def _too_slow(at: Situation, hardware: InstanceType, ratio: Ratio, source: SlowdownSource, seen: bool) -> Reason:
    worst = f", {at.bearable:.2f}-fold at worst" if ratio.mid <= at.stretch and seen else ""
    return Reason(
        Code.TOO_SLOW,
        f"{hardware.name} may be too slow: latency may grow {ratio.bound:.2f}-fold ({source}), and the p95 of"
        f" {at.goal.p95_s:.2f} s allows {at.stretch:.2f}-fold{worst}",
    )


def _limits(at: Situation, name: str, price: Price | None) -> Limits:
    """What is asked of a candidate beside the load; what runs already needs no room that was never asked of it."""
    room = at.policy.memory_room_smaller if name != at.runs.name else 0.0
    return Limits(price, at.given.quotas.get(name), room, runs_now=name in (at.runs.name, at.reference.name))


def _phi(at: Situation, hardware: InstanceType) -> float:
    old, new = at.reference.accelerator, hardware.accelerator
    return old.phi(new) if old and new else 1.0


def _resting(at: Situation, hardware: InstanceType, known: Lesson) -> Reason | None:
    if known.refuted is None or hardware.name == at.reference.name:
        return None
    times = failures(at.past.endpoint, hardware.name)
    if times < 2 and known.refuted.failure in ("alarm", LEFT) and _no_slower(at, hardware):
        return None
    if times < 2 and known.refuted.of_another(at.variant.model_name):
        return None  # a new version of the model; what failed twice is the type's fault
    until = resting(known.refuted, times, at.demand.load.peak_busy_gpus, at.policy, at.given.now)
    if until is None:
        return None
    elsewhere = known.refuted.no_start and known.refuted not in at.given.history.endpoint
    where = " behind another endpoint with the same model" if elsewhere else ""
    return Reason(
        Code.BLACKLISTED,
        f"{hardware.name} failed {'once' if times == 1 else f'{times} times'}, last on"
        f" {known.refuted.at:%Y-%m-%d}{where} ({known.refuted.failure or 'unknown cause'}); it is not tried again"
        f" before {until:%Y-%m-%d}",
    )


def _no_slower(at: Situation, hardware: InstanceType) -> bool:
    """Whether the hours on the type show no slower median: then the alarm had another cause."""
    there = latency_of([d for d in at.days if d.instance_type == hardware.name])
    return there is not None and there.p50_s <= FALSE_ALARM * at.latency.p50_s


def _speed(at: Situation, known: Lesson, hardware: InstanceType) -> Slowdown:
    old, new = at.reference.accelerator, hardware.accelerator
    assert old is not None
    assert new is not None
    if known.gpu_ratio is not None and old.model != new.model:
        error = at.policy.served_error if known.served else at.policy.measured_error
        return measured(old, new, known.gpu_ratio, error)
    bound, mid = width(at.outcomes, at.policy), middle(at.outcomes, at.policy)
    if known.other_q is not None:
        bound = min(bound, known.other_q * (1 + at.policy.other_type_spread))
    taught = bool(at.outcomes) or bound != at.policy.slowdown_bound
    return slowdown(old, new, at.policy, bound if taught else None, mid)


def _fit(at: Situation, hardware: InstanceType) -> float:
    """Probability that the model fits: certain with a known need, by the share of the card when it is unknown."""
    old, new = at.reference.accelerator, hardware.accelerator
    if old is None or new is None:
        return 0.0
    share = 0.8 if hardware.accelerator_count < at.reference.accelerator_count else 1.0
    if new.usable_gib >= old.usable_gib:
        return share
    memory = at.demand.memory
    if memory.need_gib is None:
        low = memory.lower_gib
        return share * max(0.0, min(0.95, (new.usable_gib - low) / max(old.usable_gib - low, 0.1)))
    return share
