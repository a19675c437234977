"""What a rollback deploys: large enough for the fleet of now, or as stored where that cannot be had."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rightsizer import catalog
from rightsizer.catalog import catalogue
from rightsizer.changes import rollback
from rightsizer.changes.rollback import RollbackInput
from rightsizer.domain.change import Change, ChangeState, Course, JournalEvent
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import ConfigSight, EndpointSight, Gone, LiveState, VariantSight
from rightsizer.domain.plan import Step, StepKind, VariantCount
from tests.changes.test_reconcile import BACK, CLEAR, NOW, SETTLE, WHO, change_after

CATALOGUE = catalogue(catalog.instances(), catalog.accelerators())
VARIANT = {
    "VariantName": "v",
    "ModelName": "m",
    "InstanceType": "ml.g5.4xlarge",
    "InitialInstanceCount": 1,
    "InitialVariantWeight": 1.0,
}
OLD = ConfigSight("old", {"EndpointConfigName": "old", "ProductionVariants": [VARIANT]}, NOW)
SIX = (VariantCount("v", "ml.g5.4xlarge", 6, 1.0),)
ROLLING = {"RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1}}}


def returning(*done: Step, **plan_fields: Any) -> Change:
    """A change that turned hours ago and is to be rolled back."""
    made = change_after(*done)
    plan = replace(made.plan, settle=(), restore=(), **plan_fields)
    return replace(made, course=Course.BACK, turned_at=NOW - timedelta(hours=5), plan=plan)


def live(count: int, config: str = "new", status: str = "InService") -> EndpointSight:
    return EndpointSight(status, config, NOW, "", "", (VariantSight("v", count, count, 1.0, 1.0),))


def test_nothing_is_decided_on_the_way_forward_without_the_endpoint_or_once_aws_was_asked() -> None:
    change = returning()
    assert rollback.settled_change(change, LiveState(live(6)), NOW) is None
    forward = replace(change, course=Course.FORWARD)
    for settled, seen in (
        (forward, live(6)),
        (change, Gone("chat")),
        (change, live(6, status="Updating")),
        (change, live(6, config="theirs")),
        (returning(BACK), live(6)),
    ):
        assert rollback.settled_change(settled, LiveState(seen), NOW) is settled


def test_a_fleet_that_grew_needs_as_many_and_one_that_did_not_needs_no_other_rollback() -> None:
    assert rollback.needed_counts(returning(), live(1), {}, NOW) == ()
    assert rollback.needed_counts(returning(), live(6), {}, NOW) == SIX
    assert rollback.needed_counts(returning(), live(6), {"ml.g5.4xlarge": 1}, NOW) == ()


def test_the_quotas_are_asked_for_only_where_they_count() -> None:
    assert not rollback.is_quota_needed(returning(), live(1), NOW)
    assert rollback.is_quota_needed(returning(), live(6), NOW)
    turn = change_after().plan.turn
    assert turn is not None
    rolling = [replace(step, params={**step.params, "DeploymentConfig": ROLLING}) for step in (turn, BACK)]
    assert rollback.is_quota_needed(returning(turn=rolling[0], back=rolling[1]), live(1), NOW)


def test_a_larger_rollback_deploys_a_clone_of_the_old_configuration() -> None:
    made = rollback.enlarge(returning(), live(6), SIX, RollbackInput({}, CATALOGUE, OLD), NOW)
    assert made.plan.grown == SIX
    assert made.plan.first_back == BACK
    assert made.plan.back is not None
    assert made.plan.back.params["EndpointConfigName"] == made.plan.back_config != "old"
    (created,) = [
        s for s in made.plan.prepare if s.kind is StepKind.CREATE_CONFIG and s.subject == made.plan.back_config
    ]
    assert [v["InitialInstanceCount"] for v in created.params["ProductionVariants"]] == [6]
    assert "runs v 6 x ml.g5.4xlarge" in made.journal[-1].detail
    assert rollback.stored_rollback(made.plan).back == BACK


def test_where_the_old_configuration_is_gone_the_stored_rollback_stands_for_good() -> None:
    made = rollback.enlarge(returning(), live(6), SIX, RollbackInput({}, CATALOGUE, None), NOW)
    assert made.plan.back == BACK
    assert (made.journal[-1].step, made.journal[-1].status) == (JournalEvent.WAY_BACK, "failed")
    assert "configuration old does not exist any more" in made.journal[-1].detail
    assert rollback.settled_change(made, LiveState(live(6)), NOW) is made


def test_counts_alone_go_back_without_a_configuration() -> None:
    made = rollback.enlarge(returning(new_config=""), live(6), SIX, RollbackInput({}, CATALOGUE), NOW)
    assert made.plan.back is not None
    assert made.plan.back.kind is StepKind.SET_CAPACITY


def test_the_autoscaling_that_is_met_is_stored_once_and_given_back_with_what_the_owner_added() -> None:
    change = change_after(CLEAR, SETTLE)
    change = replace(change, course=Course.BACK, state=ChangeState.APPLIED, turned_at=NOW - timedelta(hours=5))
    policy = {"PolicyName": "mine", "PolicyType": "TargetTrackingScaling", "PolicyARN": "arn:p"}
    target = ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], 3, 9, policies=(policy,))
    sight = LiveState(live(3), scaling=(target,))
    assert rollback.is_taking_autoscaling(change, sight)
    assert not rollback.is_taking_autoscaling(change, replace(sight, scaling=None))
    assert not rollback.is_taking_autoscaling(replace(change, course=Course.FORWARD), sight)
    met = rollback.with_autoscaling(change, sight, (), NOW)
    again = rollback.with_autoscaling(met, sight, (), NOW + timedelta(minutes=5))
    assert [e.step for e in again.journal].count(JournalEvent.MET) == 1
    (line,) = rollback.owner_additions(met)
    assert "put-scaling-policy" in line
    assert rollback.owner_additions(change) == ()
