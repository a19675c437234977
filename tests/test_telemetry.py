"""A log line is bounded, and what one item raises stays its own."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer import telemetry
from rightsizer.errors import ReadError
from rightsizer.telemetry import Failure, attempt, limit_line, logger
from sandbox.functions import Context

HOSTILE = "\u202e\x1b[31m\n" + "\U0001f600" * 210_000
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=50) | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=50), inner, max_size=9),
)


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """What the logger writes."""
    text = io.StringIO()
    (handler,) = [one for one in logger.handlers if isinstance(one, logging.StreamHandler)]
    before, level = handler.stream, logger.log_level
    handler.stream = text
    logger.setLevel(logging.INFO)
    try:
        yield text
    finally:
        handler.stream = before
        logger.setLevel(level)


def fails(error: Exception) -> None:
    raise error


def test_a_hostile_name_gives_one_short_line_of_ascii() -> None:
    with logged() as text:
        logger.warning("refused " + HOSTILE, extra={"name_of_it": HOSTILE, "names": [HOSTILE] * 30_000, HOSTILE: 1})
    (line,) = text.getvalue().splitlines()
    assert len(line) <= 16_000
    assert line.isascii()
    assert json.loads(line)["level"] == "WARNING"


@pytest.mark.parametrize("length", range(3_800, 4_001, 20))
def test_a_line_of_several_long_texts_has_at_most_16_000_characters_and_says_what_fits(length: int) -> None:
    """Four texts of at most 4,000 characters: four of 3,980 fit into a line, four of 4,000 do not."""
    record = {name: name * length for name in "abcd"}
    line, whole = limit_line(record), len(json.dumps(record, separators=(",", ":")))
    assert len(line) <= 16_000
    assert (len(line) == whole) == (whole <= 16_000)


def test_a_short_record_is_written_whole() -> None:
    with logged() as text:
        logger.info("change", extra={"change": "c-1", "steps": ["a", "b"], "usd": 1.5})
    found = json.loads(text.getvalue())
    assert (found["message"], found["change"], found["steps"], found["usd"]) == ("change", "c-1", ["a", "b"], 1.5)


@settings(max_examples=25)
@given(st.dictionaries(st.text(max_size=20), trees, max_size=20))
def test_any_record_becomes_one_bounded_line(record: dict[str, object]) -> None:
    line = limit_line(record | {"huge": 10**9000})
    assert len(line) <= 16_000
    assert "\n" not in line
    json.loads(line)


def test_an_unforeseen_error_is_logged_with_its_stack_trace_and_counted() -> None:
    with logged() as text, patch.object(telemetry, "count") as counted:
        found = attempt("judging an endpoint", "chat", lambda: fails(KeyError("\x1b" + "k" * 210_000)))
    assert isinstance(found, Failure)
    assert not found.is_expected
    assert "a fault of rightsizer" in str(found)
    assert len(str(found)) < 500
    counted.assert_called_once_with(UnforeseenErrors=1)
    (line,) = text.getvalue().splitlines()
    assert len(line) <= 16_000
    assert "in fails" in json.loads(line)["exception"]
    assert json.loads(line)["item"] == "chat"


def test_an_error_of_ours_is_a_warning_without_a_count() -> None:
    with logged() as text, patch.object(telemetry, "count") as counted:
        found = attempt("reading", "chat", lambda: fails(ReadError("reading chat: it is away")))
    assert isinstance(found, Failure)
    assert found.is_expected
    assert str(found) == "reading chat: it is away"
    counted.assert_not_called()
    assert json.loads(text.getvalue())["level"] == "WARNING"


def test_what_succeeds_is_handed_on() -> None:
    assert attempt("adding", "1", lambda: 2) == 2


def written(handler: telemetry.LambdaHandler) -> list[dict[str, list[float]]]:
    """What an invocation of the handler sends to CloudWatch, as names and values."""
    text = io.StringIO()
    with redirect_stdout(text):
        telemetry.door("sweep")(handler)({}, Context("sweep", 512, "arn:aws:lambda:::sweep", "r-1", timeout_s=60))
    lines = [json.loads(line) for line in text.getvalue().splitlines() if '"CloudWatchMetrics"' in line]
    return [
        {each["Name"]: line[each["Name"]] for each in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]} for line in lines
    ]


def test_a_zero_of_a_counter_is_not_sent_and_one_of_a_gauge_is() -> None:
    """CloudWatch bills each hour in which a custom metric is sent."""
    assert written(lambda *_: telemetry.count(EndpointsUnread=0)) == []
    assert written(lambda *_: telemetry.count(EndpointsUnread=2)) == [{"EndpointsUnread": [2.0]}]
    assert written(lambda *_: telemetry.measure(EndpointsStale=0)) == [{"EndpointsStale": [0.0]}]
