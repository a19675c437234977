"""What AWS shows of an endpoint and its autoscaling at one moment, while a change is carried out.

Never cached: `apply` decides on nothing else.

AWS adds defaults of its own to what was asked for, so the two are compared by what was asked alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from rightsizer.domain.change import FailureClass
from rightsizer.domain.component import ComponentSight, placement_of, strategy_of
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.plan import Step, StepKind, wire_alarm
from rightsizer.domain.reason import Reason

AUTOSCALING = frozenset({StepKind.REGISTER_TARGET, StepKind.PUT_POLICY, StepKind.PUT_SCHEDULED})
"""Steps that put something of the owner's autoscaling."""
MOVING = -1
"""Copies of an inference component that is being changed."""


@dataclass(frozen=True, slots=True)
class VariantSight:
    """One variant as DescribeEndpoint shows it; the instance type comes from its configuration."""

    name: str
    current_count: int
    desired_count: int
    weight: float
    desired_weight: float
    resolved_images: tuple[tuple[str, str], ...] = ()
    """(as specified, as resolved) of each container."""
    pools: tuple[tuple[str, int], ...] = ()
    """Instances by type, where the variant has instance pools and AWS shows what runs."""


@dataclass(frozen=True, slots=True)
class ReservationSight:
    """Training plan that the instances of an endpoint run in (`MlReservationArn`)."""

    status: str
    """Only a plan that is ``Active`` starts instances (guide, training-plan-utilization-for-inference-endpoints)."""
    ends_at: datetime | None = None
    """End of the plan; None where AWS does not say."""


@dataclass(frozen=True, slots=True)
class ImageSight:
    """Digests that the tag of an image has in its registry today."""

    name: str
    """As the model names it."""
    digests: tuple[str, ...] = ()
    """``sha256:...`` of what it names, then of the images in it where it is an index; () when not known."""
    gone: bool = False
    """The registry answered that there is no such image."""
    problem: str = ""
    """Why it is not known."""
    passing: bool = False
    """Whether the registry may answer later: it throttled, or gave no answer."""


@dataclass(frozen=True, slots=True)
class EndpointSight:
    """DescribeEndpoint, now."""

    status: str
    config_name: str
    modified_at: datetime
    failure_reason: str
    pending_config: str
    variants: tuple[VariantSight, ...]
    capture_stopped: bool = False
    """Data capture was configured, and somebody stopped it."""
    asynchronous: bool = False
    """Requests wait in a queue of SageMaker's, and other metrics count them."""
    created_at: datetime | None = None
    """A name that was deleted and made again has another one."""
    deployment: Mapping[str, Any] = field(default_factory=dict)
    """LastDeploymentConfig, which UpdateEndpoint with RetainDeploymentConfig uses again; empty where none is shown."""
    kind: Literal["endpoint"] = "endpoint"


@dataclass(frozen=True, slots=True)
class Gone:
    """The endpoint does not exist any more."""

    name: str
    kind: Literal["gone"] = "gone"


OUTPUT_ONLY = frozenset({"EndpointConfigArn", "CreationTime", "ResponseMetadata", "EndpointConfigName"})
CARRIED = frozenset(
    {
        "ProductionVariants",
        "DataCaptureConfig",
        "KmsKeyId",
        "AsyncInferenceConfig",
        "ExplainerConfig",
        "ShadowProductionVariants",
        "ExecutionRoleArn",
        "VpcConfig",
        "EnableNetworkIsolation",
        "MetricsConfig",
    }
)
CARRIED_OF_VARIANT = frozenset(
    {
        "VariantName",
        "ModelName",
        "InitialInstanceCount",
        "InstanceType",
        "InstancePools",
        "VariantInstanceProvisionTimeoutInSeconds",
        "InitialVariantWeight",
        "CoreDumpConfig",
        "VolumeSizeInGB",
        "ModelDataDownloadTimeoutInSeconds",
        "ContainerStartupHealthCheckTimeoutInSeconds",
        "EnableSSMAccess",
        "ManagedInstanceScaling",
        "RoutingConfig",
        "InferenceAmiVersion",
    }
)
DEAD_OF_VARIANT = frozenset({"AcceleratorType"})
"""Elastic Inference is gone; AWS still returns the field."""
REFUSED_OF_VARIANT = {
    "ServerlessConfig": "it is serverless",
    "CapacityReservationConfig": "its instance type is tied to a capacity reservation",
    "AcceleratorPartitionLayouts": "its GPUs are partitioned (MIG), and the layout of a running endpoint cannot change",
}


