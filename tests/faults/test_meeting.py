"""Evaluate and respond run between two requests of `apply`: some points here, all of them in `make faults`."""

from datetime import timedelta
from unittest.mock import patch

import pytest

from rightsizer import bootstrap
from tests.faults import meeting
from tests.faults.meeting import Meeting, lived

POINTS = (35, 120)
"""In the beginning of the change, and while it is watched."""


@pytest.fixture(scope="module")
def alone() -> Meeting:
    """The run in which no other door runs in between."""
    return lived(0)


@pytest.mark.slow
def test_the_change_ends_as_without_the_other_doors_and_no_row_is_lost(alone: Meeting) -> None:
    assert (alone.broken, alone.met) == ([], "")
    assert alone.seen > max(POINTS)
    for point in POINTS:
        run = lived(point)
        assert run.broken == []
        assert run.met.startswith(f"{point} ")
        assert run.against(alone.writes, alone.rows) == []


@pytest.mark.slow
def test_a_row_that_is_lost_and_a_judgement_that_is_older_are_seen(alone: Meeting) -> None:
    def lose(self: Meeting) -> None:
        self.evaluated_at = self.at.box.clock.now + timedelta(days=1)  # later than any evaluation of the run
        with self.at.box.gate.unrecorded():
            other = next(one for one in bootstrap.store().proposals() if one.ref.name == meeting.OTHER)
            key = {"pk": {"S": f"PROPOSAL#{other.id}"}, "sk": {"S": "PROPOSAL"}}
            self.at.box.client("dynamodb").delete_item(TableName=self.at.stack.parts.names["Table"], Key=key)

    with patch.object(Meeting, "_others", lose):
        run = lived(POINTS[0])
    lost = [line for line in run.against(alone.writes, alone.rows) if line.startswith("rows are lost: ")]
    assert lost == ["rows are lost: {'PROPOSAL PROPOSAL': 1}"]
    assert any(line.startswith("the proposals are") for line in run.broken)
    assert any("is lost: the newest is of" in line for line in run.broken)


@pytest.mark.slow
def test_a_point_that_no_request_reached_is_a_failure(alone: Meeting) -> None:
    assert (alone.broken, alone.met) == ([], "")
    assert alone.against(alone.writes, alone.rows) == ["no request reached it"]
