"""What a clairvoyant saves with what the product can carry out, as shares of the referee's clairvoyant."""

from types import SimpleNamespace

import pytest

from bench import ceiling
from bench.ceiling import Bills, main, same_hours, shares


def test_each_set_of_actions_is_a_share_of_what_the_referees_clairvoyant_saves() -> None:
    found = shares([Bills(100, 40, 70, 70, 55), Bills(100, 60, 100, 90, 90)])
    assert found == {"types": 30, "asleep": 40, "staged": 55}


def test_a_set_that_costs_more_than_today_saves_nothing() -> None:
    assert shares([Bills(100, 50, 120, 120, 75)])["types"] == 0


def test_hours_are_the_largest_of_all_days() -> None:
    assert same_hours([[1, 2, 1], [3, 1, 1]]) == (3, 2, 1)


def test_the_program_changes_no_type_of_inference_components(monkeypatch: pytest.MonkeyPatch) -> None:
    known = SimpleNamespace(clairvoyant=lambda *_: SimpleNamespace(base_cost=100.0, best_cost=30.0, static_cost=50.0))
    monkeypatch.setattr("bench.ceiling.importlib.import_module", lambda _: known)
    components = SimpleNamespace(hosting="inference-components", tolerates_cold=False)
    assert ceiling.bills_of(components, 7) == Bills(100, 30, 100, 100, 100)


def test_inference_components_sleep_where_their_callers_tolerate_cold_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    known = SimpleNamespace(clairvoyant=lambda *_: SimpleNamespace(base_cost=100.0, best_cost=30.0, static_cost=50.0))
    monkeypatch.setattr("bench.ceiling.importlib.import_module", lambda _: known)
    monkeypatch.setattr(ceiling, "searched", lambda truth, warmup: truth)
    monkeypatch.setattr(ceiling, "slept", lambda search, config, best: best / 2)
    components = SimpleNamespace(hosting="inference-components", tolerates_cold=True, original="as it is")
    assert ceiling.bills_of(components, 7) == Bills(100, 30, 100, 50, 50)


def test_without_a_referee_one_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RIGHTSIZER_REFEREE", str(tmp_path))
    assert main([]) == 2
    assert "no referee in" in capsys.readouterr().err
