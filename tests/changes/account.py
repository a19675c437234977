"""One endpoint as AWS would show it, in memory: what a change sees and writes, without an adapter and without a wire.

It knows just enough of AWS to carry a change from its plan to its end: a deployment takes twenty minutes and ends as
told, an alarm is OK a minute after it was put, scalable targets hold their policies and scheduled actions. What AWS
refuses, how a request is written and what a role may do is tested on the simulated account (`tests/changing`).
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
from rightsizer.domain.live_state import AlarmSight, ConfigSight, EndpointSight, Gone, ImageSight, VariantSight
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.preflight import RolePass
from rightsizer.domain.usage import MetricStatistic, MetricWindow, NoMetrics, Series
from rightsizer.errors import ReadError, RightsizerError
from rightsizer.ports.evaluation import MetricRequest

MONDAY = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
NAME, OLD = "chat", "chat-config"
OLD_TYPE, NEW_TYPE = "ml.g5.4xlarge", "ml.g5.xlarge"
WHO = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/{NAME}/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
DEPLOYS, SCALES = timedelta(minutes=20), timedelta(minutes=6)
REASONS = {
    "capacity": "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error.",
    "health_check": "The container for production variant AllTraffic did not pass the ping health check.",
    "alarm": "Alarm rightsizer-c-5xx was breached during the deployment, and the endpoint was rolled back.",
    "internal": "",
}
"""What DescribeEndpoint says of a deployment that was rolled back."""
BODY: Mapping[str, Any] = {
    "EndpointConfigName": OLD,
    "EndpointConfigArn": f"arn:aws:sagemaker:eu-west-1:111122223333:endpoint-config/{OLD}",
    "CreationTime": MONDAY - timedelta(days=90),
    "ProductionVariants": [
        {
            "VariantName": "AllTraffic",
            "ModelName": "chat-model",
            "InstanceType": OLD_TYPE,
            "InitialInstanceCount": 1,
            "InitialVariantWeight": 1.0,
        }
    ],
    "MetricsConfig": {"EnableEnhancedMetrics": True, "MetricPublishFrequencyInSeconds": 60},
}
IMAGE = ("111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat@sha256:" + "a" * 64,) * 2


@dataclass(frozen=True)
class Load:
    """What each variant serves in a minute."""

    requests: float = 60.0
    p95_s: float = 0.2
    errors: float = 0.0
    gpu: float = 10.0
    overhead_s: float = 0.0


STEADY = Load()


@dataclass
class Account:
    """Keeps the promises of `ports.changes.Changer`, and reads metrics and quotas, of the endpoint `chat`."""

    now: datetime = MONDAY
    endpoint_tags: dict[str, str] = field(default_factory=lambda: {"rightsizer:mode": "propose"})
    config_name: str = OLD
    pending: str = ""
    failure: str = ""
    status: str = "InService"
    modified: datetime = MONDAY - timedelta(days=30)
    counts: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    """(current, desired, weight) of each variant."""
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    tagged: dict[str, dict[str, str]] = field(default_factory=dict)
    targets: dict[str, ScalableTarget] = field(default_factory=dict)
    known_alarms: dict[str, tuple[datetime, dict[str, Any]]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    """Alarms that are in a state whatever the time is."""
    endings: list[str] = field(default_factory=list)
    """How the next deployments end; success where nothing is said."""
    load: Callable[[datetime, str, str], Load] = lambda at, variant, kind: STEADY
    quotas: dict[str, int] = field(default_factory=dict)
    done: list[Step] = field(default_factory=list)
    """The writes that were made."""
    refuses: Callable[[Step], RightsizerError | None] = lambda step: None
    """Why AWS does not make a write."""
    loses: Callable[[Step], bool] = lambda step: False
    """Whether the answer to a write is lost after it was made."""
    unseen: str = ""
    """Why nothing can be read now."""
    gone: bool = False
    registry: dict[str, ImageSight] = field(default_factory=dict)
    image: tuple[str, str] = IMAGE
    """The image that runs, as specified and as resolved."""
    pool: str = ""
    """The pool that had capacity, where it was not the first one."""
    _until: datetime | None = None
    _ending: str = "success"

    def __post_init__(self) -> None:
        self.configs.setdefault(OLD, dict(BODY))
        for variant in self.configs[self.config_name]["ProductionVariants"]:
            count = variant["InitialInstanceCount"]
            self.counts.setdefault(variant["VariantName"], (count, count, variant["InitialVariantWeight"]))

    def advance_to(self, at: datetime) -> None:
        """Time passes; a deployment that is due ends."""
        self.now = at
        if self._until is None or at < self._until:
            return
        ended, self._until, self.status = self._until, None, "InService"
        if self.pending and self._ending == "success":
            self.config_name, self.failure = self.pending, ""
        elif self.pending:
            self.failure = REASONS[self._ending]
            self._counts_of(self.config_name)
        self.pending, self.modified = "", ended
        self.counts = {name: (desired, desired, weight) for name, (_, desired, weight) in self.counts.items()}

    def scale(self, count: int, variant: str = "AllTraffic") -> None:
        """A person or autoscaling sets a count, which shows at once."""
        self.counts[variant] = (count, count, self.counts[variant][2])
        self.modified = self.now

    def release(self, name: str = "theirs", count: int = 1) -> None:
        """The owner deploys a configuration of their own, which shows at once."""
        body = dict(self.configs[OLD])
        self.configs[name] = body | {"EndpointConfigName": name}
        self.config_name, self.modified = name, self.now
        self.scale(count)

    def writes(self, *kinds: StepKind) -> list[Step]:
        """The writes that were made, of these kinds where some are named."""
        return [step for step in self.done if not kinds or step.kind in kinds]

    def instance_type(self, variant: str) -> str:
        """The type that the live configuration gives a variant."""
        body = self.configs[self.config_name]
        rows = (*body["ProductionVariants"], *body.get("ShadowProductionVariants", ()))
        return next((str(row.get("InstanceType", "")) for row in rows if row["VariantName"] == variant), "")

    def endpoint(self, name: str) -> EndpointSight | Gone:
        if self.unseen:
            raise ReadError(self.unseen)
        if self.gone:
            return Gone(name)
        variants = tuple(
            VariantSight(variant, current, desired, weight, weight, (self.image,), self._pools(variant, current))
            for variant, (current, desired, weight) in self.counts.items()
        )
        return EndpointSight(self.status, self.config_name, self.modified, self.failure, self.pending, variants)

    def _pools(self, variant: str, count: int) -> tuple[tuple[str, int], ...]:
        rows = self.configs[self.config_name]["ProductionVariants"]
        pools = next((row.get("InstancePools") or () for row in rows if row["VariantName"] == variant), ())
        first = min(pools, key=lambda pool: pool["Priority"], default=None)
        return () if first is None else ((self.pool or str(first["InstanceType"]), count),)

    def config(self, name: str) -> ConfigSight | None:
        body = self.configs.get(name)
        return None if body is None else ConfigSight(name, body, body["CreationTime"], (), self.tagged.get(name, {}))

    def tags(self, ref: EndpointRef) -> Mapping[str, str]:
        return dict(self.endpoint_tags)

    def tags_of(self, arn: str) -> Mapping[str, str]:
        return {}

    def scaling(
        self, endpoint: str, variants: Sequence[str], components: Sequence[str] = ()
    ) -> tuple[ScalableTarget, ...]:
        return tuple(self.targets.values())

    def alarms(self, names: Sequence[str]) -> Mapping[str, AlarmSight]:
        return {n: AlarmSight(n, self._state(n), self.known_alarms[n][1]) for n in names if n in self.known_alarms}

    def _state(self, name: str) -> str:
        fresh = self.now - self.known_alarms[name][0] < timedelta(minutes=1)
        return self.states.get(name, "INSUFFICIENT_DATA" if fresh else "OK")

    def alarms_with_actions(self, arns: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
        return tuple(body for _, body in self.known_alarms.values() if {*body.get("AlarmActions", ())} & {*arns})

    def component_names(self, endpoint: str) -> Sequence[str]:
        return ()

    def components(self, names: Sequence[str]) -> Mapping[str, ComponentSight]:
        return {}

    def is_sold(self, instance_type: str, subnets: Sequence[str]) -> bool | None:
        return True

    def images(self, ref: EndpointRef, names: Sequence[str]) -> Mapping[str, ImageSight]:
        return {name: self.registry[name] for name in names if name in self.registry}

    def alarm_visibility(self, models: Sequence[str], roles: Sequence[str] = ()) -> Mapping[str, bool | None]:
        return {}

    def role_pass(self, role: str) -> RolePass:
        return RolePass(role, "apply", True)

    def denied_restore_actions(self, ref: EndpointRef, targets: Sequence[ScalableTarget]) -> tuple[str, ...]:
        return ()

    def endpoint_quotas(self) -> Mapping[str, int]:
        return dict(self.quotas)

    def read(
        self, requests: Sequence[MetricRequest], start: datetime, end: datetime, period_s: int
    ) -> Iterator[MetricWindow | NoMetrics]:
        for asked in requests:
            yield self._window(asked, start, end, period_s)

    def _window(self, asked: MetricRequest, start: datetime, end: datetime, period_s: int) -> MetricWindow:
        """What was served since `start`; of all that time by what runs now."""
        kind = self.instance_type(asked.variant)
        periods = max(0, int((end - start).total_seconds() // period_s))
        loads = [self.load(start + timedelta(seconds=i * period_s), asked.variant, kind) for i in range(periods)]
        minutes, rows = period_s / 60, dict[MetricStatistic, list[float]]()
        for signal in asked.signals:
            match signal.metric:
                case "Invocations":
                    rows[signal] = [load.requests * minutes for load in loads]
                case "Invocation5XXErrors":
                    rows[signal] = [load.errors * minutes for load in loads]
                case "ModelLatency":
                    share = 1.0 if signal.statistic == "p95" else 0.5
                    rows[signal] = [1e6 * load.p95_s * share if load.requests else float("nan") for load in loads]
                case "OverheadLatency":
                    rows[signal] = [1e6 * load.overhead_s for load in loads]
                case "GPUUtilization":
                    rows[signal] = [load.gpu * minutes for load in loads]
                case "GPUMemoryUtilization" | "MemoryUtilization" | "CPUUtilization":
                    rows[signal] = [20.0] * periods
        series = {signal: Series(start, period_s, array("d", values)) for signal, values in rows.items()}
        return MetricWindow(asked.endpoint, asked.variant, start, end, period_s, series)

    def perform(self, step: Step) -> None:
        if (error := self.refuses(step)) is not None:
            raise error
        self.done.append(step)
        self._make(step)
        if self.loses(step):
            raise ReadError("the answer was lost: read timeout")

    def _make(self, step: Step) -> None:
        params = dict(step.params)
        match step.kind:
            case StepKind.CREATE_CONFIG:
                arn = f"{BODY['EndpointConfigArn'].rpartition('/')[0]}/{step.subject}"
                self.configs[step.subject] = params | {"EndpointConfigArn": arn, "CreationTime": self.now}
                self.tagged[step.subject] = {tag["Key"]: tag["Value"] for tag in params.get("Tags", ())}
            case StepKind.TAG_CONFIG:
                self.tagged[step.subject] = {tag["Key"]: tag["Value"] for tag in params["Tags"]}
            case StepKind.UPDATE_ENDPOINT:
                self._deploy(params["EndpointConfigName"], params.get("RetainAllVariantProperties", False))
            case StepKind.SET_CAPACITY:
                for row in params["DesiredWeightsAndCapacities"]:
                    current, _, weight = self.counts[row["VariantName"]]
                    self.counts[row["VariantName"]] = (current, row["DesiredInstanceCount"], weight)
                self.status, self.modified, self._until = "Updating", self.now, self.now + SCALES
            case StepKind.PUT_ALARM:
                self.known_alarms[step.subject] = (self.now, params)
            case StepKind.DELETE_ALARMS:
                for name in params["AlarmNames"]:
                    self.known_alarms.pop(name, None)
            case _:
                self._register(step, params)

    def _deploy(self, name: str, keep: bool) -> None:
        self._ending = self.endings.pop(0) if self.endings else "success"
        self.status, self.pending, self.modified = "Updating", name, self.now
        self._until = self.now + DEPLOYS
        if not keep:
            self._counts_of(name, current=False)

    def _counts_of(self, name: str, *, current: bool = True) -> None:
        for row in self.configs[name]["ProductionVariants"]:
            count, variant = row.get("InitialInstanceCount", 1), row["VariantName"]
            now = count if current else self.counts.get(variant, (count, count, 1.0))[0]
            self.counts[variant] = (now, count, row.get("InitialVariantWeight", 1.0))

    def _register(self, step: Step, params: dict[str, Any]) -> None:
        resource = params["ResourceId"]
        known = self.targets.get(resource)
        match step.kind:
            case StepKind.DEREGISTER_TARGET:
                self.targets.pop(resource, None)
            case StepKind.REGISTER_TARGET:
                bounds = (params["MinCapacity"], params["MaxCapacity"], params.get("SuspendedState", {}))
                if known is None:
                    known = ScalableTarget(resource, params["ScalableDimension"], *bounds, tags=params.get("Tags", {}))
                self.targets[resource] = replace(known, minimum=bounds[0], maximum=bounds[1], suspended=bounds[2])
            case StepKind.PUT_POLICY if known is not None:
                rest = tuple(row for row in known.policies if row["PolicyName"] != params["PolicyName"])
                arn = f"arn:aws:autoscaling:eu-west-1:111122223333:scalingPolicy:{len(self.done)}:{resource}"
                self.targets[resource] = replace(known, policies=(*rest, params | {"PolicyARN": arn}))
            case StepKind.PUT_SCHEDULED if known is not None:
                name = params["ScheduledActionName"]
                others = tuple(row for row in known.scheduled if row["ScheduledActionName"] != name)
                self.targets[resource] = replace(known, scheduled=(*others, params))
            case StepKind.DELETE_POLICY if known is not None:
                left = tuple(row for row in known.policies if row["PolicyName"] != params["PolicyName"])
                self.targets[resource] = replace(known, policies=left)
            case _:
                raise AssertionError(f"this account in memory knows no {step.key}")
