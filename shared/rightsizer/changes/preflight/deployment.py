"""Checks of what a deployment needs: the same code behind image tags, whole components, and room in the quota."""

import re
from collections.abc import Iterable, Iterator, Mapping

from rightsizer.changes.preflight.consent import is_by_itself, is_minimum_raised
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import MODE_TAG, has_digest
from rightsizer.domain.live_state import EndpointSight, ImageSight, VariantSight
from rightsizer.domain.ownership import owner_of
from rightsizer.domain.plan import region_of_arn, region_option
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason

MOVING_WORDS = frozenset({"latest", "stable", "main", "master", "dev", "nightly", "edge", "snapshot"})
VERSION = re.compile(r"(?:^|[-_+])(?:v?\d+\.\d+|(?:v\d+|\d{3,}|(?=[a-f]*\d)[0-9a-f]{7,40})(?=$|[-_.+]))")
"""In a tag: 1.2, v3, a build number or a date, a commit. A figure in a word (cu124, py310, eu1) is no version."""
ALLOWED = ("propose", "auto")


def image_refusal(inputs: PreflightInput) -> Reason | None:
    """A new deployment resolves image tags again: the code that runs must be what the tags mean today.

    Where the registry was not asked or gave no answer, the look of the tag decides, and a person may take that risk.
    """
    copied = {name for name, _ in inputs.option.target.all_copies}  # another number of copies resolves no image anew
    rolled = (sight for name, sight in inputs.components.items() if name not in copied)
    parts = (pair for sight in rolled for pair in sight.images if not has_digest(pair[0]))
    return image_difference(inputs.endpoint, inputs.registry, is_by_itself(inputs), parts)


def image_difference(
    endpoint: EndpointSight,
    registry: Mapping[str, ImageSight],
    by_itself: bool,
    more: Iterable[tuple[str, str]] = (),
) -> Reason | None:
    """Why a deployment would not bring the code that the endpoint runs now; None where it would.

    `by_itself`: nobody took the risk of a tag that can move and that the registry does not explain. `more`: images with
    a tag of inference components, as specified and as resolved. Total.
    """
    moving = ""
    for name, resolved in (*_image_tags(endpoint), *more):
        sight, runs = registry.get(name), resolved.rpartition("@")[2]
        if sight is not None and sight.gone:
            text = f"the image {name} is not in its registry any more, so new instances could not start; push it again"
            return Reason(Code.MOVING_TAG, text)
        if sight is None or not sight.digests or not runs.startswith("sha256:"):
            moving = moving or (name if is_movable(name) else "")
        elif runs not in sight.digests:
            text = f"the tag {name} means {sight.digests[0]} today, and the endpoint runs {runs}: a new deployment "
            return Reason(Code.MOVING_TAG, f"{text}would bring other code; deploy that first, or name it by its digest")
    if not by_itself or not moving:
        return None
    text = f"the image {moving} is named by a tag without a version; it can move, "
    text += "so a resize could also deploy other code"
    return Reason(Code.MOVING_TAG, "; ".join((text, *_unread_images(registry))))


def tagged_images(endpoint: EndpointSight) -> tuple[str, ...]:
    """Names of the images that run and are named by a tag: what a deployment resolves again."""
    return tuple(dict.fromkeys(name for name, _ in _image_tags(endpoint)))


def unchecked_image_sentences(inputs: PreflightInput) -> tuple[str, ...]:
    """A sentence for each image of which nobody could say what its tag means today."""
    return _unread_images(inputs.registry)


def _image_tags(endpoint: EndpointSight) -> Iterator[tuple[str, str]]:
    pairs = (pair for v in endpoint.variants for pair in v.resolved_images)
    yield from (pair for pair in pairs if not has_digest(pair[0]))


def _unread_images(registry: Mapping[str, ImageSight]) -> tuple[str, ...]:
    images = (sight for sight in registry.values() if sight.problem)
    return tuple(f"the digest of {s.name} was not compared with the registry: {s.problem}" for s in images)


