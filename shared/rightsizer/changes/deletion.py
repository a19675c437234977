"""Deletion in two steps: the idle check of a marked endpoint, and the script that restores it.

Law 1 holds here too: a request ends the wait, and silence counts only while the instances publish their utilisation.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rightsizer.changes.baseline import REQUESTS
from rightsizer.domain.change import Change, FailureClass
from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
from rightsizer.domain.live_state import ConfigSight, ProofVerdict
from rightsizer.domain.plan import Before, command, region_option, with_policy_places
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.usage import MetricStatistic, MetricWindow, NoMetrics, unread_reason

ALIVE = (MetricStatistic("MemoryUtilization", "Maximum"), MetricStatistic("GPUMemoryUtilization", "Maximum"))
"""What an instance publishes whether or not it serves."""
SEEN_SHARE = 0.9
"""Of the periods that must have utilisation for silence to count."""
READ_AGAIN = timedelta(days=7)
"""How much longer than the wait it is read again, where what was published could not all be read."""
OUTPUT_ONLY = frozenset({"EndpointConfigName", "EndpointConfigArn", "CreationTime"})


def deletion_verdict(change: Change, windows: Sequence[MetricWindow | NoMetrics], now: datetime) -> ProofVerdict:
    """Bad once a request came, proven when the wait is over in silence, given up without datapoints. Total.

    What was read in part proves nothing: it is read again, and given up after `READ_AGAIN`.
    """
    since, lasts = change.turned_at or now, timedelta(seconds=change.plan.test_s)
    requests = sum(_values(window, REQUESTS, sum) for window in windows)
    if requests > 0:
        text = f"{requests:,.0f} requests came after it was marked for deletion, so it is in use"
        return ProofVerdict("bad", Reason(Code.CHANGED_SINCE, text), FailureClass.OUTSIDE)
    if now - since < lasts:
        text = f"marked for deletion; nobody called it yet, and it is watched until {time_text(since + lasts)}"
        return ProofVerdict("not-yet", Reason(Code.UNPROVEN, text))
    missed = unread_reason(windows)  # a request could have been missed
    if missed is not None:
        text = f"no request was seen, but not all could be read: {missed.sentence}"
        given_up = now - since >= lasts + READ_AGAIN
        return ProofVerdict("given-up" if given_up else "not-yet", Reason(Code.UNPROVEN, text))
    shares = [_alive_share(window) for window in windows]
    if not shares or min(shares) < SEEN_SHARE:
        text = f"CloudWatch has utilisation for {100 * min(shares, default=0.0):.0f} % of the wait only"
        return ProofVerdict("given-up", Reason(Code.NO_DATAPOINTS, f"{text}; missing is not idle"))
    text = f"no request in the {lasts.days} days since it was marked; its owner may delete it"
    return ProofVerdict("proven", Reason(Code.IDLE, text))


def restore_script(ref: EndpointRef, config: ConfigSight, before: Before) -> tuple[str, ...]:
    """Lines of a shell script that makes the endpoint again, with its tags, counts, autoscaling and alarms.

    The configuration is kept, so its line is only for the case that somebody removed it. Autoscaling is registered
    once the endpoint is in service, and a step policy has another ARN then: the line of its alarm asks for it first.
    """
    body = {k: v for k, v in config.body.items() if k not in OUTPUT_ONLY and v is not None}
    created: dict[str, Any] = {"EndpointConfigName": config.name, **body, "Tags": _tags(config.tags)}
    endpoint = {"EndpointName": ref.name, "EndpointConfigName": config.name, "Tags": _tags(before.tags)}
    counts = [
        {"VariantName": v.name, "DesiredInstanceCount": v.count, "DesiredWeight": v.weight} for v in before.variants
    ]
    region = ref.region
    lines = [
        "#!/bin/sh -e",
        f"# Brings back endpoint {ref.name}. Only if its configuration is gone as well:",
        f"# {command('sagemaker', 'CreateEndpointConfig', created, region)}",
        command("sagemaker", "CreateEndpoint", endpoint, region),
        f"aws sagemaker wait endpoint-in-service{region_option(region)} --endpoint-name {ref.name}",
    ]
    written = {v.get("VariantName"): v.get("InitialInstanceCount") for v in body.get("ProductionVariants", [])}
    for row, variant in zip(counts, before.variants, strict=True):
        if written.get(variant.name) != variant.count:
            wanted = {"EndpointName": ref.name, "DesiredWeightsAndCapacities": [row]}
            lines.append(command("sagemaker", "UpdateEndpointWeightsAndCapacities", wanted, region))
    for target in before.scaling:
        lines += _scaling_lines(target, region)
    lines += [
        command("cloudwatch", "PutMetricAlarm", with_policy_places(alarm, before.scaling), region)
        for alarm in before.alarms
    ]
    return tuple(lines)


def _scaling_lines(target: ScalableTarget, region: str) -> list[str]:
    who = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": target.resource_id,
        "ScalableDimension": target.dimension,
    }
    bounds = {**who, "MinCapacity": target.minimum, "MaxCapacity": target.maximum}
    if any(target.suspended.values()):
        bounds["SuspendedState"] = dict(target.suspended)
    if tags := {k: v for k, v in target.tags.items() if not k.lower().startswith("aws:")}:
        bounds["Tags"] = tags
    service = "application-autoscaling"
    made = {"PolicyARN", "Alarms", "CreationTime", "ScheduledActionARN"}
    policies = [{k: v for k, v in row.items() if k not in made} for row in target.policies]
    actions = [{k: v for k, v in row.items() if k not in made} for row in target.scheduled]
    return [
        command(service, "RegisterScalableTarget", bounds, region),
        *(command(service, "PutScalingPolicy", row, region) for row in policies),
        *(command(service, "PutScheduledAction", row, region) for row in actions),
    ]


def _tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": k, "Value": v} for k, v in sorted(tags.items()) if not k.startswith("aws:")]


def _values(window: MetricWindow | NoMetrics, signal: MetricStatistic, how: Any) -> float:
    series = window.series.get(signal) if isinstance(window, MetricWindow) else None
    return float(how(v for v in series.values if v == v)) if series is not None else 0.0


def _alive_share(window: MetricWindow | NoMetrics) -> float:
    """Share of the periods in which the instances said that they live."""
    if not isinstance(window, MetricWindow):
        return 0.0
    best = 0.0
    for signal in ALIVE:
        series = window.series.get(signal)
        if series is not None and len(series.values):
            best = max(best, sum(1 for v in series.values if v == v) / len(series.values))
    return best
