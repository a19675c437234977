"""Door of the proposals: the stream shows one that is new or moved, its message follows."""

from typing import Any

from rightsizer import intake
from rightsizer.bootstrap import proposals, self_test
from rightsizer.telemetry import door


@door("propose")
def lambda_handler(event: Any, context: Any) -> Any:
    """Post proposals and let their messages follow the change; the failed records come again alone."""
    if (tested := self_test.answer("propose", event)) is not None:
        return tested
    failed = proposals.propose()(intake.moves(event), intake.sleeps(event))
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in failed]}
