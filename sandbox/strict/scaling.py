"""Application Auto Scaling. Quotas: its guide, "Quotas for Application Auto Scaling"."""

import re
from collections.abc import Mapping
from itertools import pairwise
from zoneinfo import available_timezones

from sandbox.strict import Check, Key, Params, shape, state
from sandbox.strict.words import Broken, outside, twice

SERVICE = "application-autoscaling"
INVALID = "ValidationException"
MISSING = "ObjectNotFoundException"
_STEP, _TRACKING = "StepScalingPolicyConfiguration", "TargetTrackingScalingPolicyConfiguration"
_PREDEFINED = frozenset(
    {
        "SageMakerVariantInvocationsPerInstance",
        "SageMakerVariantProvisionedConcurrencyUtilization",
        "SageMakerInferenceComponentInvocationsPerCopy",
        "SageMakerVariantConcurrentRequestsPerModelHighResolution",
        "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution",
    }
)
_BARE = ("MetricName", "Namespace", "Statistic")


def _customized(p: Params) -> Params:
    found: Params = (p.get(_TRACKING) or {}).get("CustomizedMetricSpecification") or {}
    return found


def _neither_or_both_metrics(p: Params) -> bool:
    tracking = p.get(_TRACKING)
    given = ("PredefinedMetricSpecification", "CustomizedMetricSpecification")
    return tracking is not None and sum(name in tracking for name in given) != 1


def _no_whole_metric(p: Params) -> bool:
    metric = _customized(p)
    if not metric:
        return False
    bare = [name for name in _BARE if name in metric]
    return bool(bare) if "Metrics" in metric else len(bare) < len(_BARE)


def _queries(p: Params) -> list[Params]:
    return list(_customized(p).get("Metrics") or [])


def _bad_query(p: Params) -> bool:
    return any(("Expression" in q) == ("MetricStat" in q) for q in _queries(p))


def _bad_ids(p: Params) -> bool:
    ids = [q["Id"] for q in _queries(p)]
    return twice(ids) or any(not re.fullmatch(r"[a-z]\w*", one, re.ASCII) for one in ids)


def _several_results(p: Params) -> bool:
    queries = _queries(p)
    return len(queries) > 1 and sum(q.get("ReturnData", True) for q in queries) != 1


def _predefined(p: Params) -> Params:
    found: Params = (p.get(_TRACKING) or {}).get("PredefinedMetricSpecification") or {}
    return found


def _other_kind_of_target(p: Params) -> bool:
    metric = str(_predefined(p).get("PredefinedMetricType", ""))
    of_component = str(p.get("ScalableDimension", "")).startswith("sagemaker:inference-component")
    return metric in _PREDEFINED and metric.startswith("SageMakerInferenceComponent") != of_component


def _negative_cooldown(p: Params) -> bool:
    config = p.get(_TRACKING) or {}
    return any(config.get(name, 0) < 0 for name in ("ScaleInCooldown", "ScaleOutCooldown"))


def _adjustments(p: Params) -> list[Params]:
    return list((p.get(_STEP) or {}).get("StepAdjustments") or [])


def _bounds_turned(p: Params) -> bool:
    return any(
        a["MetricIntervalUpperBound"] <= a["MetricIntervalLowerBound"]
        for a in _adjustments(p)
        if "MetricIntervalUpperBound" in a and "MetricIntervalLowerBound" in a
    )


def _ranges(p: Params) -> bool:
    """StepAdjustment: no gap, no overlap, no step without either bound, and no end that is left open by one sign."""
    infinite = float("inf")
    rows = [
        (a.get("MetricIntervalLowerBound", -infinite), a.get("MetricIntervalUpperBound", infinite))
        for a in _adjustments(p)
    ]
    rows.sort()
    if not rows:
        return False
    whole = (-infinite, infinite) in rows
    torn = any(upper != lower for (_, upper), (lower, _) in pairwise(rows))
    low, high = rows[0][0], max(upper for _, upper in rows)
    return whole or torn or -infinite < low < 0 or 0 < high < infinite


def _no_adjustment_type(p: Params) -> bool:
    return _STEP in p and "AdjustmentType" not in p[_STEP]


def _exact_below_zero(p: Params) -> bool:
    exact = (p.get(_STEP) or {}).get("AdjustmentType") == "ExactCapacity"
    return exact and any(a["ScalingAdjustment"] < 0 for a in _adjustments(p))


def _capacity_turned(p: Params) -> bool:
    action = p.get("ScalableTargetAction") or {}
    return bool(action.get("MinCapacity", 0) > action.get("MaxCapacity", float("inf")))


def _unknown_zone(p: Params) -> bool:
    return "Timezone" in p and p["Timezone"] not in available_timezones()


def _window_turned(p: Params) -> bool:
    return "StartTime" in p and "EndTime" in p and p["StartTime"] >= p["EndTime"]


def _dimension_alone(*ids: str) -> Broken:
    return lambda p: "ScalableDimension" in p and not any(name in p for name in ids)


_TARGET = shape(SERVICE, "a namespace, resource id or dimension outside its enum, length or pattern")
_NAMES = state("dimension", "a dimension of another service than SageMaker", INVALID)
_NO_TARGET = state("no target", "a resource that is no registered target", MISSING)
_TOKEN = state("token", "a token that it did not give", "InvalidNextTokenException")

CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (SERVICE, "RegisterScalableTarget"): (
        _TARGET,
        _NAMES,
        Check(
            "negative",
            "a capacity below 0",
            INVALID,
            lambda p: min(p.get("MinCapacity", 0), p.get("MaxCapacity", 0)) < 0,
        ),
        state("resource", "a variant or component that does not exist", INVALID),
        state("kind", "a dimension that does not fit a serverless variant", INVALID),
        state("burstable", "a burstable instance type", INVALID, source="SageMaker guide, endpoint-auto-scaling"),
        state("first bounds", "a new target without both bounds", INVALID),
        state(
            "least",
            "a minimum of 0 for a real-time variant",
            INVALID,
            source="SageMaker guide, endpoint-auto-scaling-zero-instances",
        ),
        state("turned", "a maximum below the minimum", INVALID),
        state("tags again", "tags for a target that exists", INVALID),
        state("aws tags", "tag keys that begin with `aws:`", INVALID),
    ),
    (SERVICE, "DeregisterScalableTarget"): (_TARGET, _NAMES, _NO_TARGET),
    (SERVICE, "PutScalingPolicy"): (
        _TARGET,
        _NAMES,
        _NO_TARGET,
        state("type", "a policy type that SageMaker has not (PredictiveScaling)", INVALID),
        state("configuration", "a policy without the configuration of its type", INVALID),
        Check("metric", "target tracking without exactly one metric", INVALID, _neither_or_both_metrics),
        Check(
            "custom",
            "a customized metric with `Metrics` and a single metric, or half a metric",
            INVALID,
            _no_whole_metric,
        ),
        Check("query", "a query without exactly one of Expression and MetricStat", INVALID, _bad_query),
        Check(
            "ids",
            "query ids that are not unique, begin with no lower-case letter, or have odd letters",
            INVALID,
            _bad_ids,
        ),
        Check("results", "several queries of which not exactly one returns data", INVALID, _several_results),
        Check(
            "predefined",
            "a predefined metric of another service",
            INVALID,
            lambda p: _predefined(p) and _predefined(p)["PredefinedMetricType"] not in _PREDEFINED,
        ),
        Check("fits", "a predefined metric of another kind of target", INVALID, _other_kind_of_target),
        state("one metric", "a second target-tracking policy of the same metric", INVALID, source="guide"),
        Check("cooldown", "a negative cooldown", INVALID, _negative_cooldown),
        Check("label", "a ResourceLabel", INVALID, lambda p: "ResourceLabel" in _predefined(p)),
        Check(
            "value",
            "a target value outside ±2^360",
            INVALID,
            lambda p: abs((p.get(_TRACKING) or {}).get("TargetValue", 0)) > 2**360,
        ),
        Check("steps", "step scaling without a step", INVALID, lambda p: _STEP in p and not _adjustments(p)),
        Check(
            "many steps",
            "more than 20 steps",
            "LimitExceededException",
            lambda p: len(_adjustments(p)) > 20,
            source="quotas",
        ),
        Check("step bounds", "a step whose upper bound is not above its lower one", INVALID, _bounds_turned),
        Check("ranges", "steps with a gap, an overlap, an open end below or above, or no bound", INVALID, _ranges),
        Check("adjustment", "step scaling without AdjustmentType", INVALID, _no_adjustment_type),
        Check("exact", "a negative ExactCapacity", INVALID, _exact_below_zero),
    ),
    (SERVICE, "DeleteScalingPolicy"): (
        _TARGET,
        _NAMES,
        _NO_TARGET,
        state("no policy", "a policy that does not exist", MISSING),
    ),
    (SERVICE, "PutScheduledAction"): (
        _TARGET,
        _NAMES,
        _NO_TARGET,
        state("new", "a new action without schedule or capacities", INVALID),
        state("schedule", "a schedule that is no at, rate or cron expression", INVALID),
        state("cron", "a cron without six fields, or with values outside a field", INVALID),
        state("days", "a cron without exactly one `?` for the days of the month or of the week", INVALID),
        state("many", "more than 200 actions of one target", "LimitExceededException", source="quotas"),
        Check("zone", "a time zone that IANA has not", INVALID, _unknown_zone),
        Check("window", "an end that is not after the start", INVALID, _window_turned),
        Check("turned", "a maximum below the minimum", INVALID, _capacity_turned),
    ),
    (SERVICE, "DescribeScalableTargets"): (
        shape(SERVICE, "more than 50 resource ids"),
        Check("alone", "a dimension without a resource id", INVALID, _dimension_alone("ResourceIds")),
        Check("page", "pages of other than 1 to 50", INVALID, outside("MaxResults", 1, 50)),
        _TOKEN,
    ),
    (SERVICE, "DescribeScalingPolicies"): (
        shape(SERVICE, "more than 50 policy names"),
        Check("alone", "a dimension without a resource id", INVALID, _dimension_alone("ResourceId")),
        Check("page", "pages of other than 1 to 10", INVALID, outside("MaxResults", 1, 10)),
        _TOKEN,
    ),
    (SERVICE, "DescribeScheduledActions"): (
        shape(SERVICE, "more than 50 action names"),
        Check("alone", "a dimension without a resource id", INVALID, _dimension_alone("ResourceId")),
        Check("page", "pages of other than 1 to 50", INVALID, outside("MaxResults", 1, 50)),
        _TOKEN,
    ),
    (SERVICE, "ListTagsForResource"): (
        shape(SERVICE, "an ARN that is none of a scalable target"),
        state("unknown", "a target that does not exist", "ResourceNotFoundException"),
    ),
}
