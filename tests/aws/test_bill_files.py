"""Exports of the bill are read as streams; a damaged or hostile one is refused with its place and a remedy."""

import gzip
import io
import json
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rightsizer.aws.bill_columns import endpoint_of, instance_type_of
from rightsizer.aws.bill_sources import MOST_LINE, BillFiles, ExportInS3, Opened, local_file
from rightsizer.domain.bill import BilledCharge, BillWindow
from rightsizer.errors import InputError, ReadError
from sandbox.charges import CUR_HEADS
from tests.reporting.bill_kit import ACCOUNT, END, REGION, START, Course, as_cur, as_focus, bill_of, reader

SCOPE = BillWindow(ACCOUNT, REGION, START, END)
COURSE = Course("chat-0", START + timedelta(days=2))
BILL = as_cur(bill_of([COURSE]))
LINES = BILL.decode().splitlines(keepends=True)


def read(*bodies: bytes) -> list[BilledCharge]:
    return list(reader(*bodies).lines(SCOPE))


def edited(row: int, column: str, value: str) -> bytes:
    lines = list(LINES)
    cells = lines[row - 1].rstrip("\n").split(",")
    cells[CUR_HEADS.index(column)] = value
    lines[row - 1] = ",".join(cells) + "\n"
    return "".join(lines).encode()


