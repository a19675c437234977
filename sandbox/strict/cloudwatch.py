"""CloudWatch. Its codes are ValidationError, and those of single parameters where the API names them."""

import json
import re
from collections.abc import Mapping
from typing import Any

from sandbox.strict import Check, Key, Params, shape, state
from sandbox.strict.words import alone, dimensions_of, odd_dimension, other_than, same_tag_twice, together, twice

SERVICE = "cloudwatch"
ERROR, COMBINATION, VALUE = "ValidationError", "InvalidParameterCombination", "InvalidParameterValue"
_PAGES = ("MaxRecords", "NextToken")
_ONE_METRIC = ("Namespace", "MetricName", "Dimensions", "Period", "Unit", "Statistic", "ExtendedStatistic")
_RANGE = r"\((-?[\d.]*%?):(-?[\d.]*%?)\)"
_EXTENDED = re.compile(rf"(p|tm|tc|ts|wm)\d{{1,2}}(\.\d{{1,10}})?|p100|IQM|(PR|TC|TM|TS|WM){_RANGE}")
_STATIC = ("GreaterThanOrEqualToThreshold", "GreaterThanThreshold", "LessThanThreshold", "LessThanOrEqualToThreshold")
_ANOMALY = ("LessThanLowerOrGreaterThanUpperThreshold", "LessThanLowerThreshold", "GreaterThanUpperThreshold")
_EVALUATED = (
    "Metrics", "Threshold", "ComparisonOperator", "ThresholdMetricId", "EvaluationPeriods", "DatapointsToAlarm"
)  # fmt: skip
_WALL_CLOCK = (60, 300, 3600, 86_400, 604_800)
_ACTIONS = ("OKActions", "AlarmActions", "InsufficientDataActions")


def _metrics(queries: list[Params]) -> list[Params]:
    return [q["MetricStat"]["Metric"] for q in queries if "MetricStat" in q]


def _odd_dimensions(p: Params) -> bool:
    metrics = [p, *_metrics(p.get("Metrics") or p.get("MetricDataQueries") or [])]
    return any(odd_dimension(d) for d in dimensions_of(metrics))


def _bad_ids(rows: list[Params]) -> bool:
    ids = [row["Id"] for row in rows]
    return twice(ids) or any(not re.fullmatch(r"[a-z]\w*", one, re.ASCII) for one in ids)


def _both_or_neither(rows: list[Params]) -> bool:
    return any(("Expression" in row) == ("MetricStat" in row) for row in rows)


def _odd_period(seconds: Any, short: tuple[int, ...]) -> bool:
    return seconds is not None and seconds not in short and bool(seconds <= 0 or seconds % 60)


def _odd_periods(rows: list[Params]) -> bool:
    periods = [row.get("Period") for row in rows] + [row["MetricStat"]["Period"] for row in rows if "MetricStat" in row]
    return any(_odd_period(seconds, (1, 5, 10, 20, 30)) for seconds in periods)


def _queries(p: Params) -> list[Params]:
    return list(p.get("MetricDataQueries") or [])


def _insights(p: Params) -> bool:
    return sum(str(q.get("Expression", "")).lstrip().upper().startswith("SELECT") for q in _queries(p)) > 1


def _single(p: Params) -> bool:
    return "Metrics" not in p and "EvaluationCriteria" not in p


def _no_metric(p: Params) -> bool:
    return _single(p) and not all(name in p for name in ("MetricName", "Namespace", "Period"))


def _statistics(p: Params) -> bool:
    return _single(p) and "MetricName" in p and ("Statistic" in p) == ("ExtendedStatistic" in p)


def _period(p: Params) -> int:
    rows = p.get("Metrics") or [{}]
    found = p.get("Period") or rows[0].get("Period") or (rows[0].get("MetricStat") or {}).get("Period")
    return int(found or 300)


def _too_long(p: Params) -> bool:
    period = _period(p)
    return bool(period * p.get("EvaluationPeriods", 0) > (604_800 if period >= 3600 else 86_400))


def _results(p: Params) -> bool:
    return "Metrics" in p and sum(bool(row.get("ReturnData", True)) for row in p["Metrics"]) != 1


def _no_arn(p: Params) -> bool:
    return any(not action.startswith("arn:") for key in _ACTIONS for action in p.get(key) or [])


def _bare(p: Params) -> bool:
    needed = ("EvaluationPeriods", "ComparisonOperator")
    return "EvaluationCriteria" not in p and any(name not in p for name in needed)


