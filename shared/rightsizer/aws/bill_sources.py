"""Bills as files (CUR 2.0, CUR, FOCUS 1.x) on disk or in S3, and from Cost Explorer."""

import csv
import gzip
import io
import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rightsizer.aws.bill_columns import BILL_FORMATS, BillColumns, BillRow, instance_type_of
from rightsizer.aws.errors import translate_read_errors
from rightsizer.domain.bill import BilledCharge, BillLevel, BillNature, BillWindow, ChargeKind
from rightsizer.errors import InputError, ReadError

if TYPE_CHECKING:
    from types_boto3_ce import CostExplorerClient
    from types_boto3_s3 import S3Client


MOST_LINE = 1 << 20
"""Bytes of one line; a row of an export has a few thousand."""
MOST_MANIFEST = 8 << 20
CHECK_ROWS = 4096
"""Rows between two looks at the clock."""
FOREIGN = {
    b"PAR1": "a Parquet file; create the export as text/csv with GZIP compression",
    b"PK\x03\x04": "a ZIP archive; create the export with GZIP compression, or unpack it",
}
"""What files of other kinds begin with, and what to do."""
GZIP = b"\x1f\x8b"

type Opened = tuple[str, io.BufferedIOBase]
"""A file's name, and its content."""


class BillFiles:
    """Port `BillReader` over files that `opened` opens, one after another.

    Reading ends with ReadError after `seconds`: a report without a bill is better than none.
    """

    def __init__(self, opened: Callable[[BillWindow], Iterable[Opened]], seconds: float) -> None:
        self._opened, self._seconds = opened, seconds
        self._columns: BillColumns | None = None

    def lines(self, scope: BillWindow) -> Iterator[BilledCharge]:
        """The charges of SageMaker of every file."""
        end = time.monotonic() + self._seconds
        self._columns = None
        for name, stream in self._opened(scope):
            with closing(stream):
                try:
                    yield from self._file(name, stream, end)
                except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                    raise InputError(f"{name} is damaged or cut off: {error}; fetch it again") from error
                except UnicodeDecodeError as error:
                    raise InputError(f"{name} is no text: {error.reason}; it should be CSV, plain or gzipped") from None
                except csv.Error as error:
                    raise InputError(f"{name} is no CSV: {error}") from error
                except OSError as error:
                    raise ReadError(f"reading {name}: {error}") from error

    def nature(self) -> BillNature:
        """Format, days and end of the bill, by the files that were read."""
        if self._columns is None:
            return BillNature("bill", BillLevel.ENDPOINT, frozenset(), None, provisional=True)
        return self._columns.nature()

    def _file(self, name: str, stream: io.BufferedIOBase, end: float) -> Iterator[BilledCharge]:
        rows = csv.reader(_text_lines(name, _unpacked(name, stream)), strict=True)
        heads = next(rows, None)
        if heads is None:
            raise InputError(f"{name} is empty; it should begin with the names of its columns")
        columns = self._columns = _columns(name, heads, self._columns)
        wanted = len(heads)
        for number, cells in enumerate(rows, 2):
            if len(cells) != wanted:
                raise InputError(
                    f"{name}, row {number}: {len(cells)} cells where the first row names {wanted}; the file is damaged"
                    " or cut off: fetch it again"
                )
            if number % CHECK_ROWS == 0 and time.monotonic() > end:
                raise ReadError(
                    f"reading {name}: over {self._seconds:g} seconds at row {number:,}; create an export of SageMaker"
                    " alone (docs/bill.md has the query)"
                )
            try:
                line = columns.line(cells)
            except InputError as error:
                raise InputError(f"{name}, row {number}: {error}") from None
            if line is not None:
                yield line


def _columns(name: str, heads: BillRow, before: BillColumns | None) -> BillColumns:
    """Reader of the rows under these heads. Raises InputError, which names the columns that are missing."""
    for kind in BILL_FORMATS:
        if kind.fits(heads):
            return kind(name, heads, before)
    known = " or ".join(f"{kind.source} ({kind.mark})" for kind in BILL_FORMATS)
    raise InputError(f"{name}: its first row names no bill: {str(heads[:3])[:120]}; it should be {known}")


