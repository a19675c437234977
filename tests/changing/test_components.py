"""A component that AWS never finishes changing is waited for as long as it may take, and then a person has it."""

from datetime import timedelta

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.proposal import ProposalState
from rightsizer.flows.orders import Orders
from sandbox.gate import Call
from tests.changing import scenarios
from tests.changing.world import World, world


def sticks(w: World, component: str) -> None:
    """From its next change on the component stays Updating."""

    def after(call: Call) -> None:
        asked = call.operation == "UpdateInferenceComponentRuntimeConfig"
        if asked and call.params["InferenceComponentName"] == component:
            known = w.box.world.components.known[component]
            known.until = w.now + timedelta(days=30)

    w.box.gate.after = after


def looks(w: World) -> int:
    return len(w.box.calls.of("sagemaker", "DescribeEndpoint"))


@pytest.mark.parametrize("component", ["small", "large"])
def test_a_component_that_stays_updating_is_handed_over_and_the_others_go_back(component: str) -> None:
    scenario = scenarios.COMPONENTS
    with world(scenario.option, seed=scenario.seed, kind=scenario.kind, **scenario.endpoint) as w:
        sticks(w, component)
        w.start()
        change = w.run(12)
        copies = {name: c.desired for name, c in w.box.world.components.known.items()}
        seen, told = looks(w), w.told[-1][1]
    old = {"small": 3, "large": 1}
    assert change.state is ChangeState.HANDED_OVER
    assert change.remaining[0].startswith("aws sagemaker describe-inference-component ")
    assert f'"CopyCount": {old[component]}' in change.remaining[1]
    assert f'"InferenceComponentName": "{component}"' in change.remaining[1]
    assert len(change.remaining) == 2
    assert copies[next(name for name in old if name != component)] == old[next(n for n in old if n != component)]
    assert f"component {component} is being changed for 4.0 h" in told
    assert seen < 25


def test_a_component_that_sticks_on_the_way_back_is_handed_over_too() -> None:
    scenario = scenarios.COMPONENTS
    with world(scenario.option, seed=scenario.seed, kind=scenario.kind, **scenario.endpoint) as w:
        w.start()
        while w.change.state is not ChangeState.APPLIED:
            w.run(0.25)
        sticks(w, "small")
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(12)
        copies = {name: c.desired for name, c in w.box.world.components.known.items()}
    assert change.state is ChangeState.HANDED_OVER
    assert copies["large"] == 1
    assert '"CopyCount": 3' in change.remaining[1]


def theirs(w: World, component: str, after_writes: int = 0) -> None:
    """Somebody else changes the component once the plan is made, and it stays Updating."""
    seen = {"DescribeInferenceComponent": 0, "UpdateInferenceComponentRuntimeConfig": 0}

    def after(call: Call) -> None:
        if call.operation not in seen:
            return
        seen[call.operation] += 1
        planned, wrote = seen.values()
        if planned >= 2 and wrote >= after_writes:
            known = w.box.world.components.known[component]
            known.status, known.until = "Updating", w.now + timedelta(days=30)

    w.box.gate.after = after


def test_a_component_that_sticks_before_anything_was_written_is_a_refusal() -> None:
    scenario = scenarios.COMPONENTS
    with world(scenario.option, seed=scenario.seed, kind=scenario.kind, **scenario.endpoint) as w:
        theirs(w, "small")
        w.start()
        change = w.run(12)
        written = w.box.calls.of("sagemaker", "UpdateInferenceComponentRuntimeConfig")
        shown = w.shown()
    assert change.state is ChangeState.REFUSED, change.outcome
    assert (change.remaining, written) == ((), [])
    assert "component small is being changed for 4.0 h" in change.outcome
    assert shown.state is ProposalState.WITHDRAWN


def test_a_write_that_aws_refused_touched_nothing_either() -> None:
    scenario = scenarios.COMPONENTS
    with world(scenario.option, seed=scenario.seed, kind=scenario.kind, **scenario.endpoint) as w:
        text = "Cannot update in-progress endpoint"
        w.box.gate.fail("sagemaker", "UpdateInferenceComponentRuntimeConfig", "ValidationException", text)
        theirs(w, "small", after_writes=1)
        w.start()
        change = w.run(12)
        copies = {name: c.desired for name, c in w.box.world.components.known.items()}
    assert change.state is ChangeState.REFUSED, change.outcome
    assert (change.remaining, copies) == ((), {"small": 3, "large": 1})
