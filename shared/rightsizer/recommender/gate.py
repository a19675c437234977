"""Permitted step with the option that `recommender.choose` chose, tested or not, and the one reason that decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rightsizer.domain.demand import Demand
from rightsizer.domain.endpoint import AT_RANDOM, ERROR_TAG, LEAST, Endpoint, Mode
from rightsizer.domain.hardware import is_scarce
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Option, OptionKind, Risk, RiskResource, Target, payback_text
from rightsizer.domain.policy import ADDABLE, COMES_AND_GOES, Policy
from rightsizer.domain.preflight import WAY_BACK, RunningFleet, approved_change
from rightsizer.domain.reason import Code, Reason, count, day_text, time_text
from rightsizer.domain.recommendation import Gate
from rightsizer.domain.schedule import HOURS, WEEKDAYS, week_of
from rightsizer.recommender.finding import refused_text
from rightsizer.recommender.queued_sleep import keeps_requests, unattended_refusal

type GateAnswer = tuple[Gate, Reason]
UNSEEN_HOURS = 3.0
"""Hours without a datapoint from which nothing is done unasked: CloudWatch delays one by minutes, an hour at most."""
UNSEEN_INSTANCES = 0.75
"""Instances without a datapoint, of a fleet of fixed size, from which it is so: a few lost samples are no instance."""
EXPLAINED = 0.5
"""Share of the GPU's work that requests must be able to explain: with less, most of it is something else."""
OTHER_WORK = 0.25
"""Mean share of a GPU's time up to which other work is left out of account: a card of a quarter of the speed has it."""
OFF = Reason(Code.MODE_OFF, "the tag rightsizer:mode says off")
REPORT = Reason(Code.MODE_REPORT, "the tag rightsizer:mode says report")


def report_mode_reason(endpoint: Endpoint) -> Reason:
    """Why nobody is asked about an endpoint whose mode is `report`: its tag, or tags that could not be read."""
    if endpoint.tags_unread is None:
        return REPORT
    sentence = f"its tags could not be read, so what its owner allows is unknown: {endpoint.tags_unread.sentence}"
    return Reason(endpoint.tags_unread.code, sentence)


@dataclass(frozen=True, slots=True)
class GateCase:
    """Everything the gate looks at."""

    endpoint: Endpoint
    option: Option
    demand: Demand
    instance_type: str
    share: float
    """Saving as a share of what the endpoint costs now."""
    gpus: tuple[int, int] = (0, 0)
    """GPUs of one instance, now and then."""
    keeps_scaling: bool = False
    """Whether the owner's autoscaling goes on as before, on the same GPU in another size."""
    requests: tuple[float, ...] = ()
    """Of the 168 hours of the week (UTC, from Monday on): a quiet hour weighs little in the step. () where unknown."""
    broken: Reason | None = None
    """Why a person decides: no instance keeps what was promised to callers. None where one may."""


def decide_gate(case: GateCase, history: History, policy: Policy, now: datetime) -> GateAnswer:
    """The strictest answer that applies; each names the number that decided."""
    undeclared = case.endpoint.objective.p95_s is None
    as_today = "; no tag rightsizer:p95-ms, so its latency stays as today" if undeclared else ""
    return (
        _silence_reason(case, history, policy, now)
        or _propose_only(case, policy)
        or _error_rate_reason(case, policy)
        or _too_early_reason(case, policy)
        or (
            Gate.APPLY,
            Reason(
                Code.SAFE_TO_APPLY,
                f"safe to apply by itself: performance risk {int(case.option.risk)} of 4,"
                f" {round(case.demand.confidence, 1):g} days' worth of evidence, {payback_text(case.option)}"
                f"{as_today}",
            ),
        )
    )


