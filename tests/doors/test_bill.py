"""The report of a stack that reads a bill, with the rights that its parameter gives."""

import gzip
import json
from datetime import timedelta
from typing import Any

import pytest

from sandbox.billing import ran_until
from sandbox.charges import CUR_HEADS, Payer, charges, cur_rows, written
from sandbox.prices import hourly
from tests.doors.scene import BIG, PROPOSE, START, Scene, scene
from tests.doors.test_report import data

EXPORT = "s3://bills/exports/cur"
MANIFEST = "exports/cur/metadata/BILLING_PERIOD=2026-11/cur-Manifest.json"
PART = "exports/cur/data/BILLING_PERIOD=2026-11/cur-00001.csv.gz"


def reported(at: Scene) -> Any:
    at.add(BIG, tags=PROPOSE)
    at.sweep()
    at.until_report()
    return data(at)["reconciliation"]


def write_export(at: Scene) -> None:
    """The bill of everything that ran until this evening, in a bucket of its own."""
    box, end = at.box, START
    payer = Payer(box.world.account, box.world.region, "USE1", lambda kind: hourly(box.world.region, kind))
    with box.gate.unrecorded():
        at.add(BIG, tags=PROPOSE)
        found = charges(ran_until(box.world, end), payer, end - timedelta(days=9), end)
        s3 = box.client("s3")
        s3.create_bucket(Bucket="bills")
        s3.put_object(Bucket="bills", Key=PART, Body=gzip.compress(written(CUR_HEADS, cur_rows(found))))
        listed = json.dumps({"dataFiles": [f"s3://bills/{PART}"]}).encode()
        s3.put_object(Bucket="bills", Key=MANIFEST, Body=listed)


def test_no_bill_is_read_by_default() -> None:
    with scene(now=START - timedelta(days=1)) as at:
        assert reported(at) is None
        assert at.box.calls.of("ce", "GetCostAndUsage") == []


def test_cost_explorer_is_asked_once_a_report_with_the_right_that_the_role_has() -> None:
    with scene(now=START - timedelta(days=1), Bill="cost-explorer") as at:
        found = reported(at)
        assert (found["reason"], found["level"], found["source"]) == ("", "instance type", "Cost Explorer")
        assert found["rows"][0]["hours"] != "0.00"
        assert len(at.box.calls.of("ce", "GetCostAndUsage")) == 1
        assert at.refused() == []


def test_an_export_is_read_with_the_right_that_the_role_has() -> None:
    with scene(now=START - timedelta(days=1), Bill=EXPORT) as at:
        write_export(at)
        at.sweep()
        at.until_report()
        found = data(at)["reconciliation"]
        assert (found["reason"], found["level"]) == ("", "endpoint")
        assert [row["name"] for row in found["rows"]] == [BIG]
        billed, spent = (float(found["rows"][0][name]) for name in ("billed", "spent"))
        assert billed == pytest.approx(spent, rel=0.01)
        assert at.refused() == []


def test_an_export_that_is_not_there_leaves_the_report_and_is_its_reason() -> None:
    with scene(now=START - timedelta(days=1), Bill=EXPORT) as at:
        assert MANIFEST in reported(at)["reason"]
