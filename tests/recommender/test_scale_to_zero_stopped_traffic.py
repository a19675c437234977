"""A fleet whose traffic has stopped keeps few instances, stays small in the silence, and comes back with requests."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import pytest

from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import SLOTS, DailyUsage
from rightsizer.recommender.scale_to_zero import Silence, find_stopped_traffic
from tests.labelled import judged

BUSY: Mapping[str, object] = {"per_slot": 300, "latency_s": 0.5, "gpu": 20, "memory": 60}
CUT = {"days_ago": 2, "from": "ml.g5.xlarge", "to": "ml.g5.xlarge", "from_count": 4, "to_count": 2, "ended": "applied"}


def after_cut(since: Mapping[str, object]) -> Recommendation:
    """Four instances became two while nobody called, two days ago; the days since then are these."""
    before = {"until_days_ago": 2, "type": "ml.g5.xlarge", "count": 4, "usage": {**BUSY} | {"stops_after_days": 9}}
    endpoint = {"type": "ml.g5.xlarge", "count": 2}
    return judged({"endpoint": endpoint, "usage": since, "before": before, "history": [CUT]})


def test_what_silence_took_stays_away_while_it_lasts() -> None:
    found = after_cut({**BUSY} | {"per_slot": 0})
    assert found.finding is not Finding.UNDER_PROVISIONED
    assert found.chosen_option is None or not found.chosen_option.restores


def test_requests_that_come_back_bring_the_fleet_back() -> None:
    found = after_cut({**BUSY} | {"per_slot": 900, "gpu": 75})
    assert (found.finding, found.gate) == (Finding.UNDER_PROVISIONED, Gate.APPLY)
    option = found.chosen_option
    assert option is not None
    assert option.target.instance_count > 2


HOUR = SLOTS // 24
BEGIN = date(2026, 11, 2)
"""A Monday."""


def days_of(*hours: Sequence[float | None]) -> list[DailyUsage]:
    """Days from a Monday on, each by the requests of its hours; an hour's requests come in its first slot."""
    rest: Mapping[bool, float | None] = {True: 0.0, False: None}
    return [
        DailyUsage(
            BEGIN + timedelta(days=number),
            "ml.g5.xlarge",
            1,
            requests=tuple(slot for count in day for slot in (count, *(HOUR - 1) * (rest[count is not None],))),
            busy_s=(0.0,) * SLOTS,
            instances=(2.0,) * 24,
            latency=(),
            latency_total_s=0.0,
            errors=0.0,
            gpu=None,
            gpu_memory=None,
            host_memory=None,
            cpu=None,
        )
        for number, day in enumerate(hours)
    ]


def asked(count: float = 1.0) -> Sequence[float]:
    return [count] * 24


def silent() -> Sequence[float]:
    return [0.0] * 24


WEEK = 7 * (asked(),)


def test_three_silent_days_after_a_busy_week_are_traffic_that_has_stopped() -> None:
    found = find_stopped_traffic(days_of(*WEEK, silent(), silent(), silent()), 72)
    assert found == Silence(72 + 55 / 60, 55 / 60), "the last request came in the first five minutes of its hour"
    assert found.sentence == "no request for 73 h, and the longest pause before was less than an hour"
    assert Silence(80, 1).sentence == "no request for 80 h, and the longest pause before was 1 h"


@pytest.mark.parametrize(
    "days",
    [
        (),
        (silent(), silent(), silent()),
        (*WEEK, silent(), silent(), [0.0] * 23 + [1.0], [0.0] * 23 + [None]),
        (*WEEK, silent(), silent(), silent(), asked(0.001)),
        (*WEEK, silent(), silent(), [0.0] * 22 + [None, 0.0]),
    ],
    ids=["no day", "never asked", "unknown at the end", "the least of a request", "an hour unknown"],
)
def test_what_is_not_known_or_was_never_asked_has_not_stopped(days: tuple[Sequence[float | None], ...]) -> None:
    assert find_stopped_traffic(days_of(*days), 72) is None


