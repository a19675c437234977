"""Fewer copies of components are set, their instances come back, and the way back brings both."""

from array import array
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import ComponentFinding, Finding
from rightsizer.flows.begin_change import ChangeStarter
from rightsizer.flows.orders import Orders
from sandbox.account import Sandbox
from sandbox.cloudwatch.store import Block, epoch
from sandbox.sagemaker.load import INVOCATIONS
from tests.changing.world import NAME, OLD_TYPE, World, an_option, world

GPU = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
MANAGED = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4}
FEWER = an_option(
    kind=OptionKind.COPIES,
    target=Target(OLD_TYPE, 2, copies=(("chat", 1),)),
    restart_needed=False,
    saving_usd_per_month=Decimal(2000),
)
JUDGED = ComponentFinding("chat", 3, Finding.OVER_PROVISIONED, Reason(Code.CHEAPER_OPTION, "1 of 3"), needed=1)


def seed(box: Sandbox) -> None:
    """Three copies of one component and one of another, each on a GPU of its own."""
    for name, copies in (("chat", 3), ("tags", 1)):
        box.add_component(name, NAME, copies=copies, needs=GPU)
        box.world.tags.put(box.world.fleet.arn("inference-component", name), {"rightsizer:mode": "propose"})


def opened(
    managed: dict[str, Any] | None = None,
    judged: ComponentFinding = JUDGED,
    option: Option = FEWER,
    start: Callable[[Sandbox], None] = seed,
) -> Any:
    return world(
        option,
        seed=start,
        kind=EndpointKind.INFERENCE_COMPONENTS,
        judged={"components": (judged,)},
        count=4,
        inference_components=True,
        variant_extra={"ManagedInstanceScaling": dict(managed or MANAGED)},
    )


LOWER = replace(FEWER, target=Target(OLD_TYPE, 2, least_copies=(("chat", 1),)))
WHO = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "inference-component/chat",
    "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
}
HELD = replace(JUDGED, minimum=3)


def seed_autoscaled(box: Sandbox) -> None:
    """The same, where autoscaling keeps three copies of the first one at least."""
    seed(box)
    scaling = box.client("application-autoscaling")
    scaling.register_scalable_target(**WHO, MinCapacity=3, MaxCapacity=6)
    calls = {"PredefinedMetricType": "SageMakerInferenceComponentInvocationsPerCopy"}
    scaling.put_scaling_policy(
        **WHO,
        PolicyName="calls",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={"TargetValue": 60.0, "PredefinedMetricSpecification": calls},
    )


def autoscaled() -> Any:
    return opened(judged=HELD, option=LOWER, start=seed_autoscaled)


def bounds(w: World) -> tuple[int, int]:
    (target,) = w.box.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="sagemaker", ResourceIds=[WHO["ResourceId"]]
    )["ScalableTargets"]
    return target["MinCapacity"], target["MaxCapacity"]


def copies(w: World) -> dict[str, int]:
    return {name: one.copies for name, one in w.box.world.components.known.items()}


def instances(w: World) -> int:
    return int(w.live()["ProductionVariants"][0]["CurrentInstanceCount"])


def test_the_copies_are_set_their_instances_leave_and_it_is_proven() -> None:
    with opened() as w:
        w.start()
        change = w.run(48)
        assert change.state is ChangeState.PROVEN, change.outcome
        assert (copies(w), instances(w)) == ({"chat": 1, "tags": 1}, 2)
        writes = [c.operation for c in w.box.calls if c.writes and c.service == "sagemaker"]
    assert writes == ["UpdateInferenceComponentRuntimeConfig"], "no deployment"


def test_the_way_back_sets_the_copies_and_the_instances_come_with_them() -> None:
    with opened() as w:
        w.start()
        while w.change.state is not ChangeState.APPLIED:
            w.run(0.25)
        assert instances(w) == 2
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(12)
        assert change.state is ChangeState.ROLLED_BACK, change.outcome
        assert (copies(w), instances(w)) == ({"chat": 3, "tags": 1}, 4)


def test_a_minimum_of_instances_is_kept() -> None:
    with opened({**MANAGED, "MinInstanceCount": 3}) as w:
        w.start()
        w.run(48)
        assert (copies(w)["chat"], instances(w)) == (1, 3)


def test_copies_that_somebody_set_since_the_judgement_are_left() -> None:
    with opened(judged=replace(JUDGED, copies=5)) as w:
        w.start()
        change = w.run(12)
        assert change.state is ChangeState.REFUSED
        assert "has 3 copies, and was judged with 5" in change.outcome
        assert copies(w) == {"chat": 3, "tags": 1}


