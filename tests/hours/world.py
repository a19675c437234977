"""A simulated account with one endpoint that has office hours, and the flow on its real adapters."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from rightsizer.aws.account import BEFORE_A_WRITE, EndpointQuotas
from rightsizer.aws.hours import AwsHoursAccount, HoursTable
from rightsizer.aws.journal import TableJournal
from rightsizer.aws.ledger import SavingsTable
from rightsizer.aws.metrics import CloudWatchMetrics
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.session import Session
from rightsizer.aws.table import Table
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Reason
from rightsizer.errors import WriteRefusedError
from rightsizer.flows.hours import HoursKeeper
from rightsizer.flows.read_hours import HoursPorts
from rightsizer.flows.wake import record_wake
from sandbox.account import Sandbox
from sandbox.role import Role
from sandbox.sagemaker.load import LoadModel, Served
from tests.changing.world import changer
from tests.notifiers import Told
from tests.table import create_table

NAME, HOURS, KIND = "Chat", "mon-fri 08:00-19:00 Europe/Berlin", "ml.g5.xlarge"
MONDAY_EVENING = datetime(2026, 11, 2, 17, 55, tzinfo=UTC)
CLOSES = datetime(2026, 11, 2, 18, 0, tzinfo=UTC)
OPENS = datetime(2026, 11, 3, 7, 0, tzinfo=UTC)
TICK, HOUR = timedelta(minutes=5), timedelta(hours=1)
QUIET = frozenset((*range(19, 24), *range(5), *range(9, 16)))
"""Hours of a day, in UTC, at which nothing is due.

After a tick that changed nothing in the account the next one comes an hour later.
"""
RESOURCE, DIMENSION = f"endpoint/{NAME}/variant/AllTraffic", "sagemaker:variant:DesiredInstanceCount"
PAGER = "arn:aws:sns:eu-west-1:111122223333:pager"
STEPS = {
    "AdjustmentType": "ChangeInCapacity",
    "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}],
}


@dataclass
class HoursWorld:
    """One endpoint with office hours, and the flow that stops and starts it."""

    box: Sandbox
    flow: HoursKeeper
    told: list[tuple[str, str]] = field(default_factory=list)

    @property
    def now(self) -> datetime:
        return self.box.clock.now

    @property
    def record(self) -> HoursRecord:
        with self.box.gate.unrecorded():
            found = self.flow.ports.book.load(NAME)
        assert found is not None
        return found

    @property
    def state(self) -> HoursState:
        return self.record.state

    def wake(self, until: datetime, name: str = NAME) -> HoursRecord | Reason:
        """Somebody orders the endpoint to run until then."""
        ports = self.flow.ports
        return record_wake(ports.book, ports.limits.hours, name, until, "U1", self.now)

    def until(self, moment: datetime, every: timedelta = TICK) -> None:
        """Ticks until then; a longer time between them passes days in which little happens."""
        step = every
        while self.now < moment:
            self.box.clock.advance(min(step, moment - self.now))
            calls = len(self.box.calls)
            self.flow.tick(self.now)
            acted = any(call.writes and call.service != "dynamodb" for call in self.box.calls[calls:])
            step = every if acted or self.now.hour not in QUIET else max(every, HOUR)

    @contextmanager
    def others(self) -> Iterator[Any]:
        """What people do with permissions of their own: a SageMaker client."""
        with self.box.gate.unrecorded():
            judge, self.box.gate.judge = self.box.gate.judge, lambda call: None
            yield self.box.client("sagemaker")
            self.box.gate.judge = judge

    def exists(self) -> bool:
        return NAME in self.box.world.fleet.endpoints


def quiet_after(last: datetime) -> LoadModel:
    """Requests each minute until then, and none afterwards."""

    def minute(at: datetime, instance_type: str, count: int) -> Served:
        return Served(60 if at < last else 0, latency_ms=100)

    return minute


@cache
def hours_statements() -> tuple[Mapping[str, Any], ...]:
    """What the template lets the hours function do."""
    from sandbox.stack import stack

    return tuple(stack(MayStop="tagged", EditUserAlarms="true").statements("hours"))


def autoscaling(box: Sandbox) -> None:
    """A target with a step policy, a scheduled action, a suspension, and the owner's alarms."""
    scaling, alarms = box.client("application-autoscaling"), box.client("cloudwatch")
    who = {"ServiceNamespace": "sagemaker", "ResourceId": RESOURCE, "ScalableDimension": DIMENSION}
    scaling.register_scalable_target(
        **who, MinCapacity=1, MaxCapacity=3, SuspendedState={"DynamicScalingInSuspended": True}, Tags={"team": "search"}
    )
    arn = scaling.put_scaling_policy(
        **who, PolicyName="steps", PolicyType="StepScaling", StepScalingPolicyConfiguration=STEPS
    )["PolicyARN"]
    scaling.put_scheduled_action(
        **who,
        ScheduledActionName="weekly",
        Schedule="cron(0 12 ? * SUN *)",
        ScalableTargetAction={"MinCapacity": 1, "MaxCapacity": 3},
    )
    common: dict[str, Any] = {
        "Namespace": "AWS/SageMaker",
        "MetricName": "Invocations",
        "Dimensions": [{"Name": "EndpointName", "Value": NAME}, {"Name": "VariantName", "Value": "AllTraffic"}],
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 5,
        "Threshold": 1.0,
    }
    greater, less = "GreaterThanThreshold", "LessThanThreshold"
    alarms.put_metric_alarm(
        AlarmName="busy", **common | {"Threshold": 1e6}, ComparisonOperator=greater, AlarmActions=[arn]
    )
    alarms.put_metric_alarm(
        AlarmName="silent", **common, ComparisonOperator=less, TreatMissingData="breaching", AlarmActions=[PAGER]
    )
    off = common | {"ComparisonOperator": less, "AlarmActions": [PAGER], "ActionsEnabled": False}
    alarms.put_metric_alarm(AlarmName="off", **off)


