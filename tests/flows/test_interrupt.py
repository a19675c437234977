"""An interruption is recorded exactly once, and telling never costs the record."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from rightsizer.errors import ThrottledError
from rightsizer.flows.interrupt import InterruptPorts, interrupt
from rightsizer.model.outcome import LedgerEntry, Occurrence
from rightsizer.model.proposal import MessageRef
from rightsizer.model.reason import Code, Reason
from rightsizer.model.trigger import InstanceMoved, LaunchFailed, NoTrigger, RebalanceRecommended, SpotInterruption
from tests.samples import NOW

WARNING = SpotInterruption("i-1", "terminate", "eu-west-1b", NOW, "i-1:warning")


class Spy:
    def __init__(self, failing: bool = False) -> None:
        self.noted: dict[str, Occurrence] = {}
        self.told: list[str] = []
        self.failing = failing

    def book(self, entry: LedgerEntry) -> None:
        raise AssertionError("an interruption books no saving")

    def entries(self, start: datetime, end: datetime) -> Iterator[LedgerEntry]:
        return iter(())

    def note(self, occurrence: Occurrence) -> bool:
        return self.noted.setdefault(occurrence.key, occurrence) is occurrence

    def occurrences(self, start: datetime, end: datetime) -> Iterator[Occurrence]:
        return iter(self.noted.values())

    def post(self, blocks: Sequence[Mapping[str, Any]], text: str) -> MessageRef | None:
        return None

    def update(self, message: MessageRef, blocks: Sequence[Mapping[str, Any]], text: str) -> None:
        raise AssertionError("nothing was posted")

    def publish(self, subject: str, text: str) -> None:
        if self.failing:
            raise ThrottledError("later")
        self.told.append(text)

    @property
    def ports(self) -> InterruptPorts:
        return InterruptPorts(self, self)


def test_a_warning_delivered_three_times_is_recorded_and_told_once() -> None:
    spy = Spy()
    for second in range(3):
        interrupt(spy.ports, WARNING, NOW + timedelta(seconds=second))
    assert list(spy.noted) == ["i-1:warning"]
    assert spy.told == ["EC2 takes the Spot instance i-1 in eu-west-1b back and will terminate it."]


def test_a_stale_warning_is_recorded_as_stale() -> None:
    spy = Spy()
    seen = interrupt(spy.ports, WARNING, NOW + timedelta(seconds=121))
    assert seen is not None
    assert "121 s late" in seen.text


def test_a_record_survives_a_topic_that_fails() -> None:
    spy = Spy(failing=True)
    assert interrupt(spy.ports, WARNING, NOW) is not None
    assert list(spy.noted) == ["i-1:warning"]


def test_a_launch_failure_is_told_with_its_reason() -> None:
    spy = Spy()
    interrupt(spy.ports, LaunchFailed("gpu", "eu-west-1b", "InsufficientInstanceCapacity", NOW, "k"), NOW)
    assert "InsufficientInstanceCapacity" in spy.told[0]


def test_a_rebalance_recommendation_is_counted_and_not_told() -> None:
    spy = Spy()
    interrupt(spy.ports, RebalanceRecommended("i-1", NOW, "k"), NOW)
    assert list(spy.noted) == ["k"]
    assert spy.told == []


@pytest.mark.parametrize(
    "trigger", [InstanceMoved("i-1", "stopped", NOW, "k"), NoTrigger(Reason(Code.UNKNOWN_EVENT, "no"))]
)
def test_what_takes_no_capacity_is_not_recorded(trigger: Any) -> None:
    spy = Spy()
    assert interrupt(spy.ports, trigger, NOW) is None
    assert spy.noted == {}
