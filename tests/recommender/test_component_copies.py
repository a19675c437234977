"""Fewer copies of components: how they pack, what each costs, and which instances come back for sure."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.component import ComputeNeeds, UnreadComponent
from rightsizer.domain.history import History
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.component_copies import (
    copy_sizes,
    first_fit_decreasing,
    least_instances,
    with_components,
)
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.recommend import empty_recommendation
from tests import samples
from tests.recommender import kit
from tests.recommender.component_kit import NOTHING, component, endpoint, judged, load, scaled

G5 = kit.catalogue().types["ml.g5.xlarge"]
BUSY = load(gpu=0.6, concurrency=0.9)


def why(found: Recommendation) -> str:
    return next(out.reason.sentence for out in found.excluded if out.dimension is OptionKind.COPIES)


def test_the_sums_and_first_fit_decreasing_are_bounds_that_may_differ() -> None:
    thirds = [(0.6, 0.0), (0.6, 0.0), (0.6, 0.0)]
    assert (least_instances(thirds), first_fit_decreasing(thirds)) == (2, 3)
    mixed = [(0.3, 0.5), (0.7, 0.5), (0.5, 1.0)]
    assert (least_instances(mixed), first_fit_decreasing(mixed)) == (2, 2)
    assert (least_instances([]), first_fit_decreasing([])) == (0, 0)


def test_a_copy_takes_shares_of_cores_accelerators_and_memory() -> None:
    assert copy_sizes(ComputeNeeds(2, 1, 4096), G5) == (0.5, 1.0, 0.25)
    for needs in (ComputeNeeds(8, 0, 128), ComputeNeeds(1, 2, 128), ComputeNeeds(1, 0, 20_000)):
        assert isinstance(copy_sizes(needs, G5), Reason), "it is larger than an instance"
    assert isinstance(copy_sizes(ComputeNeeds(1, 1, 128, "mig-1g.5gb"), G5), Reason)


def test_copies_that_the_peak_does_not_need_go_with_the_instances_that_they_free() -> None:
    found = judged([component(copies=4)])
    option = found.chosen_option
    assert option is not None
    assert (option.kind, option.target.copies, option.target.instance_count) == (OptionKind.COPIES, (("chat", 2),), 2)
    assert option.saving_usd_per_month == (2 * 730 * Decimal("1.408")).quantize(Decimal("0.01"))
    assert (found.finding, found.gate) == (Finding.OVER_PROVISIONED, Gate.PROPOSE)
    assert found.gate_reason.code is Code.OTHER_KIND
    assert "2 of 4 instances come back for sure" in option.notes[0]
    assert any("AWS does not show" in text for text in option.not_checked)


def test_what_releases_empty_instances_only_promises_those_that_must_be_empty() -> None:
    small: dict[str, Any] = {"needs": {"NumberOfAcceleratorDevicesRequired": 0, "NumberOfCpuCoresRequired": 1}}
    parts = [component("a", 4, **small), component("b", 1, load(concurrency=0.9), **small)]
    loose = judged(parts, endpoint(4, consolidates=False))
    assert loose.chosen_option is not None
    assert loose.chosen_option.target.instance_count == 3, "two copies of a and one of b stand on three at most"
    packed = judged(parts, endpoint(4))
    assert packed.chosen_option is not None
    assert packed.chosen_option.target.instance_count == 1
    assert loose.packing == packed.packing
    assert packed.packing is not None
    assert (packed.packing.least, packed.packing.most) == (2, 2)


def test_copies_that_free_nothing_stay() -> None:
    half: dict[str, Any] = {"needs": {"NumberOfAcceleratorDevicesRequired": 0, "NumberOfCpuCoresRequired": 2}}
    found = judged([component("a", 4, **half), component("b", 3, BUSY, **half)], endpoint(4))
    assert found.chosen_option is not None
    assert found.chosen_option.target.copies == (("a", 3),), "two would give no more instances back than three do"
    assert found.chosen_option.target.instance_count == 3


@pytest.mark.parametrize(
    ("least", "consolidates", "said"),
    [
        (None, True, "update-endpoint-weights-and-capacities"),
        (4, True, "its minimum is 4"),
        (1, False, "rightsizer components chat --scale-in consolidation"),
    ],
)
def test_where_no_instance_comes_back_it_says_what_would_bring_it(
    least: int | None, consolidates: bool, said: str
) -> None:
    quarter: dict[str, Any] = {"needs": {"NumberOfAcceleratorDevicesRequired": 0, "NumberOfCpuCoresRequired": 1}}
    parts = [component("a", 8, load(gpu=0.3), **quarter)]
    found = judged(parts, endpoint(2 if least is None or not consolidates else 4, least, consolidates))
    assert found.options == ()
    assert said in why(found)


def test_what_is_not_known_of_one_component_keeps_the_copies_of_all() -> None:
    lost = UnreadComponent("lost", Reason(Code.PERMISSION_MISSING, "sagemaker:DescribeInferenceComponent is missing"))
    found = judged([component(copies=4), lost])
    assert [one.finding for one in found.components] == [Finding.OVER_PROVISIONED, Finding.NOT_ENOUGH_DATA]
    assert (found.options, found.packing) == ((), None)
    assert "component lost could not be read" in why(found)


def test_components_that_could_not_be_listed_are_a_note_and_no_finding() -> None:
    refused = Reason(Code.PERMISSION_MISSING, "sagemaker:ListInferenceComponents is missing")
    found = judged(refused)
    assert refused in found.notes
    assert (found.components, found.options) == ((), ())
    assert judged(None).components == ()


def test_nobody_is_cut_while_another_is_short() -> None:
    found = judged([component("a", 4), component("b", 1, load(without_capacity=3.0))], endpoint(6))
    assert found.options == ()
    assert "b is short of capacity" in why(found)


def test_copies_that_autoscaling_moves_are_left_to_it() -> None:
    found = judged([component("a", 4, scaling=scaled("a", 1, 6))])
    assert found.options == ()
    assert "a copy too many that it is known to do without" in why(found)


def test_the_price_is_split_by_what_copies_reserve() -> None:
    found = judged([component("a", 2, BUSY), component("b", 1, BUSY)], endpoint(4))
    usd = {one.name: one.usd_per_month for one in found.components}
    month = Decimal("1.408") * 730
    assert usd == {"a": (2 * month).quantize(Decimal("0.01")), "b": month.quantize(Decimal("0.01"))}
    assert found.packing is not None
    assert found.packing.unreserved_usd_per_month == month.quantize(Decimal("0.01"))


def test_an_adapter_takes_no_room_and_has_no_part_of_the_price() -> None:
    part = {"BaseInferenceComponentName": "chat"}
    found = judged([component(copies=2, usage=BUSY), component("tone", 1, specification=part)], endpoint(2))
    assert found.packing is not None
    assert (found.packing.least, found.packing.most) == (2, 2)
    assert found.components[1].base == "chat"
    assert found.components[1].usd_per_month in (None, Decimal("0.00"))


def test_a_component_whose_tag_is_absent_withholds_the_approval() -> None:
    found = judged([component(copies=4, tags={})])
    assert "add-tags" in found.components[0].withheld


def with_first(option: Option, finding: Finding = Finding.OPTIMIZED) -> Recommendation:
    """Fewer copies beside what was chosen before."""
    of = endpoint()
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    base = replace(empty_recommendation(of, inputs, NOTHING), options=(option,), stages=(option,), finding=finding)
    return with_components(base, of, (component(copies=4),), inputs)


def test_it_stands_before_what_an_owner_does_and_behind_a_sleep_that_saves_more() -> None:
    other = samples.option(kind=OptionKind.INSTANCE_TYPE, in_place=False)
    first = with_first(other)
    assert [o.kind for o in first.options] == [OptionKind.COPIES, OptionKind.INSTANCE_TYPE]
    assert first.stages == ()
    sleep = samples.option(kind=OptionKind.SCALE_TO_ZERO, saving_usd_per_month=Decimal(9000))
    assert [o.kind for o in with_first(sleep).options] == [OptionKind.SCALE_TO_ZERO, OptionKind.COPIES]
    idle = with_first(samples.option(kind=OptionKind.DELETE), Finding.IDLE)
    assert (idle.finding, [o.kind for o in idle.options]) == (Finding.IDLE, [OptionKind.DELETE, OptionKind.COPIES])


def test_a_component_that_asks_for_balance_between_zones_is_not_packed_by_the_policy() -> None:
    whole: dict[str, Any] = {"ComputeResourceRequirements": {"NumberOfCpuCoresRequired": 1}}
    balanced = {**whole, "SchedulingConfig": {"AvailabilityZoneBalance": {"MaxImbalance": 1}}}
    found = judged([component("a", 8, load(gpu=0.3), specification=balanced)], endpoint(2))
    assert found.options == ()
    assert "asks for balance between zones" in why(found)
    plain = judged([component("a", 8, load(gpu=0.3), specification=whole)], endpoint(2))
    assert plain.chosen_option is not None
    assert plain.chosen_option.target.instance_count == 1


def test_where_only_the_sums_would_fit_nothing_is_promised() -> None:
    wide: dict[str, Any] = {"needs": {"NumberOfAcceleratorDevicesRequired": 0, "NumberOfCpuCoresRequired": 2.4}}
    found = judged([component("a", 4, load(gpu=0.5, concurrency=0.55), **wide)], endpoint(3))
    assert found.options == ()
    assert "may fit on 2 of 3 instances, and no placement on fewer than 3 was found" in why(found)
