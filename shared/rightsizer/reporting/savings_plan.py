"""A commitment for what remains after right-sizing: a SageMaker Savings Plan, its break-even, and what if less runs.

Advice only, and the last step: a plan is an amount an hour for one or three years, and whoever shrinks under it saves
nothing. Sources: Savings Plans API reference, DescribeSavingsPlansOfferingRates; Savings Plans user guide (a plan
covers usage at its discounted rate up to the commitment, and bills what is not used).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from rightsizer.domain.account_finding import LEAST_USD, AccountFinding, AccountFindingCode
from rightsizer.domain.environment import Environment
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.price import CENT, HOURS_PER_MONTH, PriceTable
from rightsizer.domain.reason import count
from rightsizer.domain.recommendation import Finding, Recommendation

COVER = Decimal("0.7")
"""Share of what runs at every hour that is advised to be committed; an assumption: models change within a year."""
SEEN_DAYS = 7.0
"""Days of evidence from which an endpoint counts as steady."""
FALLS = (0, 25, 50, 75)
"""Per cent by which the steady spend falls, in the what-if."""
ASSUMED = (20, 30, 40)
"""Discounts of the what-if where the rates could not be read, per cent."""
ASLEEP = frozenset(
    {
        OptionKind.DELETE,
        OptionKind.SCALE_TO_ZERO,
        OptionKind.SERVERLESS,
        OptionKind.ASYNC,
        OptionKind.PACKING,
        OptionKind.REMOVE_VARIANT,
    }
)
"""Options after which an endpoint may run nothing, or something else: nothing of it is committed."""


@dataclass(frozen=True, slots=True)
class SteadyFleet:
    """Instances that run at every hour once the open savings are done."""

    counts: Mapping[str, int]
    """By instance type."""
    endpoints: int
    left_out: int
    """Endpoints that cost money and are not counted: too little evidence, development, or going away."""
    open_usd: Decimal
    """US dollars a month of the savings that come first."""


def steady_fleet(recommendations: Iterable[Recommendation]) -> SteadyFleet:
    """Instances that still run at every hour after right-sizing, by type."""
    counts, endpoints, left_out, open_usd = defaultdict[str, int](int), 0, 0, Decimal(0)
    for recommendation in recommendations:
        if not recommendation.usd_per_month:
            continue
        open_usd += recommendation.identified_usd_per_month
        own = dict(_steady_counts(recommendation)) if _is_steady(recommendation) else {}
        endpoints, left_out = endpoints + bool(own), left_out + (not own)
        for name, number in own.items():
            counts[name] += number
    return SteadyFleet(dict(counts), endpoints, left_out, open_usd)


def _is_steady(recommendation: Recommendation) -> bool:
    known = (
        recommendation.finding not in (Finding.NOT_ENOUGH_DATA, Finding.IDLE) and recommendation.evidence is not None
    )
    developed = (
        recommendation.environment is not None and recommendation.environment.environment is Environment.DEVELOPMENT
    )
    return known and recommendation.evidence is not None and recommendation.evidence.days >= SEEN_DAYS and not developed


def _steady_counts(recommendation: Recommendation) -> Iterator[tuple[str, int]]:
    """(Type, instances that run at every hour) after the chosen option; nothing where it may leave none."""
    option = recommendation.chosen_option if recommendation.identified_usd_per_month > 0 else None
    if option is None:
        several = [(finding.instance_type, finding.instance_count) for finding in recommendation.variants]
        yield from _summed(several or [(recommendation.instance_type, recommendation.instance_count)])
    elif option.kind not in ASLEEP:
        others = [(target.instance_type, target.instance_count) for target in option.target.others]
        yield from _summed([(option.target.instance_type, _least(option.target)), *others])


def _summed(rows: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    sums = defaultdict[str, int](int)
    for name, number in rows:
        sums[name] += number
    yield from ((name, number) for name, number in sums.items() if name and number > 0)


def _least(target: Target) -> int:
    """Instances at the hour with the fewest."""
    if target.hourly_counts or target.day_counts:
        return min(target.week_counts)
    return target.instance_count if target.minimum is None else target.minimum


def savings_plan_finding(
    recommendations: Iterable[Recommendation], prices: PriceTable, rates: Mapping[str, Decimal] | None
) -> AccountFinding | None:
    """The plan that is worth buying after right-sizing; None where too little remains. Without rates a what-if."""
    fleet = steady_fleet(recommendations)
    hourly = {name: price.usd_per_hour for name in fleet.counts if (price := prices.find(name)) is not None}
    if rates is not None:
        hourly = {name: usd for name, usd in hourly.items() if rates.get(name, usd) < usd}
    on_demand = sum((usd * fleet.counts[name] for name, usd in hourly.items()), Decimal(0))
    if on_demand <= 0:
        return None
    unpriced = sorted(fleet.counts.keys() - hourly.keys())
    if rates is None:
        return _without_rates(fleet, on_demand, prices)
    discounted = sum((rates[name] * fleet.counts[name] for name in hourly), Decimal(0))
    discount, has = 1 - discounted / on_demand, prices.commitment.usd_per_hour
    commitment = (COVER * discounted - has).quantize(Decimal("0.001"))
    saving = (commitment * discount / (1 - discount) * HOURS_PER_MONTH).quantize(CENT)
    if saving < LEAST_USD:
        return None
    covered = commitment / (1 - discount)
    beyond = has / (1 - discount)
    return AccountFinding(
        AccountFindingCode.SAVINGS_PLAN,
        f"{_remains(fleet, on_demand)}: a SageMaker Savings Plan of USD {commitment} an hour covers"
        f" {100 * COVER:.0f} % of it"
        f"{f', with the USD {has:.2f} that is committed already' if has else ''}",
        saving,
        _advice(fleet),
        evidence={
            "discount": f"{100 * discount:.1f} % (1 year, No Upfront, {prices.region}), for these types together",
            "break-even": f"pays as long as {100 * (1 - discount):.0f} % of it is used: until the steady spend falls by"
            f" {100 * (1 - (beyond + commitment) / on_demand):.0f} %",
            **{
                f"if {fall} % less runs": _what_if(on_demand * (100 - fall) / 100 - beyond, covered, commitment)
                for fall in FALLS
            },
        },
        not_checked=(
            *(f"{name}: it has no rate of a plan here" for name in unpriced),
            *_unseen(fleet, known=prices.commitment.known),
        ),
    )


def _what_if(remaining: Decimal, covered: Decimal, commitment: Decimal) -> str:
    """Result a month where so much of the steady spend remains for the plan, by the hour on demand."""
    usd = (min(max(remaining, Decimal(0)), covered) - commitment) * HOURS_PER_MONTH
    return f"{'saves' if usd >= 0 else 'costs'} USD {abs(usd):,.2f} a month"


def _without_rates(fleet: SteadyFleet, on_demand: Decimal, prices: PriceTable) -> AccountFinding | None:
    month = COVER * on_demand * HOURS_PER_MONTH
    if month * ASSUMED[0] / 100 < LEAST_USD:
        return None
    return AccountFinding(
        AccountFindingCode.SAVINGS_PLAN,
        f"{_remains(fleet, on_demand)}, and the rates of a SageMaker Savings Plan could not be read",
        None,
        _advice(fleet),
        evidence={
            f"at a discount of {each} %": f"{100 * COVER:.0f} % of it committed saves USD {month * each / 100:,.2f}"
            f" a month and pays as long as {100 - each} % of the plan is used"
            for each in ASSUMED
        },
        not_checked=("the discount of the types that run", *_unseen(fleet, known=prices.commitment.known)),
    )


def _remains(fleet: SteadyFleet, on_demand: Decimal) -> str:
    costs = "costs" if fleet.endpoints == 1 else "cost"
    return f"{count(fleet.endpoints, 'endpoint')} still {costs} USD {on_demand:,.2f} at every hour after right-sizing"


def _advice(fleet: SteadyFleet) -> str:
    first = f"first the open savings (USD {fleet.open_usd:,.2f} a month), then " if fleet.open_usd else ""
    return f"{first}buy it for one year, No Upfront; a plan cannot be cancelled, and shrinking under it saves nothing"


def _unseen(fleet: SteadyFleet, *, known: bool) -> Iterator[str]:
    if fleet.left_out:
        yield f"{count(fleet.left_out, 'endpoint')} left out: too little evidence, development, idle or going away"
    if not known:
        yield "plans of the organisation's payer account, which may cover all of it already"
    yield "how low fleets that scale go: today's count is taken where no option names a minimum"
    yield "what training, processing and notebooks would use of the plan, which covers them too"
