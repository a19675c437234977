"""Days after a recommendation, served by the replay on the recommended fleet.

They tell whether a fleet that never ran would have held, and how often.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.domain.backtest import Backtest, BacktestChange, Calibration, Hindsight, HindsightVerdict
from rightsizer.domain.demand import Fleet, MemoryClass, ReplayResult, Stream
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import History
from rightsizer.domain.option import LatencyObjective, Option
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import CENT, HOURS_PER_MONTH
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import BIN, DailyUsage, busy_days
from rightsizer.recommender.candidates import fit_chance, latency_ratio_on
from rightsizer.recommender.context import AccountInputs, EvaluationContext
from rightsizer.recommender.fit import memory_need
from rightsizer.recommender.fleet_size import fleet_of_option
from rightsizer.recommender.pricing import kept_by_commitment, monthly_cost, share_commitment
from rightsizer.recommender.replay import replay_of, replay_requests, stream_of
from rightsizer.recommender.workload import evaluation_context


@dataclass(frozen=True, slots=True)
class FleetMove:
    """A fleet that never ran: the endpoint on it, the option, and the endpoint that really ran."""

    real: Endpoint
    then: Endpoint
    option: Option
    goal: LatencyObjective | None
    """The latency to keep, as the recommendation knew it; None: as the days themselves show it."""


@dataclass(frozen=True, slots=True)
class LaterDay:
    """One day on a fleet that never ran; parts of requests are chance, averaged."""

    usage: DailyUsage
    requests: float
    late: float
    """At the bound of the slowdown."""
    likely: float
    """At its middle."""
    before: float
    """On the fleet that really ran."""
    rings_alarm: bool
    """Whether the guard of a change would more likely than not have rung, and not on the fleet that really ran."""
    worst_p95_s: float
    """At the bound."""
    instances: float
    """On average, what autoscaling adds included."""
    hourly: tuple[float, ...]
    """24 counts by hour of the day UTC."""
    peak_gib: float | None
    """GPU memory that was in use; None where that tells nothing about the need."""


@dataclass(frozen=True, slots=True)
class LaterFleet:
    """Fleet that serves the days after: two of them, for the bounds of another type's slowdown."""

    at: EvaluationContext
    hardware: InstanceType
    middle: Fleet
    bound: Fleet

    @property
    def usable_gib(self) -> float | None:
        """GPU memory of its card; None where that is no smaller than today's."""
        old, new = self.at.runs.accelerator, self.hardware.accelerator
        return new.usable_gib if old and new and new.usable_gib < old.usable_gib else None

    def replay_day(self, usage: DailyUsage) -> LaterDay:
        """Results of that day on this fleet and on the fleet that really ran."""
        context = self.at
        stream = stream_of([usage], context.service_times, context.policy.replay_requests)
        before = self._replay(stream, Fleet(_hourly_counts(usage, context), context.workers, context.random_base, 1.0))
        likely, slowest = (fleet.on(usage.day.weekday()) for fleet in (self.middle, self.bound))
        bound = self._replay(stream, slowest)
        middle = bound if likely == slowest else self._replay(stream, likely)
        chances = stream.copies
        return LaterDay(
            usage,
            usage.request_count,
            _late_requests(bound, usage),
            _late_requests(middle, usage),
            _late_requests(before, usage),
            2 * middle.rings_alarm > chances >= 2 * before.rings_alarm,
            bound.worst_p95_s,
            middle.mean_instances,
            (middle.mean_instances,) * 24 if likely.maximum else tuple(map(float, likely.counts)),
            self._peak(usage),
        )

    def _replay(self, stream: Stream, fleet: Fleet) -> ReplayResult:
        at = self.at
        return replay_requests(stream, fleet, at.objective.p95_s, at.alarm_share, at.alarm_s)

    def _peak(self, usage: DailyUsage) -> float | None:
        if self.at.demand.memory.kind in (MemoryClass.PREALLOCATED, MemoryClass.UNKNOWN) or not usage.gpu_memory:
            return None
        need = memory_need([usage], self.at.inputs.catalogue, self.at.policy, "", None)
        return need.peak_gib


def later_fleet(moved: FleetMove, days: Sequence[DailyUsage], inputs: AccountInputs) -> LaterFleet | Reason:
    """Fleet that serves these days, as they really were, or why none can be computed.

    The service times are those of the days themselves on the type that really ran: not a forecast, and no knowledge
    that the recommendation had.
    """
    hardware = inputs.catalogue.find(moved.option.target.instance_type)
    context = evaluation_context(moved.real, days, replace(inputs, history=History()))
    ratio = latency_ratio_on(context, hardware) if context is not None and hardware is not None else None
    if context is None or hardware is None or ratio is None:
        sentence = "no whole day after it yet" if not days else "no latency was published on the days after it"
        return Reason(Code.CANNOT_TELL, sentence)
    goal = moved.goal or context.objective
    context = replace(context, endpoint=moved.then, objective=goal, _replays={}, _of_days={})
    middle, bound = (fleet_of_option(context, moved.option, hardware, slower) for slower in (ratio.mid, ratio.bound))
    return LaterFleet(context, hardware, middle, bound)


