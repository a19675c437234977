"""Door of EC2 capacity: replaced in opted-in groups, noted everywhere else."""

from typing import Any

from rightsizer import intake
from rightsizer.bootstrap import evaluation, now, self_test
from rightsizer.telemetry import door


@door("interruption")
def lambda_handler(event: Any, context: Any) -> Any:
    """React to what EC2 says about its capacity, once."""
    if (tested := self_test.answer("interruption", event)) is not None:
        return tested
    reaction = evaluation.interruption()(intake.parse(event), now())
    return {"reaction": reaction.kind, "reason": str(reaction.reason)}
