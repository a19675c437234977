"""Types that are unlike the one that runs: which of them are cheaper here, and what they would cost and save."""

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Excluded, OptionKind
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender.alternative_prices import Bill
from rightsizer.recommender.context import Situation
from rightsizer.recommender.cost import cost_of


def cheaper(at: Situation, types: list[InstanceType]) -> list[tuple[InstanceType, Price]]:
    """Those of the types that are sold here below today's price of an instance, cheapest first."""
    priced = ((hardware, at.given.prices.find(hardware.name)) for hardware in types)
    found = [(h, p) for h, p in priced if p is not None and p.listed and p.usd_per_hour < at.price.usd_per_hour]
    return sorted(found, key=lambda pair: (pair[1].usd_per_hour, pair[0].name))


def bill_of(at: Situation, price: Price, mean: float, count: int, risk_share: float) -> Bill:
    """US dollars of `mean` instances, at most `count` of them, against today's."""
    cost = cost_of(at.usd, price, mean, count, risk_share, at.given.prices.commitment, at.policy, True)
    return Bill(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days, at.usd)


def unsaved(at: Situation, what: str) -> Reason:
    """That it would save nothing, with today's bill and what is committed."""
    plan = at.given.prices.commitment.usd_per_hour
    return Reason(
        Code.NOT_CHEAPER, f"{what} saves nothing: today it costs ${at.usd:,.2f} a month (committed: ${plan} an hour)"
    )


def out(at: Situation, kind: OptionKind, reason: Reason) -> Excluded:
    """The dimension ruled out for what runs."""
    return Excluded(at.runs.name, reason, kind)
