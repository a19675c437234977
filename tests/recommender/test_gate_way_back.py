"""Which gate the way back of a change has: the approval of the change permits it, or a person is asked."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode, ScalableTarget
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Target
from rightsizer.domain.reason import time_text
from rightsizer.domain.recommendation import Gate
from rightsizer.recommender.gate import decide_restore
from tests.recommender import kit
from tests.recommender.plain import option
from tests.recommender.test_gate_verdicts import WHY, endpoint


def approved_before(asked: Endpoint, **changes: Any) -> tuple[PastChange, Target]:
    """A change to what the endpoint runs, approved two days ago, and the way back of it."""
    runs, at = asked.variants[0], kit.NOW - timedelta(days=2)
    made = PastChange(at, "ml.g5.12xlarge", runs.instance_type, 1, runs.desired_count, PastEnd.PROVEN)
    made = replace(made, approved_by="slack:U1", approved_at=at, to_config=asked.config_name)
    return replace(made, **changes), Target("ml.g5.12xlarge", 1)


def test_in_mode_propose_the_approval_of_a_change_permits_its_way_back_and_the_reason_names_it() -> None:
    asked = endpoint(mode=Mode.PROPOSE)
    past, target = approved_before(asked)
    verdict, why = decide_restore(asked, option(target=target, restores=True), WHY, History((past,)), kit.NOW)
    assert (verdict, why.code) == (Gate.APPLY, WHY.code)
    assert past.approved_at is not None
    assert f"slack:U1 approved the change to {past.to_count} × {past.to_type} on" in why.sentence
    assert "that approval permits the way back to 1 × ml.g5.12xlarge until" in why.sentence
    until = past.approved_at + timedelta(days=14)
    assert why.sentence.endswith(f"until {time_text(until)}")


@pytest.mark.parametrize(
    ("asked", "changes", "gate"),
    [
        ({"mode": Mode.REPORT}, {}, Gate.SILENT),
        ({"mode": Mode.OFF}, {}, Gate.SILENT),
        ({"owned_by": "CloudFormation"}, {}, Gate.PROPOSE),
        ({"kind": EndpointKind.ASYNC}, {}, Gate.PROPOSE),
        ({"scaling": (ScalableTarget("endpoint/e/variant/AllTraffic", "d", 1, 4),)}, {}, Gate.PROPOSE),
        ({}, {"approved_by": "policy"}, Gate.PROPOSE),
        ({}, {"approved_at": kit.NOW - timedelta(days=15)}, Gate.PROPOSE),
        ({}, {"to_config": "theirs"}, Gate.PROPOSE),
        ({}, {"from_count": 2}, Gate.PROPOSE),
    ],
)
def test_else_a_person_is_asked_for_the_way_back(asked: dict[str, Any], changes: dict[str, Any], gate: Gate) -> None:
    one = endpoint(**({"mode": Mode.PROPOSE} | asked))
    past, target = approved_before(one, **changes)
    assert decide_restore(one, option(target=target, restores=True), WHY, History((past,)), kit.NOW)[0] is gate
