"""What stands against an approval is said in one whole sentence: which recommendation, which finding, which numbers."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial

import pytest

from rightsizer.changes.overruled import (
    ApprovedAs,
    covered_fleet,
    covered_sentence,
    is_by_policy,
    overruling_reason,
    recommendation_at_start,
    slow_test_reason,
)
from rightsizer.domain.change import PassedTest
from rightsizer.domain.option import Excluded, Option, OptionKind, Risk, Target, VariantTarget
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation, VariantFinding
from tests import samples
from tests.changes.memory import known_types
from tests.changes.test_overruled import DECIDED, SMALL, approved, covered, held, newest, saving, scaled_at, sized

WHEN = "the recommendation of Thu 15 Jan 2026, 09:30 UTC"
WHY = Reason(Code.ALREADY_RIGHT, "so it is")
NEEDS_A_TEST = replace(approved(), test_usd=Decimal(20))
RISKIER = replace(approved(), risk=Risk.HIGH)
OUT = Excluded(SMALL, Reason(Code.TOO_SLOW, "p95 would be 0.9 s"))
OTHER = samples.option(target=Target("ml.g6.xlarge", 1))
SHORT, NOTHING = newest(approved(), finding=Finding.UNDER_PROVISIONED, reason=WHY), newest(reason=WHY)
GROWS = replace(approved(2), growth_usd=Decimal(9))


@pytest.mark.parametrize(
    ("option", "judged", "sentence"),
    [
        (approved(), SHORT, "finds the endpoint under-provisioned: so it is"),
        (approved(), held(Gate.TEST, Code.TEST_WORTH_IT), "asks for a shadow test first: because of this"),
        (approved(), held(Gate.SILENT, Code.BLACKLISTED), "holds it back: because of this"),
        (approved(kind=OptionKind.DELETE), newest(reason=WHY), "does not find it idle: so it is"),
        (approved(), newest(NEEDS_A_TEST), "asks for a shadow test of ml.g5.xlarge first"),
        (approved(), newest(OTHER, RISKIER), "rates ml.g5.xlarge with performance risk 3, above 1"),
        (approved(), newest(approved(2)), "needs 2 instance(s) of ml.g5.xlarge, and 1 instance(s) was approved"),
        (approved(), newest(excluded=(OUT,)), "rules ml.g5.xlarge out: p95 would be 0.9 s"),
        (approved(), NOTHING, "no longer lists 1 x ml.g5.xlarge (instance-type) among what serves: so it is"),
        (GROWS, newest(finding=Finding.OPTIMIZED, reason=WHY), "finds nothing short any more: so it is"),
        (
            GROWS,
            newest(finding=Finding.UNDER_PROVISIONED),
            "names no growth that would do, and 2 instance(s) of ml.g5.xlarge was approved",
        ),
        (
            GROWS,
            newest(replace(GROWS, target=Target(SMALL, 3)), finding=Finding.UNDER_PROVISIONED),
            "asks for 3 instance(s) of ml.g5.xlarge, and 2 instance(s) of ml.g5.xlarge was approved",
        ),
    ],
)
def test_what_stands_against_an_approval_is_said_with_its_time_and_its_cause(
    option: Option, judged: Recommendation, sentence: str
) -> None:
    assert overruling_reason(option, DECIDED, judged) == Reason(Code.NEWER_JUDGEMENT, f"{WHEN} {sentence}")


def test_growth_by_itself_is_held_back_in_the_words_of_the_gate() -> None:
    judged = newest(GROWS, finding=Finding.UNDER_PROVISIONED, gate=Gate.PROPOSE, gate_reason=WHY)
    found = overruling_reason(GROWS, DECIDED, judged, by_policy=True)
    assert found == Reason(Code.NEWER_JUDGEMENT, f"{WHEN} holds it back: so it is")
    assert overruling_reason(GROWS, DECIDED, replace(judged, gate=Gate.APPLY), by_policy=True) is None


def test_growth_of_another_kind_or_another_type_is_not_the_growth_that_was_approved() -> None:
    for other in (
        replace(GROWS, kind=OptionKind.AUTOSCALING),
        replace(GROWS, target=Target("ml.g6.xlarge", 2)),
        replace(GROWS, growth_usd=None),
    ):
        assert overruling_reason(GROWS, DECIDED, newest(other, finding=Finding.UNDER_PROVISIONED)) is not None


@pytest.mark.parametrize(
    ("judged", "why"),
    [
        (newest(finding=Finding.NOT_ENOUGH_DATA, reason=WHY), "so it is"),
        (held(Gate.SILENT, Code.THROTTLED), "because of this"),
    ],
)
def test_a_look_that_saw_too_little_is_told_with_what_it_missed(judged: Recommendation, why: str) -> None:
    said = f"{WHEN} saw too little to allow what was approved: {why}"
    assert overruling_reason(approved(), DECIDED, judged) == Reason(Code.JUDGEMENT_UNKNOWN, said)


def test_an_approved_test_may_run_though_its_option_needs_one_and_is_riskier_without_it() -> None:
    listed = replace(NEEDS_A_TEST, untested_risk=Risk.HIGH)
    asks = held(Gate.TEST, Code.TEST_WORTH_IT, listed)
    assert overruling_reason(approved(), DECIDED, asks, approved_as=ApprovedAs.TEST) is None
    decided = replace(DECIDED, gate=Gate.TEST)
    assert overruling_reason(approved(), decided, newest(listed)) is None, "that gate asked for a test"


def test_who_took_the_risk_of_no_test_is_not_told_to_test_first() -> None:
    untested = replace(NEEDS_A_TEST, untested_risk=Risk.MEDIUM)
    assert overruling_reason(untested, DECIDED, newest(untested)) is None
    worse = replace(untested, untested_risk=Risk.HIGH)
    found = overruling_reason(untested, DECIDED, newest(OTHER, worse))
    assert found is not None
    assert found.sentence == f"{WHEN} rates ml.g5.xlarge with performance risk 3, above 2"
    after = overruling_reason(untested, DECIDED, newest(worse), approved_as=ApprovedAs.CHANGE_AFTER_TEST)
    assert after is not None, "its test has ended, so that another one is asked for"
    assert after.sentence.endswith("asks for a shadow test of ml.g5.xlarge first")


def test_a_risk_that_the_newest_gate_applies_by_itself_is_allowed_of_every_type() -> None:
    other = samples.option(target=Target("ml.g6.xlarge", 1), risk=Risk.HIGH)
    judged = held(Gate.APPLY, Code.SAFE_TO_APPLY, other, RISKIER)
    assert overruling_reason(approved(), DECIDED, judged) is None
    worse = overruling_reason(approved(), DECIDED, replace(judged, gate=Gate.TEST), approved_as=ApprovedAs.TEST)
    assert worse is not None


def both(second: int) -> Option:
    others = (VariantTarget("B", "ml.g6.xlarge", second, Decimal(1)),)
    return replace(approved(), target=replace(approved().target, others=others))


def of_b(*options: Option) -> Recommendation:
    idle = VariantFinding("B", "ml.g6.4xlarge", 3, 1.0, None, Finding.OVER_PROVISIONED, WHY, Gate.PROPOSE)
    return newest(both(2), variants=(replace(idle, options=options),))


def test_a_change_of_two_variants_is_held_against_the_options_of_each() -> None:
    fleets = [samples.option(target=Target("ml.g6.xlarge", count)) for count in (2, 3)]
    assert overruling_reason(both(2), DECIDED, of_b(fleets[0])) is None
    found = overruling_reason(both(2), DECIDED, of_b(fleets[1]))
    assert found is not None
    assert found.sentence == f"{WHEN} needs 3 instance(s) of ml.g6.xlarge, and 2 instance(s) was approved"
    gone = overruling_reason(both(2), DECIDED, of_b())
    assert gone is not None
    assert "no longer lists 2 x ml.g6.xlarge" in gone.sentence


def test_bounds_and_counts_by_the_hour_are_told_as_a_range() -> None:
    wide, narrow = scaled_at(None), approved(2, minimum=1, maximum=3)
    found = overruling_reason(narrow, DECIDED, newest(wide))
    assert found is not None
    assert found.sentence == f"{WHEN} needs 1 to 4 instances of ml.g5.xlarge, and 1 to 3 instances was approved"
    by_hour = approved(3, OptionKind.SCHEDULE, hourly_counts=(1, *(3,) * 23))
    told = overruling_reason(approved(2), DECIDED, newest(by_hour))
    assert told is not None
    assert told.sentence == f"{WHEN} needs 1 to 3 instances of ml.g5.xlarge, and 2 instance(s) was approved"


def test_a_test_that_was_slower_than_the_objective_is_not_followed() -> None:
    replay = replace(DECIDED.replay, objective_s=0.5) if DECIDED.replay is not None else None
    decided = replace(DECIDED, replay=replay)
    done = PassedTest("c-0", samples.NOW, "it served", 0.62)
    said = "ml.g5.xlarge does not follow its test: at the speed of its shadow test the p95 would be 0.62 s"
    assert slow_test_reason(done, approved(), decided) == Reason(Code.TOO_SLOW, f"{said}, and 0.50 s are allowed")
    assert slow_test_reason(replace(done, p95_s=0.5), approved(), decided) is None
    assert slow_test_reason(replace(done, p95_s=None), approved(), decided) is None
    assert slow_test_reason(done, approved(2), decided) is None, "one of two has less to do than the shadow had"
    assert slow_test_reason(done, approved(), replace(DECIDED, replay=None)) is None
    without = replace(decided.replay, objective_s=None) if decided.replay is not None else None
    assert slow_test_reason(done, approved(), replace(DECIDED, replay=without)) is None


def test_what_was_decided_before_anything_could_be_read_counts_from_the_start_of_the_change() -> None:
    began = samples.NOW - timedelta(hours=3)
    for kind, gate in ((PlanKind.SHADOW_TEST, Gate.TEST), (PlanKind.CHANGE, Gate.PROPOSE)):
        change = samples.change(began)
        made = recommendation_at_start(newest(approved()), replace(change, plan=replace(change.plan, kind=kind)))
        assert (made.evaluated_at, made.gate, made.options) == (began, gate, (approved(),))


def test_automatic_mode_is_taken_for_the_decider_where_nobody_knows_who_decided() -> None:
    person = Decision(ProposalState.APPROVED, "slack:U1", samples.NOW)
    assert is_by_policy(None)
    assert is_by_policy(samples.proposal(decision=replace(person, by="policy")))
    assert not is_by_policy(samples.proposal(decision=person))
    assert not is_by_policy(samples.proposal())


def test_a_larger_fleet_is_told_with_both_sizes_and_both_savings() -> None:
    said = covered_sentence(saving("0.5"), approved(1), newest())
    assert said == (
        f"{WHEN} needs 2 instance(s) of ml.g5.xlarge in place of 1 instance(s); the approval covers it, for it saves"
        " $2,070.25 of $4,140.50 a month at no higher risk"
    )


def test_an_approval_covers_no_larger_fleet_of_a_change_of_several_variants() -> None:
    assert covered(both(2), newest(saving("0.9"))) == both(2)
    several = replace(saving("0.9"), target=replace(Target(SMALL, 2), others=both(2).target.others))
    assert covered(approved(1), newest(several)) == approved(1)


def test_no_approval_covers_what_is_no_fleet_or_where_nothing_newer_is_known() -> None:
    routing = approved(1, OptionKind.ROUTING, routing="LEAST_OUTSTANDING_REQUESTS")
    assert covered(routing, newest(saving("0.9"))) == routing
    assert covered_fleet(approved(1), DECIDED, None, known_types(), approved_as=ApprovedAs.CHANGE) == approved(1)


def test_a_larger_host_is_covered_only_in_place_with_as_many_instances_and_by_the_same_means() -> None:
    asked, larger = sized("ml.g5.xlarge", "1", "1"), sized("ml.g5.4xlarge", "3")
    two = replace(asked, target=Target("ml.g5.xlarge", 2))
    nightly = replace(larger, kind=OptionKind.SCHEDULE)
    assert covered(asked, newest(replace(larger, in_place=False))) == asked
    assert covered(asked, newest(nightly)) == asked
    assert covered(larger, newest(asked)) == larger, "a smaller host is no larger one"
    assert covered(two, newest(larger)) == two, "one instance is less than the two that were agreed to"


def test_a_larger_size_since_is_held_against_the_fleet_that_was_agreed_to_first() -> None:
    first, since = sized("ml.g5.xlarge", "1", "1"), sized("ml.g5.4xlarge", "3", "0.6")
    decided = replace(DECIDED, options=(first,))
    began = partial(covered_fleet, since, catalogue=known_types(), approved_as=ApprovedAs.CHANGE)
    for share, begins in (("0.5", True), ("0.49", False)):
        larger = sized("ml.g5.8xlarge", "4", share)
        assert (began(decided, newest(larger)) == larger) is begins
    of_other = replace(DECIDED, options=(sized("ml.g6.xlarge", "1", "1"),))
    weak = sized("ml.g5.8xlarge", "4", "0.31")
    assert began(of_other, newest(weak)) == weak, "half of its own saving"
    assert began(replace(DECIDED, options=()), newest(weak)) == weak


def test_the_risk_without_a_test_is_what_an_approval_without_one_covers() -> None:
    asked = replace(approved(1), untested_risk=Risk.MEDIUM, test_usd=Decimal(9))
    larger = replace(saving("0.9"), untested_risk=Risk.MEDIUM, test_usd=Decimal(9))
    assert covered(asked, newest(larger)) == larger
    assert covered(asked, newest(replace(larger, untested_risk=Risk.HIGH))) == asked
