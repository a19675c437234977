"""Deployment of a new fleet (canary, linear, rolling, or all at once with baking), and its rollback alarms.

Limits: SageMaker DeploymentConfig. A canary or a step is at most half of the instances, so one instance can only be
replaced at once; it is then baked with both fleets up. Marketplace images and Inf1 fall back to all at once without
baking, silently; rolling excludes endpoints of several variants. What rolls forward for want of quota rolls back in the
same batches: without `RollbackMaximumBatchSize` AWS starts the whole old fleet at once (API RollingUpdatePolicy).

The alarms watch the dimension of the *new* configuration: otherwise an error of the old fleet rolls the change back.
ModelLatency is in microseconds. Errors are counted by Sum, because the Average of a 0/1 metric never exceeds 1.
Missing data does not breach: no traffic is no proof, and probation takes over from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rightsizer.changes.baseline import BASELINE_FACTOR, slow_before_s, usual_p95_s
from rightsizer.domain.plan import Step, StepKind

LIMIT_LOW_S, LIMIT_HIGH_S = 600, 28_800
PROVISION_S = 3_600
"""Allowance for creating the fleet and passing its health checks."""
LINEAR_FROM = 10
"""Instances from which the traffic is shifted in steps."""
STEP_PERCENT = 20
LEAST_SHARE = 20
"""A batch is at least one part in so many of the instances (RollingUpdatePolicy.MaximumBatchSize: 5 to 50 %)."""
WAIT_LIMIT_S = 3_600
MOST = 10
"""AutoRollbackConfiguration takes 1 to 10 alarms."""
PERIOD_S = 60
PERIODS = 3
BREACHES = 2
ERRORS_PER_MINUTE = 5.0
"""Fewer bad requests than this in a minute are no evidence."""
LATENCY_FACTOR = 2.0
"""Without an objective: how much slower than before is too slow."""


@dataclass(frozen=True, slots=True)
class Guardrail:
    """The DeploymentConfig of UpdateEndpoint, and what it means."""

    config: dict[str, Any]
    limit_s: int
    """The longest that the deployment may take, seconds."""
    sentence: str


@dataclass(frozen=True, slots=True)
class FleetExchange:
    """The two fleets of a deployment, and what limits how one takes the place of the other."""

    old_counts: Sequence[int]
    """Instances of each variant of the fleet that serves."""
    counts: Sequence[int]
    """Instances of each variant of the new fleet."""
    headroom: int | None = None
    """Instances that the quota still allows; None where it is unknown."""
    excluded: str = ""
    """Why AWS ignores guardrails here; empty where it does not."""
    usd_per_hour: Decimal = Decimal(0)
    """Price of the whole new fleet."""

    @property
    def smallest(self) -> int:
        """Instances of the smallest variant of both fleets.

        AWS does not say which of the two a canary is a share of.
        """
        return min((*self.counts, *self.old_counts), default=1)


def choose_guardrail(
    fleets: FleetExchange, alarms: Sequence[str], bake_s: int, *, overlap_limit_usd: Decimal | None = None
) -> Guardrail:
    """The strongest guardrail that this endpoint can have.

    `overlap_limit_usd` is the most that the time with both fleets may cost. Total: never raises.
    """
    bake = max(0, min(bake_s, WAIT_LIMIT_S))
    smallest, total, headroom = fleets.smallest, sum(fleets.counts), fleets.headroom
    if fleets.excluded:
        return _blue_green(_traffic("ALL_AT_ONCE"), 0, alarms, f"all at once without baking: {fleets.excluded}")
    if len(fleets.counts) == 1 and smallest >= 2 and headroom is not None and headroom < total:
        return _rolling(smallest, total, bake, alarms, headroom)
    steps = 100 // STEP_PERCENT
    linear_cost = fleets.usd_per_hour * steps * bake / 3600
    if smallest >= LINEAR_FROM and (overlap_limit_usd is None or linear_cost <= overlap_limit_usd):
        size = {"LinearStepSize": {"Type": "CAPACITY_PERCENT", "Value": STEP_PERCENT}}
        text = f"linear, {STEP_PERCENT} % at a time with {bake} s between"
        return _blue_green(_traffic("LINEAR", bake, size), bake, alarms, text, waits=(steps - 1) * bake)
    if smallest >= 2:
        size = {"CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1}}
        text = f"canary of 1 of {smallest} instances for {bake} s, then baking for {bake} s"
        return _blue_green(_traffic("CANARY", bake, size), bake, alarms, text, waits=bake)
    return _blue_green(_traffic("ALL_AT_ONCE"), bake, alarms, f"all at once (one instance), then baking for {bake} s")


def rollback_deployment(
    forward: Mapping[str, Any], live: int, wanted: int, headroom: int | None = None
) -> dict[str, Any]:
    """The DeploymentConfig of the return from a deployment under `forward`; empty: all at once, without baking.

    `live` and `wanted` are the instances now and after the return, `headroom` those that the quota still allows (None:
    unknown). A return has no alarms and no pause: what serves now is what has to go. Total.
    """
    policy = forward.get("RollingUpdatePolicy")
    smallest, total = min(live, wanted), max(live, wanted)
    if not policy or smallest < 2:
        return {}
    room = min(int(policy["MaximumBatchSize"]["Value"]), total if headroom is None else headroom)
    size = _instances(_batch(smallest, total, room))
    return {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": size,
            "WaitIntervalInSeconds": 0,
            "MaximumExecutionTimeoutInSeconds": LIMIT_HIGH_S,
            "RollbackMaximumBatchSize": size,
        }
    }


def _least_batch(count: int) -> int:
    """The fewest instances that a rolling deployment of `count` starts at a time: 5 % of them, rounded up."""
    return max(1, -(-count // LEAST_SHARE))


def _batch(smallest: int, count: int, headroom: int) -> int:
    return max(_least_batch(count), min(smallest // 2, headroom))


def _instances(value: int) -> dict[str, Any]:
    return {"Type": "INSTANCE_COUNT", "Value": value}


def _traffic(kind: str, interval_s: int = 0, size: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The TrafficRoutingConfiguration: how requests move to the new fleet, and the wait between two parts."""
    return {"Type": kind, "WaitIntervalInSeconds": interval_s, **(size or {})}


