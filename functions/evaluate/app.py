"""Door of the evaluation: a batch of the queue, or an alarm's own action."""

from typing import Any

from rightsizer import intake
from rightsizer.bootstrap import evaluation, now, seconds_left, self_test, settings
from rightsizer.telemetry import door


@door("evaluate")
def lambda_handler(event: Any, context: Any) -> Any:
    """Evaluate what the messages mean; the failed ones are delivered again alone."""
    if (tested := self_test.answer("evaluate", event)) is not None:
        return tested
    received = intake.batch(event, settings().alarm_topic_arn)
    failed = evaluation.evaluate()(received, now(), seconds_left(context))
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}
