"""Options of training and fine-tuning on accelerators: plan, duration, price, Spot and the way to Trainium."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rightsizer.advice.answer import (
    Action,
    AdviceReason,
    AdvisedOption,
    Estimate,
    HardwareClass,
    Hosting,
    Purchase,
    Refused,
)
from rightsizer.advice.market import TRAINING, Market, dollars
from rightsizer.advice.memory import Method, Optimiser, training_memory
from rightsizer.advice.plans import TrainingPlan, joins_nodes, operations, plan_of, smallest_plan, training_model
from rightsizer.advice.rules import Rule
from rightsizer.advice.serving import MANY, may_compile
from rightsizer.advice.throughput import Interval
from rightsizer.advice.workload import Goal, ModelKind, Workload
from rightsizer.recommender.other_endpoint import TRAINING_PHASES

TIE = 1.15
"""Plans whose price for an operation is within this factor of the lowest count as equal: utilisation is a range."""
SMALL_MODEL = 1e9
"""Parameters below which loading of data and not operations fills the time, so that the price of an hour decides."""
WORKING_DAY_H = 8.0
"""Hours of an adapter's run on one accelerator, in the middle of its range, up to which it goes first (rule T3)."""
SPOT_SHARE = (0.25, 0.40, 0.80)
"""What Spot costs of On-Demand: 60 to 70 % off is typical (weak evidence), AWS names 90 % at most."""
LOST_HOURS = 0.5
"""Work and start that one interruption costs, with a checkpoint each half hour."""
LONGEST_JOB_H, LONGEST_WAIT_H = 672.0, 720.0
"""Hours that a training job runs at most, 28 days, and that it may take with its waits, 30 days (rule P10)."""
SHORT_H = 1.0
"""Hours that a run without checkpoints may take so that starting it again is no loss worth mentioning (rule P2)."""


def training_options(workload: Workload, market: Market) -> tuple[list[AdvisedOption], list[Refused]]:
    """Plans in the order of the goal, and types that cannot hold the model."""
    plans, refused = _plans(workload, market)
    ranked = _ranked(plans, workload)
    baseline = _baseline(plans)
    options = [_option(plan, workload, baseline) for plan in ranked]
    if len(ranked) > 1 and _is_tied(ranked[0], ranked, workload):
        tie = AdviceReason(
            "others cost the same for an operation within 15 %, so the cheaper hour comes first", Rule.TIED_PLANS
        )
        options[0] = replace(options[0], reasons=(*options[0].reasons, tie))
    return options, refused


def _is_tied(first: TrainingPlan, plans: Sequence[TrainingPlan], workload: Workload) -> bool:
    """Whether the first plan came first by its hour and not by the price of an operation."""
    by_hour = workload.objectives.goal in (Goal.PERFORMANCE, Goal.EXPERIMENT)
    if by_hour or _hour_decides(workload) or _is_short_run(first, workload):
        return False
    return any(plan is not first and plan.usd_per_exaflop <= TIE * first.usd_per_exaflop for plan in plans)


def _hour_decides(workload: Workload) -> bool:
    """Whether the price of an hour ranks the plans: small models, and adapters over data of unknown size (rule T3)."""
    goals = workload.objectives
    adapters = workload.model.method is not Method.FULL and workload.trained_tokens is None
    return (workload.model.size or 0) < SMALL_MODEL or (adapters and goals.deadline_hours is None)


def _is_short_run(plan: TrainingPlan, workload: Workload) -> bool:
    """Whether one accelerator trains the adapters within a working day: simpler, for a few dollars more (rule T3)."""
    tokens = workload.trained_tokens
    if plan.devices > 1:
        return False
    if tokens is None or workload.model.method is Method.FULL or workload.objectives.goal is not Goal.BALANCED:
        return False
    return plan.hours(operations(workload.model, tokens)).middle <= WORKING_DAY_H


def _plans(workload: Workload, market: Market) -> tuple[list[TrainingPlan], list[Refused]]:
    """The best plan of each family."""
    classes = [HardwareClass.GPU_G, HardwareClass.GPU_P]
    language = workload.model.kind in (ModelKind.LLM, ModelKind.TRANSFORMER)
    if may_compile(workload) and language and workload.model.framework in ("", "pytorch", "tensorflow"):
        classes.append(HardwareClass.TRN)
    model, least = training_model(workload.model), 2 if workload.constraints.several_nodes else 1
    best: dict[str, TrainingPlan] = {}
    refused: dict[str, Refused] = {}
    for offer in market.offers(classes, TRAINING):
        plan = smallest_plan(offer, model, least)
        family = offer.type.family
        if plan is None:
            refused.setdefault(
                family, Refused(offer.type.name, AdviceReason(_too_small(offer.type.name, market, workload)))
            )
        else:
            plan = _within_deadline(plan, workload)
            key = _rank_key(workload)
            if family not in best or key(plan) < key(best[family]):
                best[family] = plan
    small = HardwareClass.TRN in classes and market.find("ml.trn1.2xlarge")
    if small and smallest_plan(small, model) is None:
        text = _too_small("ml.trn1.2xlarge", market, workload)
        refused["trn1.2xlarge"] = Refused("ml.trn1.2xlarge", AdviceReason(text, Rule.TRAINING_MEMORY))
    kept = [each for family, each in refused.items() if family not in best]
    return list(best.values()), kept


