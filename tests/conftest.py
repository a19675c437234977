"""What every test shares: properties are judged by their answers, never by the clock of a busy machine."""

import gc

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what is imported by now to no collector: it would look through all of it for each opened account."""
    gc.collect()
    gc.freeze()
