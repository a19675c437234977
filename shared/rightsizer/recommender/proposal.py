"""Proposal of a recommendation: whether to ask, whom, for how long, and how an owner allows the change.

A stack-owned endpoint is never changed by a call: its next deployment would undo it. What helps is the difference in
the owner's own source (CloudFormation AWS::SageMaker::EndpointConfig and AWS::ApplicationAutoScaling::ScalableTarget,
Terraform aws_sagemaker_endpoint_configuration and aws_appautoscaling_target).
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rightsizer.autoscaling.schedules import scheduled_counts
from rightsizer.domain.endpoint import MODE_TAG, Endpoint, EndpointKind, EndpointRef, Mode
from rightsizer.domain.option import CHANGEABLE, Option, OptionKind, ScaleIn, Target
from rightsizer.domain.proposal import DecidedBy, Decision, DecisionSource, Proposal, ProposalState
from rightsizer.domain.recommendation import Finding, Gate, Recommendation

TERRAFORM = ("terraform", "opentofu")

type Keyed = str | int | float | tuple[Keyed, ...] | None
"""What the key of a target is made of."""
type DiffValue = str | int | float | None
type DiffLine = tuple[str, str, DiffValue, DiffValue]
"""Name in CloudFormation, name in HCL, old and new value; equal values are context."""


@dataclass(frozen=True, slots=True)
class ChangePermission:
    """Permission of the deployed role to change one endpoint."""

    approvable: bool
    """Whether an approval would be carried out."""
    enable: str
    """Why it would not, and how to make it so; empty when it is."""
    tag: bool = False
    """The owner's tag is all that is missing."""


def permission_for_endpoint(endpoint: Endpoint, *, writes: bool, untagged: bool) -> ChangePermission:
    """Permission of the role for this endpoint, and how to allow more.

    `writes`: the stack was deployed with write permissions. `untagged`: it may change endpoints without the mode tag.
    The answer mirrors the IAM conditions of the template, so that no button is shown that IAM would refuse.
    """
    if endpoint.tags_unread is not None:
        return ChangePermission(False, f"its tags could not be read: {endpoint.tags_unread.sentence}")
    if endpoint.owned_by:
        return ChangePermission(
            False, f"change it in {endpoint.owned_by}; a change from outside would drift and be reverted"
        )
    if endpoint.kind not in CHANGEABLE and endpoint.kind is not EndpointKind.INFERENCE_COMPONENTS:
        return ChangePermission(False, f"an endpoint of the kind {endpoint.kind} is changed by its owner")
    if not writes:
        return ChangePermission(False, "deploy the stack with MayChange=tagged; this one changes nothing")
    spelled = endpoint.tags.get(MODE_TAG, endpoint.mode.value) in set(Mode)  # IAM compares it letter by letter
    if endpoint.mode in (Mode.PROPOSE, Mode.AUTO) and (spelled if endpoint.mode_declared else untagged):
        return ChangePermission(True, "")
    text = (endpoint.tags.get(MODE_TAG) or endpoint.mode.value) if endpoint.mode_declared else "absent"
    return ChangePermission(False, f"its tag {MODE_TAG} is {text}; its owner lets it be changed with", tag=True)


def permission_for_option(option: Option, permission: ChangePermission) -> ChangePermission:
    """Permission for one option; an option outside of the endpoint needs its owner, whatever the tag says."""
    if option.in_place or option.kind is OptionKind.DELETE or not (permission.approvable or permission.tag):
        return permission  # a deletion begins with a mark; the deleting itself stays its owner's
    text = option.client_change or "it is not done on the same endpoint"
    return ChangePermission(False, f"{option.kind.value} is done by the owner: {text}")


def withhold_undone_count(
    endpoint: Endpoint, recommendation: Recommendation, permission: ChangePermission
) -> ChangePermission:
    """Withhold approval of a count that the owner's scaling policies would change back.

    Says which bound the owner can change.

    `apply` refuses it, so that no button is shown; the line lowers their minimum where that is above the count.
    """
    option = recommendation.chosen_option
    own = next((t for t in endpoint.scaling if t.variant_name == recommendation.variant and t.policies), None)
    if option is None or option.kind is not OptionKind.INSTANCE_COUNT or own is None:
        return permission
    target, text = option.target, "the policies of Application Auto Scaling set its count"
    bounds = (target.minimum, target.maximum, target.target_value)
    if not (permission.approvable or permission.tag) or any(bound is not None for bound in bounds):
        return permission
    count = target.instance_count
    if count >= own.minimum:
        return ChangePermission(
            False, f"{text}, from {own.minimum} to {own.maximum}; its owner changes the target of its policy"
        )
    text += f" and would undo another one; its owner can lower the minimum of its scalable target to {count}, from "
    line = f"aws application-autoscaling register-scalable-target --region {endpoint.ref.region} "
    line += "--service-namespace sagemaker"
    line += f" --resource-id {own.resource_id} --scalable-dimension {own.dimension}"
    return ChangePermission(False, f"{text}{own.minimum}:\n{line} --min-capacity {count}")


