# ruff: noqa: ARG002 (a stand-in keeps the signature of what it stands for)
"""Memory, time and size of a report over many endpoints: `python -m bench.report [--endpoints 10000]`.

A process of its own makes the report from a table whose rows are made as they are read, so that what is measured is
the report and not the table. Every second endpoint has a proposal that waits; beside them stand a year of decided
proposals, of changes, and of what each of these saved on each day since. The limits are of memory and of the page.
"""

import argparse
import math
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal

import boto3

from rightsizer import wire
from rightsizer.aws.ledger import HistoryTable, SavingsTable
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table, Value
from rightsizer.channels.notifier import Channels
from rightsizer.domain.endpoint import EndpointKind, EndpointRef, Mode
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import Effort, Excluded, Option, OptionKind, Risk, RiskResource, Target
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.price import Price
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Evidence, Finding, Gate, Recommendation, Replay
from rightsizer.domain.report import FunctionUse, Stack
from rightsizer.flows.report import ReportPorts, ReportSources, WrittenReport, report, report_window
from rightsizer.render import report_json
from rightsizer.render.report_formats import REPORT_FORMATS
from tests.notifiers import FolderReports

LIMIT_MIB = 512
OVER = (ProposalState.REJECTED, ProposalState.EXPIRED, ProposalState.WITHDRAWN, ProposalState.PROVEN)
PAGE_MB = 3.0
NOW = datetime(2026, 11, 16, 7, tzinfo=UTC)
WEEK = report_window("weekly", NOW)
PERIODS = {"weekly": WEEK, "monthly": (WEEK[1] - timedelta(days=31), WEEK[1])}
YEAR = timedelta(days=365)
CHANGED, DECIDED = 20, 5
"""One endpoint of so many was changed in the last year, and is booked once a day since; so many had a proposal that was
decided in it."""
WORDS = "None of the types that are cheaper keeps the p95 of the replayed days within the objective with its margin. "


def offered(number: int, price: Price) -> Option:
    """An option with its facts."""
    saving = Decimal(number % 4000) + Decimal("0.25")
    return Option(
        kind=OptionKind.INSTANCE_TYPE,
        target=Target("ml.g5.2xlarge", 1),
        price=price,
        usd_per_month=Decimal("1035.20"),
        saving_usd_per_month=saving,
        switch_usd=Decimal("3.20"),
        payback_days=0.1,
        risks={RiskResource.GPU_MEMORY: Risk.VERY_LOW, RiskResource.LATENCY: Risk.LOW},
        risk=Risk.LOW,
        confidence=12.5,
        effort=Effort.VERY_LOW,
        restart_needed=True,
        rollback_possible=True,
        in_place=True,
        client_change="",
        p95_s=0.41,
        notes=(WORDS,),
        facts={f"fact {place}": WORDS[:60] for place in range(8)},
        not_checked=("host memory bandwidth",),
    )


def judged(number: int) -> Recommendation:
    """A judgement of the usual size: five options, 49 types excluded, a fortnight of hours."""
    hours = tuple(round(9000 + 8000 * math.sin(math.tau * (hour + number) / 24), 1) for hour in range(336))
    price = Price("ml.g5.12xlarge", "eu-west-1", Decimal("7.09"), "price-list-api", "Hosting", "2026-11-05")
    at = NOW - timedelta(hours=9)
    return Recommendation(
        ref=EndpointRef("111122223333", "eu-west-1", f"endpoint-{number:05}"),
        variant="AllTraffic",
        kind=EndpointKind.REAL_TIME,
        mode=Mode.PROPOSE,
        owner=f"team-{number % 300}",
        fingerprint=f"config-{number}|1",
        evaluated_at=at,
        instance_type="ml.g5.12xlarge",
        instance_count=1,
        price=price,
        usd_per_month=Decimal("5175.70"),
        finding=Finding.OVER_PROVISIONED if number % 3 else Finding.OPTIMIZED,
        reason=Reason(Code.CHEAPER_OPTION, WORDS),
        gate=Gate.PROPOSE,
        gate_reason=Reason(Code.NEEDS_APPROVAL, "The endpoint is tagged rightsizer:mode=propose."),
        options=(offered(number, price),) * 5,
        evidence=Evidence(
            at - timedelta(days=14), at, 14.0, 0.998, 1_240_551, "L1", {f"figure {n}": WORDS[:40] for n in range(12)}
        ),
        replay=Replay(14, 3.0, 1.0, 0.44, 8.9, 7, tuple(hour / 17_000 for hour in hours), 1240, 2, 0.5),
        excluded=tuple(Excluded(f"ml.g6.{n}xlarge", Reason(Code.TOO_SLOW, WORDS)) for n in range(49)),
        not_checked=("downstream time-outs",),
        hourly_requests=hours,
    )