def test_silence_counts_from_the_hours_that_the_policy_names() -> None:
    days = days_of(*WEEK, silent(), silent(), silent())
    exact = 72 + 55 / 60
    assert find_stopped_traffic(days, exact) is not None
    assert find_stopped_traffic(days, exact + 1 / 12) is None


@pytest.mark.parametrize(("pause", "stopped"), [(19, True), (20, False)])
def test_a_pause_before_that_was_a_quarter_as_long_makes_it_no_news(pause: int, stopped: bool) -> None:
    """The silence lasts 76 hours and 55 minutes, a pause five minutes less than its hours."""
    night = [9.0] * (24 - pause) + [0.0] * (pause - 1) + [9.0]
    days = days_of(*WEEK, night, [9.0] * 20 + 4 * [0.0], silent(), silent(), silent())
    assert (find_stopped_traffic(days, 72) is not None) is stopped


@pytest.mark.parametrize(("count", "stopped"), [(20 / 24, True), (19.9 / 24, False)])
def test_each_day_before_had_twenty_requests_or_more(count: float, stopped: bool) -> None:
    days = days_of(asked(), asked(count), asked(), asked(), asked(), asked(), asked(), silent(), silent(), silent())
    assert (find_stopped_traffic(days, 72) is not None) is stopped


def test_two_digests_of_a_day_are_one_day_of_requests() -> None:
    first, *rest = days_of(asked(0.5), *6 * (asked(),), silent(), silent(), silent())
    assert find_stopped_traffic([first, *rest], 72) is None
    assert find_stopped_traffic([first, first, *rest], 72) is not None


@pytest.mark.parametrize(("before", "stopped"), [(5, False), (6, False), (7, True)])
def test_weekdays_that_were_never_asked_before_may_be_silent_each_week(before: int, stopped: bool) -> None:
    """Busy from Monday on, then silent for three days: five and six days have seen no Sunday with requests."""
    days = days_of(*before * (asked(),), silent(), silent(), silent())
    assert (find_stopped_traffic(days, 72) is not None) is stopped


def stopped(**endpoint: object) -> Recommendation:
    """Four instances whose traffic stopped five days ago."""
    known = {"type": "ml.g5.xlarge", "count": 4}
    return judged({"endpoint": known | endpoint, "usage": {**BUSY} | {"stops_after_days": 9}})


@pytest.mark.parametrize(("declared", "kept"), [({}, 2), ({"min_instances": 3}, 3)])
def test_a_silent_fleet_goes_down_to_two_or_what_its_owner_declared(declared: dict[str, int], kept: int) -> None:
    option = stopped(**declared).chosen_option
    assert option is not None
    assert (option.target.instance_type, option.target.instance_count) == ("ml.g5.xlarge", kept)


@pytest.mark.parametrize(("count", "declared"), [(2, {"min_instances": 2}), (3, {"min_instances": 5})])
def test_a_silent_fleet_at_its_least_or_below_stays_and_the_least_is_said(count: int, declared: dict[str, int]) -> None:
    found = stopped(count=count, **declared)
    assert found.chosen_option is None
    said = f"already right: its traffic has stopped, and {count} × ml.g5.xlarge is the least that it keeps"
    assert found.gate_reason is not None
    assert (found.gate_reason.code, found.gate_reason.sentence) == (Code.ALREADY_RIGHT, said)


def test_one_instance_whose_traffic_stopped_is_judged_as_any_other() -> None:
    found = stopped(count=1)
    assert "its traffic has stopped" not in f"{found.reason.sentence} {found.gate_reason}"


@pytest.mark.parametrize("kept", [{"scaled": [2, 6], "policies": {"SageMakerVariantInvocationsPerInstance": 100}}])
def test_a_fleet_that_autoscaling_sizes_is_not_cut_for_its_silence(kept: dict[str, object]) -> None:
    found = stopped(**kept)
    assert "its traffic has stopped" not in f"{found.reason.sentence} {found.gate_reason}"
