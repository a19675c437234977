"""How a plan is made: what is remembered of before, what refuses it, and the plan of a shadow test."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes import plan
from rightsizer.changes.dimension import Approved, PlannedChange, Planning
from rightsizer.domain.change import Change
from rightsizer.domain.demand import Peak
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import Plan, PlanKind, StepKind, VariantCount
from rightsizer.domain.policy import ChangeLimits, ChangeWindow
from rightsizer.domain.preflight import Deferral
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.recommendation import Gate
from tests import samples
from tests.changes.test_plan_config import BODY, NEW_TYPE, OLD_TYPE, OWN, approved
from tests.changes.test_preflight import LIVE, NOW, VARIANT

ASKS = (Reason(Code.NOT_IN_PLACE, "the dimension was asked"),)
MAY = {"rightsizer:mode": "propose", "rightsizer:shadow-ok": "true"}


class Asked(Planning):
    """A dimension that keeps what it was given, and finds no steps."""

    given: Approved

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        self.given = approved
        return ASKS


def make(given: Approved, **seen: Any) -> PlannedChange | tuple[Reason, ...]:
    inputs = replace(given.inputs, **{"config": given.config, **seen})
    return plan.make_plan(given.change, inputs, given.catalogue, given.limits, Asked())


def test_the_dimension_gets_everything_that_ran_before() -> None:
    routed = {**BODY["ProductionVariants"][0], "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}}
    given = approved(body={**BODY, "ProductionVariants": [{"VariantName": "A"}, routed]})
    live = replace(LIVE, failure_reason="it failed once", variants=(replace(VARIANT, desired_count=5),))
    asked = Asked()
    seen = {"config": given.config, "endpoint": live, "scaling": (OWN,), "copies": {"c": 2}, "tags": MAY}
    limits = ChangeLimits(rewire_alarms=True)
    inputs = replace(given.inputs, customer_alarms=({"AlarmName": "a"},), **seen)  # type: ignore[arg-type]
    assert plan.make_plan(given.change, inputs, given.catalogue, limits, asked) == ASKS
    made = asked.given.before
    assert (made.config_name, made.modified_at) == ("old", LIVE.modified_at)
    assert (made.failure_reason, made.variants) == ("it failed once", (VariantCount("AllTraffic", OLD_TYPE, 5, 1.0),))
    assert (made.scaling, made.alarms, made.copies, made.tags) == ((OWN,), ({"AlarmName": "a"},), {"c": 2}, MAY)
    assert made.routing == "LEAST_OUTSTANDING_REQUESTS"
    assert (asked.given.change, asked.given.inputs, asked.given.limits) == (given.change, inputs, limits)


@pytest.mark.parametrize("body", [{}, {"ProductionVariants": [{"VariantName": "AllTraffic", "RoutingConfig": None}]}])
def test_routing_is_at_random_where_the_configuration_says_nothing(body: dict[str, Any]) -> None:
    given, asked = approved(), Asked()
    inputs = replace(given.inputs, config=replace(given.config, body=body))
    plan.make_plan(given.change, inputs, given.catalogue, given.limits, asked)
    assert asked.given.before.routing == "RANDOM"


def test_a_configuration_that_is_gone_gives_no_plan() -> None:
    said = (Reason(Code.CONFIGURATION_REPLACED, "configuration old does not exist any more"),)
    assert make(approved(), config=None) == said


ODD = replace(OWN, policies=({"PolicyName": "p", "PolicyType": "Odd"},))
UNREAD = replace(OWN, scheduled=({"ScheduledActionName": "n", "Schedule": "odd"},))


def test_autoscaling_that_could_not_be_given_back_gives_no_plan_but_for_what_takes_none_away() -> None:
    refused = make(approved(), scaling=(ODD,))
    assert isinstance(refused, tuple)
    assert refused[0].code is Code.UNKNOWN_FIELD
    assert make(approved(option={"kind": OptionKind.SCALE_IN}), scaling=(ODD,)) == ASKS
    alarms = ({"AlarmName": "a"},)
    assert make(approved(), customer_alarms=alarms) != ASKS
    assert make(approved(limits=ChangeLimits(rewire_alarms=True)), customer_alarms=alarms) == ASKS


def test_a_schedule_that_nobody_understands_refuses_a_deployment_and_nothing_else() -> None:
    assert make(approved(), scaling=(UNREAD,), deploys=True) != ASKS
    assert make(approved(), scaling=(UNREAD,), deploys=False) == ASKS
    tested = approved(judged={"gate": Gate.TEST}, tags=MAY)
    assert isinstance(make(tested, scaling=(UNREAD,), deploys=True), PlannedChange), "a test takes none away"


def test_an_option_that_counts_on_autoscaling_that_is_gone_never_reaches_its_dimension() -> None:
    refused = make(approved(Target(NEW_TYPE, 1, maximum=4)))
    assert isinstance(refused, tuple)
    assert "counts on autoscaling" in refused[0].sentence


def shadow(tags: dict[str, str] = MAY, count: int = 2, **known: Any) -> PlannedChange | tuple[Reason, ...]:
    judged = {"gate": Gate.TEST, **known.pop("judged", {})}
    return plan.plan_shadow_test(approved(count=count, judged=judged, tags=tags, **known))


def planned(found: PlannedChange | tuple[Reason, ...]) -> Plan:
    assert isinstance(found, PlannedChange), found
    return found.plan


def test_a_shadow_test_puts_one_instance_of_the_candidate_beside_the_fleet_and_keeps_its_counts() -> None:
    made = planned(shadow(option={"test_hours": 3.0}, judged={"peak": Peak(14, (0,))}))
    create, *_ = made.prepare
    (row,), (candidate,) = create.params["ProductionVariants"], create.params["ShadowProductionVariants"]
    assert (row["InstanceType"], row["InitialInstanceCount"]) == (OLD_TYPE, 2)
    assert (candidate["VariantName"], candidate["InstanceType"]) == ("AllTraffic-shadow", NEW_TYPE)
    assert (candidate["InitialInstanceCount"], candidate["InitialVariantWeight"]) == (1, 0.5)
    assert create.params["EndpointConfigName"] == made.new_config
    assert {"Key": "rightsizer:change", "Value": "c-1"} in create.params["Tags"]
    assert made.is_keeping_counts
    assert (made.kind, made.shadow, made.test_s, made.peak) == (
        PlanKind.SHADOW_TEST,
        "AllTraffic-shadow",
        3 * 3600,
        Peak(14, (0,)),
    )
    assert made.guardrail == "a shadow on ml.g5.xlarge for 3 h, then it is removed"


def test_a_shadow_test_goes_back_to_the_configuration_of_before_under_the_same_alarms() -> None:
    made = planned(shadow())
    assert made.back is not None
    assert made.turn is not None
    assert (made.back.params["EndpointConfigName"], made.back_config) == ("old", "old")
    for step in (made.turn, made.back):
        assert (step.params["EndpointName"], step.params["RetainAllVariantProperties"]) == ("chat", True)
    assert made.turn.params["EndpointConfigName"] == made.new_config
    assert [step.kind for step in made.prepare[:2]] == [StepKind.CREATE_CONFIG, StepKind.TAG_CONFIG]
    assert tuple(step.subject for step in made.prepare[2:]) == made.alarms
    assert made.after == (VariantCount("AllTraffic", OLD_TYPE, 2, 1.0),)
    (tidy,) = made.tidy
    assert (tidy.subject, tidy.params) == ("rightsizer-c-1", {"AlarmNames": list(made.alarms)})
    assert (made.clear, made.settle, made.restore) == ((), (), ())


def test_the_alarms_of_a_shadow_test_watch_its_configuration_and_end_its_deployment() -> None:
    found = shadow()
    made = planned(found)
    dimensions = made.prepare[2].params["Dimensions"]
    assert {row["Value"] for row in dimensions if row["Name"] == "EndpointConfigName"} == {made.new_config}
    assert made.turn is not None
    rollback = made.turn.params["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
    assert tuple(row["AlarmName"] for row in rollback) == made.alarms
    assert isinstance(found, PlannedChange)
    assert found.before.variants == made.after


def test_the_share_of_a_shadow_is_that_of_one_instance_of_the_fleet() -> None:
    for count, share in ((1, 1.0), (4, 0.25), (0, 1.0)):
        (candidate,) = planned(shadow(count=count)).prepare[0].params["ShadowProductionVariants"]
        assert candidate["InitialVariantWeight"] == share


def test_what_was_stopped_by_hand_stays_stopped_beside_a_shadow() -> None:
    body = {**BODY, "DataCaptureConfig": {"EnableCapture": True}}
    found = shadow(body=body, endpoint=replace(LIVE, capture_stopped=True))
    assert planned(found).prepare[0].params["DataCaptureConfig"]["EnableCapture"] is False
    assert isinstance(found, PlannedChange)
    assert found.notes[-1] == "data capture was stopped by hand and stays stopped"


def test_a_shadow_test_needs_one_variant_and_no_other_shadow() -> None:
    said = (
        Reason(
            Code.TEST_NOT_POSSIBLE, "chat has several variants or a shadow already; a shadow test needs one and none"
        ),
    )
    assert shadow(beside=(VariantCount("B", OLD_TYPE, 1, 1.0),)) == said
    assert shadow(body={**BODY, "ShadowProductionVariants": [{}]}) == said


def test_a_shadow_test_needs_the_tag_or_a_person_whom_no_tag_forbids_it() -> None:
    allows = "a shadow test serves each request twice; only the tag rightsizer:shadow-ok=true allows that"
    assert shadow({"rightsizer:mode": "auto"}) == (Reason(Code.TEST_NOT_ALLOWED, allows),)
    person = Decision(ProposalState.APPROVED, "slack:U1", NOW, test_first=True)
    given = approved(tags={}, deploys=True)
    given = replace(given, inputs=replace(given.inputs, proposal=replace(given.inputs.proposal, decision=person)))
    assert isinstance(plan.plan_shadow_test(given), PlannedChange)
    forbidden = replace(given, inputs=replace(given.inputs, tags={"rightsizer:shadow-ok": "false"}))
    (reason,) = plan.plan_shadow_test(forbidden)  # type: ignore[misc]
    assert "forbids" in reason.sentence


def test_a_candidate_or_a_fleet_that_cannot_be_cloned_gives_no_shadow_test() -> None:
    odd = {**BODY, "ProductionVariants": [{**BODY["ProductionVariants"][0], "Unheard": 1}]}
    refused = shadow(body=odd)
    assert isinstance(refused, tuple)
    assert refused[0].code is Code.UNKNOWN_FIELD
    unknown = plan.plan_shadow_test(approved(Target("ml.unheard.xlarge", 1), judged={"gate": Gate.TEST}, tags=MAY))
    assert isinstance(unknown, tuple)


@pytest.mark.parametrize(("asked", "hours"), [(None, 2.0), (0.2, 1.0), (3.5, 3.5), (40.0, 24.0)])
def test_a_test_lasts_as_long_as_the_option_says_between_an_hour_and_a_day(asked: float | None, hours: float) -> None:
    assert plan.test_hours(samples.option(test_hours=asked)) == hours


def test_the_name_of_a_shadow_fits_into_63_characters() -> None:
    assert plan.shadow_name("v") == "v-shadow"
    assert plan.shadow_name("v" * 63) == f"{'v' * 56}-shadow"
    assert plan.shadow_name(f"{'v' * 55}--w") == f"{'v' * 55}-shadow"


def waits(minutes: float, **known: Any) -> Deferral | None:
    change: Change = samples.change(NOW, **known)
    tested = Plan(kind=PlanKind.SHADOW_TEST, test_s=2 * 3600, peak=Peak(14, (0, 1, 2, 3, 4)))
    return plan.peak_deferral(change, tested, ChangeLimits(window=ChangeWindow()), NOW + timedelta(minutes=minutes))


def test_a_shadow_test_waits_for_the_busiest_hour_for_six_days() -> None:
    found = waits(0)
    assert found is not None
    assert NOW < found.until < NOW.replace(hour=14)
    assert found.sentence == (f"the shadow test begins on {time_text(found.until)} to see the busiest hour, 14:00 UTC")
    begins = (found.until - NOW).total_seconds() / 60
    assert waits(begins) is None
    assert waits(6 * 24 * 60) is not None
    assert waits(6 * 24 * 60 + 1) is None
    late = samples.change(NOW)
    assert plan.peak_deferral(late, Plan(test_s=3600), ChangeLimits(), NOW) is None, "no hour stands out"
