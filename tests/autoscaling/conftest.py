"""Each test reads cron expressions anew: one that was understood before hides a reader that changed since."""

import pytest

from rightsizer.autoscaling.schedules import parse_cron


@pytest.fixture(autouse=True)
def _unread() -> None:
    parse_cron.cache_clear()