def without(column: str) -> bytes:
    at = CUR_HEADS.index(column)
    kept = [[cell for place, cell in enumerate(line.rstrip("\n").split(",")) if place != at] for line in LINES]
    return "".join(",".join(cells) + "\n" for cells in kept).encode()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "bill-0.csv is empty"),
        (b"a,b,c\n1,2,3\n", "its first row names no bill.*CUR 2.0.*FOCUS"),
        (b"PAR1\x15\x04\x15", "Parquet file; create the export as text/csv with GZIP"),
        (b"PK\x03\x04zip", "ZIP archive"),
        (bytes(range(256)) * 40, "no text|NUL bytes|no CSV"),
        (LINES[0].encode() + b"\xff\xfe\xfa\n", "is no text"),
        (LINES[0].encode() + b"\0\0\0\n", "NUL bytes"),
        (gzip.compress(BILL)[:-900], "damaged or cut off"),
        (BILL[:-30], r"row \d+: \d+ cells where the first row names 18"),
        (b"x" * (MOST_LINE + 5), "a line of over"),
        (LINES[0].encode() + b'"' + b"x\n" * 200_000, "is no CSV"),
        (without("line_item_currency_code"), "line_item_currency_code missing; create the export with the columns"),
        (without("product_region_code"), "product_region_code missing"),
        (
            edited(5, "line_item_unblended_cost", "=1+1"),
            r"row 5: line_item_unblended_cost is '=1\+1', which is no amount",
        ),
        (edited(5, "line_item_usage_amount", "NaN"), "row 5: line_item_usage_amount is 'NaN'"),
        (edited(5, "line_item_usage_amount", "1e300"), "row 5: line_item_usage_amount"),
        (edited(5, "line_item_usage_start_date", "yesterday"), "row 5: 'yesterday' is no time"),
        (edited(5, "line_item_usage_end_date", "2020-01-01T00:00:00Z"), "lies before"),
    ],
)
def test_what_is_no_bill_is_named_with_its_place_and_a_remedy(body: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(body)


def test_two_formats_are_not_one_bill() -> None:
    with pytest.raises(InputError, match=r"bill-1.csv is FOCUS, and the file before it CUR 2\.0"):
        read(BILL, as_focus(bill_of([COURSE])))


def test_the_older_spelling_of_the_columns_is_read_too() -> None:
    names = {
        "line_item_line_item_type": "lineItem/LineItemType",
        "line_item_product_code": "lineItem/ProductCode",
        "line_item_usage_amount": "lineItem/UsageAmount",
        "product_region_code": "product/region",
        "pricing_public_on_demand_cost": "pricing/publicOnDemandCost",
        "savings_plan_savings_plan_effective_cost": "savingsPlan/SavingsPlanEffectiveCost",
    }
    heads = LINES[0]
    for new, old in names.items():
        heads = heads.replace(new, old)
    assert read((heads + "".join(LINES[1:])).encode()) == read(BILL)


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    assert read(b"\xef\xbb\xbf" + BILL.replace(b"\n", b"\r\n")) == read(BILL)


@pytest.mark.parametrize(
    ("usage", "kind"),
    [
        ("EUW1-Host:ml.g5.xlarge", "ml.g5.xlarge"),
        ("EU-Host:ml.g5.12xlarge", "ml.g5.12xlarge"),
        ("Host:ml.m5.large", "ml.m5.large"),
        ("USE1-AsyncInf:ml.g5.xlarge", "ml.g5.xlarge"),
        ("USE1-Train:ml.g5.xlarge", ""),
        ("USE1-Host:VolumeUsage.gp2", ""),
        ("USE1-Notebk:ml.t3.medium", ""),
        ("", ""),
    ],
)
def test_instance_hours_of_endpoints_are_told_by_their_usage_type(usage: str, kind: str) -> None:
    assert instance_type_of(usage) == kind


def test_an_endpoint_is_told_by_its_arn() -> None:
    assert endpoint_of("arn:aws:sagemaker:eu-west-1:111122223333:endpoint/Chat") == "chat"
    assert endpoint_of("arn:aws:sagemaker:eu-west-1:111122223333:training-job/chat") == ""


def test_reading_ends_in_time_and_says_how_to_make_a_smaller_export() -> None:
    many = LINES[0] + "".join(LINES[1:]) * 40

    def opened(_: BillWindow) -> Iterator[Opened]:
        yield "big.csv", io.BufferedReader(io.BytesIO(many.encode()))

    with pytest.raises(ReadError, match=r"big\.csv: over 0 seconds at row 4,096; create an export of SageMaker alone"):
        list(BillFiles(opened, 0.0).lines(SCOPE))


class Repeated(io.RawIOBase):
    """A file of one head and a million rows, that is nowhere whole."""

    def __init__(self, rows: int) -> None:
        self._parts = iter([LINES[0].encode(), *["".join(LINES[1:101]).encode()] * (rows // 100)])
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._left = part
        taken, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def test_a_long_bill_needs_little_memory() -> None:
    found = BillFiles(lambda _: iter([("long.csv", io.BufferedReader(Repeated(20_000)))]), 600.0)
    tracemalloc.start()
    number = sum(1 for _ in found.lines(SCOPE))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert number > 10_000
    assert peak < 8_000_000, "as much as a few lines, however many there are"


def test_a_file_of_this_machine_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bill.csv.gz"
    path.write_bytes(gzip.compress(BILL))
    assert list(BillFiles(local_file(path), 60.0).lines(SCOPE)) == read(BILL)
    with pytest.raises(ReadError, match=r"no\.csv: No such file"):
        list(BillFiles(local_file(tmp_path / "no.csv"), 60.0).lines(SCOPE))


class Bucket:
    """A bucket with these objects; others it refuses as S3 does to a role that may not list."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects, self.asked = objects, list[str]()

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        from botocore.exceptions import ClientError

        self.asked.append(f"{Bucket}/{Key}")
        if Key not in self.objects:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}, "GetObject")
        return {"Body": io.BytesIO(self.objects[Key])}


def export(bucket: Bucket, address: str = "s3://bills/exports/cur") -> BillFiles:
    client: Any = bucket
    return BillFiles(ExportInS3(client, address), 60.0)


def manifest(*keys: str) -> bytes:
    return json.dumps({"dataFiles": [f"s3://bills/{key}" for key in keys]}).encode()


MANIFEST = "exports/cur/metadata/BILLING_PERIOD=2026-01/cur-Manifest.json"
PART = "exports/cur/data/BILLING_PERIOD=2026-01/cur-0000{}.csv.gz"


def test_an_export_is_read_as_its_manifest_lists_it() -> None:
    parts = {PART.format(1): gzip.compress(BILL), PART.format(2): gzip.compress(BILL), PART.format(3): b"an older one"}
    bucket = Bucket({MANIFEST: manifest(PART.format(1), PART.format(2)), **parts})
    assert list(export(bucket).lines(SCOPE)) == read(BILL, BILL)
    assert len(bucket.asked) == 3


def test_one_object_is_read_without_a_manifest() -> None:
    assert list(export(Bucket({"a/b.csv": BILL}), "s3://bills/a/b.csv").lines(SCOPE)) == read(BILL)


def test_a_window_over_a_month_end_reads_both_months() -> None:
    bucket = Bucket({MANIFEST: manifest(PART.format(1)), PART.format(1): BILL})
    scope = BillWindow(ACCOUNT, REGION, START, START + timedelta(days=30))
    with pytest.raises(ReadError, match="BILLING_PERIOD=2026-02"):
        list(export(bucket).lines(scope))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "no manifest"),
        (b"[1]", "no manifest"),
        (b'{"dataFiles": null}', "no manifest"),
        (manifest("other/data.csv"), "not below s3://bills/exports/cur/"),
        (manifest("exports/cur/../../secret.csv"), "not below"),
        (b'{"dataFiles": ["s3://elsewhere/exports/cur/a.csv"]}', "not below"),
    ],
)
def test_a_manifest_leads_nowhere_else(body: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        list(export(Bucket({MANIFEST: body})).lines(SCOPE))


def test_an_export_that_may_not_be_read_names_the_right_and_the_object() -> None:
    with pytest.raises(ReadError, match=r"s3://bills/exports/cur/metadata.*s3:GetObject"):
        list(export(Bucket({})).lines(SCOPE))
    with pytest.raises(InputError, match="it should be s3://BUCKET/PREFIX/EXPORT-NAME"):
        export(Bucket({}), "s3://bills")