@pytest.mark.parametrize("mode", ["off", ""])
def test_the_tag_of_the_component_itself_refuses(mode: str) -> None:
    with opened() as w:
        arn = w.box.world.fleet.arn("inference-component", "chat")
        w.box.world.tags.remove(arn, ["rightsizer:mode"])
        if mode:
            w.box.world.tags.put(arn, {"rightsizer:mode": mode})
        w.start()
        change = w.run(12)
        assert change.state is ChangeState.REFUSED
        assert "of component chat is" in change.outcome
        assert copies(w)["chat"] == 3


@pytest.mark.parametrize("gone", ["capacity", "the owner's maximum"])
def test_a_rollback_for_which_nothing_has_room_is_handed_over(gone: str) -> None:
    with opened() as w:
        w.start()
        while w.change.state is not ChangeState.APPLIED:
            w.run(0.25)
        if gone == "capacity":
            w.box.world.fleet.scarce.add(OLD_TYPE)  # somebody else has the instances that were given back
        else:
            spec = w.box.world.fleet.endpoint(NAME).variants["AllTraffic"].spec
            spec["ManagedInstanceScaling"]["MaxInstanceCount"] = 3  # its owner lowered it meanwhile
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(24)
        assert change.state is ChangeState.HANDED_OVER, change.outcome
        assert any("chat" in line for line in change.remaining)
        assert "was accepted: it never shows; where copies are missing, no instance has room" in change.outcome


@pytest.mark.parametrize(("late_ms", "state"), [(250.0, ChangeState.PROVEN), (900.0, ChangeState.ROLLED_BACK)])
def test_a_component_that_turns_slow_brings_the_copies_back_though_the_endpoint_serves_well(
    late_ms: float, state: ChangeState
) -> None:
    with opened() as w:
        w.box.use_component("chat", requests=100.0)
        w.start()
        served(w, late_ms)
        change = w.run(48)
        assert change.state is state, change.outcome
        assert copies(w)["chat"] == (1 if state is ChangeState.PROVEN else 3)


def served(w: World, p95_ms: float) -> None:
    """The next two days of the component alone; the endpoint's own metrics stay as they are."""
    start, size = w.now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1), 2 * 288
    for metric, value in (("Invocations", 100.0), ("ModelLatency", 1000 * p95_ms)):
        block = Block(epoch(start), 300, array("d", [value]) * size, 1.0)
        w.box.world.metrics.put(INVOCATIONS, metric, {"InferenceComponentName": "chat"}, block)


def test_a_lower_minimum_lets_autoscaling_take_the_copies_and_their_instances_leave() -> None:
    with autoscaled() as w:
        w.start()
        change = w.run(48)
        assert change.state is ChangeState.PROVEN, change.outcome
        assert (bounds(w), copies(w), instances(w)) == ((1, 6), {"chat": 1, "tags": 1}, 2)
        writes = [c.operation for c in w.box.calls if c.writes and c.service != "dynamodb"]
    assert writes == ["RegisterScalableTarget"], "no deployment, and no copy is taken by us"


def test_the_way_back_registers_the_old_minimum_and_its_copies_run_again() -> None:
    with autoscaled() as w:
        w.start()
        while instances(w) > 2:
            w.run(0.25)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(12)
        assert change.state is ChangeState.ROLLED_BACK, change.outcome
        assert (bounds(w), copies(w), instances(w)) == ((3, 6), {"chat": 3, "tags": 1}, 4)


def test_a_minimum_for_which_nothing_has_room_on_the_way_back_is_handed_over() -> None:
    with autoscaled() as w:
        w.start()
        while instances(w) > 2:
            w.run(0.25)
        spec = w.box.world.fleet.endpoint(NAME).variants["AllTraffic"].spec
        spec["ManagedInstanceScaling"]["MaxInstanceCount"] = 3
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(24)
        assert change.state is ChangeState.HANDED_OVER, change.outcome
        assert bounds(w) == (3, 6)
        assert any(
            "chat" in line and "CopyCount" in line.replace("copy-count", "CopyCount") for line in change.remaining
        )


@pytest.mark.parametrize("edit", ["minimum", "deregistered", "suspended", "schedule"])
def test_a_minimum_that_its_owner_changed_since_the_judgement_is_left(edit: str) -> None:
    with autoscaled() as w:
        scaling = w.box.client("application-autoscaling")
        match edit:
            case "minimum":
                scaling.register_scalable_target(**WHO, MinCapacity=2)
            case "deregistered":
                scaling.deregister_scalable_target(**WHO)
            case "suspended":
                scaling.register_scalable_target(**WHO, SuspendedState={"DynamicScalingInSuspended": True})
            case _:
                action = {"MinCapacity": 5}
                name = {"ScheduledActionName": "noon", "Schedule": "cron(0 12 * * ? *)"}
                scaling.put_scheduled_action(**WHO, **name, ScalableTargetAction=action)
        w.box.calls.clear()
        w.start()
        change = w.run(12)
        assert change.state is ChangeState.REFUSED, change.outcome
        assert "and was judged with a minimum of 3" in change.outcome
        assert not [c for c in w.box.calls if c.writes and c.service != "dynamodb"]


