"""Alarms and their evaluation as time passes.

States start as INSUFFICIENT_DATA; M out of N; missing data by TreatMissingData; actions and events on transitions only
(user guide, AlarmThatSendsEmail and alarm-evaluation; event shapes: cloudwatch-and-eventbridge).
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandbox.clock import next_minute
from sandbox.cloudwatch import insights
from sandbox.cloudwatch.composite import holds
from sandbox.cloudwatch.store import Key, epoch

if TYPE_CHECKING:
    from sandbox.world import World


type Actor = Callable[[str, Mapping[str, Any], Mapping[str, Any]], None]
"""Gets (action ARN, document for SNS, document for Lambda) when an alarm acts."""


@dataclass(slots=True)
class Contributor:
    """One series of a grouped alarm."""

    id: str
    attributes: Mapping[str, str]
    state: str
    reason: str
    since: datetime

    def described(self) -> dict[str, Any]:
        """The row of DescribeAlarmContributors."""
        return {
            "ContributorId": self.id,
            "ContributorAttributes": dict(self.attributes),
            "StateReason": self.reason,
            "StateTransitionedTimestamp": self.since,
        }


@dataclass(frozen=True, slots=True)
class Watched:
    """What a metric alarm looks at: a query, or a series and its statistic."""

    request: Mapping[str, Any]
    """The request that says so."""
    period: int
    query: insights.Query | None
    key: Key
    stat: str


NO_SERIES: Key = "", "", frozenset()


@dataclass(slots=True)
class Alarm:
    """An alarm."""

    name: str
    arn: str
    request: Mapping[str, Any]
    configured: datetime
    since: datetime
    state: str = "INSUFFICIENT_DATA"
    reason: str = "Unchecked: Initial alarm creation"
    evaluated: bool = False
    contributors: dict[str, Contributor] = field(default_factory=dict)
    _watched: Watched | None = None

    @property
    def kind(self) -> str:
        """MetricAlarm or CompositeAlarm."""
        return "CompositeAlarm" if "AlarmRule" in self.request else "MetricAlarm"

    @property
    def query(self) -> insights.Query | None:
        """The Metrics Insights query of a grouped alarm."""
        expression = (self.request.get("Metrics") or [{}])[0].get("Expression")
        return insights.parse(expression) if expression else None

    @property
    def period(self) -> int:
        """Seconds."""
        first = (self.request.get("Metrics") or [{}])[0]
        return int(
            self.request.get("Period") or first.get("Period") or first.get("MetricStat", {}).get("Period") or 300
        )

    def watched(self) -> Watched:
        """What a metric alarm looks at, read once from each request: it is asked for every minute."""
        if self._watched is None or self._watched.request is not self.request:
            query = self.query
            key, stat = (NO_SERIES, "") if query else (self.key(), self.stat())
            self._watched = Watched(self.request, self.period, query, key, stat)
        return self._watched

    def actions(self) -> list[str]:
        """All actions of all states."""
        keys = ("AlarmActions", "OKActions", "InsufficientDataActions")
        return [action for key in keys for action in self.request.get(key, [])]

    def described(self) -> dict[str, Any]:
        """The row of DescribeAlarms."""
        lists: dict[str, Any] = {"OKActions": [], "AlarmActions": [], "InsufficientDataActions": []}
        return (
            lists
            | {"ActionsEnabled": True}
            | {key: value for key, value in self.request.items() if key != "Tags"}
            | {
                "AlarmArn": self.arn,
                "AlarmConfigurationUpdatedTimestamp": self.configured,
                "StateValue": self.state,
                "StateReason": self.reason,
                "StateUpdatedTimestamp": self.since,
                "StateTransitionedTimestamp": self.since,
            }
        )

    def configuration(self) -> dict[str, Any]:
        """The configuration as EventBridge shows it: dimensions are an object, names are camel case."""
        r = self.request
        made: dict[str, Any] = {"description": r.get("AlarmDescription", "")}
        if rule := r.get("AlarmRule"):
            return made | {"alarmRule": rule}
        first = (r.get("Metrics") or [{}])[0]
        if expression := first.get("Expression"):
            row = {"id": first["Id"], "expression": expression, "returnData": True, "period": self.period}
            return made | {"metrics": [row]}
        namespace, name, dimensions = self.key()
        metric = {"namespace": namespace, "name": name, "dimensions": dict(sorted(dimensions))}
        identity = first.get("Id") or hashlib.sha256(self.name.encode()).hexdigest()[:32]
        stat = {"metric": metric, "period": self.period, "stat": self.stat()}
        return made | {"metrics": [{"id": identity, "metricStat": stat, "returnData": True}]}

    def key(self) -> Key:
        """The series that it watches."""
        metric = self.request
        if self.request.get("Metrics"):
            metric = self.request["Metrics"][0]["MetricStat"]["Metric"]
        dimensions = frozenset((d["Name"], d["Value"]) for d in metric.get("Dimensions", []))
        return metric["Namespace"], metric["MetricName"], dimensions

    def stat(self) -> str:
        """The statistic."""
        if self.request.get("Metrics"):
            return str(self.request["Metrics"][0]["MetricStat"]["Stat"])
        return str(self.request.get("Statistic") or self.request["ExtendedStatistic"])


class Alarms:
    """Every alarm of the account."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._alarms: dict[str, Alarm] = {}
        self.acted: list[tuple[str, str, str]] = []
        """(alarm, state, action ARN) of every action that ran."""
        self.actors: list[Actor] = []

    def get(self, name: str) -> Alarm | None:
        """The alarm, or None."""
        return self._alarms.get(name)

    def all(self) -> Iterable[Alarm]:
        """Every alarm."""
        return self._alarms.values()

    def put(self, request: Mapping[str, Any]) -> None:
        """Create the alarm, or overwrite its configuration; state and tags stay."""
        name, now = request["AlarmName"], self._world.clock.now
        known = self._alarms.get(name)
        if known:
            known.request, known.configured, known.evaluated = request, now, False
            return
        arn = self._world.arn("cloudwatch", f"alarm:{name}")
        self._alarms[name] = Alarm(name, arn, request, now, now)
        self._world.tags.put(arn, {tag["Key"]: tag["Value"] for tag in request.get("Tags") or []})

    def switch_actions(self, names: Sequence[str], enabled: bool) -> None:
        """Switch the actions of those alarms on or off that exist; nothing else of them changes."""
        for name in names:
            if known := self._alarms.get(name):
                known.request = {**known.request, "ActionsEnabled": enabled}

    def delete(self, name: str) -> None:
        """Delete an alarm."""
        self._world.tags.forget(self._alarms.pop(name).arn)

    def firing(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of these alarms that are in ALARM."""
        return tuple(name for name in names if name in self._alarms and self._alarms[name].state == "ALARM")

    def next_due(self, now: datetime) -> datetime | None:
        """Every minute, while there is an alarm."""
        return next_minute(now) if self._alarms else None

    def happen(self, now: datetime) -> None:
        """Evaluate: metric alarms when a period ends, then composite ones."""
        if now.second or now.microsecond:
            return
        for alarm in sorted(self._alarms.values(), key=lambda a: a.kind == "CompositeAlarm"):
            if alarm.kind == "CompositeAlarm":
                self._composite(alarm)
            elif not alarm.evaluated or epoch(now) % alarm.watched().period == 0:
                alarm.evaluated = True
                self._evaluate(alarm, now)

    def _composite(self, alarm: Alarm) -> None:
        firing = holds(alarm.request["AlarmRule"], self._state)
        self.enter(alarm, "ALARM" if firing else "OK", f"{alarm.request['AlarmRule']} is {str(firing).lower()}")

    def _state(self, name: str) -> str:
        alarm = self._alarms.get(name)
        return alarm.state if alarm else "INSUFFICIENT_DATA"

    def _evaluate(self, alarm: Alarm, now: datetime) -> None:
        looks = alarm.watched()
        end = epoch(now) - epoch(now) % looks.period
        start = end - looks.period * alarm.request["EvaluationPeriods"]
        if looks.query:
            self._grouped(alarm, insights.series(looks.query, self._world.metrics, start, end, looks.period))
            return
        rows = self._world.metrics.read(looks.key, start, end, looks.period, looks.stat)
        state = judge(alarm, [value for _, value in rows])
        if state is not None and state != alarm.state:
            self.enter(alarm, state, _reason(alarm, state, rows), [value for _, value in rows])

    def _grouped(self, alarm: Alarm, rows: Mapping[Key, list[tuple[int, float]]]) -> None:
        now, seen = self._world.clock.now, set()
        for key, found in rows.items():
            attributes = dict(sorted(key[2]))
            identity = hashlib.sha256(json.dumps(attributes).encode()).hexdigest()[:16]
            seen.add(identity)
            state = judge(alarm, [value for _, value in found])
            state = "ALARM" if state == "ALARM" else "OK"  # a contributor has no third state
            known = alarm.contributors.get(identity)
            if known is None:
                known = alarm.contributors[identity] = Contributor(identity, attributes, "OK", "", now)
            firing = sum(c.state == "ALARM" for c in alarm.contributors.values())
            if state != known.state and (state == "OK" or firing < 100):  # at most 100 contributors in ALARM
                self._contributor(alarm, known, state, _reason(alarm, state, found))
        for identity in [one for one in alarm.contributors if one not in seen]:
            gone = alarm.contributors.pop(identity)
            if gone.state == "ALARM":  # a series that stops publishing leaves with a transition to OK
                self._contributor(alarm, gone, "OK", "The time series is no longer returned by the query")
        firing = sum(c.state == "ALARM" for c in alarm.contributors.values())
        state = "ALARM" if firing else "OK"
        text = f"{firing} out of {len(rows)} time series evaluated to {state}"
        self.enter(alarm, state if rows or alarm.state != "INSUFFICIENT_DATA" else alarm.state, text)

    def _contributor(self, alarm: Alarm, contributor: Contributor, state: str, reason: str) -> None:
        contributor.state, contributor.reason, contributor.since = state, reason, self._world.clock.now
        detail = {
            "alarmName": alarm.name,
            "alarmContributor": {"id": contributor.id, "attributes": dict(contributor.attributes)},
            "state": {"value": state, "reason": reason, "timestamp": stamp(contributor.since)},
            "configuration": alarm.configuration(),
        }
        self._world.emit("aws.cloudwatch", "CloudWatch Alarm Contributor State Change", [alarm.arn], detail)

    def enter(self, alarm: Alarm, state: str, reason: str, values: Sequence[float] = ()) -> None:
        """Move an alarm to a state; nothing happens when it is there already."""
        if state == alarm.state:
            return
        previous = {"value": alarm.state, "reason": alarm.reason, "timestamp": stamp(alarm.since)}
        alarm.state, alarm.reason, alarm.since = state, reason, self._world.clock.now
        now: dict[str, Any] = {"value": state, "reason": reason, "timestamp": stamp(alarm.since)}
        if values:
            data = {"version": "1.0", "statistic": alarm.stat(), "period": alarm.period}
            now["reasonData"] = json.dumps(
                data | {"recentDatapoints": list(values), "threshold": alarm.request.get("Threshold")}
            )
        detail = {
            "alarmName": alarm.name,
            "configuration": alarm.configuration(),
            "previousState": previous,
            "state": now,
        }
        self._world.emit("aws.cloudwatch", "CloudWatch Alarm State Change", [alarm.arn], detail)
        for action in _actions(alarm):
            self.acted.append((alarm.name, state, action))
            for actor in self.actors:
                actor(action, notification(self._world, alarm, previous["value"]), self._direct(alarm, detail))

    def _direct(self, alarm: Alarm, detail: Mapping[str, Any]) -> dict[str, Any]:
        """The document of an alarm action that is a Lambda function (user guide: alarms-and-actions-lambda)."""
        return {
            "source": "aws.cloudwatch", "alarmArn": alarm.arn, "accountId": self._world.account,
            "time": stamp(self._world.clock.now), "region": self._world.region, "alarmData": dict(detail),
        }  # fmt: skip


def notification(world: "World", alarm: Alarm, before: str) -> dict[str, Any]:
    """The document of an alarm action that is an SNS topic (user guide: notify-users-alarm-changes)."""
    r = alarm.request
    made: dict[str, Any] = {
        "AlarmName": alarm.name, "AlarmDescription": r.get("AlarmDescription"), "AWSAccountId": world.account,
        "NewStateValue": alarm.state, "NewStateReason": alarm.reason, "StateChangeTime": stamp(alarm.since),
        "Region": "EU (Ireland)", "AlarmArn": alarm.arn, "OldStateValue": before,
        "OKActions": r.get("OKActions", []), "AlarmActions": r.get("AlarmActions", []),
        "InsufficientDataActions": r.get("InsufficientDataActions", []),
    }  # fmt: skip
    if alarm.kind == "CompositeAlarm":
        return made | {"AlarmRule": r["AlarmRule"]}
    namespace, metric, dimensions = alarm.key()
    return made | {
        "Trigger": {
            "MetricName": metric, "Namespace": namespace, "StatisticType": "Statistic",
            "Statistic": alarm.stat().upper(),
            "Dimensions": [{"value": value, "name": name} for name, value in sorted(dimensions)],
            "Period": alarm.period, "EvaluationPeriods": r["EvaluationPeriods"], "Threshold": r["Threshold"],
            "ComparisonOperator": r["ComparisonOperator"], "TreatMissingData": r.get("TreatMissingData", "missing"),
        }
    }  # fmt: skip


def _actions(alarm: Alarm) -> Iterator[str]:
    if not alarm.request.get("ActionsEnabled", True) or alarm.query:
        return
    key = {"ALARM": "AlarmActions", "OK": "OKActions"}.get(alarm.state, "InsufficientDataActions")
    yield from alarm.request.get(key, [])


def judge(alarm: Alarm, values: Sequence[float]) -> str | None:
    """The state that these datapoints mean; None to leave it as it is."""
    r = alarm.request
    periods, needed = r["EvaluationPeriods"], r.get("DatapointsToAlarm") or r["EvaluationPeriods"]
    missing = max(0, periods - len(values))
    treatment = r.get("TreatMissingData", "missing")
    if not values and treatment in {"missing", "ignore"}:
        return "INSUFFICIENT_DATA" if treatment == "missing" else None
    breaching = sum(_breaches(r["ComparisonOperator"], value, r["Threshold"]) for value in values)
    if treatment == "breaching":
        breaching += missing
    elif treatment == "missing" and missing:
        needed = min(needed, len(values))  # the datapoints that exist decide
    return "ALARM" if breaching >= needed else "OK"


def _breaches(comparison: str, value: float, threshold: float) -> bool:
    match comparison:
        case "GreaterThanThreshold":
            return value > threshold
        case "GreaterThanOrEqualToThreshold":
            return value >= threshold
        case "LessThanThreshold":
            return value < threshold
        case _:
            return value <= threshold


def _reason(alarm: Alarm, state: str, rows: Sequence[tuple[int, float]]) -> str:
    if not rows:
        treatment = alarm.request.get("TreatMissingData", "missing")
        return f"Insufficient Data: no datapoints were received, treated as {treatment}"
    crossed = "crossed" if state == "ALARM" else "did not cross"
    newest = timedelta(seconds=rows[-1][0])
    return (
        f"Threshold Crossed: {len(rows)} datapoints [{rows[-1][1]:.6g} (+{newest.total_seconds():.0f})] {crossed} the "
        f"threshold ({alarm.request['Threshold']})."
    )


def stamp(moment: datetime) -> str:
    """CloudWatch's way of writing a time in events."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}+0000"
