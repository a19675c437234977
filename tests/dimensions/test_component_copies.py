"""Copies of inference components: one call for each, there and back."""

from typing import Any

import pytest

from rightsizer.changes.dimension import PlannedChange
from rightsizer.dimensions.component_copies import ComponentCopies
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import MOVING
from rightsizer.domain.option import Target
from rightsizer.domain.reason import Code
from tests.dimensions.kit import TYPE, planned, said

TWO = Target(TYPE, 1, copies=(("chat", 2), ("faces", 1)))
SCALED = ScalableTarget("inference-component/chat", "sagemaker:inference-component:DesiredCopyCount", 1, 4)


def test_it_says_each_number() -> None:
    assert said(ComponentCopies(), TWO) == (
        "run 2 copies of chat, 1 copy of faces",
        "sets the old numbers of copies again",
    )


def test_only_what_differs_is_set_and_set_back() -> None:
    found = planned(ComponentCopies(), TWO, copies={"chat": 4, "faces": 1})
    assert isinstance(found, PlannedChange)
    steps = [(step.subject, step.params["DesiredRuntimeConfig"]["CopyCount"]) for step in found.plan.settle]
    assert steps == [("chat", 2)]
    assert [step.params["DesiredRuntimeConfig"]["CopyCount"] for step in found.plan.restore] == [4]


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        ({"copies": {"chat": 4, "faces": 1}, "scaling": (SCALED,)}, Code.AUTOSCALED),
        ({"copies": {"chat": 2, "faces": 1}}, Code.CHANGED_SINCE),
        ({"copies": {"chat": MOVING, "faces": 1}}, Code.CHANGED_SINCE),
    ],
)
def test_there_is_no_plan_for_what_is_autoscaled_there_already_or_moving(seen: dict[str, Any], code: Code) -> None:
    assert planned(ComponentCopies(), TWO, **seen) is code