def uncarried_fields(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Paths of the fields that a copy of the configuration would lose, since the program cannot carry one."""
    known = CARRIED_OF_VARIANT | DEAD_OF_VARIANT | set(REFUSED_OF_VARIANT)
    found = [key for key, value in body.items() if key not in CARRIED | OUTPUT_ONLY and not is_unset(value)]
    for variant in body.get("ProductionVariants") or ():
        name = variant.get("VariantName", "?")
        lost = (key for key, value in variant.items() if key not in known and not is_unset(value))
        found.extend(f"ProductionVariants.{name}.{key}" for key in lost)
    return tuple(found)


def is_unset(value: Any) -> bool:
    """Whether the field is missing or empty. False and 0 are values: without the field AWS may do something else."""
    return value is None or value in ([], {}, "")


@dataclass(frozen=True, slots=True)
class ConfigSight:
    """DescribeEndpointConfig, raw, with the paths that the service model does not know."""

    name: str
    body: Mapping[str, Any]
    created_at: datetime
    unknown_fields: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def role(self) -> str:
        """ARN of the execution role that the configuration names; empty where it names none."""
        return str(self.body.get("ExecutionRoleArn") or "")

    @property
    def subnets(self) -> tuple[str, ...]:
        """Ids of the subnets that the configuration names; none outside a network of the owner."""
        network = self.body.get("VpcConfig")
        return tuple(network.get("Subnets", ())) if isinstance(network, dict) else ()


@dataclass(frozen=True, slots=True)
class AlarmSight:
    """One metric alarm: state and the API's own body."""

    name: str
    state: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProofVerdict:
    """Verdict of the served requests on the new configuration."""

    judgement: Literal["proven", "not-yet", "bad", "given-up"]
    reason: Reason
    failure: FailureClass = FailureClass.NONE
    figures: Mapping[str, float] = field(default_factory=dict)
    """What was measured since the turn, as `Change.measured` keeps it."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why no change may begin at this moment, and until when at least."""

    until: datetime
    reason: Reason


@dataclass(frozen=True, slots=True)
class LiveState:
    """Everything that was looked at for one decision. None means: not looked at."""

    endpoint: EndpointSight | Gone
    configs: frozenset[str] = frozenset()
    """Planned configurations that exist with the content that was planned."""
    configs_differ: frozenset[str] = frozenset()
    """Planned configurations whose name is taken by other content."""
    tagged: frozenset[str] = frozenset()
    """Configurations of the plan that carry the tag of a change, without which IAM refuses to deploy them."""
    scaling: tuple[ScalableTarget, ...] | None = None
    alarms: Mapping[str, AlarmSight] | None = None
    copies: Mapping[str, int] = field(default_factory=dict)
    """Copies of each component that run; `MOVING` while one is being changed."""
    components: Mapping[str, ComponentSight] = field(default_factory=dict)
    """Components whose placement or copies the change changes, by name; without those that do not exist."""
    verdict: ProofVerdict | None = None
    hold: Hold | None = None
    """The window or an incident alarm; looked at until the turn has arrived."""

    def target(self, step: Step) -> ScalableTarget | None:
        """The live scalable target that an Application Auto Scaling step is about."""
        wanted = (step.params.get("ResourceId"), step.params.get("ScalableDimension"))
        return next((t for t in self.scaling or () if (t.resource_id, t.dimension) == wanted), None)

    def edits(self, goals: Iterable[Step], targets: Iterable[ScalableTarget]) -> tuple[str, ...]:
        """Differences between live autoscaling and these steps, by step key, with additions that were not stored.

        New policies and scheduled actions are named by their resource and name. Empty where nothing was looked at.
        """
        if self.scaling is None:
            return ()
        other = (s.key for s in goals if s.kind in AUTOSCALING and not self.has_effect_of(s))
        return (
            *other,
            *(f"{resource} {name}" for resource, name in sorted(_policy_names(self.scaling) - _policy_names(targets))),
        )

    def resolve_step(self, step: Step) -> Step:
        """The step as it is sent now, with live policies, live tags and the live specification.

        An alarm is wired to the live policies (`domain.plan`) and sent without idle tags; a component keeps its
        present specification, but for the placement.

        Tags belong to the registration of a new target; one that is there still has its own (RegisterScalableTarget).
        """
        if step.kind is StepKind.REGISTER_TARGET and self.target(step) is not None:
            return replace(step, params={k: v for k, v in step.params.items() if k != "Tags"})
        if step.kind is StepKind.UPDATE_COMPONENT:  # nobody's edit of the specification or copies is undone
            sight = self.components.get(step.component)
            whole = (
                sight.placement_request(strategy_of(step.params)) if sight is not None and not sight.is_moving else {}
            )
            return replace(step, params={**step.params, **whole})
        if step.kind is not StepKind.PUT_ALARM:
            return step
        live = (self.alarms or {}).get(step.subject)
        return wire_alarm(step, self.scaling or (), live.body if live is not None else None)

    def has_effect_of(self, step: Step) -> bool:
        """Whether AWS already shows what the step would bring about. Pure; raises nothing."""
        match step.kind:
            case StepKind.CREATE_CONFIG:
                return step.subject in self.configs
            case StepKind.TAG_CONFIG:
                return step.subject in self.tagged
            case StepKind.UPDATE_ENDPOINT | StepKind.SET_CAPACITY | StepKind.SET_COPIES:
                return self._is_serving(step)
            case StepKind.UPDATE_COMPONENT:
                sight = self.components.get(step.component)
                return sight is None or (sight.status == "InService" and sight.strategies <= placement_of(step))
            case StepKind.PUT_ALARM:
                alarm = (self.alarms or {}).get(step.subject)
                return alarm is not None and has_all_of(alarm.body, self.resolve_step(step).params, skip=("Tags",))
            case StepKind.DELETE_ALARMS:
                return not any(name in (self.alarms or {}) for name in step.params["AlarmNames"])
            case _:
                return self._is_scaled(step)

    def _is_serving(self, step: Step) -> bool:
        if isinstance(self.endpoint, Gone):
            return False
        if step.kind is StepKind.SET_COPIES:
            return bool(self.copies.get(step.subject) == step.params["DesiredRuntimeConfig"]["CopyCount"])
        if step.kind is StepKind.UPDATE_ENDPOINT:
            return bool(self.endpoint.config_name == step.params["EndpointConfigName"])
        wanted = {d["VariantName"]: d.get("DesiredInstanceCount") for d in step.params["DesiredWeightsAndCapacities"]}
        live = {v.name: v.desired_count for v in self.endpoint.variants}
        return all(live.get(name) == count for name, count in wanted.items())

    def _is_scaled(self, step: Step) -> bool:
        target = self.target(step)
        match step.kind:
            case StepKind.DEREGISTER_TARGET:
                return target is None
            case StepKind.DELETE_POLICY:
                return target is None or _record(target.policies, "PolicyName", step) is None
            case StepKind.REGISTER_TARGET:
                return target is not None and _bounds(target) == (
                    step.params["MinCapacity"],
                    step.params["MaxCapacity"],
                    _suspended(step.params.get("SuspendedState", {})),
                )
            case StepKind.PUT_POLICY:
                live = None if target is None else _record(target.policies, "PolicyName", step)
            case _:
                live = None if target is None else _record(target.scheduled, "ScheduledActionName", step)
        return live is not None and has_all_of(live, step.params, skip=())


def _policy_names(targets: Iterable[ScalableTarget]) -> set[tuple[str, str]]:
    """The policies and scheduled actions, each with its resource."""
    return {
        (t.resource_id, str(row.get("PolicyName") or row.get("ScheduledActionName") or ""))
        for t in targets
        for row in (*t.policies, *t.scheduled)
    }


def _record(rows: tuple[Mapping[str, Any], ...], key: str, step: Step) -> Mapping[str, Any] | None:
    return next((row for row in rows if row.get(key) == step.params.get(key)), None)


def _bounds(target: ScalableTarget) -> tuple[int, int, dict[str, bool]]:
    return target.minimum, target.maximum, _suspended(target.suspended)


def _suspended(state: Mapping[str, bool]) -> dict[str, bool]:
    """Scaling activities that are suspended: AWS reports the others as false or leaves them out."""
    return {key: True for key, value in state.items() if value}


def has_all_of(live: Any, wanted: Any, skip: tuple[str, ...]) -> bool:
    """Whether everything that was asked for is there; AWS may add defaults of its own."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            has_all_of(live.get(key), value, skip) for key, value in wanted.items() if key not in skip
        )
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(live, (list, tuple))
            and len(live) == len(wanted)
            and all(has_all_of(a, b, skip) for a, b in zip(live, wanted, strict=True))
        )
    if isinstance(wanted, float) or isinstance(live, float):
        return isinstance(live, (int, float)) and float(live) == float(wanted)
    return bool(_moment(live) == _moment(wanted))


def _moment(value: Any) -> Any:
    """Times compare as instants, whether AWS gave a datetime or the journal kept ISO text."""
    if isinstance(value, str) and value[:4].isdigit() and "T" in value:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value
