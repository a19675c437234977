"""What becomes of an endpoint that nobody asks: it is deleted by a person, or it sleeps."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from rightsizer.flows.given import Given
from rightsizer.model.demand import Demand
from rightsizer.model.digest import DayDigest
from rightsizer.model.observation import Endpoint, EndpointKind
from rightsizer.model.option import Money, Option, OptionKind, carried_out
from rightsizer.model.price import Price
from rightsizer.model.reason import Code, Reason
from rightsizer.model.recommendation import Finding, Recommendation
from rightsizer.rules.cost import kept_by_commitment, monthly
from rightsizer.rules.gate import Case, gate
from rightsizer.rules.offer import delete_option, nap_option
from rightsizer.rules.sleep import TIMEOUTS, Nap, best_nap, tolerates_cold


def idled(
    base: Recommendation, quiet: Reason, demand: Demand, price: Price, endpoint: Endpoint, given: Given
) -> Recommendation:
    """The recommendation for an endpoint that is proven idle: delete it, or let its queue wake it."""
    variant = endpoint.variants[0]
    usd = monthly(price, variant.current_count)
    runs = (price.instance_type, variant.current_count)
    saving = usd - kept_by_commitment(usd, given.prices.commitment)
    option = delete_option(runs, price, saving, demand.days, demand.silent_days)
    if endpoint.kind is EndpointKind.ASYNC and not any(target.minimum == 0 for target in endpoint.scaling):
        # Its queue keeps what comes, so it can sleep and wake: deleting it would save no more.
        saved = Money(Decimal(0), saving, Decimal(0), 0.0)
        option = nap_option(runs, price, saved, demand.days, TIMEOUTS[0], 1.0, in_place=True)
    return _gated(replace(base, finding=Finding.IDLE, reason=quiet), option, demand, endpoint, given)


def unheard(
    base: Recommendation, days: Sequence[DayDigest], demand: Demand, price: Price, endpoint: Endpoint, given: Given
) -> Recommendation:
    """The recommendation where no latency is known: nothing to size, but who tolerates cold starts may sleep already.

    Too early to call it idle, and no reason to wait: whoever comes first wakes it, as its owner has agreed to.
    """
    reason = Reason(Code.TOO_FEW_REQUESTS, f"no latency was published for {demand.requests:.0f} requests")
    found = _first_nap(days, demand, endpoint, given)
    if found is None:
        return replace(base, finding=Finding.NOT_ENOUGH_DATA, reason=reason, gate_reason=reason)
    variant = endpoint.variants[0]
    usd = monthly(price, variant.current_count)
    saved = round(usd * Decimal(str(found.asleep_share)), 2)
    asleep = OptionKind.SCALE_TO_ZERO
    option = nap_option(
        (price.instance_type, variant.current_count),
        price,
        Money(usd - saved, saved - kept_by_commitment(saved, given.prices.commitment), Decimal(0), 0.0),
        demand.days,
        found.minutes,
        found.asleep_share,
        in_place=carried_out(endpoint.kind, asleep) or asleep in given.policy.by_itself,
    )
    option = replace(option, mean_instances=round(variant.current_count * (1 - found.asleep_share), 4))
    why = Reason(
        Code.CHEAPER_OPTION,
        f"no request in {demand.days:.1f} days, and rightsizer:cold-start-ok says that callers can wait for a start",
    )
    return _gated(replace(base, finding=Finding.OVER_PROVISIONED, reason=why), option, demand, endpoint, given)


def _first_nap(days: Sequence[DayDigest], demand: Demand, endpoint: Endpoint, given: Given) -> Nap | None:
    """The nap of an endpoint that its owner lets sleep and that nobody asked; None where that is not known."""
    told = len(endpoint.variants) == 1 and endpoint.kinds in ((EndpointKind.REAL_TIME,), (EndpointKind.ASYNC,))
    waits = endpoint.kind is EndpointKind.ASYNC and demand.backlog != 0  # its calls are not published, only its backlog
    works = demand.gpu_peak is None or demand.gpu_peak > given.policy.cpu_class_share  # unknown is not idle
    sleeps = any(target.minimum == 0 for target in endpoint.scaling)
    if not told or not tolerates_cold(endpoint) or demand.requests > 0 or waits or works or sleeps:
        return None
    found = best_nap(days, True, given.policy.cold_share, given.policy.nap_days)
    return found if isinstance(found, Nap) else None


def _gated(base: Recommendation, option: Option, demand: Demand, endpoint: Endpoint, given: Given) -> Recommendation:
    today = base.usd_per_month  # nothing while no instance runs
    share = float(option.saving_usd_per_month / today) if today else 0.0
    surely = replace(demand, confidence=demand.days)
    case = Case(endpoint, option, surely, option.target.instance_type, share, False, 0.0)
    verdict, why = gate(case, given.history, given.policy, given.now)
    return replace(base, options=(option,), gate=verdict, gate_reason=why)
