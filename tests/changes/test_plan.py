"""The plan: what is changed without a deployment, what goes back by the same call, and why there is no plan."""

from dataclasses import replace
from typing import cast

from rightsizer.changes import plan
from rightsizer.changes.dimension import Approved, PlannedChange, Planning
from rightsizer.domain.change import ChangeState
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import PlanKind, StepKind
from rightsizer.domain.reason import Code, Reason
from tests.changes.account import MONDAY, OLD, OLD_TYPE, WHO
from tests.changes.memory import LIMITS, NIGHT, World, an_option, autoscaled, world
from tests.changes.test_capacity import approved

COUNT = an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 1))
BOUNDS = an_option(kind=OptionKind.AUTOSCALING, target=Target(OLD_TYPE, 2, minimum=1, maximum=2))
HOURS = an_option(kind=OptionKind.SCHEDULE, target=Target(OLD_TYPE, 2, hourly_counts=(1,) * 8 + (2,) * 12 + (1,) * 4))
DELETE = an_option(kind=OptionKind.DELETE, target=Target(OLD_TYPE, 0), in_place=False)
ZERO = an_option(kind=OptionKind.SCALE_TO_ZERO, target=Target(OLD_TYPE, 1, minimum=0, maximum=2))


def kinds(w: World) -> list[StepKind]:
    return list(dict.fromkeys(step.kind for step in w.account.done))


def refused(w: World) -> str:
    change = w.start()
    assert change.state is ChangeState.REFUSED, change.outcome
    assert w.account.done == []
    return change.outcome


def test_counts_alone_need_no_new_configuration() -> None:
    w = world(COUNT, count=3)
    w.start()
    assert w.run(12).state is ChangeState.PROVEN
    assert (kinds(w), w.account.counts["AllTraffic"][1]) == ([StepKind.SET_CAPACITY], 1)
    assert "already runs what is asked" in refused(world(COUNT, count=1))


def test_bounds_alone_register_what_moves_and_nothing_else() -> None:
    w = world(BOUNDS, scaling=autoscaled(1, 4), count=2)
    w.start()
    assert w.run(12).state is ChangeState.PROVEN
    assert kinds(w) == [StepKind.REGISTER_TARGET]
    (target,) = w.account.targets.values()
    assert (target.minimum, target.maximum, len(target.policies)) == (1, 2, 1)
    assert "is autoscaled as asked already" in refused(world(BOUNDS, scaling=autoscaled(1, 2), count=2))
    assert "is not autoscaled any more" in refused(
        world(replace(BOUNDS, target=replace(BOUNDS.target, maximum=None)), count=2)
    )


def test_only_a_queue_scales_to_zero() -> None:
    assert "has no queue: requests fail while it has no instance" in refused(world(ZERO))


def test_a_deletion_is_marked_watched_and_writes_nothing() -> None:
    w = world(DELETE, scaling=autoscaled(1, 4, NIGHT))
    change = w.start()
    assert (change.state, change.plan.kind, w.account.done) == (ChangeState.APPLIED, PlanKind.DELETE, [])
    lines = change.plan.restore_file
    assert lines[0] == "#!/bin/sh -e"
    verbs = [line.split()[2] for line in lines if line.startswith("aws ")]
    assert verbs == [
        "create-endpoint",
        "wait",
        "register-scalable-target",
        "put-scaling-policy",
        "put-scheduled-action",
    ]
    assert "no request" not in change.outcome
    w.ask_back()
    assert w.run(5).state is ChangeState.ROLLED_BACK
    assert w.change.remaining == ()


def test_only_a_real_time_endpoint_can_be_told_to_be_idle() -> None:
    assert "cannot be told by its invocations" in refused(world(DELETE, kind=EndpointKind.ASYNC))


def test_a_configuration_that_is_gone_gives_no_plan() -> None:
    w = world()
    del w.account.configs[OLD]
    w.account.instance_type = lambda variant: OLD_TYPE  # type: ignore[method-assign]
    w.account._pools = lambda variant, count: ()  # type: ignore[method-assign]
    assert f"configuration {OLD} does not exist any more" in refused(w)


def test_the_plan_remembers_what_ran_before_with_counts_of_now_and_routing() -> None:
    w = world(scaling=autoscaled(1, 8))
    w.account.scale(3)
    change = w.start()
    assert change.before is not None
    (variant,) = change.before.variants
    assert (change.before.config_name, variant.instance_type, variant.count) == (OLD, OLD_TYPE, 3)
    assert change.before.routing == "RANDOM", "AWS's default, where the configuration says nothing"
    assert [target.resource_id for target in change.before.scaling] == [WHO["ResourceId"]]


def test_a_schedule_that_nobody_understands_refuses_a_deployment() -> None:
    odd = {**NIGHT, "Schedule": "cron(10 9 15 * MON *)"}
    assert "it names days of the month and of the week" in refused(world(scaling=autoscaled(1, 4, odd)))


class Refusing(Planning):
    """A dimension that finds no steps."""

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        return (Reason(Code.NOT_IN_PLACE, approved.before.config_name),)


def test_the_steps_are_those_of_the_dimension_and_it_sees_what_ran_before() -> None:
    given = approved(COUNT)
    inputs = replace(given.inputs, config=ConfigSight(OLD, {"ProductionVariants": []}, MONDAY))
    (why,) = cast("tuple[Reason, ...]", plan.make_plan(given.change, inputs, given.catalogue, LIMITS, Refusing()))
    assert (why.code, why.sentence) == (Code.NOT_IN_PLACE, OLD)
    (gone,) = cast(
        "tuple[Reason, ...]", plan.make_plan(given.change, given.inputs, given.catalogue, LIMITS, Refusing())
    )
    assert gone.code is Code.CONFIGURATION_REPLACED
