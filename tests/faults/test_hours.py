"""A fixed sample of disturbed nights, and that each law is broken by the program that breaks its rule."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.aws import hours as adapter
from rightsizer.aws.hours import HoursTable
from rightsizer.changes import hours
from rightsizer.changes.hours import Settle, steps
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.domain.reason import Code, Reason
from rightsizer.flows import hours as flow
from rightsizer.flows import read_hours
from rightsizer.flows.hours import HoursKeeper
from rightsizer.flows.notify import catch_send_errors
from tests.faults.hours import FAULTS, Night, night

WITHOUT_DEATHS = frozenset(
    {
        "a freeze",
        "a hard freeze",
        "a model is another",
        "a model is gone",
        "a wake",
        "alarms and autoscaling are shown late",
        "autoscaling may not be written",
        "capacity gone",
        "capacity gone, and a fallback",
        "create denied",
        "its configuration is gone",
        "its owner creates another one",
        "its owner deletes it in the morning",
        "no channel takes a message",
        "quota gone",
        "role lost at night",
        "the answer to a delete is lost",
        "the endpoint is shown late",
        "the name is still deleting",
    }
)
"""Faults of which tests/hours plays a night each; with deaths and lost ticks beside them `make faults` alone does."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - WITHOUT_DEATHS))
def test_a_disturbed_night_ends_as_the_laws_say(fault: str) -> None:
    assert night(Night(fault, seed=0)) == []


def test_each_fault_that_is_left_to_make_faults_is_one_of_its_faults() -> None:
    assert FAULTS.keys() > WITHOUT_DEATHS


def found(fault: str, said: str, first: int = 3) -> bool:
    """Whether one of the first nights with the fault breaks a law that says so."""
    return any(said in line for seed in range(first) for line in night(Night(fault, seed)))


def test_a_start_that_forgets_the_alarms_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "sound_steps", lambda before: ())
    assert found("nothing", "are still off")


def test_a_start_that_forgets_the_autoscaling_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "restore_steps", lambda *_: ())
    assert found("nothing", "ended as handed-over", first=1)


def test_a_message_that_is_never_sent_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HoursKeeper, "_tell", lambda *_: None)
    assert found("capacity gone", "and nobody was told how to help")


def test_a_message_that_is_not_sent_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HoursRecord, "with_untold", lambda self, message: self)
    monkeypatch.setattr(flow, "tell_once", tell_at_most_once)
    assert found("no channel takes a message", "and nobody was told how to help")


def tell_at_most_once(ledger: Any, notifier: Any, what: Any, subject: str) -> bool:
    """What noted a message before it was sent."""
    return not ledger.note(what) or bool(catch_send_errors(notifier)(subject, what.text)) or True


def test_a_lost_answer_that_is_taken_for_a_refusal_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "_is_second_answer", lambda error: False)
    assert found("the answer to a delete is lost", "ended as handed-over", first=1)


def test_a_model_that_nobody_compares_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_hours, "model_problem", lambda before, now: "")
    assert found("a model is another", "ended as running", first=1)


def test_a_lock_that_is_never_given_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = HoursTable._lock

    def kept(self: HoursTable, record: HoursRecord) -> Any:
        return lock(self, record) if record.holds_lock else ()

    monkeypatch.setattr(HoursTable, "_lock", kept)
    assert found("nothing", "and the lock says otherwise")


def test_a_delete_without_a_record_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    save = HoursTable.save

    def forgetful(self: HoursTable, record: HoursRecord) -> HoursRecord:
        save(self, replace(record, before=None))
        return replace(record, version=record.version + 1)

    monkeypatch.setattr(HoursTable, "save", forgetful)
    assert found("nothing", "nothing of it was stored", first=1)


def test_a_record_that_forgets_a_delete_that_was_sent_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def settled(*_: Any, **__: Any) -> Any:
        return Settle(HoursState.RUNNING, Reason(Code.EXPIRED, "forgotten"))

    monkeypatch.setattr(hours, "_stopped", settled)
    assert found("nothing", "it is gone, and the record says running", first=1)
