"""Every check right before the first write, as typed refusals.

A refusal is for good: the proposal is withdrawn with it. What only takes time (window, freeze, incident, cooldown,
budget) is a `Deferred` of another rule, so that an approval is not lost to the hour of the day. IAM is asked before
anything is touched whether our role may hand over the execution role and could give autoscaling back.

What the observation tells already is refused before anybody is asked: who says yes should not read afterwards that it
could never be done.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from rightsizer.autoscaling import policies, scheduled_actions
from rightsizer.changes import clone
from rightsizer.changes.preflight import consent, images, quota
from rightsizer.changes.preflight.images import moved, tagged
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import AlarmSight, Hold
from rightsizer.domain.option import CHANGEABLE, ORDERED, Option, OptionKind
from rightsizer.domain.ownership import owner_of
from rightsizer.domain.preflight import Deferred, Ground
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender.proposal import Reach

__all__ = [
    "MISSING",
    "blindness",
    "deferral",
    "hold",
    "moved",
    "refusals",
    "replaced",
    "tagged",
    "unchecked",
    "unless_refused",
]

ALARMS_TAG = "rightsizer:alarms"
MISSING = "MISSING"
"""The state of an alarm that is configured and was not found: unknown is not "not firing" (law 1)."""


def refusals(ground: Ground) -> tuple[Reason, ...]:
    """Every reason why this change must not be made; empty when it may. Total."""
    return tuple(r for check in _CHECKS if (r := check(ground)) is not None)


def unchecked(ground: Ground) -> tuple[str, ...]:
    """What could not be checked, a sentence each; it stands in the plan's line of the journal."""
    return (*images.unchecked(ground), *quota.unchecked(ground), *role_unchecked(ground))


def deferral(ground: Ground, now: datetime, window_opens: datetime) -> Deferred | None:
    """Whether the change has to wait, and until when."""
    if ground.switch.frozen:
        return Deferred(now + timedelta(minutes=15), f"changes are frozen by {ground.switch.by or 'somebody'}")
    urgent = ground.option.restores  # users suffer: the window, the cooldown and their own alarm would prolong it
    held = hold(ground.incident_alarms, now, window_opens, ground.limits.misread)
    if held is not None and not urgent:
        return Deferred(held.until, held.reason.sentence)
    rested = ground.last_change_at is None or now - ground.last_change_at >= ground.limits.cooldown
    if ground.last_change_at is not None and not rested and not urgent:
        until = ground.last_change_at + ground.limits.cooldown
        return Deferred(until, f"the last change of this endpoint was at {ground.last_change_at:%Y-%m-%d %H:%M} UTC")
    if ground.endpoint.status in ("Updating", "SystemUpdating"):
        return Deferred(now + timedelta(minutes=15), f"the endpoint is {ground.endpoint.status}")
    return None


def hold(
    incident_alarms: Iterable[AlarmSight], now: datetime, window_opens: datetime, misread: Sequence[str] = ()
) -> Hold | None:
    """Why nothing begins at this moment; asked again right before the first write that the endpoint feels."""
    if misread:
        text = f"a setting cannot be understood, and no change begins until it is put right: {misread[0]}"
        return Hold(now + timedelta(minutes=30), Reason(Code.BAD_SETTING, text))
    if window_opens > now:
        text = f"the change window opens at {window_opens:%Y-%m-%d %H:%M} UTC"
        return Hold(window_opens, Reason(Code.OUTSIDE_WINDOW, text))
    for alarm in incident_alarms:
        if alarm.state in ("ALARM", MISSING):
            said = "is firing" if alarm.state == "ALARM" else "does not exist, so nobody knows of an incident"
            return Hold(now + timedelta(minutes=30), Reason(Code.INCIDENT, f"the incident alarm {alarm.name} {said}"))
    return None


