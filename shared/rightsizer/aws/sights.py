"""Answers of AWS as the sights that a change is decided by."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rightsizer.domain.live_state import EndpointSight, VariantSight

OUTPUT_ONLY_OF_ALARM = frozenset(
    {
        "AlarmArn",
        "AlarmConfigurationUpdatedTimestamp",
        "StateValue",
        "StateReason",
        "StateReasonData",
        "StateUpdatedTimestamp",
        "StateTransitionedTimestamp",
        "EvaluationState",
    }
)
"""Fields of DescribeAlarms that PutMetricAlarm does not take."""


def endpoint_sight(answer: Mapping[str, Any]) -> EndpointSight:
    """The answer of DescribeEndpoint."""
    capture = answer.get("DataCaptureConfig") or {}
    return EndpointSight(
        status=answer["EndpointStatus"],
        config_name=answer.get("EndpointConfigName", ""),
        modified_at=utc(answer["LastModifiedTime"]),
        failure_reason=answer.get("FailureReason", ""),
        pending_config=(answer.get("PendingDeploymentSummary") or {}).get("EndpointConfigName", ""),
        variants=tuple(_variant(v) for v in answer.get("ProductionVariants", [])),
        capture_stopped=capture.get("CaptureStatus") == "Stopped",
        asynchronous=bool(answer.get("AsyncInferenceConfig")),
    )


def _variant(variant: Mapping[str, Any]) -> VariantSight:
    return VariantSight(
        variant["VariantName"],
        variant.get("CurrentInstanceCount", 0),
        variant.get("DesiredInstanceCount", variant.get("CurrentInstanceCount", 0)),
        float(variant.get("CurrentWeight", 1.0)),
        float(variant.get("DesiredWeight", variant.get("CurrentWeight", 1.0))),
        tuple((i.get("SpecifiedImage", ""), i.get("ResolvedImage", "")) for i in variant.get("DeployedImages", [])),
        tuple(
            (pool["InstanceType"], pool.get("CurrentInstanceCount", 0)) for pool in variant.get("InstancePools") or ()
        ),
    )


def alarm_body(alarm: Mapping[str, Any]) -> dict[str, Any]:
    """A row of DescribeAlarms as PutMetricAlarm takes it."""
    return {k: v for k, v in alarm.items() if k not in OUTPUT_ONLY_OF_ALARM}


def utc(value: datetime) -> datetime:
    """The same moment in UTC."""
    return value.astimezone(UTC)
