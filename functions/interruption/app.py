"""Door of EC2 capacity: an interruption is recorded once, and its owner is told."""

from typing import Any

from rightsizer import intake
from rightsizer.bootstrap import looking, now
from rightsizer.telemetry import door


@door("interruption")
def lambda_handler(event: Any, context: Any) -> Any:
    """Record what EC2 says about its capacity."""
    occurrence = looking.interruption()(intake.parse(event), now())
    return {"recorded": occurrence.key if occurrence else ""}
