"""What other endpoints that sleep need while this one has to run."""

from dataclasses import replace

from rightsizer.changes.hours.stop_input import instances_asleep
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.domain.office_hours import parse_hours
from rightsizer.domain.plan import VariantCount
from tests.changes.hours.kit import BODY, HOURS, KIND, NIGHT, REF, ROW, before, record

SMALL = "ml.g4dn.xlarge"


def asleep(name: str, hours: str = HOURS, count: int = 2, kind: str = KIND, **changes: object) -> HoursRecord:
    was = before(variants=(VariantCount("AllTraffic", kind, count, 1.0),))
    made = record(HoursState.STOPPED, ref=replace(REF, name=name), hours=hours, before=was)
    return replace(made, **changes)  # type: ignore[arg-type]


def needed(*others: HoursRecord, mine: HoursRecord | None = None) -> dict[str, int]:
    mine = mine or record(HoursState.RUNNING)
    opening = parse_hours(mine.hours).next_opening(NIGHT)
    return dict(instances_asleep(mine, opening, others, frozenset()))


def test_what_sleeps_until_the_same_hour_is_added_up_by_type() -> None:
    assert needed() == {}
    assert needed(asleep("a"), asleep("b", count=3), asleep("c", kind=SMALL)) == {KIND: 5, SMALL: 2}


def test_neither_it_itself_nor_what_runs_or_was_handed_over_is_counted() -> None:
    states = (HoursState.RUNNING, HoursState.HANDED_OVER)
    others = [asleep(state.value, state=state) for state in states]
    assert needed(*others, asleep(REF.name), asleep("new", before=None)) == {}
    on_their_way = (HoursState.STOPPING, HoursState.STARTING)
    assert needed(*(asleep(state.value, state=state) for state in on_their_way)) == {KIND: 4}


def test_those_that_never_run_at_the_same_moment_share_a_quota() -> None:
    morning, late = "mon-fri 06:00-10:00 Europe/Berlin", "mon-fri 11:00-23:00 Europe/Berlin"
    assert needed(asleep("a", morning), asleep("b", late)) == {KIND: 2}
    assert needed(asleep("a", morning), asleep("b", late), asleep("c")) == {KIND: 4}
    assert needed(asleep("a", "sat 08:00-12:00 Europe/Berlin")) == {}


def test_each_runs_from_its_lead_time_before_its_hour() -> None:
    evening = "mon-fri 19:30-23:00 Europe/Berlin"
    assert needed(asleep("a", evening)) == {KIND: 2}, "45 minutes before 19:30 this one still runs"
    assert needed(asleep("a", evening, starts=(60.0,))) == {}, "a start of a minute needs 25"


def test_a_creation_begins_with_the_count_of_its_configuration() -> None:
    row = {**ROW, "InitialInstanceCount": 5}
    was = before(config_body={**BODY, "ProductionVariants": [row]})
    assert needed(asleep("a", before=was)) == {KIND: 5}


def test_hours_that_cannot_be_read_any_more_count_as_always_on_and_hours_that_never_open_need_nothing() -> None:
    assert needed(asleep("a", "often")) == {KIND: 2}
    always = record(HoursState.RUNNING, hours="daily 00:00-24:00 UTC")
    assert needed(asleep("a"), mine=always) == {}
