"""Fleets that the load of an endpoint allows and the copies of its components do not fit on are not proposed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.component import Component, ReadComponents, UnreadComponent
from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode, Objective
from rightsizer.domain.history import History
from rightsizer.domain.option import Excluded, Option, OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.component_copies import with_components
from rightsizer.recommender.component_fleets import tell_of_held_instances, without_tight_fleets
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.recommend import empty_recommendation
from tests import samples
from tests.recommender import kit
from tests.recommender.component_kit import component, endpoint, load, scaled

RUNS = "ml.g5.xlarge"


def fleet(kind: OptionKind = OptionKind.INSTANCE_COUNT, count: int = 1, **target: Any) -> Option:
    made = samples.option()
    changed = replace(made.target, instance_type=target.pop("of", RUNS), instance_count=count, **target)
    return replace(made, kind=kind, target=changed, saving_usd_per_month=Decimal("100.00"))


def after(
    components: Sequence[Component | UnreadComponent] | Reason | None,
    *options: Option,
    runs: int = 4,
    quotas: Mapping[str, int] = {},
    now: str = RUNS,
    **given: Any,
) -> Recommendation:
    one = endpoint(runs)
    one = replace(one, variants=(replace(one.variants[0], instance_type=now),))
    inputs = AccountInputs(kit.prices(), kit.catalogue(), quotas, History(), Policy(), kit.NOW)
    found = replace(
        empty_recommendation(one, inputs, Reason(Code.CHEAPER_OPTION, "less would do")),
        finding=Finding.OVER_PROVISIONED,
        options=options,
        **{"gate": Gate.PROPOSE, "usd_per_month": Decimal("1000.00"), **given},
    )
    read = components if isinstance(components, Reason | None) else tuple(components)
    return without_tight_fleets(found, one, read, inputs)


def said(found: Recommendation) -> list[str]:
    return [out.reason.sentence for out in found.excluded]


def test_a_count_below_what_the_copies_reserve_is_ruled_out_and_nobody_is_asked() -> None:
    found = after([component(copies=4)], fleet(count=2))
    assert (found.options, found.gate, found.finding) == ((), Gate.SILENT, Finding.OPTIMIZED)
    why = Reason(Code.NOT_APPLICABLE, "4 copies of its components reserve 4 instances of ml.g5.xlarge, and 2 would run")
    assert found.excluded == (Excluded(RUNS, why, OptionKind.INSTANCE_COUNT),)
    assert found.gate_reason == why
    assert found.reason == Reason(
        why.code, f"a smaller fleet would carry its load, but is not proposed, because {why.sentence}"
    )


def test_a_fleet_that_holds_the_copies_stays_as_it_is() -> None:
    fits = fleet(count=2)
    assert after([component(copies=2)], fits).options == (fits,)
    assert after(None, fits).options == (fits,), "an endpoint of another kind"
    asleep = fleet(OptionKind.SCALE_TO_ZERO, 0)
    assert after([component(copies=4)], asleep).options == (asleep,), "its copies leave too"
    assert after([component(copies=4)], fleet(count=2), asleep).options == (asleep,), "behind a fleet that does not too"
    nights = fleet(OptionKind.SCHEDULE, 2, hourly_counts=(0, *[2] * 23))
    assert after([], nights).options == (nights,), "no copy needs an instance at night"


def test_one_copy_needs_one_instance_at_each_hour() -> None:
    nights = fleet(OptionKind.SCHEDULE, 2, hourly_counts=(0, *[2] * 23))
    assert said(after([component(copies=1)], nights)) == [
        "1 copy of its components reserves 1 instance of ml.g5.xlarge, and 0 would run"
    ]


def test_the_copies_of_all_components_count_together() -> None:
    both = [component("chat", copies=1), component("tags", copies=2)]
    assert said(after(both, fleet(count=2))) == [
        "3 copies of its components reserve 3 instances of ml.g5.xlarge, and 2 would run"
    ]


def test_what_stands_on_three_instances_today_fits_on_three_of_the_same_type_and_of_no_other() -> None:
    """AWS placed the copies so, though what they reserve asks for four."""
    same, other = fleet(count=3), fleet(OptionKind.SCHEDULE, 3, of="ml.g5.2xlarge")
    found = after([component(copies=4)], same, other, runs=3)
    assert found.options == (same,)
    assert said(found) == ["4 copies of its components reserve 4 instances of ml.g5.2xlarge, and 3 would run"]


def test_a_type_on_which_no_copy_fits_is_ruled_out_by_the_name_of_the_component() -> None:
    wide = component(copies=1, needs={"MinMemoryRequiredInMb": 20_000})
    (out,) = after([wide], fleet(OptionKind.INSTANCE_TYPE), now="ml.g6e.xlarge").excluded
    assert out.reason == Reason(
        Code.NOT_APPLICABLE, "component chat reserves more for one copy than one ml.g5.xlarge has"
    )


def test_the_next_option_is_asked_about_where_the_first_does_not_hold_the_copies() -> None:
    fits = fleet(count=3)
    found = after([component(copies=3)], fleet(count=1), fits)
    assert (found.options, found.gate, found.finding) == ((fits,), Gate.PROPOSE, Finding.OVER_PROVISIONED)
    assert "never changed automatically" in found.gate_reason.sentence
    assert found.reason.code is Code.CHEAPER_OPTION
    assert "$100.00 a month" in found.reason.sentence


def test_the_next_option_waits_for_a_person_and_does_not_bear_the_figures_of_the_first() -> None:
    made = samples.recommendation()
    first, fits = fleet(count=1), fleet(count=3)
    given: dict[str, Any] = {"gate": Gate.APPLY, "replay": made.replay, "stages": (first,)}
    found = after([component(copies=3)], first, fits, **given)
    assert (found.gate, found.replay, found.stages) == (Gate.PROPOSE, None, ())
    kept = after([component(copies=3)], fits, first, **given)
    assert (kept.gate, kept.replay, kept.stages) == (Gate.APPLY, made.replay, given["stages"])


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
    assert larger.switch_usd == Decimal("0.40"), "two new machines beside the old ones for half an hour"
    assert larger.payback_days == pytest.approx(30 * 0.40 / 416, abs=0.01)
    assert after([component(copies=2)], replace(cheap, switch_usd=Decimal("0.20")), runs=2).options == found.options
    (still,) = after([component(copies=2)], replace(cheap, switch_usd=Decimal(0)), runs=2).options
    assert (still.switch_usd, still.payback_days) == (Decimal(0), 0.0), "what starts nothing anew costs no change"


def test_no_more_of_another_type_are_asked_about_than_its_quota_allows() -> None:
    one = fleet(OptionKind.FEWER_GPUS, 1, of="ml.g5.2xlarge")
    cheap = replace(one, price=replace(one.price, usd_per_hour=Decimal("0.40")))
    kinds = [replace(cheap, kind=kind) for kind in (OptionKind.FEWER_GPUS, OptionKind.OTHER_ARCHITECTURE)]
    assert len(after([component(copies=2)], kinds[0], runs=2, quotas={"ml.g5.2xlarge": 2}).options) == 1
    assert after([component(copies=2)], kinds[0], runs=2, quotas={"ml.g5.2xlarge": 1}).options == ()
    assert after([component(copies=2)], kinds[1], runs=2).options == (), "another architecture is judged at its count"


def test_no_saving_is_told_of_an_endpoint_whose_own_cost_is_unknown() -> None:
    one = fleet(OptionKind.FEWER_GPUS, 1, of="ml.g5.2xlarge")
    assert after([component(copies=2)], one, runs=2, usd_per_month=None).options == ()


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


@pytest.mark.parametrize("least", [None, 4], ids=["no managed scaling", "a minimum of 4"])
@pytest.mark.parametrize(
    "part",
    [
        component("a", 1, load(most_copies=4.0), scaled("a", 1, 4)),
        component("a", 1, load(most_copies=3.2), scaled("a", 1, 2)),
        component("a", 1, scaling=scaled("a", 1, 2, scheduled=({"ScalableTargetAction": {"MaxCapacity": 4}},))),
        component("a", 1, scaling=Reason(Code.PERMISSION_MISSING, "not allowed")),
        component("a", 1, usage=Reason(Code.THROTTLED, "throttled")),
        component("a", 1, desired=4),
        component("a", 0, status="Creating", desired=1),
        component("a", 1, status="Updating", desired=1),
        component("a", 1, status="Failed"),
    ],
    ids=["maximum", "seen", "schedule", "unread bounds", "unread", "asked for", "creating", "updating", "failed"],
)
def test_copies_that_do_not_run_now_and_may_run_keep_their_instances(part: Component, least: int | None) -> None:
    found = told([part], endpoint(4, least))
    assert (found.finding, found.gate) == (Finding.OPTIMIZED, Gate.SILENT)
    assert not any("DesiredInstanceCount" in sentence for sentence in said(found))


def test_the_count_that_an_owner_is_told_to_set_holds_the_copies_of_each_moment() -> None:
    found = told([component("a", 1, load(most_copies=1.0), scaled("a", 1, 2))], endpoint(4, None))
    assert found.reason.sentence.startswith("its component copies hold more instances than they need: 4 run, and 2 ")
    assert found.gate_reason.sentence.endswith("DesiredInstanceCount=2")


def test_why_the_owner_is_told_no_smaller_count_is_said_where_fewer_copies_would_do() -> None:
    idle = component("a", 3, load(gpu=0.1, concurrency=0.1))
    busy = component("b", 1, load(most_copies=3.0), scaled("b", 1, 3))
    assert said(told([idle, busy], endpoint(4, None))) == [
        "fewer copies (3 to 1 of a) fit on fewer instances now, and take 4 instances when all run that may"
    ]
    assert said(told([idle, component("b", 0, status="Creating", desired=3)], endpoint(4, None))) == [
        "fewer copies (3 to 1 of a) fit on fewer instances now, and how many they will take is not known: component b"
        " is Creating"
    ]


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


def part(name: str, copies: int, gpu_count: int, maximum: int = 0, **given: Any) -> Component:
    scaling = scaled(name, 1, maximum) if maximum else None
    return component(name, copies, load(gpu=0.04 if gpu_count == 1 else 0.7), scaling, **gpus(gpu_count), **given)


def test_a_small_component_keeps_no_more_instances_than_the_copies_need_packed() -> None:
    found = told([part("whole", 1, 4), part("small", 1, 1)], large(3))
    assert found.reason.sentence == (
        "small alone keeps 1 instance of 3 × ml.g5.12xlarge running: on 1 × ml.g5.xlarge of the same GPU it would cost"
        " $4,148 a month less"
    )


def test_a_component_without_a_copy_keeps_nothing_and_those_that_stay_keep_room_for_its_return() -> None:
    assert told([part("whole", 1, 4), part("gone", 0, 1)], large()).finding is Finding.OPTIMIZED
    asleep = part("asleep", 0, 1, 2)
    found = told([part("whole", 1, 4), part("small", 1, 1), asleep], large())
    assert found.finding is Finding.OPTIMIZED, "small goes, and the second instance stays for what may wake"


def test_the_place_that_a_small_component_moves_to_holds_as_many_copies_as_may_run() -> None:
    found = told([part("whole", 1, 4), part("small", 1, 1, 3)], large())
    assert "on 3 × ml.g5.xlarge of the same GPU it would cost $2,092 a month less" in found.reason.sentence
    other = told([part("whole", 1, 4, 2), part("small", 1, 1)], large())
    assert other.finding is Finding.OPTIMIZED, "the other one may take the second instance itself"
    creating = part("small", 1, 1, status="Updating", desired=3)
    assert told([part("whole", 1, 4), creating], large()).finding is Finding.OPTIMIZED


@pytest.mark.parametrize(
    ("components", "of"),
    [
        ([component("a", 8, load(gpu=0.3), **QUARTER)], endpoint(2, 1, consolidates=False)),
        ([part("whole", 1, 4), part("small", 1, 1)], large()),
        ([component("a", 4)], endpoint(4)),
    ],
    ids=["held until the owner acts", "held by few", "fewer copies"],
)
def test_no_saving_is_told_of_copies_on_reserved_capacity(components: Sequence[Component], of: Endpoint) -> None:
    bought = replace(of, kinds=(EndpointKind.INFERENCE_COMPONENTS, EndpointKind.RESERVED))
    assert told(components, of).finding is Finding.OVER_PROVISIONED
    found = told(components, bought)
    assert (found.finding, found.gate, found.options, found.excluded) == (Finding.OPTIMIZED, Gate.SILENT, (), ())
    assert found.packing is not None, "each is judged and has its part of the price"


def test_components_that_need_their_instances_together_or_of_which_one_is_short_are_not_asked_about() -> None:
    wholes = [component(name, 1, usage=load(gpu=0.7), **gpus(4)) for name in ("one", "two")]
    assert told(wholes, large()).finding is Finding.OPTIMIZED, "four GPUs elsewhere cost as much"
    short = component("short", 1, usage=load(gpu=0.04, without_capacity=90.0), **gpus(1))
    assert told([wholes[0], short], large()).finding is Finding.OPTIMIZED


def test_what_is_missing_to_know_whether_copies_fit_is_told_by_its_code() -> None:
    denied = after(Reason(Code.PERMISSION_MISSING, "sagemaker:ListInferenceComponents is missing"), fleet())
    unknown = after([component()], fleet(OptionKind.INSTANCE_TYPE, 4, of="ml.odd.large"))
    assert [found.excluded[0].reason.code for found in (denied, unknown)] == [
        Code.PERMISSION_MISSING,
        Code.NO_SPECIFICATION,
    ]
