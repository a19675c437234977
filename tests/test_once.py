"""What is kept of one test for the next depends on every input."""

from itertools import count
from typing import Any

import pytest

from rightsizer import wire
from rightsizer.errors import UnreadableError
from rightsizer.flows import evaluate
from rightsizer.recommender import context, recommend
from tests import once
from tests.recommender.kit import steady, window


def test_an_endpoint_is_judged_anew_where_anything_of_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = count(1)
    monkeypatch.setattr(once, "recommend", lambda *given: next(asked))
    monkeypatch.setattr(once, "_judged", {})
    with once.judged_once():
        judge: Any = vars(evaluate)["recommend"]
        assert judge("chat", ("usage",), {"price": 1.0}, (), None) == 1
        assert judge("chat", ("usage",), {"price": 1.0}, (), None) == 1
        assert judge("chat", ("usage",), {"price": 1.5}, (), None) == 2
        assert judge("chat", ("more",), {"price": 1.0}, (), None) == 3
        assert judge("chat", ("usage",), {"price": 1.0}, ("a way",), None) == 4
        assert judge("chat", ("usage",), {"price": 1.0}, (), "parts") == 5


def test_days_are_folded_and_served_anew_where_anything_of_them_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = count(1)
    for name in ("daily_usage", "stream_of", "replay_requests"):
        monkeypatch.setattr(once, name, lambda *given: next(asked))
    with once.replayed_once():
        fold: Any = vars(recommend)["daily_usage"]
        stream: Any = vars(context)["stream_of"]
        replay: Any = vars(context)["replay_requests"]
        one, same, other = (window(steady(gpu=gpu), days=1) for gpu in (1.0, 1.0, 2.0))
        assert [fold(one, "g5"), fold(same, "g5"), fold(other, "g5"), fold(one, "g6")] == [1, 1, 2, 3]
        days = [(["mon"], [(0.1, 1.0)], 9), (["mon"], [(0.1, 1.0)], 9), (["tue"], [(0.1, 1.0)], 9)]
        days += [(["mon"], [(0.2, 1.0)], 9), (["mon"], [(0.1, 1.0)], 8)]
        assert [stream(*given) for given in days] == [4, 4, 5, 6, 7]
        runs = [("a", "two", 1.0, 0.0), ("a", "two", 1.0, 0.0), ("b", "two", 1.0, 0.0), ("a", "one", 1.0, 0.0)]
        runs += [("a", "two", 2.0, 0.0), ("a", "two", 1.0, 0.1)]
        assert [replay(*given) for given in runs] == [8, 8, 9, 10, 11, 12]


def test_a_stored_text_is_read_anew_where_it_or_its_noun_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = count(1)

    def read(noun: type, text: str) -> int:
        if text == "newer":
            raise UnreadableError(f"try {next(asked)}")
        return next(asked)

    monkeypatch.setattr(wire, "load_stored", read)
    with once.read_once():
        load: Any = vars(wire)["load_stored"]
        assert [load(int, "a"), load(int, "a"), load(int, "b"), load(str, "a"), load(int, "b")] == [1, 1, 2, 3, 2]
        for number in (4, 5):
            with pytest.raises(UnreadableError, match=f"try {number}"):
                load(int, "newer")
    assert vars(wire)["load_stored"] is read