def asked(number: int) -> Proposal:
    """A proposal of the week that waits."""
    at = WEEK[0] + timedelta(minutes=number)
    return Proposal(f"p-{number:05}", judged(number), at, NOW + timedelta(days=7), ProposalState.PENDING, True)


def decided(number: int, state: ProposalState, endpoints: int) -> Proposal:
    """A proposal of the last year that somebody decided, or that became a change."""
    at = NOW - YEAR * number * DECIDED / endpoints
    outcome = "The change stands; the p95 of the proof was within its objective."
    name = f"d-{number:05}"
    changed = f"c-{number // 4:05}" if state is ProposalState.PROVEN else ""
    return Proposal(name, judged(number), at, at + timedelta(days=14), state, True, change_id=changed, outcome=outcome)


def turned(number: int, endpoints: int) -> datetime:
    """When a change of the last year was turned to."""
    return NOW - timedelta(hours=5) - YEAR * number * CHANGED / endpoints


def entry(number: int, at: datetime, kind: Literal["estimated", "realised", "switch-cost"]) -> LedgerEntry:
    """A line of the savings ledger, as `flows.record_change` books it."""
    name, change = f"endpoint-{number:05}", f"c-{number:05}"
    usd, hours = (Decimal("1035.25"), 730.0) if kind == "estimated" else (Decimal("34.04"), 24.0)
    owner, note = f"team-{number % 300}", "24 hours on ml.g5.2xlarge in place of ml.g5.12xlarge, by list prices."
    return LedgerEntry(f"{change}#{kind}#{at.isoformat()}", name, change, owner, at, kind, usd, hours, True, note)


