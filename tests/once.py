"""What tests on accounts need once in a process: a judgement from equal inputs, and a picture that nobody looks at.

Judging is pure: equal inputs have equal answers, and no test that uses these fixtures replaces one of its rules. How it
answers is tried by the tests of `rightsizer.recommender`, how pictures look by those of `rightsizer.render` and by the
demo, which use neither.
"""

import hashlib
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from rightsizer.flows import evaluate
from rightsizer.recommender.recommend import recommend
from rightsizer.render import pictures
from rightsizer.render.pictures import TwoWeeks, two_weeks_png

_drawn: dict[tuple[bool, ...], bytes] = {}
_judged: dict[bytes, Any] = {}


@contextmanager
def drawn_once() -> Iterator[None]:
    """Draw one picture of two weeks with each set of lines and limits, and show it for all others with these.

    The tests that use this look at who gets a picture and when, and drawing took an eighth of their time.
    """

    def draw(picture: TwoWeeks) -> bytes:
        key = tuple(part for panel in picture.panels for part in (bool(panel.then), panel.limit is not None))
        if key not in _drawn:
            _drawn[key] = two_weeks_png(picture)
        return _drawn[key]

    with patch.object(pictures, "two_weeks_png", draw):
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
