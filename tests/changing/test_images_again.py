"""A tag that moves between the preflight and a deployment: forward it stops, on the way back it is told."""

from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import Target
from rightsizer.flows.orders import Orders
from sandbox.account import Sandbox
from tests.changing.test_images import AUTO, FOREIGN, LATEST, RELEASE, running
from tests.changing.world import NAME, NEW_TYPE, World, an_option, world


def asked(w: World, service: str, operation: str) -> int:
    return len(w.box.calls.of(service, operation))


@pytest.mark.parametrize("who", [AUTO, {}], ids=["policy", "person"])
def test_a_tag_that_moves_after_the_preflight_is_not_deployed(who: dict[str, Any]) -> None:
    with world(image=RELEASE, **who) as w:
        runs = running(w)
        w.start()
        w.box.move_image_tag(RELEASE)
        change = w.run(6)
        alarms = w.box.client("cloudwatch").describe_alarms(AlarmNamePrefix="rightsizer-")["MetricAlarms"]
        deployed, past = asked(w, "sagemaker", "UpdateEndpoint"), w.store.history(NAME).endpoint
    assert change.state is ChangeState.REFUSED, change.outcome
    assert f"the tag {RELEASE} means " in change.outcome
    assert runs in change.outcome
    assert "seen right before the deployment, after the preflight, and it was not made" in change.outcome
    assert (deployed, alarms, past) == (0, [], ())


def test_where_autoscaling_was_taken_away_already_it_goes_back_as_it_was() -> None:
    def scaled(box: Sandbox) -> None:
        box.autoscale(NAME, 1, 6)

    with world(an_option(target=Target(NEW_TYPE, 1)), seed=scaled, image=LATEST) as w:
        w.start()
        w.box.move_image_tag(LATEST)
        change = w.run(6)
        (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
        past = w.store.history(NAME).endpoint
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert "autoscaling goes back as it was" in change.outcome
    assert (target.minimum, target.maximum, len(target.policies)) == (1, 6, 1)
    assert asked(w, "sagemaker", "UpdateEndpoint") == 0
    assert past == (), "the type was never tried"


def test_automatic_mode_deploys_no_moving_tag_that_cannot_be_read_any_more() -> None:
    with world(image=LATEST, **AUTO) as w:
        w.start()
        w.box.deny("ecr:BatchGetImage")
        assert w.run(6).state is ChangeState.REFUSED
        assert "was not compared with the registry" in w.change.outcome
        assert "it moved" not in w.change.outcome, "nobody saw that"
    with world(image=LATEST) as w:
        w.start()
        w.box.deny("ecr:BatchGetImage")
        assert w.run(48).state is ChangeState.PROVEN, "a person took that risk"


def test_the_registry_is_asked_once_in_the_preflight_and_once_before_the_deployment() -> None:
    with world(image=LATEST, **AUTO) as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN, w.change.outcome
        assert asked(w, "ecr", "BatchGetImage") == 2


def returned(w: World, image: str) -> None:
    """A proven change is undone, and the tag has moved since."""
    w.start()
    assert w.run(48).state is ChangeState.PROVEN, w.change.outcome
    w.told.clear()
    w.box.move_image_tag(image)
    Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
    w.apply.tick(w.now)
    w.run(12)


def test_a_way_back_that_brings_other_code_is_deployed_and_told_once() -> None:
    with world(image=RELEASE) as w:
        returned(w, RELEASE)
        change, told, config = w.change, [s for s, _ in w.told if "image" in s], w.box.config_name(NAME)
        calls = asked(w, "ecr", "BatchGetImage")
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert config == f"{NAME}-config"
    assert told == [f"{NAME}: its way back does not bring the image that ran before"]
    assert f"the tag {RELEASE} means " in change.outcome
    assert calls == 3


def test_a_way_back_to_the_same_image_tells_nothing() -> None:
    with world(image=RELEASE) as w:
        w.start()
        w.run(48)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        w.apply.tick(w.now)
        change = w.run(12)
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert "means" not in change.outcome


def test_a_registry_of_another_account_that_may_be_read_is_compared() -> None:
    with world(image=FOREIGN) as w:
        w.box.move_image_tag(FOREIGN)
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert f"the tag {FOREIGN} means " in change.outcome
    assert w.box.calls.of("ecr")[0].params["registryId"] == "444455556666"
