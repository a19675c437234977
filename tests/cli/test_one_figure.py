"""What `explain` says of one endpoint agrees with itself: each figure has one value, whatever sentence it stands in."""

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO

import pytest

from rightsizer import bootstrap
from rightsizer.terminal.run import run
from sandbox.account import Sandbox
from sandbox.traffic import Workload, around_the_clock, month_end, nothing, write_past

WORKS = {
    "many": (Workload(home="ml.g5.4xlarge", shape=around_the_clock(90), seed=4, gpu_s=0.01), 4),
    "few": (Workload(home="ml.g5.4xlarge", shape=month_end(6), seed=8, gpu_s=0.4), 2),
    "none": (Workload(home="ml.g5.2xlarge", shape=nothing(), seed=9), 1),
}
"""Many requests on hardly used GPUs, fewer on busier ones, and none."""
WHEN = re.compile(r"\w{3} \d{1,2} \w{3} \d{4}, \d\d:\d\d UTC")


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, str]]:
    """The explanations by endpoint, read early in the morning: the first and the last day are seen in part."""
    with pytest.MonkeyPatch.context() as patch, Sandbox(now=datetime(2026, 11, 20, 4, 10, tzinfo=UTC)) as box:
        patch.setenv("COLUMNS", "250")
        bootstrap.set_clock(lambda: box.clock.now)
        for name, (work, count) in WORKS.items():
            box.add_endpoint(name, work.home, count, tags={"rightsizer:p95-ms": "3000"})
            write_past(box, name, work, count)
        yield {name: _explained(name) for name in WORKS}
        bootstrap.reset()


def _explained(name: str) -> str:
    said = StringIO()
    with redirect_stdout(said):
        run(["explain", name])
    return said.getvalue()


def _found(pattern: str, text: str) -> list[str]:
    return re.findall(pattern, text)


@pytest.mark.parametrize("name", ["many", "few"])
def test_the_requests_that_were_seen_are_one_number(told: dict[str, str], name: str) -> None:
    said = told[name]
    seen = _found(r"(?m)^ +requests +([\d,]+) *$", said)
    assert len(seen) == 1
    assert {*_found(r"([\d,]+) requests in [\d.]+ days", said), *_found(r"of ([\d,]+) requests,", said)} == {*seen}


@pytest.mark.parametrize("name", ["many", "few"])
def test_the_late_requests_stand_once_and_are_of_those_that_were_replayed(told: dict[str, str], name: str) -> None:
    said = told[name]
    (replayed,) = _found(r"replayed on it \(([\d,]+) of", said)
    assert _found(r"late requests +[\d,]+ of ([\d,]*\d)", said) == [replayed]
    assert "over the objective" not in said, "a second count of the same requests, of another replay"


def test_the_share_of_the_gpu_is_one_figure(told: dict[str, str]) -> None:
    said = told["many"]
    evidence = _found(r"GPU share of latency +(\d+) %", said)
    excluded = _found(r"GPU works for (\d+) % of each request", said)  # once for all ways that it rules out
    assert evidence, "the share stands among the evidence"
    assert set(evidence) == set(excluded)
    assert len(set(evidence)) == 1


@pytest.mark.parametrize("name", WORKS)
def test_the_window_is_as_long_as_the_days_of_evidence(told: dict[str, str], name: str) -> None:
    said = told[name]
    start, end = (datetime.strptime(at, "%a %d %b %Y, %H:%M UTC").replace(tzinfo=UTC) for at in WHEN.findall(said)[:2])
    days = f"{(end - start).total_seconds() / 86400:.1f}"
    assert "100 % of it with datapoints" in said
    assert {*_found(r"requests in ([\d.]+) days", said), *_found(r"evidence +([\d.]+) days' worth", said)} == {days}
    assert not _found(r"[Tt]he last \d+ days replayed", said)


@pytest.mark.parametrize("name", WORKS)
def test_an_option_says_once_when_it_is_paid_back(told: dict[str, str], name: str) -> None:
    options = told[name].split("\nOption ")[1:]
    assert options
    for option in options:
        part = option.split("\nThen")[0]
        assert len(_found(r"(?i)pay ?back|paid back", part)) == 1, part
