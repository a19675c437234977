"""What tests need once in a process: a judgement from equal inputs, days of equal metrics, a picture nobody looks at.

Judging, folding and replaying are pure: equal inputs have equal answers, and no test that uses these fixtures replaces
a rule of what is kept. How a judgement is made is tried by the tests of `rightsizer.recommender`, how days are folded
and replayed by those of `daily_usage` and `replay`, which call them by themselves, how pictures look by those of
`rightsizer.render` and by the demo.
"""

import hashlib
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from rightsizer import wire
from rightsizer.domain.demand import Fleet, ReplayResult, Stream
from rightsizer.domain.usage import DailyUsage, MetricWindow
from rightsizer.flows import evaluate
from rightsizer.recommender import context
from rightsizer.recommender import recommend as judging
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.recommend import recommend
from rightsizer.recommender.replay import replay_requests, stream_of
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


READ = 500
"""Stored documents that are kept: many times those of one account."""


@contextmanager
def read_once() -> Iterator[None]:
    """Read equal texts of the table once: each tick reads each open row, which few of them have changed."""
    known: dict[tuple[Any, str | bytes], Any] = {}
    read = wire.load_stored

    def load(noun: Any, text: str | bytes) -> Any:
        if (noun, text) not in known:
            if len(known) >= READ:
                known.clear()
            known[noun, text] = read(noun, text)
        return known[noun, text]

    with patch.object(wire, "load_stored", load):
        yield


KEPT = 60
"""Windows and streams that are kept: many tests in a row ask about the same ones."""


class _Days:
    """Days that were folded, their requests, and what these were on a fleet, each by all that it was made of."""

    def __init__(self) -> None:
        self._folded: dict[Any, tuple[DailyUsage, ...]] = {}
        self._streams: dict[Any, Stream] = {}
        self._replays: dict[Any, tuple[Stream, ReplayResult]] = {}

    def fold(self, window: MetricWindow, setup: VariantSetup) -> tuple[DailyUsage, ...]:
        """The days of a window, found again by the bytes of its series."""
        parts = [(*key, one.start, one.period_s, one.values.tobytes()) for key, one in window.series.items()]
        key = window.start, window.end, window.period_s, setup, hashlib.sha256(pickle.dumps(sorted(parts))).digest()
        if key not in self._folded:
            if len(self._folded) >= KEPT:
                self._folded.clear()
            self._folded[key] = daily_usage(window, setup)
        return self._folded[key]

    def stream(self, days: Sequence[DailyUsage], bins: Sequence[tuple[float, float]], limit: int) -> Stream:
        """The requests of equal days."""
        key = tuple(days), tuple(bins), limit
        if key not in self._streams:
            if len(self._streams) >= KEPT:
                self._streams.clear()
                self._replays.clear()
            self._streams[key] = stream_of(days, bins, limit)
        return self._streams[key]

    def replay(
        self, stream: Stream, fleet: Fleet, limit_s: float, baseline: float = 0.0, alarm_s: float = 0.0
    ) -> ReplayResult:
        """What a fleet makes of this very stream, which lies beside it so that no other one gets its identity."""
        key = id(stream), fleet, limit_s, baseline, alarm_s
        if key not in self._replays:
            self._replays[key] = stream, replay_requests(stream, fleet, limit_s, baseline, alarm_s)
        return self._replays[key][1]


@contextmanager
def replayed_once() -> Iterator[None]:
    """Fold equal metrics, and serve equal days on equal fleets, once: more than half of the time of a judgement."""
    days = _Days()
    with (
        patch.object(judging, "daily_usage", days.fold),
        patch.object(context, "stream_of", days.stream),
        patch.object(context, "replay_requests", days.replay),
    ):
        yield
