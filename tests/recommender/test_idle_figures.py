"""Money, words and codes of what is recommended for an endpoint that nobody calls, or hardly anybody."""

from dataclasses import replace
from decimal import Decimal

import pytest

from rightsizer.domain.demand import Demand
from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode, ScalableTarget
from rightsizer.domain.history import History
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.idle import delete_refusal, recommend_for_idle
from rightsizer.recommender.recommend import empty_recommendation
from tests.recommender import kit
from tests.recommender.plain import demand
from tests.recommender.test_idle import COLD, SILENT, judged, queue_with, ruled_out

QUIET = Reason(Code.IDLE, "nobody called it")
NOBODY = demand(requests=0.0, silent_days=14, gpu_mean=0.0, gpu_peak=0.0, backlog=0.0, oldest_request_s=0.0)
QUEUE = kit.endpoint("ml.g5.xlarge", 2, kind=EndpointKind.ASYNC)
POLICY = Policy()


def idle(of: Endpoint, seen: Demand = NOBODY, usd: str = "2055.68") -> Recommendation:
    """Two instances of ml.g5.xlarge at USD 1.408 an hour that nobody called for two weeks."""
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), POLICY, kit.NOW)
    base = replace(empty_recommendation(of, inputs, QUIET), usd_per_month=Decimal(usd), not_checked=("that",))
    price = kit.prices().find("ml.g5.xlarge")
    assert price is not None
    return recommend_for_idle(base, QUIET, seen, price, of, inputs)


def test_an_idle_queue_sleeps_by_itself_for_all_of_its_money() -> None:
    found = idle(QUEUE)
    (option,) = found.options
    assert (found.finding, found.reason, found.gate) == (Finding.IDLE, QUIET, Gate.APPLY)
    assert (option.kind, option.in_place, option.target.idle_minutes) == (OptionKind.SCALE_TO_ZERO, True, 15)
    assert (option.usd_per_month, option.saving_usd_per_month) == (Decimal(0), Decimal("2055.68"))
    assert (option.switch_usd, option.payback_days) == (Decimal(0), 0.0)
    assert option.facts["asleep"] == "100 %"
    assert option.price.instance_type == "ml.g5.xlarge"
    (out,) = found.excluded
    assert (out.instance_type, out.reason.code, out.dimension) == (
        "ml.g5.xlarge",
        Code.NOT_CHEAPER,
        OptionKind.DELETE,
    )


def test_a_real_time_endpoint_is_deleted_by_a_person_and_what_its_gpu_does_is_a_question() -> None:
    plain = kit.endpoint("ml.g5.xlarge", 2)
    found = idle(plain, replace(NOBODY, gpu_peak=0.4, gpu_mean=0.02))
    (option,) = found.options
    assert (option.kind, option.saving_usd_per_month) == (OptionKind.DELETE, Decimal("2055.68"))
    assert option.price.instance_type == "ml.g5.xlarge"
    assert found.gate is Gate.PROPOSE
    assert found.not_checked == ("that", "what its GPU works at without a request (up to 40.0 %)")
    assert found.excluded[0].instance_type == "ml.g5.xlarge"
    assert idle(plain).not_checked == ("that",)


def test_only_a_queue_can_be_asleep_already() -> None:
    scaled = replace(kit.endpoint("ml.g5.xlarge", 2), scaling=(ScalableTarget("r", "d", 0, 4),))
    assert "no more than deletion does" in ruled_out(idle(scaled))[OptionKind.SCALE_TO_ZERO]


def test_what_costs_nothing_or_saves_a_small_share_is_left_alone() -> None:
    assert idle(QUEUE, usd="0").gate is Gate.SILENT
    assert idle(QUEUE, usd="30000").gate is Gate.SILENT, "seven in a hundred of its cost"


@pytest.mark.parametrize(
    ("of", "seen", "code"),
    [
        (kit.endpoint(), replace(NOBODY, requests=1.0), Code.NOT_APPLICABLE),
        (kit.endpoint(kind=EndpointKind.ASYNC), replace(NOBODY, backlog=1.0), Code.NOT_APPLICABLE),
        (kit.endpoint(), replace(NOBODY, gpu_peak=0.4), Code.NOT_APPLICABLE),
        (kit.endpoint(), replace(NOBODY, silent_days=3), Code.TOO_FEW_DAYS),
    ],
    ids=["used", "a backlog", "a GPU at work", "too early"],
)
def test_why_it_is_not_deleted_has_a_code(of: Endpoint, seen: Demand, code: Code) -> None:
    assert delete_refusal(of, seen, POLICY).code is code


def test_the_silence_of_fourteen_days_after_a_request_makes_idle_what_a_look_back_without_one_would() -> None:
    used = replace(NOBODY, requests=5.0, days=30.0)
    assert delete_refusal(kit.endpoint(), used, POLICY).sentence.endswith(
        "a look-back of 14 days without one makes it idle"
    )


def test_a_young_endpoint_without_calls_whose_gpu_works_says_that_nobody_knows_at_what() -> None:
    found = judged({**SILENT, ("GPUUtilization", "Average"): 30.0}, {})
    assert found.finding is Finding.NOT_ENOUGH_DATA
    assert found.reason == found.gate_reason
    assert found.reason.sentence == (
        "nobody called it in 3.0 days, and it is not known what its GPU works at without a request (up to 30.0 %)"
    )
    assert {out.instance_type for out in found.excluded} == {"ml.g6e.xlarge"}


def test_a_sleep_of_which_callers_are_told_pays_its_new_endpoint_back() -> None:
    found = judged(SILENT, COLD, mode=Mode.PROPOSE)
    (option,) = found.options
    assert found.reason.sentence == (
        "no request in 3.0 days, and rightsizer:cold-start-ok says that callers can wait for a start"
    )
    assert option.price.instance_type == "ml.g6e.xlarge"
    assert option.switch_usd == Decimal("1.16"), "both run for half an hour"
    assert option.payback_days == pytest.approx(30 * 1.16 / float(option.saving_usd_per_month), abs=0.01)
    assert found.usd_per_month == option.usd_per_month + option.saving_usd_per_month
    assert option.mean_instances == pytest.approx(float(option.usd_per_month / found.usd_per_month), abs=0.0001)


def test_a_queue_that_sleeps_says_how_long_it_was_quiet_and_what_keeps_its_calls() -> None:
    found = queue_with(range(6), range(6), range(6))
    (option,) = found.options
    assert found.reason.sentence == "18 requests in 3.0 days, and its queue keeps what comes"
    assert option.switch_usd == 0, "nothing is started beside it"
    assert "wait" in option.notes[-1]