def _unpacked(name: str, stream: io.BufferedIOBase) -> io.BufferedIOBase:
    first = stream.peek(4)[:4] if isinstance(stream, io.BufferedReader) else b""
    for mark, text in FOREIGN.items():
        if first.startswith(mark):
            raise InputError(f"{name} is {text}")
    return gzip.GzipFile(fileobj=stream) if first.startswith(GZIP) else stream


def _text_lines(name: str, stream: io.BufferedIOBase) -> Iterator[str]:
    """The lines; InputError at one that no export has, before it fills the memory."""
    encoding = "utf-8-sig"
    while line := stream.readline(MOST_LINE):
        if len(line) == MOST_LINE and not line.endswith(b"\n"):
            raise InputError(f"{name} has a line of over {MOST_LINE:,} bytes: it is no CSV of a bill")
        if b"\0" in line:
            raise InputError(f"{name} has NUL bytes: it is no CSV of a bill")
        yield line.decode(encoding)
        encoding = "utf-8"


def local_file(path: Path) -> Callable[[BillWindow], Iterator[Opened]]:
    """Opens one file of this machine."""

    def opened(_: BillWindow) -> Iterator[Opened]:
        try:
            yield str(path), path.open("rb")
        except OSError as error:
            raise ReadError(f"reading {path}: {error.strerror}") from error

    return opened


