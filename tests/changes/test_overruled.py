"""The newest judgement still has to allow what was approved before it."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.changes.overruled import (
    COVERED,
    ApprovedAs,
    closing_reasons,
    covered_fleet,
    covered_sentence,
    is_against,
    overruling_reason,
)
from rightsizer.domain.option import Option, OptionKind, Risk, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.schedule import DayCounts
from tests import samples
from tests.changes.memory import known_types

DECIDED = samples.recommendation()
LATER = samples.NOW + timedelta(days=3)
SMALL = "ml.g5.xlarge"


def approved(count: int = 1, kind: OptionKind = OptionKind.INSTANCE_TYPE, **target: Any) -> Option:
    return samples.option(kind=kind, target=Target(SMALL, count, **target))


def newest(*options: Option, **changes: Any) -> Recommendation:
    fields: dict[str, Any] = {"evaluated_at": LATER, "options": options, "excluded": ()} | changes
    return replace(DECIDED, **fields)


def test_the_same_fleet_and_a_smaller_one_still_allow_the_target() -> None:
    assert overruling_reason(approved(2), DECIDED, newest(approved(2))) is None
    assert overruling_reason(approved(2), DECIDED, newest(approved(1))) is None


def test_a_judgement_that_needs_more_of_the_type_forbids_it_with_both_numbers() -> None:
    found = overruling_reason(approved(1), DECIDED, newest(approved(2)))
    assert found is not None
    assert found.code is Code.NEWER_JUDGEMENT
    assert "needs 2 instance(s) of ml.g5.xlarge, and 1 instance(s) was approved" in found.sentence


def scaled_at(value: float | None) -> Option:
    return approved(2, minimum=1, maximum=4, target_value=value)


@pytest.mark.parametrize("needed", [20.0, 30.0, 19.0, None])
def test_autoscaling_that_starts_instances_as_soon_as_the_newest_one_is_allowed(needed: float | None) -> None:
    assert overruling_reason(scaled_at(20.0), DECIDED, newest(scaled_at(needed))) is None


def test_autoscaling_that_would_start_instances_later_than_needed_is_forbidden_with_both_values() -> None:
    found = overruling_reason(scaled_at(20.0), DECIDED, newest(scaled_at(18.0)))
    assert found is not None
    assert found.sentence.endswith(
        "needs 1 to 4 instances of ml.g5.xlarge, scaled at a target value of 18, and 1 to 4 instances, scaled at a"
        " target value of 20 was approved"
    )


def test_an_endpoint_that_is_under_provisioned_now_is_not_made_smaller() -> None:
    why = Reason(Code.UNDER_PROVISIONED, "requests wait for 4 s")
    found = overruling_reason(approved(), DECIDED, newest(approved(), finding=Finding.UNDER_PROVISIONED, reason=why))
    assert found is not None
    assert "requests wait for 4 s" in found.sentence


def test_a_type_that_is_ruled_out_now_is_not_deployed() -> None:
    out = replace(DECIDED.excluded[0], instance_type=SMALL)
    found = overruling_reason(approved(), DECIDED, newest(excluded=(out,)))
    assert found is not None
    assert "rules ml.g5.xlarge out: p95 would be 0.9 s" in found.sentence


PEAKS = (2,) * 8 + (3,) * 10 + (2,) * 6
KEEPS_THE_TYPE = (
    approved(3, OptionKind.SCHEDULE, hourly_counts=PEAKS),
    approved(2, OptionKind.ROUTING, routing="LEAST_OUTSTANDING_REQUESTS"),
    approved(2, OptionKind.AUTOSCALING, minimum=2, maximum=6),
)
SAME_TYPE = replace(DECIDED.excluded[0], instance_type=SMALL, reason=Reason(Code.NOT_CHEAPER, "4 would cost $4,111"))
kept = pytest.mark.parametrize("option", KEEPS_THE_TYPE, ids=lambda option: option.kind.value)


def unmoved(*options: Option, **changes: Any) -> Recommendation:
    """A later recommendation of a fleet of SMALL, which is ruled out as no cheaper than itself."""
    return newest(*options, instance_type=SMALL, instance_count=4, **({"excluded": (SAME_TYPE,)} | changes))


@kept
def test_what_keeps_the_type_goes_on_though_that_type_is_no_cheaper_than_itself(option: Option) -> None:
    assert overruling_reason(option, DECIDED, unmoved(option)) is None


@kept
def test_what_keeps_the_type_is_withdrawn_where_the_newest_judgement_no_longer_lists_it(option: Option) -> None:
    found = overruling_reason(option, DECIDED, unmoved())
    assert found is not None
    assert f"no longer lists {option.target.instance_count} x ml.g5.xlarge ({option.kind.value})" in found.sentence


@kept
def test_what_keeps_the_type_is_withdrawn_in_the_words_that_rule_out_its_own_kind(option: Option) -> None:
    own = replace(SAME_TYPE, dimension=option.kind, reason=Reason(Code.AUTOSCALED, "it would fight with autoscaling"))
    found = overruling_reason(option, DECIDED, unmoved(excluded=(SAME_TYPE, own)))
    assert found is not None
    assert f"rules {option.kind.value} (ml.g5.xlarge) out: it would fight with autoscaling" in found.sentence


@pytest.mark.parametrize(
    ("option", "needed"),
    [
        (KEEPS_THE_TYPE[0], {"hourly_counts": (3,) * 9 + PEAKS[9:]}),
        (KEEPS_THE_TYPE[1], {"instance_count": 3}),
        (KEEPS_THE_TYPE[2], {"minimum": 3}),
    ],
    ids=["schedule", "routing", "autoscaling"],
)
def test_what_keeps_the_type_is_withdrawn_where_more_is_needed_now(option: Option, needed: dict[str, Any]) -> None:
    found = overruling_reason(option, DECIDED, unmoved(replace(option, target=replace(option.target, **needed))))
    assert found is not None
    assert "was approved" in found.sentence


@kept
def test_what_keeps_the_type_is_withdrawn_where_it_became_riskier_or_needs_a_test(option: Option) -> None:
    riskier, tested = replace(option, risk=Risk.HIGH), replace(option, test_usd=Decimal(20))
    for judged in (held(Gate.SILENT, Code.COOLDOWN, riskier), unmoved(tested)):
        assert overruling_reason(option, DECIDED, judged) is not None


def test_a_target_that_the_newest_judgement_no_longer_lists_is_not_deployed() -> None:
    found = overruling_reason(approved(), DECIDED, newest(finding=Finding.OPTIMIZED))
    assert found is not None
    assert "no longer lists 1 x ml.g5.xlarge" in found.sentence


def test_counts_by_the_hour_are_compared_hour_by_hour() -> None:
    peaks = (1,) * 8 + (3,) * 10 + (1,) * 6
    schedule = approved(3, OptionKind.SCHEDULE, hourly_counts=peaks)
    assert overruling_reason(approved(3), DECIDED, newest(schedule)) is None
    assert overruling_reason(approved(2), DECIDED, newest(schedule)) is not None


def test_counts_of_the_week_are_compared_hour_by_hour_of_the_week() -> None:
    weekend, busier = ((DayCounts((0, 1, 2, 3, 4), (3,) * 24), DayCounts((5, 6), (n,) * 24)) for n in (1, 2))
    quiet, more = (approved(3, OptionKind.SCHEDULE, hourly_counts=(3,) * 24, day_counts=c) for c in (weekend, busier))
    assert overruling_reason(more, DECIDED, newest(quiet)) is None
    refused = overruling_reason(quiet, DECIDED, newest(more))
    assert refused is not None
    assert "1 to 3 instances" in refused.sentence


def test_bounds_of_autoscaling_that_are_too_narrow_now_are_not_registered() -> None:
    narrow, wide = (approved(1, OptionKind.AUTOSCALING, minimum=1, maximum=most) for most in (2, 4))
    assert overruling_reason(narrow, DECIDED, newest(wide)) is not None
    assert overruling_reason(wide, DECIDED, newest(narrow)) is None


def test_only_an_endpoint_that_is_still_idle_is_marked_for_deletion() -> None:
    delete = approved(kind=OptionKind.DELETE)
    assert overruling_reason(delete, DECIDED, newest(finding=Finding.IDLE)) is None
    assert overruling_reason(delete, DECIDED, newest(finding=Finding.OPTIMIZED)) is not None


def test_an_idle_endpoint_allows_every_smaller_fleet() -> None:
    assert overruling_reason(approved(), DECIDED, newest(finding=Finding.IDLE)) is None


WORST = newest(finding=Finding.UNDER_PROVISIONED)


@pytest.mark.parametrize(
    ("option", "judged"),
    [
        (replace(approved(), restores=True), WORST),
        (approved(kind=OptionKind.SCALE_IN), WORST),
        (approved(kind=OptionKind.PLACEMENT), WORST),
        (approved(), None),
        (approved(), replace(WORST, evaluated_at=DECIDED.evaluated_at)),
    ],
    ids=["restores", "scale-in", "placement", "no judgement", "the same judgement"],
)
def test_what_no_newer_judgement_speaks_about_is_allowed(option: Option, judged: Recommendation | None) -> None:
    assert overruling_reason(option, DECIDED, judged) is None


@given(needed=st.lists(st.integers(0, 9), min_size=24, max_size=24), count=st.integers(0, 9))
def test_a_fleet_is_allowed_exactly_where_no_hour_needs_more(needed: list[int], count: int) -> None:
    schedule = approved(max(needed), OptionKind.SCHEDULE, hourly_counts=tuple(needed))
    found = overruling_reason(approved(count), DECIDED, newest(schedule))
    assert (found is None) == (max(needed) <= count)


def held(gate: Gate, code: Code, *options: Option) -> Recommendation:
    return newest(*(options or (approved(),)), gate=gate, gate_reason=Reason(code, "because of this"))


def test_a_judgement_that_saw_too_little_lets_the_change_wait() -> None:
    why = Reason(Code.TOO_MANY_GAPS, "40 % of the periods have datapoints")
    for option in (approved(), approved(kind=OptionKind.DELETE)):
        found = overruling_reason(option, DECIDED, newest(finding=Finding.NOT_ENOUGH_DATA, reason=why))
        assert found is not None
        assert found.code is Code.JUDGEMENT_UNKNOWN
        assert "40 % of the periods have datapoints" in found.sentence


@pytest.mark.parametrize("code", [Code.PERMISSION_MISSING, Code.THROTTLED, Code.READ_FAILED])
def test_a_judgement_on_tags_that_could_not_be_read_lets_the_change_wait(code: Code) -> None:
    found = overruling_reason(approved(), DECIDED, held(Gate.SILENT, code))
    assert found is not None
    assert found.code is Code.JUDGEMENT_UNKNOWN


@pytest.mark.parametrize(
    "code",
    [
        Code.RISK_TOO_HIGH,
        Code.LATE_BUDGET_SPENT,
        Code.TOO_LITTLE_CONFIDENCE,
        Code.BLACKLISTED,
        Code.OWNED_BY_STACK,
        Code.UNKNOWN_FIELD,
        Code.OTHER_KIND,
    ],
)
def test_an_option_that_is_listed_and_held_back_for_harm_is_not_carried_out(code: Code) -> None:
    found = overruling_reason(approved(), DECIDED, held(Gate.SILENT, code))
    assert found is not None
    assert found.code is Code.NEWER_JUDGEMENT
    assert found.sentence.endswith("holds it back: because of this")


@pytest.mark.parametrize("code", [Code.COOLDOWN, Code.SAVING_TOO_SMALL, Code.MODE_REPORT, Code.MODE_OFF])
def test_what_holds_a_new_question_back_and_harms_nobody_leaves_the_approval(code: Code) -> None:
    assert overruling_reason(approved(), DECIDED, held(Gate.SILENT, code)) is None


@pytest.mark.parametrize(
    "code", [Code.RISK_TOO_HIGH, Code.TOO_LITTLE_CONFIDENCE, Code.NO_OBJECTIVE, Code.NEEDS_APPROVAL, Code.AUTOSCALED]
)
def test_what_a_person_is_asked_about_stands_only_against_automatic_mode(code: Code) -> None:
    judged = held(Gate.PROPOSE, code)
    assert overruling_reason(approved(), DECIDED, judged) is None
    assert overruling_reason(approved(), DECIDED, judged, by_policy=True) is not None


@pytest.mark.parametrize("code", [Code.OWNED_BY_STACK, Code.UNKNOWN_FIELD, Code.CONFIGURATION_REPLACED])
def test_what_no_approval_answers_stands_against_a_person_too(code: Code) -> None:
    assert overruling_reason(approved(), DECIDED, held(Gate.PROPOSE, code)) is not None


def test_a_reason_that_nobody_has_thought_about_stands_against_an_approval() -> None:
    milder = {
        *(Code.SAFE_TO_APPLY, Code.ALREADY_RIGHT, Code.IDLE, Code.SAVING_TOO_SMALL, Code.NOT_CHEAPER, Code.COMMITTED),
        *(Code.DEARER_THAN_OFFERED, Code.PAYBACK_TOO_LONG, Code.NO_PRICE, Code.COOLDOWN, Code.ALREADY_SEEN),
        *(Code.EVALUATED_RECENTLY, Code.MODE_OFF, Code.MODE_REPORT, Code.NOT_OPTED_IN),
    }
    asked = {
        *(Code.NEEDS_APPROVAL, Code.NOT_IN_PLACE, Code.OTHER_KIND, Code.AUTOSCALED),
        *(Code.NO_OBJECTIVE, Code.RISK_TOO_HIGH, Code.TOO_LITTLE_CONFIDENCE, Code.TOO_MANY_ERRORS),
        Code.TEST_WORTH_IT,
    }
    assert {code for code in Code if not is_against(code, answered=False)} == milder
    assert {code for code in Code if not is_against(code, answered=True)} == milder | asked


def test_a_shadow_test_that_is_asked_for_now_comes_before_the_change() -> None:
    test = replace(approved(), test_usd=Decimal(20))
    found = overruling_reason(approved(), DECIDED, held(Gate.TEST, Code.TEST_WORTH_IT, test))
    assert found is not None
    assert "asks for a shadow test first" in found.sentence


def test_a_shadow_test_that_was_approved_is_still_allowed_where_it_is_asked_for_again() -> None:
    test = replace(approved(), test_usd=Decimal(20))
    assert overruling_reason(test, replace(DECIDED, gate=Gate.TEST), held(Gate.TEST, Code.TEST_WORTH_IT, test)) is None


def test_an_option_that_is_listed_behind_a_test_of_its_own_is_not_deployed() -> None:
    other = samples.option(target=Target("ml.g6.xlarge", 1))
    test_candidates = replace(approved(), test_usd=Decimal(20))
    found = overruling_reason(approved(), DECIDED, held(Gate.PROPOSE, Code.NOT_OPTED_IN, other, test_candidates))
    assert found is not None
    assert "asks for a shadow test of ml.g5.xlarge first" in found.sentence


def test_an_option_that_became_riskier_than_what_the_gate_passes_is_not_deployed() -> None:
    other, riskier = samples.option(target=Target("ml.g6.xlarge", 1)), replace(approved(), risk=Risk.HIGH)
    for judged in (held(Gate.PROPOSE, Code.NOT_OPTED_IN, other, riskier), held(Gate.SILENT, Code.COOLDOWN, riskier)):
        found = overruling_reason(approved(), DECIDED, judged)
        assert found is not None
        assert "performance risk 3, above 1" in found.sentence
    assert overruling_reason(approved(), DECIDED, held(Gate.PROPOSE, Code.NOT_OPTED_IN, riskier)) is None


def test_a_gate_of_apply_allows_whatever_its_reason_says() -> None:
    assert overruling_reason(approved(), DECIDED, held(Gate.APPLY, Code.UNDER_PROVISIONED), by_policy=True) is None


def test_the_risk_of_another_type_that_a_person_is_asked_about_lets_nothing_riskier_pass() -> None:
    other = samples.option(target=Target("ml.g6.xlarge", 1), risk=Risk.HIGH)
    riskier = replace(approved(), risk=Risk.HIGH)
    found = overruling_reason(approved(), DECIDED, held(Gate.PROPOSE, Code.RISK_TOO_HIGH, other, riskier))
    assert found is not None
    assert "performance risk 3, above 1" in found.sentence


def test_an_unknown_recommendation_lets_a_change_wait_and_any_other_reason_ends_it() -> None:
    newer = Reason(Code.NEWER_JUDGEMENT, "it needs more")
    assert closing_reasons(newer) == (newer,)
    assert closing_reasons(Reason(Code.JUDGEMENT_UNKNOWN, "nobody knows")) == closing_reasons(None) == ()


def saving(share: str, count: int = 2, **more: Any) -> Option:
    made = approved(count)
    return replace(made, saving_usd_per_month=Decimal(share) * made.saving_usd_per_month, **more)


def covered(option: Option, found: Recommendation, approved_as: ApprovedAs = ApprovedAs.CHANGE) -> Option:
    return covered_fleet(option, replace(DECIDED, options=(option,)), found, known_types(), approved_as=approved_as)


@pytest.mark.parametrize("share", ["0.5", "0.9", "1.2"])
def test_an_approval_covers_a_larger_fleet_of_its_type_that_keeps_half_of_the_saving(share: str) -> None:
    assert covered(approved(1), newest(saving(share))) == saving(share)
    assert overruling_reason(saving(share), DECIDED, newest(saving(share))) is None


def test_the_covered_fleet_is_the_one_that_saves_most() -> None:
    assert covered(approved(1), newest(saving("0.8", 3), saving("0.9"))) == saving("0.9")


@pytest.mark.parametrize(
    "found",
    [
        newest(saving("0.49")),
        newest(saving("0.9", risk=Risk.HIGH)),
        newest(saving("0.9", test_usd=Decimal(20))),
        newest(saving("0.9", target=Target("ml.g6.xlarge", 2))),
        newest(saving("0.9"), finding=Finding.UNDER_PROVISIONED),
        newest(saving("0.9", kind=OptionKind.SCHEDULE, target=Target(SMALL, 2, hourly_counts=(2,) * 23 + (1,)))),
        newest(saving("0.9"), evaluated_at=DECIDED.evaluated_at),
        newest(approved(1), saving("0.9")),
    ],
    ids=["saves less", "riskier", "needs a test", "other type", "short", "other means", "not newer", "needs no more"],
)
def test_what_the_approval_does_not_cover_leaves_it_as_it_was(found: Recommendation) -> None:
    assert covered(approved(1), found) == approved(1)


def test_growth_and_what_brings_room_back_begin_as_they_were_approved() -> None:
    for option in (replace(approved(1), growth_usd=Decimal(9)), replace(approved(1), restores=True)):
        assert covered(option, newest(saving("0.9"))) == option


def sized(name: str, usd: str, share: str = "0.9", **more: Any) -> Option:
    made = saving(share, target=Target(name, 1), **more)
    return replace(made, price=replace(made.price, usd_per_hour=Decimal(usd)))


def test_an_approval_covers_a_larger_host_with_the_same_gpu_and_no_other_type() -> None:
    asked, larger = sized("ml.g5.xlarge", "1", "1"), sized("ml.g5.4xlarge", "3")
    assert covered(asked, newest(larger)) == covered(asked, newest(larger), ApprovedAs.CHANGE_AFTER_TEST) == larger
    assert covered(asked, newest(larger), ApprovedAs.TEST) == asked, "what a test costs was said of that size"
    assert overruling_reason(larger, DECIDED, newest(larger)) is None
    said = covered_sentence(larger, asked, newest(larger))
    assert "1 instance(s) of ml.g5.4xlarge in place of 1 instance(s) of ml.g5.xlarge" in said
    others = [sized("ml.g6.4xlarge", "3"), sized("ml.g5.12xlarge", "3"), sized("ml.g5.4xlarge", "3", "0.49")]
    others += [replace(larger, test_usd=Decimal(9)), replace(larger, risk=Risk.HIGH)]
    assert [covered(asked, newest(other)) for other in others] == [asked] * 5, "a g5.12xlarge has four of these GPUs"


def test_half_is_that_of_what_was_agreed_to_and_not_of_a_fleet_since() -> None:
    since = saving("0.6")
    decided = replace(DECIDED, options=(approved(1),))
    found = covered_fleet(since, decided, newest(saving("0.45", 3)), known_types(), approved_as=ApprovedAs.CHANGE)
    assert found == since


@given(st.integers(1, 6), st.integers(1, 6), st.decimals("0.01", 2, places=2), st.sampled_from(list(Risk)))
def test_a_covered_fleet_is_never_riskier_nor_worth_less_than_half(
    before: int, then: int, share: Decimal, risk: Risk
) -> None:
    option, other = approved(before), saving(str(share), then, risk=risk)
    found = covered(option, newest(other))
    assert found in (option, other)
    assert found.risk <= option.risk
    assert found.saving_usd_per_month >= COVERED * option.saving_usd_per_month
