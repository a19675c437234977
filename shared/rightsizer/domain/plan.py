"""What a change stores before its first write: what ran, and the steps of both directions.

A step is one write to AWS as data: what is asked of which service, on which thing, and how a person would do it by
hand. The wiring says which policy each action of an alarm means, while policies are deleted and made again.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from shlex import quote
from typing import Any

from rightsizer.domain.checks import not_empty
from rightsizer.domain.demand import Peak
from rightsizer.domain.endpoint import ScalableTarget

POLICY_PLACEHOLDER = "policy:"
"""``policy:<resource>|<dimension>|<name>`` stands for the ARN that a scaling policy will have once it is put again."""
PLACE = re.compile(rf"{POLICY_PLACEHOLDER}[^|]+/[^|]+\|sagemaker:[^|]+\|.+")
ACTIONS = ("AlarmActions", "OKActions", "InsufficientDataActions")


class PlanKind(StrEnum):
    """Purpose of a plan; the values are stored."""

    CHANGE = "change"
    """The endpoint runs something else, or is scaled otherwise."""
    SHADOW_TEST = "shadow-test"
    """A shadow variant gets a copy of the requests for some hours, and goes away."""
    DELETE = "delete"
    """Nothing is written to AWS: the endpoint is watched, and its owner is handed the line that deletes it."""


class StepKind(StrEnum):
    """Every write that we may make, as its IAM action. Only office hours delete what serves, and create it again."""

    CREATE_CONFIG = "sagemaker:CreateEndpointConfig"
    TAG_CONFIG = "sagemaker:AddTags"
    UPDATE_ENDPOINT = "sagemaker:UpdateEndpoint"
    SET_CAPACITY = "sagemaker:UpdateEndpointWeightsAndCapacities"
    SET_COPIES = "sagemaker:UpdateInferenceComponentRuntimeConfig"
    UPDATE_COMPONENT = "sagemaker:UpdateInferenceComponent"
    REGISTER_TARGET = "application-autoscaling:RegisterScalableTarget"
    DEREGISTER_TARGET = "application-autoscaling:DeregisterScalableTarget"
    PUT_POLICY = "application-autoscaling:PutScalingPolicy"
    DELETE_POLICY = "application-autoscaling:DeleteScalingPolicy"
    PUT_SCHEDULED = "application-autoscaling:PutScheduledAction"
    PUT_ALARM = "cloudwatch:PutMetricAlarm"
    DELETE_ALARMS = "cloudwatch:DeleteAlarms"
    UPDATE_GROUP = "autoscaling:UpdateAutoScalingGroup"
    RELEASE_POOL = "sagemaker:UpdateTrainingJob"
    DELETE_ENDPOINT = "sagemaker:DeleteEndpoint"
    CREATE_ENDPOINT = "sagemaker:CreateEndpoint"
    SILENCE_ALARMS = "cloudwatch:DisableAlarmActions"
    SOUND_ALARMS = "cloudwatch:EnableAlarmActions"

    @property
    def operation(self) -> str:
        """The API operation."""
        return self.value.split(":")[1]


@dataclass(frozen=True, slots=True)
class Step:
    """One write. `params` are the API's own parameters, so that the same record is done, repeated and handed over."""

    kind: StepKind
    subject: str
    """The thing that it touches: a configuration, an endpoint, a scalable target, an alarm."""
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        not_empty("Step.subject", self.subject)

    @property
    def service(self) -> str:
        """The service as boto3 and the AWS CLI call it."""
        return self.kind.value.split(":")[0]

    @property
    def operation(self) -> str:
        """The API operation."""
        return self.kind.operation

    @property
    def component(self) -> str:
        """Name of the inference component that the request is about; empty where it is about another thing."""
        return str(self.params.get("InferenceComponentName", ""))

    @property
    def key(self) -> str:
        """Names the step in the journal; the same step has the same key however often it is tried."""
        name = str(self.params.get("PolicyName") or self.params.get("ScheduledActionName") or "")
        return f"{self.operation} {self.subject}" + (f" {name}" if name else "")

    @property
    def text(self) -> str:
        """The request as text: two steps with the same key and other parameters differ by it."""
        return self.command("")

    def command(self, region: str) -> str:
        """The AWS CLI line that does the same in a Region."""
        return command(self.service, self.operation, self.params, region)


def key_of_try(number: int, key: str) -> str:
    """Key of a step of an earlier try in the journal: it does not count as done in the next."""
    return f"try {number}: {key}"


def created_config(key: str) -> str:
    """Name of the configuration that the step of this key creates, of any try; empty for other steps."""
    operation, _, subject = key.rpartition(":")[2].strip().partition(" ")
    return subject if operation == StepKind.CREATE_CONFIG.operation else ""


