"""Why an image or a component stops a change, in whole sentences."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.changes.preflight.deployment import (
    component_refusal,
    image_difference,
    image_refusal,
    tagged_images,
    unchecked_image_sentences,
)
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.live_state import EndpointSight, ImageSight, VariantSight
from rightsizer.domain.option import Target
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason
from tests import samples
from tests.changes.test_preflight import NOW, POLICY, preflight_input, proposed

REPO = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat"
RUNS, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
LATEST, PINNED = f"{REPO}:latest", f"{REPO}@{RUNS}"


def running(*images: tuple[str, str]) -> EndpointSight:
    rows = tuple(VariantSight(f"v{n}", 1, 1, 1.0, 1.0, (image,)) for n, image in enumerate(images))
    return EndpointSight("InService", "old", NOW, "", "", rows)


def difference(*images: tuple[str, str], registry: dict[str, ImageSight] | None = None, by_itself: bool = True) -> str:
    found = image_difference(running(*images), registry or {}, by_itself)
    assert found is None or found == Reason(Code.MOVING_TAG, found.sentence)
    return found.sentence if found is not None else ""


def test_a_tag_that_means_other_code_names_both_digests() -> None:
    said = (
        f"the tag {LATEST} means {OTHER} today, and the endpoint runs {RUNS}: a new deployment "
        "would bring other code; deploy that first, or name it by its digest"
    )
    seen = {LATEST: ImageSight(LATEST, (OTHER,))}
    for by_itself in (True, False):
        assert difference((LATEST, PINNED), registry=seen, by_itself=by_itself) == said
    assert difference((LATEST, PINNED), registry={LATEST: ImageSight(LATEST, (RUNS,))}) == ""


def test_an_image_that_is_gone_stops_everybody() -> None:
    said = f"the image {LATEST} is not in its registry any more, so new instances could not start; push it again"
    seen = {LATEST: ImageSight(LATEST, gone=True)}
    for by_itself in (True, False):
        assert difference((LATEST, PINNED), registry=seen, by_itself=by_itself) == said


def test_an_image_that_is_named_by_its_digest_is_not_looked_up() -> None:
    seen = {PINNED: ImageSight(PINNED, (OTHER,), gone=True)}
    assert difference((PINNED, PINNED), registry=seen) == ""
    assert tagged_images(running((PINNED, PINNED), (LATEST, PINNED), (LATEST, PINNED))) == (LATEST,)


def test_where_the_registry_said_nothing_the_first_tag_that_can_move_stops_automatic_mode() -> None:
    said = (
        f"the image {LATEST} is named by a tag without a version; it can move, so a resize could also deploy other code"
    )
    edge = f"{REPO}:edge"
    assert difference((f"{REPO}:1.2", PINNED), (LATEST, PINNED), (edge, PINNED)) == said
    assert difference((LATEST, PINNED), by_itself=False) == ""
    assert difference((LATEST, PINNED), registry={LATEST: ImageSight(LATEST)}) == said, "no digest was given"
    seen = {LATEST: ImageSight(LATEST, (OTHER,))}
    assert difference((LATEST, "unknown"), registry=seen) == said, "which code runs is not known"
    problem = {LATEST: ImageSight(LATEST, problem="access denied")}
    why = f"the digest of {LATEST} was not compared with the registry: access denied"
    assert difference((LATEST, PINNED), registry=problem) == f"{said}; {why}"


@pytest.mark.parametrize(
    ("tag", "moves"),
    [
        ("1.2-latest", True),
        ("STABLE", True),
        ("v3-gpu", False),
        ("gpu_1.2", False),
        ("build-4711", False),
        ("47", True),
        ("feature.x", True),
        ("DEADBEE1", False),
    ],
)
def test_a_word_that_moves_outweighs_a_version_in_the_tag(tag: str, moves: bool) -> None:
    assert (difference((f"{REPO}:{tag}", "unknown")) != "") is moves
    assert difference((REPO, "unknown")) != "", "without a tag it is the latest"
    assert difference(("localhost:5000/chat:1.2", "unknown")) == "", "a port is no tag"


def component(**changes: Any) -> ComponentSight:
    rows: dict[str, Any] = {
        "name": "chat-a",
        "arn": "arn:aws:sagemaker:eu-west-1:1:inference-component/chat-a",
        "endpoint": "chat",
        "status": "InService",
        "modified_at": NOW,
        "desired": 1,
        "specifications": ({"ModelName": "chat"},),
        "tags": {"rightsizer:mode": "propose"},
    }
    return ComponentSight(**(rows | changes))


def asked(*components: ComponentSight, **more: Any) -> PreflightInput:
    target = Target("ml.g5.xlarge", 1, placement=(("chat-a", "SPREAD"),))
    return preflight_input(option=samples.option(target=target), components={c.name: c for c in components}, **more)


def test_the_image_of_a_component_is_compared_as_well_and_a_person_may_take_the_risk() -> None:
    seen = component(images=((LATEST, PINNED), (PINNED, PINNED)))
    moved = asked(seen, registry={LATEST: ImageSight(LATEST, (OTHER,))})
    found = image_refusal(moved)
    assert found is not None
    assert found.sentence.startswith(f"the tag {LATEST} means {OTHER} today")
    assert image_refusal(asked(seen)) is None
    assert image_refusal(asked(seen, proposal=proposed(POLICY))) is not None


def test_each_image_that_could_not_be_compared_has_a_sentence() -> None:
    registry = {LATEST: ImageSight(LATEST, problem="denied"), REPO: ImageSight(REPO, (RUNS,))}
    said = f"the digest of {LATEST} was not compared with the registry: denied"
    assert unchecked_image_sentences(asked(registry=registry)) == (said,)


def test_a_component_in_service_of_this_endpoint_that_its_tag_allows_may_be_changed() -> None:
    assert component_refusal(asked(component())) is None
    assert component_refusal(asked(component(tags={"rightsizer:mode": "auto"}))) is None
    assert component_refusal(preflight_input()) is None, "no component is asked for"


ADAPTER: tuple[dict[str, Any], ...] = ({"BaseInferenceComponentName": "chat-base"},)
SPREAD: tuple[dict[str, Any], ...] = ({"SchedulingConfig": {"PlacementStrategy": "SPREAD"}}, {})


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"endpoint": "other"}, Code.CHANGED_SINCE, "component chat-a belongs to endpoint other"),
        (
            {"unknown_fields": ("Z", "B")},
            Code.UNKNOWN_FIELD,
            "component chat-a has fields that this program does not know: B, Z",
        ),
        (
            {"specifications": ADAPTER},
            Code.NOT_APPLICABLE,
            "component chat-a is an adapter of chat-base, and is placed with it",
        ),
        (
            {"specifications": SPREAD},
            Code.NOT_APPLICABLE,
            "the specifications of component chat-a place its copies differently: ['', 'SPREAD']",
        ),
        (
            {"status": "Updating"},
            Code.NOT_IN_SERVICE,
            "component chat-a is Updating; only one in service is changed",
        ),
        (
            {"tags": {"managed-by": "terraform"}},
            Code.OWNED_BY_STACK,
            "Terraform owns component chat-a; its next deployment would undo the change",
        ),
        (
            {"tags": {"rightsizer:mode": "off"}},
            Code.NOT_OPTED_IN,
            "the tag rightsizer:mode of component chat-a is off, and the role may change those tagged propose or auto: "
            "aws sagemaker add-tags --region eu-west-1 "
            "--resource-arn arn:aws:sagemaker:eu-west-1:1:inference-component/chat-a "
            "--tags Key=rightsizer:mode,Value=propose",
        ),
    ],
)
def test_a_component_that_may_not_be_changed_says_why(changes: dict[str, Any], code: Code, said: str) -> None:
    assert component_refusal(asked(component(**changes))) == Reason(code, said)


def test_a_component_without_a_tag_follows_the_setting_and_one_that_is_gone_is_named() -> None:
    untagged = asked(component(tags={}))
    found = component_refusal(untagged)
    assert found is not None
    assert "of component chat-a is absent, and" in found.sentence
    assert component_refusal(replace(untagged, limits=ChangeLimits(change_untagged=True))) is None
    off = asked(component(tags={"rightsizer:mode": "off"}), limits=ChangeLimits(change_untagged=True))
    assert component_refusal(off) is not None
    gone = Reason(Code.VANISHED, "component chat-a of chat does not exist any more")
    assert component_refusal(asked()) == gone
