"""CloudWatch's operations. Sources: API reference of each; user guide, CloudWatch quotas."""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sandbox.clock import EPOCH
from sandbox.cloudwatch.composite import checked_rule, children
from sandbox.cloudwatch.insights import is_query
from sandbox.cloudwatch.store import Key, Sample, epoch
from sandbox.paging import page
from sandbox.refusals import AwsRefusal, NotSimulated
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.world import World

type Params = dict[str, Any]

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
        _no_expressions(queries)
        # in AWS's words as users met them: elastic/beats, issue 32687; influxdata/telegraf, issue 2022
        if p["StartTime"] >= p["EndTime"] and on("GetMetricData", "turned"):
            equal = p["StartTime"] == p["EndTime"]
            raise refuse(f"The parameter StartTime must {'not equal' if equal else 'be less than'} parameter EndTime.")
        limit = p.get("MaxDatapoints") or MOST_POINTS
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
            "Timestamps": [_at(moment) for moment, _ in rows],
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
        shown, token = page(rows, p.get("NextToken"), 500, "InvalidParameterValue", "ListMetrics")
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
        if parent := p.get("ChildrenOfAlarmName"):
            return self._children(parent)
        types = p.get("AlarmTypes") or ["MetricAlarm"]
        found = [alarm for alarm in self._world.alarms.all() if alarm.kind in types and _described(alarm, p)]
        size = p.get("MaxRecords") or 50
        found.sort(key=lambda alarm: alarm.name)
        shown, token = page(found, p.get("NextToken"), size, "InvalidNextToken", "DescribeAlarms")
        rows: Params = {"MetricAlarms": [], "CompositeAlarms": [], "NextToken": token}
        for alarm in shown:
            rows[f"{alarm.kind}s"].append(alarm.described())
        return rows

    def _children(self, parent: str) -> Params:
        """Alarms in the rule of a composite one: name, ARN, state and its time only (API text)."""
        composite = self._world.alarms.get(parent)
        if composite is None or composite.kind != "CompositeAlarm":
            raise AwsRefusal("ResourceNotFound", f"Composite alarm {parent} does not exist")  # [assumed]
        rows: Params = {"MetricAlarms": [], "CompositeAlarms": []}
        shown = ("AlarmName", "AlarmArn", "StateValue", "StateUpdatedTimestamp")
        for name in dict.fromkeys(children(composite.request["AlarmRule"])):
            if alarm := self._world.alarms.get(name):
                rows[f"{alarm.kind}s"].append({key: alarm.described()[key] for key in shown})
        return rows

    def DisableAlarmActions(self, p: Params) -> Params:
        """Switch the actions of alarms off; names that do not exist are passed over."""
        self._world.alarms.switch_actions(p["AlarmNames"], False)
        return {}

    def EnableAlarmActions(self, p: Params) -> Params:
        """Switch the actions of alarms on again."""
        self._world.alarms.switch_actions(p["AlarmNames"], True)
        return {}

    def DescribeAlarmContributors(self, p: Params) -> Params:
        """The contributors of a grouped alarm that are in ALARM."""
        alarm = self._world.alarms.get(p["AlarmName"])
        if alarm is None and on("DescribeAlarmContributors", "unknown"):
            raise AwsRefusal("ResourceNotFound", f"Alarm {p['AlarmName']} does not exist")
        assert alarm is not None
        rows = [contributor.described() for contributor in alarm.contributors.values() if contributor.state == "ALARM"]
        shown, token = page(rows, p.get("NextToken"), 100, "InvalidNextToken", "DescribeAlarmContributors")
        return {"AlarmContributors": shown, "NextToken": token}

    def DeleteAlarms(self, p: Params) -> Params:
        """Delete alarms. API text: those with correct names are deleted, also when others are incorrect."""
        known = [alarm for name in p["AlarmNames"] if (alarm := self._world.alarms.get(name))]
        if sum(alarm.kind == "CompositeAlarm" for alarm in known) > 1 and on("DeleteAlarms", "composites"):
            raise refuse("Two composite alarms cannot be deleted in one request.")
        for alarm in known:
            self._world.alarms.delete(alarm.name)
        if len(known) < len(p["AlarmNames"]) and on("DeleteAlarms", "unknown"):
            absent = sorted(set(p["AlarmNames"]) - {alarm.name for alarm in known})
            raise AwsRefusal("ResourceNotFound", f"Alarms {absent} do not exist")
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


def _no_expressions(queries: list[Params]) -> None:
    for query in queries:
        if "Expression" in query:
            raise NotSimulated(f"the GetMetricData expression {query['Expression']!r}: metric statistics are")


@lru_cache(1 << 15)
def _at(moment: int) -> datetime:
    """The time so many seconds after 1970: every series of a reading has the same ones."""
    return EPOCH + timedelta(seconds=moment)


def _paged_results(results: list[Params], token: str | None, limit: int) -> Params:
    """Cut the results after `limit` datapoints; a series that goes on is PartialData until its last page."""
    sizes = [len(result["Values"]) for result in results]
    shown, following = page(range(sum(sizes)), token, limit, "InvalidNextToken", "GetMetricData")
    first, after = (shown[0], shown[-1] + 1) if shown else (0, 0)
    made, begin = [], 0
    for result, size in zip(results, sizes, strict=True):
        start, end = max(0, first - begin), max(0, min(size, after - begin))
        begin += size
        if start >= end and (token or size):
            continue
        part = result | {key: result[key][start:end] for key in ("Timestamps", "Values")}
        if start < end < size:
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
    if "ParentsOfAlarmName" in p:
        raise NotSimulated("DescribeAlarms with ParentsOfAlarmName")
    prefix = p.get("ActionPrefix")
    return not prefix or any(action.startswith(prefix) for action in alarm.actions())


def _check_alarm(p: Params) -> None:
    """What needs more than the request's own members (`sandbox.strict.cloudwatch`), or is not simulated."""
    if metrics := p.get("Metrics"):
        if len(metrics) != 1:
            raise NotSimulated("an alarm on metric math: one metric statistic or one Metrics Insights query is")
        expression = metrics[0].get("Expression")
        if expression and not is_query(expression):
            raise NotSimulated(f"the alarm expression {expression!r}")
        span = (metrics[0].get("Period") or 300) * p["EvaluationPeriods"]
        if expression and span > 10_800 and on("PutMetricAlarm", "insights span"):
            raise refuse("Metrics Insights alarms can evaluate at most 3 hours of data.")
    if p.get("ComparisonOperator") not in {
        "GreaterThanThreshold", "GreaterThanOrEqualToThreshold", "LessThanThreshold", "LessThanOrEqualToThreshold",
    }:  # fmt: skip
        raise NotSimulated(f"the comparison {p.get('ComparisonOperator')}")
