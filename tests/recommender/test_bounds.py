"""Autoscaled endpoints: what the opt-in for bounds opens, and what it leaves with a person."""

from dataclasses import replace

from rightsizer.domain.endpoint import Objective
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate, Recommendation
from tests.recommender import kit
from tests.recommender.test_dimensions import SCALED, allowing, chosen, judged


def dearer(policy: Policy) -> Recommendation:
    """An autoscaled fleet on a type that is dearer than another one that serves as fast."""
    endpoint = replace(kit.endpoint("ml.g5.2xlarge", 4), objective=Objective(2.0, min_instances=1), scaling=(SCALED,))
    return judged(endpoint, policy, per_slot=200.0, memory=30.0)


def test_the_opt_in_for_bounds_leaves_the_type_of_an_autoscaled_endpoint_with_a_person() -> None:
    found = dearer(allowing(OptionKind.AUTOSCALING))
    assert chosen(found).target.instance_type != "ml.g5.2xlarge"
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.AUTOSCALED)


def test_the_opt_in_for_bounds_lowers_them_by_itself() -> None:
    endpoint = replace(kit.endpoint("ml.g6.xlarge", 4), objective=Objective(2.0, min_instances=1), scaling=(SCALED,))
    found = judged(endpoint, allowing(OptionKind.AUTOSCALING), per_slot=20.0)
    assert chosen(found).kind is OptionKind.AUTOSCALING
    assert found.gate_reason.code is not Code.AUTOSCALED


def test_a_minimum_that_the_owners_schedule_sets_again_is_lowered_by_nobody_else() -> None:
    ordered = replace(SCALED, scheduled=({"ScheduledActionName": "morning", "Schedule": "cron(0 7 * * ? *)"},))
    endpoint = replace(kit.endpoint("ml.g6.xlarge", 4), objective=Objective(2.0, min_instances=1), scaling=(ordered,))
    found = judged(endpoint, allowing(OptionKind.AUTOSCALING), per_slot=20.0)
    assert [option.kind for option in found.options if option.kind is OptionKind.AUTOSCALING] == []
    assert any("its owner lowers them there (morning)" in excluded.reason.sentence for excluded in found.excluded)