def withhold_copies(recommendation: Recommendation, permission: ChangePermission) -> ChangePermission:
    """Withhold approval of other copies of a component whose own tags do not allow it, and say what would."""
    option = recommendation.chosen_option
    cut = dict(option.target.all_copies) if option is not None else {}
    text = next(
        (finding.withheld for finding in recommendation.components if finding.name in cut and finding.withheld), ""
    )
    return ChangePermission(False, text) if text and permission.approvable else permission


def proposal_id(recommendation: Recommendation, option: Option) -> str:
    """The same option for the same configuration of the same endpoint has the same id, whenever it is evaluated."""
    parts = (recommendation.ref.arn, recommendation.fingerprint, option.kind, proposal_key(option.target))
    what = "|".join(parts)
    return "p-" + hashlib.sha256(what.encode()).hexdigest()[:20]


def proposal_key(target: Target) -> str:
    """The text of a target from which the ids of proposals are made.

    It never changes for a target that exists: with another text each open proposal would be asked a second time. The
    names in it are those of the first release, whatever the fields are called. A new field is added behind the
    others, and only where it is set.
    """
    rows: tuple[tuple[str, Keyed], ...] = (
        ("instance_type", target.instance_type),
        ("instance_count", target.instance_count),
        ("hourly_counts", target.hourly_counts),
        ("minimum", target.minimum),
        ("maximum", target.maximum),
        ("routing", target.routing),
        ("pools", target.pools),
        ("target_value", None if target.metric else target.target_value),
        ("per_instance", target.per_instance),
        ("copies", target.copies),
        ("idle_minutes", target.idle_minutes),
    )
    later = []
    if (wanted := target.scale_in) is not None:
        limits = (("maximum_step", wanted.maximum_step), ("cooldown_minutes", wanted.cooldown_minutes))
        later.append(_record("ScaleIn", (("variant", wanted.variant), ("strategy", wanted.strategy), *limits)))
    if target.placement:
        later.append(_value(target.placement))
    if target.metric:  # its value follows the latency from day to day, and asks nobody anew
        later.append(f"metric={_value(target.metric)}")
    if target.others:
        later.append(_value(tuple((one.name, one.instance_type, one.instance_count) for one in target.others)))
    for counts in target.day_counts:
        later.append(_record("DayCounts", (("weekdays", counts.weekdays), ("counts", counts.counts))))
    if target.least_copies:
        later.append(f"least_copies={_value(target.least_copies)}")
    return "|".join((_record("Target", rows), *later))


def _record(name: str, rows: Iterable[tuple[str, Keyed]]) -> str:
    return f"{name}({', '.join(f'{field}={_value(value)}' for field, value in rows)})"


