"""`make faults` still runs: its jobs name scenarios and endings that there are, and what broke is counted."""

from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench import faults
from bench.faults import DELIVERED, DISTURBED, ENDINGS, SCENARIOS, jobs
from tests.faults.lost import Case, cases


def test_every_job_names_what_there_is() -> None:
    options = {"scenario": "", "ending": "", "every": 8, "reads": False}
    prompt = list(jobs(Namespace(**options, deliveries=False, concurrent=False, frozen=False)))
    others = list(jobs(Namespace(**options, deliveries=True, concurrent=True, frozen=True)))
    assert {job[0] for job in prompt} <= set(SCENARIOS)
    assert {job[1] for job in prompt} <= set(ENDINGS)
    assert {job[2] for job in prompt + others} == set(DELIVERED)
    assert {job[4] for job in prompt + others} < set(DISTURBED)


def test_runs_that_break_a_law_or_raise_are_counted_and_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The runs themselves are tried in `tests/faults/test_lost.py`."""

    def lost(case: Case) -> list[str]:
        if case == first:
            raise KeyError("a row")
        return ["it was forgotten"] if case == second else []

    first, second, *_ = cases(3)
    monkeypatch.setattr(faults, "lost", lost)
    with ThreadPoolExecutor(1) as pool:
        assert faults.run_lost(pool, 3) == 2
    told = capsys.readouterr().out
    assert "KeyError: 'a row'" in told
    assert "it was forgotten" in told
    assert "3 decisions lost, 7 laws in each, of an errand 5, 2 failures" in told