def _too_small(name: str, market: Market, workload: Workload) -> str:
    """Why the type does not hold the model, in figures."""
    offer = market.find(name)
    chip = offer.type.accelerator if offer else None
    if offer is None or chip is None:
        return f"{name} has no accelerator"
    need = training_memory(training_model(workload.model)).states_gib
    have = f"{offer.type.accelerator_count} x {chip.usable_gib:g} GiB" if offer.type.accelerator_count > 1 else ""
    offers = have or f"{chip.usable_gib:g} GiB"
    if workload.model.method.value != "full":
        return f"{name} offers {offers}, too little for {workload.model.method.value} of this model"
    return f"{name} offers {offers} usable, weights, gradients and optimiser take {need:.0f} GiB before activations"


def too_small(name: str, market: Market, workload: Workload) -> str | None:
    """Why the type cannot train the model, with as many nodes as may join, or None where it can."""
    offer = market.find(name)
    if offer is None or offer.type.accelerator is None:
        return None
    return None if smallest_plan(offer, training_model(workload.model)) else _too_small(name, market, workload)


def _within_deadline(plan: TrainingPlan, workload: Workload) -> TrainingPlan:
    """The plan with as many nodes as the deadline asks for; itself where it cannot be met or nothing is asked."""
    deadline, tokens = workload.objectives.deadline_hours, workload.trained_tokens
    if deadline is None or tokens is None:
        return plan
    needed = operations(workload.model, tokens)
    model, nodes = training_model(workload.model), plan.nodes
    while joins_nodes(plan.offer) and nodes < 64 and plan.hours(needed).high > deadline:
        nodes *= 2
        plan = plan_of(plan.offer, model, nodes) or plan
    return plan


def _rank_key(workload: Workload) -> Callable[[TrainingPlan], tuple[float, ...]]:
    """Sort key of single plans: those surely within the deadline, those that may be, late ones; then the goal."""
    deadline, tokens, objective = workload.objectives.deadline_hours, workload.trained_tokens, workload.objectives.goal
    small = _hour_decides(workload)

    def key(plan: TrainingPlan) -> tuple[float, ...]:
        hours = plan.hours(operations(workload.model, tokens)) if deadline and tokens else None
        late = (hours.middle > deadline) + (hours.high > deadline) if hours and deadline else 0
        if objective is Goal.PERFORMANCE:
            return (late, -plan.flops.middle)
        if objective is Goal.EXPERIMENT or small:
            return (late, plan.hourly)
        short = _is_short_run(plan, workload)
        return (late, not short, plan.hourly if short else plan.usd_per_exaflop)

    return key


def _ranked(plans: Sequence[TrainingPlan], workload: Workload) -> list[TrainingPlan]:
    """Plans in the order of the goal. Within the tie of the lowest price for an operation, the cheaper hour wins."""
    key, objective = _rank_key(workload), workload.objectives.goal
    ordered = sorted(plans, key=key)
    if not ordered or objective in (Goal.PERFORMANCE, Goal.EXPERIMENT):
        return _neuron_last(ordered) if objective is Goal.EXPERIMENT else ordered
    if not _hour_decides(workload):
        lowest = min(plan.usd_per_exaflop for plan in ordered)

        def tied(plan: TrainingPlan) -> tuple[float, ...]:
            late, short = key(plan)[0], _is_short_run(plan, workload)
            equal = short or plan.usd_per_exaflop <= TIE * lowest
            return (late, not short, not equal, plan.hourly if equal else plan.usd_per_exaflop)

        ordered = sorted(ordered, key=tied)
    return ordered if objective is Goal.COST else _neuron_last(ordered)


def _neuron_last(plans: Sequence[TrainingPlan]) -> list[TrainingPlan]:
    return sorted(plans, key=lambda plan: plan.offer.hardware.is_neuron)


def _baseline(plans: Sequence[TrainingPlan]) -> TrainingPlan | None:
    """The GPU plan that Trainium is compared with: the P plan with the lowest hourly price."""
    strong = [plan for plan in plans if plan.offer.hardware is HardwareClass.GPU_P]
    return min(strong, key=lambda plan: plan.hourly, default=None)


