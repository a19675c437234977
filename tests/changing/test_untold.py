"""A topic that refuses loses a message, never a line of the journal and never another change."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.errors import WriteRefusedError
from tests.changing import scenarios
from tests.changing.test_bare import deploying
from tests.changing.world import NAME, World, world
from tests.notifiers import Told


@contextmanager
def unregistered(lost: list[str]) -> Iterator[World]:
    """Autoscaling cannot be given back after the turn, and the topic does not exist any more."""

    def refuse(subject: str, text: str) -> None:
        lost.append(subject)
        raise WriteRefusedError("publishing to the topic t", "NotFound", "Topic does not exist")

    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        deploying(w)
        w.box.deny("application-autoscaling:RegisterScalableTarget")
        w.apply = replace(w.apply, notifier=Told(refuse))
        yield w


def test_a_refused_step_keeps_its_line_and_is_handed_over_without_the_topic() -> None:
    lost: list[str] = []
    with unregistered(lost) as w:
        change = w.run(3)
        lines = [e.status for e in change.journal if e.step.startswith("RegisterScalableTarget")]
    assert lines == ["intended", "failed"] * 6
    assert change.state is ChangeState.HANDED_OVER
    assert lost[0] == f"INCIDENT {NAME}: its autoscaling is missing"
    assert lost[-2:] == [f"{NAME}: change is being handed over", f"{NAME}: change handed-over"]


def test_an_incident_that_could_not_be_told_is_told_at_the_next_refusal() -> None:
    lost: list[str] = []
    with unregistered(lost) as w:
        while not lost:
            w.run(0.02)
        w.apply = replace(w.apply, notifier=Told(lambda subject, text: w.told.append((subject, text))))
        w.run(0.2)
        told = [subject for subject, _ in w.told]
    assert told == [f"INCIDENT {NAME}: its autoscaling is missing"]


def test_what_could_not_be_told_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    lost: list[str] = []
    with caplog.at_level(logging.ERROR), unregistered(lost) as w:
        while not lost:
            w.run(0.02)
    line = next(r for r in caplog.records if r.levelno == logging.ERROR)
    assert "Topic does not exist" in str(line.__dict__["why"])
    assert line.__dict__["subject"] == lost[0]
    assert "RegisterScalableTarget" in str(line.__dict__["text"])


def test_a_change_that_cannot_be_looked_at_does_not_stop_the_tick_without_the_topic() -> None:
    def refuse(subject: str, text: str) -> None:
        raise WriteRefusedError("publishing to the topic t", "NotFound", "Topic does not exist")

    with world() as w:
        w.start()
        w.apply = replace(w.apply, notifier=Told(refuse))
        w.box.deny("sagemaker:DescribeEndpoint")
        looks = []
        for _ in range(8):
            w.box.clock.advance(timedelta(minutes=20))
            w.apply.tick(w.now)
            looks.append(w.change.looks)
        w.box.gate.heal()
        change = w.run(12)
    assert max(looks) >= 4, "the third look is the one that is told"
    assert change.state is ChangeState.PROVEN