def _blue_green(
    traffic: Mapping[str, Any], bake: int, alarms: Sequence[str], sentence: str, waits: int = 0
) -> Guardrail:
    limit = _time_limit_s(waits + bake)
    policy = {
        "TrafficRoutingConfiguration": traffic,
        "TerminationWaitInSeconds": bake,
        "MaximumExecutionTimeoutInSeconds": limit,
    }
    return Guardrail({"BlueGreenUpdatePolicy": policy, **_rollback(alarms)}, limit, sentence)


def _rolling(smallest: int, count: int, bake: int, alarms: Sequence[str], headroom: int) -> Guardrail:
    batch = _batch(smallest, count, headroom)
    batches = -(-count // batch)
    interval = min(bake, (LIMIT_HIGH_S - PROVISION_S) // batches)
    limit = _time_limit_s(batches * interval)
    policy = {
        "MaximumBatchSize": _instances(batch),
        "WaitIntervalInSeconds": interval,
        "MaximumExecutionTimeoutInSeconds": limit,
        "RollbackMaximumBatchSize": _instances(batch),
    }
    text = f"rolling, {batch} of {count} instances at a time, because the quota leaves room for {headroom} more"
    return Guardrail({"RollingUpdatePolicy": policy, **_rollback(alarms)}, limit, text)


def _rollback(alarms: Sequence[str]) -> dict[str, Any]:
    """1 to 10 alarms, or none at all."""
    return {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": a} for a in alarms[:10]]}} if alarms else {}


def _time_limit_s(waits_s: int) -> int:
    """Time limit of a deployment, seconds: longer than all its waits together, within 600 to 28,800."""
    return max(LIMIT_LOW_S, min(LIMIT_HIGH_S, waits_s + PROVISION_S))


@dataclass(frozen=True, slots=True)
class _Alarm:
    """One alarm before it has a name: names are made of its parts, and never taken apart again."""

    about: str
    """The variant or the inference component that it watches."""
    label: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WatchedConfig:
    """The new configuration of an endpoint, which the roll-back alarms of its deployment watch."""

    endpoint: str
    config: str
    variants: Sequence[str]


def rollback_alarms(
    change_id: str,
    watched: WatchedConfig,
    prefix: str,
    objective_p95_s: float | None,
    baseline: Mapping[str, float],
) -> tuple[Step, ...]:
    """PutMetricAlarm steps for 5XX errors, model errors and p95 latency of each variant; at most 10, errors first.

    `baseline` may hold ``errors_per_minute`` and ``p95_s``, also for each variant (``p95_s/NAME``), and what
    `changes.baseline` says. The p95 alarm needs an objective or a baseline.
    """
    errors, not_served = _error_limits(baseline)
    alarms: list[_Alarm] = []
    for variant in watched.variants:
        alarms.append(_error_alarm(variant, "5xx", "Invocation5XXErrors", errors))
        before = usual_p95_s(baseline, variant)
        slow = objective_p95_s or (LATENCY_FACTOR * before if before else None)
        if slow is not None:
            habit = slow_before_s(baseline, variant)
            slow = LATENCY_FACTOR * habit if habit > slow else slow  # no alarm that the old fleet would ring too
            body = {
                "AlarmDescription": f"p95 latency above {slow * 1000:.0f} ms",
                "MetricName": "ModelLatency",
                "ExtendedStatistic": "p95",
                "Threshold": slow * 1_000_000,
                "ComparisonOperator": "GreaterThanThreshold",
                "EvaluateLowSampleCountPercentile": "ignore",
            }
            alarms.append(_Alarm(variant, "p95", body))
    alarms += [
        _error_alarm(variant, "model-errors", "InvocationModelErrors", not_served) for variant in watched.variants
    ]
    return tuple(
        _put_alarm_step(change_id, watched.endpoint, _dimensions(watched, alarm.about), prefix, alarm)
        for alarm in alarms[:MOST]
    )


def component_alarms(change_id: str, component: str, prefix: str, baseline: Mapping[str, float]) -> tuple[Step, ...]:
    """PutMetricAlarm steps for 5XX and model errors of one inference component, while its copies are replaced.

    Old and new copies share the dimension InferenceComponentName, so errors of either count.
    """
    errors, not_served = _error_limits(baseline)
    where = [{"Name": "InferenceComponentName", "Value": component}]
    bodies = (
        _error_alarm(component, "5xx", "Invocation5XXErrors", errors),
        _error_alarm(component, "model-errors", "InvocationModelErrors", not_served),
    )
    return tuple(_put_alarm_step(change_id, component, where, prefix, body) for body in bodies)


def _error_limits(baseline: Mapping[str, float]) -> tuple[float, float]:
    """Errors a minute from which the alarms for 5XX and for model errors ring.

    Model errors hold what the container answers by 4XX too (CloudWatch metrics of endpoints): a full server rings by
    them, and the mistakes that its callers made before do not.
    """
    failed, refused = baseline.get("errors_per_minute", 0.0), baseline.get("refused_per_minute", 0.0)
    limit = max(ERRORS_PER_MINUTE, BASELINE_FACTOR * failed)
    return limit, max(limit, BASELINE_FACTOR * (failed + refused))


def _error_alarm(about: str, label: str, metric: str, errors: float) -> _Alarm:
    body = {
        "AlarmDescription": f"{metric} of at least {errors:.0f} in a minute",
        "MetricName": metric,
        "Statistic": "Sum",
        "Threshold": errors,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    }
    return _Alarm(about, label, body)


def _dimensions(watched: WatchedConfig, variant: str) -> list[dict[str, str]]:
    return [
        {"Name": "EndpointName", "Value": watched.endpoint},
        {"Name": "VariantName", "Value": variant},
        {"Name": "EndpointConfigName", "Value": watched.config},
    ]


def _put_alarm_step(change_id: str, watched: str, where: list[dict[str, str]], prefix: str, alarm: _Alarm) -> Step:
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
