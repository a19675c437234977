"""When a person is asked about a shadow test, when without one, and when something else comes first."""

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rightsizer.domain.endpoint import EndpointKind, Mode
from rightsizer.domain.option import Risk, RiskResource
from rightsizer.domain.price import Commitment
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender import questions
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.pricing import monthly_cost
from rightsizer.recommender.questions import FAR_CHEAPER, FAR_CHEAPER_THAN_SAFE, with_test
from rightsizer.recommender.shadow_test import ShadowTestCandidate
from tests import samples
from tests.labelled import judged, read
from tests.recommender import kit
from tests.recommender.plain import option
from tests.test_cases import CASES


def found(name: str, **given: Any) -> Recommendation:
    """The answer to a labelled case, some of whose sections are given anew."""
    (path,) = (p for p in CASES if p.stem == name)
    case = read(path)
    return judged({**case, **{section: {**case.get(section, {}), **words} for section, words in given.items()}})


def test_the_chosen_option_carries_the_test_its_hours_its_answer_and_both_risks() -> None:
    chosen = found("test-needs-opt-in").chosen_option
    assert chosen is not None
    assert chosen.test_usd > 0
    assert chosen.test_hours == 2.0
    assert chosen.test_tells == "whether the model fits 22 GiB of GPU memory"
    assert (chosen.risk, chosen.untested_risk, chosen.test_needed) == (Risk.LOW, Risk.HIGH, False)


def test_the_price_of_the_test_is_paid_back_too() -> None:
    chosen = found("test-needs-opt-in").chosen_option
    assert chosen is not None
    assert chosen.payback_days == pytest.approx(
        30 * float((chosen.switch_usd + chosen.test_usd) / chosen.saving_usd_per_month), abs=0.01
    )


def test_a_risk_above_what_may_be_asked_leaves_the_test_alone() -> None:
    strict = found("test-needs-opt-in", policy={"risk_propose": 2})
    assert strict.gate is Gate.PROPOSE
    assert strict.chosen_option is not None
    assert strict.chosen_option.test_needed
    assert "without it" not in strict.gate_reason.sentence


def test_what_the_test_cannot_show_stays_in_the_risk() -> None:
    risks = {RiskResource.HOST_MEMORY: Risk.HIGH, RiskResource.LATENCY: Risk.VERY_HIGH}
    made = with_test(ShadowTestCandidate(option(risks=risks), 0.5, 9.1, untested_risk=Risk.VERY_HIGH), 3)
    assert made.risks == {RiskResource.HOST_MEMORY: Risk.HIGH, RiskResource.LATENCY: Risk.LOW}
    assert (made.risk, made.test_needed) == (Risk.HIGH, True)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"tests_per_month": 0}, "shadow tests are switched off"),
        ({"test_value": 1000.0}, "not worth its money"),
    ],
)
def test_a_test_that_may_not_or_need_not_run_is_not_offered(policy: dict[str, Any], said: str) -> None:
    silent = found("test-needs-opt-in", policy=policy)
    assert (silent.gate, silent.chosen_option) == (Gate.SILENT, None)
    assert said in silent.reason.sentence


def test_sparse_requests_leave_the_change_alone_with_its_risk() -> None:
    sparse = found("ask-sparse-without-a-test").chosen_option
    assert sparse is not None
    assert (sparse.test_usd, sparse.untested_risk, sparse.risk) == (Decimal(0), None, Risk.HIGH)
    assert "by a shadow test, whether the model fits 22 GiB of GPU memory" in sparse.not_checked


def test_sparse_requests_and_a_risk_above_what_may_be_asked_leave_silence() -> None:
    silent = found("ask-sparse-without-a-test", policy={"risk_propose": 2})
    assert silent.gate is Gate.SILENT


def test_a_sure_option_that_is_far_dearer_does_not_come_first() -> None:
    auto = found("ask-far-cheaper-in-auto")
    small, large = auto.options[0], next(o for o in auto.options if o.target.instance_type == "ml.g6.48xlarge")
    assert large.usd_per_month >= FAR_CHEAPER * small.usd_per_month
    assert small.test_usd > large.test_usd == 0


def test_a_safe_step_is_taken_before_what_is_asked_about_unless_it_is_eight_times_as_dear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The case's safe step costs 22 times the uncertain one: with a bound above that, it stands for a step below 8."""
    assert 8 == FAR_CHEAPER_THAN_SAFE > FAR_CHEAPER
    monkeypatch.setattr(questions, "FAR_CHEAPER_THAN_SAFE", 30)
    auto = found("ask-far-cheaper-in-auto")
    assert auto.gate is Gate.APPLY
    assert auto.options[0].target.instance_type == "ml.g6.48xlarge"
    assert auto.options[1].test_usd > 0


