"""The quota right before the first write, and a fleet that it has no second time for: batches, there and back."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.changes.preflight import deployment
from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code
from tests.changes.account import NEW_TYPE, OLD, OLD_TYPE
from tests.changes.memory import LIMITS, World, an_option, autoscaled, world

ROUTED = an_option(kind=OptionKind.ROUTING, target=Target(OLD_TYPE, 8, routing="LEAST_OUTSTANDING_REQUESTS"))


def eight(most: int) -> World:
    """Eight instances whose routing is to be changed."""
    w = world(ROUTED, count=8)
    w.account.quotas[OLD_TYPE] = most
    return w


def deployments(w: World) -> list[Any]:
    return [step.params.get("DeploymentConfig", {}) for step in w.account.writes(StepKind.UPDATE_ENDPOINT)]


def test_what_rolled_forward_for_want_of_quota_rolls_back_in_the_same_batches() -> None:
    w = eight(10)
    w.start()
    w.run(2)
    assert w.change.state is ChangeState.APPLIED, w.change.outcome
    assert "rolling, 2 of 8" in w.change.plan.guardrail
    w.ask_back()
    assert w.run(12).state is ChangeState.ROLLED_BACK, w.change.outcome
    forward, back = deployments(w)
    batch = {"Type": "INSTANCE_COUNT", "Value": 2}
    assert w.account.config_name == OLD
    assert [d["RollingUpdatePolicy"]["RollbackMaximumBatchSize"] for d in (forward, back)] == [batch, batch]
    assert back["RollingUpdatePolicy"]["MaximumBatchSize"] == batch
    assert "AutoRollbackConfiguration" not in back, "the alarms fire for what has to go"


def test_a_return_of_a_fleet_that_grew_takes_batches_for_which_there_is_room_now() -> None:
    w = eight(10)
    w.start()
    w.run(2)
    w.account.scale(9)
    w.ask_back()
    assert w.run(12).state is ChangeState.ROLLED_BACK, w.change.outcome
    assert deployments(w)[-1]["RollingUpdatePolicy"]["MaximumBatchSize"]["Value"] == 1
    assert w.account.counts["AllTraffic"][1] == 9


def test_a_quota_without_room_for_one_batch_is_refused_and_nothing_is_written() -> None:
    w = eight(8)
    change = w.start()
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.NO_QUOTA)
    assert "runs 8 of them" in change.outcome
    assert "room for 1 more" in change.outcome
    assert w.account.done == []


@pytest.mark.parametrize(("most", "state"), [(7, ChangeState.REFUSED), (8, ChangeState.PROVEN)])
def test_the_maximum_that_autoscaling_would_get_has_to_fit_the_quota(most: int, state: ChangeState) -> None:
    w = world(an_option(target=Target(NEW_TYPE, 2)), scaling=autoscaled(1, 4))
    w.account.quotas[NEW_TYPE] = most
    w.start()
    change = w.run(12)
    assert change.state is state, change.outcome
    assert state is ChangeState.PROVEN or "could ask for 8 instances" in change.outcome


@pytest.mark.parametrize("most", [None, 50])
def test_the_plan_says_what_a_known_quota_was_compared_with_and_an_unknown_one_refuses_nothing(
    most: int | None,
) -> None:
    w = world()
    w.account.quotas |= {} if most is None else {NEW_TYPE: most}
    assert w.start().state is ChangeState.RUNNING
    note = next(entry.detail for entry in w.change.journal if entry.step == "plan")
    assert ("(50) was compared with this endpoint alone" in note) == (most is not None)


@pytest.mark.parametrize(("old", "state"), [(0, ChangeState.REFUSED), (4, ChangeState.RUNNING)])
def test_of_pools_one_that_holds_the_fleet_is_enough(old: int, state: ChangeState) -> None:
    w = world(an_option(kind=OptionKind.INSTANCE_POOLS, target=Target(NEW_TYPE, 1, pools=(NEW_TYPE, OLD_TYPE))))
    w.account.quotas = {NEW_TYPE: 0, OLD_TYPE: old}
    change = w.start()
    assert change.state is state, change.outcome
    assert (change.state is ChangeState.REFUSED) == ("no pool could hold the fleet" in change.outcome)


def test_what_deploys_nothing_compares_no_quota() -> None:
    w = world(an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 1)), count=3)
    w.account.quotas = {OLD_TYPE: 3}
    assert w.start().state is ChangeState.RUNNING
    seen = PreflightInput(w.proposal, w.change.option, w.account.endpoint("chat"), None, {}, LIMITS, (), quota=3)  # type: ignore[arg-type]
    assert deployment.unchecked_quota_sentences(seen) == ()
    assert "(3) was compared" in deployment.unchecked_quota_sentences(replace(seen, deploys=True))[0]
