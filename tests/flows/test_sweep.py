"""The sweep: everything daily, hourly only what is new, changed or alarmed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest

from rightsizer.domain.endpoint import EndpointRef, Observation
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.trigger import ListedEndpoint, LookAt, SweepDue, SweepKind, TickDue
from rightsizer.errors import InputError, RightsizerError, ThrottledError, WriteRefusedError
from rightsizer.flows.sweep import PAGE, SweepPorts, SweepResult, sweep
from rightsizer.ports.evaluation import EndpointSummary
from rightsizer.recommender.usage_days import page_of
from tests.samples import proposal

NOW = datetime(2026, 11, 21, 4, 20, tzinfo=UTC)
YESTERDAY = NOW - timedelta(days=1)


class Account:
    """The five ports of a sweep over `names`; those in `evaluated` were looked at an hour ago."""

    def __init__(self, names: Sequence[str], evaluated: Iterable[str] = (), alarmed: Sequence[str] = ()) -> None:
        self.names, self.alarmed = names, alarmed
        self.seen = {name: NOW - timedelta(hours=1) for name in evaluated}
        self.changed: dict[str, datetime] = {}
        self.pages: list[tuple[tuple[str, ...], str, str]] = []
        self.listings: list[tuple[ListedEndpoint, ...]] = []
        self.unwell: set[str] = set()
        self.unanswered: list[Proposal] = []
        self.busy = False
        self.noted: list[datetime] = []
        self.listed = len(names)
        self.refused: set[str] = set()
        self.alarms_throttled = False

    def list_endpoints(self) -> Iterator[EndpointSummary]:
        for name in self.names[: self.listed]:
            ref = EndpointRef("111122223333", "eu-west-1", name)
            status = "Updating" if name in self.unwell else "InService"
            yield EndpointSummary(ref, status, YESTERDAY, self.changed.get(name, YESTERDAY))
        if self.listed < len(self.names):
            raise ThrottledError("the next page is throttled")

    def recall(self, listed: Sequence[ListedEndpoint]) -> None:
        raise AssertionError("a sweep lists")

    def find(self, names: Iterable[str]) -> list[EndpointSummary]:
        raise AssertionError("a sweep lists")

    def observe(self, summaries: Sequence[EndpointSummary]) -> Iterator[Observation]:
        raise AssertionError("a sweep observes nothing")

    def endpoints_in_alarm(self, alarm: str) -> tuple[str, ...]:
        if self.alarms_throttled:
            raise ThrottledError("later")
        return tuple(self.alarmed)

    def last_evaluations(self) -> Mapping[str, datetime]:
        return self.seen

    def note_spending(self, at: datetime) -> None:
        self.noted.append(at)
        if self.busy:
            raise ThrottledError("later")

    def send_pages(self, pages: Sequence[LookAt]) -> list[tuple[LookAt, RightsizerError]]:
        refused = [page for page in pages if self.refused & set(page.endpoints)]
        self.pages += [(page.endpoints, page.because, page.key) for page in pages if page not in refused]
        self.listings += [page.listed for page in pages]
        return [(page, WriteRefusedError("sending a page", "InternalError", "no")) for page in refused]

    def tell_again(self, now: datetime, *, everything: bool) -> int:
        return 0

    def count_by_state(self) -> Mapping[ProposalState, int]:
        return {ProposalState.PENDING: 3, ProposalState.APPLYING: 1, ProposalState.ROLLED_BACK: 2}

    def expire(self, now: datetime, *, everything: bool) -> tuple[Proposal, ...]:
        if self.busy:
            raise ThrottledError("later")
        return tuple(self.unanswered)

    def run(self, kind: SweepKind) -> SweepResult:
        ports = SweepPorts(self, self, self, self, "rightsizer-gpu-idle", self, count_by_state=self.count_by_state)
        return sweep(ports, SweepDue(kind, NOW))


def test_a_full_sweep_sends_every_endpoint_in_pages() -> None:
    account = Account([f"e{i}" for i in range(PAGE + 1)], evaluated=["e0"])
    assert account.run(SweepKind.FULL) == SweepResult(PAGE + 1, PAGE + 1, 2)
    assert [name for page, _, _ in account.pages for name in page] == list(account.names)


def test_endpoints_of_one_page_of_digests_are_sent_together() -> None:
    """The pages of a longer look-back are smaller: the sweep sorts by those that the evaluation reads."""
    account = Account([f"e{i}" for i in range(100)])
    ports = SweepPorts(account, account, account, account, "", account, lookback_days=63)
    sweep(ports, SweepDue(SweepKind.FULL, NOW))
    sent = [page_of(name, 100, 63) for names, _, _ in account.pages for name in names]
    assert len(set(sent)) == 2
    assert sent == sorted(sent)


def test_a_light_sweep_sends_only_the_new_the_changed_and_the_alarmed() -> None:
    account = Account(["new", "changed", "alarmed", "quiet"], ["changed", "alarmed", "quiet"], ["alarmed"])
    account.changed["changed"] = NOW - timedelta(minutes=5)
    account.run(SweepKind.LIGHT)
    assert account.pages[0][0] == ("new", "changed", "alarmed")
    assert account.pages[0][1] == "light-sweep"


def test_a_page_says_which_of_its_endpoints_were_in_service_and_when_they_were_modified() -> None:
    account = Account(["a", "b", "c"])
    account.unwell, account.changed["c"] = {"b"}, NOW
    account.run(SweepKind.FULL)
    assert account.listings == [(ListedEndpoint("a", YESTERDAY, YESTERDAY), ListedEndpoint("c", YESTERDAY, NOW))]


def test_an_empty_account_sends_nothing() -> None:
    assert Account([]).run(SweepKind.FULL) == SweepResult(0, 0, 0)


@pytest.mark.parametrize("kind", SweepKind)
def test_every_sweep_closes_what_nobody_answered(kind: SweepKind) -> None:
    account = Account([])
    account.unanswered = [proposal("p-1"), proposal("p-2", "other")]
    assert account.run(kind) == SweepResult(0, 0, 0, 2)


def test_a_table_that_is_busy_with_expiring_does_not_stop_the_sweep() -> None:
    account = Account(["a"])
    account.busy = True
    assert account.run(SweepKind.FULL) == SweepResult(1, 1, 1, 0)


def test_a_full_sweep_adds_up_what_the_account_spends_and_a_light_one_does_not() -> None:
    account = Account(["a"])
    account.run(SweepKind.LIGHT)
    assert account.noted == []
    account.run(SweepKind.FULL)
    assert account.noted == [NOW]


def test_the_same_schedule_delivered_twice_sends_the_same_keys() -> None:
    account = Account(["a", "b"])
    account.run(SweepKind.FULL)
    account.run(SweepKind.FULL)
    assert len({key for _, _, key in account.pages}) == 1


@pytest.mark.parametrize("place", range(10))
def test_one_refused_page_at_each_place_of_ten_stops_no_other(place: int) -> None:
    account = Account([f"e{number:03}" for number in range(10 * PAGE)])
    account.refused = {f"e{place * PAGE:03}"}
    done = account.run(SweepKind.FULL)
    assert (done.pages, done.sent, done.refused) == (9, 9 * PAGE, PAGE)
    sent = [name for page, _, _ in account.pages for name in page]
    assert len(sent) == len(set(sent)) == 9 * PAGE


def test_a_queue_that_refuses_every_page_fails_the_sweep_so_that_lambda_tries_again() -> None:
    account = Account(["a", "b"])
    account.refused = {"a", "b"}
    with pytest.raises(WriteRefusedError):
        account.run(SweepKind.FULL)


def test_what_a_refused_page_left_out_is_found_by_the_light_sweep() -> None:
    account = Account(["missed", "quiet"], ["missed", "quiet"])
    account.seen["missed"] = NOW - timedelta(hours=26)
    account.changed["missed"] = NOW - timedelta(days=9)
    account.run(SweepKind.LIGHT)
    assert [page for page, _, _ in account.pages] == [("missed",)]


def test_alarms_that_cannot_be_read_do_not_stop_the_new_and_the_changed() -> None:
    account = Account(["new", "quiet"], ["quiet"])
    account.alarms_throttled = True
    account.run(SweepKind.LIGHT)
    assert [page for page, _, _ in account.pages] == [("new",)]


def test_endpoints_that_were_listed_are_sent_although_a_later_page_of_the_list_fails() -> None:
    account = Account([f"e{number:03}" for number in range(200)])
    account.listed = 100
    with pytest.raises(ThrottledError, match="next page"):
        account.run(SweepKind.FULL)
    assert sum(len(page) for page, _, _ in account.pages) == 100


def test_another_event_does_not_start_a_sweep() -> None:
    account = Account([])
    with pytest.raises(InputError, match="tick-due"):
        sweep(SweepPorts(account, account, account, account, "", account), TickDue(NOW))


def test_the_daily_sweep_says_what_is_stale_and_what_waits_and_the_hourly_one_does_not() -> None:
    account = Account(["quiet", "stale", "never", "new", "updating"], ["quiet"])
    account.seen = {"quiet": NOW - timedelta(days=1), "stale": NOW - timedelta(hours=50)}
    account.changed = {name: NOW - timedelta(days=9) for name in account.names} | {"new": NOW - timedelta(hours=5)}
    account.unwell = {"updating"}
    with patch("rightsizer.flows.sweep.measure") as measured:
        account.run(SweepKind.LIGHT)
        measured.assert_not_called()
        account.run(SweepKind.FULL)
    measured.assert_called_once_with(
        EndpointsStale=2, ProposalsWaiting=3, ProposalsUnderWay=1, ProposalsProven=0, ProposalsWentBack=2
    )
