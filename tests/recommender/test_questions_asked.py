"""What is asked about an uncertain option, in which words and with which risk, and when a sure one comes before it."""

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode
from rightsizer.domain.history import History
from rightsizer.domain.option import Option, Risk, RiskResource, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.gate import GateCase
from rightsizer.recommender.options import Options
from rightsizer.recommender.questions import ask_about_test, with_test
from rightsizer.recommender.shadow_test import ShadowTestCandidate
from tests import samples
from tests.recommender import kit
from tests.recommender.plain import demand, option

PLAIN = replace(kit.endpoint(mode=Mode.PROPOSE), tags={})
QUEUE = replace(PLAIN, kind=EndpointKind.ASYNC, kinds=(EndpointKind.ASYNC,))
ENOUGH, SPARSE = 1.0, 0.4
NEVER = "no shadow test is possible: it is asynchronous; use a guarded canary"


def likely(chance: float = 0.6, untested: Risk = Risk.HIGH, **more: Any) -> ShadowTestCandidate:
    """An option that saves USD 600 of 1,600 a month, were it fast enough; its test costs USD 9.123."""
    risks = {RiskResource.GPU_MEMORY: Risk.LOW}
    made = option(risks=risks, risk=Risk.LOW, **more)
    return ShadowTestCandidate(made, chance, 9.123, untested_risk=untested, tells="how fast it is")


def dear(usd: str, saving: str, risk: Risk = Risk.LOW) -> Option:
    """A sure option of another type."""
    target = Target("ml.g6.xlarge", 1)
    return option(target=target, usd_per_month=Decimal(usd), saving_usd_per_month=Decimal(saving), risk=risk)


def asked(
    candidate: ShadowTestCandidate,
    *sure: Option,
    of: Endpoint = PLAIN,
    requests: float = ENOUGH,
    now_usd: int = 1600,
    **policy: Any,
) -> Recommendation | None:
    context = SimpleNamespace(
        policy=replace(Policy(), **policy),
        endpoint=of,
        inputs=SimpleNamespace(history=History(), now=kit.NOW),
        share_of_wanted_requests=requests,
        usd_per_month=Decimal(now_usd),
    )

    def case(_: EvaluationContext, one: Option) -> GateCase:
        share = float(one.saving_usd_per_month / now_usd)
        return GateCase(of, one, demand(), "ml.g6e.xlarge", share)

    base = samples.recommendation(options=(), finding=Finding.OPTIMIZED)
    return ask_about_test(base, cast("EvaluationContext", context), Options(sure, (candidate,), ()), sure, case)


def test_the_question_names_the_saving_the_test_and_the_risk_without_it() -> None:
    found = asked(likely())
    assert found is not None
    assert (found.finding, found.gate, found.options[0].test_usd) == (
        Finding.OVER_PROVISIONED,
        Gate.PROPOSE,
        Decimal("9.12"),
    )
    assert found.reason.code is Code.CHEAPER_OPTION
    assert found.reason.sentence == ("ml.g5.xlarge would save $600.00 a month if it is fast enough and the model fits")
    assert found.gate_reason.code is Code.TEST_WORTH_IT
    assert found.gate_reason.sentence.endswith("; without it the performance risk is 3 of 4")


def test_a_change_that_may_not_be_made_untested_names_no_risk_without_its_test() -> None:
    found = asked(likely(untested=Risk.VERY_HIGH))
    assert found is not None
    assert found.options[0].test_needed
    assert found.gate_reason.sentence.endswith("(60 % likely to be fast and large enough)")


def test_an_endpoint_that_a_stack_owns_is_asked_about_for_that_reason() -> None:
    found = asked(likely(), of=replace(PLAIN, owned_by="CloudFormation"))
    assert found is not None
    assert found.gate_reason.code is Code.OWNED_BY_STACK


def test_nobody_is_asked_in_mode_report_and_the_reason_is_that() -> None:
    found = asked(likely(), of=replace(PLAIN, mode=Mode.REPORT))
    assert found is not None
    assert (found.gate, found.finding) == (Gate.SILENT, Finding.OVER_PROVISIONED)
    assert "report" in found.gate_reason.sentence


