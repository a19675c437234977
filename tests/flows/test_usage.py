"""With a memory only new days are read, and the digests are those of a full read."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rightsizer.flows.usage import Memory, UsageReader
from rightsizer.model.digest import KeptUsage, UsageDigest
from rightsizer.model.history import History, PastChange
from rightsizer.model.observation import Endpoint
from rightsizer.model.policy import Policy
from rightsizer.model.reason import Code, Reason
from rightsizer.model.usage import MetricWindow, NoMetrics, Series
from rightsizer.ports import MetricRequest
from rightsizer.rules.page import page_of
from tests.rules.kit import NOW, catalogue, endpoint, steady, window

LATER = NOW + timedelta(days=1, hours=2)


class Metrics:
    """Ten weeks of a steady service; remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[datetime, datetime, int]] = []
        self.partly = False

    def read(
        self, requests: Sequence[MetricRequest], start: datetime, end: datetime, period_s: int
    ) -> Iterator[MetricWindow | NoMetrics]:
        self.asked.append((start, end, len(requests)))
        for request in requests:
            size = int((end - start).total_seconds()) // period_s
            full = window(steady(), days=1)
            series = {s: Series(start, period_s, (v.values * 70)[:size]) for s, v in full.series.items()}
            notes = (Reason(Code.READ_FAILED, "CloudWatch answered PartialData twice"),) if self.partly else ()
            yield MetricWindow(request.endpoint, request.variant, start, end, period_s, series, notes)


class Kept:
    """A store in memory."""

    def __init__(self) -> None:
        self.pages: dict[str, dict[str, KeptUsage]] = {}

    def load(self, page: str) -> Sequence[KeptUsage]:
        return tuple(self.pages.get(page, {}).values())

    def save(self, page: str, kept: Sequence[KeptUsage]) -> None:
        self.pages.setdefault(page, {}).update({one.endpoint: one for one in kept})


def reader(metrics: Metrics, kept: Kept | None, *past: PastChange, days: int = 14) -> UsageReader:
    memory = Memory(kept, 1, days) if kept else None
    policy = Policy(lookback_days=days)
    return UsageReader(metrics, catalogue(), lambda _: History(endpoint=past), policy, memory)


def named(name: str) -> Endpoint:
    plain = endpoint()
    return replace(plain, ref=replace(plain.ref, name=name))


def complete(found: object, until: datetime) -> list[object]:
    assert isinstance(found, UsageDigest)
    return [d for d in found.days if d.day < until.date()]


def test_the_next_day_reads_only_the_new_day_and_knows_the_same() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    again = reader(metrics, kept).read([endpoint()], LATER)["chat"]
    start, end, _ = metrics.asked[-1]
    assert (end - start) <= timedelta(days=2)
    whole = reader(metrics, None).read([endpoint()], LATER)["chat"]
    first = (LATER - timedelta(days=14)).date()
    known = [d for d in complete(again, end) if d.day > first]  # type: ignore[attr-defined]
    assert known == [d for d in complete(whole, end) if d.day > first]  # type: ignore[attr-defined]
    assert len(known) >= 13


def test_endpoints_read_over_the_same_days_share_their_requests() -> None:
    metrics, kept = Metrics(), Kept()
    fleet = [named(f"e{i}") for i in range(5)]
    reader(metrics, kept).read(fleet, NOW)
    reader(metrics, kept).read([*fleet, named("new")], LATER)
    assert [count for _, _, count in metrics.asked] == [5, 5, 1]


def test_a_modification_by_others_asks_for_a_full_read() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    changed = replace(endpoint(), modified_at=NOW)
    reader(metrics, kept).read([changed], LATER)
    assert metrics.asked[-1][0] == LATER - timedelta(days=14)


def test_after_a_change_of_ours_the_days_before_it_are_still_known() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    moved = replace(endpoint("ml.g6.xlarge"), modified_at=NOW)
    ours = PastChange(NOW, "ml.g6e.xlarge", "ml.g6.xlarge", 1, 1, "proven")
    found = reader(metrics, kept, ours).read([moved], LATER)["chat"]
    assert isinstance(found, UsageDigest)
    assert {d.instance_type for d in found.days} == {"ml.g6e.xlarge", "ml.g6.xlarge"}
    assert metrics.asked[-1][1] == LATER, "the running day tells soonest whether users suffer"


def test_a_longer_look_back_asks_for_a_full_read() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    reader(metrics, kept, days=30).read([endpoint()], LATER)
    assert metrics.asked[-1][0] == LATER - timedelta(days=30)


def test_what_was_read_in_part_is_no_evidence_and_is_not_kept() -> None:
    metrics, kept = Metrics(), Kept()
    metrics.partly = True
    found = reader(metrics, kept).read([endpoint()], NOW)["chat"]
    assert isinstance(found, NoMetrics)
    assert kept.pages == {}


def test_a_running_day_is_never_kept() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW + timedelta(hours=9))
    (one,) = kept.load(page_of("chat", 1))
    assert one.until == NOW.date()
    assert all(d.day < NOW.date() for d in one.days)


def test_a_gap_of_days_is_read_from_where_the_memory_ends() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    reader(metrics, kept).read([endpoint()], NOW + timedelta(days=5, hours=3))
    start, end, _ = metrics.asked[-1]
    assert start.date() == NOW.date() - timedelta(days=1)
    assert end == NOW + timedelta(days=5)


def test_the_longest_look_back_is_remembered_whole_on_pages_of_its_own() -> None:
    old = replace(endpoint(), modified_at=NOW - timedelta(days=200))
    metrics, kept = Metrics(), Kept()
    long = replace(reader(metrics, kept, days=63), memory=Memory(kept, 100, 63))
    long.read([old], NOW)
    assert metrics.asked[-1][0] == NOW - timedelta(days=63)
    assert [*kept.pages] == [page_of("chat", 100, 63)] != [page_of("chat", 100)]
    again = long.read([old], LATER)["chat"]
    start, end, _ = metrics.asked[-1]
    assert (end - start) <= timedelta(days=2)
    assert isinstance(again, UsageDigest)
    assert len(complete(again, NOW)) >= 61
