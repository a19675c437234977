"""The plan from what is approved and what runs, without an account: fleets, alarms, batches and both directions."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.changes.clone import CHANGE_TAG
from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.changes.plan import alarm_steps, autoscaling_steps, plan_new_config, tag_step
from rightsizer.changes.plan.capacity import (
    capacity_exchange,
    fleet_after,
    largest_new_count,
    live_counts,
    missing_autoscaling_reasons,
    wanted_count,
)
from rightsizer.domain.change import Change
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import ConfigSight, VariantSight
from rightsizer.domain.option import Option, OptionKind, Target, VariantTarget
from rightsizer.domain.plan import Before, Plan, StepKind, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code, Reason
from tests import samples
from tests.changes.test_preflight import LIVE, NOW, VARIANT, preflight_input, proposed
from tests.changes.test_rollback import CATALOGUE

OLD_TYPE, NEW_TYPE = "ml.g5.4xlarge", "ml.g5.xlarge"
ROW = {"VariantName": "AllTraffic", "ModelName": "m", "InitialVariantWeight": 1.0}
BODY: dict[str, Any] = {
    "EndpointConfigArn": "arn:aws:sagemaker:eu-west-1:1:endpoint-config/old",
    "EndpointConfigName": "old",
    "ProductionVariants": [{**ROW, "InstanceType": OLD_TYPE, "InitialInstanceCount": 2}],
}
POLICY = {
    "PolicyName": "track",
    "PolicyType": "TargetTrackingScaling",
    "TargetTrackingScalingPolicyConfiguration": {
        "TargetValue": 20.0,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
    },
}
OWN = ScalableTarget(
    "endpoint/chat/variant/AllTraffic", "sagemaker:variant:DesiredInstanceCount", 1, 4, policies=(POLICY,)
)
BARE = replace(OWN, policies=())
SECOND = replace(OWN, resource_id="endpoint/chat/variant/B")


def approved(
    target: Target | None = None,
    count: int = 2,
    *,
    body: dict[str, Any] | None = None,
    limits: ChangeLimits | None = None,
    change: dict[str, Any] | None = None,
    option: dict[str, Any] | None = None,
    beside: tuple[VariantCount, ...] = (),
    judged: dict[str, Any] | None = None,
    **seen: Any,
) -> Approved:
    """An approved change of the variant AllTraffic from `count` instances of ml.g5.4xlarge."""
    wanted = samples.option(target=target or Target(NEW_TYPE, 2), **(option or {}))
    made = samples.change(NOW, **{"option": wanted, "variant": "AllTraffic", **(change or {})})
    known = proposed(instance_type=OLD_TYPE, instance_count=count, **(judged or {}))
    inputs = preflight_input(option=wanted, proposal=known, **seen)
    fleet = (VariantCount("AllTraffic", OLD_TYPE, count, 1.0), *beside)
    config = ConfigSight("old", body or BODY, NOW)
    return Approved(made, inputs, config, Before("old", NOW, "", fleet), CATALOGUE, limits or ChangeLimits())


def new_config(given: Approved) -> Plan:
    found = plan_new_config(given)
    assert isinstance(found, PlannedChange), found
    assert found.before is given.before
    return found.plan


def test_what_runs_is_read_with_the_types_of_its_configuration_and_the_live_counts_and_weights() -> None:
    live = replace(
        LIVE, variants=(replace(VARIANT, desired_count=3, desired_weight=0.5), VariantSight("B", 1, 1, 1, 1))
    )
    assert live_counts(live, ConfigSight("old", BODY, NOW)) == (
        VariantCount("AllTraffic", OLD_TYPE, 3, 0.5),
        VariantCount("B", "", 1, 1),
    )
    untyped = ConfigSight("old", {"ProductionVariants": [{"VariantName": "AllTraffic"}]}, NOW)
    assert [v.instance_type for v in live_counts(live, untyped)] == ["", ""]
    assert [v.instance_type for v in live_counts(live, ConfigSight("old", {}, NOW))] == ["", ""]


def test_the_changed_variant_gets_the_target_and_every_other_one_what_is_said_of_it() -> None:
    other, third = VariantCount("B", OLD_TYPE, 4, 0.5), VariantCount("C", OLD_TYPE, 1, 0.25)
    target = Target(NEW_TYPE, 3, others=(VariantTarget("B", "ml.g6.xlarge", 5, Decimal(1)),))
    assert fleet_after(approved(target, beside=(other, third))) == (
        VariantCount("AllTraffic", NEW_TYPE, 3, 1.0),
        VariantCount("B", "ml.g6.xlarge", 5, 0.5),
        third,
    )


@pytest.mark.parametrize(
    ("live", "target", "runs"),
    [
        (2, Target(NEW_TYPE, 1), 1),
        (3, Target(NEW_TYPE, 1), 2),
        (4, Target(NEW_TYPE, 4), 8),
        (9, Target(NEW_TYPE, 2), 4),
        (1, Target(NEW_TYPE, 2, minimum=3), 3),
        (4, Target(NEW_TYPE, 2, maximum=2), 2),
        (0, Target(NEW_TYPE, 1, minimum=0, maximum=0), 1),
    ],
)
def test_an_autoscaled_fleet_keeps_the_share_that_it_has_now_within_the_new_bounds(
    live: int, target: Target, runs: int
) -> None:
    given = approved(target, scaling=(OWN,))
    found = wanted_count(VariantCount("AllTraffic", OLD_TYPE, live, 0.5), given.change, given.inputs)
    assert found == VariantCount("AllTraffic", NEW_TYPE, runs, 0.5)


def test_an_autoscaled_fleet_that_nobody_was_asked_about_has_its_maximum_while_autoscaling_is_away() -> None:
    given = approved(Target(NEW_TYPE, 2, minimum=1, maximum=4), scaling=(OWN,))
    by_itself = replace(given.inputs.proposal, decision=Decision(ProposalState.APPROVED, "policy", NOW))
    live, inputs = VariantCount("AllTraffic", OLD_TYPE, 1, 1.0), replace(given.inputs, proposal=by_itself)
    assert wanted_count(live, given.change, inputs).count == 4
    back = replace(given.change, option=replace(given.change.option, restores=True))
    assert wanted_count(live, back, inputs).count == 1


def test_the_exchange_is_that_of_the_counts_that_were_decided_on() -> None:
    given = approved(Target(NEW_TYPE, 3))
    assert (capacity_exchange(given.change, given.inputs).old, capacity_exchange(given.change, given.inputs).new) == (
        2,
        3,
    )
    none = approved(Target(NEW_TYPE, 0), 0)
    assert (capacity_exchange(none.change, none.inputs).old, capacity_exchange(none.change, none.inputs).new) == (1, 1)


def test_autoscaling_may_ask_for_as_many_of_a_new_type_as_its_new_bounds_allow() -> None:
    def largest(target: Target, *scaling: ScalableTarget) -> int:
        given = approved(target, scaling=scaling)
        return largest_new_count(given.change, given.inputs)

    assert largest(Target(NEW_TYPE, 4), OWN) == 8
    assert largest(Target(NEW_TYPE, 4), SECOND) == largest(Target(NEW_TYPE, 4)) == 0
    assert largest(Target(OLD_TYPE, 4), OWN) == 0, "that type runs today"


def misses(target: Target, *scaling: ScalableTarget, **option: Any) -> tuple[Reason, ...]:
    given = approved(target, scaling=scaling, option=option)
    return missing_autoscaling_reasons(given.change, given.inputs)


GROWS = Target(NEW_TYPE, 2, minimum=1, maximum=4)


def test_an_option_that_counts_on_autoscaling_is_refused_where_there_is_none() -> None:
    said = (
        "this counts on autoscaling up to 4 instances, and variant AllTraffic of chat is not autoscaled: it would stay"
        " at 2"
    )
    assert misses(GROWS) == misses(GROWS, SECOND) == (Reason(Code.CHANGED_SINCE, said),)
    by_hour = replace(GROWS, hourly_counts=(1,) * 23 + (3,))
    assert misses(by_hour)[0].sentence.endswith("it would stay at 3")
    assert misses(GROWS, BARE) != (), "a target without a policy adds nothing"


def test_an_option_whose_load_is_served_without_autoscaling_needs_none() -> None:
    for target in (
        Target(NEW_TYPE, 2),
        replace(GROWS, maximum=2),
        replace(GROWS, hourly_counts=(4,) * 24),
        replace(GROWS, metric="SageMakerVariantInvocationsPerInstance"),
    ):
        assert misses(target) == ()
    assert misses(GROWS, OWN) == ()
    assert misses(GROWS, restores=True) == misses(GROWS, kind=OptionKind.SCALE_TO_ZERO) == ()


def test_a_schedule_alone_moves_the_bounds_of_another_type_and_not_of_the_same() -> None:
    scheduled = replace(BARE, scheduled=({"ScheduledActionName": "day"},))
    assert misses(GROWS, scheduled) == ()
    assert misses(replace(GROWS, instance_type=OLD_TYPE), scheduled) != ()
    assert misses(GROWS, BARE) != ()


def test_several_variants_are_changed_together_only_where_none_is_autoscaled() -> None:
    pair = Target(NEW_TYPE, 2, others=(VariantTarget("B", NEW_TYPE, 1, Decimal(1)),))
    tail = "of chat is autoscaled since this was decided, and such a variant is changed alone"
    assert misses(pair) == ()
    assert misses(pair, SECOND) == (Reason(Code.CHANGED_SINCE, f"B {tail}"),)
    assert misses(pair, OWN) == (Reason(Code.CHANGED_SINCE, f"AllTraffic {tail}"),)
    three = replace(pair, others=(*pair.others, VariantTarget("C", NEW_TYPE, 1, Decimal(1))))
    third = replace(OWN, resource_id="endpoint/chat/variant/C")
    assert misses(three, SECOND, third)[0].sentence == f"B, C {tail}"


def test_a_deployment_goes_there_under_alarms_and_back_to_what_ran() -> None:
    plan = new_config(approved())
    create, tag, *watched = plan.prepare
    assert (create.kind, create.subject, create.params["EndpointConfigName"]) == (
        StepKind.CREATE_CONFIG,
        plan.new_config,
        plan.new_config,
    )
    assert {"Key": CHANGE_TAG, "Value": "c-1"} in create.params["Tags"]
    assert tag == tag_step(ConfigSight("old", BODY, NOW), "c-1")
    assert tag.params == {"ResourceArn": BODY["EndpointConfigArn"], "Tags": [{"Key": CHANGE_TAG, "Value": "c-1"}]}
    assert tuple(step.subject for step in watched) == plan.alarms
    assert len(plan.alarms) > 1
    assert plan.turn is not None
    assert plan.back is not None
    assert (plan.turn.params["EndpointConfigName"], plan.back.params["EndpointConfigName"]) == (plan.new_config, "old")
    assert plan.turn.params["EndpointName"] == plan.back.params["EndpointName"] == "chat"
    assert (plan.turn.subject, plan.back.subject) == (f"chat to {plan.new_config}", "chat to old")
    assert {
        name["AlarmName"] for name in plan.turn.params["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
    } == set(plan.alarms)
    assert "DeploymentConfig" not in plan.back.params, "the way forward did not roll"
    assert (plan.back_config, plan.after, plan.exchange) == (
        "old",
        (VariantCount("AllTraffic", NEW_TYPE, 2, 1.0),),
        (2, 2),
    )
    (tidy,) = plan.tidy
    assert (tidy.subject, tidy.params) == ("rightsizer-c-1", {"AlarmNames": list(plan.alarms)})
    assert plan.guardrail.startswith("canary of 1 of 2 instances")
    assert (plan.clear, plan.settle, plan.restore) == ((), (), ())


def test_a_deployment_says_that_its_alarms_may_see_nothing_before_it_is_over() -> None:
    found = plan_new_config(approved())
    assert isinstance(found, PlannedChange)
    assert found.notes[-1].endswith("cannot fire, and the variant's own metrics are judged 15 and 30 minutes after it")


def test_autoscaling_is_taken_away_and_comes_back_for_the_new_capacity_or_as_it_was() -> None:
    plan = new_config(approved(Target(NEW_TYPE, 4), scaling=(OWN, SECOND)))
    assert [step.kind for step in plan.clear] == [StepKind.DEREGISTER_TARGET] * 2
    sizes = [
        [
            (s.subject[-1], s.params["MinCapacity"], s.params["MaxCapacity"])
            for s in steps
            if s.kind is StepKind.REGISTER_TARGET
        ]
        for steps in (plan.settle, plan.restore)
    ]
    assert sizes == [[("c", 2, 8), ("B", 1, 4)], [("c", 1, 4), ("B", 1, 4)]]


def test_alarms_that_start_policies_are_wired_anew_in_both_directions() -> None:
    alarm = {"AlarmName": "cpu", "AlarmActions": []}
    given = approved(scaling=(OWN,), customer_alarms=(alarm,))
    for steps in autoscaling_steps(given.change, given.inputs):
        assert (steps[-1].kind, steps[-1].subject) == (StepKind.PUT_ALARM, "cpu")


def test_a_count_or_a_weight_that_moved_since_the_configuration_was_written_goes_back_by_a_clone() -> None:
    for given in (
        approved(count=3),
        replace_weight(approved()),
    ):
        plan = new_config(given)
        assert plan.back_config not in ("old", plan.new_config)
        clone = next(step for step in plan.prepare[1:] if step.kind is StepKind.CREATE_CONFIG)
        assert clone.subject == plan.back_config
        (row,) = clone.params["ProductionVariants"]
        (stored,) = given.before.variants
        assert (row["InstanceType"], row["InitialInstanceCount"], row["InitialVariantWeight"]) == (
            OLD_TYPE,
            stored.count,
            stored.weight,
        )
        assert {"Key": CHANGE_TAG, "Value": "c-1"} in clone.params["Tags"]
        assert plan.back is not None
        assert plan.back.params["EndpointConfigName"] == plan.back_config


def replace_weight(given: Approved) -> Approved:
    fleet = tuple(replace(v, weight=0.5) for v in given.before.variants)
    return replace(given, before=replace(given.before, variants=fleet))


def test_data_capture_that_was_stopped_by_hand_stays_stopped_in_both_clones() -> None:
    body = {**BODY, "DataCaptureConfig": {"EnableCapture": True}}
    for stopped in (True, False):
        plan = new_config(approved(count=3, body=body, endpoint=replace(LIVE, capture_stopped=stopped)))
        made = [step.params["DataCaptureConfig"]["EnableCapture"] for step in plan.prepare[:2]]
        assert made == [not stopped] * 2


def test_what_runs_already_and_what_cannot_be_cloned_give_no_plan() -> None:
    same = {**BODY, "MetricsConfig": {"EnableEnhancedMetrics": True, "EnableDetailedObservability": False}}
    found = plan_new_config(approved(Target(OLD_TYPE, 2), body=same))
    assert found == (Reason(Code.CHANGED_SINCE, "chat already runs what is asked"),)
    odd = {**BODY, "ProductionVariants": [{**BODY["ProductionVariants"][0], "Unheard": 1}]}
    refused = plan_new_config(approved(body=odd))
    assert isinstance(refused, tuple)
    assert refused[0].code is Code.UNKNOWN_FIELD


def test_a_quota_without_room_for_both_fleets_rolls_forward_and_back() -> None:
    body = {**BODY, "ProductionVariants": [{**BODY["ProductionVariants"][0], "InitialInstanceCount": 4}]}
    plan = new_config(approved(Target(NEW_TYPE, 4), 4, body=body, quota=3))
    assert plan.turn is not None
    assert plan.back is not None
    assert "RollingUpdatePolicy" in plan.turn.params["DeploymentConfig"]
    assert "RollingUpdatePolicy" in plan.back.params["DeploymentConfig"]
    unknown = new_config(approved(Target(NEW_TYPE, 4), 4, body=body, quota=None))
    assert unknown.turn is not None
    assert "RollingUpdatePolicy" not in unknown.turn.params["DeploymentConfig"]
    same = new_config(approved(Target(OLD_TYPE, 3), 4, body=body, quota=6))
    assert same.turn is not None
    assert "RollingUpdatePolicy" in same.turn.params["DeploymentConfig"], "what runs takes up the quota of its type"
    room = new_config(approved(Target(OLD_TYPE, 3), 4, body=body, quota=7))
    assert room.turn is not None
    assert "RollingUpdatePolicy" not in room.turn.params["DeploymentConfig"]


def test_aws_ignores_guardrails_for_marketplace_images_and_inf1() -> None:
    assert new_config(approved(marketplace=True)).guardrail == (
        "all at once without baking: AWS ignores guardrails for Marketplace images"
    )
    given = approved()
    fleet = tuple(replace(v, instance_type="ml.inf1.xlarge") for v in given.before.variants)
    before = replace(given, before=replace(given.before, variants=fleet))
    assert new_config(before).guardrail == "all at once without baking: AWS ignores guardrails for Inf1 instances"


def test_a_linear_deployment_may_cost_no_more_than_the_day_allows() -> None:
    body = {**BODY, "ProductionVariants": [{**BODY["ProductionVariants"][0], "InitialInstanceCount": 10}]}
    for usd, others, is_linear in ((12, 0, True), (11, 0, False), (100, 500, False)):
        pair = (VariantTarget("B", NEW_TYPE, others, Decimal(1)),) if others else ()
        limits = ChangeLimits(usd_per_day=Decimal(usd))
        plan = new_config(approved(Target(NEW_TYPE, 10, others=pair), 10, body=body, limits=limits, quota=None))
        assert plan.guardrail.startswith("linear") is is_linear


BASE = {"p95_s": 0.2, "errors_per_minute": 9.0}


def thresholds(option: Option, objective: float | None = None, **baseline: float) -> dict[str, float]:
    change = samples.change(NOW, option=option, variant="v", objective_p95_s=objective, baseline={**BASE, **baseline})
    steps = alarm_steps(change, "cfg", (VariantCount("v", NEW_TYPE, 1, 1.0),), ChangeLimits())
    return {step.subject.rpartition("-")[2]: step.params["Threshold"] for step in steps}


def test_alarms_watch_errors_and_slowness_and_a_restore_no_slowness() -> None:
    plain, restore = samples.option(), samples.option(restores=True)
    assert set(thresholds(plain)) == {"5xx", "p95", "errors"}
    assert thresholds(plain, 0.5)["p95"] == 500_000
    assert set(thresholds(restore)) == set(thresholds(restore, 0.5)) == {"5xx", "errors"}
    assert thresholds(restore)["5xx"] == thresholds(plain)["5xx"] > thresholds(plain, errors_per_minute=0.0)["5xx"]


def test_growth_is_undone_for_slowness_only_far_beyond_what_was_before() -> None:
    grows = samples.option(growth_usd=Decimal(9))
    assert thresholds(grows, 0.5)["p95"] == 500_000, "the objective is more than twice what was"
    assert thresholds(grows, 0.5, p95_s=0.4)["p95"] == 800_000
    assert thresholds(samples.option(), 0.5, p95_s=0.2)["p95"] == 500_000


def test_alarms_are_named_after_the_change_and_watch_its_configuration() -> None:
    change: Change = samples.change(NOW, variant="v")
    steps = alarm_steps(change, "cfg", (VariantCount("v", NEW_TYPE, 1, 1.0),), ChangeLimits(alarm_prefix="mine-"))
    assert steps[0].subject.startswith("mine-c-1-v")
    watched = {row["Name"]: row["Value"] for row in steps[0].params["Dimensions"]}
    assert watched == {"EndpointName": "chat", "VariantName": "v", "EndpointConfigName": "cfg"}
