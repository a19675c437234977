"""Specify the alarms that roll a deployment back.

They watch the dimension of the *new* configuration: otherwise an error of the old fleet rolls the change back.
ModelLatency is in microseconds. Errors are counted by Sum, because the Average of a 0/1 metric never exceeds 1.
Missing data does not breach: no traffic is no proof, and probation takes over from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rightsizer.domain.plan import Step, StepKind

MOST = 10
"""AutoRollbackConfiguration takes 1 to 10 alarms."""
PERIOD_S = 60
PERIODS = 3
BREACHES = 2
ERRORS_PER_MINUTE = 5.0
"""Fewer bad requests than this in a minute are no evidence."""
BASELINE_FACTOR = 3.0
LATENCY_FACTOR = 2.0
"""Without an objective: how much slower than before is too slow."""


@dataclass(frozen=True, slots=True)
class _Alarm:
    """One alarm before it has a name: names are made of its parts, and never taken apart again."""

    about: str
    """The variant or the inference component that it watches."""
    label: str
    body: Mapping[str, Any]


def rollback_alarms(
    change_id: str,
    endpoint: str,
    variants: Sequence[str],
    config: str,
    prefix: str,
    objective_p95_s: float | None,
    baseline: Mapping[str, float],
) -> tuple[Step, ...]:
    """PutMetricAlarm steps for 5XX errors, model errors and p95 latency of each variant; at most 10, errors first.

    `baseline` may hold ``errors_per_minute`` and ``p95_s``. The p95 alarm needs an objective or a baseline.
    """
    errors = max(ERRORS_PER_MINUTE, BASELINE_FACTOR * baseline.get("errors_per_minute", 0.0))
    slow = objective_p95_s or (LATENCY_FACTOR * baseline["p95_s"] if baseline.get("p95_s") else None)
    made: list[_Alarm] = []
    for variant in variants:
        made.append(_error(variant, "5xx", "Invocation5XXErrors", errors))
        if slow is not None:
            body = {
                "AlarmDescription": f"p95 latency above {slow * 1000:.0f} ms",
                "MetricName": "ModelLatency",
                "ExtendedStatistic": "p95",
                "Threshold": slow * 1_000_000,
                "ComparisonOperator": "GreaterThanThreshold",
                "EvaluateLowSampleCountPercentile": "ignore",
            }
            made.append(_Alarm(variant, "p95", body))
    made += [_error(variant, "model-errors", "InvocationModelErrors", errors) for variant in variants]
    return tuple(
        _put(change_id, endpoint, _dimensions(endpoint, alarm.about, config), prefix, alarm) for alarm in made[:MOST]
    )


def component_alarms(change_id: str, component: str, prefix: str, baseline: Mapping[str, float]) -> tuple[Step, ...]:
    """PutMetricAlarm steps for 5XX and model errors of one inference component, while its copies are replaced.

    Old and new copies share the dimension InferenceComponentName, so errors of either count.
    """
    errors = max(ERRORS_PER_MINUTE, BASELINE_FACTOR * baseline.get("errors_per_minute", 0.0))
    where = [{"Name": "InferenceComponentName", "Value": component}]
    bodies = (
        _error(component, "5xx", "Invocation5XXErrors", errors),
        _error(component, "model-errors", "InvocationModelErrors", errors),
    )
    return tuple(_put(change_id, component, where, prefix, body) for body in bodies)


def _error(about: str, label: str, metric: str, errors: float) -> _Alarm:
    body = {
        "AlarmDescription": f"{metric} of at least {errors:.0f} in a minute",
        "MetricName": metric,
        "Statistic": "Sum",
        "Threshold": errors,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    }
    return _Alarm(about, label, body)


def _dimensions(endpoint: str, variant: str, config: str) -> list[dict[str, str]]:
    return [
        {"Name": "EndpointName", "Value": endpoint},
        {"Name": "VariantName", "Value": variant},
        {"Name": "EndpointConfigName", "Value": config},
    ]


def _put(change_id: str, watched: str, where: list[dict[str, str]], prefix: str, alarm: _Alarm) -> Step:
    name = f"{prefix}{change_id}-{alarm.about}-{alarm.label}"
    params = {
        **alarm.body,
        "AlarmName": name,
        "AlarmDescription": f"{alarm.body['AlarmDescription']} on {watched} during change {change_id} (temporary)",
        "Namespace": "AWS/SageMaker",
        "Dimensions": where,
        "Period": PERIOD_S,
        "EvaluationPeriods": PERIODS,
        "DatapointsToAlarm": BREACHES,
        "TreatMissingData": "notBreaching",
        "Tags": [{"Key": "rightsizer:change", "Value": change_id}],
    }
    return Step(StepKind.PUT_ALARM, name, params)
