"""Whose money is it: what a clairvoyant saved and a policy did not, by what was said on each day."""

from dataclasses import dataclass

import pytest

from bench.gates import HARMED, added, kept, main, table


@dataclass
class Endpoint:
    name: str
    cost: float
    base_cost: float
    oracle_cost: float
    harmed: bool = False


def test_money_goes_to_what_was_said_on_each_day() -> None:
    causes = [(7, "a", "asked", 90.0), (8, "a", "asked", 90.0), (9, "a", "small", 0.0), (7, "b", "small", 30.0)]
    found = kept([Endpoint("a", 100, 100, 40), Endpoint("b", 70, 100, 70)], causes)
    assert (found.clairvoyant, found.saved) == (90, 30)
    assert {cause: round(row.usd, 6) for cause, row in found.rows.items()} == {"asked": 40, "small": 20}
    assert {cause: round(row.known_usd, 6) for cause, row in found.rows.items()} == {"asked": 60, "small": 30}


def test_what_a_harmed_endpoint_saved_does_not_count() -> None:
    found = kept([Endpoint("a", 40, 100, 40, harmed=True)], [(7, "a", "done", 1.0)])
    assert (found.saved, found.rows[HARMED].usd) == (0, 60)


def test_a_policy_that_beats_the_clairvoyant_keeps_nothing() -> None:
    found = kept([Endpoint("a", 30, 100, 40)], [(7, "a", "done", 1.0)])
    assert found.rows["done"].usd == 0


def test_the_table_is_the_mean_of_the_runs_with_the_dearest_first() -> None:
    runs = [kept([Endpoint("a", 100, 100, 40)], [(7, "a", cause, 10.0)]) for cause in ("small", "asked", "asked")]
    lines = table(added(runs), len(runs))
    assert lines[2:] == [
        "| (saved, nobody harmed) | 0 | 0.0 % | |",
        "| asked | 40 | 66.7 % | 7 |",
        "| small | 20 | 33.3 % | 3 |",
    ]


def test_without_a_referee_one_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RIGHTSIZER_REFEREE", str(tmp_path))
    assert main([]) == 2
    assert "no referee in" in capsys.readouterr().err
