"""What the end of a change teaches the next decision: how it ended, what was promised, and what was measured."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.changes.measurement import past_change_of
from rightsizer.domain.change import Change, ChangeState, FailureClass, PassedTest
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.history import PastChange, PastEnd, PastVariant
from rightsizer.domain.option import OptionKind, Risk, Target, VariantTarget
from rightsizer.domain.plan import Before, Plan, PlanKind, VariantCount
from rightsizer.domain.schedule import DayCounts
from rightsizer.domain.slowdown import Promise
from rightsizer.recommender.latency import ShadowRun, shadow_ratios
from tests import samples
from tests.changes.account import MONDAY, NEW_TYPE, OLD_TYPE
from tests.changes.test_rollback import CATALOGUE

NOW = MONDAY + timedelta(days=1)
FOUR_GPUS = "ml.g5.12xlarge"
FLEET = (VariantCount("v", OLD_TYPE, 3, 1.0),)
SECOND = VariantCount("w", FOUR_GPUS, 4, 0.5)
BEFORE = Before("old", MONDAY - timedelta(days=9), "", FLEET, routing="RANDOM")
FRESH = {"mean_s": 0.3, "gpu_s": 0.14, "gpu_requests": 200.0}
BASE = {"mean_s": 0.2, "gpu_s": 0.1, "gpu_requests": 200.0}


def ended(target: Target | None = None, wanted: dict[str, Any] | None = None, **changes: Any) -> Change:
    """A change of type that was proven, of an endpoint of one variant."""
    option = samples.option(target=target or Target(NEW_TYPE, 2), **(wanted or {}))
    usual = {"option": option, "before": BEFORE, "state": ChangeState.PROVEN, "turned_at": MONDAY}
    return samples.change(MONDAY, **{**usual, **changes})


def past(target: Target | None = None, wanted: dict[str, Any] | None = None, **changes: Any) -> PastChange:
    found = past_change_of(ended(target, wanted, **changes), CATALOGUE, NOW)
    assert found is not None
    return found


def test_types_counts_routing_and_configuration_of_both_sides_are_kept() -> None:
    found = past(models=("m",))
    assert (found.at, found.from_type, found.to_type) == (NOW, OLD_TYPE, NEW_TYPE)
    assert (found.from_count, found.to_count, found.from_routing) == (3, 2, "RANDOM")
    assert (found.models, found.variant, found.others) == (("m",), "", ())
    assert (found.to_config, past(plan=Plan(new_config="new")).to_config) == ("old", "new")
    assert (found.usd, found.configured_at, found.from_minimum) == (Decimal(0), None, None)


def test_of_several_variants_the_changed_one_is_named_and_models_are_nobodys() -> None:
    before = replace(BEFORE, variants=(SECOND, *FLEET))
    target = Target(
        NEW_TYPE, 2, others=(VariantTarget("w", NEW_TYPE, 1, Decimal(1)), VariantTarget("x", "t", 9, Decimal(1)))
    )
    found = past(target, before=before, models=("m",))
    assert (found.from_type, found.from_count, found.variant, found.models) == (OLD_TYPE, 3, "v", ())
    assert found.others == (PastVariant("w", FOUR_GPUS, NEW_TYPE, 4, 1),), "x did not run before"


def test_a_variant_that_is_gone_is_compared_with_the_first() -> None:
    found = past(before=replace(BEFORE, variants=(SECOND, *FLEET)), variant="gone")
    assert (found.from_type, found.from_count) == (FOUR_GPUS, 4)


def test_the_minimum_of_its_own_autoscaling_is_kept() -> None:
    own = ScalableTarget("endpoint/chat/variant/v", "sagemaker:variant:DesiredInstanceCount", 2, 4)
    other = replace(own, resource_id="endpoint/chat/variant/w", minimum=3)
    assert past(before=replace(BEFORE, scaling=(other, own))).from_minimum == 2
    assert past(before=replace(BEFORE, scaling=(other,))).from_minimum is None


def test_what_was_promised_and_told_is_kept_beside_what_came_of_it() -> None:
    promise = Promise(1.2, 0.8, "vllm", 1.5)
    wanted = {"promise": promise, "restores": True, "growth_usd": Decimal(5), "late_share": 0.02}
    found = past(None, wanted)
    assert (found.promised_slowdown, found.promised_bound, found.demand, found.framework) == (1.2, 1.5, 0.8, "vllm")
    assert (found.restores, found.grows, found.late_share) == (True, True, 0.02)
    bare = past()
    assert (bare.promised_slowdown, bare.promised_bound, bare.demand, bare.framework) == (None, None, None, "")
    assert (bare.restores, bare.grows) == (False, False)


def test_a_person_who_approved_is_remembered_and_the_automatic_mode_is_not() -> None:
    person = past(decided_by="slack:U1", approval_given_at=MONDAY)
    assert (person.approved_by, person.approved_at) == ("slack:U1", MONDAY)
    policy = past(decided_by="policy", approval_given_at=MONDAY)
    assert (policy.approved_by, policy.approved_at) == ("", None)


TEST = Plan(kind=PlanKind.SHADOW_TEST)
BACK, OVER = ChangeState.ROLLED_BACK, ChangeState.HANDED_OVER


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({}, PastEnd.PROVEN),
        ({"state": ChangeState.APPLIED}, PastEnd.APPLIED),
        ({"plan": TEST}, PastEnd.TESTED),
        ({"plan": TEST, "state": ChangeState.APPLIED}, PastEnd.TESTED),
        ({"plan": TEST, "state": BACK}, PastEnd.TESTED),
        ({"plan": TEST, "state": OVER}, PastEnd.TESTED),
        ({"plan": TEST, "state": OVER, "turned_at": None}, PastEnd.HANDED_OVER),
        ({"state": BACK}, PastEnd.ROLLED_BACK),
        ({"state": BACK, "turned_at": None, "failure": FailureClass.CAPACITY}, PastEnd.UPDATE_FAILED),
        ({"state": OVER}, PastEnd.HANDED_OVER),
    ],
)
def test_it_is_remembered_by_how_it_ended(changes: dict[str, Any], end: PastEnd) -> None:
    assert past(**changes).ended is end


def test_only_a_test_costs_something_of_its_own_and_names_what_ran_beside_it() -> None:
    tested = past(None, {"test_usd": Decimal(7)}, plan=TEST)
    assert (tested.usd, tested.configured_at) == (Decimal(7), BEFORE.modified_at)
    assert past(None, {"test_usd": Decimal(7)}).usd == 0


def test_the_failure_is_kept_and_why_it_went_back() -> None:
    found = past(state=BACK, failure=FailureClass.ALARM, back_for=FailureClass.ERRORS)
    assert (found.failure, found.back_for) == ("alarm", "errors")
    lost = past(plan=TEST, state=OVER, failure=FailureClass.ALARM)
    assert lost.failure == "unknown", "what failed while a test was taken away is no fault of its type"


@pytest.mark.parametrize(
    "changes",
    [
        {"before": None},
        {"plan": Plan(kind=PlanKind.DELETE)},
        {"state": ChangeState.REFUSED},
        {"state": BACK, "turned_at": None},
    ],
)
def test_what_never_served_teaches_nothing(changes: dict[str, Any]) -> None:
    assert past_change_of(ended(**changes), CATALOGUE, NOW) is None


AFTER_TEST = PassedTest("c-0", MONDAY, "it held")


@pytest.mark.parametrize(
    ("wanted", "changes", "risk"),
    [
        ({}, {}, 1),
        ({"untested_risk": Risk.HIGH}, {}, 3),
        ({"untested_risk": Risk.HIGH}, {"after": AFTER_TEST}, 1),
        ({"restores": True}, {}, None),
        ({"kind": OptionKind.PLACEMENT}, {}, None),
        ({}, {"plan": TEST}, None),
    ],
)
def test_the_risk_that_users_were_told_is_that_of_the_change_as_it_was_made(
    wanted: dict[str, Any], changes: dict[str, Any], risk: int | None
) -> None:
    assert past(None, wanted, **changes).stated_risk == risk


def test_a_request_is_compared_with_what_it_took_before() -> None:
    found = past(measured=FRESH, baseline=BASE)
    assert found.realised_slowdown == pytest.approx(1.4)
    assert found.latency_ratio == pytest.approx(1.5)


@pytest.mark.parametrize("name", ["measured", "baseline"])
@pytest.mark.parametrize("count", [{"gpu_requests": 199.0}, {}])
def test_gpu_seconds_are_compared_from_200_requests_on_each_side(name: str, count: dict[str, float]) -> None:
    sides: dict[str, Any] = {"measured": FRESH, "baseline": BASE, name: {"mean_s": 0.2, "gpu_s": 0.1, **count}}
    found = past(**sides)
    assert (found.realised_slowdown, found.latency_ratio is None) == (None, False)


@pytest.mark.parametrize("name", ["measured", "baseline"])
def test_what_was_measured_on_one_side_alone_has_no_ratio(name: str) -> None:
    for odd in ({"gpu_requests": 200.0}, {"gpu_requests": 200.0, "mean_s": 0.0, "gpu_s": 0.0}):
        sides: dict[str, Any] = {"measured": FRESH, "baseline": BASE, name: odd}
        found = past(**sides)
        assert (found.realised_slowdown, found.latency_ratio) == (None, None)


def test_metrics_of_several_types_together_teach_nothing_of_the_new_one() -> None:
    found = past(measured={**FRESH, "wake_s": 9.0}, baseline=BASE, instance_hours=10.0, unseen_hours=0.1)
    assert (found.realised_slowdown, found.latency_ratio, found.wake_s) == (None, None, None)


def test_gpu_seconds_of_the_same_type_or_of_several_variants_tell_no_slowdown() -> None:
    same = past(Target(OLD_TYPE, 1), measured=FRESH, baseline=BASE)
    pair = past(measured=FRESH, baseline=BASE, before=replace(BEFORE, variants=(*FLEET, SECOND)))
    for found in (same, pair):
        assert found.realised_slowdown is None
        assert found.latency_ratio == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("target", "percent", "gib"),
    [
        (Target(NEW_TYPE, 1), 50.0, 0.5),
        (Target(FOUR_GPUS, 1), 200.0, 0.5),
        (Target(NEW_TYPE, 1), 0.0, None),
        (Target("ml.c7i.xlarge", 1), 50.0, None),
        (Target("ml.unknown.xlarge", 1), 50.0, None),
        (Target(NEW_TYPE, 1, pools=(NEW_TYPE, OLD_TYPE)), 50.0, None),
    ],
)
def test_the_gpu_memory_that_was_seen_is_of_one_gpu_of_the_new_type(
    target: Target, percent: float, gib: float | None
) -> None:
    found = past(target, measured={"gpu_memory_percent": percent}).memory_gib
    hardware = CATALOGUE.find(NEW_TYPE)
    assert hardware is not None
    assert hardware.accelerator is not None
    assert found == (None if gib is None else pytest.approx(gib * hardware.accelerator.memory_gib))


DAYS = (DayCounts((0, 1, 2, 3, 4), (2,) * 24), DayCounts((5, 6), (2,) * 24))


def test_the_instances_of_a_schedule_or_of_target_tracking_are_kept_on_average() -> None:
    plain = past(None, {"mean_instances": 1.5})
    assert (plain.mean_instances, plain.tracked, plain.day_counts) == (None, False, ())
    tracked = past(Target(NEW_TYPE, 1, metric="m"), {"mean_instances": 1.5})
    assert (tracked.mean_instances, tracked.tracked) == (1.5, True)
    by_hour = past(Target(NEW_TYPE, 2, hourly_counts=(2,) * 24, day_counts=DAYS))
    assert (by_hour.mean_instances, by_hour.tracked, by_hour.day_counts) == (2, False, DAYS)


def test_the_longest_wait_for_a_start_is_kept() -> None:
    assert (past(measured={"wake_s": 240.0}).wake_s, past().wake_s) == (240.0, None)


# a shadow test

SHADOW = {
    "requests": 600.0,
    "hours": 2.0,
    "mean_s": 0.3,
    "live_mean_s": 0.2,
    "gpu_s": 0.2,
    "live_gpu_s": 0.1,
    "live_spread": 1.0,
}


def shadow_told(
    before: Before = BEFORE, figures: dict[str, float] | None = None, **changes: Any
) -> tuple[object, object]:
    found = past(plan=TEST, measured=figures or SHADOW, before=before, **changes)
    return found.realised_slowdown, found.latency_ratio


def run(*, queued: bool, worked: bool = True) -> tuple[object, object]:
    gpu = 0.2 if worked else None
    return shadow_ratios(ShadowRun(600.0, 2.0, 0.3, 0.2, gpu, 0.1, 1.0, queued=queued, alike=False))


ALONE = replace(BEFORE, variants=(replace(FLEET[0], count=1),))
LEAST_BUSY = replace(BEFORE, routing="LEAST_OUTSTANDING_REQUESTS")


def test_a_shadow_is_compared_with_production_in_the_same_hours() -> None:
    assert shadow_told() == run(queued=True)
    assert shadow_told(LEAST_BUSY) == run(queued=False) != run(queued=True)
    assert shadow_told(replace(ALONE, routing=LEAST_BUSY.routing)) == run(queued=True), "one instance has one queue"


def test_one_instance_that_scaled_out_meanwhile_was_not_alone() -> None:
    scaled: dict[str, Any] = {"counted_until": MONDAY + timedelta(hours=10), "instance_hours": 20.0}
    assert shadow_told(replace(ALONE, routing=LEAST_BUSY.routing), **scaled) == run(queued=False)


@pytest.mark.parametrize("name", ["gpu_s", "live_gpu_s"])
def test_gpu_seconds_of_a_test_tell_a_ratio_from_a_minute_on_each_side(name: str) -> None:
    assert shadow_told(figures={**SHADOW, "gpu_s": 0.2, "live_gpu_s": 0.1})[0] == pytest.approx(2.0), (
        "60 s of 600 requests"
    )
    assert shadow_told(figures={**SHADOW, name: 0.0999})[0] is None
    without = {key: value for key, value in SHADOW.items() if key != name}
    assert shadow_told(figures=without) == run(queued=True, worked=False)


def test_a_test_without_a_latency_tells_its_gpu_seconds_and_one_without_a_request_tells_nothing() -> None:
    assert shadow_told(figures={k: v for k, v in SHADOW.items() if not k.endswith("mean_s")}) == (
        pytest.approx(2.0),
        None,
    )
    assert shadow_told(figures={k: v for k, v in SHADOW.items() if k != "requests"}) == (None, None)


def test_gpu_seconds_are_samples_and_tell_a_ratio_from_twenty_requests_on() -> None:
    """However long each takes: 20 requests of ten seconds are enough, 19 are not."""
    long = {**SHADOW, "gpu_s": 10.0, "live_gpu_s": 5.0}
    assert shadow_told(figures={**long, "requests": 20.0})[0] == pytest.approx(2.0)
    assert shadow_told(figures={**long, "requests": 19.0})[0] is None
