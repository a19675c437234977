"""Spoilt events at the real doors; `make faults` tries ten thousand."""

import json
import random

import pytest

from bench.events import routes, tried
from bench.mutants import spoilt

SEED = 20


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.grid) for first in (100, 200))])
def test_a_spoilt_event_raises_nothing_costs_nothing_when_refused_and_stops_no_healthy_one(first: int) -> None:
    found = tried((first, 100, SEED))
    assert found.broken == []
    assert found.kinds["refused"] > 20
    assert found.kinds["taken"] > 5


def test_the_same_seed_spoils_the_same_way_and_leaves_the_original_alone() -> None:
    document = json.loads(routes()[0][1].read_text())
    before = json.dumps(document)
    once, again = (repr(spoilt(document, random.Random(7))) for _ in range(2))
    assert once == again
    assert json.dumps(document) == before
    assert len({repr(spoilt(document, random.Random(n))) for n in range(50)}) > 40
