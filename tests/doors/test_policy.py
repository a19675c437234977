"""The policy document through the doors of a deployed stack: decision, message, click and change."""

import json
from collections.abc import Mapping
from typing import Any

from rightsizer.domain.proposal import ProposalState
from tests.doors.scene import BIG, PROPOSE, Scene, scene, states

NAME = "/rightsizer/policy"
OWNED = PROPOSE | {"owner": "search", "rightsizer:p95-ms": "900"}


def put(at: Scene, document: Mapping[str, Any] | str) -> None:
    """Store the document, as an operator does."""
    text = document if isinstance(document, str) else json.dumps(document)
    at.box.client("ssm").put_parameter(Name=NAME, Value=text, Type="String", Overwrite=True)


def told(at: Scene) -> str:
    """What the person who clicked last was told."""
    return at.slack.answers[-1].plain()


def test_the_owners_list_four_eyes_and_window_hold_a_click_and_a_change() -> None:
    with scene(PolicyParameter=NAME) as at:
        search = {"approvers": ["U0ANNA", "U0BERT"], "people": ["U0ANNA"], "four_eyes": True}
        put(at, {"defaults": {"approvers": ["U0ALL"]}, "owners": {"search": search}})
        at.add(BIG, tags=OWNED)
        at.drive(BIG)
        at.sweep()
        at.click(BIG, "Approve", "U0NOBODY")
        assert "not on the list owners.search.approvers of the policy document" in told(at)
        at.click(BIG, "Approve", "U0ALL")
        assert "owners.search.approvers of the policy document" in told(at)
        at.click(BIG, "Approve", "U0ANNA")
        assert "four eyes: U0ANNA owns" in told(at)
        assert states(at.proposals())[BIG] is ProposalState.PENDING
        put(at, {"owners": {"search": search | {"window": "sat 03:00-03:10"}}})
        at.pass_time(minutes=2)
        at.click(BIG, "Approve", "U0BERT")
        at.pass_time(minutes=30)
        assert at.writes("sagemaker") == [], "the window is closed"
        put(at, {"owners": {"search": search}})
        at.pass_time(hours=2)
        assert at.writes("sagemaker") != []
        assert at.refused() == []
        assert at.stack.failures == []


def test_a_document_that_is_lost_holds_changes_is_told_everywhere_and_proposals_go_on() -> None:
    with scene(PolicyParameter=NAME) as at:
        at.add(BIG, tags=OWNED)
        at.drive(BIG)
        at.sweep()
        assert f"the parameter {NAME}, which the stack names, does not exist" in at.message(BIG).plain()
        at.click(BIG, "Approve")
        assert "nobody" in told(at)
        put(at, {"defaults": {"approvers": ["U0BOB"], "window": "noon"}})
        at.pass_time(minutes=2)
        at.click(BIG, "Approve", "U0BOB")
        at.pass_time(hours=1)
        assert states(at.proposals())[BIG] is ProposalState.APPROVED
        assert at.writes("sagemaker") == []
        put(at, {"defaults": {"approvers": ["U0BOB"]}})
        at.pass_time(hours=1)
        assert at.writes("sagemaker") != []
        assert at.stack.failures == []


def test_minimum_saving_and_automatic_mode_differ_by_environment() -> None:
    with scene(PolicyParameter=NAME) as at:
        put(
            at,
            {
                "environments": {
                    "development": {"minimum_saving_usd": 1_000_000},
                    "production": {"automatic": False},
                }
            },
        )
        at.add(BIG, tags=OWNED | {"env": "dev"})
        at.drive(BIG)
        at.sweep()
        assert at.proposals() == []
        found = at.recommendations()[BIG]
        assert "below the least of USD 1000000 per month" in found.gate_reason.sentence
