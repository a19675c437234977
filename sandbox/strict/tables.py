"""Every check of every operation that the program calls."""

from collections.abc import Mapping

from sandbox.strict import (
    Check,
    Key,
    accounts,
    cloudwatch,
    compute,
    dynamodb,
    functions,
    messaging,
    money,
    sagemaker,
    scaling,
    slack,
    storage,
)

CHECKS: Mapping[Key, tuple[Check, ...]] = {
    **scaling.CHECKS,
    **compute.CHECKS,
    **money.CHECKS,
    **cloudwatch.CHECKS,
    **dynamodb.CHECKS,
    **accounts.CHECKS,
    **functions.CHECKS,
    **messaging.CHECKS,
    **sagemaker.CHECKS,
    **slack.CHECKS,
    **storage.CHECKS,
}
