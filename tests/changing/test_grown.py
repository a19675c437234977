"""The fleet grew since the plan: the way back is as large as the load needs, whoever asks for it and whenever."""

from datetime import timedelta

from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.option import Target
from rightsizer.flows.orders import Orders
from sandbox.account import Sandbox
from tests.changing import scenarios
from tests.changing.world import NAME, NEW_TYPE, OLD_TYPE, World, an_option, world


def autoscaled(box: Sandbox) -> None:
    box.autoscale(NAME, 1, 8)


def arrived(w: World, hours: float = 0.5) -> None:
    """The change arrives, and so many hours pass."""
    w.start()
    while w.change.turned_at is None:
        w.run(0.25)
    w.run(hours)


def grown(w: World, count: int) -> None:
    """Others scale the fleet, and it is in service again after it."""
    w.scale(count)
    w.box.clock.advance(timedelta(minutes=20))


def asked_back(w: World, hours: float = 6) -> Change:
    """Somebody asks for the way back, and it is walked."""
    Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
    return w.run(hours)


def back_from(w: World, count: int, late: timedelta = timedelta(0)) -> Change:
    """The change arrives, the fleet grows, and somebody asks for the way back."""
    arrived(w, 30 if late else 0.5)
    w.box.clock.advance(late)
    grown(w, count)
    return asked_back(w)


def fleet(w: World) -> list[tuple[str, int]]:
    config = w.box.client("sagemaker").describe_endpoint_config(EndpointConfigName=w.box.config_name(NAME))
    types = {v["VariantName"]: v["InstanceType"] for v in config["ProductionVariants"]}
    return [(types[v["VariantName"]], v["DesiredInstanceCount"]) for v in w.live()["ProductionVariants"]]


def deployed(w: World) -> list[str]:
    return [call.params["EndpointConfigName"] for call in w.box.calls.of("sagemaker", "UpdateEndpoint")]


def test_a_return_at_the_peak_brings_back_as_many_as_serve_it() -> None:
    with world(an_option(target=Target(NEW_TYPE, 1)), seed=autoscaled, count=1) as w:
        change = back_from(w, 6)
        now, (target,) = fleet(w), w.apply.changer.scaling(NAME, ["AllTraffic"])
        updates = deployed(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert now == [(OLD_TYPE, 6)]
    assert (target.minimum, target.maximum) == (1, 8)
    assert len(updates) == 2, "never by way of the stored count"
    assert (
        "the fleet or its bounds grew since the plan; the rollback runs AllTraffic 6 x ml.g5.4xlarge" in change.outcome
    )


def test_a_larger_way_back_that_the_quota_refuses_is_followed_by_the_stored_one() -> None:
    refused = (
        "The account-level service limit 'ml.g5.4xlarge for endpoint usage' is 2 Instances, with current utilization "
        "of 1 Instances and a request delta of 6 Instances."
    )
    with world(an_option(target=Target(NEW_TYPE, 1)), seed=autoscaled, count=1) as w:
        arrived(w)
        grown(w, 6)
        w.box.gate.fail("sagemaker", "UpdateEndpoint", "ResourceLimitExceeded", refused, times=1)
        change = asked_back(w, hours=12)
        now = fleet(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert now == [(OLD_TYPE, 1)]


def test_copies_that_somebody_raised_since_stay_on_the_way_back() -> None:
    scenario = scenarios.COMPONENTS
    with world(scenario.option, seed=scenario.seed, kind=scenario.kind, **scenario.endpoint) as w:
        w.start()
        while w.change.state is not ChangeState.APPLIED:
            w.run(0.25)
        with w.box.gate.unrecorded():
            judge, w.box.gate.judge = w.box.gate.judge, lambda call: None
            w.box.client("sagemaker").update_inference_component_runtime_config(
                InferenceComponentName="small", DesiredRuntimeConfig={"CopyCount": 5}
            )
            w.box.gate.judge = judge
        w.box.clock.advance(timedelta(minutes=30))
        change = asked_back(w)
        copies = {name: c.desired for name, c in w.box.world.components.known.items()}
    assert change.state is ChangeState.ROLLED_BACK
    assert copies == {"small": 5, "large": 1}