def hindsight(
    moved: FleetMove,
    found: LaterFleet | Reason,
    served: Sequence[LaterDay],
    days: Sequence[DailyUsage],
    inputs: AccountInputs,
) -> Hindsight:
    """Summary of the days together.

    `days` are those on the fleet; `served` has each where it could be told.
    """
    saved = _saved_usd(moved, days, [d.instances for d in served] if served else None, inputs)
    if isinstance(found, Reason) or not served:
        why = found if isinstance(found, Reason) else Reason(Code.CANNOT_TELL, "no whole day after it yet")
        verdict, why = hindsight_verdict(None, why, inputs.policy)
        return Hindsight(len(days), round(_requests(days)), None, None, None, None, None, saved, verdict, why)
    late, likely, before = (round(sum(v)) for v in zip(*((d.late, d.likely, d.before) for d in served), strict=True))
    peak, chip = max((d.peak_gib or 0.0 for d in served), default=0.0), found.hardware.accelerator
    margin = chip.usable_gib - peak if chip and peak else None
    requests = round(_requests(days))
    moves = found.middle != found.bound
    fits = found.usable_gib is None or peak <= found.usable_gib
    outgrown = None if fits else (peak, found.usable_gib or 0.0)
    fit = fit_chance(found.at, found.hardware)
    dates = len({d.day for d in busy_days(days)})
    figures = LaterFigures(requests, late, likely, before, moves, found.at.objective.declared, dates, outgrown, fit)
    verdict, why = hindsight_verdict(figures, None, inputs.policy)
    service = sum(value * share for value, share in found.at.service_times) * found.bound.slower
    goal = found.at.objective.p95_s
    then, ran = ReplayResult(requests, late, max(d.worst_p95_s for d in served)), ReplayResult(requests, before, 0.0)
    strain = replay_of(days, service, found.bound, (then, ran), goal, margin)
    return Hindsight(len(days), requests, late, likely, before, goal, strain, saved, verdict, why)


def usage_as_served(day: LaterDay, objective_s: float) -> DailyUsage:
    """Daily usage on the fleet: its instances, and its late requests on top of the observed latency.

    The rest stays what the real fleet published: utilisation and memory of a fleet that never ran are not known.
    """
    usage, total = day.usage, sum(weight for _, weight in day.usage.latency)
    share = min(max(day.likely - day.before, 0.0) / max(day.requests, 1.0), 1.0)
    bins = {index: weight * (1 - share) for index, weight in usage.latency}
    over = math.ceil(math.log(max(objective_s, 0.001) * 1000) / math.log(BIN)) + 1
    if share:
        bins[over] = bins.get(over, 0.0) + share * total
    seconds = usage.latency_total_s * (1 - share) + share * total * objective_s * BIN
    return replace(usage, latency=tuple(sorted(bins.items())), latency_total_s=seconds, instances=day.hourly)


def _hourly_counts(usage: DailyUsage, context: EvaluationContext) -> tuple[int, ...]:
    """The instances that really ran, by hour; those of the days around where they are not known."""
    known = zip(usage.instances, context.reference_counts, strict=True)
    return tuple(max(1, math.ceil(seen - 0.01)) if seen else usual for seen, usual in known)


def _late_requests(served: ReplayResult, usage: DailyUsage) -> float:
    """Late requests of the day: those that were kept, or served several times, speak for the others."""
    speaks = usage.request_count / served.requests if served.requests else 0.0
    return min(served.late_in_backlog + (served.late - served.late_in_backlog) * speaks, usage.request_count)


def _requests(days: Sequence[DailyUsage]) -> float:
    return sum(d.request_count for d in days)


def _saved_usd(
    moved: FleetMove, days: Sequence[DailyUsage], instances: Sequence[float] | None, inputs: AccountInputs
) -> Decimal:
    """US dollars of these days against the fleet that really ran, net of commitments, less the switch."""
    variant, option = moved.real.variants[0], moved.option
    price = inputs.prices.find(variant.instance_type)
    if price is None or not days:
        return -option.switch_usd if days else Decimal(0)
    ran = 0.0
    for usage in days:
        known = [c for c in usage.instances if c is not None]
        ran += sum(known) / len(known) if known else variant.current_count
    planned = option.mean_instances or option.target.mean_count
    runs = sum(instances) if instances is not None else planned * len(days)
    spent = price.usd_per_hour * Decimal(str(round(ran, 4))) - option.price.usd_per_hour * Decimal(str(round(runs, 4)))
    month = spent / len(days) * HOURS_PER_MONTH
    now_usd = monthly_cost(price, ran / len(days))
    plan = share_commitment(inputs.prices.commitment, now_usd, inputs.history.gpu_usd_per_month)
    net = (month - kept_by_commitment(month, now_usd, plan)) * 24 * len(days) / HOURS_PER_MONTH
    return (net - option.switch_usd).quantize(CENT)