def is_movable(image: str) -> bool:
    """Whether the name may mean other code tomorrow: no digest, and no version, date or commit in the tag."""
    _, _, tag = image.rpartition("/")[2].partition(":")
    words = set(re.split(r"[-_.+]", tag.lower()))
    return not has_digest(image) and (bool(words & MOVING_WORDS) or VERSION.search(tag.lower()) is None)


def component_refusal(inputs: PreflightInput) -> Reason | None:
    """The first of the wanted components that cannot be changed, and why."""
    for name, _ in inputs.option.target.placement:
        live = inputs.components.get(name)
        reason = _missing_component(inputs, name) if live is None else _component_problem(inputs, live)
        if reason is not None:
            return reason
    return None


def _missing_component(inputs: PreflightInput, name: str) -> Reason:
    return Reason(Code.VANISHED, f"component {name} of {inputs.proposal.ref.name} does not exist any more")


def _component_problem(inputs: PreflightInput, live: ComponentSight) -> Reason | None:
    if live.endpoint != inputs.proposal.ref.name:
        return Reason(Code.CHANGED_SINCE, f"component {live.name} belongs to endpoint {live.endpoint}")
    if live.unknown_fields:
        fields = ", ".join(sorted(live.unknown_fields))
        text = f"component {live.name} has fields that this program does not know: {fields}"
        return Reason(Code.UNKNOWN_FIELD, text)
    if live.base_component:
        text = f"component {live.name} is an adapter of {live.base_component}, and is placed with it"
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
    if said in ALLOWED or (not said and inputs.limits.change_untagged):
        return None
    text = f"the tag {MODE_TAG} of component {live.name} is {said or 'absent'}, and the role may change those tagged "
    where = region_option(region_of_arn(live.arn))
    text += (
        f"propose or auto: aws sagemaker add-tags{where} --resource-arn {live.arn} --tags Key={MODE_TAG},Value=propose"
    )
    return Reason(Code.NOT_OPTED_IN, text)


def quota_refusal(inputs: PreflightInput) -> Reason | None:
    """The green fleet at the largest that its autoscaling may ask for, with other variants of the same type."""
    target = inputs.option.target
    if target.others:
        return _joint_refusal(inputs)
    most = max(target.instance_count, 0 if is_minimum_raised(inputs) else target.maximum or 0, inputs.most)
    beside = _instances(_other_variants(inputs), inputs, target.instance_type)
    limit = _limit(inputs, target.instance_type)
    if target.pools:
        return _pools_refusal(inputs, most)
    if limit is None or limit >= most + beside:
        return _overlap_refusal(inputs)
    text = f"{_quota_name(target.instance_type)} is {limit}; "
    also = f", and other variants of the endpoint run {beside}" if beside else ""
    if max(target.instance_count, target.maximum or 0) + beside <= limit:
        text += f"its autoscaling for the new type could ask for {most} instances{also} and would stop at the quota; "
        return Reason(Code.NO_QUOTA, text + "raise the quota, or lower the maximum")
    return Reason(Code.NO_QUOTA, text + f"the new fleet needs {most} at once{also}")


def unchecked_quota_sentences(inputs: PreflightInput) -> tuple[str, ...]:
    """Limits of the quota check, where a new fleet is started."""
    limit = _limit(inputs, inputs.option.target.instance_type)
    if limit is None or not inputs.deploys:
        return ()
    kind = inputs.option.target.instance_type
    return (f"{_quota_name(kind)} ({limit}) was compared with this endpoint alone: others' instances are not counted",)


def _pools_refusal(inputs: PreflightInput, most: int) -> Reason | None:
    """Pools are tried in turn, so one that holds the fleet is enough."""
    needs = {kind: most + _instances(_other_variants(inputs), inputs, kind) for kind in inputs.option.target.pools}
    short = {kind: limit for kind in needs if (limit := _limit(inputs, kind)) is not None and limit < needs[kind]}
    if len(short) < len(needs):
        return None
    text = ", ".join(f"{_quota_name(kind)} is {limit} and {needs[kind]} are needed" for kind, limit in short.items())
    return Reason(Code.NO_QUOTA, f"no pool could hold the fleet: {text}")