def command(service: str, operation: str, params: Mapping[str, Any], region: str) -> str:
    """The AWS CLI line of a request, quoted for a shell; without a Region where none is known.

    A policy that is named by its place is asked for first: the line puts its ARN into a variable, and uses it.
    """
    verb = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", operation).lower()
    places = {value: f"POLICY_{number}" for number, value in enumerate(dict.fromkeys(_places(params)), start=1)}
    body = json.dumps(_with_variables(params, places), sort_keys=True, default=str).replace("'", "'\\''")
    for variable in places.values():
        body = body.replace(f"@{variable}@", f"'\"${variable}\"'")
    where = region_option(region)
    asked = "".join(f'{variable}="$({_lookup_command(place, where)})" && ' for place, variable in places.items())
    return f"{asked}aws {service} {verb}{where} --cli-input-json '{body}'"


def region_of_arn(arn: str) -> str:
    """The Region in an ARN; empty where it has none."""
    return (arn.split(":", 4) + [""] * 4)[3]


def region_option(region: str) -> str:
    """The option by which a command line names its Region, after a space; empty where none is known."""
    return f" --region {quote(region)}" if region else ""


def terminal_command(words: str, region: str) -> str:
    """A command line of rightsizer, for a shell of any Region."""
    return f"rightsizer {words}{region_option(region)}"


def order_command(order: str, name: str, region: str) -> str:
    """The command line of an order to rightsizer about one thing, for a shell of any Region."""
    return terminal_command(f"{order} {quote(name)}", region)


def has_places(step: Step) -> bool:
    """Whether the request still names a policy by its place, which AWS knows nothing of."""
    return next(_places(step.params), "") != ""


def _places(value: Any) -> Iterator[str]:
    """Every policy that a request names by its place."""
    if isinstance(value, str) and PLACE.fullmatch(value):
        yield value
    elif isinstance(value, Mapping):
        yield from (place for part in value.values() for place in _places(part))
    elif isinstance(value, (list, tuple)):
        yield from (place for part in value for place in _places(part))


def _with_variables(value: Any, places: Mapping[str, str]) -> Any:
    """The request with the name of a variable in the place of each of them."""
    if isinstance(value, Mapping):
        return {key: _with_variables(part, places) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_variables(part, places) for part in value]
    return f"@{places[value]}@" if isinstance(value, str) and value in places else value


def _lookup_command(place: str, where: str) -> str:
    """The AWS CLI line that prints the ARN of a policy."""
    resource, dimension, name = place.removeprefix(POLICY_PLACEHOLDER).split("|", 2)
    return (
        f"aws application-autoscaling describe-scaling-policies{where} --service-namespace sagemaker "
        f"--resource-id {quote(resource)} --scalable-dimension {quote(dimension)} --policy-names {quote(name)} "
        "--query 'ScalingPolicies[0].PolicyARN' --output text"
    )


@dataclass(frozen=True, slots=True)
class VariantCount:
    """Type, count and weight of one variant, as it ran or shall run."""

    name: str
    instance_type: str
    count: int
    weight: float


@dataclass(frozen=True, slots=True)
class Before:
    """Everything that is needed to go back; stored before the first write."""

    config_name: str
    modified_at: datetime
    failure_reason: str
    variants: tuple[VariantCount, ...]
    scaling: tuple[ScalableTarget, ...] = ()
    alarms: tuple[Mapping[str, Any], ...] = ()
    """The customer's alarms whose actions point at a step policy, in the API's own form."""
    copies: Mapping[str, int] = field(default_factory=dict)
    """Copies of each inference component."""
    tags: Mapping[str, str] = field(default_factory=dict)
    routing: str = ""
    """How requests were routed to the instances of the changed variant; empty where that was not recorded."""


