"""Data: instance specifications, accelerators, the dated price snapshot, and the reader of their rows.

The rows are read as they are, typed, nothing judged. Where the figures come from: docs/data-sources.md.
`scripts/compile_catalog.py` writes the files.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources

from rightsizer.domain.hardware import Accelerator, Catalogue, InstanceType


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """Hardware of one hosting instance type; `accelerator` is empty for CPU types."""

    name: str
    vcpu: int
    memory_gib: float
    accelerator: str
    accelerator_count: int
    cpu_arch: str


@dataclass(frozen=True, slots=True)
class AcceleratorRow:
    """One chip; None where a figure is not known."""

    model: str
    vendor: str
    fp16_tflops: float | None
    memory_bandwidth_gbps: float | None
    memory_gib: float
    usable_gib: float
    compute_capability: str


def catalogue(instances: Iterable[InstanceRow], accelerators: Iterable[AcceleratorRow]) -> Catalogue:
    """The catalogue; types whose accelerator lacks a figure that decisions need go to `incomplete`, with what lacks."""
    chips = {row.model: _chip(row) for row in accelerators}
    types: dict[str, InstanceType] = {}
    incomplete: dict[str, str] = {}
    for row in instances:
        match _accelerator(row, chips):
            case str() as missing:
                incomplete[row.name] = missing
            case chip:
                types[row.name] = InstanceType(
                    row.name, row.vcpu, row.memory_gib, row.cpu_arch, chip, row.accelerator_count
                )
    return Catalogue(types, incomplete)


def _accelerator(row: InstanceRow, chips: Mapping[str, Accelerator | str]) -> Accelerator | str | None:
    if not row.accelerator:
        return None
    return chips.get(row.accelerator, f"no figures are known for the accelerator {row.accelerator}")


def _chip(row: AcceleratorRow) -> Accelerator | str:
    if row.fp16_tflops is None:
        return f"the FP16 speed of the accelerator {row.model} is not known"
    if row.memory_bandwidth_gbps is None:
        return f"the memory bandwidth of the accelerator {row.model} is not known"
    return Accelerator(
        row.model,
        row.vendor,
        row.fp16_tflops,
        row.memory_bandwidth_gbps,
        row.memory_gib,
        row.usable_gib,
        _capability(row.compute_capability),
    )


def _capability(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


@dataclass(frozen=True, slots=True)
class PriceRow:
    """Best known On-Demand price of one type in one Region, with its provenance."""

    instance_type: str
    usd_per_hour: Decimal
    basis: str
    as_of: str
    listed: bool
    """Whether the price list sells the type for hosting in the Region, as far as the snapshot knows."""


@dataclass(frozen=True, slots=True)
class Ec2Row:
    """On-Demand price of EC2 in us-east-1, by the SageMaker name of the same hardware."""

    instance_type: str
    usd_per_hour: Decimal
    as_of: str


@cache
def ec2_prices() -> tuple[Ec2Row, ...]:
    """The types whose EC2 price in us-east-1 is known, Linux, On-Demand."""
    rows = _rows("ec2.csv")
    return tuple(Ec2Row(row["instance_type"], Decimal(row["usd_per_hour"]), row["as_of"]) for row in rows)


@dataclass(frozen=True, slots=True)
class ServerlessRow:
    """Price of a GB-second of serverless inference in one Region, with its source."""

    region: str
    usd_per_gb_second: Decimal
    as_of: str
    source: str


@cache
def serverless() -> tuple[ServerlessRow, ...]:
    """The Regions whose serverless price is known; the others are not guessed."""
    return tuple(
        ServerlessRow(row["region"], Decimal(row["usd_per_gb_second"]), row["as_of"], row["source"])
        for row in _rows("serverless.csv")
    )


@dataclass(frozen=True, slots=True)
class OwnPriceRow:
    """AWS's price in us-east-1 for one of something that rightsizer itself uses."""

    item: str
    usd: Decimal
    unit: str
    as_of: str
    source: str


@dataclass(frozen=True, slots=True)
class OwnUseRow:
    """Quantity of something that rightsizer itself uses on one occasion: in any case, and for each endpoint."""

    occasion: str
    item: str
    fixed: Decimal
    each: Decimal


@cache
def own_prices() -> Mapping[str, OwnPriceRow]:
    """The prices of what rightsizer itself uses, by item."""
    rows = _rows("own_prices.csv")
    return {
        row["item"]: OwnPriceRow(row["item"], Decimal(row["usd"]), row["unit"], row["as_of"], row["source"])
        for row in rows
    }


@cache
def own_use() -> tuple[OwnUseRow, ...]:
    """Quantities that rightsizer itself uses, as `bench.own_bill` counted them."""
    return tuple(
        OwnUseRow(row["occasion"], row["item"], Decimal(row["fixed"]), Decimal(row["each"]))
        for row in _rows("own_use.csv")
    )


@cache
def instances() -> tuple[InstanceRow, ...]:
    """Every type of the compiled catalogue."""
    return tuple(
        InstanceRow(
            row["instance_type"],
            int(row["vcpu"]),
            float(row["memory_gib"]),
            row["accelerator_model"],
            int(row["accelerator_count"]),
            row["cpu_arch"],
        )
        for row in _rows("instance_types.csv")
    )


@cache
def accelerators() -> tuple[AcceleratorRow, ...]:
    """Every chip of the compiled catalogue."""
    return tuple(
        AcceleratorRow(
            row["model"],
            row["vendor"],
            _parse_number(row["fp16_tflops_dense"]),
            _parse_number(row["memory_bandwidth_gbps"]),
            float(row["memory_gib"]),
            float(row["usable_gib"]),
            row["compute_capability"],
        )
        for row in _rows("accelerators.csv")
    )


@cache
def prices(region: str) -> tuple[PriceRow, ...]:
    """The snapshot of one Region; empty for a Region that the snapshot does not cover. Reads that file only."""
    if not resources.files(__package__).joinpath("prices", f"{region}.csv").is_file():
        return ()
    return tuple(
        PriceRow(row["instance_type"], Decimal(row["usd_per_hour"]), row["basis"], row["as_of"], row["listed"] == "yes")
        for row in _rows("prices", f"{region}.csv")
    )


def priced_regions() -> frozenset[str]:
    """The Regions that the snapshot covers."""
    files = resources.files(__package__).joinpath("prices").iterdir()
    return frozenset(file.name.removesuffix(".csv") for file in files if file.name.endswith(".csv"))


def _parse_number(cell: str) -> float | None:
    return float(cell) if cell else None


def _rows(*path: str) -> Iterator[dict[str, str]]:
    with resources.files(__package__).joinpath(*path).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)
