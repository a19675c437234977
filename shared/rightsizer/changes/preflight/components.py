"""Whether the placement of these inference components may be changed: known whole, at rest, and allowed by a tag."""

from rightsizer.changes.preflight.consent import MODE_TAG
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.ownership import owner_of
from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason

ALLOWED = ("propose", "auto")


def components(ground: Ground) -> Reason | None:
    """The first of the wanted components that cannot be changed, and why."""
    for name, _ in ground.option.target.placement:
        live = ground.components.get(name)
        reason = _gone(ground, name) if live is None else _unfit(ground, live)
        if reason is not None:
            return reason
    return None


def _gone(ground: Ground, name: str) -> Reason:
    return Reason(Code.VANISHED, f"component {name} of {ground.proposal.ref.name} does not exist any more")


def _unfit(ground: Ground, live: ComponentSight) -> Reason | None:
    if live.endpoint != ground.proposal.ref.name:
        return Reason(Code.CHANGED_SINCE, f"component {live.name} belongs to endpoint {live.endpoint}")
    if live.unknown_fields:
        fields = ", ".join(sorted(live.unknown_fields))
        text = f"component {live.name} has fields that this program does not know: {fields}"
        return Reason(Code.UNKNOWN_FIELD, text)
    if live.base:
        text = f"component {live.name} is an adapter of {live.base}, and is placed with it"
        return Reason(Code.NOT_APPLICABLE, text)
    if len(live.strategies) > 1:
        text = f"the specifications of component {live.name} place its copies differently: {sorted(live.strategies)}"
        return Reason(Code.NOT_APPLICABLE, text)
    if live.status != "InService":
        return Reason(Code.NOT_IN_SERVICE, f"component {live.name} is {live.status}; only one in service is changed")
    owner = owner_of(live.tags)
    if owner:
        text = f"{owner} owns component {live.name}; its next deployment would undo the change"
        return Reason(Code.OWNED_BY_STACK, text)
    said = live.tags.get(MODE_TAG, "")
    if said in ALLOWED or (not said and ground.limits.change_untagged):
        return None
    text = f"the tag {MODE_TAG} of component {live.name} is {said or 'absent'}, and the role may change those tagged "
    text += f"propose or auto: aws sagemaker add-tags --resource-arn {live.arn} --tags Key={MODE_TAG},Value=propose"
    return Reason(Code.NOT_OPTED_IN, text)
