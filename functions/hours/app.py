"""Door of the office hours: the tick and endpoint events stop and start endpoints by their tag."""

from typing import Any

from rightsizer import intake
from rightsizer.bootstrap import changes, now, self_test
from rightsizer.telemetry import door


@door("hours")
def lambda_handler(event: Any, context: Any) -> Any:
    """Stop endpoints outside their office hours, and bring them back in time."""
    if (tested := self_test.answer("hours", event)) is not None:
        return tested
    return {"hours": changes.hours().act_on(intake.parse(event), now(), context.get_remaining_time_in_millis)}