def _scaling_action(p: Params) -> bool:
    actions = [action for key in _ACTIONS for action in p.get(key) or []]
    return "ThresholdMetricId" in p and any(one.split(":")[2:3] == ["autoscaling"] for one in actions)


def _large(p: Params) -> bool:
    return len(json.dumps(p, default=str).encode()) > 120 * 1024


def _criteria(p: Params) -> bool:
    return "EvaluationCriteria" in p and bool({*_ONE_METRIC, *_EVALUATED} & set(p))


def _interval(p: Params) -> bool:
    return ("EvaluationCriteria" in p) != ("EvaluationInterval" in p)


def _odd_wall_clock(p: Params) -> bool:
    return "WallClockWindow" in (p.get("EvaluationWindow") or {}) and _period(p) not in _WALL_CLOCK


def _propagated_twice(p: Params) -> bool:
    tags = (p.get("ActionConfiguration") or {}).get("AlarmTagsPropagation") or {}
    return "IncludedTagKeys" in tags and "ExcludedTagKeys" in tags


CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (SERVICE, "GetMetricData"): (
        shape(SERVICE, "more than 30 dimensions, a namespace that begins with a colon"),
        Check("queries", "more than 500 queries", ERROR, lambda p: len(_queries(p)) > 500, source="CloudWatch quotas"),
        Check(
            "ids",
            "ids that are not unique, or that begin with no lower-case letter",
            ERROR,
            lambda p: _bad_ids(_queries(p)),
        ),
        Check(
            "one",
            "a query without exactly one of Expression and MetricStat",
            ERROR,
            lambda p: _both_or_neither(_queries(p)),
        ),
        Check(
            "period",
            "a period other than 1, 5, 10, 20, 30 or a multiple of 60",
            ERROR,
            lambda p: _odd_periods(_queries(p)),
        ),
        Check(
            "dimensions",
            "dimensions that are blank, not printable ASCII, or begin with a colon",
            VALUE,
            _odd_dimensions,
        ),
        Check("insights", "more than one Metrics Insights query", ERROR, _insights),
        Check("points", "more than 100,800 datapoints", ERROR, lambda p: p.get("MaxDatapoints", 1) > 100_800),
        state("turned", "an end that is not after the start", ERROR),
        state("token", "a token that it did not give", "InvalidNextToken"),
    ),
    (SERVICE, "ListMetrics"): (
        shape(SERVICE, "more than 10 dimensions, RecentlyActive other than PT3H"),
        Check(
            "dimensions",
            "dimensions that are blank, not printable ASCII, or begin with a colon",
            VALUE,
            _odd_dimensions,
        ),
        state("token", "a token that it did not give", VALUE),
    ),
    (SERVICE, "DescribeAlarms"): (
        shape(SERVICE, "more than 100 names, pages of more than 100"),
        Check("prefix", "AlarmNames with AlarmNamePrefix", COMBINATION, together("AlarmNames", "AlarmNamePrefix")),
        Check("children", "ChildrenOfAlarmName with anything but a page", ERROR, alone("ChildrenOfAlarmName", *_PAGES)),
        Check("parents", "ParentsOfAlarmName with anything but a page", ERROR, alone("ParentsOfAlarmName", *_PAGES)),
        state("token", "a token that it did not give", "InvalidNextToken"),
    ),
    (SERVICE, "DescribeAlarmContributors"): (
        shape(SERVICE, "an empty name"),
        state("unknown", "an alarm that does not exist", "ResourceNotFound"),
        state("token", "a token that it did not give", "InvalidNextToken"),
    ),
    (SERVICE, "PutMetricAlarm"): (
        shape(SERVICE, "more than 5 actions or 30 dimensions, a name of more than 255 characters"),
        Check(
            "name",
            "a name with control characters",
            ERROR,
            lambda p: any(ord(c) < 32 or ord(c) == 127 for c in p["AlarmName"]),
        ),
        Check("mixed", "Metrics with members of a single metric", COMBINATION, together("Metrics", *_ONE_METRIC)),
        Check("none", "neither a whole metric nor Metrics", ERROR, _no_metric),
        Check("statistic", "a metric without exactly one of Statistic and ExtendedStatistic", COMBINATION, _statistics),
        Check(
            "extended",
            "an ExtendedStatistic that is none",
            VALUE,
            lambda p: "ExtendedStatistic" in p and not _EXTENDED.fullmatch(p["ExtendedStatistic"]),
        ),
        Check(
            "missing",
            "TreatMissingData other than breaching, notBreaching, ignore or missing (case-sensitive)",
            VALUE,
            other_than("TreatMissingData", "breaching", "notBreaching", "ignore", "missing"),
        ),
        Check(
            "low count",
            "EvaluateLowSampleCountPercentile other than evaluate or ignore",
            VALUE,
            other_than("EvaluateLowSampleCountPercentile", "evaluate", "ignore"),
        ),
        Check("bare", "an alarm without EvaluationPeriods or ComparisonOperator", ERROR, _bare),
        Check(
            "threshold",
            "a static comparison without a threshold",
            ERROR,
            lambda p: p.get("ComparisonOperator") in _STATIC and "Threshold" not in p,
        ),
        Check(
            "anomaly",
            "a comparison of anomaly detection with a static threshold",
            ERROR,
            lambda p: p.get("ComparisonOperator") in _ANOMALY and "ThresholdMetricId" not in p,
        ),
        Check(
            "period",
            "a period other than 10, 20, 30 or a multiple of 60",
            VALUE,
            lambda p: _odd_period(p.get("Period"), (10, 20, 30)),
        ),
        Check("span", "periods of more than a day together, or seven with periods of an hour", ERROR, _too_long),
        Check(
            "m of n",
            "more datapoints to alarm than periods",
            ERROR,
            lambda p: p.get("DatapointsToAlarm", 1) > p.get("EvaluationPeriods", 1),
        ),
        Check(
            "ids",
            "query ids that are not unique, or that begin with no lower-case letter",
            ERROR,
            lambda p: _bad_ids(p.get("Metrics") or []),
        ),
        Check(
            "one",
            "a query without exactly one of Expression and MetricStat",
            ERROR,
            lambda p: _both_or_neither(p.get("Metrics") or []),
        ),
        Check("results", "Metrics of which not exactly one returns data", ERROR, _results),
        Check(
            "dimensions",
            "dimensions that are blank, not printable ASCII, or begin with a colon",
            VALUE,
            _odd_dimensions,
        ),
        Check(
            "metric period",
            "a period of a query other than 1, 5, 10, 20, 30 or a multiple of 60",
            VALUE,
            lambda p: _odd_periods(p.get("Metrics") or []),
        ),
        Check("actions", "an action that is no ARN", ERROR, _no_arn),
        Check("scaling", "an action of Auto Scaling with ThresholdMetricId", ERROR, _scaling_action),
        Check("payload", "a request of more than 120 KB", ERROR, _large),
        Check("criteria", "EvaluationCriteria with members of a metric or its evaluation", COMBINATION, _criteria),
        Check("interval", "EvaluationCriteria without EvaluationInterval, or the other way round", ERROR, _interval),
        Check(
            "wall clock",
            "a wall clock window with a period of other than 1 or 5 min, 1 h, 1 day or 1 week",
            ERROR,
            _odd_wall_clock,
        ),
        Check("propagated", "IncludedTagKeys with ExcludedTagKeys", COMBINATION, _propagated_twice),
        Check(
            "tags",
            "more than 50 tags, or one key twice",
            ERROR,
            lambda p: len(p.get("Tags") or ()) > 50 or same_tag_twice(p),
            source="Tag",
        ),
        state(
            "insights span",
            "a Metrics Insights query over more than 3 hours",
            ERROR,
            source="CloudWatch guide, Metrics Insights alarms",
        ),
    ),
    (SERVICE, "DeleteAlarms"): (
        shape(SERVICE, "more than 100 names"),
        state("composites", "two composite alarms in one request", ERROR),
        state("unknown", "an alarm that does not exist; the others are deleted", "ResourceNotFound"),
    ),
    (SERVICE, "DisableAlarmActions"): (shape(SERVICE, "more than 100 names"),),
    (SERVICE, "EnableAlarmActions"): (shape(SERVICE, "more than 100 names"),),
    (SERVICE, "QueryMetrics"): (
        state("range", "a range of more than 7 days", "bad_data", source="CloudWatch guide, PromQL limits"),
        state("parse", "an expression that cannot be read, as dots without quotes", "bad_data"),
        state("name", "a selector without a metric's name", "bad_data"),
        state("step", "a step of 0", "bad_data", source="Prometheus HTTP API"),
    ),
}
