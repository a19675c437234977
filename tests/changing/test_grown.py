"""The fleet grew since the plan: the way back is as large as the load needs, whoever asks for it and whenever."""

from datetime import timedelta

from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.option import OptionKind, Target
from rightsizer.flows.orders import Orders
from sandbox.account import Sandbox
from sandbox.sagemaker.deployment import Ending
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
    Orders(w.journal).ask_back(w.change.id, "U1", w.now)
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
        "the fleet or its bounds grew since the plan; the way back runs AllTraffic 6 x ml.g5.4xlarge" in change.outcome
    )


def test_a_proven_change_is_undone_days_later_at_the_size_of_that_day() -> None:
    with world(an_option(target=Target(NEW_TYPE, 1)), seed=autoscaled, count=1) as w:
        change = back_from(w, 5, late=timedelta(days=9))
        now = fleet(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert now == [(OLD_TYPE, 5)]


def test_a_fleet_that_did_not_grow_goes_back_by_its_own_configuration() -> None:
    with world(an_option(target=Target(NEW_TYPE, 2)), seed=autoscaled, count=2) as w:
        change = back_from(w, 1)
        now, config = fleet(w), w.box.config_name(NAME)
    assert change.state is ChangeState.ROLLED_BACK
    assert (now, config) == ([(OLD_TYPE, 2)], f"{NAME}-config")


def test_counts_that_a_person_raised_since_are_not_cut_by_the_way_back() -> None:
    option = an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 1))
    with world(option, count=3) as w:
        change = back_from(w, 5)
        now = fleet(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert now == [(OLD_TYPE, 5)]


def test_a_larger_way_back_that_fails_for_capacity_is_followed_by_the_stored_one() -> None:
    with world(an_option(target=Target(NEW_TYPE, 1)), seed=autoscaled, count=1) as w:
        arrived(w)
        grown(w, 6)
        w.box.script_deployment(NAME, Ending.CAPACITY)
        change = asked_back(w, hours=12)
        now = fleet(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert now == [(OLD_TYPE, 1)]
    assert "the larger way back was refused" in change.outcome


def test_a_larger_way_back_that_the_quota_refuses_is_followed_by_the_stored_one() -> None:
    refused = (
        "The account-level service limit 'ml.g5.4xlarge for endpoint usage' is 2 Instances, with current utilization "
        "of 1 Instances and a request delta of 6 Instances."
    )
    with world(an_option(target=Target(NEW_TYPE, 1)), seed=autoscaled, count=1) as w:
        arrived(w)
        grown(w, 6)
        w.box.fail("sagemaker", "UpdateEndpoint", "ResourceLimitExceeded", refused, times=1)
        change = asked_back(w, hours=12)
        now = fleet(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert now == [(OLD_TYPE, 1)]


def test_bounds_that_the_owner_raised_since_are_not_cut_by_the_way_back() -> None:
    with world(an_option(target=Target(NEW_TYPE, 1)), seed=autoscaled, count=1) as w:
        arrived(w, hours=30)
        assert w.change.state is ChangeState.PROVEN
        with w.box.gate.unrecorded():
            w.box.autoscale(NAME, 2, 20)
        w.box.clock.advance(timedelta(minutes=20))
        grown(w, 12)
        change = asked_back(w)
        now, (target,) = fleet(w), w.apply.changer.scaling(NAME, ["AllTraffic"])
    assert change.state is ChangeState.ROLLED_BACK
    assert now == [(OLD_TYPE, 12)]
    assert (target.minimum, target.maximum) == (2, 20)
    assert "autoscaling was edited since the change (RegisterScalableTarget" in change.outcome
    assert "with bounds as large as yours" in change.outcome


def test_bounds_changed_alone_and_raised_since_stay_raised_on_the_way_back() -> None:
    option = an_option(kind=OptionKind.AUTOSCALING, target=Target(OLD_TYPE, 1, minimum=1, maximum=2))
    with world(option, seed=autoscaled, count=1) as w:
        w.start()
        w.run(0.5)
        with w.box.gate.unrecorded():
            w.box.autoscale(NAME, 1, 20)
        change = asked_back(w)
        (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    assert change.state is ChangeState.ROLLED_BACK
    assert (target.minimum, target.maximum) == (1, 20)


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


def test_a_role_that_may_make_no_configuration_goes_back_to_the_stored_one() -> None:
    with world(an_option(target=Target(NEW_TYPE, 1)), seed=autoscaled, count=1) as w:
        arrived(w)
        grown(w, 6)
        w.box.deny("sagemaker:CreateEndpointConfig")
        change = asked_back(w, hours=2)
        now, config = fleet(w), w.box.config_name(NAME)
    assert change.state is ChangeState.ROLLED_BACK
    assert (now, config) == ([(OLD_TYPE, 1)], f"{NAME}-config")
    assert "the larger way back was refused" in change.outcome


def test_a_count_that_its_owner_sets_before_the_first_look_stays_and_is_no_failure() -> None:
    """The deployment arrived, nobody looked yet, and a person scales: there is no second deployment back."""
    with world() as w:
        w.start()
        while not w.box.calls.of("sagemaker", "UpdateEndpoint"):
            w.run(0.1)
        assert w.box.clock.run_until(lambda: w.box.config_name(NAME) == w.change.plan.new_config, timedelta(hours=2))
        w.scale(3)
        w.box.clock.advance(timedelta(minutes=10))
        change = w.run(12)
        updates = w.box.calls.of("sagemaker", "UpdateEndpoint")
        assert change.state is ChangeState.PROVEN, change.outcome
        assert w.box.counts(NAME) == {"AllTraffic": 3}
    assert len(updates) == 1
    assert any("AllTraffic has 3 and 1 were asked" in entry.detail for entry in change.journal)