@dataclass(frozen=True, slots=True)
class AutoscalingBeforeRollback:
    """Autoscaling as a return found it, before it took it away: what a return that fails gives back."""

    at: datetime
    scaling: tuple[ScalableTarget, ...] = ()
    alarms: tuple[Mapping[str, Any], ...] = ()
    """Alarms whose actions point at a step policy then, in the API's own form."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of both directions, made once from what was seen at the start.

    Each list is a goal, not a script: a step that the account already shows is skipped, so any part may be run again.
    """

    prepare: tuple[Step, ...] = ()
    """Things that serve nobody: the new configuration, the roll-back alarms."""
    clear: tuple[Step, ...] = ()
    """Deregistering of scalable targets, which would refuse the update."""
    turn: Step | None = None
    """The one write that changes what serves; None when only autoscaling changes."""
    settle: tuple[Step, ...] = ()
    """Autoscaling on the new capacity."""
    back: Step | None = None
    """The write that brings the old configuration back."""
    restore: tuple[Step, ...] = ()
    """Autoscaling as it was."""
    tidy: tuple[Step, ...] = ()
    """Removal of what we made for the time of the change."""
    new_config: str = ""
    """Empty when no configuration is created."""
    back_config: str = ""
    """What the rollback deploys: the old configuration, or a clone of it with the live counts where those differ."""
    after: tuple[VariantCount, ...] = ()
    """What each variant shall run."""
    alarms: tuple[str, ...] = ()
    """Names of the roll-back alarms."""
    deployment_limit_s: int = 28_800
    """The longest that the deployment may take by its own configuration, seconds."""
    kind: PlanKind = PlanKind.CHANGE
    guardrail: str = ""
    """The deployment guardrail in a sentence."""
    shadow: str = ""
    """Name of the shadow variant of a test."""
    test_s: int = 0
    """Seconds that a shadow test lasts, or that an endpoint marked for deletion is watched."""
    peak: Peak | None = None
    """The busiest hour that a shadow test is to see; None where none stands out."""
    exchange: tuple[int, int] = (0, 0)
    """(old, new): so many instances of the changed variant serve the same, as decided; zeros where no type changes."""
    grown: tuple[VariantCount, ...] = ()
    """What the rollback runs where the fleet grew since the plan; empty: as stored."""
    first_back: Step | None = None
    """The rollback of the plan's hour, where another one was chosen."""
    restore_file: tuple[str, ...] = ()
    """Lines of a shell script that makes a deleted endpoint again."""

    @property
    def is_keeping_counts(self) -> bool:
        """Whether the deployment leaves counts and weights as they are live (RetainAllVariantProperties)."""
        return self.turn is not None and bool(self.turn.params.get("RetainAllVariantProperties"))


def with_policy_places(alarm: Mapping[str, Any], snapshot: Iterable[ScalableTarget]) -> dict[str, Any]:
    """The alarm body with each policy of the snapshot named by place, since its ARN will change."""
    places = {arn: place for place, arn in _arns(snapshot).items()}
    return {k: [places.get(a, a) for a in v] if k in ACTIONS else v for k, v in alarm.items()}


def wire_alarm(step: Step, scaling: Sequence[ScalableTarget], live: Mapping[str, Any] | None) -> Step:
    """The step that puts an alarm with the live ARN of each policy that the alarm starts.

    An alarm of the customer's keeps the body that it has now, since its owner may have edited it meanwhile: only its
    actions are put right. Those that start policies come from the snapshot, since deleting a policy took them out of
    the alarm (Application Auto Scaling); the others are the live ones. `live` is None where the alarm is gone.
    """
    arns = _arns(scaling)
    params = {k: [arns.get(a, a) for a in v] if k in ACTIONS else v for k, v in step.params.items()}
    if live is None or "Tags" in params:  # DescribeAlarms shows no tags, so what has some is ours
        return replace(step, params=params)
    gone = _missing_arns(step, arns)
    body = {**live, **{k: _alarm_actions(params.get(k, ()), live.get(k, ()), gone) for k in ACTIONS}}
    return replace(step, params={k: v for k, v in body.items() if k not in ACTIONS or v or k in params})


def _arns(targets: Iterable[ScalableTarget]) -> dict[str, str]:
    """The ARN of each policy by its place."""
    return {
        f"{POLICY_PLACEHOLDER}{t.resource_id}|{t.dimension}|{p['PolicyName']}": p["PolicyARN"]
        for t in targets
        for p in t.policies
        if "PolicyARN" in p
    }


def _missing_arns(step: Step, arns: Mapping[str, str]) -> tuple[str, ...]:
    """Parts of ARNs by which policies of the same targets are known that an alarm may still name."""
    places = (a for k in ACTIONS for a in step.params.get(k, ()) if a.startswith(POLICY_PLACEHOLDER))
    resources = {place.removeprefix(POLICY_PLACEHOLDER).split("|")[0] for place in (*places, *arns)}
    return tuple(f":resource/sagemaker/{resource}:" for resource in sorted(resources))


def _alarm_actions(wanted: Sequence[str], live: Sequence[str], gone: tuple[str, ...]) -> list[str]:
    """Policies as wanted, everything else as it is live, in the wanted order first."""
    theirs = [a for a in live if not any(part in a for part in gone)]
    kept = [a for a in wanted if a in theirs or a.startswith(POLICY_PLACEHOLDER) or any(part in a for part in gone)]
    return [*kept, *(a for a in theirs if a not in kept)]
