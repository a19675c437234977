"""Image check of a deployment (same code behind the tags?), and check of components for another placement.

Components must be known whole, at rest, and allowed by a tag.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from rightsizer.changes.preflight.consent import is_by_itself
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import MODE_TAG, has_digest
from rightsizer.domain.live_state import EndpointSight, ImageSight
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
