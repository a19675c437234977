"""A change that is undone before its type was ever deployed is no evidence about the type."""

import pytest

from rightsizer.domain.change import ChangeState, FailureClass
from rightsizer.domain.reason import Code
from tests.changing.world import NAME, world


def test_a_roll_back_alarm_that_is_not_ok_before_the_start_says_nothing_about_the_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with world() as w:
        monkeypatch.setattr(w.box.world.alarms, "happen", lambda now: None)  # CloudWatch evaluates nothing for hours
        w.start()
        change = w.run(6)
        deployed, past = w.box.calls.of("sagemaker", "UpdateEndpoint"), w.store.history(NAME).endpoint
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert change.reason is not None
    assert (change.reason.code, change.failure) == (Code.ALARM_NOT_OK, FailureClass.ALARM)
    assert (deployed, past) == ([], ())


def test_a_roll_back_alarm_that_fires_on_the_new_fleet_is_remembered_against_the_type() -> None:
    with world() as w:
        w.box.script_deployment(NAME, "alarm")
        w.start()
        w.run(6)
        (past,) = w.store.history(NAME).endpoint
    assert (past.refuted, past.failure) == (True, "alarm")
