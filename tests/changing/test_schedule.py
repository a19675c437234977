"""The owner's schedule goes on while a change has taken autoscaling away, and is made good when it is given back."""

from datetime import timedelta
from typing import Any

from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import OptionKind, Target
from rightsizer.flows.orders import Orders
from sandbox.account import Sandbox
from tests.changing.world import NAME, NEW_TYPE, OLD_TYPE, World, an_option, world

MORNING = (
    {
        "ScheduledActionName": "morning",
        "Schedule": "cron(10 9 ? * MON-FRI *)",
        "ScalableTargetAction": {"MinCapacity": 3, "MaxCapacity": 6},
    },
    {
        "ScheduledActionName": "launch",
        "Schedule": "at(2026-11-02T10:12:00)",
        "Timezone": "Europe/Berlin",
        "ScalableTargetAction": {"MaxCapacity": 8},
    },
    {
        "ScheduledActionName": "evening",
        "Schedule": "cron(30 19 * * ? *)",
        "ScalableTargetAction": {"MinCapacity": 1, "MaxCapacity": 4},
    },
)
"""The first two are due while a change that begins at nine has taken autoscaling away."""
CHEAPER = an_option(target=Target(NEW_TYPE, 1))


def scheduled(box: Sandbox) -> None:
    """Bounds by the hour that the owner planned."""
    box.autoscale(NAME, 1, 4, scheduled=MORNING)


def bounds(w: World) -> list[tuple[int, int]]:
    return [(t.minimum, t.maximum) for t in w.apply.changer.scaling(NAME, ["AllTraffic"])]


def count(w: World) -> int:
    return int(w.live()["ProductionVariants"][0]["DesiredInstanceCount"])


def until_registered(w: World) -> None:
    w.start()
    while bounds(w):
        w.run(0.02)
    while not bounds(w):
        w.run(0.02)


def test_actions_that_were_due_meanwhile_have_set_their_bounds_after_the_change() -> None:
    with world(CHEAPER, seed=scheduled, count=1) as w:
        until_registered(w)
        given, running = bounds(w), count(w)
        change = w.run(7)
        names = {a["ScheduledActionName"] for t in w.apply.changer.scaling(NAME, ["AllTraffic"]) for a in t.scheduled}
    assert given == [(3, 8)]
    assert running == 3, "registering moves the count into the bounds"
    assert change.state is ChangeState.PROVEN
    assert names == {"morning", "evening"}, "an action whose only time has passed is not put again"
    assert "launch of endpoint/chat/variant/AllTraffic was due on Mon 2 Nov 2026, 09:12 UTC" in change.outcome
    assert "bounds of 3 to 8 are registered, not 1 to 4" in change.outcome


def test_a_late_return_does_not_bring_back_the_bounds_of_the_hour_of_the_plan() -> None:
    with world(CHEAPER, seed=scheduled, count=1) as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        w.box.clock.advance(timedelta(days=1) + (w.now.replace(hour=11, minute=0) - w.now))
        assert bounds(w) == [(3, 6)]
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(6)
        given, running = bounds(w), count(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert given == [(3, 6)], "the morning's bounds"
    assert running == 3


def test_bounds_that_were_changed_alone_go_back_to_what_the_schedule_says_now() -> None:
    option = an_option(kind=OptionKind.AUTOSCALING, target=Target(OLD_TYPE, 1, minimum=1, maximum=2))
    with world(option, seed=scheduled, count=1) as w:
        w.start()
        w.run(0.5)
        assert bounds(w) == [(3, 8)], "the schedule is live, and is the owner's"
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(6)
        given = bounds(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert given == [(3, 8)]


def test_a_suspended_schedule_moves_nothing() -> None:
    def seed(box: Sandbox) -> None:
        box.autoscale(NAME, 1, 4, scheduled=MORNING)
        who: dict[str, Any] = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{NAME}/variant/AllTraffic"}
        box.client("application-autoscaling").register_scalable_target(
            **who,
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            SuspendedState={"ScheduledScalingSuspended": True},
        )

    with world(CHEAPER, seed=seed, count=1) as w:
        until_registered(w)
        given = bounds(w)
    assert given == [(1, 4)]