def _silence_reason(case: GateCase, history: History, policy: Policy, now: datetime) -> GateAnswer | None:
    option, endpoint = case.option, case.endpoint
    if endpoint.mode is Mode.OFF:
        return Gate.SILENT, OFF
    if (small := saving_too_small(case, policy)) is not None:
        return Gate.SILENT, small
    if case.demand.confidence < policy.confidence_propose:
        return Gate.SILENT, Reason(
            Code.TOO_LITTLE_CONFIDENCE,
            f"too little was seen: {case.demand.days:.1f} days of data with {case.demand.requests:,.0f} requests are"
            f" {case.demand.confidence:.2f} days' worth of evidence; a proposal takes {policy.confidence_propose:g}",
        )
    if option.risk > policy.risk_propose:
        return Gate.SILENT, Reason(
            Code.RISK_TOO_HIGH,
            f"too likely to harm: its performance risk is {int(option.risk)} of 4, and rightsizer asks up to"
            f" {policy.risk_propose}",
        )
    if (waits := cooldown_reason(history, policy, now, option.target.instance_type, case.instance_type)) is not None:
        return Gate.SILENT, waits
    if (banned := rest_reason(case, history, policy, now)) is not None:
        return Gate.SILENT, banned
    if endpoint.mode is Mode.REPORT:
        return Gate.SILENT, report_mode_reason(endpoint)
    return None


def saving_too_small(case: GateCase, policy: Policy) -> Reason | None:
    """Missed minimum of the saving, with the figures; None where both minimums are reached."""
    return small_saving_reason(case.option, case.share, policy)


def small_saving_reason(option: Option, of_cost: float, policy: Policy) -> Reason | None:
    """The same of an option that saves `of_cost` of what the endpoint costs, 0..1."""
    usd, least_usd = option.saving_usd_per_month, policy.minimum_saving_usd
    dollars, percent = usd < least_usd, of_cost < policy.minimum_saving_share
    if not dollars and not percent:
        return None
    share, least = 100 * of_cost, 100 * policy.minimum_saving_share
    places = next((n for n in range(4) if round(share, n) < least), 4) if percent else 0
    of_all, below_usd = f"{share:.{places}f} % of its cost", f"below the least of USD {least_usd} per month"
    if not percent:
        text = f"USD {usd} per month ({of_all}) is {below_usd}"
    elif not dollars:
        text = f"{of_all} (USD {usd} per month) is below the least of {least:g} %"
    else:
        text = f"USD {usd} per month is {below_usd}, and {of_all} is below the least of {least:g} %"
    return Reason(Code.SAVING_TOO_SMALL, f"not worth a change: the saving of {text}")


def cooldown_reason(history: History, policy: Policy, now: datetime, to_type: str, runs: str) -> Reason | None:
    """The reason to wait after the endpoint's last change, or None.

    After a change of type another type than `runs` waits for days, whatever steps on the type that it brought came
    since; such a step rests as after any change.

    Where another type had no capacity, nothing was served differently: this type need not wait for that.
    """
    changes = [p for p in history.endpoint if p.ended is not PastEnd.TESTED]
    changes = [p for p in changes if p.to_type == to_type or not p.was_without_capacity]
    moves = [p for p in changes if to_type != runs and p.from_type != p.to_type and p.is_in_force]
    waits = []
    for past in (*moves[-1:], *changes[-1:]):
        stays = past.from_type == past.to_type or (past.to_type == to_type and past.is_in_force)
        hours = policy.cooldown_hours if stays else policy.cooldown_type_hours
        change = f"{time_text(past.at)} ({past.from_type} to {past.to_type})"
        waits.append((past.at + timedelta(hours=hours), hours, change))
    until, hours, change = max(waits, default=(now, 0.0, ""))
    if until <= now:
        return None
    text = f"changed on {change}; the next change can come {hours:g} h after that, on {time_text(until)}"
    return Reason(Code.COOLDOWN, text)


def rest_reason(case: GateCase, history: History, policy: Policy, now: datetime) -> Reason | None:
    """The reason why this target must rest after failures, or None. Each failure doubles the rest."""
    target = case.option.target
    failures = [p for p in history.endpoint if p.is_refuted and _is_same_count_change(p, target)]
    if not failures:
        return None
    until = failures[-1].at + timedelta(days=policy.blacklist_days * 2 ** (len(failures) - 1))
    model = case.endpoint.variants[0].model_name if case.endpoint.variants else ""
    lifted = failures[-1].is_outgrown(case.demand.load.peak_busy_gpus, policy.blacklist_demand)
    if now >= until or lifted or (len(failures) == 1 and failures[-1].is_of_another_model(model)):
        return None
    return Reason(
        Code.BLACKLISTED,
        f"{target.instance_count} × {target.instance_type} failed here {times_text(len(failures))}, last on"
        f" {day_text(failures[-1].at)} ({failures[-1].failure or 'unknown cause'}); it is not tried again before"
        f" {day_text(until)}",
    )