def test_a_safe_step_comes_first_and_the_test_stands_behind_it() -> None:
    auto = found("ask-safe-step-first")
    assert auto.gate is Gate.APPLY
    assert not auto.offers_test
    assert any(o.test_usd > 0 and o.untested_risk is not None for o in auto.options)


def test_with_the_leave_of_the_owner_the_test_is_the_gate_as_before() -> None:
    assert found("memory-prealloc-vllm").gate is Gate.TEST


def test_behind_an_offered_test_no_pool_and_no_closed_dimension_is_offered() -> None:
    kinds = [o.kind.value for o in found("gpus-four-mode-propose").options]
    assert "instance-pools" not in kinds


def test_no_smaller_fleet_is_asked_about_while_late_requests_are_above_their_budget() -> None:
    """The strictest reason wins: what would get smaller waits, with a test or without."""
    late = found("restore-users-wait")
    assert not late.offers_test


def test_fewer_gpus_of_the_same_card_are_sure_where_each_was_seen_and_a_test_where_they_were_not() -> None:
    seen = found("world-four-gpus-one-at-work")
    summed = found("gpus-four-mode-propose")
    assert seen.chosen_option is not None
    assert (seen.chosen_option.kind.value, seen.offers_test) == ("fewer-gpus", False)
    assert summed.offers_test


def test_a_type_that_is_likely_to_be_fast_enough_is_asked_about_with_its_test() -> None:
    """Automatic mode without leave for a test takes it untested; a person who is asked may have it tested."""
    asked = found("evidence-of-metrics-alone", endpoint={"mode": "propose", "p95_s": 2.2})
    option = asked.chosen_option
    assert option is not None
    assert (asked.gate, asked.offers_test, option.test_needed) == (Gate.PROPOSE, True, False)
    assert option.untested_risk is not None
    assert option.untested_risk > option.risk
    assert "how fast" in option.test_tells
    sure = found("evidence-of-metrics-alone", endpoint={"mode": "propose", "p95_s": 4.0})
    assert (sure.gate, sure.offers_test) == (Gate.PROPOSE, False)
    forbidden = found(
        "evidence-of-metrics-alone",
        endpoint={"mode": "propose", "p95_s": 2.2, "tags": {"rightsizer:shadow-ok": "false"}},
    )
    assert (forbidden.gate, forbidden.offers_test) == (Gate.PROPOSE, False)


def asked_of_unused_hours(
    usd: str,
    instances: float = 1.0,
    counts: tuple[int, ...] = (1,) * 24,
    tags: dict[str, str] | None = None,
    hours: int = 336,
    calls: tuple[float | None, ...] = (0.0, 0.0, 9.0),
    kind: EndpointKind = EndpointKind.REAL_TIME,
    runs: str = "ml.g5.48xlarge",
    owned_by: str = "",
    mode: Mode = Mode.AUTO,
    plan_usd_per_hour: str = "0",
    **kept: Any,
) -> Recommendation:
    """The question about an endpoint that nobody calls in two of three hours, at this price an hour of an instance."""
    endpoint = SimpleNamespace(kind=kind, tags=tags or {}, owned_by=owned_by, mode=mode, tags_unread=None)
    price = samples.price(runs, usd)
    context = SimpleNamespace(
        endpoint=endpoint,
        runs=SimpleNamespace(name=runs),
        price=price,
        instances=instances,
        reference_counts=counts,
        usd_per_month=monthly_cost(price, instances),
        inputs=SimpleNamespace(prices=kit.prices(commitment=Commitment(Decimal(plan_usd_per_hour), known=True))),
    )
    quiet = Reason(Code.ALREADY_RIGHT, "already right")
    found = samples.recommendation(
        options=(), finding=Finding.OPTIMIZED, reason=quiet, gate=Gate.SILENT, gate_reason=quiet
    )
    found = replace(found, hourly_requests=(calls * hours)[:hours], **kept)
    return questions.ask_about_unused_hours(found, cast("EvaluationContext", context))


