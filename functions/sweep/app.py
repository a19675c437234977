"""Door of the sweep: the schedule fires, pages of endpoints go to the evaluation queue."""

from typing import Any

from rightsizer import intake, wire
from rightsizer.bootstrap import looking
from rightsizer.telemetry import door


@door("sweep")
def lambda_handler(event: Any, context: Any) -> Any:
    """Sweep, light or full, as the schedule says."""
    return wire.plain(looking.sweep()(intake.parse(event)))
