"""Decisions of which an event is lost: a fixed sample of `make faults`, and each law shown to catch what breaks it."""

from typing import Any

import pytest

from rightsizer.aws.proposals import Proposals
from rightsizer.flows import apply_lost, apply_newest
from tests.faults.lost import PLACES, Case, cases, lost

SAMPLE = cases(25)


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: f"{case.place}-{case.seed}")
def test_a_lost_decision_ends_as_the_laws_say(case: Case) -> None:
    assert lost(case) == []


def test_the_sample_has_every_place() -> None:
    assert {case.place for case in SAMPLE} == set(PLACES)


def found(place: str, words: str, tries: int = 12) -> bool:
    """Whether one of a few runs breaks the law that says these words."""
    return any(words in said for seed in range(tries) for said in lost(Case(place, seed)))


def nothing(*_: Any, **__: Any) -> list[str]:
    return []


def test_a_tick_that_looks_for_no_approval_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_lost, "take_up", nothing)
    assert found("the stream gives up", "no change answers it")


def test_an_approval_that_expires_without_a_word_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_lost, "surely", lambda tell: lambda subject, text: True)
    assert found("apply is off for eight days", "nobody was told")


def test_a_tick_that_looks_for_no_order_to_go_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_lost, "take_up_orders", nothing)
    assert found("the stream gives up", "and nobody took it")


def test_a_change_that_asks_no_newer_judgement_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightsizer.rules.overruled.overruled", lambda *_: None)
    monkeypatch.setattr(apply_newest, "overruled", lambda *_: None)
    assert found("apply is off for a day", "forbids it")


def test_a_message_that_is_never_sent_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Proposals, "tell_again", lambda *_, **__: 0)
    assert found("propose is off for three days", "its message shows")


def test_a_change_that_gives_no_lock_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from rightsizer.aws.journal import TableJournal

    release = TableJournal._release

    def kept(self: TableJournal, kind: str, name: str, change_id: str) -> Any:
        return release(self, kind, f"{name}-not", change_id)

    monkeypatch.setattr(TableJournal, "_release", kept)
    assert found("MayChange is narrowed", "which is not open")