def unless_refused(
    endpoint: Endpoint, option: Option | None, deploys: bool, catalogue: Catalogue, reach: Reach
) -> Reach:
    """The same, or why an approval would be refused: then there is no button, and the reasons stand in its place.

    `deploys`: the option needs a new configuration.
    """
    if option is None or not (reach.approvable or reach.tag):
        return reach
    found = tuple(_refusals(endpoint, option, deploys, catalogue))
    return Reach(False, f"preflight would refuse it: {'; '.join(r.sentence for r in found)}") if found else reach


def _refusals(endpoint: Endpoint, option: Option, deploys: bool, catalogue: Catalogue) -> Iterator[Reason]:
    if endpoint.configuration_replaced:
        yield replaced(endpoint.config_name)
    if option.kind not in ORDERED:
        yield from policies.refusals(endpoint.scaling, True, ())  # whose alarms start the policies is not observed
    if not deploys:
        return
    yield from scheduled_actions.unreadable(endpoint.scaling)
    if endpoint.unknown_fields:
        yield clone.unknown_fields(endpoint.config_name, endpoint.unknown_fields)
    yield from clone.foreign_key(endpoint.config_name, endpoint.kms_key, endpoint.ref.account)
    runs = {variant.instance_type for variant in endpoint.variants}
    for name in option.target.pools or (option.target.instance_type,):
        hardware = catalogue.find(name) if name not in runs else None
        yield from clone.key_on_nvme(endpoint.kms_key, hardware)


def _dry_run(ground: Ground) -> Reason | None:
    if not ground.limits.dry_run:
        return None
    text = "the stack was deployed with MayChange=nothing or read-only, so it changes no endpoint; "
    text += "MayChange=tagged allows it"
    return Reason(Code.PERMISSION_MISSING, text)


def _status(ground: Ground) -> Reason | None:
    if ground.endpoint.status in ("InService", "Updating", "SystemUpdating"):
        return None
    return Reason(
        Code.NOT_IN_SERVICE, f"the endpoint is {ground.endpoint.status}; only an endpoint in service is changed"
    )


def _owner(ground: Ground) -> Reason | None:
    owner = owner_of(ground.tags)
    if not owner:
        return None
    return Reason(Code.OWNED_BY_STACK, f"{owner} owns the endpoint; its next deployment would undo the change")


def _kind(ground: Ground) -> Reason | None:
    kind = ground.proposal.recommendation.kind
    if consent.by_policy(ground) and kind is not EndpointKind.REAL_TIME:
        return Reason(Code.NEEDS_APPROVAL, f"an endpoint with {kind.value} is changed only after an approval")
    if kind is EndpointKind.INFERENCE_COMPONENTS and ground.applies:
        return None
    if kind in CHANGEABLE and not ground.marketplace:
        return None
    why = "; deploy a configuration with one type first" if kind is EndpointKind.INSTANCE_POOLS else ""
    text = f"endpoints of kind {kind.value} are proposed for, never changed by this program{why}"
    return Reason(Code.OTHER_KIND, text)


def _in_place(ground: Ground) -> Reason | None:
    if ground.option.in_place or ground.option.kind is OptionKind.DELETE:
        return None
    return Reason(Code.NOT_IN_PLACE, f"{ground.option.kind.value} cannot be carried out on the same endpoint")


def _config(ground: Ground) -> Reason | None:
    if ground.config is None:
        text = f"configuration {ground.endpoint.config_name} does not exist any more, so there is no way back"
        return Reason(Code.CONFIGURATION_REPLACED, text)
    if ground.config.created_at > ground.endpoint.modified_at:
        return replaced(ground.config.name)
    return None


def replaced(config: str) -> Reason:
    """The refusal of a configuration that is younger than its deployment."""
    text = f"configuration {config} was created anew after it was deployed, so its content proves nothing"
    return Reason(Code.CONFIGURATION_REPLACED, text)


