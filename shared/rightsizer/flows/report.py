"""The report: read the ledger and the recommendations, write the files, tell the channel."""

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from rightsizer import wire
from rightsizer.domain.history import TEACHES_DAYS, WENT_BACK, PastEnd
from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.message import Notice, ReportMessage
from rightsizer.domain.outcome import LedgerEntry, UnreadRow
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Reason, reason_of
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import SHOWN, HoursSaving, Report, RunningCost, SinceLast, Stack
from rightsizer.domain.usage import SIGNALS
from rightsizer.errors import RightsizerError
from rightsizer.flows.bill import BillPorts, BillScope, RestOfBill, read_rest_of_bill, reconcile_with_bill
from rightsizer.ports.account import BillReader, OwnUse
from rightsizer.ports.changes import EndedChangeBook, HoursBook, SavingsLedger
from rightsizer.ports.evaluation import Notifier, RecommendationStore, ReportFormat, ReportStore
from rightsizer.recommender.packing import find_packs
from rightsizer.reporting.merge import EarlierReport
from rightsizer.reporting.money import Observed
from rightsizer.reporting.office_hours import hours_savings, types_stopped
from rightsizer.reporting.totals import (
    RENEWED,
    Records,
    is_evaluated_in,
    json_lines,
    make_report,
    running_cost,
    slim_proposals,
    slim_recommendations,
)
from rightsizer.reporting.track_record import track_record
from rightsizer.telemetry import Failure, attempt, count, logger, measure

type ReportPeriod = Literal["weekly", "monthly"]
ASKED_BEFORE = timedelta(days=TEACHES_DAYS)
"""Longer than from a proposal to the end of its change: an older one that ended did so before the window."""
PROMISES = timedelta(days=400)
"""How far back the promise of a change that is billed now may lie."""
REPORTED_WEEK = timedelta(days=7)
SUBJECT = "rightsizer: the report is stored, but could not be worded"


@dataclass(frozen=True, slots=True)
class ReportSources:
    """Sources of a report."""

    account: str
    region: str
    store: RecommendationStore
    ledger: SavingsLedger
    past: EndedChangeBook
    own: OwnUse
    stack: Stack
    policy: Policy = field(default_factory=Policy)
    """What a saving must be worth, and how busy a shared card may be."""
    misread: tuple[str, ...] = ()
    """Settings that could not be understood."""
    bill: BillPorts | None = None
    """Where the rest of the account's bill is read; None leaves that part out."""
    hours: HoursBook | None = None
    """Where it is read when endpoints were stopped, where `bill` does not say."""
    charges: Callable[[], BillReader] | None = None
    """Makes what reads AWS's bill, which the figures are compared with; None reads none."""


