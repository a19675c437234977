"""Inference components that may go to no copy: what the plan deploys and sets, how it goes back, what refuses it."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.autoscaling import policies
from rightsizer.changes.clone import CHANGE_TAG
from rightsizer.changes.dimension import PlannedChange
from rightsizer.changes.plan.components import plan_component_sleep
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import Target
from rightsizer.domain.plan import Plan, Step, StepKind, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Code, Reason
from tests.changes.test_plan_config import BODY, OLD_TYPE, approved
from tests.changes.test_preflight import LIVE, NOW

MODE = {"rightsizer:mode": "propose"}
SMALL = ComponentSight("small", "arn:small", "chat", "InService", NOW, 3, ({"ModelName": "m"},), tags=MODE)
LARGE = replace(SMALL, name="large", arn="arn:large", desired=1)
BOTH = {"small": SMALL, "large": LARGE}
OWN = ScalableTarget(
    "inference-component/small",
    "sagemaker:inference-component:DesiredCopyCount",
    2,
    5,
    policies=({"PolicyName": "theirs", "PolicyType": "TargetTrackingScaling"},),
)
SAID = "no instance while nobody calls: alarms on requests without capacity start the first copy of each component"
ASLEEP = {"small": replace(OWN, minimum=0), "large": replace(OWN, resource_id="inference-component/large", minimum=0)}


def body(least: int | None = 1, status: str = "ENABLED", rows: int = 1, **more: Any) -> dict[str, Any]:
    scaling = {"Status": status, "MaxInstanceCount": 4, "MinInstanceCount": least}
    row = {**BODY["ProductionVariants"][0], "ManagedInstanceScaling": scaling}
    return {**BODY, "ProductionVariants": [row, *({**row, "VariantName": f"V{n}"} for n in range(1, rows))], **more}


def planned(**changes: Any) -> PlannedChange | tuple[Reason, ...]:
    """What comes of an endpoint of two components that its owner lets start cold."""
    usual = {"components": BOTH, "body": body(), "tags": {"rightsizer:cold-start-ok": "true"}}
    return plan_component_sleep(approved(Target("", 0), **{**usual, **changes}))


def plan_of(**changes: Any) -> Plan:
    found = planned(**changes)
    assert isinstance(found, PlannedChange), found
    return found.plan


def why(**changes: Any) -> list[tuple[Code, str]]:
    found = planned(**changes)
    assert not isinstance(found, PlannedChange)
    return [(reason.code, reason.sentence) for reason in found]


def component_steps(seen: ComponentSight, own: ScalableTarget | None = None) -> tuple[list[Step], list[Step]]:
    alarm = f"rightsizer-wake-{seen.name}"
    forward, back = policies.component_sleep_steps(seen.name, own, seen.desired, alarm, "c-1")
    return [*forward], [*back]


def copies(seen: ComponentSight) -> Step:
    asked = {"InferenceComponentName": seen.name, "DesiredRuntimeConfig": {"CopyCount": seen.desired}}
    return Step(StepKind.SET_COPIES, seen.name, asked)


def test_the_configuration_is_deployed_with_no_least_instance_and_nothing_else_changed() -> None:
    plan = plan_of()
    create, tag, *alarms = plan.prepare
    (row,) = create.params["ProductionVariants"]
    scaling = {"Status": "ENABLED", "MaxInstanceCount": 4, "MinInstanceCount": 0}
    assert row == {**body()["ProductionVariants"][0], "ManagedInstanceScaling": scaling}
    assert create.params["EndpointConfigName"] == create.subject == plan.new_config
    assert create.params["Tags"] == [{"Key": CHANGE_TAG, "Value": "c-1"}]
    assert (tag.kind, tag.subject, tag.params["Tags"]) == (StepKind.TAG_CONFIG, "old", create.params["Tags"])
    assert {step.kind for step in alarms} == {StepKind.PUT_ALARM}
    assert plan.alarms == tuple(step.subject for step in alarms)
    watched = {row["Value"] for row in alarms[0].params["Dimensions"] if row["Name"] == "EndpointConfigName"}
    assert watched == {plan.new_config}


def test_counts_stay_as_they_are_live_there_and_back() -> None:
    plan = plan_of()
    assert plan.turn is not None
    assert plan.back is not None
    assert (plan.turn.params["EndpointConfigName"], plan.back.params["EndpointConfigName"]) == (plan.new_config, "old")
    assert plan.turn.params["RetainAllVariantProperties"] is plan.back.params["RetainAllVariantProperties"] is True
    assert plan.after == (VariantCount("AllTraffic", OLD_TYPE, 2, 1.0),)
    assert plan.guardrail.endswith(f"; counts stay as they are live; {SAID}")
    assert {a["AlarmName"] for a in plan.turn.params["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]} == set(
        plan.alarms
    )


def test_the_guardrail_is_that_of_a_fleet_that_is_exchanged_for_its_like() -> None:
    assert plan_of(quota=None).guardrail.startswith("canary of 1 of 2 instances")
    ignored = "all at once without baking: AWS ignores guardrails for Marketplace images"
    assert plan_of(marketplace=True).guardrail.startswith(ignored)


def test_each_component_may_sleep_and_wake_and_gets_its_copies_back() -> None:
    plan = plan_of()
    (large, large_back), (small, small_back) = component_steps(LARGE), component_steps(SMALL)
    assert list(plan.settle) == [*large, *small]
    assert list(plan.restore) == [*large_back, copies(LARGE), *small_back, copies(SMALL)]


def test_autoscaling_of_the_owner_gives_the_copies_back_itself() -> None:
    variant = replace(OWN, resource_id="endpoint/chat/variant/AllTraffic")
    plan = plan_of(scaling=(OWN, variant))
    (large, large_back), (small, small_back) = component_steps(LARGE), component_steps(SMALL, OWN)
    assert list(plan.settle) == [*large, *small]
    assert list(plan.restore) == [*large_back, copies(LARGE), *small_back]


def test_the_alarms_that_wake_have_the_prefix_of_the_stack() -> None:
    plan = plan_of(limits=ChangeLimits(alarm_prefix="mine-"))
    wakes = [step.subject for step in plan.settle if step.kind is StepKind.PUT_ALARM]
    assert wakes == ["mine-wake-large", "mine-wake-small"]


def test_a_configuration_that_lets_every_instance_go_already_is_not_deployed() -> None:
    for scaling in ((), (ASLEEP["small"],)):
        plan = plan_of(body=body(0), scaling=scaling)
        assert (plan.turn, plan.back, plan.prepare, plan.new_config) == (None, None, (), "")
        assert plan.guardrail == f"{SAID}; nothing is deployed"
        assert plan.after == (VariantCount("AllTraffic", OLD_TYPE, 2, 1.0),)
        assert len(plan.settle) > len(plan.restore) > 0


def test_notes_of_the_clone_and_a_capture_that_somebody_stopped_are_kept() -> None:
    capturing = body(DataCaptureConfig={"EnableCapture": True})
    found = planned(body=capturing, endpoint=replace(LIVE, capture_stopped=True))
    assert isinstance(found, PlannedChange)
    assert found.notes[-1] == "data capture was stopped by hand and stays stopped"
    assert found.plan.prepare[0].params["DataCaptureConfig"]["EnableCapture"] is False
    assert found.before.config_name == "old"


def test_what_cannot_be_cloned_is_refused() -> None:
    assert [code for code, _ in why(body=body(Unheard=1))] == [Code.UNKNOWN_FIELD]


@pytest.mark.parametrize("tags", [{}, {"rightsizer:cold-start-ok": "false"}])
def test_without_the_owners_word_on_cold_starts_nothing_sleeps(tags: dict[str, str]) -> None:
    sentence = "the tag rightsizer:cold-start-ok=true is gone, and calls fail while the first instance starts"
    assert why(tags=tags) == [(Code.NOT_OPTED_IN, sentence)]


def test_the_owners_word_may_be_written_in_capitals() -> None:
    assert plan_of(tags={"rightsizer:cold-start-ok": "TRUE"}).settle


def test_each_variant_would_need_calls_of_its_own() -> None:
    sentence = "chat has several variants, and each would have to be woken by its own calls"
    assert why(beside=(VariantCount("V1", OLD_TYPE, 1, 1.0),), body=body(rows=2)) == [(Code.OTHER_KIND, sentence)]


def test_an_endpoint_without_a_component_has_nothing_that_could_sleep() -> None:
    sentence = "chat has no inference component that could sleep"
    assert why(components={}, body=body(0)) == [(Code.NOT_APPLICABLE, sentence)]


def test_ten_components_sleep_by_one_change_and_eleven_do_not() -> None:
    def several(count: int) -> dict[str, ComponentSight]:
        return {f"c{n}": replace(SMALL, name=f"c{n}") for n in range(count)}

    assert plan_of(components=several(10)).settle
    sentence = "chat has 11 components, and one change covers 10"
    assert why(components=several(11)) == [(Code.NOT_APPLICABLE, sentence)]


NO_SCALING = (
    Code.NOT_APPLICABLE,
    "the configuration of chat has no managed instance scaling that is enabled, "
    "without which no instance leaves with the copies",
)


@pytest.mark.parametrize("scaling", [None, {}, {"Status": "DISABLED", "MinInstanceCount": 1}])
def test_instances_leave_only_with_managed_scaling_that_is_enabled(scaling: dict[str, Any] | None) -> None:
    row = {**body()["ProductionVariants"][0], "ManagedInstanceScaling": scaling}
    assert why(body={**BODY, "ProductionVariants": [row]}) == [NO_SCALING]


def test_a_configuration_without_a_minimum_is_deployed_with_none() -> None:
    (row,) = plan_of(body=body(None)).prepare[0].params["ProductionVariants"]
    assert row["ManagedInstanceScaling"]["MinInstanceCount"] == 0


SUSPENDED = replace(OWN, suspended={"DynamicScalingInSuspended": False, "DynamicScalingOutSuspended": True})
ADAPTER = replace(SMALL, specifications=({"BaseInferenceComponentName": "large"},))


@pytest.mark.parametrize(
    ("seen", "own", "code", "sentence"),
    [
        (
            ADAPTER,
            None,
            Code.NOT_APPLICABLE,
            "component small is an adapter of large, and whether its calls wake that one is not known",
        ),
        (
            replace(SMALL, status="Updating"),
            None,
            Code.CHANGED_SINCE,
            "component small is being changed (Updating)",
        ),
        (
            SMALL,
            SUSPENDED,
            Code.AUTOSCALED,
            "autoscaling of component small is suspended, so that nothing would wake it",
        ),
        (
            replace(SMALL, tags={**MODE, "rightsizer:mode": "off"}),
            OWN,
            Code.NOT_OPTED_IN,
            "the tag rightsizer:mode of component small is off, and its copies would change",
        ),
    ],
)
def test_a_component_that_cannot_be_woken_or_set_again_is_named_with_the_reason(
    seen: ComponentSight, own: ScalableTarget | None, code: Code, sentence: str
) -> None:
    components = {"small": seen, "large": LARGE}
    assert why(components=components, scaling=() if own is None else (own,)) == [(code, sentence)]


def test_autoscaling_that_is_not_suspended_stands_against_nothing() -> None:
    assert plan_of(scaling=(replace(SUSPENDED, suspended=dict.fromkeys(SUSPENDED.suspended, False)),)).settle


@pytest.mark.parametrize(
    ("own", "untagged", "is_allowed"),
    [(None, False, False), (None, True, True), (OWN, False, True), (OWN, True, True)],
)
def test_an_untagged_component_sleeps_with_autoscaling_of_its_own_or_where_the_stack_says_so(
    own: ScalableTarget | None, untagged: bool, is_allowed: bool
) -> None:
    found = planned(
        components={"small": replace(SMALL, tags={}), "large": LARGE},
        scaling=() if own is None else (own,),
        limits=ChangeLimits(change_untagged=untagged),
    )
    assert isinstance(found, PlannedChange) is is_allowed


def test_reasons_of_all_components_are_told_by_their_names() -> None:
    moving = {name: replace(seen, status="Creating") for name, seen in BOTH.items()}
    told = [sentence.split()[1] for _, sentence in why(components=moving)]
    assert told == ["large", "small"]


def test_what_scales_to_zero_already_is_left_as_it_is() -> None:
    both = tuple(ASLEEP.values())
    assert why(body=body(0), scaling=both) == [(Code.CHANGED_SINCE, "chat scales to zero already")]
    assert plan_of(body=body(1), scaling=both).new_config, "the configuration still keeps an instance"
    assert plan_of(body=body(0), scaling=(ASLEEP["small"], replace(ASLEEP["large"], minimum=1))).settle
