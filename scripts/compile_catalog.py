"""Compile the catalogue from the collected data: ``python -m scripts.compile_catalog DATA_DIRECTORY``.

Reads instance_specs.csv, accelerators.csv, hosting_prices.csv and other_prices.csv of the directory and cfn-lint's
list of hosting types by Region (generated from the AWS price list), and writes what the program needs into
shared/rightsizer/catalog.
The output is committed; docs/data-sources.md tells where each column comes from.
"""

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from importlib import resources
from pathlib import Path

CATALOG = Path(__file__).parent.parent / "shared" / "rightsizer" / "catalog"

USABLE_GIB = {
    "T4": "14.6",
    "A10G": "22.0",
    "L4": "22.0",
    "L40S": "44.5",
    "A100-SXM4-40GB": "39.0",
    "A100-SXM4-80GB": "79.0",
    "H100-SXM-80GB": "79.0",
}
"""Measured usable memory per chip; the others get `USABLE_SHARE` of the listed figure."""
USABLE_SHARE = 0.985
SHOWN_GIB = {"T4": "15"}
"""What the driver shows, and metrics are percentages of, where the EC2 API gives a nominal size (T4: 16)."""


def compile_catalog(data: Path, target: Path) -> None:
    """Write instance_types.csv, accelerators.csv, serverless.csv, ec2.csv and prices/REGION.csv below `target`."""
    specs = _read(data / "instance_specs.csv")
    chips = _read(data / "accelerators.csv")
    _write(target / "instance_types.csv", INSTANCE_COLUMNS, ([row[c] for c in INSTANCE_COLUMNS] for row in specs))
    used = {row["accelerator_model"] for row in specs}
    vendors = {row["accelerator_model"]: row["accelerator_vendor"] for row in specs}
    _write(
        target / "accelerators.csv",
        ("model", "vendor", *CHIP_COLUMNS, "usable_gib"),
        (
            [
                chip["accelerator_model"],
                vendors[chip["accelerator_model"]],
                *[_shown(chip)[c] for c in CHIP_COLUMNS],
                _usable(chip),
            ]
            for chip in chips
            if chip["accelerator_model"] in used
        ),
    )
    _prices(_read(data / "hosting_prices.csv"), hosting_types(), target / "prices")
    _serverless(_read(data / "other_prices.csv"), target)
    _ec2(specs, target)


INSTANCE_COLUMNS = ("instance_type", "vcpu", "memory_gib", "accelerator_model", "accelerator_count", "cpu_arch")
EC2_AS_OF = "2026-07-20"
"""Date of the EC2 prices in instance_specs.csv."""
CHIP_COLUMNS = ("fp16_tflops_dense", "memory_bandwidth_gbps", "memory_gib", "compute_capability")


def hosting_types() -> dict[str, set[str]]:
    """Types by Region that the price list sells for hosting, as cfn-lint carries them."""
    package = resources.files("cfnlint.data.schemas.extensions.aws_sagemaker_hosting")
    raw = json.loads(package.joinpath("instancetype_enum.json").read_text())
    return {region: set(_strings(rule)) for region, rule in raw.items()}


def _strings(node: object) -> Iterable[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value)


def _prices(rows: Sequence[dict[str, str]], sold: dict[str, set[str]], target: Path) -> None:
    regions: dict[str, list[list[str]]] = defaultdict(list)
    for row in rows:
        kind, region = row["instance_type"], row["region"]
        listed = "yes" if kind in sold.get(region, set()) else "no"
        regions[region].append([kind, row["usd_per_hour"], row["basis"], row["as_of"], listed])
    target.mkdir(exist_ok=True)
    for region, prices in regions.items():
        _write(target / f"{region}.csv", ("instance_type", "usd_per_hour", "basis", "as_of", "listed"), sorted(prices))


def _serverless(rows: Sequence[dict[str, str]], target: Path) -> None:
    """The price of a GB-second: the row of 1 GB."""
    found = [row for row in rows if (row["category"], row["item"]) == ("serverless_inference", "1 GB memory")]
    lines = ([row["region"], f"{Decimal(row['usd']).normalize():f}", row["as_of"], row["source"]] for row in found)
    _write(target / "serverless.csv", ("region", "usd_per_gb_second", "as_of", "source"), lines)


def _ec2(specs: Sequence[dict[str, str]], target: Path) -> None:
    """On-Demand prices of EC2 in us-east-1, by the SageMaker name of the same hardware."""
    column = "ec2_usd_per_hour_us_east_1"
    lines = ([row["instance_type"], row[column], EC2_AS_OF] for row in specs if row[column])
    _write(target / "ec2.csv", ("instance_type", "usd_per_hour", "as_of"), lines)


def _shown(chip: dict[str, str]) -> dict[str, str]:
    return chip | {"memory_gib": SHOWN_GIB.get(chip["accelerator_model"], chip["memory_gib"])}


def _usable(chip: dict[str, str]) -> str:
    return USABLE_GIB.get(chip["accelerator_model"], f"{float(chip['memory_gib']) * USABLE_SHARE:.1f}")


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python -m scripts.compile_catalog DATA_DIRECTORY (got {len(sys.argv) - 1} arguments)")
    compile_catalog(Path(sys.argv[1]), CATALOG)
