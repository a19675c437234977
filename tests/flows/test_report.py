"""The report is made from what is stored, kept in three forms, and told once."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import boto3
import pytest
from moto import mock_aws

from rightsizer import wire
from rightsizer.aws.ledger import HistoryTable, SavingsTable
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table, stamp
from rightsizer.channels.notifier import Channels
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.message import Message
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.proposal import MessageRef
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import SHOWN, FunctionUse, Report, Stack
from rightsizer.errors import PermissionMissingError, ThrottledError, WriteRefusedError
from rightsizer.flows.report import ReportPorts, ReportSources, report, report_window, tell, window_before
from rightsizer.ports.account import OwnUse
from rightsizer.ports.evaluation import RecommendationStore
from rightsizer.render import report_json
from rightsizer.render.messages import slack_blocks, slack_line
from rightsizer.render.report_formats import REPORT_FORMATS
from rightsizer.reporting import totals
from tests.notifiers import FolderReports, Told
from tests.samples import NOW, proposal, recommendation
from tests.table import create_table

NOBODY = Channels(())


class Nobody:
    """No function was seen."""

    def function_use(self, start: datetime, end: datetime) -> tuple[FunctionUse, ...]:
        return ()


class Busy:
    """Functions that ran, or whose metrics cannot be read."""

    def __init__(self, *found: FunctionUse, fails: bool = False) -> None:
        self.found, self.fails = found, fails

    def function_use(self, start: datetime, end: datetime) -> tuple[FunctionUse, ...]:
        if self.fails:
            raise PermissionMissingError("cloudwatch:GetMetricData", "reading", "no")
        return self.found


@pytest.fixture
def ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReportPorts]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        client = boto3.client("dynamodb", region_name="eu-west-1")
        create_table(client)
        table = Table(client, "t")
        store, ledger = Recommendations(table, lambda: NOW), SavingsTable(table)
        store.save(recommendation(), proposal())
        promise = LedgerEntry(
            "e1", "rank", "c-1", "", NOW - timedelta(days=80), "estimated", Decimal(730), 730, True, ""
        )
        ledger.book(promise)
        ledger.book(replace(promise, id="e2", at=NOW - timedelta(days=2), kind="realised", usd=Decimal(50), hours=48))
        ledger.book(replace(promise, id="e3", change_id="c-2", at=NOW - timedelta(days=70)))
        sources = ReportSources("111122223333", "eu-west-1", store, ledger, HistoryTable(table), Nobody(), Stack())
        yield ReportPorts(sources, FolderReports(tmp_path), NOBODY, NOBODY, REPORT_FORMATS, report_json.line)


def with_own(ports: ReportPorts, own: OwnUse) -> ReportPorts:
    return replace(ports, sources=replace(ports.sources, own=own))


def test_a_report_is_kept_as_page_data_and_rows(ports: ReportPorts) -> None:
    written = report(ports, NOW - timedelta(days=7), NOW, NOW)
    assert "chat-7b" in Path(written.page).read_text()
    assert wire.loads(Report, Path(written.data).read_text()) == written.report
    assert Path(written.rows).read_text().startswith("account,")
    assert written.report.totals.realised == Decimal(50)


def test_the_promise_of_a_change_billed_now_is_found_however_old_and_others_are_left(ports: ReportPorts) -> None:
    written = report(ports, NOW - timedelta(days=7), NOW, NOW)
    assert [entry.id for entry in written.report.ledger] == ["e1", "e2"]


def test_what_ended_in_the_half_year_before_the_end_is_held_against_its_promises(ports: ReportPorts) -> None:
    past = PastChange(NOW - timedelta(days=100), "ml.g5.2xlarge", "ml.g6.2xlarge", 1, 1, PastEnd.PROVEN, stated_risk=1)
    ports.sources.past.record("rank", "c-1", replace(past, promised_slowdown=1.2, realised_slowdown=1.5))
    ports.sources.past.record("rank", "c-2", replace(past, at=NOW - timedelta(days=181)))
    ports.sources.past.record("rank", "c-3", replace(past, at=NOW + timedelta(hours=1)))
    written = report(ports, NOW - timedelta(days=7), NOW, NOW)
    record = written.report.track_record
    assert record is not None
    assert (record.since, record.until) == (NOW - timedelta(days=180), NOW)
    assert (record.ended, record.rated_changes) == (1, 1)
    assert record.overall.bias == pytest.approx(1.25)
    assert wire.loads(Report, Path(written.data).read_text()) == written.report
    assert "25 % slower than promised" in Path(written.page).read_text()


def test_rows_that_cannot_be_read_are_listed_and_the_report_is_written(ports: ReportPorts) -> None:
    book = ports.sources.past
    assert isinstance(book, HistoryTable)
    past = PastChange(NOW - timedelta(days=9), "ml.g5.2xlarge", "ml.g6.2xlarge", 1, 1, PastEnd.PROVEN, stated_risk=1)
    book.record("rank", "c-1", past)
    table: Table = book._table
    odd = {"pk": "ENDPOINT#chat", "sk": "PAST#c-9", "endpoint": "chat", "doc": "{}"}
    table.put(odd | {"gsi1pk": "HISTORY", "gsi1sk": f"{stamp(past.at)}#c-9"})
    for days in (3, 99):
        at = NOW - timedelta(days=days)
        entry = {"gsi1pk": f"LEDGER#{at:%Y-%m}", "gsi1sk": f"{stamp(at)}#x", "doc": "{}"}
        table.put({"pk": f"ENTRY#x{days}", "sk": "ENTRY"} | entry)
    seen = {"gsi1pk": f"OCCURRENCE#{NOW:%Y-%m}", "gsi1sk": f"{stamp(NOW - timedelta(days=1))}#o", "doc": "{}"}
    table.put({"pk": "OCCURRENCE#o", "sk": "OCCURRENCE"} | seen)
    table.put({"pk": "PROPOSAL#p", "sk": "PROPOSAL", "gsi1pk": "PROPOSAL#pending", "gsi1sk": "2026#p", "doc": "{}"})
    written = report(ports, NOW - timedelta(days=7), NOW, NOW)
    names = [row.key for row in written.report.unread]
    assert sorted(names) == [
        "ENDPOINT#chat PAST#c-9",
        "ENTRY#x3 ENTRY",
        "ENTRY#x99 ENTRY",
        "OCCURRENCE#o OCCURRENCE",
        "PROPOSAL#p PROPOSAL",
    ]
    assert written.report.track_record is not None
    assert written.report.track_record.rated_changes == 1
    page = Path(written.page).read_text()
    assert "5 stored rows could not be read and are in no figure of this report." in page
    assert all(name in page for name in names)
    assert wire.loads(Report, Path(written.data).read_text()) == written.report


def test_the_same_window_twice_is_the_same_file(ports: ReportPorts) -> None:
    first = report(ports, NOW - timedelta(days=7), NOW, NOW)
    assert report(ports, NOW - timedelta(days=7), NOW, NOW).page == first.page


def test_a_report_of_an_empty_account_is_a_report(ports: ReportPorts, tmp_path: Path) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    written = report(ports, long_ago, long_ago + timedelta(days=7), NOW)
    assert written.report.totals.realised == 0


def test_a_channel_that_fails_does_not_lose_the_report(ports: ReportPorts) -> None:
    def later(subject: str, body: str) -> None:
        raise ThrottledError("later")

    written = report(ports, NOW - timedelta(days=7), NOW, NOW)
    assert tell(ports, written)
    assert not tell(replace(ports, board=Told(later), notifier=Told(later)), written)
    assert Path(written.page).exists()


@pytest.mark.parametrize(
    ("period", "start", "end"),
    [("weekly", "2026-01-05", "2026-01-12"), ("monthly", "2025-12-01", "2026-01-01")],
)
def test_the_window_is_the_last_whole_week_or_month(period: Any, start: str, end: str) -> None:
    assert [f"{at:%Y-%m-%d}" for at in report_window(period, NOW)] == [start, end]


def test_what_rightsizer_costs_is_estimated_and_says_how(ports: ReportPorts) -> None:
    used = (FunctionUse("sweep", 512, 1000, 2_000_000.0), FunctionUse("apply", 1024, 0, 0.0))
    written = report(with_own(ports, Busy(*used)), NOW - timedelta(days=7), NOW, NOW)
    cost = written.report.running_cost
    assert cost is not None
    functions = cost.lines[0]
    assert functions.usd == Decimal(1000) * Decimal("0.0000133334") + Decimal("0.0002")
    assert "1,000 invocations" in functions.how
    page = Path(written.page).read_text()
    assert "Estimate from list prices" in page
    assert wire.loads(Report, Path(written.data).read_text()) == written.report


class Spy:
    """Channels that remember, or refuse what is named."""

    def __init__(self, *refused: str) -> None:
        self.refused, self.posts, self.texts = refused, list[str](), list[str]()

    def post(self, message: Message) -> MessageRef | None:
        """As Slack."""
        slack_blocks(message)
        if "slack" in self.refused:
            raise WriteRefusedError("posting", "invalid_blocks", "no")
        self.posts.append(slack_line(message))
        return None

    def update(self, ref: MessageRef, message: Message) -> None:
        raise AssertionError("a report is not updated")

    def publish(self, subject: str, body: str) -> None:
        """As the topic."""
        if "mail" in self.refused:
            raise WriteRefusedError("publishing", "InvalidParameter", "no")
        self.texts.append(body)


class Shelf:
    """Files that are kept, but for those that end so."""

    def __init__(self, *refused: str) -> None:
        self.refused, self.kept = refused, list[str]()

    def put(self, key: str, body: bytes, content_type: str) -> str:
        if key.endswith(self.refused):
            raise WriteRefusedError(f"storing {key}", "EntityTooLarge", "no")
        self.kept.append(key)
        return f"s3://bucket/{key}"

    def read(self, key: str) -> bytes | None:
        if key.endswith(self.refused):
            raise PermissionMissingError("s3:GetObject", f"reading {key}", "no")
        return None


def with_spy(ports: ReportPorts, spy: Spy) -> ReportPorts:
    """The ports of a report that is told to the spy."""
    return replace(ports, board=spy, notifier=Told(spy.publish))


def broken(*_: Any) -> Any:
    raise OverflowError("a fault of ours")


@pytest.mark.parametrize("part", ["page", "data", "rows"])
@pytest.mark.parametrize("how", ["refused", "not made"])
def test_one_file_of_a_report_that_fails_stops_neither_the_others_nor_the_telling(
    ports: ReportPorts, part: str, how: str
) -> None:
    suffix = {"page": "html", "data": "json", "rows": "csv"}[part]
    ending = f".{suffix}"
    shelf, spy = Shelf(*([ending] if how == "refused" else [])), Spy()
    spoilt = [replace(form, render=broken) if form.suffix == suffix else form for form in REPORT_FORMATS]
    formats = REPORT_FORMATS if how == "refused" else spoilt
    given = with_spy(replace(ports, files=shelf, formats=formats), spy)
    written = report(given, *report_window("weekly", NOW), NOW)
    assert not getattr(written, part)
    assert len(shelf.kept) == 2
    assert tell(given, written)
    assert (len(spy.posts), len(spy.texts)) == (1, 1)
    assert f"{ending} could not be stored" in spy.texts[0]


LARGE = SHOWN + 1
"""Judgements of which the page does not show all."""


class Many:
    """A store with so many judgements; it cannot be read beyond `readable` of them the second time."""

    def __init__(self, number: int, readable: int) -> None:
        self.number, self.readable, self.times = number, readable, 0

    def recommendations(self, unread: Any = None) -> Iterator[Recommendation]:
        self.times += 1
        for number in range(self.number):
            if self.times > 1 and number == self.readable:
                raise ThrottledError("reading the recommendations")
            ref = replace(recommendation().ref, name=f"chat-{number}")
            yield replace(recommendation(), ref=ref)

    def proposals(self, *_: Any, **__: Any) -> Iterator[Any]:
        return iter(())


def with_many(ports: ReportPorts, monkeypatch: pytest.MonkeyPatch, shelf: Shelf, readable: int = LARGE) -> ReportPorts:
    """A report with three files of JSON lines."""
    monkeypatch.setattr(totals, "LINES", LARGE // 3 + 1)
    sources = replace(ports.sources, store=cast("RecommendationStore", Many(LARGE, readable)))
    return with_spy(replace(ports, sources=sources, files=shelf), Spy())


@pytest.mark.parametrize(("refused", "stored"), [(("-002.jsonl.gz",), ["001", "003"]), (("jsonl.gz",), [])])
def test_each_file_of_json_lines_that_cannot_be_stored_is_named_in_the_email(
    ports: ReportPorts, monkeypatch: pytest.MonkeyPatch, refused: tuple[str, ...], stored: list[str]
) -> None:
    given = with_many(ports, monkeypatch, Shelf(*refused))
    written = report(given, *report_window("weekly", NOW), NOW)
    assert [where.removesuffix(".jsonl.gz")[-3:] for where in written.lines] == stored
    assert tell(given, written)
    (mail,) = cast("Spy", given.board).texts
    for number in {"001", "002", "003"} - set(stored):
        assert f"-{number}.jsonl.gz could not be stored: storing " in mail
    for number in stored:
        assert f"-{number}.jsonl.gz could" not in mail


def test_json_lines_that_cannot_be_read_to_the_end_are_named_in_the_email(
    ports: ReportPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = with_many(ports, monkeypatch, Shelf(), readable=LARGE // 3 + 2)
    written = report(given, *report_window("weekly", NOW), NOW)
    assert len(written.lines) == 1
    assert tell(given, written)
    assert (
        "-002.jsonl.gz and what follows it could not be made: reading the recommendations"
        in cast("Spy", given.board).texts[0]
    )


def test_a_report_of_which_nothing_can_be_stored_fails_and_is_tried_again(ports: ReportPorts) -> None:
    spy = Spy()
    with pytest.raises(WriteRefusedError):
        report(with_spy(replace(ports, files=Shelf("")), spy), *report_window("weekly", NOW), NOW)
    assert (spy.posts, spy.texts) == ([], [])


@pytest.mark.parametrize(("refused", "posts", "texts"), [("slack", 0, 1), ("mail", 1, 0)])
def test_one_recipient_of_a_report_that_refuses_stops_no_other(
    ports: ReportPorts, refused: str, posts: int, texts: int
) -> None:
    spy = Spy(refused)
    given = with_spy(ports, spy)
    assert not tell(given, report(given, *report_window("weekly", NOW), NOW))
    assert (len(spy.posts), len(spy.texts)) == (posts, texts)


@pytest.mark.parametrize(("part", "posts", "texts"), [("slack.report_blocks", 0, 1), ("text.report", 1, 1)])
def test_one_form_of_a_report_that_cannot_be_made_stops_no_other(
    ports: ReportPorts, monkeypatch: pytest.MonkeyPatch, part: str, posts: int, texts: int
) -> None:
    spy = Spy()
    given = with_spy(ports, spy)
    monkeypatch.setattr(f"rightsizer.render.{part}", broken)
    written = report(given, *report_window("weekly", NOW), NOW)
    assert not tell(given, written)
    assert (len(spy.posts), len(spy.texts)) == (posts, texts)
    assert written.page in spy.texts[0]


@pytest.mark.parametrize("own", [Nobody(), Busy(fails=True), Busy(FunctionUse("sweep", 512, 0, 0.0))])
def test_a_cost_that_is_not_known_is_not_said_to_be_nothing(ports: ReportPorts, own: Busy) -> None:
    written = report(with_own(ports, own), NOW - timedelta(days=7), NOW, NOW)
    assert written.report.running_cost is None
    assert "Not known: no function of the stack was seen" in Path(written.page).read_text()


def test_a_report_is_compared_with_the_one_before_as_that_was_stored(ports: ReportPorts) -> None:
    end = NOW.replace(hour=0, minute=0)
    before = report(ports, end - timedelta(days=6), end - timedelta(days=3), NOW).report
    assert before.since_last is None, "nothing is stored of the window before"
    store = ports.sources.store
    store.save(recommendation(usd_per_month=Decimal(6000), evaluated_at=NOW - timedelta(hours=1)), None)
    store.save(recommendation("new", evaluated_at=NOW - timedelta(hours=1)), None)
    written = report(ports, end - timedelta(days=3), end, NOW)
    since = written.report.since_last
    assert since is not None
    assert (since.start, since.end, since.totals) == (before.start, before.end, before.totals)
    assert (since.appeared, since.gone) == (("new",), ())
    assert since.moved == (("chat-7b", Decimal("824.30")),)
    page = Path(written.page).read_text().partition("Since the last report")[2].partition("</section>")[0]
    assert "+$824.30" in page
    assert "<b>New: </b>new" in page


@pytest.mark.parametrize("stored", [b"{}", b"no JSON"])
def test_a_report_before_that_cannot_be_read_stops_nothing(ports: ReportPorts, stored: bytes) -> None:
    start, end = NOW - timedelta(days=3), NOW
    earlier = window_before(start, end)
    ports.files.put(f"reports/{earlier[0]:%Y-%m-%d}_{earlier[1]:%Y-%m-%d}.json", stored, "application/json")
    assert report(ports, start, end, NOW).report.since_last is None
    refused = report(replace(ports, files=Shelf(".jsonl")), start, end, NOW)
    assert refused.report.since_last is None


def test_the_window_before_a_month_is_a_month() -> None:
    first = [datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 3)]
    assert window_before(first[1], first[2]) == (first[0], first[1])
    assert window_before(NOW - timedelta(days=7), NOW) == (NOW - timedelta(days=14), NOW - timedelta(days=7))
