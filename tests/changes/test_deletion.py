"""Silence proves that an endpoint may go only where all that was published could be read."""

from array import array
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rightsizer.changes.deletion import ALIVE, deletion_verdict
from rightsizer.domain.change import ChangeState
from rightsizer.domain.plan import Plan, PlanKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import MetricWindow, NoMetrics, Series
from tests import samples

START = datetime(2026, 11, 2, 10, tzinfo=UTC)
WEEK = timedelta(days=7)
MARKED = samples.change(
    START,
    plan=Plan(kind=PlanKind.DELETE, test_s=int(WEEK.total_seconds())),
    state=ChangeState.APPLIED,
    turned_at=START,
)
ALIVE_ALL_WEEK = {ALIVE[0]: Series(START, 300, array("d", [20.0] * 7 * 288))}
SILENT = MetricWindow("chat", "v", START, START + WEEK, 300, ALIVE_ALL_WEEK)


def test_silence_that_was_read_whole_hands_over() -> None:
    assert deletion_verdict(MARKED, [SILENT], START + WEEK).judgement == "proven"


@pytest.mark.parametrize("code", [Code.PERMISSION_MISSING, Code.READ_FAILED, Code.THROTTLED])
def test_silence_that_was_read_in_part_is_read_again_and_then_given_up(code: Code) -> None:
    reason = Reason(code, "Invocations came in part")
    for blind in (replace(SILENT, notes=(reason,)), NoMetrics("chat", "v", reason)):
        found = deletion_verdict(MARKED, [SILENT, blind], START + WEEK)
        assert (found.judgement, "came in part" in found.reason.sentence) == ("not-yet", True)
        assert deletion_verdict(MARKED, [SILENT, blind], START + 2 * WEEK).judgement == "given-up"


def test_a_variant_that_publishes_nothing_is_given_up_at_once() -> None:
    nothing = NoMetrics("chat", "v", Reason(Code.NO_DATAPOINTS, "CloudWatch has no datapoint"))
    assert deletion_verdict(MARKED, [nothing], START + WEEK).judgement == "given-up"
