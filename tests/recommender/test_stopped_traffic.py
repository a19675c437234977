"""A fleet whose traffic has stopped keeps few instances, stays small in the silence, and comes back with requests."""

from collections.abc import Mapping

from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from tests.labelled import judged

BUSY: Mapping[str, object] = {"per_slot": 300, "latency_s": 0.5, "gpu": 20, "memory": 60}
CUT = {"days_ago": 2, "from": "ml.g5.xlarge", "to": "ml.g5.xlarge", "from_count": 4, "to_count": 2, "ended": "applied"}


def after_cut(since: Mapping[str, object]) -> Recommendation:
    """Four instances became two while nobody called, two days ago; the days since then are these."""
    before = {"until_days_ago": 2, "type": "ml.g5.xlarge", "count": 4, "usage": {**BUSY} | {"stops_after_days": 9}}
    endpoint = {"type": "ml.g5.xlarge", "count": 2}
    return judged({"endpoint": endpoint, "usage": since, "before": before, "history": [CUT]})


def test_what_silence_took_stays_away_while_it_lasts() -> None:
    found = after_cut({**BUSY} | {"per_slot": 0})
    assert found.finding is not Finding.UNDER_PROVISIONED
    assert found.chosen_option is None or not found.chosen_option.restores


def test_requests_that_come_back_bring_the_fleet_back() -> None:
    found = after_cut({**BUSY} | {"per_slot": 900, "gpu": 75})
    assert (found.finding, found.gate) == (Finding.UNDER_PROVISIONED, Gate.APPLY)
    option = found.chosen_option
    assert option is not None
    assert option.target.instance_count > 2
