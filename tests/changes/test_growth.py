"""A change that grows: who allowed it, what overrules it, what proves it, and how it is booked."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.changes.measurement import past_change_of, realised_usd
from rightsizer.changes.overruled import overruling_reason
from rightsizer.changes.plan import alarm_steps
from rightsizer.changes.preflight import preflight_deferral
from rightsizer.changes.preflight.consent import growth_limit_refusal
from rightsizer.changes.proof import proof_verdict
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.plan import Before, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from tests import samples
from tests.changes.test_preflight import NOW, POLICY, preflight_input, proposed
from tests.changes.test_proof import LIMITS, START, change, window
from tests.recommender.kit import catalogue

TYPE = "ml.g6.xlarge"


def growth(count: int = 2, usd: int = 412, **more: Any) -> Option:
    fields: dict[str, Any] = {
        "kind": OptionKind.INSTANCE_COUNT,
        "target": Target(TYPE, count),
        "usd_per_month": Decimal(2 * usd),
        "saving_usd_per_month": Decimal(-usd),
        "switch_usd": Decimal(0),
        "restart_needed": False,
        "growth_usd": Decimal(usd),
    }
    return samples.option(**(fields | more))


FASTER = growth(1, kind=OptionKind.INSTANCE_TYPE, target=Target("ml.g6e.xlarge", 1), restart_needed=True)
SHORT = Reason(Code.UNDER_PROVISIONED, "p95 is 0.65 s, above the objective of 0.60 s")
DECIDED = samples.recommendation(options=(growth(),), finding=Finding.UNDER_PROVISIONED, reason=SHORT, excluded=())


def newest(*options: Option, **more: Any) -> Recommendation:
    return replace(DECIDED, **{"evaluated_at": samples.NOW + timedelta(days=1), "options": options, **more})


def test_growth_goes_on_while_the_newest_recommendation_asks_for_exactly_that() -> None:
    assert overruling_reason(growth(), DECIDED, newest(growth())) is None
    assert overruling_reason(growth(), DECIDED, newest(FASTER, growth())) is None


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (newest(growth(3)), "asks for 3 instance(s) of ml.g6.xlarge, and 2 instance(s) of ml.g6.xlarge was approved"),
        (newest(growth(1)), "asks for 1 instance(s) of ml.g6.xlarge, and 2 instance(s)"),
        (newest(), "names no growth that would do"),
        (
            newest(finding=Finding.OPTIMIZED, reason=Reason(Code.ALREADY_RIGHT, "fine")),
            "finds nothing short any more: fine",
        ),
        (newest(samples.option(), finding=Finding.OVER_PROVISIONED), "finds nothing short any more"),
    ],
)
def test_growth_is_overruled_by_a_judgement_that_needs_none_or_another(found: Recommendation, said: str) -> None:
    reason = overruling_reason(growth(), DECIDED, found)
    assert reason is not None
    assert reason.code is Code.NEWER_JUDGEMENT
    assert said in reason.sentence


def test_growth_by_itself_needs_a_gate_that_still_lets_it() -> None:
    asks = newest(growth(), gate=Gate.PROPOSE, gate_reason=Reason(Code.BAD_TAG, "the tag is malformed"))
    assert overruling_reason(growth(), DECIDED, asks) is None, "a person approved"
    reason = overruling_reason(growth(), DECIDED, asks, by_policy=True)
    assert reason is not None
    assert "the tag is malformed" in reason.sentence


def by_itself(option: Option, tag: str | None, **more: Any) -> PreflightInput:
    proposal = proposed(POLICY, gate=Gate.APPLY, options=(option,))
    tags = {"rightsizer:mode": "auto"} | ({} if tag is None else {"rightsizer:may-grow": tag})
    return preflight_input(proposal=proposal, option=option, tags=tags, **more)


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("412", None),
        ("412.00", None),
        ("411.99", Code.NEEDS_APPROVAL),
        (None, Code.NEEDS_APPROVAL),
        ("yes", Code.BAD_TAG),
    ],
)
def test_automatic_growth_needs_the_budget_of_the_tag_as_it_is_now(tag: str | None, code: Code | None) -> None:
    refused = growth_limit_refusal(by_itself(growth(), tag))
    assert (refused.code if refused else None) is code


def test_automatic_growth_stays_within_the_owners_maximum_as_it_is_now() -> None:
    target = Target(TYPE, 2, minimum=2, maximum=4)
    bounds = growth(kind=OptionKind.AUTOSCALING, target=target)
    variant = by_itself(bounds, "900").proposal.recommendation.variant
    for maximum, code in ((4, None), (3, Code.NEEDS_APPROVAL)):
        own = ScalableTarget(f"endpoint/chat/variant/{variant}", "d", 1, maximum)
        refused = growth_limit_refusal(by_itself(bounds, "900", scaling=(own,)))
        assert (refused.code if refused else None) is code


def test_a_person_decides_beyond_every_budget() -> None:
    assert growth_limit_refusal(preflight_input(option=growth())) is None


def test_growth_waits_for_no_cooldown() -> None:
    recent = NOW - timedelta(hours=1)
    assert preflight_deferral(preflight_input(last_change_at=recent), NOW, NOW) is not None
    assert preflight_deferral(preflight_input(last_change_at=recent, option=growth()), NOW, NOW) is None


def grown(option: Option, p95_ms: float, objective: float | None = 0.5, **baseline: float) -> str:
    made = replace(change(objective, **baseline), option=option)
    seen = window(requests=[20.0] * 12, latency=[1000 * p95_ms] * 12)
    return proof_verdict(made, [seen], START + timedelta(hours=3), LIMITS).judgement


def test_growth_is_proven_by_a_p95_within_the_objective_and_by_nothing_else() -> None:
    assert grown(growth(), 400) == "proven"
    assert grown(growth(), 600) == "not-yet"
    assert grown(growth(), 600, None) == "proven", "no objective is declared: what was short was no latency"


def test_more_of_the_same_is_never_undone_for_slowness_and_a_faster_type_only_for_far_worse() -> None:
    assert grown(growth(), 9000, p95_s=0.7) == "not-yet"
    assert grown(FASTER, 900, p95_s=0.7) == "not-yet", "above the objective, as before"
    assert grown(FASTER, 1500, p95_s=0.7) == "bad"
    assert grown(FASTER, 600, p95_s=0.1) == "bad", "the objective was met before"


def test_the_alarms_of_growth_do_not_ring_for_what_was_slow_before() -> None:
    before = replace(change(0.5, p95_s=0.7), option=FASTER)
    thresholds = [
        step.params["Threshold"]
        for step in alarm_steps(before, "cfg", (VariantCount("v", TYPE, 1, 1.0),), ChangeLimits())
        if step.params.get("ExtendedStatistic") == "p95"
    ]
    assert thresholds
    assert min(thresholds) >= 1_400_000


def ran(option: Option, hours: float, instances: float, booked: int = 0) -> Change:
    return samples.change(
        START,
        option=option,
        saving_usd_per_month=option.saving_usd_per_month,
        turned_at=START,
        counted_until=START + timedelta(hours=hours),
        instance_hours=instances * hours,
        booked_usd=Decimal(booked),
    )


@given(hours=st.floats(0, 2000), instances=st.floats(0, 9), usd=st.integers(0, 5000), booked=st.integers(-9000, 0))
def test_growth_is_never_booked_as_a_saving(hours: float, instances: float, usd: int, booked: int) -> None:
    total = realised_usd(ran(growth(usd=usd), hours, instances, booked), hours)
    assert total <= booked <= 0


def test_growth_that_ran_as_planned_costs_what_was_said() -> None:
    assert realised_usd(ran(growth(), 730, 2), 730) == pytest.approx(Decimal(-412))


def test_growth_is_remembered_as_growth() -> None:
    before = Before("cfg", START, "", (VariantCount("v", TYPE, 1, 1.0),))
    done = replace(ran(growth(), 48, 2), before=before, state=ChangeState.PROVEN)
    past = past_change_of(done, catalogue(), START)
    assert past is not None
    assert past.grows
    assert not past_change_of(replace(done, option=samples.option()), catalogue(), START).grows  # type: ignore[union-attr]
