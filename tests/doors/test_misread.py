"""One wrong setting stops nothing but changes, and every message and report says so."""

import json

from rightsizer.domain.proposal import ProposalState
from sandbox.links import opened
from tests.doors.scene import BIG, PROPOSE, scene, states

WRONG = json.dumps({"window": "nonsense"})


def test_a_window_that_nobody_understands_keeps_changes_waiting_until_it_is_put_right() -> None:
    with scene(Limits=WRONG) as at:
        at.add(BIG, tags=PROPOSE)
        at.drive(BIG)
        at.sweep()
        for part in ("cannot be understood", "no change begins", "nonsense", "mon-fri 09:00-17:00 Europe/Berlin"):
            assert part in at.message(BIG).plain()
        at.click(BIG, "Approve")
        at.pass_time(hours=1)
        assert states(at.proposals())[BIG] is ProposalState.APPROVED
        assert at.writes("sagemaker") == []
        assert at.stack.failures == []
        at.stack.fire("Report.Weekly")
        report = next(one for one in at.slack.messages if "Open the report" in one.buttons())
        assert "nonsense" in report.plain()
        at.stack.invoke("respond", at.slack.click(report, "Open the report", "U0BOB", at.box.clock.now), "url")
        page = opened(at.box, at.slack.answers[-1].links()[0], at.stack.roles.role("respond")).decode()
        assert "Settings that cannot be understood" in page
        at.stack.redeploy(Limits="{}")
        at.pass_time(hours=1)
        assert at.writes("sagemaker") != []
