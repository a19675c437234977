"""Every check right before the first write, as typed refusals.

A refusal is for good: the proposal is withdrawn with it. What only takes time (window, freeze, incident, cooldown,
budget) is a `Deferral` of another rule, so that an approval is not lost to the hour of the day. IAM is asked before
anything is touched whether our role may hand over the execution role and could give autoscaling back.

What the observation tells already is refused before anybody is asked: who says yes should not read afterwards that it
could never be done.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from rightsizer.autoscaling import policies, scheduled_actions
from rightsizer.changes import clone
from rightsizer.changes.preflight import consent, deployment
from rightsizer.changes.preflight.deployment import image_difference, tagged_images
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import AlarmSight, Hold
from rightsizer.domain.option import CHANGEABLE, ORDERED, Option, OptionKind, changed_types
from rightsizer.domain.ownership import owner_of
from rightsizer.domain.plan import region_of_arn, region_option
from rightsizer.domain.preflight import Deferral, PreflightInput
from rightsizer.domain.proposal import decider_name
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.recommender.proposal import ChangePermission

__all__ = [
    "MISSING",
    "alarm_visibility_problem",
    "cooldown_deferral",
    "image_difference",
    "preflight_deferral",
    "preflight_refusals",
    "replaced_config_refusal",
    "start_hold",
    "tagged_images",
    "unchecked_sentences",
    "withhold_refused",
]

ALARMS_TAG = "rightsizer:alarms"
MISSING = "MISSING"
"""The state of an alarm that is configured and was not found: unknown is not "not firing" (law 1)."""


def preflight_refusals(inputs: PreflightInput) -> tuple[Reason, ...]:
    """Every reason why this change must not be made; empty when it may. Total."""
    return tuple(r for check in _CHECKS if (r := check(inputs)) is not None)


def unchecked_sentences(inputs: PreflightInput) -> tuple[str, ...]:
    """Facts that could not be checked, one sentence each, for the plan's line of the journal."""
    return (
        *deployment.unchecked_image_sentences(inputs),
        *deployment.unchecked_quota_sentences(inputs),
        *role_pass_sentences(inputs),
    )


def preflight_deferral(inputs: PreflightInput, now: datetime, window_opens: datetime) -> Deferral | None:
    """Whether the change has to wait, and until when."""
    if inputs.switch.frozen:
        return Deferral(now + timedelta(minutes=15), f"changes are frozen by {decider_name(inputs.switch.by)}")
    urgent = inputs.option.restores  # users suffer: the window, the cooldown and their own alarm would prolong it
    held = start_hold(inputs.incident_alarms, now, window_opens, inputs.limits.misread)
    if held is not None and not urgent:
        return Deferral(held.until, held.reason.sentence)
    cooldown = cooldown_deferral(inputs.option, inputs.last_change_at, inputs.limits.cooldown, now)
    if cooldown is not None:
        return cooldown
    if inputs.endpoint.status in ("Updating", "SystemUpdating"):
        return Deferral(now + timedelta(minutes=15), f"the endpoint is {inputs.endpoint.status}")
    return None


def cooldown_deferral(
    option: Option, last_change_at: datetime | None, cooldown: timedelta, now: datetime
) -> Deferral | None:
    """Until when the endpoint rests after its last change; None where that is over, or users suffer meanwhile."""
    if last_change_at is None or now - last_change_at >= cooldown or option.restores or option.grows:
        return None
    text = f"the last change of this endpoint was on {time_text(last_change_at)}"
    return Deferral(last_change_at + cooldown, text)


def start_hold(
    incident_alarms: Iterable[AlarmSight], now: datetime, window_opens: datetime, misread: Sequence[str] = ()
) -> Hold | None:
    """Why nothing begins at this moment; asked again right before the first write that the endpoint feels."""
    if misread:
        text = f"a setting cannot be understood, and no change begins until it is put right: {misread[0]}"
        return Hold(now + timedelta(minutes=30), Reason(Code.BAD_SETTING, text))
    if window_opens > now:
        text = f"the change window opens on {time_text(window_opens)}"
        return Hold(window_opens, Reason(Code.OUTSIDE_WINDOW, text))
    for alarm in incident_alarms:
        if alarm.state in ("ALARM", MISSING):
            said = "is firing" if alarm.state == "ALARM" else "does not exist, so nobody knows of an incident"
            return Hold(now + timedelta(minutes=30), Reason(Code.INCIDENT, f"the incident alarm {alarm.name} {said}"))
    return None


