"""What an instance hour costs, where the figure comes from, and what is committed already."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from rightsizer.domain.checks import money, not_empty
from rightsizer.domain.reason import Reason
from rightsizer.errors import InputError

CENT = Decimal("0.01")
HOURS_PER_MONTH = Decimal(730)
"""AWS's own convention for monthly figures."""


@dataclass(frozen=True, slots=True)
class Price:
    """On-Demand hosting price of one instance hour."""

    instance_type: str
    region: str
    usd_per_hour: Decimal
    source: str
    """``price-list-api``, ``snapshot``, or the word of another price source."""
    basis: str
    """``Hosting`` for the API; for the snapshot the basis column of the data, such as ``derived-verified``."""
    as_of: str
    """Publication date of the price list, or date of the snapshot row; may be partial, such as ``2026-09``."""
    listed: bool = True
    """Whether the source shows that the type is sold for hosting there. False (snapshot only): the price tells what an
    existing endpoint costs, and is no evidence that a new one could be started."""
    hours_per_month: Decimal = HOURS_PER_MONTH
    """Hours of a month in which instances of the endpoint run: fewer where its office hours stop it."""
    kind: Literal["price"] = "price"

    def __post_init__(self) -> None:
        not_empty("Price.instance_type", self.instance_type)
        if money("Price.usd_per_hour", self.usd_per_hour) <= 0:
            raise InputError(
                f"the price of {self.instance_type} in {self.region} must be above zero, got {self.usd_per_hour}"
            )
        if not 0 < self.hours_per_month <= HOURS_PER_MONTH:
            raise InputError(f"hours_per_month must be above 0 and at most {HOURS_PER_MONTH}: {self.hours_per_month}")

    @property
    def usd_per_instance_month(self) -> Decimal:
        """US dollars of one instance in the hours of a month that it runs."""
        return self.usd_per_hour * self.hours_per_month


@dataclass(frozen=True, slots=True)
class NoPrice:
    """A type that cannot be priced, and so is never a candidate."""

    instance_type: str
    region: str
    reason: Reason
    kind: Literal["no-price"] = "no-price"


@dataclass(frozen=True, slots=True)
class KnownPrices:
    """Prices that one source knows of the types it was asked for."""

    prices: Mapping[str, Price | NoPrice]
    """By instance type. A type that is absent is not known here: the next source is asked. With `NoPrice` the source
    says that nobody can price the type, and no other source is asked."""
    unread: Reason | None = None
    """Why the source could not be read; people are told."""
    is_whole_list: bool = False
    """Whether the source has every type that is sold for hosting in the Region. The price of a later source is then no
    evidence that a new endpoint could be started (`Price.listed`)."""


@dataclass(frozen=True, slots=True)
class ServerlessPrice:
    """Price of serverless inference: US dollars for one GB of memory during one second of a request."""

    region: str
    usd_per_gb_second: Decimal
    as_of: str
    basis: str
    """Where the figure comes from."""

    def __post_init__(self) -> None:
        if money("ServerlessPrice.usd_per_gb_second", self.usd_per_gb_second) <= 0:
            raise InputError(f"a serverless price must be above zero, got {self.usd_per_gb_second}")


PLAN_DISCOUNT = Decimal("0.3")
"""Discount of a SageMaker Savings Plan that is reckoned with. AWS names no table of them: 31 % is known of one type for
one year, and up to 64 % is promised (page of Savings Plans). The rates of a bought plan are not read."""


@dataclass(frozen=True, slots=True)
class Commitment:
    """SageMaker Savings Plans of the account. Moving off committed use saves nothing until the plan ends.

    How much of it is used now does not matter: what is not used is billed all the same.
    """

    usd_per_hour: Decimal
    """Committed spend, USD per hour; 0 without a plan."""
    known: bool
    """False when the account could not be asked; then the saving is stated as before commitments."""

    @property
    def covered_usd_per_hour(self) -> Decimal:
        """On-demand price of the use that the plan pays for: more than the plan, whose rates are lower."""
        return self.usd_per_hour / (1 - PLAN_DISCOUNT)


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices of one Region by instance type, and the commitment that they must be read with."""

    region: str
    prices: Mapping[str, Price | NoPrice]
    commitment: Commitment
    notes: tuple[Reason, ...] = ()
    """What could not be asked (the Price List API, the Savings Plans), and why."""
    serverless: ServerlessPrice | None = None
    """Price of serverless inference; None where none is known in the Region."""

    def find(self, instance_type: str) -> Price | None:
        """The price, or None when the type has none and so is no candidate."""
        match self.prices.get(instance_type):
            case Price() as price:
                return price
            case _:
                return None

    def running(self, hours_per_month: Decimal) -> "PriceTable":
        """The prices for an endpoint that runs so many hours of a month."""
        if hours_per_month == HOURS_PER_MONTH:
            return self
        prices = {
            name: replace(price, hours_per_month=hours_per_month) if isinstance(price, Price) else price
            for name, price in self.prices.items()
        }
        return replace(self, prices=prices)
