"""The comparison of the doors with a bare handler: its ceilings, and the tape that answers again."""

from datetime import UTC, datetime
from io import BytesIO

import pytest

from bench import interruption
from bench.doors import CEILINGS, GOALS, JOBS, NOISE, Pairs, Run, over, table
from bench.tape import Exchange, Recording, Tape
from tests.template.stack import DOORS

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def answer(tape: Tape, path: str) -> str:
    """What the tape answers to an unsigned request, such as those to Slack."""
    environ = {"PATH_INFO": path, "wsgi.input": BytesIO(b"{}"), "CONTENT_LENGTH": "2"}
    return b"".join(tape(environ, lambda *_: None)).decode()


def test_every_door_is_measured_and_has_a_ceiling() -> None:
    assert set(JOBS) == set(CEILINGS) == set(DOORS) - {"hours", "picture"}, (
        "office hours are no part of a stack by default, and nobody waits for a picture"
    )


def test_a_ratio_above_its_ceiling_is_told() -> None:
    assert over(CEILINGS) == []
    (told,) = over({"apply": CEILINGS["apply"] + 0.01})
    assert told.startswith(f"apply takes {CEILINGS['apply'] + 0.01:.2f} times")


def test_the_table_has_least_median_and_most_of_each_door() -> None:
    pairs = Pairs(4, [Run(0.2, 0.4), Run(0.4, 0.5), Run(0.3, 0.6)], [Run(0.1, 0.2), Run(0.1, 0.3), Run(0.2, 0.4)])
    assert pairs.figures()["ratio"] == pytest.approx({"min": 1.5, "median": 2.0, "max": 4.0})
    line = table({"respond": pairs}).splitlines()[1].split()
    assert line[:2] == ["respond", "4"]
    assert "200 / 300 / 400" in table({"respond": pairs})
    assert "1.50 / 2.00 / 4.00" in table({"respond": pairs})


def test_the_tape_answers_each_request_once_and_tells_what_was_asked_otherwise() -> None:
    tape = Tape()
    answers = [Exchange("slack:chat.postMessage", None, "200 OK", [], body) for body in (b"first", b"second")]
    tape.play(Recording("propose", {}, NOW, None, [*answers, Exchange("response_url", None, "200 OK", [], b"")]))
    assert [answer(tape, "/api/chat.postMessage") for _ in range(3)] == ["first", "second", ""]
    assert tape.told_otherwise() == "not asked: response_url (1); not in the recording: slack:chat.postMessage"


def test_the_time_to_a_replacement_and_its_calls_have_limits() -> None:
    assert interruption.over(2.0, []) == []
    assert interruption.over(2.1, []) == ["our own time is 2.10 s at p99, above 2 s"]


def test_no_door_may_be_slower_than_its_goal_but_for_noise() -> None:
    assert (GOALS["respond"], GOALS["evaluate"], GOALS["apply"]) == (1.25, 2.0, 1.6)
    assert all(CEILINGS[door] <= goal + NOISE for door, goal in GOALS.items())
