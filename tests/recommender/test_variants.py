"""The join of what was recommended for each variant: one finding, one sum, one change."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rightsizer.changes.overruled import overruling_reason
from rightsizer.domain.endpoint import Endpoint, EndpointKind, Objective, ScalableTarget, Variant
from rightsizer.domain.history import History, PastChange, PastEnd, PastVariant
from rightsizer.domain.option import OptionKind, Risk, VariantTarget
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import PLAN_DISCOUNT, Commitment, PriceTable
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import MetricWindow
from rightsizer.recommender.pricing import monthly_cost
from rightsizer.recommender.proposal import permission_instructions
from rightsizer.render import sentences
from rightsizer.terminal.document import option_document, recommendation_document
from tests.recommender import kit

A, B, C = "AllTraffic", "B", "C"
LITTLE = kit.steady(memory=90.0)
SILENT = kit.steady(per_slot=0.0, gpu=0.0)


def several(*others: Variant, count: int = 3) -> Endpoint:
    made = kit.endpoint("ml.g6.xlarge", count, p95_s=2.0, kind=EndpointKind.MULTI_VARIANT)
    return replace(made, objective=Objective(2.0, min_instances=1), variants=(*made.variants, *others))


def variant(name: str, count: int = 4, instance_type: str = "ml.g6.xlarge", weight: float = 1.0) -> Variant:
    return Variant(name, "chat", instance_type, count, count, weight, (), "LEAST_OUTSTANDING_REQUESTS")


def window(name: str, signals: object = LITTLE, days: int = 14) -> MetricWindow:
    return replace(kit.window(signals, days), variant=name)  # type: ignore[arg-type]


def judged(
    endpoint: Endpoint, *windows: MetricWindow, history: History | None = None, prices: PriceTable | None = None
) -> Recommendation:
    past, table = history or History(), prices or kit.prices()
    return kit.judge(endpoint, windows, table, kit.catalogue(), {}, past, Policy(), kit.NOW)


def usd(count: int, name: str = "ml.g6.xlarge") -> Decimal:
    price = kit.prices().find(name)
    assert price is not None
    return monthly_cost(price, count)


def test_both_variants_shrink_in_one_option_that_costs_and_saves_what_both_do() -> None:
    found = judged(several(variant(B)), window(A), window(B))
    option = found.chosen_option
    assert option is not None
    assert (found.variant, found.usd_per_month) == (B, usd(3) + usd(4))
    assert option.target.others == (VariantTarget(A, "ml.g6.xlarge", 1, Decimal("1.1267")),)
    assert (option.usd_per_month, option.saving_usd_per_month) == (usd(1) * 2, usd(3) + usd(4) - usd(1) * 2)
    assert (option.kind, option.restart_needed, option.mean_instances) == (OptionKind.TYPE_AND_COUNT, True, 2.0)
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.OTHER_KIND)
    assert [o.kind for o in found.options] == [OptionKind.TYPE_AND_COUNT, OptionKind.INSTANCE_COUNT]
    assert sentences.headline(found).startswith(
        "variant B of chat can run on 1 × ml.g6.xlarge, variant AllTraffic on 1 × ml.g6.xlarge: saves"
    )


def test_the_overlap_of_a_joint_deployment_is_that_of_every_fleet() -> None:
    three = several(variant(B), variant(C, 2, "ml.g5.12xlarge"))
    option = judged(three, window(A), window(B)).chosen_option
    assert option is not None
    hourly = Decimal("1.1267") * 2 + Decimal("7.09") * 2
    highest = Policy().stated_chance(Risk(option.risk))[1]
    assert float(option.switch_usd) == pytest.approx(float(hourly) * 0.5 * (1 + highest), abs=0.01)
    assert option.payback_days == pytest.approx(float(option.switch_usd / option.saving_usd_per_month) * 30, abs=0.01)


def test_a_commitment_keeps_its_part_of_the_sum_once() -> None:
    def saving(usd_per_hour: int) -> Decimal:
        plan = Commitment(Decimal(usd_per_hour) * (1 - PLAN_DISCOUNT), known=True)
        option = judged(several(variant(B)), window(A), window(B), prices=kit.prices(commitment=plan)).chosen_option
        assert option is not None
        return option.saving_usd_per_month

    now = usd(3) + usd(4)
    assert saving(1) == now - usd(1) * 2, "more than that is bought on demand above the plan"
    assert saving(4) == now - Decimal(4 * 730), "what is on demand above the plan, counted once for both variants"


def test_an_endpoint_of_several_variants_bears_its_share_of_the_accounts_plan() -> None:
    plan, now = Commitment(8 * (1 - PLAN_DISCOUNT), known=True), usd(3) + usd(4)
    past, prices = History(gpu_usd_per_month=2 * now), kit.prices(commitment=plan)
    option = judged(several(variant(B)), window(A), window(B), history=past, prices=prices).chosen_option
    assert option is not None
    assert option.saving_usd_per_month == now - Decimal(8 * 730) / 2


def test_each_variant_is_listed_with_its_own_finding_and_cost() -> None:
    found = judged(several(variant(B), variant(C, 2, weight=0.0)), window(A), window(B, SILENT, 16))
    rows = {row.name: row for row in found.variants}
    assert {name: row.finding for name, row in rows.items()} == {
        A: Finding.OVER_PROVISIONED,
        B: Finding.IDLE,
        C: Finding.NOT_ENOUGH_DATA,
    }
    assert [row.usd_per_month for row in found.variants] == [usd(3), usd(4), usd(2)]
    assert (rows[B].requests, rows[C].requests, rows[C].weight) == (0, None, 0.0)
    shown = {row["name"]: row for row in recommendation_document(found)["variants"]}
    assert shown[C]["recommended"] is None
    assert shown[A]["recommended"]["instance_count"] == 1


def test_a_silent_variant_beside_one_that_serves_is_taken_out_by_its_owner() -> None:
    found = judged(several(variant(B), count=1), window(A), window(B, SILENT, 16))
    option = found.chosen_option
    assert option is not None
    assert (found.finding, found.gate) == (Finding.OVER_PROVISIONED, Gate.PROPOSE)
    assert (option.kind, option.in_place, option.saving_usd_per_month) == (OptionKind.REMOVE_VARIANT, False, usd(4))
    assert option.client_change == "callers that name the variant B (TargetVariant) get an error"
    assert sentences.change(option) == "be taken out of the endpoint by its owner"
    assert [row.options[0].kind for row in found.variants if row.options] == [OptionKind.REMOVE_VARIANT]


def test_a_silent_variant_beside_an_unknown_one_is_not_called_idle() -> None:
    found = judged(several(variant(B)), window(A, SILENT, 16))
    assert (found.finding, found.gate, found.options) == (Finding.NOT_ENOUGH_DATA, Gate.SILENT, ())
    assert found.reason.sentence.endswith("what B serves is not known, so the endpoint is not called idle")


def test_nothing_is_changed_while_the_last_change_of_any_variant_rests() -> None:
    lately = kit.NOW - timedelta(hours=3)
    past = PastChange(lately, "ml.g5.xlarge", "ml.g6.xlarge", 4, 4, PastEnd.PROVEN, variant=B)
    history = History(endpoint=(past,))
    found = judged(several(variant(B, 1)), window(A), window(B), history=history)
    assert found.chosen_option is not None
    assert found.variant == A
    assert (found.gate, found.gate_reason.code) == (Gate.SILENT, Code.COOLDOWN)


def test_the_past_of_one_variant_says_nothing_about_another() -> None:
    failed = PastChange(
        kit.NOW - timedelta(days=5), "ml.g6.xlarge", "ml.g6.xlarge", 3, 1, PastEnd.ROLLED_BACK, "alarm", variant=A
    )
    found = judged(several(variant(B)), window(A), window(B), history=History(endpoint=(failed,)))
    assert found.chosen_option is not None
    rows = {row.name: row for row in found.variants}
    assert [rows[name].options[0].kind for name in (A, B)] == [OptionKind.INSTANCE_COUNT] * 2
    assert [rows[name].options[0].target.instance_count for name in (A, B)] == [2, 1], "one failed for the first alone"


def test_a_past_change_tells_each_variant_what_became_of_it() -> None:
    other = PastVariant(B, "ml.g5.xlarge", "ml.g6.xlarge", 4, 2)
    past = PastChange(
        kit.NOW, "x", "y", 2, 1, PastEnd.PROVEN, realised_slowdown=1.3, variant=A, others=(other,), back_for="alarm"
    )
    assert past.of_variant(A, is_first=True) is past
    second = past.of_variant(B, is_first=False)
    assert second is not None
    assert (second.from_type, second.to_type, second.from_count, second.to_count) == (
        "ml.g5.xlarge",
        "ml.g6.xlarge",
        4,
        2,
    )
    assert (second.realised_slowdown, second.ended, second.back_for) == (None, PastEnd.PROVEN, "alarm")
    assert past.of_variant(C, is_first=False) is None
    older = replace(past, variant="", others=())
    assert older.of_variant(A, is_first=True) is older, "what was recorded before was of the first"
    assert older.of_variant(B, is_first=False) is None


def test_a_variant_without_a_price_is_left_out_of_the_sum_and_named() -> None:
    found = judged(several(variant(B, 1, "ml.unheard.xlarge")), window(A))
    assert found.usd_per_month == usd(3)
    assert any(text.startswith("the cost of variant B, whose price is not known") for text in found.not_checked)


def test_a_variant_that_is_autoscaled_never_shares_a_deployment() -> None:
    scaled = ScalableTarget(f"endpoint/chat/variant/{B}", "d", 4, 8)
    found = judged(replace(several(variant(B)), scaling=(scaled,)), window(A), window(B))
    assert found.chosen_option is not None
    assert found.chosen_option.target.others == ()


SHORT = kit.steady(per_slot=500.0, latency_s=0.6, gpu=96.0, memory=90.0)


def strict(endpoint: Endpoint) -> Endpoint:
    return replace(endpoint, objective=Objective(0.5, min_instances=1))


def test_of_several_variants_that_are_short_one_grows_at_a_time() -> None:
    found = judged(strict(several(variant(B, 3))), window(A, SHORT), window(B, SHORT))
    option = found.chosen_option
    assert option is not None
    assert (found.finding, found.gate, option.grows) == (Finding.UNDER_PROVISIONED, Gate.PROPOSE, True)
    assert option.target.others == (), "its budget, its alarms and its proof are of one variant"
    assert option.growth_usd == -option.saving_usd_per_month
    assert "as it is" in option.notes[-1]
    assert ", which costs" in sentences.variant_facts(found.variants[0])[-1][1]


def test_a_shortage_of_one_variant_does_not_wait_for_the_rest_after_a_change_of_another() -> None:
    moved = PastChange(kit.NOW - timedelta(hours=30), "ml.g5.xlarge", "ml.g6.xlarge", 4, 4, PastEnd.PROVEN, variant=B)
    fleet = strict(several(variant(B, 4)))
    found = judged(fleet, window(A, SHORT), window(B), history=History((moved,)))
    assert (found.finding, found.gate) == (Finding.UNDER_PROVISIONED, Gate.PROPOSE)


def test_an_approval_of_both_is_held_against_what_each_variant_needs_later() -> None:
    decided = judged(several(variant(B)), window(A), window(B))
    option = decided.chosen_option
    assert option is not None
    later = replace(decided, evaluated_at=decided.evaluated_at + timedelta(days=1))
    assert overruling_reason(option, decided, later) is None
    busy = kit.steady(per_slot=700.0, gpu=60.0, memory=90.0)
    grown = judged(several(variant(B)), window(A, busy), window(B))
    grown = replace(grown, evaluated_at=decided.evaluated_at + timedelta(days=1))
    against = overruling_reason(option, decided, grown)
    assert against is not None
    assert against.code is Code.NEWER_JUDGEMENT


def test_the_source_of_a_stack_gets_the_lines_of_each_variant() -> None:
    owned = replace(several(variant(B)), owned_by="CloudFormation stack chat")
    said = permission_instructions(owned, judged(owned, window(A), window(B)), "change it there:")
    assert said.splitlines() == [
        "change it there:",
        "  VariantName: B",
        "  InstanceType: ml.g6.xlarge",
        "- InitialInstanceCount: 4",
        "+ InitialInstanceCount: 1",
        "  VariantName: AllTraffic",
        "  InstanceType: ml.g6.xlarge",
        "- InitialInstanceCount: 3",
        "+ InitialInstanceCount: 1",
    ]


def test_the_json_of_an_option_names_every_variant_that_it_changes() -> None:
    option = judged(several(variant(B)), window(A), window(B)).chosen_option
    assert option is not None
    assert option_document(option)["other_variants"] == [
        {"name": A, "instance_type": "ml.g6.xlarge", "instance_count": 1}
    ]
