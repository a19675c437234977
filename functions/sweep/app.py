"""Door of the sweep: the schedule fires, pages of endpoints go to the evaluation queue."""

from typing import Any

from rightsizer import intake, wire
from rightsizer.bootstrap import evaluation, self_test
from rightsizer.telemetry import door


@door("sweep")
def lambda_handler(event: Any, context: Any) -> Any:
    """Sweep, light or full, as the schedule says."""
    if (tested := self_test.answer("sweep", event)) is not None:
        return tested
    return wire.plain(evaluation.sweep()(intake.parse(event)))
