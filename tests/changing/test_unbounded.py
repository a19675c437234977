"""An option that counts on autoscaling is not carried out where there is none: it would stay at its smallest size."""

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.proposal import ProposalState
from sandbox.account import Sandbox
from tests.changing.scenarios import VARIANT
from tests.changing.world import NAME, NEW_TYPE, OLD_TYPE, an_option, world

TYPE, COUNT, HOURS = OptionKind.INSTANCE_TYPE, OptionKind.INSTANCE_COUNT, OptionKind.SCHEDULE


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
    with world(an_option(kind=kind, target=target), count=3) as w:
        change = w.start()
        shown, writes = w.shown().state, [c for c in w.box.calls if c.writes and c.service != "dynamodb"]
    assert change.state is ChangeState.REFUSED
    assert "counts on autoscaling up to 4 instances" in change.outcome
    assert f"variant AllTraffic of {NAME} is not autoscaled" in change.outcome
    assert (shown, writes) == (ProposalState.WITHDRAWN, [])


def test_bounds_that_leave_no_room_above_the_count_rely_on_nothing() -> None:
    with world(an_option(target=Target(NEW_TYPE, 2, maximum=2)), count=2) as w:
        w.start()
        assert w.run(6).state is ChangeState.PROVEN


def test_a_restore_is_not_held_back_by_autoscaling_that_is_gone() -> None:
    with world(an_option(target=Target(NEW_TYPE, 1, maximum=4), restores=True)) as w:
        assert w.start().state is ChangeState.RUNNING


def test_bounds_on_an_autoscaled_endpoint_are_registered() -> None:
    with world(
        an_option(target=Target(NEW_TYPE, 1, minimum=1, maximum=5)), seed=lambda box: box.autoscale(NAME, 1, 8)
    ) as w:
        w.start()
        change = w.run(6)
        (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    assert change.state is ChangeState.PROVEN
    assert (target.minimum, target.maximum) == (1, 5)


DAY = {
    "ScheduledActionName": "day",
    "Schedule": "cron(0 8 * * ? *)",
    "ScalableTargetAction": {"MinCapacity": 4, "MaxCapacity": 4},
}


def by_schedule(box: Sandbox) -> None:
    """The owner's own bounds by the hour, and no policy."""
    who = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{NAME}/variant/AllTraffic"}
    scaling = box.client("application-autoscaling")
    scaling.register_scalable_target(**who, ScalableDimension=VARIANT, MinCapacity=2, MaxCapacity=4)
    scaling.put_scheduled_action(**who, ScalableDimension=VARIANT, **DAY)


def test_another_type_takes_along_bounds_that_only_a_schedule_moves() -> None:
    option = an_option(target=Target(NEW_TYPE, 3, minimum=2, maximum=4, per_instance=1.0))
    with world(option, count=3, seed=by_schedule) as w:
        w.start()
        change = w.run(6)
        (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    assert change.state is ChangeState.PROVEN, change.outcome
    assert (target.minimum, target.maximum) == (2, 4)
    assert [action["ScheduledActionName"] for action in target.scheduled] == ["day"]


def test_a_schedule_adds_nothing_with_the_load_so_bounds_of_the_same_type_rely_on_a_policy() -> None:
    option = an_option(kind=COUNT, target=Target(OLD_TYPE, 1, minimum=1, maximum=4))
    with world(option, count=3, seed=by_schedule, judged={"instance_type": OLD_TYPE}) as w:
        assert w.start().state is ChangeState.REFUSED