def _is_same_count_change(past: PastChange, target: Target) -> bool:
    """Whether a change of count failed with no fewer instances than these; failed types are ruled out before.

    A schedule by days of the week is compared hour by hour with another, and by its busiest day with a day's mean.
    """
    if past.to_type != target.instance_type or past.from_type != past.to_type:
        return False
    if (failed := week_of(past.day_counts)) is not None:
        return all(count <= then for count, then in zip(target.week_counts, failed, strict=True))
    busiest = max(sum(target.counts_on(day)) / HOURS for day in range(len(WEEKDAYS)))
    return busiest <= 1.02 * past.instances_against(tracked=target.metric is not None)


def times_text(number: int) -> str:
    """How often: ``once``, ``3 times``."""
    return "once" if number == 1 else f"{number} times"


def _mean_instances(target: Target, requests: Sequence[float] = ()) -> float:
    """Instances on average over the week; with the requests of its hours, those that an average request finds."""
    total = sum(requests)
    if total <= 0:
        return target.mean_count
    return sum(count * calls for count, calls in zip(target.week_counts, requests, strict=True)) / total


def decide_restore(endpoint: Endpoint, option: Option, why: Reason, history: History, now: datetime) -> GateAnswer:
    """Decide on an option that gives capacity back.

    Cooldown and minimum saving do not apply. It is applied at once in mode auto on a plain endpoint that no stack
    owns, and in mode propose where it undoes a change whose approval permits that; else a person is asked. Modes off
    and report stay silent.
    """
    if endpoint.owned_by or not endpoint.is_plain:
        return ask_person(endpoint, why)
    if endpoint.mode is Mode.AUTO:
        return Gate.APPLY, why
    permitted = _way_back_reason(endpoint, option, why, history, now) if endpoint.mode is Mode.PROPOSE else None
    return ask_person(endpoint, why) if permitted is None else (Gate.APPLY, permitted)


def _way_back_reason(endpoint: Endpoint, option: Option, why: Reason, history: History, now: datetime) -> Reason | None:
    """The reason that names the approval of the change that the option undoes; None where none permits it."""
    variant = endpoint.variants[0]
    runs = RunningFleet(variant.instance_type, variant.desired_count, endpoint.config_name)
    past = None if endpoint.scaling else approved_change(history.endpoint, runs, option.target, now)
    if past is None or past.approved_at is None:
        return None
    until = past.approved_at + WAY_BACK
    return Reason(
        why.code,
        f"{why.sentence}; {past.approved_by} approved the change to {past.to_count} × {past.to_type} on"
        f" {day_text(past.approved_at)}, and that approval permits the way back to {past.from_count} ×"
        f" {past.from_type} until {time_text(until)}",
    )


def ask_person(endpoint: Endpoint, why: Reason) -> GateAnswer:
    """A person is asked for `why`, unless the owner's tag says that nobody is."""
    match endpoint.mode:
        case Mode.OFF:
            return Gate.SILENT, OFF
        case Mode.REPORT:
            return Gate.SILENT, report_mode_reason(endpoint)
        case _:
            return Gate.PROPOSE, why