class _Streamed(io.RawIOBase):
    """Body of an object of S3 as a file."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._body.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._body.close()
        super().close()


class ExportInS3:
    """Opens the files of an export, as the manifest of each month of the window lists them; or one object.

    `address` is ``s3://bucket/prefix/export-name``, or that of one object that ends with ``.csv`` or ``.csv.gz``.
    """

    def __init__(self, client: "S3Client", address: str) -> None:
        self._client = client
        self._bucket, _, self._root = address.removeprefix("s3://").rstrip("/").partition("/")
        if not (address.startswith("s3://") and self._bucket and self._root):
            raise InputError(f"the bill is {address[:120]!r}; it should be s3://BUCKET/PREFIX/EXPORT-NAME")

    def __call__(self, scope: BillWindow) -> Iterator[Opened]:
        """The files, opened one after another; each file once, also where two months list it."""
        if self._root.endswith((".csv", ".csv.gz")):
            yield self._open(self._root)
            return
        for key in self.listed_files(scope):
            yield self._open(key)

    def listed_files(self, scope: BillWindow) -> list[str]:
        """Keys of the files that the manifests of these months name, each once."""
        return list(dict.fromkeys(key for month in _months(scope) for key in self._month_files(month)))

    def _month_files(self, month: str) -> Iterator[str]:
        export = self._root.rpartition("/")[2]
        name, body = self._open(f"{self._root}/metadata/BILLING_PERIOD={month}/{export}-Manifest.json")
        with closing(body):
            text = body.read(MOST_MANIFEST)
        try:
            found = json.loads(text)
            files = found.get("dataFiles") or found.get("reportKeys")
            listed = [str(one) for one in files]
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{name} is no manifest of an export: it lists no dataFiles") from error
        for one in listed:
            key = one.removeprefix(f"s3://{self._bucket}/")
            if not key.startswith(f"{self._root}/") or ".." in key:
                raise InputError(f"{name} lists {one[:120]!r}, which is not below s3://{self._bucket}/{self._root}/")
            yield key

    def _open(self, key: str) -> Opened:
        name = f"s3://{self._bucket}/{key}"
        with translate_read_errors("s3:GetObject", f"reading {name}"):
            body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
        return name, io.BufferedReader(_Streamed(body), 1 << 16)


def _months(scope: BillWindow) -> Iterator[str]:
    """The billing periods that the window touches, ``2026-11``, UTC."""
    at = scope.start.replace(day=1)
    while True:
        yield f"{at:%Y-%m}"
        at = (at + timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        if at >= scope.end:
            return


SERVICE = "Amazon SageMaker"
DAY = timedelta(days=1)
MOST_PAGES = 8
"""Requests of one report: USD 0.08 at most."""
METRICS = ("UnblendedCost", "AmortizedCost", "UsageQuantity")
COVERED, NEGATION = "SavingsPlanCoveredUsage", "SavingsPlanNegation"
USAGE_RECORDS = ("Usage", COVERED, "DiscountedUsage")
KINDS: Mapping[str, ChargeKind] = {
    "Credit": ChargeKind.CREDIT,
    "Refund": ChargeKind.REFUND,
    "Tax": ChargeKind.TAX,
    "Enterprise Discount Program Discount": ChargeKind.DISCOUNT,
    "Private Rate Card Discount": ChargeKind.DISCOUNT,
    "Bundled Discount": ChargeKind.DISCOUNT,
}


class CostExplorerBill:
    """Port `BillReader` over Cost Explorer. With `tag` usage is told apart by its values, else by instance type."""

    def __init__(self, client: "CostExplorerClient", tag: str = "") -> None:
        self._client, self._tag = client, tag
        self._days: set[str] = set()
        self._until: datetime | None = None
        self._estimated = True

    def lines(self, scope: BillWindow) -> Iterator[BilledCharge]:
        """The charges of the window's days; one request a page."""
        self._days, self._until, self._estimated = set(), None, False
        for period in self._periods(scope):
            start = _day(period["TimePeriod"]["Start"])
            self._estimated = self._estimated or bool(period.get("Estimated", True))
            for group in period["Groups"]:
                usage_type, other = group["Keys"]
                line = self._line(scope, start, usage_type, other, group["Metrics"])
                if line is None:
                    continue
                if line.kind is ChargeKind.USAGE:
                    self._days.add(f"{start:%Y-%m-%d}")
                    self._until = max(start + DAY, self._until or start)
                yield line

    def nature(self) -> BillNature:
        """Level, days and end of the bill, by the answers."""
        level = BillLevel.TAG if self._tag else BillLevel.TYPE
        return BillNature("Cost Explorer", level, frozenset(self._days), self._until, self._estimated, self._tag)

    def _periods(self, scope: BillWindow) -> Iterator[Mapping[str, Any]]:
        last = scope.end if scope.end == _midnight(scope.end) else _midnight(scope.end) + DAY
        by = {"Type": "TAG", "Key": self._tag} if self._tag else {"Type": "DIMENSION", "Key": "RECORD_TYPE"}
        asked: dict[str, Any] = {
            "TimePeriod": {"Start": f"{scope.start:%Y-%m-%d}", "End": f"{last:%Y-%m-%d}"},
            "Granularity": "DAILY",
            "Metrics": list(METRICS),
            "GroupBy": [{"Type": "DIMENSION", "Key": "USAGE_TYPE"}, by],
            "Filter": {
                "And": [{"Dimensions": {"Key": key, "Values": list(values)}} for key, values in self._filters(scope)]
            },
        }
        for _ in range(MOST_PAGES):
            with translate_read_errors("ce:GetCostAndUsage", "reading the bill from Cost Explorer"):
                page: Any = self._client.get_cost_and_usage(**asked)
            yield from page["ResultsByTime"]
            if not page.get("NextPageToken"):
                return
            asked["NextPageToken"] = page["NextPageToken"]
        raise ReadError(
            f"reading the bill from Cost Explorer: over {MOST_PAGES} pages, at USD 0.01 each; take a shorter window, or"
            " an export of CUR 2.0"
        )

    def _filters(self, scope: BillWindow) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "SERVICE", (SERVICE,)
        yield "REGION", (scope.region,)
        yield "LINKED_ACCOUNT", (scope.account,)
        if self._tag:
            yield "RECORD_TYPE", USAGE_RECORDS

    def _line(
        self, scope: BillWindow, start: datetime, usage_type: str, other: str, metrics: Mapping[str, Any]
    ) -> BilledCharge | None:
        record = "Usage" if self._tag else other
        if record == NEGATION:
            return None
        hosted = instance_type_of(usage_type) if record in USAGE_RECORDS else ""
        cost = metrics["UnblendedCost"]
        return BilledCharge(
            kind=ChargeKind.USAGE if hosted else KINDS.get(record, ChargeKind.OTHER),
            start=start,
            end=start + DAY,
            account=scope.account,
            region=scope.region,
            name=other.partition("$")[2] if self._tag else "",
            instance_type=hosted,
            hours=_amount(metrics["UsageQuantity"]) if hosted else Decimal(0),
            listed=_amount(cost),
            paid=_amount(metrics["AmortizedCost"] if hosted else cost),
            currency=str(cost["Unit"]),
        )


def _amount(metric: Mapping[str, Any]) -> Decimal:
    try:
        found = Decimal(str(metric["Amount"]))
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite():
        raise InputError(f"Cost Explorer answers the amount {str(metric['Amount'])[:40]!r}")
    return found


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text[:10]).replace(tzinfo=UTC)


def _midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)
