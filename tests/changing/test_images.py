"""A tag that means another image than the one that runs stops a change before anything is written."""

from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.recommendation import Gate
from tests.changing.scenarios import COUNT
from tests.changing.world import World, an_option, world

OWN = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat"
LATEST, RELEASE = f"{OWN}:latest", f"{OWN}:2.5.1-gpu"
FOREIGN = "444455556666.dkr.ecr.eu-west-1.amazonaws.com/chat:latest"
AUTO: dict[str, Any] = {"by": "policy", "judged": {"gate": Gate.APPLY}, "tags": {"rightsizer:mode": "auto"}}


def running(w: World) -> str:
    (image,) = w.live()["ProductionVariants"][0]["DeployedImages"]
    return str(image["ResolvedImage"]).partition("@")[2]


@pytest.mark.parametrize("image", [LATEST, RELEASE])
@pytest.mark.parametrize("who", [AUTO, {}], ids=["policy", "person"])
def test_a_tag_that_moved_refuses_whatever_it_looks_like_and_whoever_approved(image: str, who: dict[str, Any]) -> None:
    with world(image=image, **who) as w:
        runs = running(w)
        w.box.move_image_tag(image)
        change = w.start()
        assert change.state is ChangeState.REFUSED
        assert runs in change.outcome
        assert image in change.outcome
        assert w.box.world.fleet.resolved(image)["ResolvedImage"].partition("@")[2] in change.outcome
        assert not [c for c in w.box.calls if c.writes and c.service == "sagemaker" and c.operation != "AddTags"]


def test_a_tag_without_a_version_that_still_means_what_runs_is_changed_by_itself() -> None:
    with world(image=LATEST, **AUTO) as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN, w.change.outcome


def test_an_index_of_platforms_is_the_image_that_runs_out_of_it() -> None:
    with world(image=LATEST, **AUTO) as w:
        w.box.world.registry.indexes.add(LATEST)
        assert w.start().state is not ChangeState.REFUSED, w.change.outcome


def test_a_registry_of_another_account_that_may_not_be_read_is_said_in_the_plan() -> None:
    with world(image=FOREIGN) as w:
        w.box.deny("ecr:BatchGetImage")
        change = w.start()
        assert change.state is not ChangeState.REFUSED
        (plan,) = [e.detail for e in change.journal if e.step == "plan"]
        assert f"the digest of {FOREIGN} was not compared with the registry" in plan
        assert "refused by the registry of account 444455556666" in plan


def test_a_registry_of_another_region_is_not_asked_and_the_plan_says_so() -> None:
    far = FOREIGN.replace("eu-west-1", "us-west-2")
    with world(image=far) as w:
        change = w.start()
        (plan,) = [e.detail for e in change.journal if e.step == "plan"]
        assert f"the digest of {far} was not compared with the registry: its registry belongs to account" in plan
        assert not [c for c in w.box.calls if c.service == "ecr"]


def test_where_the_registry_may_not_be_read_the_look_of_the_tag_decides() -> None:
    with world(image=LATEST, **AUTO) as w:
        w.box.deny("ecr:BatchGetImage")
        assert w.start().state is ChangeState.REFUSED
        assert "named by a tag without a version" in w.change.outcome
        assert "ecr:BatchGetImage was refused (AccessDenied" in w.change.outcome
    with world(image=RELEASE, **AUTO) as w:
        w.box.deny("ecr:BatchGetImage")
        assert w.start().state is not ChangeState.REFUSED


def test_counts_alone_deploy_nothing_so_no_registry_is_asked() -> None:
    with world(COUNT.option, image=LATEST, **COUNT.endpoint) as w:
        w.box.move_image_tag(LATEST)
        assert w.start().state is not ChangeState.REFUSED
        assert not [c for c in w.box.calls if c.service == "ecr"]


def test_an_image_by_its_digest_asks_nothing() -> None:
    with world(an_option(), **AUTO) as w:
        w.start()
        assert not [c for c in w.box.calls if c.service == "ecr"]