def _value(value: Keyed) -> str:
    """As Python writes it; names of AWS hold no quotation mark and no backslash."""
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, tuple):
        inside = ", ".join(_value(each) for each in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return str(value)


def proposal_for(
    recommendation: Recommendation, permission: ChangePermission, days: int, now: datetime
) -> Proposal | None:
    """The proposal that follows from a recommendation, or None when the gate says silence or there is no option.

    A shortage without an option, and a question to the owner about what no option mends, are told as proposals that
    nobody can approve, with what a person can do about it.

    A gate of APPLY makes a proposal that the policy has approved already. In mode propose only a way back that an
    earlier approval permits has this gate (`gate.decide_restore`). It still needs `permission`: IAM would refuse the
    write otherwise, so a person is asked instead.
    """
    option = recommendation.chosen_option
    if option is None and recommendation.mode not in (Mode.OFF, Mode.REPORT):
        if recommendation.is_short:
            return _told_proposal(recommendation, "shortage", shortage_instructions(recommendation), days, now)
        if recommendation.finding is Finding.OVER_PROVISIONED and recommendation.gate is Gate.PROPOSE:
            return _told_proposal(recommendation, "question", recommendation.gate_reason.sentence, days, now)
    if option is None or recommendation.gate is Gate.SILENT:
        return None
    permission = withhold_copies(recommendation, permission_for_option(option, permission))
    may_apply = recommendation.mode is Mode.AUTO or (recommendation.mode is Mode.PROPOSE and option.restores)
    automatic = recommendation.gate is Gate.APPLY and may_apply and permission.approvable
    decision = (
        Decision(
            ProposalState.APPROVED, DecidedBy(DecisionSource.POLICY).text, now, recommendation.gate_reason.sentence
        )
        if automatic
        else None
    )
    return Proposal(
        id=proposal_id(recommendation, option),
        recommendation=recommendation,
        created_at=now,
        expires_at=now + timedelta(days=days),
        state=ProposalState.APPROVED if automatic else ProposalState.PENDING,
        approvable=permission.approvable,
        enable=permission.enable,
        decision=decision,
    )


def _told_proposal(recommendation: Recommendation, what: str, enable: str, days: int, now: datetime) -> Proposal:
    """A shortage or a question for which there is no option, told once for the same configuration."""
    parts = (recommendation.ref.arn, recommendation.fingerprint, what)
    return Proposal(
        id="p-" + hashlib.sha256("|".join(parts).encode()).hexdigest()[:20],
        recommendation=recommendation,
        created_at=now,
        expires_at=now + timedelta(days=days),
        state=ProposalState.PENDING,
        approvable=False,
        enable=enable,
    )


def shortage_instructions(recommendation: Recommendation) -> str:
    """Why rightsizer has no change that ends a shortage, and what a person can do; a line for each."""
    ref, own = recommendation.ref, recommendation.instance_type
    why = [recommendation.gate_reason.sentence] if recommendation.gate_reason != recommendation.reason else []
    more = (OptionKind.INSTANCE_COUNT, OptionKind.AUTOSCALING)
    why += [e.reason.sentence for e in recommendation.excluded if e.instance_type == own and e.dimension in more]
    return "\n".join(
        (
            "no change that rightsizer knows ends this shortage"
            + (f": {'; '.join(dict.fromkeys(why))}" if why else ""),
            f"see what a request does: aws logs tail /aws/sagemaker/Endpoints/{ref.name} --region {ref.region}",
            "give it a faster type or more instances by hand; where a quota is named, ask AWS for a larger one",
            "where users can wait longer, say so with the tag rightsizer:p95-ms",
        )
    )


@dataclass(frozen=True, slots=True)
class CurrentFleet:
    """Fleet of a variant, as far as its owner's source says so too."""

    instance_type: str
    count: int
    bounds: tuple[int, int] | None = None
    """Autoscaling minimum and maximum; None when it is not autoscaled."""


def tag_command(ref: EndpointRef, mode: str = "propose") -> str:
    """The AWS CLI line that lets rightsizer change the endpoint after an approval (`auto`: by itself)."""
    return (
        f"aws sagemaker add-tags --region {ref.region} --resource-arn {ref.arn} --tags Key=rightsizer:mode,Value={mode}"
    )


def permission_instructions(endpoint: Endpoint, recommendation: Recommendation, why: str) -> str:
    """`why` it cannot be approved, and the exact thing to do: a diff for an owned endpoint, a command otherwise.

    Total: without an option only `why` is left to say.
    """
    option = recommendation.chosen_option
    if option is None or not endpoint.owned_by:
        return why
    if option.kind is OptionKind.DELETE:
        return f"{why}\n- the endpoint resource of {endpoint.ref.name} (keep its configuration: it brings it back)"
    target = next((t for t in endpoint.scaling if t.variant_name == recommendation.variant), None)
    today = CurrentFleet(
        recommendation.instance_type,
        recommendation.instance_count,
        (target.minimum, target.maximum) if target is not None else None,
    )
    diff = [property_diff(endpoint.owned_by, recommendation.variant, today, option.target)]
    runs = {v.name: v for v in endpoint.variants}
    for one in option.target.others:
        was, then = runs[one.name], Target(one.instance_type, one.instance_count)
        now = CurrentFleet(was.instance_type, was.current_count)
        diff.append(property_diff(endpoint.owned_by, one.name, now, then))
    return "\n".join((why, *diff))


def property_diff(owned_by: str, variant: str, today: CurrentFleet, target: Target) -> str:
    """The lines to change in the owner's source, as a unified diff; HCL for Terraform, else CloudFormation YAML."""
    hcl = any(tool in owned_by.lower() for tool in TERRAFORM)
    if target.placement:
        return "\n".join(_placement_lines(hcl, target.placement))
    name = f'variant_name = "{variant}"' if hcl else f"VariantName: {variant}"
    rows = [f"  {name}"]
    rows += _diff(hcl, _serving_lines(today, target))
    if not hcl and target.pools:
        rows += ["+ InstancePools:"]
        rows += [f"+   - {{InstanceType: {t}, Priority: {i}}}" for i, t in enumerate(target.pools, start=1)]
    elif target.pools:
        rows += [
            f'+ instance_pools {{ instance_type = "{t}", priority = {i} }}' for i, t in enumerate(target.pools, start=1)
        ]
    if target.scale_in is not None:
        rows += _scale_in_lines(hcl, target.scale_in)
    bounds = _bounds_lines(today, target)
    if bounds:
        rows += ["  # the scalable target of the variant", *_diff(hcl, bounds)]
    if target.hourly_counts:
        rows += _schedule_lines(hcl, target.week_counts)
    return "\n".join(rows)


def _serving_lines(today: CurrentFleet, target: Target) -> list[DiffLine]:
    kind: DiffValue = None if target.pools else target.instance_type
    count = today.count if target.metric else target.instance_count  # the policy that is added sets it from there
    lines: list[DiffLine] = [
        ("InstanceType", "instance_type", today.instance_type, kind),
        ("InitialInstanceCount", "initial_instance_count", today.count, count),
    ]
    if target.routing:
        lines.append(("RoutingConfig: {RoutingStrategy", "routing_strategy", None, target.routing))
    return lines


def _scale_in_lines(hcl: bool, wanted: ScaleIn) -> Iterable[str]:
    """The policy as it shall be; what its source says of it today is not known here."""
    if not hcl:
        body = ", ".join(f"{key}: {value}" for key, value in wanted.policy.items())
        return ["  ManagedInstanceScaling:", f"+   ScaleInPolicy: {{{body}}}"]
    names = (("strategy", wanted.strategy), ("maximum_step_size", wanted.maximum_step))
    rows = (*names, ("cooldown_in_minutes", wanted.cooldown_minutes))
    body = ", ".join(f"{k} = {f'"{v}"' if isinstance(v, str) else v}" for k, v in rows if v is not None)
    return ["  managed_instance_scaling", f"+   scale_in_policy {{ {body} }}"]


def _placement_lines(hcl: bool, placement: Iterable[tuple[str, str]]) -> Iterable[str]:
    """The placement of each component as it shall be, in the source of the component's own resource."""
    if not hcl:
        yield "  # AWS::SageMaker::InferenceComponent wants an AvailabilityZoneBalance beside it"
    for name, strategy in placement:
        yield f"  # inference component {name}, in its specification"
        yield (
            f'+ scheduling_config {{ placement_strategy = "{strategy}" }}'
            if hcl
            else f"+ SchedulingConfig: {{PlacementStrategy: {strategy}}}"
        )


def _bounds_lines(today: CurrentFleet, target: Target) -> list[DiffLine]:
    old_least, old_most = today.bounds or (None, None)
    least = target.minimum if target.minimum is not None else old_least
    most = target.maximum if target.maximum is not None else old_most
    lines: list[DiffLine] = []
    if (least, most) != (old_least, old_most):
        lines = [
            ("MinCapacity", "min_capacity", old_least, least),
            ("MaxCapacity", "max_capacity", old_most, most),
        ]
    if target.metric:
        lines.append(("PredefinedMetricType", "predefined_metric_type", None, target.metric))
    if target.target_value is not None:
        lines.append(("TargetValue", "target_value", None, target.target_value))
    return lines


def _schedule_lines(hcl: bool, counts: tuple[int, ...]) -> Iterable[str]:
    """One scheduled action for each change of count in the week (UTC)."""
    for scheduled_count in scheduled_counts(counts):
        when, count = scheduled_count.schedule, scheduled_count.count
        if hcl:
            yield f'+ schedule = "{when}" scalable_target_action {{ min_capacity = {count}, max_capacity = {count} }}'
        else:
            yield f'+ - {{Schedule: "{when}", ScalableTargetAction: {{MinCapacity: {count}, MaxCapacity: {count}}}}}'


def _diff(hcl: bool, lines: Iterable[DiffLine]) -> Iterable[str]:
    for cloudformation, terraform, old, new in lines:
        label = terraform if hcl else cloudformation
        if old == new and old is not None:
            yield f"  {_line(hcl, label, old)}"
            continue
        if old is not None:
            yield f"- {_line(hcl, label, old)}"
        if new is not None:
            yield f"+ {_line(hcl, label, new)}"


def _line(hcl: bool, label: str, value: DiffValue) -> str:
    if not hcl:
        return f"{label}: {value}" + ("}" if "{" in label else "")
    return f'{label} = "{value}"' if isinstance(value, str) else f"{label} = {value}"