def _option(plan: TrainingPlan, workload: Workload, baseline: TrainingPlan | None) -> AdvisedOption:
    offer, tokens = plan.offer, workload.trained_tokens
    hours = plan.hours(operations(workload.model, tokens)) if tokens else _known_hours(workload)
    estimates = (Estimate("duration of a run", "h", _with_start(hours)),) if hours else ()
    purchase, bought = purchase_of(workload, hours)
    if purchase is Purchase.SPOT and offer.hardware is not HardwareClass.GPU_G:
        scarce = "Spot capacity of P and Trainium types is scarce: a run may wait the whole MaxWaitTimeInSeconds"
        bought = (*bought, AdviceReason(scarce, "general knowledge"))
    cost = replace(offer.cost(plan.nodes), usd_per_month=None)
    if hours:
        cost = replace(cost, usd_per_run=run_cost(plan.hourly, hours, purchase))
    option = AdvisedOption(
        Hosting.JOB,
        purchase,
        _action(plan, workload, hours),
        offer.hardware,
        offer.type.name,
        plan.nodes,
        offer.type.accelerator_count,
        plan.sharding.words,
        cost,
        estimates,
        plan.shown,
        (*_reasons(plan, workload), *bought, *_too_long(workload, hours)),
        risk="medium" if plan.nodes > 1 or offer.price.basis == "derived-assumed" else "low",
        measure="run a hundred steps and compare seconds a step, loss and memory",
    )
    return _on_trainium(option, plan, baseline) if offer.hardware.is_neuron else option


def _action(plan: TrainingPlan, workload: Workload, hours: Interval | None) -> Action:
    if not workload.model.has_size:
        return Action.UNKNOWN
    if plan.offer.hardware.is_neuron:
        return Action.PROPOSE
    limit = min(workload.objectives.deadline_hours or LONGEST_JOB_H, LONGEST_JOB_H)
    late = hours is not None and hours.high > limit
    return Action.TEST if late or plan.nodes >= MANY else Action.APPLY


def _too_long(workload: Workload, hours: Interval | None) -> Iterator[AdviceReason]:
    """That the run is more than one job may last, and how it goes on."""
    if hours is None or hours.high <= LONGEST_JOB_H:
        return
    jobs = math.ceil(hours.high / LONGEST_JOB_H)
    text = f"SageMaker ends a training job after 28 days: at {hours.high:,.0f} h, the slow end, the run is {jobs} jobs"
    goes_on = "each goes on from the last checkpoint of the one before"
    needs = "" if workload.constraints.checkpoints else ", which the script must write"
    yield AdviceReason(f"{text}; {goes_on}{needs}", Rule.LONGEST_JOB)


def _with_start(hours: Interval) -> Interval:
    """The duration with what it leaves out."""
    return replace(hours, reasons=(*hours.reasons, "the start of instances and loading data and weights come on top"))


def _known_hours(workload: Workload) -> Interval | None:
    hours = workload.data.known_hours
    return Interval(hours / 3, hours, hours * 2, ("the duration was measured on other hardware",)) if hours else None


def run_cost(hourly: float, hours: Interval, purchase: Purchase) -> Interval:
    """The price of a run; on Spot with its discount and what interruptions cost."""
    if purchase is not Purchase.SPOT:
        return hours.scaled(hourly)
    low, middle, high = (share * hourly for share in SPOT_SHARE)
    why = (*hours.reasons, "60 to 70 % off is typical, and each interruption costs about half an hour")
    expected = (hours.low, hours.middle + LOST_HOURS * hours.middle / 20, hours.high + LOST_HOURS * hours.high / 5)
    return Interval(low * expected[0], middle * expected[1], high * expected[2], why)