def whole(box: Sandbox) -> dict[str, Any]:
    """Everything of the endpoint that a night must not change, without ARNs and times."""
    with box.gate.unrecorded():
        sagemaker, scaling, alarms = (box.client(s) for s in ("sagemaker", "application-autoscaling", "cloudwatch"))
        seen = sagemaker.describe_endpoint(EndpointName=NAME)
        tags = sagemaker.list_tags(ResourceArn=seen["EndpointArn"])["Tags"]
        who = {"ServiceNamespace": "sagemaker"}
        targets = scaling.describe_scalable_targets(**who, ResourceIds=[RESOURCE])["ScalableTargets"]
        policies = scaling.describe_scaling_policies(**who)["ScalingPolicies"]
        actions = scaling.describe_scheduled_actions(**who)["ScheduledActions"]
        arns = {p["PolicyARN"]: p["PolicyName"] for p in policies}
        found = alarms.describe_alarms()["MetricAlarms"]
    return {
        "status": seen["EndpointStatus"],
        "config": seen["EndpointConfigName"],
        "counts": {v["VariantName"]: v["DesiredInstanceCount"] for v in seen["ProductionVariants"]},
        "tags": sorted((t["Key"], t["Value"]) for t in tags),
        "targets": [(t["MinCapacity"], t["MaxCapacity"], t["SuspendedState"]) for t in targets],
        "policies": sorted((p["PolicyName"], str(p["StepScalingPolicyConfiguration"])) for p in policies),
        "scheduled": sorted((a["ScheduledActionName"], a["Schedule"]) for a in actions),
        "alarms": sorted(
            (a["AlarmName"], a["ActionsEnabled"], [arns.get(x, x) for x in a["AlarmActions"]]) for a in found
        ),
    }


