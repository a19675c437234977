"""Several endpoints: those that have to serve soonest come first, who waits is told, and mornings share a quota."""

from dataclasses import replace
from datetime import timedelta

from rightsizer.changes.hours import by_urgency
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.flows.apply import RESERVE_MS
from tests.hours.world import CLOSES, HOURS, KIND, NAME, OPENS, TICK, HoursWorld, hours_world, quiet_after

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


def chats_of(w: HoursWorld, number: int) -> None:
    """More endpoints of the same type and hours, of two instances each."""
    image = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat@sha256:" + "a" * 64
    for name in (f"Chat{n}" for n in range(number)):
        tags = {"rightsizer:hours": HOURS, "rightsizer:owner": f"owners of {name}"}
        w.box.add_endpoint(name, instance_type=KIND, count=2, tags=tags, image=image)
        w.box.load(name, quiet_after(w.now - HOUR))


def state_of(w: HoursWorld, name: str) -> HoursState:
    with w.box.gate.unrecorded():
        found = w.flow.ports.book.load(name)
    assert found is not None
    return found.state


def test_the_last_one_keeps_running_and_people_know_it_where_the_mornings_together_exceed_the_quota() -> None:
    with hours_world(scaled=False) as w:
        chats_of(w, 3)
        w.box.world.quotas.set(KIND, 7)
        w.until(CLOSES + 2 * HOUR)
        names = (NAME, "Chat0", "Chat1", "Chat2")
        asleep = [name for name in names if state_of(w, name) is HoursState.STOPPED]
        assert len(asleep) == 3
        ((_, text),) = w.told
        assert "endpoint usage' is 7 and the morning needs 2, beside 6 of endpoints that sleep now" in text
        awake = next(name for name in names if name not in asleep)
        w.until(OPENS - HOUR)
        assert (state_of(w, awake), len(w.told)) == (HoursState.RUNNING, 1), "it is said once"