ROOMY = {**MANAGED, "MaxInstanceCount": 8}


def owner_sets(w: World, number: int | None) -> None:
    """The owner sets copies of the component, or deletes it; no request of the program."""
    components = w.box.world.components
    if number is None:
        del components.known["chat"]
        return
    one = components.known["chat"]
    one.status = "InService"  # what goes on is over for this test: its own update is what matters
    components.set_copies(one, number)


def desired(w: World) -> int | None:
    one = w.box.world.components.known.get("chat")
    return None if one is None else one.desired


ENDS = {
    "proposal": (ChangeState.REFUSED,),
    "preflight": (ChangeState.REFUSED,),
    "probation": (ChangeState.PROVEN, ChangeState.ROLLED_BACK),
}
"""How a change may end whose owner set other copies at this moment; everywhere else it is rolled back."""


@pytest.mark.parametrize("number", [0, 2, 5, None])
@pytest.mark.parametrize("moment", ["proposal", "preflight", "apply"])
def test_copies_that_the_owner_sets_before_they_are_shown_end_the_change(
    moment: str, number: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(ROOMY) as w:
        begin = ChangeStarter.begin

        def planned(self: ChangeStarter, *given: Any) -> Change:
            change = begin(self, *given)
            assert change.before is not None
            owner_sets(w, number)
            return change

        if moment == "proposal":
            owner_sets(w, number)
            w.box.clock.advance(timedelta(hours=1))
        if moment == "preflight":
            monkeypatch.setattr(ChangeStarter, "begin", planned)
        w.start()
        if moment == "apply":
            assert w.box.world.components.known["chat"].status == "Updating"
            owner_sets(w, number)
        held(w, moment, number)


@pytest.mark.parametrize("number", [0, 2, 5, None])
@pytest.mark.parametrize("moment", ["probation", "order", "rollback"])
def test_copies_that_the_owner_sets_later_are_never_written_over(moment: str, number: int | None) -> None:
    with opened(ROOMY) as w:
        w.start()
        while w.change.state is not ChangeState.APPLIED:
            w.run(0.25)
        if moment != "rollback":
            owner_sets(w, number)
        if moment != "probation":
            Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        while moment == "rollback" and desired(w) != 3:
            w.run(0.05)
        if moment == "rollback":
            owner_sets(w, number)
        held(w, moment, number)


def held(w: World, moment: str, number: int | None) -> None:
    change = w.run(60)
    assert (desired(w), copies(w)["tags"]) == (number, 1)
    assert change.state in ENDS.get(moment, (ChangeState.ROLLED_BACK,)), change.outcome
    assert "component chat" in change.outcome or "counts were AllTraffic=4" in change.outcome


def test_copies_that_the_owner_sets_back_after_they_were_shown_stay() -> None:
    with opened(ROOMY) as w:
        w.start()
        owner_sets(w, 3)
        change = w.run(60)
        assert (desired(w), change.state) == (3, ChangeState.ROLLED_BACK), change.outcome
        assert "somebody set 3 copies of component chat again" in change.outcome
        mine = [c for c in w.box.calls if c.operation == "UpdateInferenceComponentRuntimeConfig"]
    assert len(mine) == 1


@pytest.mark.parametrize("moment", ["probation", "order", "rollback"])
def test_bounds_of_the_owner_are_never_written_over(moment: str) -> None:
    with autoscaled() as w:
        scaling = w.box.client("application-autoscaling")
        w.start()
        while instances(w) > 2:
            w.run(0.25)
        if moment in ("probation", "order"):
            scaling.register_scalable_target(**WHO, MinCapacity=2, MaxCapacity=6)
        if moment in ("order", "rollback"):
            Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        if moment == "rollback":
            while bounds(w) != (3, 6):
                w.run(0.05)
            scaling.register_scalable_target(**WHO, MinCapacity=2, MaxCapacity=5)
        change = w.run(60)
        assert bounds(w) == ((2, 5) if moment == "rollback" else (2, 6))
        assert change.is_closed
        assert "somebody changed the autoscaling of component chat to 2 to" in change.outcome


@pytest.mark.parametrize("least", [2, 5])
def test_bounds_that_the_owner_sets_after_the_plan_end_the_change(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with autoscaled() as w:
        begin = ChangeStarter.begin

        def planned(self: ChangeStarter, *given: Any) -> Change:
            change = begin(self, *given)
            w.box.client("application-autoscaling").register_scalable_target(**WHO, MinCapacity=least, MaxCapacity=6)
            return change

        monkeypatch.setattr(ChangeStarter, "begin", planned)
        w.start()
        change = w.run(60)
        assert (bounds(w), change.state) == ((least, 6), ChangeState.REFUSED), change.outcome
        assert f"somebody changed the autoscaling of component chat to {least} to 6 copies" in change.outcome