def booked(start: datetime, end: datetime, endpoints: int) -> Iterator[LedgerEntry]:
    """The entries between two moments, oldest first: what was promised, what it took, and a day's saving each day."""
    at = max(start, NOW - YEAR - timedelta(days=1)).replace(hour=2, minute=0, second=0, microsecond=0)
    while at < end:
        for number in range(endpoints // CHANGED):
            if at <= turned(number, endpoints) < at + timedelta(days=1):
                yield entry(number, at, "estimated")
                yield entry(number, at, "switch-cost")
            elif turned(number, endpoints) < at and start <= at:
                yield entry(number, at, "realised")
        at += timedelta(days=1)


class Rows(Table):
    """A table of so many endpoints; each row is made when it is read."""

    def __init__(self, endpoints: int) -> None:
        super().__init__(boto3.client("dynamodb", region_name="eu-west-1"), "bench")
        self.endpoints, self.entries = endpoints, 0

    def index(
        self, gsi1pk: str, start: str = "", end: str = "", *, newest_first: bool = False, only: Sequence[str] = ()
    ) -> Iterator[dict[str, Value]]:
        """Judgements by name, proposals by state, past changes, and the ledger by month."""
        if gsi1pk == "RECOMMENDATION":
            for number in range(self.endpoints):
                yield {"pk": f"ENDPOINT#{number}", "sk": gsi1pk, "doc": wire.dumps(judged(number))}
        if gsi1pk == f"PROPOSAL#{ProposalState.PENDING}":
            for number in reversed(range(0, self.endpoints, 2)):
                yield {"pk": "p", "sk": "PROPOSAL", "gsi1sk": f"{number:09}", "doc": wire.dumps(asked(number))}
        yield from _decided(gsi1pk, self.endpoints)
        if gsi1pk == "SAVING":
            for number in range(self.endpoints // CHANGED):
                yield {"pk": f"CHANGE#c-{number:05}"}
        if gsi1pk == "HISTORY":
            yield from _past(self.endpoints)
        if gsi1pk.startswith("LEDGER#"):
            yield from self._ledger(gsi1pk.removeprefix("LEDGER#"), start, end)

    def _ledger(self, month: str, start: str, end: str) -> Iterator[dict[str, Value]]:
        first = datetime.fromisoformat(f"{month}-01T00:00:00+00:00")
        following = (first + timedelta(days=31)).replace(day=1)
        low, high = (datetime.fromisoformat(text) for text in (start, end))
        for one in booked(max(first, low), min(following, high), self.endpoints):
            self.entries += 1
            yield {"pk": f"ENTRY#{one.id}", "sk": "ENTRY", "doc": wire.dump_stored(one)}


def _decided(gsi1pk: str, endpoints: int) -> Iterator[dict[str, Value]]:
    for place, state in enumerate(OVER):
        if gsi1pk == f"PROPOSAL#{state}":
            for number in range(place, endpoints // DECIDED, len(OVER)):
                doc = wire.dumps(decided(number, state, endpoints))
                yield {"pk": "p", "sk": "PROPOSAL", "gsi1sk": f"{endpoints - number:09}", "state": state, "doc": doc}


def _past(endpoints: int) -> Iterator[dict[str, Value]]:
    for number in reversed(range(endpoints // CHANGED)):
        past = PastChange(turned(number, endpoints), "ml.g5.12xlarge", "ml.g5.2xlarge", 1, 1, PastEnd.PROVEN)
        name, sk = f"endpoint-{number:05}", f"PAST#c-{number:05}"
        yield {"pk": f"ENDPOINT#{name}", "sk": sk, "endpoint": name, "doc": wire.dump_stored(past)}


class Nobody:
    """No function was seen."""

    def function_use(self, start: datetime, end: datetime) -> tuple[FunctionUse, ...]:
        """Nothing."""
        return ()


def written(
    endpoints: int, folder: Path, period: tuple[datetime, datetime] = WEEK, table: Rows | None = None
) -> WrittenReport:
    """The report of a period over so many endpoints, in the folder."""
    table = table or Rows(endpoints)
    store = Recommendations(table, lambda: NOW)
    sources = ReportSources("1", "eu-west-1", store, SavingsTable(table), HistoryTable(table), Nobody(), Stack())
    nobody = Channels(())
    ports = ReportPorts(sources, FolderReports(folder), nobody, nobody, REPORT_FORMATS, report_json.line)
    return report(ports, *period, NOW)


def peak_mib() -> float:
    """The most memory that this process held, MiB. Linux counts KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Print the figures; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, default=10_000)
    parser.add_argument("--period", choices=PERIODS, default="monthly")
    given = parser.parse_args()
    began, table = time.process_time(), Rows(given.endpoints)
    with tempfile.TemporaryDirectory() as folder:
        made = written(given.endpoints, Path(folder), PERIODS[given.period], table)
        sizes = {path.suffix: path.stat().st_size / 1e6 for path in (Path(made.page), Path(made.data), Path(made.rows))}
        lines = sum(Path(path).stat().st_size for path in made.lines) / 1e6
    memory, seconds = peak_mib(), time.process_time() - began
    if not made.report.unread and table.entries:
        changes, asked_once = given.endpoints // CHANGED, given.endpoints // DECIDED
        print(f"{table.entries:,} rows of the ledger, {asked_once:,} decided proposals, {changes} changes")
    else:
        raise SystemExit(f"not every row could be read: {made.report.unread[:3]}")
    print(f"{given.endpoints:,} endpoints, {given.period}: {memory:.0f} MiB at most (limit {LIMIT_MIB}),", end=" ")
    print(f"{seconds:.0f} s of CPU with the making of the rows")
    print(f"page {sizes['.html']:.2f} MB (limit {PAGE_MB}), JSON {sizes['.json']:.2f}, CSV {sizes['.csv']:.2f}", end="")
    print(f", JSON lines {lines:.1f} MB compressed in {len(made.lines)} files")
    return 0 if memory <= LIMIT_MIB and sizes[".html"] <= PAGE_MB else 1


if __name__ == "__main__":
    sys.exit(main())