def _joint_refusal(inputs: PreflightInput) -> Reason | None:
    """A deployment of several variants never rolls: every fleet starts anew while the old one runs."""
    target, types = inputs.option.target, _types(inputs)
    wanted = {inputs.proposal.recommendation.variant: (target.instance_type, target.instance_count)}
    wanted |= {one.name: (one.instance_type, one.instance_count) for one in target.others}
    green: dict[str, int] = {}
    for variant in inputs.endpoint.variants:
        kind, count = wanted.get(variant.name, (types.get(variant.name, ""), variant.desired_count))
        green[kind] = green.get(kind, 0) + count
    for kind, new in green.items():
        limit, blue = _limit(inputs, kind), _instances(inputs.endpoint.variants, inputs, kind)
        if limit is not None and blue + new > limit:
            text = f"{_quota_name(kind)} is {limit}; while the old and the new fleets overlap, {blue} and {new} "
            return Reason(Code.NO_QUOTA, f"{text}run at once")
    return None


def _overlap_refusal(inputs: PreflightInput) -> Reason | None:
    """Both fleets run at once unless the deployment can roll: one variant, two instances or more before and after."""
    variants, target = inputs.endpoint.variants, inputs.option.target
    if not inputs.deploys or inputs.is_shadow_test:
        return None
    if len(variants) == 1 and min(variants[0].desired_count, target.instance_count) >= 2:
        return _batch_refusal(inputs)
    types = _types(inputs)
    for kind in dict.fromkeys((target.instance_type, *(types.get(v.name, "") for v in _other_variants(inputs)))):
        blue = _instances(variants, inputs, kind)
        green = _instances(_other_variants(inputs), inputs, kind) + (
            target.instance_count if kind == target.instance_type else 0
        )
        limit = _limit(inputs, kind)
        if limit is not None and blue + green > limit:
            text = (
                f"{_quota_name(kind)} is {limit}; while the old and the new fleet overlap, {blue} and "
                f"{green} run at once"
            )
            return Reason(Code.NO_QUOTA, text)
    return None


def _batch_refusal(inputs: PreflightInput) -> Reason | None:
    """A deployment that rolls needs room for a batch, forward and back; each is 5 % of the instances at least.

    Source: RollingUpdatePolicy.MaximumBatchSize.
    """
    kind, count = inputs.option.target.instance_type, inputs.option.target.instance_count
    running, limit = _instances(inputs.endpoint.variants, inputs, kind), _limit(inputs, kind)
    batch = -(-max(running, count) // 20)
    if limit is None or running + min(batch, count) <= limit:
        return None
    text = (
        f"{_quota_name(kind)} is {limit} and the endpoint runs {running} of them; a deployment that replaces them in "
    )
    return Reason(Code.NO_QUOTA, text + f"batches needs room for {batch} more, to go and to come back")


def _other_variants(inputs: PreflightInput) -> tuple[VariantSight, ...]:
    return tuple(v for v in inputs.endpoint.variants if v.name != inputs.proposal.recommendation.variant)


def _instances(variants: Iterable[VariantSight], inputs: PreflightInput, kind: str) -> int:
    types = _types(inputs)
    return sum(max(v.desired_count, v.current_count) for v in variants if types.get(v.name) == kind)


def _types(inputs: PreflightInput) -> dict[str, str]:
    rows = inputs.config.body.get("ProductionVariants", []) if inputs.config else []
    return {row["VariantName"]: row.get("InstanceType", "") for row in rows}


def _limit(inputs: PreflightInput, kind: str) -> int | None:
    return inputs.quotas.get(kind, inputs.quota if kind == inputs.option.target.instance_type else None)


def _quota_name(kind: str) -> str:
    return f"the quota 'ml.{kind.removeprefix('ml.')} for endpoint usage'"