def withhold_refused(
    endpoint: Endpoint, option: Option | None, deploys: bool, catalogue: Catalogue, permission: ChangePermission
) -> ChangePermission:
    """The permission without approval where preflight would refuse: the reasons replace the button.

    `deploys`: the option needs a new configuration.
    """
    if option is None or not (permission.approvable or permission.tag):
        return permission
    reasons = tuple(_permission_refusals(endpoint, option, deploys, catalogue))
    return (
        ChangePermission(False, f"preflight would refuse it: {'; '.join(r.sentence for r in reasons)}")
        if reasons
        else permission
    )


def _permission_refusals(endpoint: Endpoint, option: Option, deploys: bool, catalogue: Catalogue) -> Iterator[Reason]:
    if endpoint.configuration_replaced:
        yield replaced_config_refusal(endpoint.config_name)
    if option.kind not in ORDERED:
        yield from policies.autoscaling_refusals(
            endpoint.scaling, True, ()
        )  # whose alarms start the policies is not observed
    if not deploys:
        return
    yield from scheduled_actions.unreadable_actions(endpoint.scaling)
    if endpoint.unknown_fields:
        yield clone.unknown_fields(endpoint.config_name, endpoint.unknown_fields)
    yield from clone.key_refusals(endpoint.config_name, endpoint.kms_key, endpoint.ref.account)
    runs = {variant.instance_type for variant in endpoint.variants}
    for name in changed_types(option.target):
        hardware = catalogue.find(name) if name not in runs else None
        yield from clone.nvme_key_refusals(endpoint.kms_key, hardware)


def _dry_run_refusal(inputs: PreflightInput) -> Reason | None:
    if not inputs.limits.dry_run:
        return None
    text = "the stack was deployed with MayChange=nothing or read-only, so it changes no endpoint; "
    text += "MayChange=tagged allows it"
    return Reason(Code.PERMISSION_MISSING, text)


def _status_refusal(inputs: PreflightInput) -> Reason | None:
    if inputs.endpoint.status in ("InService", "Updating", "SystemUpdating"):
        return None
    return Reason(
        Code.NOT_IN_SERVICE, f"the endpoint is {inputs.endpoint.status}; only an endpoint in service is changed"
    )


def _owner_refusal(inputs: PreflightInput) -> Reason | None:
    owner = owner_of(inputs.tags)
    if not owner:
        return None
    return Reason(Code.OWNED_BY_STACK, f"{owner} owns the endpoint; its next deployment would undo the change")


def _kind_refusal(inputs: PreflightInput) -> Reason | None:
    kind = inputs.proposal.recommendation.kind
    sleeps = kind is EndpointKind.ASYNC and inputs.option.kind is OptionKind.SCALE_TO_ZERO
    if consent.is_by_policy(inputs) and kind is not EndpointKind.REAL_TIME and not sleeps:
        return Reason(Code.NEEDS_APPROVAL, f"an endpoint with {kind.value} is changed only after an approval")
    if kind is EndpointKind.INFERENCE_COMPONENTS and inputs.applies:
        return None
    if kind in CHANGEABLE and not inputs.marketplace:
        return None
    why = "; deploy a configuration with one type first" if kind is EndpointKind.INSTANCE_POOLS else ""
    text = f"endpoints of kind {kind.value} are proposed for, never changed by this program{why}"
    return Reason(Code.OTHER_KIND, text)


def _in_place_refusal(inputs: PreflightInput) -> Reason | None:
    if inputs.option.in_place or inputs.option.kind is OptionKind.DELETE:
        return None
    return Reason(Code.NOT_IN_PLACE, f"{inputs.option.kind.value} cannot be carried out on the same endpoint")


def _config_refusal(inputs: PreflightInput) -> Reason | None:
    if inputs.config is None:
        text = (
            f"configuration {inputs.endpoint.config_name} does not exist any more, so there is nothing to roll back to"
        )
        return Reason(Code.CONFIGURATION_REPLACED, text)
    if inputs.config.created_at > inputs.endpoint.modified_at:
        return replaced_config_refusal(inputs.config.name)
    return None


def replaced_config_refusal(config: str) -> Reason:
    """The refusal of a configuration that is younger than its deployment."""
    text = f"configuration {config} was created anew after it was deployed, so its content proves nothing"
    return Reason(Code.CONFIGURATION_REPLACED, text)


