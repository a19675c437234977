"""Door of EC2 capacity: replaced in opted-in groups, noted everywhere else."""

from typing import Any

from rightsizer import intake
from rightsizer.bootstrap import looking, now
from rightsizer.telemetry import door


@door("interruption")
def lambda_handler(event: Any, context: Any) -> Any:
    """React to what EC2 says about its capacity, once."""
    reaction = looking.interruption()(intake.parse(event), now())
    return {"reaction": reaction.kind, "reason": str(reaction.reason)}
