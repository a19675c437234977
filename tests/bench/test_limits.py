"""The benchmarks fail above their limits, and one that fails does not keep the others from running."""

import shutil
import subprocess
from pathlib import Path

import pytest

from bench import decide, reading
from rightsizer.recommender import context

ROOT = Path(__file__).parents[2]
STUB = """#!/bin/sh
echo "$2" >> "{log}"
case "$2" in bench.doors) exit 1;; bench.calls) exit 3;; esac
"""


@pytest.mark.parametrize(
    ("half_s", "whole_s", "slowest_s", "told"),
    [
        (6.0, 12.0, 0.25, []),
        (6.1, 12.2, 0.2, ["10,000 decisions take 61 s, above 60 s"]),
        (1.0, 2.7, 0.2, ["twice as many take 2.7 times as long, above 2.6 times"]),
        (1.0, 2.0, 0.26, ["an option takes 260 ms, above 250 ms"]),
    ],
)
def test_each_limit_of_the_decisions_is_told_when_it_is_broken(
    half_s: float, whole_s: float, slowest_s: float, told: list[str]
) -> None:
    assert decide.over(2000, half_s, whole_s, slowest_s) == told


def test_packing_has_a_limit_too() -> None:
    assert decide.over(2000, 1.0, 2.0, 0.2, 2.0) == []
    assert decide.over(2000, 1.0, 2.0, 0.2, 2.1) == ["packing 2000 endpoints takes 2.1 s, above 2 s"]
    assert decide.packed(20) < 1


@pytest.mark.parametrize(("slowest_s", "code"), [(0.2, 0), (0.3, 1)])
def test_the_exit_code_says_whether_the_limits_hold(
    slowest_s: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = decide.one(13)[2]
    monkeypatch.setattr(decide, "many", lambda number: number / 1000)
    monkeypatch.setattr(decide, "one", lambda _: (0.5, slowest_s, found))
    monkeypatch.setattr(decide, "packed", lambda _: 0.1)
    assert decide.main([]) == code
    assert ("over its limit: an option takes 300 ms" in capsys.readouterr().err) is bool(code)


def test_decisions_without_a_replay_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is replayed either to say why something is not offered."""
    monkeypatch.setattr(context, "replay_requests", lambda *_: pytest.fail("a fleet was replayed"))
    assert decide.many(2) > 0


def test_the_days_that_are_measured_are_all_within_the_look_back() -> None:
    found = decide.one(13)[2]
    assert found.evidence is not None
    assert found.evidence.days == decide.DAYS


@pytest.mark.parametrize(("folding_ms", "code"), [(30.0, 0), (31.0, 1)])
def test_the_time_of_reading_and_folding_together_is_limited(
    folding_ms: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reading, "measure", lambda days, rounds: (10.0, folding_ms))
    assert reading.main([]) == code
    assert ("over its limit: 14 days of one endpoint" in capsys.readouterr().err) is bool(code)


def test_a_day_of_every_datapoint_is_read_and_folded() -> None:
    assert min(reading.measure(1, 1)) > 0


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")
def test_every_benchmark_runs_and_the_worst_exit_code_decides(tmp_path: Path) -> None:
    stub, log = tmp_path / "stub", tmp_path / "log"
    stub.write_text(STUB.format(log=log))
    made = ("install", ".aws-sam/x86/.built", ".aws-sam/build/.built", ".venv-lambda/.installed")
    old = [part for name in made for part in ("-o", name)]
    command = ["make", *old, "bench", f"RUN=sh {stub}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert log.read_text().split() == [
        f"bench.{name}" for name in ("doors", "calls", "scan", "reading", "decide", "interruption", "report", "first")
    ]
    assert "Error 3" in done.stderr
