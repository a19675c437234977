"""What can be had in a Region: classes of instance types, their dated prices, and EC2 prices for nodes of a cluster."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import cache

from rightsizer import catalog
from rightsizer.advice.answer import Cost, HardwareClass
from rightsizer.catalog import catalogue
from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.price import HOURS_PER_MONTH, Price
from rightsizer.errors import InputError

BY_LETTER = {
    "t": HardwareClass.CPU_BURST,
    "m": HardwareClass.CPU_GEN,
    "c": HardwareClass.CPU_COMP,
    "r": HardwareClass.CPU_MEM,
}
LEGACY = frozenset({"inf1", "p2", "p3", "m4", "c4"})
"""Families that are withdrawn or legacy (rule C7): never proposed."""
NO_ON_DEMAND = frozenset({"trn2", "p5e", "p6e-gb200"})
"""Families that no price list of any Region shows On-Demand (rule P9)."""
TRAINING = frozenset(
    {
        "c5",
        "c5n",
        "c6i",
        "c7i",
        "g4dn",
        "g5",
        "g6",
        "g6e",
        "g7",
        "g7e",
        "m5",
        "m6i",
        "m7i",
        "p4d",
        "p4de",
        "p5",
        "p5e",
        "p5en",
        "p6-b200",
        "p6-b300",
        "r5",
        "r5d",
        "r6i",
        "r7i",
        "t3",
        "trn1",
        "trn1n",
        "trn2",
    }
)
"""Families of training jobs (the API's TrainingInstanceType); processing jobs take the CPU families of them."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One instance type with its price."""

    type: InstanceType
    price: Price

    @property
    def hardware(self) -> HardwareClass:
        """The class of the type."""
        return class_of(self.type)

    @property
    def hourly(self) -> float:
        """US dollars an hour."""
        return float(self.price.usd_per_hour)

    @property
    def usable_gib(self) -> float:
        """GiB that all accelerators of one instance offer to a model (rule M6); 0 for CPU types."""
        return self.type.accelerator.usable_gib * self.type.accelerator_count if self.type.accelerator else 0.0

    def cost(self, count: int = 1, hours: float = float(HOURS_PER_MONTH)) -> Cost:
        """The cost of `count` instances that run so many hours a month."""
        hourly = self.price.usd_per_hour * count
        monthly = (hourly * Decimal(str(hours))).quantize(Decimal("0.01"))
        return Cost(hourly, monthly, region=self.price.region, basis=self.price.basis, as_of=self.price.as_of)


@dataclass(frozen=True, slots=True)
class Market:
    """Types and prices of one Region."""

    region: str
    types: Catalogue
    prices: Mapping[str, Price]

    def offers(self, classes: Collection[HardwareClass], families: Collection[str] = ()) -> Iterator[Offer]:
        """Types of the classes that the price list shows as sold, cheapest first; without legacy families."""
        offers = [
            Offer(hardware, price)
            for hardware in self.types
            if (price := self.prices.get(hardware.name)) and price.listed and hardware.family not in LEGACY
        ]
        for offer in sorted(offers, key=lambda each: (each.hourly, each.type.name)):
            if offer.hardware in classes and (not families or offer.type.family in families):
                yield offer

    def find(self, name: str) -> Offer | None:
        """The type with its price, sold or not; None where the catalogue or the snapshot lacks it."""
        hardware, price = self.types.find(name), self.prices.get(name)
        return Offer(hardware, price) if hardware and price else None


def class_of(instance: InstanceType) -> HardwareClass:
    """The class of a type, by its accelerator; the first letter of the family only tells CPU types apart."""
    chip = instance.accelerator
    if chip is None:
        return BY_LETTER.get(instance.family[0], HardwareClass.CPU_GEN)
    if chip.vendor == "AWS":
        return HardwareClass.INF if chip.model.startswith("Inferentia") else HardwareClass.TRN
    return HardwareClass.GPU_P if instance.family.startswith("p") else HardwareClass.GPU_G


@cache
def known_types() -> Catalogue:
    """The compiled catalogue."""
    return catalogue(catalog.instances(), catalog.accelerators())


@cache
def snapshot(region: str) -> Market:
    """The market of a Region by the dated snapshot; InputError for a Region that it does not cover."""
    if region not in catalog.priced_regions():
        known = sorted(catalog.priced_regions())
        near = get_close_matches(region, known, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise InputError(f"no prices are known for the Region {region!r}{meant}; known are {', '.join(known)}")
    prices = {
        row.instance_type: Price(
            row.instance_type, region, row.usd_per_hour, "snapshot", row.basis, row.as_of, row.listed
        )
        for row in catalog.prices(region)
    }
    return Market(region, known_types(), prices)


def without_price(instance: InstanceType, region: str) -> str:
    """The sentence that no price of a type is known, with where one can be had."""
    if instance.family in NO_ON_DEMAND:
        text = f"{instance.name} has no On-Demand price: its capacity is sold as a training plan"
        return f"{text}, and SearchTrainingPlanOfferings names the price of an offer"
    text = f"no price of {instance.name} is known in {region}, and the type may not be sold there"
    return f"{text}: look at https://aws.amazon.com/sagemaker/ai/pricing/"


def dollars(value: Decimal | float) -> str:
    """An hourly price with four decimals at most."""
    text = f"{value:.4f}".rstrip("0")
    whole, _, part = text.partition(".")
    return f"{whole}.{part.ljust(2, '0')}"


HOME = "us-east-1"
"""The Region whose EC2 prices are in the catalogue."""


@cache
def ec2_market(region: str) -> Market:
    """Types with their EC2 price, by SageMaker's name of the same hardware.

    Elsewhere than in us-east-1 the price is derived: it differs as the SageMaker price of the type does. InputError for
    a Region that the snapshot does not cover.
    """
    here, home = snapshot(region), snapshot(HOME)
    prices: dict[str, Price] = {}
    for row in catalog.ec2_prices():
        there, base = here.prices.get(row.instance_type), home.prices.get(row.instance_type)
        if there is None or base is None:
            continue
        usd = (row.usd_per_hour * there.usd_per_hour / base.usd_per_hour).quantize(Decimal("0.0001"))
        basis = "ec2" if region == HOME else f"ec2, derived from {HOME}"
        prices[row.instance_type] = Price(row.instance_type, region, usd, "snapshot", basis, row.as_of, there.listed)
    return Market(region, known_types(), prices)