def _reasons(plan: TrainingPlan, workload: Workload) -> Iterator[AdviceReason]:
    offer = plan.offer
    held = f"{workload.model.kind.words} takes {plan.shown.words}; plan: {plan.sharding.words}"
    yield AdviceReason(held, f"{Rule.TRAINING_MEMORY}, {Rule.SHARDING}")
    if workload.model.optimiser is Optimiser.ADAMW_8BIT:
        text = "an optimiser of eight bits: 10 bytes a trained parameter in place of 16; compare the loss with 32 bits"
        yield AdviceReason(text, Rule.OPTIMISER_STATES)
    price = f"USD {dollars(offer.hourly)} an hour each in {offer.price.region}, {offer.price.basis}"
    yield AdviceReason(f"{price} of {offer.price.as_of}", "price snapshot")
    if workload.model.method is not Method.FULL and _hour_decides(workload):
        text = "adapters learn from few tokens: without their number the cheaper hour comes first; give data.tokens"
        yield AdviceReason(text, Rule.ADAPTERS_BY_HOUR)
    elif _is_short_run(plan, workload):
        text = (
            f"one accelerator trains adapters of so few tokens within {WORKING_DAY_H:g} h: no sharding, a cheaper hour"
        )
        yield AdviceReason(text, Rule.ADAPTERS_BY_HOUR)
    if plan.nodes > 1:
        yield AdviceReason("EFA networking is required between the nodes", Rule.EFA)
    chip = offer.type.accelerator
    if chip and chip.compute_capability and chip.compute_capability < (8, 0):
        yield AdviceReason(f"{chip.model} has no BF16: train in FP16 with loss scaling", Rule.NO_BF16)
    deadline, tokens = workload.objectives.deadline_hours, workload.trained_tokens
    if deadline and tokens:
        hours = plan.hours(operations(workload.model, tokens))
        yield AdviceReason(f"{verdict(hours, deadline)} the deadline of {deadline:g} h")
    elif deadline:
        yield AdviceReason("the number of tokens is not given, so the duration is not known", "not known")


def verdict(hours: Interval, deadline: float) -> str:
    """Whether a run ends in time, with its hours, in words that the deadline follows."""
    if hours.high <= deadline:
        return f"{hours.high:.1f} h at the slow end of the range: within"
    if hours.middle <= deadline:
        return f"{hours.middle:.1f} h in the middle of the range and {hours.high:.1f} h at its slow end: it may miss"
    return f"{hours.middle:.1f} h in the middle of the range: beyond"


def purchase_of(workload: Workload, hours: Interval | None) -> tuple[Purchase, tuple[AdviceReason, ...]]:
    """Spot where an interrupted run goes on from a checkpoint; else On-Demand with what stands against it."""
    limits = workload.constraints
    deadline = workload.objectives.deadline_hours
    if limits.checkpoints and deadline is not None and (hours is None or 2 * hours.middle > deadline):
        text = f"On-Demand: the deadline of {deadline:g} h leaves no room to wait for Spot capacity and interruptions"
        return Purchase.ON_DEMAND, (AdviceReason(text, Rule.SPOT_DISCOUNT), _warm_pool())
    if limits.checkpoints is None and limits.retriable and hours is not None and hours.high <= SHORT_H:
        text = "managed Spot without checkpoints: a short run starts again; its wait is limited to 3600 s"
        return Purchase.SPOT, (AdviceReason(text, Rule.SPOT_NEEDS_CHECKPOINTS), _warm_pool())
    if limits.checkpoints:
        most = f"{min(2 * hours.high, LONGEST_WAIT_H):.0f} h" if hours else "twice the longest run"
        text = f"managed Spot training goes on from checkpoints; MaxWaitTimeInSeconds about {most}"
        return Purchase.SPOT, (AdviceReason(text, Rule.SPOT_NEEDS_CHECKPOINTS), _warm_pool())
    if limits.checkpoints is False:
        text = "On-Demand: without a checkpoint one interruption loses the whole run; write checkpoints, then use Spot"
        return Purchase.ON_DEMAND, (AdviceReason(text, Rule.SPOT_NEEDS_CHECKPOINTS), _warm_pool())
    text = "where the script writes checkpoints, managed Spot training typically costs 60 to 70 % less"
    return Purchase.ON_DEMAND, (AdviceReason(text, Rule.SPOT_DISCOUNT), _warm_pool())


def _warm_pool() -> AdviceReason:
    text = "a warm pool is billed while it waits: keep it only where runs follow within minutes"
    return AdviceReason(text, Rule.WARM_POOL)


def _on_trainium(option: AdvisedOption, plan: TrainingPlan, baseline: TrainingPlan | None) -> AdvisedOption:
    """The option with phases, effort and what the hour costs against a GPU."""
    reasons = list(option.reasons)
    if baseline is not None:
        share = 100 * (1 - plan.hourly / baseline.hourly)
        word = "less" if share >= 0 else "more"
        against = f"{baseline.nodes} x {baseline.offer.type.name}" if baseline.nodes > 1 else baseline.offer.type.name
        text = f"{abs(share):.0f} % an hour {word} than {against}; only a pilot run tells the cost of a run"
        reasons.insert(0, AdviceReason(text, Rule.PRICE_OF_A_REQUEST))
    return replace(
        option,
        reasons=tuple(reasons),
        risk="medium",
        effort="a Neuron image, a training loop that goes through XLA, fixed shapes, another debugging tool",
        phases=TRAINING_PHASES,
        measure="a pilot run on one instance: same loss, seconds a step, cost of a run",
    )