def _state_refusal(inputs: PreflightInput) -> Reason | None:
    """State equals what was decided on. AWS's patching moves LastModifiedTime alone, which is no other state."""
    decided = inputs.proposal.recommendation.fingerprint
    config, _, rest = decided.partition("|")
    counts = rest.rpartition("|")[2]
    scaled = {t.variant_name for t in inputs.scaling}  # SageMaker moves those counts
    live = ",".join(f"{v.name}={v.desired_count}" for v in inputs.endpoint.variants)
    if config != inputs.endpoint.config_name:
        text = f"it ran configuration {config} when this was decided, and runs {inputs.endpoint.config_name} now"
        return Reason(Code.CHANGED_SINCE, text)
    kept = [{one for one in told.split(",") if one.rpartition("=")[0] not in scaled} for told in (counts, live)]
    if kept[0] != kept[1] and inputs.option.kind not in ORDERED:
        return Reason(Code.CHANGED_SINCE, f"its counts were {counts} when this was decided, and are {live} now")
    return None


def _offering_refusal(inputs: PreflightInput) -> Reason | None:
    if inputs.sold is not False:
        return None
    return Reason(Code.NOT_SOLD, f"{inputs.option.target.instance_type} is not offered in the zones of its subnets")


def alarm_visibility_problem(seen: Mapping[str, bool | None], tags: Mapping[str, str], arn: str) -> str:
    """Why SageMaker would not see the roll-back alarms with these execution roles; empty when it would.

    `seen` says by role whether it may describe alarms. Where nobody may ask IAM, the owner confirms it once by a tag.
    """
    for role, allowed in seen.items():
        if allowed is False:
            return f"SageMaker reads them with {role}, which may not call cloudwatch:DescribeAlarms; allow it that"
        if allowed is None and tags.get(ALARMS_TAG) != "visible":
            where = region_option(region_of_arn(arn))
            return (
                f"nobody could ask whether {role} may call cloudwatch:DescribeAlarms (iam:SimulatePrincipalPolicy); "
                f"its owner confirms it once with: aws sagemaker add-tags{where} --resource-arn {arn} "
                f"--tags Key={ALARMS_TAG},Value=visible"
            )
    return ""


def _alarm_visibility_refusal(inputs: PreflightInput) -> Reason | None:
    if not inputs.blind:
        return None
    return Reason(Code.ALARM_NOT_OK, f"the roll-back alarms would be blind: {inputs.blind}")


def role_pass_refusal(inputs: PreflightInput) -> Reason | None:
    """IAM says no: the sentence ends with the one command that allows it."""
    passes = inputs.passes
    if passes is None or passes.allowed is not False:
        return None
    text = f"the configuration names the execution role {passes.role}; creating another one like it needs iam:PassRole "
    text += f"on that role, which {passes.by or 'the role in use'} does not hold. An operator allows it with: "
    return Reason(Code.PERMISSION_MISSING, text + passes.command)


def role_pass_sentences(inputs: PreflightInput) -> tuple[str, ...]:
    """Sentences about role passing that nobody could check.

    AWS refuses the new configuration then, which touches nothing.
    """
    if inputs.passes is None or inputs.passes.allowed is not None:
        return ()
    return (f"nobody could ask whether iam:PassRole on {inputs.passes.role} is held",)


def restore_refusal(inputs: PreflightInput) -> Reason | None:
    """IAM says no to what puts autoscaling again: the endpoint would stay without it."""
    if not inputs.unrestorable:
        return None
    text = f"the change takes the autoscaling of {inputs.proposal.ref.name} away for a while, and IAM denies our role "
    text += f"{', '.join(inputs.unrestorable)}, without which it could not be given back; the stack's own policy "
    return Reason(Code.PERMISSION_MISSING, text + "allows it, so a boundary or an organisation's policy may forbid it")


type PreflightCheck = Callable[[PreflightInput], Reason | None]


_CHECKS: tuple[PreflightCheck, ...] = (
    _dry_run_refusal,
    _status_refusal,
    consent.approval_refusal,
    consent.deletion_refusal,
    consent.mode_refusal,
    consent.dimension_refusal,
    consent.growth_limit_refusal,
    _owner_refusal,
    _kind_refusal,
    _in_place_refusal,
    _config_refusal,
    _state_refusal,
    deployment.quota_refusal,
    _offering_refusal,
    deployment.image_refusal,
    _alarm_visibility_refusal,
    role_pass_refusal,
    restore_refusal,
    deployment.component_refusal,
)
