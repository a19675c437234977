"""Door of the answers: a click in Slack becomes one recorded decision."""

from typing import Any

from rightsizer.bootstrap import now, proposals, self_test
from rightsizer.telemetry import door, logger


@door("respond")
def lambda_handler(event: Any, context: Any) -> Any:
    """Verify the click, record the decision once, answer within three seconds."""
    if (tested := self_test.answer("respond", event)) is not None:
        return tested
    answer = proposals.respond()(event, now())
    logger.info(answer.log, extra={"status": answer.status, "recorded": answer.recorded})
    return answer.response()