def _propose_only(case: GateCase, policy: Policy) -> GateAnswer | None:
    endpoint, option = case.endpoint, case.option
    queued = keeps_requests(endpoint, option)
    if queued and (unseen := unattended_refusal(case.demand)) is not None:
        return Gate.PROPOSE, unseen
    if not endpoint.is_plain and not queued:
        return Gate.PROPOSE, Reason(
            Code.OTHER_KIND,
            f"needs your approval: endpoints of the kind {endpoint.kind.value} are never changed automatically",
        )
    if endpoint.unknown_fields:
        return Gate.PROPOSE, Reason(
            Code.UNKNOWN_FIELD,
            "needs your approval: its configuration has fields that rightsizer does not know:"
            f" {', '.join(endpoint.unknown_fields[:3])}",
        )
    if endpoint.configuration_replaced:
        return Gate.PROPOSE, Reason(
            Code.CONFIGURATION_REPLACED,
            f"needs your approval: the configuration {endpoint.config_name} was replaced after it was deployed",
        )
    if endpoint.owned_by:
        return Gate.PROPOSE, Reason(Code.OWNED_BY_STACK, f"it is owned by {endpoint.owned_by}; change it there")
    bounds = option.kind is OptionKind.AUTOSCALING  # these are what autoscaling goes by
    if bounds and option.target.target_value is not None and option.target.metric is None:
        text = "needs your approval: the target of a scaling policy is its owner's word for how busy an instance may be"
        return Gate.PROPOSE, Reason(Code.AUTOSCALED, text)
    if endpoint.scaling and not bounds and not case.keeps_scaling:
        return Gate.PROPOSE, Reason(Code.AUTOSCALED, "needs your approval: Application Auto Scaling sets its count")
    if (
        other := case.broken or _hardware_reason(case) or _unseen_reason(case.demand) or _other_work_reason(case)
    ) is not None:
        return Gate.PROPOSE, other
    if (option.kind not in policy.by_itself | ADDABLE and not queued) or not option.in_place:
        return Gate.PROPOSE, Reason(Code.NOT_IN_PLACE, _manual_reason(option))
    return None


def _hardware_reason(case: GateCase) -> Reason | None:
    """Why the hardware of the option is no choice of automatic mode; None where it may be."""
    then, routing = case.option.target.instance_type, case.endpoint.variants[0].routing
    text, again = "", case.option.kind in COMES_AND_GOES
    if routing not in AT_RANDOM | {LEAST} and case.option.kind is not OptionKind.INSTANCE_TYPE:
        text = f"how the routing strategy {routing} spreads requests over another count is not known"
    elif case.gpus[1] < case.gpus[0]:
        text = f"{case.gpus[1]} in place of {case.gpus[0]} GPUs in an instance split the model differently"
    elif is_scarce(then) and (again or then != case.instance_type):
        lost = "is given back may not come again" if again else "fails may not be replaced"
        text = f"{then} is hard to get on demand (AWS sells its capacity ahead): an instance that {lost}"
    return Reason(Code.NEEDS_APPROVAL, f"needs your approval: {text}") if text else None


def _unseen_reason(demand: Demand) -> Reason | None:
    """Why nothing is done by itself to what is not seen any more; None while datapoints come."""
    if demand.unseen_instances >= UNSEEN_INSTANCES:
        text = f"for two days metrics came from {count(round(demand.unseen_instances), 'instance')} fewer than before"
    elif demand.unseen_hours >= UNSEEN_HOURS:
        text = f"CloudWatch has no GPU datapoint of its last {demand.unseen_hours:.0f} complete hours"
    else:
        return None
    return Reason(Code.TOO_MANY_GAPS, f"needs your approval: {text}; find out why before it is changed")


def _other_work_reason(case: GateCase) -> Reason | None:
    """That most of what the GPU works at is no request: none keeps its GPUs at work for longer than it takes."""
    demand = case.demand
    if demand.latency is None or not demand.gpu_s_per_request or not demand.gpu_mean:
        return None
    explained = demand.latency.mean_s * max(case.gpus[0], 1) / demand.gpu_s_per_request
    if explained >= EXPLAINED or demand.gpu_mean * (1 - explained) <= OTHER_WORK:
        return None
    text = f"its GPU works {100 * demand.gpu_mean:.0f} % of the time, and its requests explain at most"
    text += f" {100 * demand.gpu_mean * explained:.1f} %: find out what else works there before it is changed"
    return Reason(Code.NEEDS_APPROVAL, f"needs your approval: {text}")


def _manual_reason(option: Option) -> str:
    """Why a person does what is no change of the same endpoint."""
    if option.kind is OptionKind.DELETE:
        text = "rightsizer then watches it for some days, and its owner gets the command to delete it"
        return f"needs your approval: {text}"
    return f"its owner has to do this: rightsizer cannot carry out {option.kind.value} here"


