"""Slack and the terminal ask the list that `apply` asks: of an endpoint its own, of a group that of `defaults`."""

from typing import Any

import pytest

from rightsizer.aws.table import Table
from rightsizer.bootstrap.deciders import refusal_by_document, require_decider
from rightsizer.domain.approvers import Approvers
from rightsizer.errors import NotApproverError
from tests.flows.errand_scene import Stage, stage
from tests.flows.spot_scene import scene
from tests.policies import document

__all__ = ["scene", "stage"]
STACK = Approvers(frozenset({"U0STACK"}), "aws:111122223333")
SAID: dict[str, Any] = {
    "defaults": {"approvers": ["U0ALL"]},
    "environments": {"production": {"approvers": ["U0PROD"]}},
}


def table(at: Stage) -> Table:
    return Table(at.scene.box.client("dynamodb"), "t")


@pytest.mark.parametrize("approves", [True, False])
def test_a_capacity_change_is_decided_by_the_list_of_the_defaults_as_apply_asks(stage: Stage, approves: bool) -> None:
    lists = (STACK, document(SAID))
    require_decider(table(stage), "e-1", "slack:U0ALL", lists, approves=approves)
    with pytest.raises(NotApproverError, match=r"defaults\.approvers"):
        require_decider(table(stage), "e-1", "slack:U0PROD", lists, approves=approves)


def test_a_refusal_names_the_list_that_decides_or_why_it_cannot_be_understood(stage: Stage) -> None:
    def refused(said: dict[str, Any], problems: int = 0) -> str:
        return refusal_by_document(table(stage), "e-1", "slack:U0WHO", (STACK, document(said, problems)))

    assert "the Slack user U0WHO is not on the list defaults.approvers of the policy document" in refused(SAID)
    assert "put right" in refused({"defaults": {"approvers": "U0ALL everybody"}}, 1)
    assert refused({"environments": SAID["environments"]}) == "", "the stack's parameter Approvers decides on groups"
