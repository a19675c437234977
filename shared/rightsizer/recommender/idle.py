"""Recommend for an idle endpoint that a person deletes it, or that it scales to zero.

The proof that it is idle is in `recommender.finding.idle_reason`.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from rightsizer.domain.demand import Demand
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.option import Excluded, Money, Option, OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Code, Reason, count
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.domain.usage import DailyUsage
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.finding import unexplained_work
from rightsizer.recommender.gate import GateCase, decide_gate
from rightsizer.recommender.pricing import (
    cost_of,
    delete_option,
    kept_by_commitment,
    monthly_cost,
    scale_to_zero_option,
)
from rightsizer.recommender.queued_sleep import wait_sentence
from rightsizer.recommender.scale_to_zero import (
    ASLEEP_ALREADY,
    MOST_UNEXPLAINED,
    TIMEOUTS,
    UNREAD_VARIANTS,
    IdleTime,
    best_timeout,
    queue_day,
    stay_awake_reason,
    unexplained_share,
)


def recommend_for_idle(
    base: Recommendation, quiet: Reason, demand: Demand, price: Price, endpoint: Endpoint, inputs: AccountInputs
) -> Recommendation:
    """The recommendation for an endpoint that is proven idle: delete it, or let its queue wake it."""
    variant = endpoint.variants[0]
    usd = monthly_cost(price, variant.current_count)
    runs = (price.instance_type, variant.current_count)
    saving = usd - kept_by_commitment(usd, usd, inputs.prices.commitment)
    option = delete_option(runs, price, saving, demand.days, demand.told_silent_days)
    zero = any(target.minimum == 0 for target in endpoint.scaling)
    other = Excluded(runs[0], _no_sleep_reason(endpoint, saving, zero), OptionKind.SCALE_TO_ZERO)
    if endpoint.kind is EndpointKind.ASYNC and not zero:
        # Its queue keeps what comes, so it can sleep and wake: deleting it would save no more.
        saved = Money(Decimal(0), saving, Decimal(0), 0.0)
        option = scale_to_zero_option(runs, price, saved, demand.days, TIMEOUTS[0], 1.0, in_place=True)
        why = f"it would save no more than scaling to zero (${saving:,.2f} a month), where its queue keeps what comes"
        other = Excluded(runs[0], Reason(Code.NOT_CHEAPER, why), OptionKind.DELETE)
    works = unexplained_work(demand, inputs.policy)
    questions = (*base.not_checked, works) if works else base.not_checked
    recommendation = replace(base, finding=Finding.IDLE, reason=quiet, excluded=(other,), not_checked=questions)
    return _apply_gate(recommendation, option, demand, endpoint, inputs)


def _no_sleep_reason(endpoint: Endpoint, saving: Decimal, zero: bool) -> Reason:
    """Why an idle endpoint that may be deleted is not put to sleep."""
    queued = EndpointKind.ASYNC in endpoint.kinds
    if queued and zero:
        return Reason(Code.NOT_APPLICABLE, ASLEEP_ALREADY)
    woken = "" if queued else ", and it has no queue that keeps the request that wakes it"
    return Reason(Code.NOT_CHEAPER, f"it would save no more than deletion does (${saving:,.2f} a month){woken}")


def recommend_without_latency(
    base: Recommendation,
    days: Sequence[DailyUsage],
    demand: Demand,
    price: Price,
    endpoint: Endpoint,
    inputs: AccountInputs,
) -> Recommendation:
    """The recommendation where no latency is known: nothing to size, but who tolerates cold starts may sleep already.

    Too early to call it idle, and no reason to wait: whoever comes first wakes it, as its owner has agreed to.
    """
    text = f"no latency was published for {count(round(demand.requests), 'request')}"
    if demand.requests <= 0:
        text = _no_request_text(endpoint, demand, inputs.policy)
    reason = Reason(Code.TOO_FEW_REQUESTS, text)
    idle_time = _first_scale_to_zero(days, demand, endpoint, inputs)
    used = Excluded(price.instance_type, delete_refusal(endpoint, demand, inputs.policy), OptionKind.DELETE)
    if isinstance(idle_time, Reason):
        excluded = (Excluded(price.instance_type, idle_time, OptionKind.SCALE_TO_ZERO), used)
        return replace(base, finding=Finding.NOT_ENOUGH_DATA, reason=reason, gate_reason=reason, excluded=excluded)
    variant = endpoint.variants[0]
    instances = variant.current_count
    in_place = endpoint.kind is EndpointKind.ASYNC
    usd, awake, plan = (
        monthly_cost(price, instances),
        instances * (1 - idle_time.asleep_share),
        inputs.prices.commitment,
    )
    cost = cost_of(usd, price, awake, instances, 0.0, plan, inputs.policy, new_fleet=not in_place)
    option = scale_to_zero_option(
        (price.instance_type, instances),
        price,
        Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days),
        demand.days,
        idle_time.minutes,
        idle_time.asleep_share,
        in_place=in_place,
    )
    option = replace(option, mean_instances=round(awake, 4))
    waits = "rightsizer:cold-start-ok says that callers can wait for a start"
    if in_place:
        told = wait_sentence(idle_time.cold, idle_time.requests, demand, inputs.history)
        option = replace(option, notes=(*option.notes, told))
    agreed = "its queue keeps what comes" if in_place else waits
    why = Reason(Code.CHEAPER_OPTION, f"{_seen_text(demand, idle_time)}, and {agreed}")
    base = replace(base, finding=Finding.OVER_PROVISIONED, reason=why, excluded=(used,))
    return _apply_gate(base, option, demand, endpoint, inputs)


def _no_request_text(endpoint: Endpoint, demand: Demand, policy: Policy) -> str:
    """For how long no request was seen, and what is missing to call it idle; a queue's requests are not counted."""
    queued, days = EndpointKind.ASYNC in endpoint.kinds, f"{demand.days:.1f} days"
    seen = f"no request was counted in {days}" if queued else f"nobody called it in {days}"
    if queued and demand.backlog != 0:
        return f"{seen}; {_unknown_queue_text(demand)}"
    if queued and demand.uncounted:
        return f"{seen}, and it answered some: ModelLatency was published"
    works = unexplained_work(demand, policy)
    rest = f"it is not known {works}" if works else f"{policy.idle_days} such days in a row make it idle"
    return f"{seen}, and {rest}"