def _error_rate_reason(case: GateCase, policy: Policy) -> GateAnswer | None:
    """More requests fail already than may, by the owner's tag or else by the share that a guarded change may have."""
    declared, failed = case.endpoint.objective.error_share, case.demand.error_share
    allowed = policy.error_share if declared is None else declared
    when = "" if failed > allowed else " of the last two days"
    failed = failed if failed > allowed else case.demand.failed_lately
    if failed <= allowed:
        refused = refused_text(case.demand.refused, allowed)
        return (Gate.PROPOSE, Reason(Code.TOO_MANY_ERRORS, f"needs your approval: {refused}")) if refused else None
    whose = f"the tag {ERROR_TAG} can allow more" if declared is None else f"tag {ERROR_TAG}"
    text = (
        f"needs your approval: {100 * failed:.2f} % of its requests{when} fail, and {100 * allowed:g} % may ({whose})"
    )
    return Gate.PROPOSE, Reason(Code.TOO_MANY_ERRORS, text)


def _thin_evidence_reason(case: GateCase, needed: float, policy: Policy) -> Reason | None:
    """Why days or requests are too few for an automatic change; without a request, days alone tell that it is idle."""
    days, requests = case.demand.confidence, case.demand.requests
    if keeps_requests(case.endpoint, case.option):
        days, requests = case.demand.days, 0.0  # of a sleep the days without a request tell most
    if days < needed:
        sentence = f"{round(days, 1):g} days' worth of evidence, and an automatic change takes {needed:g}"
        return Reason(Code.TOO_LITTLE_CONFIDENCE, f"needs your approval: {sentence}")
    if 0 < requests < needed * policy.requests_needed:
        sentence = (
            f"{requests:,.0f} requests were seen, and an automatic change takes {needed * policy.requests_needed:,.0f}"
        )
        return Reason(Code.TOO_LITTLE_CONFIDENCE, f"needs your approval: {sentence}")
    return None


def _too_early_reason(case: GateCase, policy: Policy) -> GateAnswer | None:
    endpoint, option = case.endpoint, case.option
    if endpoint.mode is not Mode.AUTO:
        why = endpoint.asks_because or "the tag rightsizer:mode=auto applies such changes by itself"
        return Gate.PROPOSE, Reason(Code.NOT_OPTED_IN, f"needs your approval ({why})")
    smaller = option.target.instance_type != case.instance_type
    needed = policy.confidence_smaller if smaller else policy.confidence_apply
    today = endpoint.variants[0].desired_count  # one variant: others were asked about before
    if (thin := _thin_evidence_reason(case, needed, policy)) is not None:
        return Gate.PROPOSE, thin
    if option.risks.get(RiskResource.AVAILABILITY, Risk.VERY_LOW) > policy.risk_apply:
        fewest = min(option.target.week_counts)
        return Gate.PROPOSE, Reason(
            Code.RISK_TOO_HIGH,
            f"needs your approval: {fewest} instance in place of {today} is in one Availability"
            " Zone only (the tag rightsizer:min-instances=1 accepts that)",
        )
    if option.risk > policy.risk_apply:
        return Gate.PROPOSE, Reason(
            Code.RISK_TOO_HIGH,
            f"needs your approval: its performance risk is {int(option.risk)} of 4, and automatic changes take"
            f" {policy.risk_apply} at most",
        )
    mean = _mean_instances(option.target, case.requests)
    if 2 * mean < today:
        text = f"from {today} to {mean:g} instances"
        if option.target.metric:  # its minimum: how many run follows the load
            text = f"a minimum of {mean:g} in place of {today} instances"
        return Gate.PROPOSE, Reason(Code.RISK_TOO_HIGH, f"needs your approval: {text} is more than half in one step")
    if option.payback_days > policy.payback_days:
        return Gate.PROPOSE, Reason(
            Code.PAYBACK_TOO_LONG,
            f"needs your approval: it takes {option.payback_days:.1f} days until the change has paid for itself, and"
            f" automatic changes take {policy.payback_days:g} at most",
        )
    if option.kind not in policy.by_itself and not keeps_requests(endpoint, option):
        return Gate.PROPOSE, Reason(
            Code.NEEDS_APPROVAL,
            f"needs your approval: the stack's parameter Limits does not open {option.kind.value} to automatic mode",
        )
    return None