def test_unused_hours_are_asked_about_from_two_thousand_dollars_and_a_week_of_hours() -> None:
    asked = asked_of_unused_hours("5")
    assert (asked.finding, asked.gate) == (Finding.OVER_PROVISIONED, Gate.PROPOSE)
    assert "67 % of its hours, which cost $2,433 a month" in asked.reason.sentence
    for silent in (
        asked_of_unused_hours("4"),
        asked_of_unused_hours("5", hours=167),
        asked_of_unused_hours("5", tags={"rightsizer:hours": "daily 00:00-24:00 UTC"}),
        asked_of_unused_hours("50", calls=(0.0, 9.0, 9.0)),
        asked_of_unused_hours("5", kind=EndpointKind.ASYNC),
    ):
        assert (silent.finding, silent.gate) == (Finding.OPTIMIZED, Gate.SILENT)


def test_unused_hours_that_a_savings_plan_bills_anyway_are_no_cost_of_theirs() -> None:
    asked = asked_of_unused_hours("50", 1.0, (1,) * 24, {}, plan_usd_per_hour="14")
    assert "cost $21,900 a month beyond what the Savings Plan bills anyway" in asked.reason.sentence
    assert asked_of_unused_hours("5", 1.0, (1,) * 24, {}, plan_usd_per_hour="3.5").finding is Finding.OPTIMIZED


def test_exactly_half_of_a_week_for_exactly_two_thousand_dollars_is_enough() -> None:
    exact: dict[str, Any] = {"calls": (0.0, 9.0), "hours": 168}
    assert asked_of_unused_hours("5.479452054794520548", **exact).finding is Finding.OVER_PROVISIONED
    assert asked_of_unused_hours("5.47", **exact).finding is Finding.OPTIMIZED
    gaps: dict[str, Any] = {"calls": (0.0, None, 9.0, 0.0), "hours": 336}
    assert "67 % of its hours" in asked_of_unused_hours("9", **gaps).reason.sentence, "an unknown hour is no hour"
    assert asked_of_unused_hours("9", calls=(None,)).finding is Finding.OPTIMIZED


def test_unused_hours_are_asked_about_where_nothing_else_is_found() -> None:
    for found in (
        asked_of_unused_hours("5", gate=Gate.PROPOSE),
        asked_of_unused_hours("5", options=(option(),)),
        asked_of_unused_hours("5", reason=Reason(Code.TOO_FEW_REQUESTS, "too few requests")),
    ):
        assert found.reason.code is not Code.CHEAPER_OPTION
    risky = Reason(Code.RISK_TOO_HIGH, "too slow")
    assert asked_of_unused_hours("5", reason=risky).finding is Finding.OVER_PROVISIONED


def test_the_owner_is_told_which_ways_there_are_and_which_tag_ends_the_question() -> None:
    queue = "let a queue keep the calls (asynchronous inference)"
    asked = asked_of_unused_hours("5")
    assert asked.reason == Reason(
        Code.CHEAPER_OPTION,
        "no request came in 67 % of its hours, which cost $2,433 a month; no cheaper type serves the others",
    )
    assert asked.gate_reason == Reason(
        Code.NEEDS_APPROVAL,
        "nothing changes by itself: set hours in which it runs (tag rightsizer:hours; 'daily 00:00-24:00 UTC' says "
        f"always: no more questions), or {queue}",
    )
    owned = asked_of_unused_hours("5", owned_by="CloudFormation", runs="ml.p5.48xlarge").gate_reason.sentence
    assert owned == (
        f"nothing changes by itself: remove it in those hours by CloudFormation, which owns it, or {queue} "
        "(tag rightsizer:hours: 'daily 00:00-24:00 UTC' says always: no more questions)"
    )
    scarce = asked_of_unused_hours("5", runs="ml.p5.48xlarge").gate_reason.sentence
    assert scarce.endswith(
        f"or {queue}; ml.p5.48xlarge may not be there again when it starts, so name what runs then "
        "(rightsizer:fallback-config)"
    )


def test_what_unused_hours_cost_is_told_in_the_report_where_its_owner_wants_no_question() -> None:
    told = asked_of_unused_hours("5", mode=Mode.REPORT)
    assert (told.finding, told.gate, told.options) == (Finding.OVER_PROVISIONED, Gate.SILENT, ())


def test_what_autoscaling_adds_in_busy_hours_is_no_cost_of_unused_ones() -> None:
    assert asked_of_unused_hours("4", 3.0, (1,) * 16 + (7,) * 8).finding is Finding.OPTIMIZED
    assert "cost $4,867 a month" in asked_of_unused_hours("5", 2.0, (3,) * 24).reason.sentence, "what runs now"
