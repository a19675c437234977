"""More endpoints than one tick has time for: who has to serve soonest comes first, and who waits is told."""

from dataclasses import replace
from datetime import timedelta

from rightsizer.changes.hours import by_urgency
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.flows.apply import RESERVE_MS
from tests.hours.world import CLOSES, NAME, OPENS, TICK, HoursWorld, hours_world

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def another(w: HoursWorld, name: str, hours: str, state: HoursState = HoursState.STOPPED) -> HoursRecord:
    """An endpoint of other hours that was stopped beside the one of the world."""
    ref = replace(w.record.ref, name=name)
    with w.box.gate.unrecorded():
        return w.flow.ports.book.save(replace(w.record, ref=ref, hours=hours, state=state, version=0))


def looked_at(w: HoursWorld, most: int) -> list[str]:
    """Names that a tick reaches which has time for so many."""
    looks = iter([RESERVE_MS] * most)
    return [record.ref.name for record in w.flow.tick(w.now, lambda: next(looks, RESERVE_MS - 1))]


def test_what_has_to_serve_soonest_comes_first_then_the_oldest_look_and_the_name_says_nothing() -> None:
    with hours_world(scaled=False) as w:
        w.until(CLOSES + 2 * HOUR)
        another(w, "Asleep", "mon-fri 13:00-19:00 Europe/Berlin")
        another(w, "Bed", "mon-fri 14:00-19:00 Europe/Berlin")
        another(w, "Later", "mon-fri 08:20-19:00 Europe/Berlin")
        w.box.clock.advance(OPENS - 20 * MINUTE - w.now)
        assert looked_at(w, 1) == [NAME]
        assert looked_at(w, 3) == [NAME, "Later", "Asleep"]
        w.box.clock.advance(TICK)
        assert [name for name in looked_at(w, 3) if name != NAME] == ["Later", "Bed"], "what sleeps takes turns"


def test_a_start_that_is_late_for_days_keeps_no_other_one_waiting() -> None:
    with hours_world(scaled=False) as w:
        w.until(CLOSES + 2 * HOUR)
        stuck = another(w, "Stuck", "mon-fri 08:00-19:00 Europe/Berlin", HoursState.STARTING)
        opens, later = OPENS + 5 * HOUR, "mon-fri 13:00-19:00 Europe/Berlin"
        soon = replace(stuck, ref=replace(stuck.ref, name="Soon"), hours=later, state=HoursState.STOPPED)
        for now, first in ((OPENS, "Stuck"), (OPENS + 3 * HOUR, "Stuck"), (opens - 20 * MINUTE, "Soon")):
            ranked = by_urgency([soon, stuck], now, frozenset())
            assert ranked[0].ref.name == first, now
        asleep = replace(soon, hours="mon-fri 18:00-19:00 Europe/Berlin")
        assert by_urgency([asleep, stuck], opens, frozenset())[0].ref.name == "Stuck", (
            "it goes before what waits for nothing"
        )


def test_what_a_tick_does_not_reach_after_its_hour_is_told_once_with_the_commands() -> None:
    with hours_world(scaled=False) as w:
        w.until(CLOSES + 2 * HOUR)
        w.box.clock.advance(OPENS - MINUTE - w.now)
        assert (looked_at(w, 0), w.told) == ([], []), "nobody waits before the hour"
        w.box.clock.advance(TICK)
        assert looked_at(w, 0) == looked_at(w, 0) == []
        ((subject, text),) = w.told
        assert subject == f"{NAME} may not serve"
        assert "too many endpoints have hours for one tick" in text
        assert "aws sagemaker create-endpoint" in text
