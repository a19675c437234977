"""CloudWatch's operations. Sources: API reference of each; user guide, CloudWatch quotas."""

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sandbox.clock import EPOCH
from sandbox.cloudwatch.composite import checked_rule
from sandbox.cloudwatch.insights import is_query
from sandbox.cloudwatch.store import Key, Sample, epoch
from sandbox.paging import page
from sandbox.refusals import AwsRefusal, NotSimulated

if TYPE_CHECKING:
    from sandbox.world import World

type Params = dict[str, Any]

MOST_QUERIES = 500
MOST_POINTS = 100_800


def refuse(message: str) -> AwsRefusal:
    """CloudWatch's own spelling of a validation error."""
    return AwsRefusal("ValidationError", message)


class CloudWatch:
    """One method for each simulated operation."""

    def __init__(self, world: "World") -> None:
        self._world = world

    # metrics

    def PutMetricData(self, p: Params) -> Params:
        """Publish datapoints of a user's own namespace."""
        if p["Namespace"].startswith("AWS/"):
            raise AwsRefusal("InvalidParameterValue", "The value AWS/ for parameter Namespace is invalid.")
        for datum in p.get("MetricData", []):
            dimensions = {d["Name"]: d["Value"] for d in datum.get("Dimensions", [])}
            at = datum.get("Timestamp") or self._world.clock.now
            for sample in _published(datum):
                self._world.metrics.add(p["Namespace"], datum["MetricName"], dimensions, at, sample)
        return {}

    def GetMetricData(self, p: Params) -> Params:
        """Read up to 500 series, up to 100,800 datapoints a page."""
        queries = p["MetricDataQueries"]
        _check_queries(queries)
        if p["StartTime"] >= p["EndTime"]:
            raise refuse("The parameter StartTime must be less than the parameter EndTime.")
        limit = p.get("MaxDatapoints") or MOST_POINTS
        if limit > MOST_POINTS:
            raise refuse(f"MaxDatapoints must be at most {MOST_POINTS}")
        newest_first = p.get("ScanBy", "TimestampDescending") == "TimestampDescending"
        results = [self._result(query, p, newest_first) for query in queries if query.get("ReturnData", True)]
        return _paged_results(results, p.get("NextToken"), limit)

    def _result(self, query: Params, p: Params, newest_first: bool) -> Params:
        stat, metric = query["MetricStat"], query["MetricStat"]["Metric"]
        key = _key(metric)
        rows = self._world.metrics.read(key, epoch(p["StartTime"]), epoch(p["EndTime"]), stat["Period"], stat["Stat"])
        code = self._world.metrics.status(key)
        if code in {"Forbidden", "InternalError"}:
            rows = []
        elif code == "PartialData":
            rows = rows[: len(rows) // 2]
        if newest_first:
            rows = rows[::-1]
        return {
            "Id": query["Id"],
            "Label": query.get("Label") or metric["MetricName"],
            "Timestamps": [EPOCH + timedelta(seconds=moment) for moment, _ in rows],
            "Values": [value for _, value in rows],
            "StatusCode": code,
        }

    def ListMetrics(self, p: Params) -> Params:
        """Series with datapoints in the last two weeks, one row each; pages of 500."""
        kept = timedelta(hours=3) if p.get("RecentlyActive") == "PT3H" else timedelta(days=14)
        since = self._world.clock.now - kept
        rows = [
            {
                "Namespace": key[0],
                "MetricName": key[1],
                "Dimensions": [{"Name": name, "Value": value} for name, value in sorted(key[2])],
            }
            for key in self._world.metrics.known()
            if _listed(key, p) and self._world.metrics.active_since(key, since)
        ]
        shown, token = page(rows, p.get("NextToken"), 500, "InvalidParameterValue")
        return {"Metrics": shown, "NextToken": token}

    # alarms

    def PutMetricAlarm(self, p: Params) -> Params:
        """Create or overwrite an alarm."""
        _check_alarm(p)
        self._world.alarms.put(p)
        return {}

    def PutCompositeAlarm(self, p: Params) -> Params:
        """Create or overwrite a composite alarm."""
        checked_rule(p["AlarmRule"])
        if p.get("ActionsSuppressor"):
            raise NotSimulated("ActionsSuppressor of a composite alarm")
        self._world.alarms.put(p)
        return {}

    def DescribeAlarms(self, p: Params) -> Params:
        """Alarms by name, prefix, state or action; metric alarms unless other types are asked for."""
        types = p.get("AlarmTypes") or ["MetricAlarm"]
        found = [alarm for alarm in self._world.alarms.all() if alarm.kind in types and _described(alarm, p)]
        size = p.get("MaxRecords") or 50
        shown, token = page(sorted(found, key=lambda a: a.name), p.get("NextToken"), size, "InvalidNextToken")
        rows: Params = {"MetricAlarms": [], "CompositeAlarms": [], "NextToken": token}
        for alarm in shown:
            rows[f"{alarm.kind}s"].append(alarm.described())
        return rows

    def DescribeAlarmContributors(self, p: Params) -> Params:
        """The contributors of a grouped alarm that are in ALARM."""
        alarm = self._world.alarms.get(p["AlarmName"])
        if alarm is None:
            raise AwsRefusal("ResourceNotFound", f"Alarm {p['AlarmName']} does not exist")
        rows = [contributor.described() for contributor in alarm.contributors.values() if contributor.state == "ALARM"]
        shown, token = page(rows, p.get("NextToken"), 100, "InvalidNextToken")
        return {"AlarmContributors": shown, "NextToken": token}

    def DeleteAlarms(self, p: Params) -> Params:
        """Delete alarms; one unknown name, and none is deleted."""
        for name in p["AlarmNames"]:
            if self._world.alarms.get(name) is None:
                raise AwsRefusal("ResourceNotFound", f"Alarm {name} does not exist")
        for name in p["AlarmNames"]:
            self._world.alarms.delete(name)
        return {}

    def SetAlarmState(self, p: Params) -> Params:
        """Force a state until the next evaluation."""
        alarm = self._world.alarms.get(p["AlarmName"])
        if alarm is None:
            raise AwsRefusal("ResourceNotFound", f"Alarm {p['AlarmName']} does not exist")
        self._world.alarms.enter(alarm, p["StateValue"], p["StateReason"])
        return {}

    def TagResource(self, p: Params) -> Params:
        """Tag an alarm."""
        self._world.tags.add(self._alarm_arn(p), p["Tags"])
        return {}

    def UntagResource(self, p: Params) -> Params:
        """Take tags off an alarm."""
        self._world.tags.remove(self._alarm_arn(p), p["TagKeys"])
        return {}

    def ListTagsForResource(self, p: Params) -> Params:
        """Tags of an alarm."""
        return {"Tags": self._world.tags.listed(self._alarm_arn(p))}

    def _alarm_arn(self, p: Params) -> str:
        arn = str(p["ResourceARN"])
        if not any(alarm.arn == arn for alarm in self._world.alarms.all()):
            raise AwsRefusal("ResourceNotFoundException", f"{arn} does not exist")
        return arn


def _published(datum: Params) -> list[Sample]:
    if "StatisticValues" in datum:
        s = datum["StatisticValues"]
        return [Sample(s["Sum"], s["Minimum"], s["Maximum"], s["SampleCount"])]
    if "Values" in datum:
        counts = datum.get("Counts") or [1.0] * len(datum["Values"])
        return [Sample.even(value, count) for value, count in zip(datum["Values"], counts, strict=True)]
    return [Sample.even(datum["Value"])]


def _key(metric: Params) -> Key:
    dimensions = frozenset((d["Name"], d["Value"]) for d in metric.get("Dimensions", []))
    return metric["Namespace"], metric["MetricName"], dimensions


def _check_queries(queries: list[Params]) -> None:
    if len(queries) > MOST_QUERIES:
        raise refuse(f"The collection MetricDataQueries must not have a size greater than {MOST_QUERIES}.")
    ids = [query["Id"] for query in queries]
    if len(set(ids)) < len(ids):
        double = next(one for one in ids if ids.count(one) > 1)
        raise refuse(f'The values for parameter Id in MetricDataQueries are not unique: "{double}".')
    for query in queries:
        if not re.fullmatch(r"[a-z][a-zA-Z0-9_]*", query["Id"]):
            raise refuse(f'The value "{query["Id"]}" for parameter Id is not matching the expected pattern.')
        if "Expression" in query:
            raise NotSimulated(f"the GetMetricData expression {query['Expression']!r}: metric statistics are")
        period = query["MetricStat"]["Period"]
        if period not in {1, 5, 10, 20, 30} and (period <= 0 or period % 60):
            raise refuse(f"The value {period} for parameter Period must be 1, 5, 10, 20, 30 or a multiple of 60.")


def _paged_results(results: list[Params], token: str | None, limit: int) -> Params:
    """Cut the results after `limit` datapoints; a series that goes on is PartialData until its last page."""
    flat = [(row, index) for row, result in enumerate(results) for index in range(len(result["Values"]))]
    shown, following = page(flat, token, limit, "InvalidNextToken")
    made = []
    for row, result in enumerate(results):
        indexes = [index for at, index in shown if at == row]
        if not indexes and (token or result["Values"]):
            continue
        part = result | {key: [result[key][i] for i in indexes] for key in ("Timestamps", "Values")}
        if indexes and indexes[-1] + 1 < len(result["Values"]):
            part["StatusCode"] = "PartialData"
        made.append(part)
    return {"MetricDataResults": made, "Messages": []} | ({"NextToken": following} if following else {})


def _listed(key: Key, p: Params) -> bool:
    if p.get("Namespace", key[0]) != key[0] or p.get("MetricName", key[1]) != key[1]:
        return False
    own = dict(key[2])
    return all(d["Name"] in own and d.get("Value", own[d["Name"]]) == own[d["Name"]] for d in p.get("Dimensions", []))


def _described(alarm: Any, p: Params) -> bool:
    if p.get("AlarmNames") and alarm.name not in p["AlarmNames"]:
        return False
    if not alarm.name.startswith(p.get("AlarmNamePrefix", "")) or p.get("StateValue", alarm.state) != alarm.state:
        return False
    if parent := p.get("ChildrenOfAlarmName"):
        raise NotSimulated(f"DescribeAlarms with ChildrenOfAlarmName {parent}")
    prefix = p.get("ActionPrefix")
    return not prefix or any(action.startswith(prefix) for action in alarm.actions())


def _check_alarm(p: Params) -> None:
    for key in ("AlarmActions", "OKActions", "InsufficientDataActions"):
        if len(p.get(key, [])) > 5:
            raise refuse(f"{key} must have at most 5 actions")
    grouped = False
    if metrics := p.get("Metrics"):
        returned = [m for m in metrics if m.get("ReturnData", True)]
        if len(returned) != 1 or len(metrics) != 1:
            raise NotSimulated("an alarm on metric math: one metric statistic or one Metrics Insights query is")
        grouped = "Expression" in metrics[0]
        if grouped and not is_query(metrics[0]["Expression"]):
            raise NotSimulated(f"the alarm expression {metrics[0]['Expression']!r}")
    period = _period(p)
    span = period * p["EvaluationPeriods"]
    if grouped and span > 10_800:  # user guide: Metrics Insights alarms see the latest 3 hours only
        raise refuse("Metrics Insights alarms can evaluate at most 3 hours of data.")
    if span > (7 * 86_400 if period >= 3600 else 86_400):
        raise refuse("EvaluationPeriods times Period must not exceed one day, or seven with periods of an hour.")
    if p.get("DatapointsToAlarm", 1) > p["EvaluationPeriods"]:
        raise refuse("DatapointsToAlarm must not exceed EvaluationPeriods.")
    if p.get("ComparisonOperator") not in {
        "GreaterThanThreshold", "GreaterThanOrEqualToThreshold", "LessThanThreshold", "LessThanOrEqualToThreshold",
    }:  # fmt: skip
        raise NotSimulated(f"the comparison {p.get('ComparisonOperator')}")


def _period(p: Params) -> int:
    if metrics := p.get("Metrics"):
        return int(metrics[0].get("Period") or metrics[0].get("MetricStat", {}).get("Period") or 300)
    if not (p.get("Namespace") and p.get("MetricName") and p.get("Period")):
        raise refuse("An alarm needs Namespace, MetricName and Period, or Metrics.")
    if bool(p.get("Statistic")) == bool(p.get("ExtendedStatistic")):
        raise refuse("An alarm needs exactly one of Statistic and ExtendedStatistic.")
    return int(p["Period"])
