"""The committed catalogue is what the script makes of the data."""

import csv
from pathlib import Path

import pytest

from rightsizer import catalog
from scripts.compile_catalog import CATALOG, compile_catalog

DATA = Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(
    not (DATA / "hosting_prices.csv").is_file(), reason="the collected data (../shared/data) is not on this machine"
)


@needs_data
def test_the_committed_tables_are_the_output_of_the_script(tmp_path: Path) -> None:
    compile_catalog(DATA, tmp_path)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.csv")}
    committed = {path.relative_to(CATALOG): path.read_bytes() for path in CATALOG.rglob("*.csv")}
    committed = {
        path: text for path, text in committed.items() if not path.name.startswith("own_")
    }  # of bench.own_bill
    assert made == committed


@needs_data
def test_hosting_prices_lie_between_1_15_and_1_40_of_ec2_in_virginia() -> None:
    with (DATA / "instance_specs.csv").open(newline="", encoding="utf-8") as file:
        ec2 = {row["instance_type"]: row["ec2_usd_per_hour_us_east_1"] for row in csv.DictReader(file)}
    for row in catalog.prices("us-east-1"):
        if ec2[row.instance_type]:
            ratio = float(row.usd_per_hour) / float(ec2[row.instance_type])
            slack = 0.0006 / float(ec2[row.instance_type])
            assert 1.15 - slack <= ratio <= 1.40 + slack, row
