"""The quota to the instance: what is counted, what overlaps, what a batch needs, and the sentence that says so."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.changes.preflight.deployment import quota_refusal, unchecked_quota_sentences
from rightsizer.domain.live_state import ConfigSight, EndpointSight, VariantSight
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate
from tests import samples
from tests.changes.test_preflight import NOW, TARGET, preflight_input, proposed

NEW, OLD = "ml.g5.xlarge", "ml.g5.4xlarge"
NAME = "the quota 'ml.g5.xlarge for endpoint usage'"


def variant(name: str, desired: int, current: int | None = None) -> VariantSight:
    return VariantSight(name, desired if current is None else current, desired, 1.0, 1.0)


def before(target: Target, limits: dict[str, int], *variants: tuple[VariantSight, str], **more: Any) -> PreflightInput:
    """A look at an endpoint of these variants and their types, before a change of AllTraffic to the target."""
    running = variants or ((variant("AllTraffic", 1), OLD),)
    rows = [{"VariantName": seen.name, "InstanceType": kind} for seen, kind in running]
    return preflight_input(
        option=samples.option(target=target),
        endpoint=EndpointSight("InService", "old", NOW, "", "", tuple(seen for seen, _ in running)),
        config=ConfigSight("old", {"ProductionVariants": rows}, NOW),
        **({"quotas": limits, "quota": None, "deploys": True} | more),
    )


def refused(inputs: PreflightInput) -> str:
    """The sentence of the refusal; empty where there is none."""
    found = quota_refusal(inputs)
    assert found is None or found == Reason(Code.NO_QUOTA, found.sentence)
    return found.sentence if found is not None else ""


def test_a_fleet_that_fits_its_quota_exactly_passes_and_one_more_does_not() -> None:
    assert refused(before(Target(NEW, 3), {NEW: 3})) == ""
    assert refused(before(Target(NEW, 3), {NEW: 2})) == f"{NAME} is 2; the new fleet needs 3 at once"


def test_other_variants_of_the_same_type_are_counted_by_the_more_of_what_runs_and_what_is_asked() -> None:
    others = ((variant("AllTraffic", 1), OLD), (variant("w", 2, 4), NEW), (variant("x", 9), OLD))
    said = f"{NAME} is 6; the new fleet needs 3 at once, and other variants of the endpoint run 4"
    assert refused(before(Target(NEW, 3), {NEW: 6}, *others, deploys=False)) == said
    assert refused(before(Target(NEW, 3), {NEW: 7}, *others, deploys=False)) == ""


def test_what_autoscaling_could_ask_for_has_to_fit_as_well() -> None:
    said = (
        f"{NAME} is 5; its autoscaling for the new type could ask for 8 instances and would stop at the quota; "
        "raise the quota, or lower the maximum"
    )
    assert refused(before(Target(NEW, 2), {NEW: 5}, most=8)) == said
    assert refused(before(Target(NEW, 2), {NEW: 8}, most=8)) == ""
    beside = ((variant("AllTraffic", 1), OLD), (variant("w", 3), NEW))
    found = refused(before(Target(NEW, 2), {NEW: 5}, *beside, most=8))
    assert "ask for 8 instances, and other variants of the endpoint run 3 and would stop" in found


def test_a_maximum_of_the_option_itself_is_needed_at_once() -> None:
    assert refused(before(Target(NEW, 2, minimum=1, maximum=6), {NEW: 5})).endswith("the new fleet needs 6 at once")
    assert refused(before(Target(NEW, 2, minimum=1, maximum=6), {NEW: 6})) == ""


def test_a_minimum_that_is_given_back_needs_no_room_for_the_maximum_that_was_registered() -> None:
    target = Target(OLD, 1, minimum=1, maximum=4)
    option = samples.option(kind=OptionKind.AUTOSCALING, target=target, restores=True)
    inputs = before(target, {OLD: 3}, scaling=(TARGET,), deploys=False)
    assert refused(inputs) != ""
    assert refused(replace(inputs, option=option)) == ""


def test_an_unknown_quota_refuses_nothing_and_the_one_of_the_target_alone_is_believed() -> None:
    assert refused(before(Target(NEW, 9), {})) == ""
    assert refused(before(Target(NEW, 9), {}, quota=8)) != ""
    assert refused(before(Target(NEW, 9), {NEW: 9}, quota=8)) == "", "the list is newer"
    assert refused(before(Target(NEW, 1), {}, (variant("AllTraffic", 1), OLD), quota=1)) == ""


def test_of_pools_one_that_holds_the_fleet_or_is_unknown_is_enough() -> None:
    pools = Target(NEW, 3, pools=(NEW, OLD))
    beside = ((variant("AllTraffic", 1), OLD), (variant("w", 2), OLD))
    said = (
        f"no pool could hold the fleet: {NAME} is 2 and 3 are needed, "
        "the quota 'ml.g5.4xlarge for endpoint usage' is 4 and 5 are needed"
    )
    assert refused(before(pools, {NEW: 2, OLD: 4}, *beside)) == said
    for limits in ({NEW: 3, OLD: 0}, {NEW: 0, OLD: 5}, {NEW: 0}, {}):
        assert refused(before(pools, limits, *beside)) == "", limits


@pytest.mark.parametrize(("limit", "fits"), [(3, True), (2, False)])
def test_both_fleets_overlap_where_one_instance_is_replaced(limit: int, fits: bool) -> None:
    inputs = before(Target(NEW, 1), {NEW: limit}, (variant("AllTraffic", 2), NEW))
    said = f"{NAME} is 2; while the old and the new fleet overlap, 2 and 1 run at once"
    assert refused(inputs) == ("" if fits else said)


def test_the_other_variants_are_started_a_second_time_too() -> None:
    both = ((variant("AllTraffic", 1), OLD), (variant("w", 2), "ml.m5.large"))
    name = "the quota 'ml.m5.large for endpoint usage'"
    found = refused(before(Target(NEW, 1), {"ml.m5.large": 3}, *both))
    assert found == f"{name} is 3; while the old and the new fleet overlap, 2 and 2 run at once"
    assert refused(before(Target(NEW, 1), {"ml.m5.large": 4}, *both)) == ""
    same = ((variant("AllTraffic", 1), NEW), (variant("w", 2), NEW))
    found = refused(before(Target(NEW, 3), {NEW: 7}, *same))
    assert found == f"{NAME} is 7; while the old and the new fleet overlap, 3 and 5 run at once"
    assert refused(before(Target(NEW, 3), {NEW: 8}, *same)) == ""


def test_what_deploys_nothing_or_only_tests_has_no_overlap() -> None:
    one = (variant("AllTraffic", 1), NEW)
    assert refused(before(Target(NEW, 1), {NEW: 1}, one)) != ""
    assert refused(before(Target(NEW, 1), {NEW: 1}, one, deploys=False)) == ""
    assert refused(before(Target(NEW, 1), {NEW: 1}, one, proposal=proposed(gate=Gate.TEST))) == ""


@pytest.mark.parametrize(
    ("running", "count", "limit", "batch"),
    [
        (8, 8, 9, None),
        (8, 8, 8, 1),
        (40, 40, 42, None),
        (40, 40, 41, 2),
        (41, 2, 42, 3),
        (41, 2, 43, None),  # no batch is larger than the new fleet
        (2, 40, 42, None),
        (2, 2, 2, 1),
    ],
)
def test_a_fleet_that_can_roll_needs_room_for_five_percent_of_it(
    running: int, count: int, limit: int, batch: int | None
) -> None:
    found = refused(before(Target(NEW, count), {NEW: limit}, (variant("AllTraffic", running), NEW)))
    said = (
        f"{NAME} is {limit} and the endpoint runs {running} of them; a deployment that replaces them in "
        f"batches needs room for {batch} more, to go and to come back"
    )
    assert found == ("" if batch is None else said)


def test_two_variants_cannot_roll_and_overlap_whole() -> None:
    two = ((variant("AllTraffic", 2), NEW), (variant("w", 2), OLD))
    found = refused(before(Target(NEW, 2), {NEW: 3}, *two))
    assert "while the old and the new fleet overlap, 2 and 2 run at once" in found


def test_a_plan_says_that_others_were_not_counted_only_where_a_quota_is_known_and_a_fleet_starts() -> None:
    said = f"{NAME} (7) was compared with this endpoint alone: others' instances are not counted"
    assert unchecked_quota_sentences(before(Target(NEW, 1), {NEW: 7})) == (said,)
    assert unchecked_quota_sentences(before(Target(NEW, 1), {NEW: 7}, deploys=False)) == ()
    assert unchecked_quota_sentences(before(Target(NEW, 1), {})) == ()


def test_the_quota_of_the_target_says_nothing_of_the_types_of_other_variants() -> None:
    both = ((variant("AllTraffic", 1), OLD), (variant("w", 2), "ml.m5.large"))
    assert refused(before(Target(NEW, 1), {}, *both, quota=1)) == ""


def test_without_a_configuration_or_a_type_no_variant_is_counted() -> None:
    inputs = before(Target(NEW, 3), {NEW: 3}, (variant("AllTraffic", 1), OLD), (variant("w", 2), NEW))
    assert refused(inputs) != ""
    assert refused(replace(inputs, config=None)) == ""
    empty = ConfigSight("old", {}, NOW)
    assert refused(replace(inputs, config=empty)) == "", "serverless variants alone have no type"
    typeless = ConfigSight("old", {"ProductionVariants": [{"VariantName": "w"}]}, NOW)
    assert refused(replace(inputs, config=typeless)) == ""