def test_a_queue_is_asked_about_untested_from_more_than_an_even_chance_on() -> None:
    found = asked(likely(0.51), of=QUEUE)
    assert found is not None
    assert found.gate_reason.code is Code.OTHER_KIND, "it is a queue, which is said of each"
    assert found.options[0].test_usd == 0
    assert asked(likely(0.5), of=QUEUE) is None
    assert asked(likely(0.5), of=QUEUE, requests=SPARSE) is not None, "a canary would meet few of its callers"


def test_sparse_requests_make_an_untested_question_whatever_its_chance() -> None:
    found = asked(likely(0.3), requests=SPARSE)
    assert found is not None
    assert found.gate_reason.code is Code.RISK_TOO_HIGH
    assert found.gate_reason.sentence == (
        "needs your approval: 30 % likely to be fast and large enough, and its performance risk is 3 of 4; requests are"
        " too sparse for a shadow test to tell more"
    )
    assert found.options[0].risks == {RiskResource.GPU_MEMORY: Risk.LOW, RiskResource.LATENCY: Risk.HIGH}
    assert found.options[0].not_checked[-1] == "by a shadow test, how fast it is"
    assert asked(likely(0.3, Risk.VERY_HIGH), requests=SPARSE) is None, "too likely to harm untested"
    rated = asked(likely(0.3, Risk.LOW), requests=SPARSE)
    assert rated is not None
    assert rated.options[0].risks == {RiskResource.GPU_MEMORY: Risk.LOW}, "no more than is rated already"


def test_an_untested_question_of_a_kind_without_tests_says_why_there_is_none() -> None:
    marketplace = replace(PLAIN, kinds=(EndpointKind.REAL_TIME, EndpointKind.MARKETPLACE))
    found = asked(likely(0.6), of=marketplace)
    assert found is not None
    assert found.gate_reason.sentence.endswith(
        "3 of 4; no shadow test is possible: its model comes from AWS Marketplace; use a guarded canary"
    )


def test_an_uncertain_option_has_to_save_more_than_the_sure_one() -> None:
    assert asked(likely(), dear("1010", "590")) is None, "ten dollars more a month are worth no test"
    small = asked(likely(), dear("1500", "100"))
    assert small is not None
    assert [o.target.instance_type for o in small.options] == ["ml.g5.xlarge", "ml.g6.xlarge"]
    assert asked(likely(0.6), dear("1250", "230")) is None, "360 on average, and 368 have to be for it to go first"
    assert asked(likely(0.6), dear("1250", "220")) is not None
    assert asked(likely(0.3), dear("1450", "150")) is not None, "no change is made for a tenth less"


def test_a_sure_option_of_four_times_the_price_does_not_go_before_the_question() -> None:
    cheap = likely(0.3, usd_per_month=Decimal(100), saving_usd_per_month=Decimal(1500))
    assert asked(cheap, dear("400", "1200")) is not None
    assert asked(cheap, dear("399", "1201")) is None


def test_a_safe_step_goes_first_unless_it_costs_eight_times_as_much() -> None:
    auto = replace(PLAIN, mode=Mode.AUTO, mode_declared=True)
    cheap = likely(0.6, usd_per_month=Decimal(100), saving_usd_per_month=Decimal(1500))
    assert asked(cheap, dear("800", "800"), of=auto) is not None
    assert asked(cheap, dear("799", "801"), of=auto) is None


def test_a_person_is_asked_where_the_sure_option_is_too_risky_to_ask_about() -> None:
    assert asked(likely(0.6), dear("1250", "350", Risk.VERY_HIGH)) is not None
    silent = replace(PLAIN, mode=Mode.REPORT)
    assert asked(likely(0.6), dear("1250", "350", Risk.VERY_HIGH), of=silent) is None, "nobody would be asked of either"


def test_a_test_leaves_the_risk_of_late_requests_that_a_person_accepts() -> None:
    risks = {RiskResource.LATENCY: Risk.VERY_HIGH, RiskResource.CAPACITY: Risk.HIGH}
    made = with_test(ShadowTestCandidate(option(risks=risks, late_share=0.02), 0.5, 9.127), 3)
    assert made.risks == {RiskResource.LATENCY: Risk.VERY_HIGH, RiskResource.CAPACITY: Risk.LOW}
    assert made.test_usd == Decimal("9.13")