@dataclass(frozen=True, slots=True)
class ReportPorts:
    """Ports that store and announce a report."""

    sources: ReportSources
    files: ReportStore
    board: Notifier
    """Slack."""
    notifier: Notifier
    """The other channels; they hear also that Slack did not take the report."""
    formats: Sequence[ReportFormat]
    """The files to store, in this order."""
    line: Callable[[Recommendation], str]
    """One recommendation as JSON in one line, for the files of a report that is too large for its page."""
    announce: Callable[[Report, Mapping[str, str]], None] | None = None
    """Sends the event of a stored report with its files; None where no machine is told."""


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A report and where it can be read."""

    report: Report
    files: Mapping[str, str] = field(default_factory=dict)
    """Addresses of the stored files by the suffix of their format, in the order of the formats."""
    lines: tuple[str, ...] = ()
    """Every recommendation with all that it has, in compressed JSON lines; only where the page cannot show all."""
    missing: tuple[str, ...] = ()
    """The files that could not be made or stored, each with its cause; `files` has no address of them."""

    @property
    def page(self) -> str:
        """Address of the HTML page; empty where it is not stored."""
        return self.files.get("html", "")

    @property
    def data(self) -> str:
        """Address of the JSON document; empty where it is not stored."""
        return self.files.get("json", "")

    @property
    def rows(self) -> str:
        """Address of the CSV table; empty where it is not stored."""
        return self.files.get("csv", "")


def report_window(period: ReportPeriod, at: datetime) -> tuple[datetime, datetime]:
    """The last whole week (from Monday) or month before `at`, UTC."""
    today = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "weekly":
        end = today - timedelta(days=today.weekday())
        return end - REPORTED_WEEK, end
    end = today.replace(day=1)
    return (end - timedelta(days=1)).replace(day=1), end


def assemble_report(sources: ReportSources, start: datetime, end: datetime, now: datetime) -> Report:
    """The report of a window; nothing is written."""
    unread: list[UnreadRow] = []
    since = end - timedelta(days=TEACHES_DAYS)
    observed = Observed()
    wanted = partial(is_evaluated_in, start=start, end=end)
    recommendations = slim_recommendations(observed.watch(sources.store.recommendations(unread), wanted))
    past = list(sources.past.ended_changes(since, max(end, now), unread))
    ledger = _entries(sources.ledger, start, end, unread)
    later = list(sources.ledger.entries(end, min(now, end + RENEWED), unread)) if end < now else []
    hours, hours_unread = _hours_records(sources, unread)
    records = Records(
        account=sources.account,
        region=sources.region,
        recommendations=recommendations,
        proposals=slim_proposals(sources.store.proposals(unread=unread, ended_since=start - ASKED_BEFORE)),
        ledger=ledger,
        occurrences=list(sources.ledger.occurrences(start, end, unread)),
        running_cost=_running_cost(sources, recommendations, start, end),
        ended={ended.change_id: ended.past.at for ended in past if ended.past.ended is not PastEnd.RUNNING},
        returned={
            ended.change_id
            for ended in past
            if ended.past.ended in WENT_BACK or ended.past.ended is PastEnd.HANDED_OVER
        },
        replaced={entry.change_id for entry in (*ledger, *later)} - {*sources.past.still_saving()},
        stopped={record.ref.name: record.stopped_times for record in hours},
        later=later,
        observed=observed,
    )
    rest = RestOfBill()
    if sources.bill is not None:
        rest = read_rest_of_bill(
            sources.bill, BillScope(sources.region, recommendations, reads_training_runs=True), now
        )
    savings, unpriced = _office_hours(sources, hours, start, min(end, now))
    return replace(
        make_report(records, start, end, now),
        office_hours=savings,
        account_findings=rest.findings,
        account_unread=(*rest.unread, *hours_unread, *unpriced),
        packs=find_packs(recommendations, sources.policy),
        track_record=track_record(past, since, end, sources.policy),
        unread=tuple(unread),
        misread=sources.misread,
        reconciliation=reconcile_with_bill(sources.charges, records, start, end, now) if sources.charges else None,
    )


def report(ports: ReportPorts, start: datetime, end: datetime, now: datetime) -> WrittenReport:
    """Make and store the report of a window. The same window written twice is the same files.

    A file that cannot be made or stored stops no other. Where none can be stored the error of the first one goes up.
    """
    report = assemble_report(ports.sources, start, end, now)
    report = replace(report, since_last=_since_last(ports.files, report))
    if end - start == REPORTED_WEEK:  # the dashboard shows one figure: that of a week
        totals = report.money.totals()
        measure(UsdSaved=float(totals.realised), UsdWaiting=float(totals.waiting))
    name = _name(start, end)
    files, missing, failed = dict[str, str](), list[str](), list[Failure]()
    for form in ports.formats:
        key = f"{name}.{form.suffix}"
        kept = attempt("storing a file of the report", key, partial(_store_format, ports.files, key, form, report))
        if isinstance(kept, Failure):
            failed.append(kept)
            missing.append(f"{key} could not be stored: {kept}")
        else:
            files[form.suffix] = kept
    if failed and not files:
        raise failed[0].error
    found = _store_lines(ports, name, missing) if len(report.recommendations) > SHOWN else ()
    return WrittenReport(report, files, lines=found, missing=tuple(missing))


def _name(start: datetime, end: datetime) -> str:
    return f"reports/{start:%Y-%m-%d}_{end:%Y-%m-%d}"


def window_before(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The window of the same kind before this one: a month before a month, else of the same length."""
    if start.day == 1 and end.day == 1:
        return (start - timedelta(days=1)).replace(day=1), start
    return start - (end - start), start


def _since_last(files: ReportStore, report: Report) -> SinceLast | None:
    """The figures of the window before, as its report was stored; a report without them is still a report."""
    key = f"{_name(*window_before(report.start, report.end))}.json"
    try:
        body = files.read(key)
        return None if body is None else wire.loads(EarlierReport, body).against(report.money)
    except RightsizerError as error:
        logger.warning("the report before cannot be read", extra={"key": key, "problem": str(error)})
        return None


def _store_format(files: ReportStore, key: str, form: ReportFormat, report: Report) -> str:
    return files.put(key, form.render(report).encode(), form.content_type)


def _store_lines(ports: ReportPorts, name: str, missing: list[str]) -> tuple[str, ...]:
    """Read the recommendations again, file by file: all of them at once would not fit into the function.

    A file that cannot be stored stops no other. `missing` gets each, and what could not be read or worded.
    """
    stored, number = list[str](), 0

    def store_file(key: str, part: bytes) -> str:
        return ports.files.put(key, gzip.compress(part, 6, mtime=0), "application/gzip")

    def each() -> None:
        nonlocal number
        for number, part in enumerate(json_lines(ports.sources.store.recommendations(), ports.line), start=1):
            key = f"{name}-{number:03}.jsonl.gz"
            kept = attempt("storing the JSON lines of the report", key, partial(store_file, key, part))
            if isinstance(kept, Failure):
                missing.append(f"{key} could not be stored: {kept}")
            else:
                stored.append(kept)

    read = attempt("reading the recommendations for the JSON lines of the report", name, each)
    if isinstance(read, Failure):
        missing.append(f"{name}-{number + 1:03}.jsonl.gz and what follows it could not be made: {read}")
    return tuple(stored)


