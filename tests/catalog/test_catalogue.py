"""The compiled catalogue agrees with botocore and with itself."""

from decimal import Decimal

import botocore.session
import pytest

from rightsizer import catalog
from rightsizer.catalog import catalogue

CATALOGUE = catalogue(catalog.instances(), catalog.accelerators())
KNOWN = {**dict.fromkeys(CATALOGUE.incomplete), **CATALOGUE.types}
REGIONS = sorted(catalog.priced_regions())
COUNTS = {
    **{f"ml.{family}.{size}": count for family in ("g5", "g6", "g6e") for size, count in
       (("xlarge", 1), ("12xlarge", 4), ("16xlarge", 1), ("24xlarge", 4), ("48xlarge", 8))},
    **{f"ml.g7e.{size}": count for size, count in (("12xlarge", 2), ("24xlarge", 4), ("48xlarge", 8))},
    "ml.g4dn.12xlarge": 4,
    "ml.p4d.24xlarge": 8,
    "ml.p4de.24xlarge": 8,
    "ml.p5.48xlarge": 8,
    "ml.p5.4xlarge": 1,
}  # fmt: skip


def test_the_catalogue_knows_every_type_that_the_api_accepts() -> None:
    model = botocore.session.get_session().get_service_model("sagemaker")
    accepted = set(model.shape_for("ProductionVariantInstanceType").enum)  # type: ignore[attr-defined]
    assert accepted - set(KNOWN) == set()
    assert set(KNOWN) - accepted == set()


def test_types_without_accelerator_figures_are_set_apart_with_the_reason() -> None:
    assert {name.split(".")[1] for name in CATALOGUE.incomplete} == {"p2", "dl1", "g7"}
    assert "FP16" in CATALOGUE.incomplete["ml.g7.2xlarge"]
    assert CATALOGUE.find("ml.g7.2xlarge") is None


def test_size_is_not_gpu_count() -> None:
    found = {name: CATALOGUE.find(name) for name in COUNTS}
    assert {name: hardware and hardware.accelerator_count for name, hardware in found.items()} == dict(COUNTS)


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("ml.g4dn.xlarge", 14.6),
        ("ml.g5.xlarge", 22.0),
        ("ml.g6.xlarge", 22.0),
        ("ml.g6e.xlarge", 44.5),
        ("ml.p4d.24xlarge", 39.0),
        ("ml.p4de.24xlarge", 79.0),
        ("ml.p5.48xlarge", 79.0),
        ("ml.p5en.48xlarge", 138.9),
    ],
)
def test_usable_memory_is_measured_or_a_share_of_the_listed(name: str, usable: float) -> None:
    found = CATALOGUE.find(name)
    assert found is not None
    assert found.accelerator is not None
    assert found.accelerator.usable_gib == usable


def test_usable_memory_never_exceeds_the_listed_memory() -> None:
    assert all(0 < chip.usable_gib < chip.memory_gib for chip in catalog.accelerators())


def test_an_accelerator_is_counted_exactly_when_it_is_named() -> None:
    assert [row.name for row in catalog.instances() if bool(row.accelerator) != (row.accelerator_count > 0)] == []


def test_compute_capability_compares_as_a_version() -> None:
    a10g, rtx = CATALOGUE.types["ml.g5.xlarge"].accelerator, CATALOGUE.types["ml.g7e.2xlarge"].accelerator
    assert a10g is not None
    assert rtx is not None
    assert a10g.compute_capability == (8, 6)
    assert rtx.compute_capability == (12, 0)


def test_the_snapshot_covers_twenty_seven_regions_and_no_unknown_one() -> None:
    assert len(REGIONS) == 27
    assert catalog.prices("mars-north-1") == ()


@pytest.mark.parametrize("region", REGIONS)
def test_prices_are_unique_positive_dated_and_of_known_types(region: str) -> None:
    rows = catalog.prices(region)
    assert len({row.instance_type for row in rows}) == len(rows)
    assert [row for row in rows if row.usd_per_hour <= 0 or not row.basis or not row.as_of] == []
    assert {row.instance_type for row in rows} <= set(KNOWN)


@pytest.mark.parametrize("family", ["g4dn", "g5", "g6", "g6e", "g7e"])
def test_the_price_rises_with_size_except_that_12xlarge_has_more_gpus(family: str) -> None:
    sizes = ["xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge", "12xlarge", "24xlarge", "48xlarge"]
    if family in ("g4dn", "g7e"):
        sizes = ["xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge"]
    for region in REGIONS:
        known = {row.instance_type: row.usd_per_hour for row in catalog.prices(region)}
        ladder = [known[f"ml.{family}.{size}"] for size in sizes if f"ml.{family}.{size}" in known]
        assert ladder == sorted(ladder), region


def test_withdrawn_families_are_priced_but_not_listed() -> None:
    rows = {row.instance_type: row for row in catalog.prices("us-east-1")}
    assert rows["ml.p3.2xlarge"].usd_per_hour > Decimal(3)
    assert not rows["ml.p3.2xlarge"].listed
    assert not rows["ml.p5.4xlarge"].listed
    assert rows["ml.g6.xlarge"].listed
