"""The report: read the ledger and the recommendations, write the files, tell the channel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from rightsizer.errors import RightsizerError
from rightsizer.model.history import TEACHES_DAYS
from rightsizer.model.outcome import LedgerEntry, UnreadRow
from rightsizer.model.policy import Policy
from rightsizer.model.recommendation import Recommendation
from rightsizer.model.report import Report
from rightsizer.model.running import RunningCost, Stack
from rightsizer.model.usage import SIGNALS
from rightsizer.ports import Notifier, OwnUse, RecommendationStore, ReportStore
from rightsizer.ports_change import PastBook, SavingsLedger
from rightsizer.rules.packing import packs
from rightsizer.rules.running import running_cost
from rightsizer.rules.tally import Records, tally
from rightsizer.rules.track_record import track_record
from rightsizer.telemetry import logger

type Period = Literal["weekly", "monthly"]
PROMISES = timedelta(days=400)
"""How far back the promise of a change that is billed now may lie."""


@dataclass(frozen=True, slots=True)
class ReportVoice:
    """How a report is said; `rightsizer.render` has the functions."""

    page: Callable[[Report], str]
    """HTML."""
    data: Callable[[Report], str]
    """JSON."""
    rows: Callable[[Report], str]
    """CSV."""
    blocks: Callable[[Report, str], Sequence[Mapping[str, Any]]]
    text: Callable[[Report, str], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ReportSources:
    """What a report is made from."""

    account: str
    region: str
    store: RecommendationStore
    ledger: SavingsLedger
    past: PastBook
    own: OwnUse
    stack: Stack
    policy: Policy = field(default_factory=Policy)
    """What a saving must be worth, and how busy a shared card may be."""
    misread: tuple[str, ...] = ()
    """Settings that could not be understood."""


@dataclass(frozen=True, slots=True)
class ReportPorts:
    """What a report needs to be kept and told."""

    sources: ReportSources
    files: ReportStore
    notifier: Notifier
    voice: ReportVoice


@dataclass(frozen=True, slots=True)
class Written:
    """A report and where it can be read."""

    report: Report
    page: str
    data: str
    rows: str


def window(period: Period, at: datetime) -> tuple[datetime, datetime]:
    """The last whole week (from Monday) or month before `at`, UTC."""
    today = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "weekly":
        end = today - timedelta(days=today.weekday())
        return end - timedelta(days=7), end
    end = today.replace(day=1)
    return (end - timedelta(days=1)).replace(day=1), end


def made(given: ReportSources, start: datetime, end: datetime, now: datetime) -> Report:
    """The report of a window; nothing is written."""
    unread: list[UnreadRow] = []
    since = end - timedelta(days=TEACHES_DAYS)
    found = sorted(given.store.recommendations(unread), key=lambda one: one.ref.name)
    past = list(given.past.remembered(since, end, unread))
    records = Records(
        account=given.account,
        region=given.region,
        recommendations=found,
        proposals=list(given.store.proposals(unread=unread)),
        ledger=_entries(given.ledger, start, end, unread),
        occurrences=list(given.ledger.occurrences(start, end, unread)),
        running_cost=_own_cost(given, found, start, end),
    )
    return replace(
        tally(records, start, end, now),
        packs=packs(found, given.policy),
        track_record=track_record(past, since, end, given.policy),
        unread=tuple(unread),
        misread=given.misread,
    )


def report(ports: ReportPorts, start: datetime, end: datetime, now: datetime) -> Written:
    """Make and store the report of a window. The same window written twice is the same files."""
    told = made(ports.sources, start, end, now)
    name = f"reports/{start:%Y-%m-%d}_{end:%Y-%m-%d}"
    return Written(
        told,
        page=ports.files.put(f"{name}.html", ports.voice.page(told).encode(), "text/html; charset=utf-8"),
        data=ports.files.put(f"{name}.json", ports.voice.data(told).encode(), "application/json"),
        rows=ports.files.put(f"{name}.csv", ports.voice.rows(told).encode(), "text/csv; charset=utf-8"),
    )


def tell(ports: ReportPorts, written: Written) -> bool:
    """Tell the channel and the topic; False when that failed, for the report is stored and is not made again."""
    subject, text = ports.voice.text(written.report, written.page)
    told = True
    try:
        ports.notifier.post(ports.voice.blocks(written.report, written.page), subject)
    except RightsizerError as error:
        logger.error("the report is stored, but Slack did not take it", error=str(error), report=written.page)
        text, told = f"{text}\nSlack did not take this report: {error}\n", False
    try:
        ports.notifier.publish(subject, text)
    except RightsizerError as error:
        logger.error("the report is stored, but telling it failed", error=str(error), report=written.page)
        return False
    return told


def _own_cost(
    given: ReportSources, found: Sequence[Recommendation], start: datetime, end: datetime
) -> RunningCost | None:
    """An estimate of what rightsizer itself cost; a report without it is still a report."""
    try:
        used = given.own.used(start, end)
    except RightsizerError as error:
        logger.warning("the running cost is not known", extra={"problem": str(error)})
        return None
    variants = sum(bool(one.instance_type) for one in found)
    return running_cost(used, given.stack, variants, len(SIGNALS), (end - start) / timedelta(days=1))


def _entries(ledger: SavingsLedger, start: datetime, end: datetime, unread: list[UnreadRow]) -> list[LedgerEntry]:
    """The window's entries, and the older promises of the changes that were billed in it."""
    billed = list(ledger.entries(start, end, unread))
    changes = {entry.change_id for entry in billed if entry.kind == "realised"}
    older = ledger.entries(start - PROMISES, start, unread)
    promises = [entry for entry in older if entry.kind == "estimated" and entry.change_id in changes]
    return promises + billed
