"""What stopped hours saved: by the instances that ran before each stop, and never a guess."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import cast

from rightsizer.bootstrap import catalogue
from rightsizer.domain.account_finding import ServedResources
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.outcome import LedgerEntry, UnreadRow
from rightsizer.domain.price import Commitment, PriceTable
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import HoursSaving, Stack
from rightsizer.errors import PermissionMissingError
from rightsizer.flows.bill import BillPorts
from rightsizer.flows.report import ReportSources, assemble_report
from rightsizer.ports.account import AccountReader, OwnUse
from rightsizer.ports.changes import EndedChangeBook, HoursBook, SavingsLedger
from rightsizer.ports.evaluation import RecommendationStore
from rightsizer.render import report_page, slack, text
from rightsizer.reporting.office_hours import hours_savings, types_stopped
from tests.reporting.test_money import booked, seen
from tests.samples import price

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
REF = EndpointRef("111122223333", "eu-west-1", "chat")
PRICES = PriceTable("eu-west-1", {"ml.g5.xlarge": price("ml.g5.xlarge", "1.50")}, Commitment(Decimal(0), known=True))


def night(day: int, hours: float | None = 12, count: int = 2, kind: str = "ml.g5.xlarge") -> StoppedTime:
    start = MONDAY + day * DAY + 19 * HOUR
    end = None if hours is None else start + hours * HOUR
    return StoppedTime(start, end, MONDAY - 9 * DAY, None, ((kind, count),))


def record(*nights: StoppedTime) -> HoursRecord:
    return HoursRecord(REF, owner="search", hours="daily 07:00-19:00 UTC", stopped_times=nights)


def saved(*nights: StoppedTime, end: datetime = MONDAY + 7 * DAY) -> HoursSaving:
    (found,) = hours_savings([record(*nights)], PRICES, MONDAY, end)
    return found


def test_a_night_saves_what_ran_before_it_and_the_rest_of_the_window_ran() -> None:
    found = saved(night(0), night(1, count=1))
    assert (found.stopped_hours, found.usd) == (24.0, Decimal("54.00"))
    assert (found.ran_hours, found.ran_usd) == (144.0, Decimal("216.00")), "one ran last"
    assert found.priced_by == "ml.g5.xlarge $1.50 an hour (price-list-api, 2026-01-05)"


def test_only_hours_of_the_window_count_and_a_stop_that_lasts_counts_until_its_end() -> None:
    assert saved(night(-1)).stopped_hours == 7, "from midnight"
    assert saved(night(2, None), end=MONDAY + 3 * DAY).stopped_hours == 5
    assert list(hours_savings([record(night(-3)), record()], PRICES, MONDAY, MONDAY + DAY)) == []


def test_it_ran_in_no_hour_before_it_was_there() -> None:
    young = replace(night(2), was_modified_at=MONDAY + 2 * DAY)
    assert saved(young).ran_hours == 5 * 24 - 12


def test_without_a_price_or_the_instances_nothing_is_made_up() -> None:
    assert types_stopped([record(night(0), night(1, kind="ml.x.new"))]) == ["ml.g5.xlarge", "ml.x.new"]
    unpriced = saved(night(0), night(1, kind="ml.x.new"))
    assert (unpriced.usd, unpriced.ran_usd, unpriced.stopped_hours) == (None, None, 24.0)
    assert saved(replace(night(0), ran=())).usd is None


class Stored:
    """A stack in which nothing is stored but office hours."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails

    def records(self, unread: list[UnreadRow] | None = None) -> Iterator[HoursRecord]:
        if self.fails:
            raise PermissionMissingError("dynamodb:Query", "reading the hours", "no")
        yield record(night(0), night(1))

    def table(self, region: str, types: object) -> PriceTable:
        return PRICES

    def served_by(self, endpoints: object) -> ServedResources:
        return ServedResources()

    def component_models(self) -> frozenset[str]:
        return frozenset()

    def __getattr__(self, name: str) -> object:
        return lambda *_, **__: ()


def sources(stored: Stored) -> ReportSources:
    bill = BillPorts(cast("AccountReader", stored), stored, catalogue(), cast("HoursBook", stored))
    return ReportSources(
        "111122223333",
        "eu-west-1",
        cast("RecommendationStore", stored),
        cast("SavingsLedger", stored),
        cast("EndedChangeBook", stored),
        cast("OwnUse", stored),
        Stack(),
        bill=bill,
    )


def test_the_report_has_a_line_of_its_own_in_every_form() -> None:
    made = assemble_report(sources(Stored()), MONDAY, MONDAY + 7 * DAY, MONDAY + 8 * DAY)
    assert (made.office_hours_usd, made.totals.realised) == (Decimal("72.00"), Decimal(0)), "in no other sum"
    said = "$72.00 in this window, 24 of 168 hours stopped"
    assert f"Saved by office hours: {said}" in text.report(made)[1]
    assert said in str(slack.report_blocks(made))
    page = report_page.report(made)
    assert "Stopped by office hours" in page
    assert "ml.g5.xlarge $1.50 an hour" in page


def test_without_records_that_can_be_read_the_report_says_so() -> None:
    made = assemble_report(sources(Stored(fails=True)), MONDAY, MONDAY + 7 * DAY, MONDAY + 8 * DAY)
    assert made.office_hours == ()
    assert any("dynamodb:Query" in reason.sentence for reason in made.account_unread)
    assert "office hours" not in text.report(made)[1]


class Judged(Stored):
    """An endpoint that was looked at on Sunday."""

    def recommendations(self, unread: list[UnreadRow] | None = None) -> Iterator[Recommendation]:
        yield seen(at=MONDAY + 6 * DAY)


class Booked(Stored):
    """A change of it that was booked until Wednesday, and one of another endpoint that was booked until Sunday."""

    def entries(self, start: datetime, end: datetime, unread: list[UnreadRow]) -> list[LedgerEntry]:
        found = [booked("c", MONDAY + 2 * DAY, "24"), booked("d", MONDAY + 6 * DAY, "24", endpoint="other")]
        return [one for one in found if start <= one.at < end]


class Saving(Stored):
    """Changes that stand."""

    def __init__(self, *ids: str) -> None:
        super().__init__()
        self.ids = ids

    def still_saving(self) -> tuple[str, ...]:
        return self.ids


def test_a_change_that_still_saves_is_in_force_though_nothing_was_booked_lately() -> None:
    """Its endpoint was asleep since Wednesday, and another one was booked until the end."""
    stored = Stored()
    made = replace(
        sources(stored),
        bill=None,
        hours=cast("HoursBook", stored),
        store=cast("RecommendationStore", Judged()),
        ledger=cast("SavingsLedger", Booked()),
        past=cast("EndedChangeBook", Saving("c")),
    )
    kept = assemble_report(made, MONDAY, MONDAY + 7 * DAY, MONDAY + 8 * DAY).totals
    over = assemble_report(
        replace(made, past=cast("EndedChangeBook", Saving())), MONDAY, MONDAY + 7 * DAY, MONDAY + 8 * DAY
    ).totals
    assert (kept.without_changes - kept.spend, over.without_changes - over.spend) == (Decimal(730), Decimal(0))
