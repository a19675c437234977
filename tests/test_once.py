"""What is kept of one test for the next depends on every input."""

from itertools import count
from typing import Any

import pytest

from rightsizer.flows import evaluate
from tests import once


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