def _same(ground: Ground) -> Reason | None:
    """State equals what was decided on. AWS's patching moves LastModifiedTime alone, which is no other state."""
    decided = ground.proposal.recommendation.fingerprint
    config, _, rest = decided.partition("|")
    counts = rest.rpartition("|")[2]
    scaled = {t.variant_name for t in ground.scaling}  # SageMaker moves those counts
    live = ",".join(f"{v.name}={v.desired_count}" for v in ground.endpoint.variants)
    if config != ground.endpoint.config_name:
        text = f"it ran configuration {config} when this was decided, and runs {ground.endpoint.config_name} now"
        return Reason(Code.CHANGED_SINCE, text)
    kept = [{one for one in told.split(",") if one.rpartition("=")[0] not in scaled} for told in (counts, live)]
    if kept[0] != kept[1] and ground.option.kind not in ORDERED:
        return Reason(Code.CHANGED_SINCE, f"its counts were {counts} when this was decided, and are {live} now")
    return None


def _sold(ground: Ground) -> Reason | None:
    if ground.sold is not False:
        return None
    return Reason(Code.NOT_SOLD, f"{ground.option.target.instance_type} is not offered in the zones of its subnets")


def blindness(seen: Mapping[str, bool | None], tags: Mapping[str, str], arn: str) -> str:
    """Why SageMaker would not see the roll-back alarms with these execution roles; empty when it would.

    `seen` says by role whether it may describe alarms. Where nobody may ask IAM, the owner confirms it once by a tag.
    """
    for role, allowed in seen.items():
        if allowed is False:
            return f"SageMaker reads them with {role}, which may not call cloudwatch:DescribeAlarms; allow it that"
        if allowed is None and tags.get(ALARMS_TAG) != "visible":
            return (
                f"nobody could ask whether {role} may call cloudwatch:DescribeAlarms (iam:SimulatePrincipalPolicy); "
                f"its owner confirms it once with: aws sagemaker add-tags --resource-arn {arn} "
                f"--tags Key={ALARMS_TAG},Value=visible"
            )
    return ""


def _sighted(ground: Ground) -> Reason | None:
    if not ground.blind:
        return None
    return Reason(Code.ALARM_NOT_OK, f"the roll-back alarms would be blind: {ground.blind}")


def passing(ground: Ground) -> Reason | None:
    """IAM says no: the sentence ends with the one command that allows it."""
    passes = ground.passes
    if passes is None or passes.allowed is not False:
        return None
    text = f"the configuration names the execution role {passes.role}; creating another one like it needs iam:PassRole "
    text += f"on that role, which {passes.by or 'the role in use'} does not hold. An operator allows it with: "
    return Reason(Code.PERMISSION_MISSING, text + passes.command)


def role_unchecked(ground: Ground) -> tuple[str, ...]:
    """What nobody could ask: AWS refuses the new configuration then, which touches nothing."""
    if ground.passes is None or ground.passes.allowed is not None:
        return ()
    return (f"nobody could ask whether iam:PassRole on {ground.passes.role} is held",)


def restoring(ground: Ground) -> Reason | None:
    """IAM says no to what puts autoscaling again: the endpoint would stay without it."""
    if not ground.unrestorable:
        return None
    text = f"the change takes the autoscaling of {ground.proposal.ref.name} away for a while, and IAM denies our role "
    text += f"{', '.join(ground.unrestorable)}, without which it could not be given back; the stack's own policy "
    return Reason(Code.PERMISSION_MISSING, text + "allows it, so a boundary or an organisation's policy may forbid it")


type Check = Callable[[Ground], Reason | None]


_CHECKS: tuple[Check, ...] = (
    _dry_run,
    _status,
    consent.approved,
    consent.deletion,
    consent.mode,
    consent.dimension,
    _owner,
    _kind,
    _in_place,
    _config,
    _same,
    quota.quota,
    _sold,
    images.image,
    _sighted,
    passing,
    restoring,
    images.components,
)
