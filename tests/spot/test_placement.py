"""Where a group's instances go: the best open pools first, On-Demand for what Spot cannot hold."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.reason import Code
from rightsizer.domain.spot import Mark, Pool, PoolSight, PoolSignal, SpotNeed, SpotPlacement
from rightsizer.errors import InputError
from rightsizer.spot.interruption import (
    FIRST_MARK,
    FORGIVEN_AFTER,
    LONGEST_MARK,
    interruptions_per_hour,
    next_mark,
    place_instances,
    useful_usd,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ZONES = [Pool("g5.xlarge", f"us-east-1{letter}") for letter in "abcde"]


def sight(
    pool: Pool, price: float = 0.3, interruptions: int = 0, hours: float = 0, minutes: float | None = None
) -> PoolSight:
    until = None if minutes is None else NOW + timedelta(minutes=minutes)
    return PoolSight(pool, price, interruptions, hours, until)


def placed(need: SpotNeed, sights: list[PoolSight], running: dict[Pool, int] | None = None) -> SpotPlacement:
    return place_instances(need, sights, running or {}, NOW, interruptions_per_hour, useful_usd)


STEADY = [sight(pool, hours=1000, interruptions=20) for pool in ZONES]


def test_missing_instances_spread_evenly_over_the_three_best_pools() -> None:
    assert list(placed(SpotNeed(6, 1.0), STEADY).launch.values()) == [2, 2, 2]


def test_running_instances_stay_and_only_the_gap_is_filled() -> None:
    result = placed(SpotNeed(6, 1.0), STEADY, {ZONES[0]: 4})
    assert sum(result.launch.values()) == 2
    assert ZONES[0] not in result.launch


def test_a_marked_pool_gets_nothing() -> None:
    marked = [sight(ZONES[0], 0.01, 0, 1000, minutes=1), *STEADY[1:]]
    assert ZONES[0] not in placed(SpotNeed(6, 1.0), marked).launch


def test_a_mark_that_ended_opens_the_pool() -> None:
    ended = [sight(ZONES[0], 0.01, 0, 1000, minutes=0), *STEADY[1:]]
    assert placed(SpotNeed(3, 1.0), ended).launch[ZONES[0]] == 1


def test_with_every_pool_marked_on_demand_takes_everything_and_says_so() -> None:
    result = placed(SpotNeed(5, 1.0), [sight(pool, minutes=5) for pool in ZONES])
    assert (result.launch, result.on_demand) == ({}, 5)
    assert [reason.code for reason in result.reasons] == [Code.NO_OPEN_POOL]


def test_without_pools_on_demand_takes_everything() -> None:
    assert placed(SpotNeed(5, 1.0), []).on_demand == 5


def test_without_fallback_marked_pools_are_tried_again() -> None:
    result = placed(SpotNeed(5, 1.0, fallback=False), [sight(pool, minutes=5) for pool in ZONES])
    assert (sum(result.launch.values()), result.on_demand) == (5, 0)


def test_a_pool_dearer_than_on_demand_is_not_used() -> None:
    assert placed(SpotNeed(2, 1.0), [sight(ZONES[0], 1.01, 0, 1000)]).on_demand == 2


def test_a_cheap_pool_that_interrupts_all_the_time_loses_to_a_steady_one() -> None:
    hectic, steady = sight(ZONES[0], 0.3, 300, 100), sight(ZONES[1], 0.35, 1, 1000)
    assert placed(SpotNeed(2, 1.0, pools_wanted=1), [hectic, steady]).launch == {ZONES[1]: 2}


def test_unsteady_pools_hold_only_the_share_that_keeps_losses_within_the_limit() -> None:
    unsteady = [sight(pool, 0.3, 2000, 1000) for pool in ZONES]  # 2 an hour x 3 minutes: a tenth of the time lost
    result = placed(SpotNeed(10, 1.0, most_lost=0.05), unsteady)
    assert (sum(result.launch.values()), result.on_demand) == (5, 5)
    assert Code.SPOT_TOO_UNSTEADY in [reason.code for reason in result.reasons]


def test_the_base_stays_on_demand_though_spot_is_open() -> None:
    result = placed(SpotNeed(6, 1.0, on_demand_base=2), STEADY)
    assert (sum(result.launch.values()), result.on_demand) == (4, 2)


def test_a_boot_shorter_than_the_notice_loses_nothing() -> None:
    assert SpotNeed(1, 1.0, boot_s=60, notice_s=120).gap_hours == 0


@pytest.mark.parametrize("broken", [{"target": -1}, {"most_lost": 0.0}, {"pools_wanted": 0}, {"on_demand_usd": 0.0}])
def test_a_need_that_makes_no_sense_is_refused(broken: dict[str, float]) -> None:
    with pytest.raises(InputError):
        SpotNeed(**{"target": 1, "on_demand_usd": 1.0, **broken})  # type: ignore[arg-type]


def test_a_price_that_is_no_number_is_refused_with_the_pool_named() -> None:
    with pytest.raises(InputError, match=r"g5\.xlarge in us-east-1a"):
        sight(ZONES[0], float("nan"))


pools = st.lists(
    st.builds(
        sight,
        st.sampled_from(ZONES),
        st.floats(0, 2),
        st.integers(0, 500),
        st.floats(0, 1000),
        st.one_of(st.none(), st.floats(-100, 100)),
    ),
    unique_by=lambda found: found.pool,
)
needs = st.builds(
    SpotNeed,
    target=st.integers(0, 40),
    on_demand_usd=st.floats(0.01, 2),
    on_demand_base=st.integers(0, 50),
    most_lost=st.floats(0.001, 1),
    pools_wanted=st.integers(1, 6),
)
held = st.dictionaries(st.sampled_from(ZONES), st.integers(0, 20))


@given(needs, pools, held)
def test_capacity_is_never_lowered(need: SpotNeed, sights: list[PoolSight], running: dict[Pool, int]) -> None:
    result = placed(need, sights, running)
    assert sum(running.values()) + sum(result.launch.values()) + result.on_demand >= need.target


@given(needs, pools, held)
def test_nothing_is_launched_beyond_the_target(
    need: SpotNeed, sights: list[PoolSight], running: dict[Pool, int]
) -> None:
    result = placed(need, sights, running)
    assert sum(result.launch.values()) + sum(running.values()) <= max(need.target, sum(running.values()))
    assert result.on_demand <= need.target


@given(needs, pools, held)
def test_only_open_pools_get_instances(need: SpotNeed, sights: list[PoolSight], running: dict[Pool, int]) -> None:
    opened = {found.pool for found in sights if found.is_open(NOW)}
    launch = placed(need, sights, running).launch
    assert set(launch) <= opened
    assert all(count > 0 for count in launch.values())


@given(needs, pools, held)
def test_the_order_of_the_pools_changes_nothing(
    need: SpotNeed, sights: list[PoolSight], running: dict[Pool, int]
) -> None:
    assert placed(need, sights, running) == placed(need, sights[::-1], running)


@given(st.integers(0, 1000), st.floats(0, 10000))
def test_one_more_interruption_never_makes_a_pool_look_steadier(count: int, hours: float) -> None:
    assert interruptions_per_hour(sight(ZONES[0], 0.3, count + 1, hours)) > interruptions_per_hour(
        sight(ZONES[0], 0.3, count, hours)
    )


def test_a_pool_without_a_record_is_taken_at_four_interruptions_a_day() -> None:
    assert interruptions_per_hour(sight(ZONES[0])) * 24 == pytest.approx(4)


def test_marks_in_a_row_double_up_to_the_longest() -> None:
    held, lengths, now = None, [], NOW
    for _ in range(6):
        held = next_mark(ZONES[0], PoolSignal.REFUSED, now, held)
        lengths.append(held.until - now)
        now = held.until
    assert lengths == [FIRST_MARK * 2**n for n in range(3)] + [LONGEST_MARK] * 3


def test_many_warnings_of_one_moment_are_one_strike() -> None:
    first = next_mark(ZONES[0], PoolSignal.INTERRUPTED, NOW, None)
    assert next_mark(ZONES[0], PoolSignal.INTERRUPTED, NOW + timedelta(seconds=5), first) == first


def test_a_pool_that_held_is_forgiven() -> None:
    old = Mark(ZONES[0], PoolSignal.REFUSED, NOW, NOW + LONGEST_MARK, 5)
    later = next_mark(ZONES[0], PoolSignal.REFUSED, old.until + FORGIVEN_AFTER + timedelta(seconds=1), old)
    assert (later.strikes, later.until - later.at) == (1, FIRST_MARK)
