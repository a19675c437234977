"""What every test shares: properties are judged by their answers, never by the clock of a busy machine."""

import gc

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")

PLAYED = frozenset({"bench", "changing", "cli", "demo", "doors", "faults"})
"""Folders whose tests play a course on the simulated account, which makes them slow, but for those of `QUICK`."""
QUICK = frozenset({"changing/test_plain.py", "cli/test_tried.py", "doors/test_events_out.py"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make fast` leaves out."""
    for item in items:
        folder = item.path.parent.name
        if folder in PLAYED and f"{folder}/{item.path.name}" not in QUICK:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what is imported by now to no collector: it would look through all of it for each opened account.

    It also comes more rarely: what a test leaves is little, and nearly all of it is gone without a collector.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
