"""Whether a deployment would resolve an image to other code than the one that runs."""

import re

from rightsizer.model.ground import Ground
from rightsizer.model.reason import Code, Reason
from rightsizer.rules.preflight.consent import by_policy

MOVING_WORDS = frozenset({"latest", "stable", "main", "master", "dev", "nightly", "edge", "snapshot"})
VERSION = re.compile(r"(?:^|[-_+])(?:v?\d+\.\d+|(?:v\d+|\d{3,}|(?=[a-f]*\d)[0-9a-f]{7,40})(?=$|[-_.+]))")
"""In a tag: 1.2, v3, a build number or a date, a commit. A figure in a word (cu124, py310, eu1) is no version."""


def image(ground: Ground) -> Reason | None:
    """A new deployment resolves image tags again; after an approval that risk is the approver's."""
    moving = [s for v in ground.endpoint.variants for s, _ in v.resolved_images if _moves(s)]
    if not by_policy(ground) or not moving:
        return None
    text = f"the image {moving[0]} is named by a tag without a version; it can move, "
    return Reason(Code.MOVING_TAG, text + "so a resize could also deploy other code")


def _moves(image: str) -> bool:
    """Whether the name may mean other code tomorrow: no digest, and no version, date or commit in the tag."""
    _, _, tag = image.rpartition("/")[2].partition(":")
    words = set(re.split(r"[-_.+]", tag.lower()))
    return "@sha256:" not in image and (bool(words & MOVING_WORDS) or VERSION.search(tag.lower()) is None)
