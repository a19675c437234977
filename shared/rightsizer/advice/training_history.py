"""Advice from an account's finished training jobs: runs of the same work over types, and the type of the next run.

Prices are On-Demand list prices of hosting, which training shares within a cent where both are known.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from rightsizer.advice.answer import Action, AdviceReason, HardwareClass
from rightsizer.advice.market import TRAINING, Market, Offer, dollars
from rightsizer.advice.rules import Rule
from rightsizer.advice.running import MARGIN
from rightsizer.advice.training import SHORT_H, SPOT_SHARE
from rightsizer.domain.account_finding import (
    LEAST_USD,
    AccountFinding,
    AccountFindingCode,
    FindingItem,
    waits_for_nobody,
)
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.job import TrainingRun
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import CENT, HOURS_PER_MONTH
from rightsizer.domain.reason import count
from rightsizer.recommender.slowdown import expected_slowdown

UNUSED_PERCENT = 1.0
"""Mean use of a GPU below which the work runs on the CPU."""
LOW_PERCENT, HIGH_PERCENT = 40.0, 80.0
"""Mean use of a GPU below which a smaller one is looked for, and of vCPUs above which the host is the limit."""
WORTH = 0.15
"""Saving of a run from which another type is proposed; an assumption."""
SURE_RUNS, MOST_LONGER = 3, 2.0
"""Runs from which a measured type is proposed, tested below; and how many times as long its runs may take."""
SPOT_SAVES = f"{1 - SPOT_SHARE[1]:.0%}".replace("%", " %")
"""What Spot saves in the middle of its range, for people."""


@dataclass(frozen=True, slots=True)
class TypeResult:
    """Results of the runs of one work on one type and count."""

    instance_type: str
    count: int
    runs: int
    hours: float
    """Median duration."""
    usd: float
    """Median price of a run."""
    is_on_frontier: bool
    """Whether no other type was both quicker and cheaper."""


@dataclass(frozen=True, slots=True)
class TrainingFinding:
    """One thing to change for the next run."""

    action: Action
    instance_type: str
    """Type of the next run; empty where the type stays."""
    next_step: str
    """What to do, in one clause: ``use ml.c5.xlarge in place of ml.g5.xlarge``."""
    usd_per_run: float
    """Saving of one run, US dollars; that of a warm pool is of one run too."""
    reason: AdviceReason


@dataclass(frozen=True, slots=True)
class WorkAdvice:
    """The runs of one work: of one experiment, or jobs whose names differ in a stamp only."""

    name: str
    owner: str
    """Person or team that the tags of the newest run name; empty when nobody is."""
    is_opted_out: bool
    """Whether the tag `rightsizer:mode` of the newest run says off: nothing is proposed then."""
    is_processing: bool
    """Whether its runs are processing jobs."""
    runs: int
    failed: int
    interruptions: int
    usd: float
    """Price of all runs in the window."""
    unpriced: tuple[str, ...]
    """Types of its runs whose price is not known; these runs are in no figure of cost."""
    results: tuple[TypeResult, ...]
    findings: tuple[TrainingFinding, ...]

    @property
    def saving_usd(self) -> float:
        """Saving of the largest finding in the window; findings are not added up."""
        return max((finding.usd_per_run for finding in self.findings), default=0.0) * self.runs


def advise_runs(runs: Iterable[TrainingRun], market: Market) -> tuple[WorkAdvice, ...]:
    """Each work with its frontier of cost and time and its findings, the most expensive first.

    Runs of one experiment are one work whatever their names; else those whose names differ in a stamp only.
    """
    named: dict[tuple[str, bool], list[TrainingRun]] = defaultdict(list)
    for run in runs:
        named[run.work, run.is_processing].append(run)
    found = [_work(name, each, market) for (name, _), each in named.items()]
    return tuple(sorted(found, key=lambda work: (-work.usd, work.name)))


def training_finding(work: Iterable[WorkAdvice], jobs: int, days: float) -> AccountFinding | None:
    """Changes for the next runs of an account, as one finding of its bill; None where nothing saves.

    Warm pools are a finding of their own. Of each work the change that saves most counts, by the month.
    """
    items, kinds = [], "training"
    for each in work:
        changes = [
            finding for finding in each.findings if finding.usd_per_run > 0 and finding.reason.source != Rule.WARM_POOL
        ]
        if not changes:
            continue
        best = max(changes, key=lambda finding: finding.usd_per_run)
        month = Decimal(str(best.usd_per_run * each.runs)) * HOURS_PER_MONTH / 24 / Decimal(str(days))
        kinds = "training and processing" if each.is_processing else kinds
        why = f"{best.reason.text}; {count(each.runs, 'run')} in {days:.0f} days"
        usd = month.quantize(CENT)
        items.append(FindingItem(each.name, why, usd_per_month=usd, owner=each.owner, next_step=best.next_step))
    total = sum((item.usd_per_month or Decimal(0) for item in items), Decimal(0))
    if total < LEAST_USD:
        return None
    works = f"{kinds} {'work' if len(items) == 1 else 'works'}"
    return AccountFinding(
        AccountFindingCode.TRAINING_RUNS,
        f"the next runs of {len(items)} {works} can cost less",
        total,
        "change the next run of each, and compare; `rightsizer training` shows the runs",
        evidence={"looked at": f"{jobs} jobs of {days:.0f} days", "priced by": "the On-Demand hosting price"},
        items=tuple(sorted(items, key=lambda item: (-(item.usd_per_month or Decimal(0)), item.name))),
        not_checked=("the quality of the result on another type", "tuning limits and deadlines of the work"),
    )


def _work(name: str, runs: Sequence[TrainingRun], market: Market) -> WorkAdvice:
    done = [run for run in runs if run.job.status == "Completed" and run.hours > 0]
    newest = max(runs, key=lambda run: run.job.created_at).job
    is_opted_out = newest.mode is Mode.OFF
    findings = [] if is_opted_out else [*_lacking(runs, market), *_findings(runs, done, market)]
    return WorkAdvice(
        name,
        newest.owner,
        is_opted_out,
        runs[0].is_processing,
        len(runs),
        sum(1 for run in runs if run.job.status == "Failed"),
        sum(run.job.interruptions for run in runs),
        sum(_usd(run, market) or 0.0 for run in runs),
        tuple(sorted({run.job.instance_type for run in runs if market.find(run.job.instance_type) is None})),
        tuple(_results(done, market)),
        tuple(sorted(findings, key=lambda finding: -finding.usd_per_run)),
    )


def _results(done: Sequence[TrainingRun], market: Market) -> Iterator[TypeResult]:
    rows = []
    ordered = sorted(done, key=_placement)
    for (kind, hosts), runs in groupby(ordered, key=_placement):
        group = list(runs)
        prices = [usd for run in group if (usd := _usd(run, market)) is not None]
        if prices:
            hours = statistics.median(run.hours for run in group)
            rows.append((kind, hosts, len(group), hours, statistics.median(prices)))
    for row in sorted(rows, key=lambda each: each[4]):
        beaten = any(other[3] <= row[3] and other[4] <= row[4] and other != row for other in rows)
        yield TypeResult(*row, not beaten)


def _placement(run: TrainingRun) -> tuple[str, int]:
    return run.job.instance_type, run.job.instance_count


def _usd(run: TrainingRun, market: Market) -> float | None:
    """US dollars of a run; Spot by its billable seconds, which carry the discount; with its warm pool."""
    offer = market.find(run.job.instance_type)
    return None if offer is None else offer.hourly * (run.billed_hours + run.retained_hours)


def _findings(runs: Sequence[TrainingRun], done: Sequence[TrainingRun], market: Market) -> Iterator[TrainingFinding]:
    """What to change, by the runs on the type that was used last."""
    if not done:
        return
    newest = max(done, key=lambda run: run.job.created_at)
    last = [run for run in done if _placement(run) == _placement(newest)]
    offer = market.find(newest.job.instance_type)
    if offer is None:
        return
    too_small = {_placement(run) for run in runs if run.lacked_memory}
    yield from _measured_type([run for run in done if _placement(run) not in too_small], last, offer, market)
    tried = {run.job.instance_type for run in done}
    yield from (finding for finding in _type(last, offer, market) if finding.instance_type not in tried)
    if not newest.is_processing:
        yield from _spot(last, offer)
        yield from _warm_pool(last, offer)


def _measured_type(
    done: Sequence[TrainingRun], last: Sequence[TrainingRun], offer: Offer, market: Market
) -> Iterator[TrainingFinding]:
    """The cheapest type that this work ran on and that costs clearly less a run, Spot and On-Demand counted alike."""
    now, hosts_now = _instance_hours(last), last[0].job.instance_count
    best: tuple[float, Offer, list[TrainingRun]] | None = None
    for placement, some in groupby(sorted(done, key=_placement), key=_placement):
        runs, other = list(some), market.find(placement[0])
        if other is None or placement == _placement(last[0]) or _took(runs) > MOST_LONGER * _took(last):
            continue
        share = 1 - other.hourly * _instance_hours(runs) / (offer.hourly * now)
        if share > WORTH and (best is None or share > best[0]):
            best = (share, other, runs)
    if best is None:
        return
    share, other, runs = best
    hosts = runs[0].job.instance_count
    text = f"{count(len(runs), 'run')} of it on {hosts} × {other.type.name} took {_took(runs):.1f} h and cost"
    text += f" {100 * share:.0f} % less than those on {hosts_now} × {offer.type.name}, which took {_took(last):.1f} h"
    action, verb = (Action.PROPOSE, "use") if len(runs) >= SURE_RUNS else (Action.TEST, "try")
    step = f"{verb} {hosts} × {other.type.name} in place of {hosts_now} × {offer.type.name}"
    saving = share * offer.hourly * _hours(last)
    yield TrainingFinding(action, other.type.name, step, saving, AdviceReason(text, Rule.MEASURED_RUNS))


def _took(runs: Sequence[TrainingRun]) -> float:
    """Median hours of a run."""
    return statistics.median(run.hours for run in runs)


def _instance_hours(runs: Sequence[TrainingRun]) -> float:
    return _took(runs) * runs[0].job.instance_count


def _lacking(runs: Sequence[TrainingRun], market: Market) -> Iterator[TrainingFinding]:
    """A type with more memory where runs on the type that was used last ran out of it."""
    newest = max(runs, key=lambda run: run.job.created_at)
    last = [run for run in runs if _placement(run) == _placement(newest)]
    failed, offer = [run for run in last if run.lacked_memory], market.find(newest.job.instance_type)
    if not failed or offer is None:
        return
    chip, classes = offer.type.accelerator, (HardwareClass.CPU_GEN, HardwareClass.CPU_COMP, HardwareClass.CPU_MEM)
    wanted = (HardwareClass.GPU_G, HardwareClass.GPU_P) if chip else classes
    for other in market.offers(wanted, TRAINING):
        card = other.type.accelerator
        more = card.usable_gib > chip.usable_gib if card and chip else other.type.memory_gib > offer.type.memory_gib
        if more and (not chip or other.type.accelerator_count >= offer.type.accelerator_count):
            text = f"{len(failed)} of {len(last)} runs on {offer.type.name} failed for lack of memory;"
            text += f" USD {dollars(other.hourly)} an hour in place of {dollars(offer.hourly)}"
            yield _other_type(Action.TEST, offer, other, 0.0, AdviceReason(text, Rule.TRAINING_MEMORY))
            return


def _other_type(action: Action, now: Offer, other: Offer, saving: float, reason: AdviceReason) -> TrainingFinding:
    verb = "try" if action is Action.TEST else "use"
    step = f"{verb} {other.type.name} in place of {now.type.name}"
    return TrainingFinding(action, other.type.name, step, saving, reason)


def _type(last: Sequence[TrainingRun], offer: Offer, market: Market) -> Iterator[TrainingFinding]:
    """Another type for the next run: CPU where the GPU does nothing, a smaller GPU or host where little is used."""
    gpus, chip = max(1, offer.type.accelerator_count), offer.type.accelerator
    busy = _mean(run.gpu for run in last)
    if chip is None:
        yield from _smaller_host(last, offer, market)
        return
    if busy is None:
        return
    use = busy / gpus
    if use < UNUSED_PERCENT:
        yield from _without_gpu(last, offer, market)
        return
    cpu = _mean(run.cpu for run in last)
    if use < HIGH_PERCENT and cpu is not None and cpu / offer.type.vcpu > HIGH_PERCENT:
        full = cpu / offer.type.vcpu
        text = f"GPUs are busy {use:.0f} % while {full:.0f} % of the vCPUs are: the host feeds too slowly"
        step = "try a larger size of the family, or preprocess in a job of its own"
        yield TrainingFinding(Action.TEST, "", step, 0.0, AdviceReason(text, Rule.PREPROCESSING_ON_CPU))
        return
    if use < LOW_PERCENT:
        yield from _smaller_gpu(last, offer, market, use)


def _without_gpu(last: Sequence[TrainingRun], offer: Offer, market: Market) -> Iterator[TrainingFinding]:
    """The cheapest CPU type with the vCPUs that were busy and the memory that was held."""
    vcpu = max(2.0, MARGIN * (_most(run.cpu for run in last) or 0.0) / 100)
    held = MARGIN * (_most(run.memory for run in last) or 100.0) / 100 * offer.type.memory_gib
    for other in market.offers((HardwareClass.CPU_GEN, HardwareClass.CPU_COMP), TRAINING):
        if other.type.vcpu >= vcpu and other.type.memory_gib >= held and other.type.cpu_arch == "x86_64":
            saving = _hours(last) * (offer.hourly - other.hourly)
            text = f"the GPU did nothing; {vcpu:.1f} vCPUs and {held:.0f} GiB were used with margin"
            if saving > WORTH * _hours(last) * offer.hourly:
                yield _other_type(Action.PROPOSE, offer, other, saving, AdviceReason(text, Rule.CLASSICAL_ON_CPU))
            return


def _smaller_host(last: Sequence[TrainingRun], offer: Offer, market: Market) -> Iterator[TrainingFinding]:
    cpu, memory = _most(run.cpu for run in last), _most(run.memory for run in last)
    if cpu is None or memory is None:
        return
    vcpu, held = max(2.0, MARGIN * cpu / 100), MARGIN * memory / 100 * offer.type.memory_gib
    for other in market.offers((HardwareClass.CPU_GEN, HardwareClass.CPU_COMP, HardwareClass.CPU_MEM), TRAINING):
        fits = other.type.vcpu >= vcpu and other.type.memory_gib >= held and other.type.cpu_arch == "x86_64"
        saving = _hours(last) * (offer.hourly - other.hourly)
        if fits and saving > WORTH * _hours(last) * offer.hourly:
            text = f"{cpu / 100:.1f} of {offer.type.vcpu} vCPUs on average and {memory:.0f} % of the memory were used"
            yield _other_type(Action.TEST, offer, other, saving, AdviceReason(text, Rule.CLASSICAL_ON_CPU))
            return


def _smaller_gpu(last: Sequence[TrainingRun], offer: Offer, market: Market, use: float) -> Iterator[TrainingFinding]:
    """The cheapest run on one GPU that holds the highest memory, by the middle of the slowdown."""
    held, chip = _most(run.gpu_memory for run in last), offer.type.accelerator
    if held is None or chip is None:
        return
    gpus = max(1, offer.type.accelerator_count)
    need = MARGIN * held / 100 * chip.memory_gib / (1 if gpus == 1 else gpus)
    busy = max(1.0, use / 100 * gpus)
    best: tuple[float, Offer, float] | None = None
    for other in market.offers((HardwareClass.GPU_G,), TRAINING):
        card = other.type.accelerator
        if card is None or other.type.accelerator_count != 1 or card.usable_gib < need:
            continue
        longer = busy * max(1.0, expected_slowdown(chip, card, Policy()).mid)
        saving = _hours(last) * (offer.hourly - other.hourly * longer)
        if saving > WORTH * _hours(last) * offer.hourly and (best is None or saving > best[0]):
            best = (saving, other, longer)
    if best is not None:
        saving, other, longer = best
        text = f"GPUs are busy {use:.0f} % and {need:.1f} GiB is needed with margin;"
        text += f" the run may take {longer:.1f} times as long"
        yield _other_type(Action.TEST, offer, other, saving, AdviceReason(text, Rule.LOW_USE_IS_A_HINT))


def _spot(last: Sequence[TrainingRun], offer: Offer) -> Iterator[TrainingFinding]:
    """Spot where all runs were On-Demand and a run can go on, or starts again cheaply."""
    if any(run.job.spot for run in last):
        return
    hours = statistics.median(run.hours for run in last)
    able = all(run.job.checkpoint_uri for run in last)
    saving = _hours(last) * offer.hourly * (1 - SPOT_SHARE[1])
    if able or hours <= SHORT_H:
        why = "the jobs write checkpoints" if able else f"a run of {hours:.1f} h starts again cheaply"
        text = f"{why}, and all of them ran On-Demand; Spot costs about {SPOT_SAVES} less"
        cited = f"{Rule.SPOT_NEEDS_CHECKPOINTS}, {Rule.SPOT_DISCOUNT}"
        yield TrainingFinding(Action.PROPOSE, "", "use managed Spot", saving, AdviceReason(text, cited))
    else:
        text = f"all runs were On-Demand; with checkpoints managed Spot could cost about {SPOT_SAVES} less"
        yield TrainingFinding(
            Action.TEST, "", "write checkpoints", 0.0, AdviceReason(text, Rule.SPOT_NEEDS_CHECKPOINTS)
        )


def _warm_pool(last: Sequence[TrainingRun], offer: Offer) -> Iterator[TrainingFinding]:
    kept = [run for run in last if run.retained_hours > 0]
    reused = sum(1 for run in kept if run.is_reused)
    if not waits_for_nobody(reused, len(kept)):
        return
    waste = sum(run.retained_hours for run in kept if not run.is_reused) * offer.hourly / len(last)
    text = f"{reused} of {len(kept)} warm pools were taken over by another run"
    step = "set the keep-alive to 0 where no run follows"
    yield TrainingFinding(Action.PROPOSE, "", step, waste, AdviceReason(text, Rule.WARM_POOL))


def _hours(runs: Sequence[TrainingRun]) -> float:
    """Median instance hours that one run is billed for."""
    return statistics.median(run.billed_hours for run in runs)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
