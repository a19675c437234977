"""What tests with equal accounts compute from equal inputs is computed once in a process.

Both functions are pure: equal inputs have equal answers, and no test that uses these fixtures replaces one of their
rules. How they answer is tried by the tests of `rightsizer.recommender` and `rightsizer.render`, which use neither.
"""

import hashlib
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from rightsizer.flows import evaluate
from rightsizer.recommender.recommend import recommend
from rightsizer.render import two_weeks
from rightsizer.render.pictures import TwoWeeks, two_weeks_png

_drawn: dict[str, bytes] = {}
_judged: dict[bytes, Any] = {}


@contextmanager
def drawn_once() -> Iterator[None]:
    """Draw equal pictures of two weeks once: it took an eighth of the time of tests on a deployed stack."""

    def draw(picture: TwoWeeks) -> bytes:
        if (key := repr(picture)) not in _drawn:
            _drawn[key] = two_weeks_png(picture)
        return _drawn[key]

    with patch.object(two_weeks, "two_weeks_png", draw):
        yield


@contextmanager
def judged_once() -> Iterator[None]:
    """Judge an endpoint of equal configuration, usage, prices, past and time once: it takes most of a scan's time."""

    def judge(endpoint: Any, usage: Any, inputs: Any, dimensions: Any, components: Any = None) -> Any:
        given = (endpoint, usage, inputs, [type(one).__qualname__ for one in dimensions], components)
        key = hashlib.sha256(pickle.dumps(given)).digest()
        if key not in _judged:
            _judged[key] = recommend(endpoint, usage, inputs, dimensions, components)
        return _judged[key]

    with patch.object(evaluate, "recommend", judge):
        yield
