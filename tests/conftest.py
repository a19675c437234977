"""What every test shares: properties are judged by their answers, never by the clock of a busy machine."""

import gc
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from rightsizer.telemetry import logger
from tests.once import read_once

settings.register_profile("house", deadline=None, max_examples=25)
settings.register_profile("many", deadline=None, max_examples=100)  # of `make faults`
settings.load_profile("house")

PLAYED = frozenset({"bench", "changing", "cli", "demo", "doors", "faults", "hours"})
"""Folders whose tests play a course on the simulated account, which makes them slow, but for those of `QUICK`."""
QUICK = frozenset({"changing/test_plain.py", "cli/test_tried.py", "doors/test_events_out.py", "hours/test_let_go.py"})
LONG = frozenset(
    {
        "advice/test_one_brain.py",
        "advice/test_templates.py",
        "autoscaling/test_schedules.py",
        "flows/test_propose_hours.py",
        "flows/test_rehearse.py",
        "flows/test_usage.py",
        "house/test_extending.py",
        "house/test_wheel.py",
        "prometheus/test_real.py",
        "recommender/test_alternatives.py",
        "recommender/test_alternatives_closed_dimensions.py",
        "recommender/test_failed_fleets.py",
        "recommender/test_replay.py",
        "recommender/test_scaling_options.py",
        "recommender/test_scaling_options_weekly_counts.py",
        "render/test_browser.py",
        "reporting/test_bill.py",
        "reporting/test_hours_fit.py",
        "runbook/test_runbook.py",
    }
)
"""Files of other folders of which the tests take seconds each."""
LONGEST = (
    "cli/test_tour.py",
    "artefact/test_main_path.py",
    "demo/test_demo.py",
    "faults/test_lost.py",
    "faults/test_faults.py",
    "faults/test_hours.py",
    "artefact/test_self_test.py",
    "faults/test_tested.py",
    "flows/test_rehearse.py",
    "hours/test_nights.py",
    "doors/test_faults.py",
    "artefact/test_bench.py",
    "doors/test_test_first.py",
    "house/test_extending.py",
)
"""Files that begin, the longest first: each of them alone at the end would keep one process busy and the other idle."""


LOUD = (
    logger.log_level,
    {name: os.environ.get(name) for name in ("POWERTOOLS_LOG_LEVEL", "POWERTOOLS_METRICS_DISABLED")},
)
"""How much is logged and counted before any test; a demo or a history in the same process makes it quiet."""


@pytest.fixture(scope="module", autouse=True)
def as_loud_as_before() -> Iterator[None]:
    """Let no file of tests run as quiet as another one before it left the process."""
    _make_loud()
    yield
    _make_loud()


@pytest.fixture(scope="module", autouse=True)
def read_rows_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let courses read equal rows of the table once."""
    if request.path.parent.name not in PLAYED:
        yield
        return
    with read_once():
        yield


def _make_loud() -> None:
    level, variables = LOUD
    logger.setLevel(level)
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what `make fast` leaves out; where several processes share the files, the long ones come first."""
    for item in items:
        folder = item.path.parent.name
        name = f"{folder}/{item.path.name}"
        if name in LONG or (folder in PLAYED and name not in QUICK):
            item.add_marker(pytest.mark.slow)
    if hasattr(config, "workerinput"):
        longest_first(items)


def longest_first(items: list[pytest.Item]) -> None:
    """The longest files, those with slow tests, then those with many, so that no process is left with a long one.

    A process gets whole files (`--dist loadfile`): what a file sets up is set up once.
    """
    size = Counter(item.path for item in items)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    rank = {name: place for place, name in enumerate(LONGEST)}

    def place(item: pytest.Item) -> tuple[int, bool, int, Path]:
        known = rank.get(f"{item.path.parent.name}/{item.path.name}", len(rank))
        return known, item.path not in slow, 0 if item.path in slow else -size[item.path], item.path

    items.sort(key=place)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what is imported by now to no collector: it would look through all of it for each opened account.

    It also comes more rarely: what a test leaves is little, and nearly all of it is gone without a collector.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
