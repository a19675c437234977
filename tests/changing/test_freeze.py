"""A freeze is seen before each step: also between two steps of the invocation that is running when it is ordered."""

from rightsizer.domain.change import ChangeState
from rightsizer.flows.orders import Orders
from sandbox.gate import Call
from tests.changing import scenarios
from tests.changing.world import NAME, World, world


def freezes_after(w: World, operation: str, *, hard: bool = False) -> None:
    """Somebody freezes right after this request of the program."""

    def after(call: Call) -> None:
        if call.operation == operation:
            w.box.gate.after = None
            with w.box.gate.unrecorded():
                Orders(w.journal).freeze("U1", w.now, hard=hard)

    w.box.gate.after = after


def written(w: World, since: int = 0) -> list[str]:
    return [c.operation for c in list(w.box.calls)[since:] if c.writes and c.service != "dynamodb"]


def test_a_freeze_right_after_autoscaling_was_taken_away_gives_it_back_and_deploys_nothing() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        freezes_after(w, "DeregisterScalableTarget")
        w.start()
        change = w.run(4)
        (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
        made, past = written(w), w.store.history(NAME).endpoint
    assert change.state is ChangeState.ROLLED_BACK
    assert past == (), "a freeze teaches nothing about the type"
    assert "UpdateEndpoint" not in made
    assert (target.minimum, target.maximum) == (1, 4)