def tell(ports: ReportPorts, written: WrittenReport) -> bool:
    """Announce the report; False when a channel failed, since the stored report is not made again.

    What cannot be said in one form, or is not taken by one recipient, stops no other.
    """
    page = written.page
    _announce(ports, written)
    listed = [f"{form.title}: {written.files[form.suffix]}" for form in _titled_formats(ports.formats, written)]
    message = ReportMessage(written.report, page, (*listed, *written.missing))
    posted = attempt("posting the report", page, lambda: ports.board.post(message))
    if isinstance(posted, Failure):
        logger.error("the report is stored, but Slack did not take it", error=str(posted), report=page)
        message = replace(message, undelivered=f"Slack did not take this report: {posted}")
    published = attempt("publishing the report", page, lambda: ports.notifier.post(message))
    if isinstance(published, Failure):
        logger.error("the report is stored, but telling it failed", error=str(published), report=page)
        if not published.is_expected:
            attempt(
                "publishing where the report is", page, lambda: ports.notifier.post(_plain_notice(message, written))
            )
    return not any(isinstance(one, Failure) for one in (posted, published))


def _announce(ports: ReportPorts, written: WrittenReport) -> None:
    """One event for machines; people are told whether it went or not."""
    if ports.announce is None:
        return
    announce = partial(ports.announce, written.report, dict(written.files))
    sent = attempt("sending the event of the report", written.page, announce)
    count(EventsLost=int(isinstance(sent, Failure)))


def _plain_notice(message: ReportMessage, written: WrittenReport) -> Notice:
    """Where a report is kept that could not be worded: a fault of ours is no reason to say nothing."""
    body = "\n".join((f"{SUBJECT}.\n{next(iter(written.files.values()), '')}\n", *message.notes, ""))
    return Notice(SUBJECT, f"{body}\n{message.undelivered}\n" if message.undelivered else body)


def _titled_formats(formats: Sequence[ReportFormat], written: WrittenReport) -> list[ReportFormat]:
    """The stored formats that the e-mail lists by their title."""
    return [form for form in formats if form.title and form.suffix in written.files]


def _running_cost(
    sources: ReportSources, recommendations: Sequence[Recommendation], start: datetime, end: datetime
) -> RunningCost | None:
    """An estimate of what rightsizer itself cost; a report without it is still a report."""
    try:
        used = sources.own.function_use(start, end)
    except RightsizerError as error:
        logger.warning("the running cost is not known", extra={"problem": str(error)})
        return None
    variants = sum(
        sum(bool(v.instance_type) for v in recommendation.variants) or bool(recommendation.instance_type)
        for recommendation in recommendations
    )
    return running_cost(used, sources.stack, variants, len(SIGNALS), (end - start) / timedelta(days=1))


def _hours_records(sources: ReportSources, unread: list[UnreadRow]) -> tuple[Sequence[HoursRecord], tuple[Reason, ...]]:
    """When endpoints were stopped, and why that is not known; a report without it is still a report."""
    book = (sources.bill.hours if sources.bill else None) or sources.hours
    rows: list[UnreadRow] = []
    try:
        records = list(book.records(rows)) if book is not None else []
    except RightsizerError as error:
        return (), (reason_of(error),)
    unread += rows
    return records, ()


def _office_hours(
    sources: ReportSources, records: Sequence[HoursRecord], start: datetime, end: datetime
) -> tuple[tuple[HoursSaving, ...], tuple[Reason, ...]]:
    """What stopped hours saved, and why that is not known; a report without it is still a report."""
    types = types_stopped(records)
    if sources.bill is None or not types:
        return (), ()
    try:
        return tuple(hours_savings(records, sources.bill.prices.table(sources.region, types), start, end)), ()
    except RightsizerError as error:
        return (), (reason_of(error),)


def _entries(ledger: SavingsLedger, start: datetime, end: datetime, unread: list[UnreadRow]) -> list[LedgerEntry]:
    """The window's entries, and the older promises of the changes that were billed in it."""
    billed = list(ledger.entries(start, end, unread))
    changes = {entry.change_id for entry in billed if entry.kind == "realised"}
    older = ledger.entries(start - PROMISES, start, unread)
    promises = [entry for entry in older if entry.kind == "estimated" and entry.change_id in changes]
    return promises + billed
