"""What a fleet shall run: the share that is needed at this hour, within bounds; and what counts on autoscaling."""

import pytest

from rightsizer.changes.plan import capacity
from rightsizer.domain.change import ChangeState
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.proposal import ProposalState
from tests.changes.account import BODY, MONDAY, NAME, NEW_TYPE, OLD, OLD_TYPE, WHO
from tests.changes.memory import World, an_option, autoscaled, world

TYPE, COUNT, HOURS = OptionKind.INSTANCE_TYPE, OptionKind.INSTANCE_COUNT, OptionKind.SCHEDULE
DAY = {
    **WHO,
    "ScheduledActionName": "day",
    "Schedule": "cron(0 8 * * ? *)",
    "ScalableTargetAction": {"MinCapacity": 4, "MaxCapacity": 4},
}
BY_SCHEDULE = ScalableTarget(str(WHO["ResourceId"]), str(WHO["ScalableDimension"]), 2, 4, scheduled=(DAY,))


def bounds(w: World) -> list[tuple[int, int]]:
    return [(target.minimum, target.maximum) for target in w.account.targets.values()]


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (TYPE, Target(NEW_TYPE, 1, minimum=1, maximum=4)),
        (COUNT, Target(OLD_TYPE, 1, minimum=1, maximum=4)),
        (HOURS, Target(OLD_TYPE, 2, hourly_counts=(1,) * 12 + (2,) * 12, minimum=1, maximum=4)),
    ],
)
def test_bounds_on_an_endpoint_without_autoscaling_are_refused_with_the_reason(
    kind: OptionKind, target: Target
) -> None:
    w = world(an_option(kind=kind, target=target), count=3, instance_type=OLD_TYPE)
    change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "counts on autoscaling up to 4 instances" in change.outcome
    assert f"variant AllTraffic of {NAME} is not autoscaled" in change.outcome
    assert (w.shown().state, w.account.done) == (ProposalState.WITHDRAWN, [])


def test_bounds_that_leave_no_room_above_the_count_rely_on_nothing() -> None:
    assert world(an_option(target=Target(NEW_TYPE, 2, maximum=2)), count=2).start().state is ChangeState.RUNNING


def test_a_restore_is_not_held_back_by_autoscaling_that_is_gone() -> None:
    assert world(an_option(target=Target(NEW_TYPE, 1, maximum=4), restores=True)).start().state is ChangeState.RUNNING


def test_bounds_on_an_autoscaled_endpoint_are_registered() -> None:
    w = world(an_option(target=Target(NEW_TYPE, 1, minimum=1, maximum=5)), scaling=autoscaled(1, 8))
    w.start()
    assert (w.run(6).state, bounds(w)) == (ChangeState.PROVEN, [(1, 5)])


def test_another_type_takes_along_bounds_that_only_a_schedule_moves() -> None:
    option = an_option(target=Target(NEW_TYPE, 3, minimum=2, maximum=4, per_instance=1.0))
    w = world(option, count=3, scaling=BY_SCHEDULE)
    w.start()
    assert (w.run(6).state, bounds(w)) == (ChangeState.PROVEN, [(2, 4)]), w.change.outcome
    assert [row["ScheduledActionName"] for target in w.account.targets.values() for row in target.scheduled] == ["day"]


def test_a_schedule_adds_nothing_with_the_load_so_bounds_of_the_same_type_rely_on_a_policy() -> None:
    option = an_option(kind=COUNT, target=Target(OLD_TYPE, 1, minimum=1, maximum=4))
    w = world(option, count=3, scaling=BY_SCHEDULE, instance_type=OLD_TYPE)
    assert w.start().state is ChangeState.REFUSED


@pytest.mark.parametrize(("live", "runs"), [(1, 2), (2, 4), (3, 6), (4, 8)])
def test_an_autoscaled_fleet_keeps_the_share_of_its_size_that_is_needed_now(live: int, runs: int) -> None:
    w = world(an_option(target=Target(NEW_TYPE, 2)), scaling=autoscaled(1, 4), count=live)
    w.start()
    (after,) = w.change.plan.after
    assert (after.instance_type, after.count) == (NEW_TYPE, runs)


def test_types_come_from_the_configuration_and_counts_from_what_is_live() -> None:
    w = world(count=1)
    w.account.scale(3)
    sight = w.account.endpoint(NAME)
    (row,) = capacity.live_counts(sight, ConfigSight(OLD, BODY, MONDAY))  # type: ignore[arg-type]
    assert (row.name, row.instance_type, row.count) == ("AllTraffic", OLD_TYPE, 3)