@dataclass(frozen=True, slots=True)
class LaterFigures:
    """Requests of the days after, and how many of them missed the objective."""

    requests: int
    late: int
    """At the bound of the slowdown."""
    likely: int
    """At its middle."""
    before: int
    """On the fleet that really ran."""
    moves: bool
    """Whether the slowdown has a middle and a bound: the instance type is another one."""
    declared: bool
    """Whether the owner declared the objective."""
    days: int
    """On so many days."""
    outgrown: tuple[float, float] | None = None
    """GiB in use and GiB of the smaller card, where the one is more than the other."""
    fits: float = 1.0
    """Chance that the model starts and fits where it never ran, 0..1."""


def hindsight_verdict(
    told: LaterFigures | None, unknown: Reason | None, policy: Policy
) -> tuple[HindsightVerdict, Reason]:
    """The verdict with its numbers; `unknown` says why nothing is told.

    As many more requests may be late as a choice may cause in its own replay (`late_allowed`). At the bound of the
    slowdown nothing less held; beyond that at its middle, it did not.
    """
    if told is None or told.requests < policy.requests_needed:
        few = f"{told.requests if told else 0} requests came, {policy.requests_needed} are needed to tell"
        return HindsightVerdict.UNKNOWN, unknown or Reason(Code.CANNOT_TELL, few)
    if told.outgrown is not None:
        peak, usable = told.outgrown
        sentence = f"{peak:.1f} GiB per GPU were in use on the days after, its card offers {usable:.1f} GiB"
        return HindsightVerdict.NO_MEMORY, Reason(Code.MEMORY_TOO_SMALL, sentence)
    share = policy.late_allowed(
        policy.excess_share, told.declared, told.before / told.requests, told.requests, told.days
    )
    most = told.before + share * told.requests
    may = f"{told.before:,} on the fleet that ran; {100 * share:.2g} % more may be"
    if told.late <= most and told.fits < 1:
        sentence = (
            f"only a start tells whether the model fits ({100 * told.fits:.0f} % likely); {told.late:,} late, {may}"
        )
        return HindsightVerdict.UNKNOWN, Reason(Code.CANNOT_TELL, sentence)
    if told.late <= most:
        where = " even at the bound of its slowdown" if told.moves else ""
        return HindsightVerdict.HELD, Reason(Code.WOULD_HOLD, f"{_share_text(told.late, told)} late{where}, {may}")
    if told.likely > most:
        where = " at the likely slowdown" if told.moves else ""
        return HindsightVerdict.LATE, Reason(Code.WOULD_BE_LATE, f"{_share_text(told.likely, told)} late{where}, {may}")
    sentence = (
        f"it depends on how fast the type is: {_share_text(told.likely, told)} late at the likely slowdown,"
        f" {told.late:,} at its bound, {may}"
    )
    return HindsightVerdict.UNKNOWN, Reason(Code.CANNOT_TELL, sentence)


def _share_text(late: int, figures: LaterFigures) -> str:
    return f"{late:,} of {figures.requests:,} requests ({100 * late / figures.requests:.2f} %)"


def calibrate(tried: Sequence[Backtest], policy: Policy) -> Calibration:
    """Promises against what the days after show. What restores an earlier fleet promises nothing, and is left out."""
    changes = [c for backtest in tried for c in backtest.changes if not c.option.restores]
    told = [c for c in changes if c.after.verdict is not HindsightVerdict.UNKNOWN]
    harm = [0.0 if c.after.verdict is HindsightVerdict.HELD and c.taken_back is None else 1.0 for c in told]
    stated = [policy.stated_chance(c.option.performance_risk)[1] for c in told]
    known = [(c.promised_late, c.after.late, c.after.requests) for c in changes]
    late = [(promise, seen, n) for promise, seen, n in known if promise is not None and seen is not None]
    calls = sum(n for _, _, n in late)
    replayed = [c for c in changes if c.after.was_replayed]
    return Calibration(
        changes=len(changes),
        told=len(told),
        held=harm.count(0.0),
        replayed=len(replayed),
        brier=_mean([(p - h) ** 2 for p, h in zip(stated, harm, strict=True)]),
        brier_without=_mean(harm),
        promised_late=sum(promise * n for promise, _, n in late) / calls if calls else None,
        seen_late=sum(seen for _, seen, _ in late) / calls if calls else None,
        promised_usd=sum((_promised_usd(c) for c in replayed), Decimal(0)).quantize(CENT),
        saved_usd=sum((c.after.saved_usd for c in replayed), Decimal(0)).quantize(CENT),
        regret_usd=sum((b.missed.regret_usd for b in tried if b.missed), Decimal(0)).quantize(CENT),
    )


def _promised_usd(change: BacktestChange) -> Decimal:
    """US dollars that the promised saving comes to over the days that the change stood, less the switch."""
    return change.option.saving_usd_per_month * 24 * change.after.days / HOURS_PER_MONTH - change.option.switch_usd


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
