"""Each verdict of the gate with its code and its sentence, and each threshold from both sides."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.demand import RefusedShares
from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode, Objective, ScalableTarget
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import OptionKind, Risk, RiskResource, Target
from rightsizer.domain.policy import TYPE_AND_COUNT, Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate
from rightsizer.recommender.gate import OFF, REPORT, GateCase, ask_person, cooldown_reason, decide_gate, decide_restore
from tests.recommender import kit
from tests.recommender.plain import demand, option, past

WHY = Reason(Code.CHEAPER_OPTION, "it is cheaper")
UNREAD = Reason(Code.THROTTLED, "AWS throttles sagemaker:ListTags")


def endpoint(**more: Any) -> Endpoint:
    return replace(kit.endpoint(), **more)


def case(**more: Any) -> GateCase:
    """A change of type that nothing speaks against, with `more` said of it."""
    safe: dict[str, Any] = {
        "endpoint": endpoint(),
        "option": option(),
        "demand": demand(),
        "instance_type": "ml.g6e.xlarge",
        "share": 0.4,
    }
    return GateCase(**{**safe, **more})


def verdict(found: GateCase, *pasts: PastChange, **policy: Any) -> tuple[Gate, Code, str]:
    answer, reason = decide_gate(found, History(endpoint=pasts), Policy(**policy), kit.NOW)
    return answer, reason.code, reason.sentence


def test_what_nothing_speaks_against_is_applied_with_its_figures() -> None:
    sentence = "safe to apply by itself: performance risk 1 of 4, 14 days' worth of evidence, paid back in 12 hours"
    assert verdict(case()) == (Gate.APPLY, Code.SAFE_TO_APPLY, sentence)


SILENT = {
    "the mode is off": (case(endpoint=endpoint(mode=Mode.OFF)), Code.MODE_OFF, OFF.sentence),
    "the mode is report": (case(endpoint=endpoint(mode=Mode.REPORT)), Code.MODE_REPORT, REPORT.sentence),
    "its tags are unread": (
        case(endpoint=endpoint(mode=Mode.REPORT, tags_unread=UNREAD)),
        Code.THROTTLED,
        f"its tags could not be read, so what its owner allows is unknown: {UNREAD.sentence}",
    ),
    "less evidence than a proposal takes": (
        case(demand=demand(days=0.6, requests=1234.0, confidence=0.99)),
        Code.TOO_LITTLE_CONFIDENCE,
        "too little was seen: 0.6 days of data with 1,234 requests are 0.99 days' worth of evidence;"
        " a proposal takes 1",
    ),
    "a risk above that of a proposal": (
        case(option=option(risk=Risk.VERY_HIGH)),
        Code.RISK_TOO_HIGH,
        "too likely to harm: its performance risk is 4 of 4, and rightsizer asks up to 3",
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_nobody_is_asked_where(name: str) -> None:
    found, code, sentence = SILENT[name]
    assert verdict(found) == (Gate.SILENT, code, sentence)


SCALED = (ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 1, 4),)
ASKS = "needs your approval: "
ASKED = {
    "the kind of endpoint is no plain one": (
        case(endpoint=endpoint(kind=EndpointKind.ASYNC)),
        Code.OTHER_KIND,
        f"{ASKS}endpoints of the kind asynchronous are never changed automatically",
    ),
    "its configuration has unknown fields, of which three are named": (
        case(endpoint=endpoint(unknown_fields=("A", "B", "C", "D"))),
        Code.UNKNOWN_FIELD,
        f"{ASKS}its configuration has fields that rightsizer does not know: A, B, C",
    ),
    "its configuration was replaced": (
        case(endpoint=endpoint(configuration_replaced=True)),
        Code.CONFIGURATION_REPLACED,
        f"{ASKS}the configuration chat-1 was replaced after it was deployed",
    ),
    "a stack owns it": (
        case(endpoint=endpoint(owned_by="CloudFormation")),
        Code.OWNED_BY_STACK,
        "it is owned by CloudFormation; change it there",
    ),
    "autoscaling sets its count": (
        case(endpoint=endpoint(scaling=SCALED)),
        Code.AUTOSCALED,
        f"{ASKS}Application Auto Scaling sets its count",
    ),
    "an instance has fewer GPUs then": (
        case(gpus=(4, 1)),
        Code.NEEDS_APPROVAL,
        f"{ASKS}1 in place of 4 GPUs in an instance split the model differently",
    ),
    "the type is hard to get on demand": (
        case(option=option(target=Target("ml.p4de.24xlarge", 1))),
        Code.NEEDS_APPROVAL,
        f"{ASKS}ml.p4de.24xlarge is hard to get on demand (AWS sells its capacity ahead): an instance that fails may"
        " not be replaced",
    ),
    "the program cannot do it in place": (
        case(option=option(in_place=False)),
        Code.NOT_IN_PLACE,
        "its owner has to do this: rightsizer cannot carry out instance-type here",
    ),
    "it is deleted": (
        case(option=option(kind=OptionKind.DELETE, in_place=False)),
        Code.NOT_IN_PLACE,
        f"{ASKS}rightsizer then watches it for some days, and its owner gets the command to delete it",
    ),
    "more fails than usually may": (
        case(demand=demand(error_share=0.0123)),
        Code.TOO_MANY_ERRORS,
        f"{ASKS}1.23 % of its requests fail, and 0.5 % may (the tag rightsizer:error-percent can allow more)",
    ),
    "more fails than its owner allows": (
        case(endpoint=endpoint(objective=Objective(60.0, error_share=0.01)), demand=demand(error_share=0.02)),
        Code.TOO_MANY_ERRORS,
        f"{ASKS}2.00 % of its requests fail, and 1 % may (tag rightsizer:error-percent)",
    ),
    "a server refuses in busy hours": (
        case(demand=demand(refused=RefusedShares(0.05, 0.1, 0.02))),
        Code.TOO_MANY_ERRORS,
        f"{ASKS}10.0 % of its requests get a 4XX answer in busy hours, 2.0 % at other times: its server may refuse what"
        " it cannot serve (429)",
    ),
    "its owner did not opt in": (
        case(endpoint=endpoint(mode=Mode.PROPOSE)),
        Code.NOT_OPTED_IN,
        f"{ASKS[:-2]} (the tag rightsizer:mode=auto applies such changes by itself)",
    ),
    "another type wants a week of evidence": (
        case(demand=demand(confidence=6.9)),
        Code.TOO_LITTLE_CONFIDENCE,
        f"{ASKS}6.9 days' worth of evidence, and an automatic change takes 7",
    ),
    "another type wants two hundred requests for each of seven days": (
        case(demand=demand(requests=1399.0)),
        Code.TOO_LITTLE_CONFIDENCE,
        f"{ASKS}1,399 requests were seen, and an automatic change takes 1,400",
    ),
    "one instance is left in one zone": (
        case(
            endpoint=endpoint(variants=(replace(kit.endpoint().variants[0], desired_count=2),)),
            option=option(risk=Risk.MEDIUM, risks={RiskResource.AVAILABILITY: Risk.MEDIUM}),
        ),
        Code.RISK_TOO_HIGH,
        f"{ASKS}1 instance in place of 2 is in one Availability Zone only (the tag rightsizer:min-instances=1 accepts"
        " that)",
    ),
    "its risk is above that of automatic changes": (
        case(option=option(risk=Risk.MEDIUM)),
        Code.RISK_TOO_HIGH,
        f"{ASKS}its performance risk is 2 of 4, and automatic changes take 1 at most",
    ),
    "it pays for itself late": (
        case(option=option(payback_days=7.25)),
        Code.PAYBACK_TOO_LONG,
        f"{ASKS}it takes 7.2 days until the change has paid for itself, and automatic changes take 7 at most",
    ),
    "the stack does not open the dimension": (
        case(option=option(kind=OptionKind.ROUTING)),
        Code.NEEDS_APPROVAL,
        f"{ASKS}the stack's parameter Limits does not open routing to automatic mode",
    ),
}


def test_fewer_of_a_scarce_type_that_runs_are_applied_and_another_scarce_type_is_asked_about() -> None:
    found = case(option=option(target=Target("ml.p4d.24xlarge", 1)), instance_type="ml.p4d.24xlarge")
    assert verdict(found)[0] is Gate.APPLY
    assert verdict(replace(found, instance_type="ml.p4de.24xlarge"))[:2] == (Gate.PROPOSE, Code.NEEDS_APPROVAL)


@pytest.mark.parametrize("name", ASKED)
def test_a_person_is_asked_where(name: str) -> None:
    found, code, sentence = ASKED[name]
    assert verdict(found, by_itself=TYPE_AND_COUNT) == (Gate.PROPOSE, code, sentence)


def fleet(today: int, then: int, hours: tuple[int, ...] | None = None) -> GateCase:
    variants = (replace(kit.endpoint().variants[0], desired_count=today),)
    target = Target("ml.g6e.xlarge", then, hourly_counts=hours)
    return case(
        endpoint=endpoint(variants=variants), option=option(kind=OptionKind.INSTANCE_COUNT, target=target, risks={})
    )


def test_a_fleet_is_halved_at_most_in_one_step() -> None:
    assert verdict(fleet(8, 4))[0] is Gate.APPLY
    sentence = f"{ASKS}from 8 to 3 instances is more than half in one step"
    assert verdict(fleet(8, 3)) == (Gate.PROPOSE, Code.RISK_TOO_HIGH, sentence)


def test_of_a_tracked_fleet_the_minimum_is_said_and_not_that_it_runs_so_few() -> None:
    tracked = fleet(5, 1)
    target = replace(tracked.option.target, minimum=1, maximum=5, metric="SageMakerVariantInvocationsPerInstance")
    found = verdict(replace(tracked, option=replace(tracked.option, target=replace(target, target_value=84.0))))
    sentence = f"{ASKS}a minimum of 1 in place of 5 instances is more than half in one step"
    assert found == (Gate.PROPOSE, Code.RISK_TOO_HIGH, sentence)


def test_hourly_counts_are_halved_by_their_mean_over_the_day() -> None:
    half = (8,) * 4 + (4,) * 4 + (3,) * 16
    assert sum(half) == 24 * 4
    assert verdict(fleet(8, 8, half))[0] is Gate.APPLY
    sentence = f"{ASKS}from 8 to 3.95833 instances is more than half in one step"
    assert verdict(fleet(8, 8, (*half[:-1], 2))) == (Gate.PROPOSE, Code.RISK_TOO_HIGH, sentence)


@pytest.mark.parametrize(
    ("found", "policy"),
    [
        (case(demand=demand(confidence=1.0, error_share=0.005)), {"confidence_smaller": 1.0, "confidence_apply": 1.0}),
        (case(demand=demand(confidence=7.0)), {}),
        (case(option=option(risk=Risk.LOW, risks={RiskResource.AVAILABILITY: Risk.LOW})), {}),
        (case(option=option(payback_days=7.0)), {}),
        (case(option=option(saving_usd_per_month=Decimal(50)), share=0.10), {}),
        (case(gpus=(2, 2)), {}),
        (case(option=option(kind=OptionKind.ROUTING)), {"by_itself": TYPE_AND_COUNT | {OptionKind.ROUTING}}),
        (case(endpoint=endpoint(objective=Objective(60.0, error_share=0.05)), demand=demand(error_share=0.05)), {}),
        (
            case(option=option(kind=OptionKind.AUTOSCALING), endpoint=endpoint(scaling=SCALED)),
            {"by_itself": TYPE_AND_COUNT | {OptionKind.AUTOSCALING}},
        ),
        (case(endpoint=endpoint(variants=(replace(kit.endpoint().variants[0], desired_count=1),))), {}),
    ],
    ids=[
        "as much evidence and as many failures as may be",
        "a week of evidence",
        "a low risk",
        "paid back in a week",
        "the least saving",
        "as many GPUs as today",
        "the operator opened the dimension",
        "as many failures as the owner allows",
        "bounds of autoscaling, opened",
        "as many instances as today",
    ],
)
def test_at_the_threshold_itself_a_change_is_applied(found: GateCase, policy: dict[str, Any]) -> None:
    assert verdict(found, **policy)[0] is Gate.APPLY


@pytest.mark.parametrize("kinds", [TYPE_AND_COUNT, TYPE_AND_COUNT | {OptionKind.AUTOSCALING}])
def test_a_person_decides_on_another_type_of_a_scaled_endpoint(kinds: frozenset[OptionKind]) -> None:
    found = verdict(case(endpoint=endpoint(scaling=SCALED)), by_itself=kinds)
    assert found[:2] == (Gate.PROPOSE, Code.AUTOSCALED)


def test_the_same_type_wants_three_days_of_evidence_of_its_own() -> None:
    same = fleet(2, 1)
    assert verdict(replace(same, demand=demand(confidence=3.0)))[0] is Gate.APPLY
    for enough in (600.0, 0.0):
        assert verdict(replace(same, demand=demand(confidence=3.0, requests=enough)))[0] is Gate.APPLY
    assert verdict(replace(same, demand=demand(confidence=3.0, requests=599.0)))[0] is Gate.PROPOSE
    short = verdict(replace(same, demand=demand(confidence=2.9)))
    assert short[2].endswith("2.9 days' worth of evidence, and an automatic change takes 3")


def waits(*pasts: PastChange, to: str = "ml.g5.xlarge", policy: Policy | None = None) -> str | None:
    found = cooldown_reason(History(endpoint=pasts), policy or Policy(), kit.NOW, to, "ml.g5.xlarge")
    return None if found is None else f"{found.code.value}: {found.sentence}"


def test_a_change_of_type_rests_for_three_days_and_one_of_count_for_one() -> None:
    assert waits(past(days_ago=2.75), to="ml.g6.xlarge") == (
        "cooldown: changed on Tue 17 Nov 2026, 06:00 UTC (ml.g6e.xlarge to ml.g5.xlarge); the next change can"
        " come 72 h after that, on Fri 20 Nov 2026, 06:00 UTC"
    )
    assert waits(past(days_ago=3.0), to="ml.g6.xlarge") is None
    count = past("ml.g6e.xlarge", 0.5, counts=(4, 2))
    assert waits(count) == (
        "cooldown: changed on Thu 19 Nov 2026, 12:00 UTC (ml.g6e.xlarge to ml.g6e.xlarge); the next change can"
        " come 24 h after that, on Fri 20 Nov 2026, 12:00 UTC"
    )
    assert waits(replace(count, at=kit.NOW - timedelta(hours=24))) is None


def test_the_last_change_decides_and_a_test_or_a_want_of_capacity_of_another_type_is_passed_over() -> None:
    fresh, old = past(days_ago=0.5), past(days_ago=30)
    assert waits(fresh, old) is None, "the last one is the old one"
    assert waits(old, fresh) is not None
    tested = past(days_ago=0.1, ended=PastEnd.TESTED)
    assert waits(tested) is None
    assert waits(fresh, tested) is not None
    lacked = past(days_ago=0.1, ended=PastEnd.UPDATE_FAILED, failure="capacity")
    assert waits(lacked) is not None
    assert waits(lacked, to="ml.g6.xlarge") is None
    assert verdict(case(), lacked)[:2] == (Gate.SILENT, Code.COOLDOWN)
    assert verdict(case(), fresh)[:2] == (Gate.SILENT, Code.COOLDOWN)


FAILED: dict[str, Any] = {"ended": PastEnd.ROLLED_BACK, "from_type": "ml.g6e.xlarge", "failure": "alarm"}


def small_fleet(**more: Any) -> GateCase:
    return replace(fleet(4, 2), **more)


def failure(days_ago: float = 10.0, counts: tuple[int, int] = (4, 2), **more: Any) -> PastChange:
    return past(**{"to_type": "ml.g6e.xlarge", "days_ago": days_ago, "counts": counts, **FAILED, **more})


def test_a_count_that_failed_rests_for_thirty_days_and_twice_as_long_after_each_further_failure() -> None:
    assert verdict(small_fleet(), failure()) == (
        Gate.SILENT,
        Code.BLACKLISTED,
        "2 × ml.g6e.xlarge failed here once, last on 10 Nov 2026 (alarm); it is not tried again before 10 Dec 2026",
    )
    assert verdict(small_fleet(), failure(29.9))[0] is Gate.SILENT
    assert verdict(small_fleet(), failure(30.0))[0] is Gate.APPLY
    twice = (failure(100.0), failure(59.0))
    assert "failed here 2 times, last on 22 Sep 2026 (alarm)" in verdict(small_fleet(), *twice)[2]
    assert verdict(small_fleet(), failure(100.0), failure(60.0))[0] is Gate.APPLY
    assert verdict(small_fleet(), failure(300.0), failure(200.0), failure(119.0))[0] is Gate.SILENT
    assert verdict(small_fleet(), failure(failure=""))[2].split("(")[1].startswith("unknown cause")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(failure(counts=(4, 1)), id="a smaller fleet failed"),
        pytest.param(past("ml.g5.xlarge", **FAILED), id="another type failed"),
        pytest.param(past("ml.g6e.xlarge", **{**FAILED, "from_type": "ml.g5.xlarge"}), id="a change of type failed"),
        pytest.param(failure(from_type="ml.g5.xlarge", to_type="ml.g5.xlarge"), id="a count of another type failed"),
        pytest.param(failure(failure="quota"), id="a quota"),
        pytest.param(failure(demand=1.0), id="there is half the demand now"),
        pytest.param(failure(models=("chat-old",)), id="another version of the model"),
        pytest.param(failure(mean_instances=1.9), id="fewer instances on average"),
    ],
)
def test_a_failure_says_nothing_of_this_fleet_where(other: PastChange) -> None:
    assert verdict(small_fleet(), other)[0] is Gate.APPLY


@pytest.mark.parametrize(
    "same",
    [
        pytest.param((failure(demand=0.6),), id="as much demand but for a sixth"),
        pytest.param((failure(models=("chat",)),), id="the same model"),
        pytest.param((failure(50, models=("old",)), failure(models=("old",))), id="of another model, but twice"),
        pytest.param((failure(mean_instances=1.97),), id="about as many on average"),
        pytest.param((failure(counts=(4, 3)),), id="a larger fleet failed"),
    ],
)
def test_a_failure_forbids_this_fleet_where(same: tuple[PastChange, ...]) -> None:
    assert verdict(small_fleet(), *same)[:2] == (Gate.SILENT, Code.BLACKLISTED)


def test_a_failure_of_an_endpoint_whose_variants_are_unknown_is_of_the_same_model() -> None:
    unknown = small_fleet(endpoint=endpoint(variants=()))
    assert verdict(unknown, failure(models=("chat",)))[1] is Code.BLACKLISTED


def test_growth_waits_for_nobody_on_a_plain_endpoint_in_mode_auto() -> None:
    back, nothing = option(restores=True), History()
    assert decide_restore(endpoint(), back, WHY, nothing, kit.NOW) == (Gate.APPLY, WHY)
    for slower in (
        endpoint(owned_by="CloudFormation"),
        endpoint(kind=EndpointKind.ASYNC),
        endpoint(mode=Mode.PROPOSE),
    ):
        assert decide_restore(slower, back, WHY, nothing, kit.NOW) == (Gate.PROPOSE, WHY)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        (Mode.OFF, (Gate.SILENT, OFF)),
        (Mode.REPORT, (Gate.SILENT, REPORT)),
        (Mode.PROPOSE, (Gate.PROPOSE, WHY)),
        (Mode.AUTO, (Gate.PROPOSE, WHY)),
    ],
)
def test_a_person_is_asked_unless_the_tag_says_that_nobody_is(mode: Mode, wanted: tuple[Gate, Reason]) -> None:
    assert ask_person(endpoint(mode=mode), WHY) == wanted


def test_one_below_the_least_evidence_of_a_proposal_or_at_it() -> None:
    assert verdict(case(demand=demand(confidence=1.0)))[0] is Gate.PROPOSE
    assert verdict(case(option=option(risk=Risk.HIGH)))[0] is Gate.PROPOSE