def _unknown_queue_text(demand: Demand) -> str:
    """What is known of a queue that is not known to have been empty."""
    held = "is not known" if demand.backlog is None else f"was up to {demand.backlog:.0f}"
    return f"the backlog of its queue {held}, and only an empty one makes it idle"


def _seen_text(demand: Demand, idle_time: IdleTime) -> str:
    """How much it was used, as far as it is known: of the work of a queue there may be no count."""
    if demand.requests > 0:
        return f"{count(round(demand.requests), 'request')} in {demand.days:.1f} days"
    if demand.backlog or demand.uncounted:
        return f"nothing waited and nothing worked for {100 * idle_time.asleep_share:.0f} % of {demand.days:.1f} days"
    return f"no request in {demand.days:.1f} days"


def _first_scale_to_zero(
    days: Sequence[DailyUsage], demand: Demand, endpoint: Endpoint, inputs: AccountInputs
) -> IdleTime | Reason:
    """Idle time after which an endpoint without requests scales to zero, or why it does not."""
    reason = stay_awake_reason(endpoint, demand, inputs.policy)
    if reason is not None:
        return reason
    if EndpointKind.ASYNC in endpoint.kinds:
        if (share := unexplained_share(days, inputs.policy)) > MOST_UNEXPLAINED:
            text = f"{100 * share:.0f} % of its GPU's work was done while no request was there"
            return Reason(Code.NOT_APPLICABLE, f"{text}: find out what works there before it sleeps")
        days = [queue_day(usage, inputs.policy) for usage in days]
    return best_timeout(days, True, inputs.policy.cold_share, inputs.policy.nap_days)


def _apply_gate(
    base: Recommendation, option: Option, demand: Demand, endpoint: Endpoint, inputs: AccountInputs
) -> Recommendation:
    today = base.usd_per_month  # nothing while no instance runs
    share = float(option.saving_usd_per_month / today) if today else 0.0
    surely = replace(demand, confidence=demand.days)
    case = GateCase(endpoint, option, surely, option.target.instance_type, share)
    verdict, why = decide_gate(case, inputs.history, inputs.policy, inputs.now)
    return replace(base, options=(option,), gate=verdict, gate_reason=why)


def delete_refusal(endpoint: Endpoint, demand: Demand, policy: Policy) -> Reason:
    """Why an endpoint that is not idle is not to be deleted."""
    silent = f"{policy.idle_days} days without a request make it idle"
    if demand.requests > 0:
        sentence = f"{count(round(demand.requests), 'request')} in {demand.days:.1f} days"
        if demand.told_silent_days:
            sentence += f", none on the last {count(demand.told_silent_days, 'day')}"
        if demand.silent_days >= policy.idle_days:
            silent = f"a look-back of {policy.lookback_days} days without one makes it idle"
        return Reason(Code.NOT_APPLICABLE, f"it is used ({sentence}); {silent}")
    if len(endpoint.variants) > 1:
        return Reason(Code.OTHER_KIND, f"{UNREAD_VARIANTS} idle")
    if EndpointKind.ASYNC in endpoint.kinds and demand.backlog != 0:
        return Reason(Code.NOT_APPLICABLE, _unknown_queue_text(demand))
    if demand.gpu_peak is not None and demand.gpu_peak > policy.cpu_class_share:
        return Reason(Code.NOT_APPLICABLE, f"its GPU works without requests (up to {100 * demand.gpu_peak:.1f} %)")
    return Reason(Code.TOO_FEW_DAYS, f"no request for {count(demand.told_silent_days, 'day')}; {silent}")
