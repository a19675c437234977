"""The comparison with Cloud Custodian: it skips without one, counts what it asks, and tells a ratio above the limit."""

import os
import sys
from pathlib import Path

import pytest

from bench.custodian import RECORDED, SPARE, account, custodian, main, over, scan

HERE = os.environ.get("CUSTODIAN_PYTHON", "")
ASKS_TOO_LITTLE = """#!/bin/sh
exit 0
"""


@pytest.mark.parametrize(
    ("given", "said"),
    [("", "skipped: no Custodian"), ("/nowhere/python", "cannot import c7n"), (sys.executable, "cannot import c7n")],
)
def test_without_custodian_nothing_is_measured(given: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--custodian", given]) == 0
    assert said in capsys.readouterr().out


SIZES = [(full, size) for full, measured in RECORDED.items() for size in measured]


@pytest.mark.parametrize(("full", "size"), SIZES)
def test_a_ratio_above_the_recorded_one_of_the_next_larger_account_is_told(full: bool, size: int) -> None:
    limit = RECORDED[full][size] * SPARE
    assert over(limit, size, full=full) == over(limit, size - 1, full=full) == ""
    assert "of Custodian's CPU, above" in over(limit + 0.01, size, full=full)


@pytest.mark.parametrize("full", [False, True])
def test_an_account_larger_than_any_that_was_measured_is_not_judged(
    full: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert over(99.0, max(RECORDED[full]) + 1, full=full) == ""
    assert "not judged" in capsys.readouterr().out


def test_a_custodian_that_asks_for_no_metrics_is_no_comparison(tmp_path: Path) -> None:
    idle = tmp_path / "python"
    idle.write_text(ASKS_TOO_LITTLE)
    idle.chmod(0o700)
    with account(1, full=False) as of, pytest.raises(SystemExit, match="asked for 0 metrics of 1 endpoints"):
        custodian(of, str(idle), 1)


def test_the_scan_runs_in_a_process_of_its_own() -> None:
    with account(1, full=False) as of:
        run = scan(of)
    assert run.calls > 10
    assert run.cpu_s > 0.1


@pytest.mark.skipif(not HERE, reason="CUSTODIAN_PYTHON names no Python with Cloud Custodian")
def test_custodian_is_asked_for_every_endpoint() -> None:
    with account(2, full=False) as of:
        assert custodian(of, HERE, 2).calls >= 7  # lists, two descriptions, two lists of tags, two metrics
