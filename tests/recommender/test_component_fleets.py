"""Fleets that the load of an endpoint allows and the copies of its components do not fit on are not proposed."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.component import Component, ReadComponents, UnreadComponent
from rightsizer.domain.endpoint import Endpoint, Mode, Objective
from rightsizer.domain.history import History
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.component_copies import with_components
from rightsizer.recommender.component_fleets import tell_of_held_instances, without_tight_fleets
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.recommend import empty_recommendation
from tests import samples
from tests.recommender import kit
from tests.recommender.component_kit import component, endpoint, load

RUNS = "ml.g5.xlarge"


def fleet(kind: OptionKind = OptionKind.INSTANCE_COUNT, count: int = 1, **target: Any) -> Option:
    made = samples.option()
    changed = replace(made.target, instance_type=target.pop("of", RUNS), instance_count=count, **target)
    return replace(made, kind=kind, target=changed, saving_usd_per_month=Decimal("100.00"))


def after(
    components: Sequence[Component | UnreadComponent] | Reason | None, *options: Option, runs: int = 4
) -> Recommendation:
    one = endpoint(runs)
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    found = replace(
        empty_recommendation(one, inputs, Reason(Code.CHEAPER_OPTION, "less would do")),
        finding=Finding.OVER_PROVISIONED,
        gate=Gate.PROPOSE,
        options=options,
        usd_per_month=Decimal("1000.00"),
    )
    read = components if isinstance(components, Reason | None) else tuple(components)
    return without_tight_fleets(found, one, read, inputs)


def said(found: Recommendation) -> list[str]:
    return [out.reason.sentence for out in found.excluded]


def test_a_count_below_what_the_copies_reserve_is_ruled_out_and_nobody_is_asked() -> None:
    found = after([component(copies=4)], fleet(count=2))
    assert (found.options, found.gate, found.finding) == ((), Gate.SILENT, Finding.OPTIMIZED)
    assert said(found) == ["4 copies of its components reserve 4 instances of ml.g5.xlarge, and 2 would run"]
    assert "would carry its load, and not hold its copies" in found.reason.sentence


def test_a_fleet_that_holds_the_copies_stays_as_it_is() -> None:
    fits = fleet(count=2)
    assert after([component(copies=2)], fits).options == (fits,)
    assert after(None, fits).options == (fits,), "an endpoint of another kind"
    asleep = fleet(OptionKind.SCALE_TO_ZERO, 0)
    assert after([component(copies=4)], asleep).options == (asleep,), "its copies leave too"


def test_the_next_option_is_asked_about_where_the_first_does_not_hold_the_copies() -> None:
    fits = fleet(count=3)
    found = after([component(copies=3)], fleet(count=1), fits)
    assert (found.options, found.gate, found.finding) == ((fits,), Gate.PROPOSE, Finding.OVER_PROVISIONED)
    assert "never changed automatically" in found.gate_reason.sentence
    assert "$100.00 a month" in found.reason.sentence


def test_another_type_runs_as_often_as_the_copies_reserve_where_that_still_saves() -> None:
    one = fleet(OptionKind.FEWER_GPUS, 1, of="ml.g5.2xlarge")
    cheap = replace(one, price=replace(one.price, usd_per_hour=Decimal("0.40")))
    found = after([component(copies=2)], cheap, runs=2)
    (larger,) = found.options
    assert (larger.target.instance_count, larger.usd_per_month) == (2, Decimal("584.00"))
    assert larger.saving_usd_per_month == Decimal("416.00")
    assert (found.gate, found.finding) == (Gate.PROPOSE, Finding.OVER_PROVISIONED)
    assert "2 × ml.g5.2xlarge would save $416.00 a month and hold its copies" in found.reason.sentence
    assert "2 copies of its components reserve 2 instances of ml.g5.2xlarge; its load alone takes 1" in larger.notes


def test_another_type_is_ruled_out_where_as_many_as_the_copies_reserve_save_too_little() -> None:
    one = fleet(OptionKind.FEWER_GPUS, 1, of="ml.g5.2xlarge")
    dear = replace(one, price=replace(one.price, usd_per_hour=Decimal("0.65")))
    assert after([component(copies=2)], dear, runs=2).options == ()


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (fleet(OptionKind.INSTANCE_TYPE, 4, of="ml.odd.large"), "the hardware of ml.odd.large"),
        (fleet(OptionKind.TYPE_AND_COUNT, 1, of="ml.g5.2xlarge"), "reserve 2 instances of ml.g5.2xlarge, and 1 would"),
        (fleet(OptionKind.SCHEDULE, 2, hourly_counts=(1, *[2] * 23)), "and 1 would run"),
        (fleet(OptionKind.AUTOSCALING, 2, minimum=1, maximum=4), "and 1 would run"),
        (fleet(OptionKind.INSTANCE_POOLS, 1, pools=("ml.g5.2xlarge", RUNS)), "2 instances of ml.g5.2xlarge"),
    ],
    ids=["type", "type and count", "hours", "minimum", "pools"],
)
def test_each_kind_of_fleet_is_held_against_the_copies(option: Option, why: str) -> None:
    (sentence,) = said(after([component(copies=2)], option, runs=2))
    assert why in sentence


@pytest.mark.parametrize(
    "components",
    [
        Reason(Code.PERMISSION_MISSING, "sagemaker:ListInferenceComponents is missing"),
        (component(copies=1), UnreadComponent("lost", Reason(Code.THROTTLED, "throttled"))),
    ],
    ids=["not listed", "one unread"],
)
def test_copies_that_are_not_known_hold_every_smaller_fleet_back(components: ReadComponents) -> None:
    (sentence,) = said(after(components, fleet(count=1)))
    assert sentence.startswith("whether its copies fit is not known: ")


QUARTER: dict[str, Any] = {"needs": {"NumberOfAcceleratorDevicesRequired": 0, "NumberOfCpuCoresRequired": 1}}


def told(components: Sequence[Component | UnreadComponent], of: Endpoint, **given: Any) -> Recommendation:
    """The answer on an endpoint for which nothing else is found."""
    inputs = AccountInputs(kit.prices(), kit.catalogue(), given.get("quotas", {}), History(), Policy(), kit.NOW)
    right = replace(empty_recommendation(of, inputs, Reason(Code.ALREADY_RIGHT, "right")), finding=Finding.OPTIMIZED)
    found = with_components(right, of, tuple(components), inputs)
    if "option" in given:
        found = replace(found, options=(given["option"],), gate_reason=Reason(given["why"], "not now"))
    return tell_of_held_instances(found, of, tuple(components), inputs)


def test_copies_that_hold_instances_until_their_owner_takes_a_step_are_told_with_their_cost() -> None:
    found = told([component("a", 8, load(gpu=0.3), **QUARTER)], endpoint(2, 1, consolidates=False))
    assert (found.finding, found.gate, found.options) == (Finding.OVER_PROVISIONED, Gate.PROPOSE, ())
    line = "rightsizer components chat --scale-in consolidation --region us-east-1"
    assert found.reason.sentence == (
        "its component copies hold more instances than they need: 2 run, and 1 would do for $1,028 a month less"
    )
    assert found.gate_reason.sentence.endswith(f"first let copies move together: {line}")


def test_a_minimum_of_managed_scaling_that_keeps_an_instance_too_many_is_told_and_the_owners_tag_is_kept() -> None:
    parts = [component("a", 2, load(gpu=0.3, concurrency=1.2), **QUARTER)]
    found = told(parts, endpoint(2, 2))
    assert (found.finding, found.gate) == (Finding.OVER_PROVISIONED, Gate.PROPOSE)
    assert found.gate_reason.sentence == (
        "its copies fit on fewer instances, and its minimum is 2 (MinInstanceCount of managed instance scaling): no"
        " instance would come back before its owner deploys a configuration with 1"
    )
    declared = replace(endpoint(2, 2), objective=Objective(min_instances=2))
    assert told(parts, declared).finding is Finding.OPTIMIZED, "the owner's tag is the owner's word"
    assert told(parts, replace(endpoint(2, 2), mode=Mode.REPORT)).gate is Gate.SILENT


def test_an_option_that_saves_too_little_does_not_keep_the_question_about_held_instances_away() -> None:
    parts = [component("a", 2, load(gpu=0.3, concurrency=1.2), **QUARTER)]
    found = told(parts, endpoint(2, 2), option=fleet(), why=Code.SAVING_TOO_SMALL)
    assert (found.gate, found.options, found.excluded[-1].dimension) == (Gate.PROPOSE, (), OptionKind.INSTANCE_COUNT)
    assert told(parts, endpoint(2, 2), option=fleet(), why=Code.COOLDOWN).gate is Gate.SILENT


def large(count: int = 2) -> Endpoint:
    made = endpoint(count)
    return replace(made, variants=(replace(made.variants[0], instance_type="ml.g5.12xlarge"),))


def gpus(number: int) -> dict[str, Any]:
    return {"needs": {"NumberOfAcceleratorDevicesRequired": number, "MinMemoryRequiredInMb": 4096}}


def test_a_small_component_that_keeps_a_large_instance_of_its_own_is_asked_about_with_a_cheaper_place() -> None:
    whole, small = (
        component("whole", 1, usage=load(gpu=0.7), **gpus(4)),
        component("small", 1, usage=load(gpu=0.04), **gpus(1)),
    )
    found = told([whole, small], large())
    assert (found.finding, found.gate, found.options) == (Finding.OVER_PROVISIONED, Gate.PROPOSE, ())
    assert found.reason.sentence == (
        "small alone keeps 1 instance of 2 × ml.g5.12xlarge running: on 1 × ml.g5.xlarge of the same GPU it would cost"
        " $4,148 a month less"
    )
    assert "move small to an endpoint of its own" in found.gate_reason.sentence
    both = told([whole, small, component("tiny", 1, usage=load(gpu=0.04), **gpus(1))], large())
    assert both.reason.sentence.startswith("small and tiny alone keep 1 instance of 2 × ml.g5.12xlarge running: on 2 ×")
    elsewhere = told([whole, small], large(), quotas={"ml.g5.xlarge": 0})
    assert "1 × ml.g5.2xlarge" in elsewhere.reason.sentence


def test_components_that_need_their_instances_together_or_of_which_one_is_short_are_not_asked_about() -> None:
    wholes = [component(name, 1, usage=load(gpu=0.7), **gpus(4)) for name in ("one", "two")]
    assert told(wholes, large()).finding is Finding.OPTIMIZED, "four GPUs elsewhere cost as much"
    short = component("short", 1, usage=load(gpu=0.04, without_capacity=90.0), **gpus(1))
    assert told([wholes[0], short], large()).finding is Finding.OPTIMIZED
