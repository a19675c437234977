"""Door of the picture: a proposal was posted, its two weeks are drawn into its message."""

from typing import Any

from rightsizer.bootstrap import proposals, self_test
from rightsizer.telemetry import door, logger


@door("picture")
def lambda_handler(event: Any, context: Any) -> Any:
    """Draw the picture of one proposal; what fails is logged, and not tried again."""
    if (tested := self_test.answer("picture", event)) is not None:
        return tested
    identity = event.get("proposal") if isinstance(event, dict) else None
    if not isinstance(identity, str) or not identity:
        logger.error("the event names no proposal")
        return {"shown": False}
    return {"shown": proposals.picture()(identity)}
