"""A tag that means another image than the one that runs stops a change, at first and right before its update."""

from typing import Any

import pytest

from rightsizer.changes.preflight import deployment
from rightsizer.domain.change import ChangeState
from rightsizer.domain.live_state import EndpointSight, ImageSight, VariantSight
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate
from tests.changes.account import MONDAY, OLD, OLD_TYPE
from tests.changes.memory import World, an_option, autoscaled, world

OWN = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat"
RUNS, OTHER, PLATFORM = (f"sha256:{letter * 64}" for letter in "abc")
LATEST, RELEASE = f"{OWN}:latest", f"{OWN}:2.5.1-gpu"
AUTO: dict[str, Any] = {"by": "policy", "gate": Gate.APPLY, "tags": {"rightsizer:mode": "auto"}}


def running(name: str, seen: ImageSight | None = None, **known: Any) -> World:
    """The endpoint runs the image of a tag, of which the registry says `seen` today."""
    w = world(**known)
    w.account.image = (name, f"{OWN}@{RUNS}")
    w.account.registry = {name: seen or ImageSight(name, (RUNS,))}
    return w


@pytest.mark.parametrize("name", [LATEST, RELEASE])
@pytest.mark.parametrize("who", [AUTO, {}], ids=["policy", "person"])
def test_a_tag_that_moved_refuses_whatever_it_looks_like_and_whoever_approved(name: str, who: dict[str, Any]) -> None:
    w = running(name, ImageSight(name, (OTHER,)), **who)
    change = w.start()
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.MOVING_TAG)
    assert all(text in change.outcome for text in (RUNS, OTHER, name))
    assert w.account.done == []


def test_a_tag_that_still_means_what_runs_is_changed_by_itself_also_within_an_index() -> None:
    for digests in ((RUNS,), (PLATFORM, RUNS)):
        w = running(LATEST, ImageSight(LATEST, digests), **AUTO)
        w.start()
        assert w.run(48).state is ChangeState.PROVEN, w.change.outcome


def test_a_tag_that_is_gone_refuses_because_new_instances_could_not_start() -> None:
    change = running(RELEASE, ImageSight(RELEASE, gone=True)).start()
    assert change.state is ChangeState.REFUSED
    assert "is not in its registry any more" in change.outcome


@pytest.mark.parametrize(
    ("name", "who", "state"),
    [
        (LATEST, AUTO, ChangeState.REFUSED),
        (RELEASE, AUTO, ChangeState.RUNNING),
        (LATEST, {}, ChangeState.RUNNING),
    ],
)
def test_where_the_registry_may_not_be_read_the_look_of_the_tag_decides_and_a_person_may(
    name: str, who: dict[str, Any], state: ChangeState
) -> None:
    change = running(name, ImageSight(name, problem="ecr:BatchGetImage was refused"), **who).start()
    assert change.state is state, change.outcome
    said = (
        change.outcome if state is ChangeState.REFUSED else next(e.detail for e in change.journal if e.step == "plan")
    )
    assert f"the digest of {name} was not compared with the registry: ecr:BatchGetImage was refused" in said


def test_a_registry_that_throttles_is_asked_again() -> None:
    w = running(LATEST, ImageSight(LATEST, problem="Rate exceeded", passing=True))
    assert w.start().state is ChangeState.PLANNED
    assert "reading what the tag of" in w.change.outcome
    w.account.registry = {LATEST: ImageSight(LATEST, (RUNS,))}
    assert w.run(12).state is ChangeState.PROVEN


def test_counts_alone_deploy_nothing_so_a_moved_tag_stops_nothing() -> None:
    one = an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 1))
    w = running(LATEST, ImageSight(LATEST, (OTHER,)), option=one, count=3)
    w.start()
    assert w.run(12).state is ChangeState.PROVEN


@pytest.mark.parametrize("scaling", [None, autoscaled()], ids=["plain", "autoscaled"])
def test_a_tag_that_moves_after_the_preflight_stops_the_update_and_gives_autoscaling_back(scaling: Any) -> None:
    w = running(LATEST, scaling=scaling)
    w.start()
    w.account.registry = {LATEST: ImageSight(LATEST, (OTHER,))}
    change = w.run(6)
    assert change.state is (ChangeState.REFUSED if scaling is None else ChangeState.ROLLED_BACK)
    assert "seen right before the deployment, after the preflight, and it was not made" in change.outcome
    assert (w.account.writes(StepKind.UPDATE_ENDPOINT), w.account.config_name) == ([], OLD)
    assert len(w.account.targets) == (scaling is not None)


def test_the_way_back_is_deployed_all_the_same_and_told_once() -> None:
    w = running(LATEST)
    w.start()
    w.run(6)
    w.account.registry = {LATEST: ImageSight(LATEST, (OTHER,))}
    w.ask_back()
    assert w.run(6).state is ChangeState.ROLLED_BACK
    subjects = [subject for subject, _ in w.told]
    assert subjects.count("chat: its rollback does not bring the image that ran before") == 1
    assert "the rollback is deployed all the same, since what runs now has to go" in w.change.outcome
    assert LATEST in w.change.outcome


@pytest.mark.parametrize(
    ("tag", "moves"),
    [("latest", True), ("1.2", False), ("v3", False), ("20260102", False), ("0a1b2c3", False), ("cu124", True)],
)
def test_a_version_a_date_or_a_commit_in_a_tag_stands_still(tag: str, moves: bool) -> None:
    name = f"{OWN}:{tag}"
    variant = VariantSight("v", 1, 1, 1.0, 1.0, ((name, "unknown"),))
    sight = EndpointSight("InService", OLD, MONDAY, "", "", (variant,))
    assert (deployment.image_difference(sight, {}, by_itself=True) is not None) == moves
    assert deployment.image_difference(sight, {}, by_itself=False) is None
    assert deployment.tagged_images(sight) == (name,)