@contextmanager
def hours_world(
    *,
    limits: ChangeLimits | None = None,
    scaled: bool = True,
    judged: bool = True,
    evening: datetime = MONDAY_EVENING,
    **endpoint: Any,
) -> Iterator[HoursWorld]:
    """An account in the evening, of a Monday unless told, with the endpoint `Chat` that serves until an hour ago."""
    with Sandbox(now=evening - timedelta(hours=3)) as box:
        tags = {"rightsizer:hours": HOURS, "rightsizer:owner": "search", **endpoint.pop("more_tags", {})}
        image = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat@sha256:" + "a" * 64
        settings: dict[str, Any] = {"instance_type": KIND, "count": 2, "tags": tags, "image": image} | endpoint
        box.add_endpoint(NAME, **settings)
        with box.gate.unrecorded():
            if scaled:
                autoscaling(box)
        box.load(NAME, quiet_after(evening - timedelta(hours=1)))
        box.clock.advance(timedelta(hours=3))
        if judged:
            box.gate.judge = Role(box.world, hours_statements()).refusal
        table = box.client("dynamodb")
        create_table(table)
        session = Session(region=box.region, attempts=1)
        told: list[tuple[str, str]] = []
        flow = HoursKeeper(
            HoursPorts(
                book=HoursTable(Table(table, "t")),
                account=AwsHoursAccount(
                    session.client("sagemaker"),
                    session.client("application-autoscaling"),
                    session.client("cloudwatch"),
                    session.client("resourcegroupstaggingapi"),
                    session.client("s3"),
                ),
                changer=changer(session),
                journal=TableJournal(table, "t"),
                store=Recommendations(Table(table, "t"), lambda: box.clock.now),
                metrics=CloudWatchMetrics(session, workers=1),
                quotas=EndpointQuotas(session, lambda: box.clock.now, BEFORE_A_WRITE),
                ledger=SavingsTable(Table(table, "t")),
                notifier=Told(lambda subject, text: told.append((subject, text))),
                limits=limits or ChangeLimits(rewire_alarms=True),
            )
        )
        yield HoursWorld(box, flow, told)


def fallback(w: HoursWorld) -> None:
    """A configuration with another type that an owner made for mornings without capacity."""
    with w.others() as sagemaker:
        body = sagemaker.describe_endpoint_config(EndpointConfigName=f"{NAME}-config")
        row = {**body["ProductionVariants"][0], "InstanceType": "ml.g4dn.xlarge"}
        sagemaker.create_endpoint_config(EndpointConfigName="small", ProductionVariants=[row])


def refuse_messages(w: HoursWorld, until: datetime) -> None:
    """No channel takes a message until then."""

    def post(subject: str, text: str) -> None:
        if w.now < until:
            raise WriteRefusedError("telling people", "InternalError", "SNS does not answer")
        w.told.append((subject, text))

    w.flow = replace(w.flow, ports=replace(w.flow.ports, notifier=Told(post)))


@dataclass
class Stale:
    """A reader that goes on showing what was there before for a while after each difference."""

    real: Any
    clock: Any
    lag: timedelta
    operations: tuple[str, ...] = ("endpoint",)
    known: dict[str, list[tuple[datetime, Any]]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        if name not in self.operations:
            return found

        def read(*args: Any) -> Any:
            seen = self.known.setdefault(f"{name}{args}", [])
            now, answer = self.clock.now, found(*args)
            if not seen or seen[-1][1] != answer:
                seen.append((now, answer))
            old = [value for at, value in seen if at <= now - self.lag]
            return old[-1] if old else seen[0][1]

        return read


def stale(w: HoursWorld, lag: timedelta, *operations: str) -> None:
    """From now on AWS shows these things, the endpoint unless told, only after that time."""
    ports = w.flow.ports
    changer: Any = Stale(ports.changer, w.box.clock, lag, operations or ("endpoint",))
    w.flow = replace(w.flow, ports=replace(ports, changer=changer))


def fail_a_delete(w: HoursWorld) -> None:
    """AWS takes the next delete and does not finish it: the endpoint is Failed, and only another delete helps."""
    fleet = w.box.world.fleet
    whole_remove, left = fleet.remove, [1]

    def remove(endpoint: Any) -> None:
        if left and left.pop():
            endpoint.failure_reason = "Could not delete the endpoint"
            fleet._enter(endpoint, "Failed")
            return
        whole_remove(endpoint)

    fleet.remove = remove  # type: ignore[method-assign]
