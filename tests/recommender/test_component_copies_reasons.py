"""Fewer copies of inference components: every refusal with its code and sentence, and every figure of an option."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.component import ComputeNeeds
from rightsizer.domain.endpoint import Mode, Objective
from rightsizer.domain.history import History
from rightsizer.domain.option import Excluded, Option, OptionKind, Risk, RiskResource
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.component_copies import copy_sizes, first_fit_decreasing, with_components
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.recommend import add_daily_usage, empty_recommendation, recommend
from tests import samples
from tests.recommender import kit
from tests.recommender.component_kit import NOTHING, calls_of_a_copy, component, endpoint, judged, load, scaled
from tests.recommender.plain import past

G5 = kit.catalogue().types["ml.g5.xlarge"]
CORE: dict[str, Any] = {"needs": {"NumberOfAcceleratorDevicesRequired": 0, "NumberOfCpuCoresRequired": 1}}


def refused(found: Recommendation) -> Excluded:
    (out,) = (each for each in found.excluded if each.dimension is OptionKind.COPIES)
    assert found.options == ()
    return out


def test_copies_that_still_take_every_instance_are_not_cheaper() -> None:
    half: dict[str, Any] = {"needs": {"NumberOfAcceleratorDevicesRequired": 0, "NumberOfCpuCoresRequired": 4}}
    busy = component("b", 3, load(gpu=0.9, concurrency=0.9), **half)
    assert refused(judged([component("a", 2, **CORE), busy], endpoint(3))).reason == Reason(
        Code.NOT_CHEAPER, "fewer copies (2 to 1 of a) still take 3 instances"
    )


def test_what_is_refused_is_told_of_its_type_or_of_its_kind() -> None:
    of = endpoint(2)
    two = replace(of, variants=(of.variants[0], replace(of.variants[0], name="b")))
    found = refused(judged([component(copies=2)], two))
    assert found.reason == Reason(Code.OTHER_KIND, "it has several variants, and its components are not split by them")
    assert found.instance_type == (judged([], two).instance_type or "inference components")
    assert refused(judged([component(copies=1)], endpoint(1))).instance_type == "ml.g5.xlarge"


@pytest.mark.parametrize(
    ("needs", "why"),
    [
        (ComputeNeeds(8, 0, 128), Reason(Code.NOT_APPLICABLE, "reserves more for one copy than one ml.g5.xlarge has")),
        (
            ComputeNeeds(1, 1, 128, "mig-1g.5gb"),
            Reason(Code.OTHER_KIND, "has copies on parts of a GPU (mig-1g.5gb), which are not packed here"),
        ),
    ],
)
def test_a_copy_without_a_size_says_why(needs: ComputeNeeds, why: Reason) -> None:
    assert copy_sizes(needs, G5) == why


def test_a_type_without_accelerators_holds_no_copy_that_needs_one() -> None:
    bare = replace(G5, name="ml.m5.xlarge", accelerator=None, accelerator_count=0)
    why = Reason(Code.NOT_APPLICABLE, "needs an accelerator, and ml.m5.xlarge has none")
    assert copy_sizes(ComputeNeeds(1, 1, 128), bare) == why
    assert copy_sizes(ComputeNeeds(1, 0, 128), bare) == (0.25, 0.0, 128 / 16384)


def test_what_a_component_reserves_has_to_be_known_for_one_type() -> None:
    by_type = component(copies=2, specification={})
    assert refused(judged([by_type])).reason == Reason(
        Code.NOT_APPLICABLE, "component chat names what it reserves for each type, or not at all"
    )
    large = component(copies=2, needs={"NumberOfCpuCoresRequired": 64})
    assert refused(judged([large])).reason == Reason(
        Code.NOT_APPLICABLE, "component chat reserves more for one copy than one ml.g5.xlarge has"
    )


def test_a_shortage_of_the_endpoint_itself_keeps_the_copies_of_all() -> None:
    of = endpoint(4)
    short = with_base(of, finding=Finding.UNDER_PROVISIONED)
    assert refused(short).reason == Reason(
        Code.UNDER_PROVISIONED, "chat is short of capacity, which what others free may have to carry"
    )


def with_base(of: Any, *options: Option, history: History | None = None, **given: Any) -> Recommendation:
    """Four copies of which two are needed, added to a recommendation of which so much is given."""
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, history or History(), Policy(), kit.NOW)
    base = replace(empty_recommendation(of, inputs, NOTHING), options=options, **given)
    return with_components(base, of, (component(copies=4),), inputs)


def test_the_option_costs_no_change_restarts_nothing_and_moves_the_copies_of_the_component() -> None:
    found = judged([component(copies=4)])
    option = found.chosen_option
    assert option is not None
    assert (option.switch_usd, option.payback_days, option.restart_needed) == (Decimal(0), 0.0, False)
    assert option.price.instance_type == "ml.g5.xlarge"
    assert option.notes[0].startswith("2 of 4 instances come back for sure: ")
    assert found.reason == Reason(Code.CHEAPER_OPTION, "fewer copies (chat 4 to 2) would save $2,055.68 a month")
    assert found.packing is not None
    assert (found.packing.instances, found.packing.least, found.packing.most) == (4, 4, 4)


def test_a_component_that_autoscaling_moves_gets_another_minimum() -> None:
    calm = component(
        "a", 4, load(requests_per_copy=10.0, most_copies=4.0), scaling=scaled("a", 4, 6, calls_of_a_copy(100.0))
    )
    option = judged([calm]).chosen_option
    assert option is not None
    assert (option.target.copies, [name for name, _ in option.target.least_copies]) == ((), ["a"])


def test_one_instance_that_is_left_is_in_one_zone_unless_its_owner_accepts_that() -> None:
    alone = judged([component("a", 8, load(gpu=0.1, concurrency=0.1), **CORE)], endpoint(2))
    assert alone.chosen_option is not None
    assert RiskResource.AVAILABILITY in alone.chosen_option.risks
    accepted = replace(endpoint(2), objective=Objective(min_instances=1))
    found = judged([component("a", 8, load(gpu=0.1, concurrency=0.1), **CORE)], accepted)
    assert found.chosen_option is not None
    assert found.chosen_option.risks == {RiskResource.LATENCY: Risk.LOW}


def test_the_largest_copies_are_placed_first() -> None:
    assert first_fit_decreasing([(0.3,), (0.3,), (0.7,), (0.7,)]) == 2


def test_a_person_is_asked_about_copies_and_nobody_after_a_change_of_yesterday() -> None:
    found = judged([component(copies=4)])
    assert found.gate_reason.sentence == (
        "needs your approval: copies of inference components are never changed automatically"
    )
    waits = with_base(endpoint(), history=History(endpoint=(past("ml.g5.xlarge", 0.5, "ml.g5.xlarge"),)))
    assert (waits.gate, waits.gate_reason.code) == (Gate.SILENT, Code.COOLDOWN)


def test_where_nobody_is_asked_the_option_is_listed_and_why_it_waits_is_told() -> None:
    silent = with_base(endpoint(mode=Mode.OFF))
    assert (silent.gate, [o.kind for o in silent.options]) == (Gate.SILENT, [OptionKind.COPIES])
    assert silent.excluded[-1].reason == silent.gate_reason
    assert silent.gate_reason.code is Code.MODE_OFF
    other = samples.option(kind=OptionKind.INSTANCE_TYPE)
    behind = with_base(endpoint(mode=Mode.OFF), other)
    assert [o.kind for o in behind.options] == [OptionKind.INSTANCE_TYPE, OptionKind.COPIES]


def test_a_sleep_that_its_owner_carries_out_does_not_go_first() -> None:
    sleep = samples.option(kind=OptionKind.SCALE_TO_ZERO, saving_usd_per_month=Decimal(9000), in_place=False)
    assert with_base(endpoint(), sleep).options[0].kind is OptionKind.COPIES
    dear = samples.option(kind=OptionKind.INSTANCE_TYPE, saving_usd_per_month=Decimal(9000))
    assert with_base(endpoint(), dear).options[0].kind is OptionKind.COPIES


def test_a_price_that_is_unknown_leaves_the_copies_and_names_it() -> None:
    of = endpoint()
    inputs = AccountInputs(kit.prices(["ml.g5.xlarge"]), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    found = with_components(empty_recommendation(of, inputs, NOTHING), of, (component(copies=4),), inputs)
    assert refused(found).reason == Reason(Code.NO_PRICE, "ml.g5.xlarge has no price: no saving can be stated")
    assert found.components[0].usd_per_month is None


def test_components_are_judged_by_the_latency_that_their_endpoint_declares() -> None:
    of = replace(endpoint(), objective=Objective(0.5, source="tag rightsizer:p95-ms"))
    (late,) = judged([component(copies=4, usage=load(p95_s=0.9))], of).components
    assert late.finding is Finding.UNDER_PROVISIONED
    assert "its p95 reached 0.90 s, above the objective of 0.50 s (tag rightsizer:p95-ms)" in late.reason.sentence


@pytest.mark.parametrize(
    ("promised_s", "around_s", "p95_s", "is_late"),
    [
        (1.0, 0.0, 0.9, False),
        (1.0, 0.2, 0.9, True),  # 0.8 s are left
        (1.0, 0.6, 0.9, False),  # most passes around the models, which no copy changes
        (300.0, 0.0, 55.0, False),
        (300.0, 6.0, 55.0, True),  # of the minute after which a request ends
        (300.0, 6.0, 200.0, False),  # it streams
    ],
)
def test_components_are_judged_by_what_the_endpoint_leaves_them_of_its_promise(
    promised_s: float, around_s: float, p95_s: float, is_late: bool
) -> None:
    of = replace(endpoint(), objective=Objective(promised_s, source="tag"))
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    base, one = empty_recommendation(of, inputs, NOTHING), component(copies=4, usage=load(p95_s=p95_s))
    (said,) = with_components(base, of, (one,), inputs, around_s).components
    assert (said.finding is Finding.UNDER_PROVISIONED) == is_late


def test_what_passes_around_the_models_is_taken_from_the_usage_of_their_endpoint() -> None:
    of = replace(endpoint(), objective=Objective(1.0, source="tag"))
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    card = kit.catalogue().types["ml.g5.xlarge"]
    around = kit.steady() | {("OverheadLatency", "Average"): 200_000.0}
    usage = add_daily_usage(of, [kit.window(around)], card, History(), Policy())
    (said,) = recommend(of, usage, inputs, (), (component(copies=4, usage=load(p95_s=0.9)),)).components
    assert said.reason.sentence == (
        "its p95 reached 0.90 s, above the objective of 0.80 s"
        " (tag: 1.00 s, of which 0.20 s pass around the model (OverheadLatency))"
    )
