"""An approval is good for seven days: a change that waits longer for its endpoint's update is closed and told."""

from datetime import timedelta

import pytest

from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from sandbox.refusals import Killed
from tests.changing.test_lost import ticks
from tests.changing.world import NAME, World, world

LIMITS = ChangeLimits(probation=timedelta(hours=2), rewire_alarms=True)
UPDATES = ("UpdateEndpoint", "UpdateEndpointWeightsAndCapacities")


def updates(w: World) -> int:
    return len([call for call in w.box.calls if call.operation in UPDATES])


def alarms(w: World) -> list[str]:
    with w.box.gate.unrecorded():
        return [a["AlarmName"] for a in w.box.client("cloudwatch").describe_alarms()["MetricAlarms"]]


def planned(w: World) -> None:
    """The change has its plan and its roll-back alarms, and waits for them before its turn."""
    w.start()
    assert w.change.before is not None
    assert alarms(w), "the roll-back alarms are there"
    assert updates(w) == 0


def assert_expired(w: World, change: Change) -> None:
    assert change.reason is not None
    assert (change.state, change.reason.code) == (ChangeState.REFUSED, Code.EXPIRED)
    assert "waited 7 days" in change.outcome
    assert (w.shown().state, w.shown().outcome) == (ProposalState.EXPIRED, change.outcome)
    assert [text for subject, text in w.told if subject == f"{NAME}: approval expired"] == [change.outcome]
    assert w.journal.holder_of(NAME) == ""


@pytest.mark.parametrize("made", [True, False])
def test_of_an_update_that_was_cut_off_the_endpoint_itself_tells_whether_it_was_made(made: bool) -> None:
    with world(limits=LIMITS) as w:
        planned(w)
        w.box.gate.kill(1, after=made, matches=lambda call: call.operation == "UpdateEndpoint")
        with pytest.raises(Killed):
            w.run(2)
        w.box.gate.heal()
        w.box.clock.advance(timedelta(days=8))
        ticks(w, timedelta(hours=12))
        if made:
            assert w.change.state is ChangeState.PROVEN, w.change.outcome
        else:
            assert_expired(w, w.change)
            assert w.box.config_name(NAME) == f"{NAME}-config"
