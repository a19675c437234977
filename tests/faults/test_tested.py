"""Test first, killed between any two requests: one test, then one change, both told, kept and booked.

`make faults` kills it after every write.
"""

from datetime import datetime

import pytest

from rightsizer.changes.ending import finish_change
from rightsizer.domain.change import Change
from rightsizer.domain.live_state import LiveState
from rightsizer.domain.next_action import Finish
from rightsizer.flows.advance_change import ChangeAdvancer
from sandbox.gate import Call
from tests.faults.drive import SECOND, Disturbance, every_point, killed
from tests.faults.tested import runs_with_test


def violations(rows: list[object]) -> dict[str, tuple[str, ...]]:
    return {row.name: row.violations for row in rows if row.violations}  # type: ignore[attr-defined]


def test_a_death_after_a_write_leaves_one_test_and_one_change() -> None:
    rows = runs_with_test(every=30)
    assert len(rows) > 2
    assert violations(list(rows)) == {}
    assert {row.ended for row in rows} == {"proven"}


@every_point(200, in_grid=40)
def test_two_invocations_at_once_begin_no_second_change(every: int) -> None:
    rows = runs_with_test(every=every, disturbance=SECOND)
    assert len(rows) > 2
    assert violations(list(rows)) == {}


def is_closing_save(call: Call) -> bool:
    """Whether a request saves a change that is over."""
    return call.operation == "TransactWriteItems" and '"state":"rolled-back"' in str(call.params)


def test_the_runs_catch_an_end_that_is_kept_before_what_it_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded: the closed test is saved first, so that a death after it leaves nothing for the evaluation to know."""

    def saved_first(
        self: ChangeAdvancer, change: Change, due: Change, move: Finish, live: LiveState, now: datetime
    ) -> Change:
        closed = self.journal.save(finish_change(due, move, live, now, {}))
        return self.recorder.publish(closed, now)

    monkeypatch.setattr(ChangeAdvancer, "_finish", saved_first)
    closing = Disturbance("killed at a closing save", is_closing_save, lambda w: killed)
    broken = violations(list(runs_with_test(disturbance=closing)))
    assert any("the test passed, and the change is" in said for found in broken.values() for said in found), broken
