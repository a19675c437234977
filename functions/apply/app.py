"""Door of the changes: an approved proposal, an endpoint event or the tick moves journals on."""

from typing import Any

from rightsizer import intake
from rightsizer.bootstrap import changes, now, self_test
from rightsizer.flows.apply_orders import advance_changes, start_approved
from rightsizer.telemetry import door


@door("apply")
def lambda_handler(event: Any, context: Any) -> Any:
    """Advance every change that is due by the next steps of its journal."""
    if (tested := self_test.answer("apply", event)) is not None:
        return tested
    apply, at = changes.apply(), now()
    if isinstance(event, dict) and "Records" in event:
        failed = start_approved(apply, intake.moves(event), at)
        return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in failed]}
    return {"changes": advance_changes(apply, intake.parse(event), at, context.get_remaining_time_in_millis)}
