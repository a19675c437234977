"""Other instances: another type is deployed, another count is not."""

import pytest

from rightsizer.changes.dimension import PlannedChange
from rightsizer.dimensions.instance_fleet import InstanceFleet
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.reason import Code
from tests.changes.test_preflight import TARGET
from tests.dimensions.kit import TYPE, planned, said

COUNT = OptionKind.INSTANCE_COUNT


@pytest.mark.parametrize(
    ("kind", "does"),
    [
        (OptionKind.INSTANCE_TYPE, "run on 2 × ml.g5.xlarge"),
        (OptionKind.TYPE_AND_COUNT, "run on 2 × ml.g5.xlarge"),
        (OptionKind.FEWER_GPUS, "run on 2 × ml.g5.xlarge, which has fewer GPUs of the same kind"),
        (COUNT, "run on 2 instances of ml.g5.xlarge"),
    ],
)
def test_each_kind_of_it_is_said_in_its_own_words(kind: OptionKind, does: str) -> None:
    back = "puts back the old count or autoscaling" if kind is COUNT else "deploys the old configuration again"
    assert said(InstanceFleet(), kind=kind) == (does, back)


def test_a_count_alone_is_one_call_there_and_back() -> None:
    found = planned(InstanceFleet(), Target(TYPE, 2), kind=COUNT)
    assert isinstance(found, PlannedChange)
    assert found.plan.turn is not None
    assert found.plan.back is not None
    counts = [step.params["DesiredWeightsAndCapacities"][0] for step in (found.plan.turn, found.plan.back)]
    assert [row["DesiredInstanceCount"] for row in counts] == [2, 3]
    assert not found.plan.new_config
    assert planned(InstanceFleet(), Target(TYPE, 2), count=2, kind=COUNT) is Code.CHANGED_SINCE


def test_a_count_of_an_autoscaled_fleet_becomes_its_bounds() -> None:
    found = planned(InstanceFleet(), Target(TYPE, 2, minimum=2, maximum=4), scaling=(TARGET,), kind=COUNT)
    assert isinstance(found, PlannedChange)
    assert {step.kind for step in found.plan.settle} == {StepKind.REGISTER_TARGET}
    assert found.plan.turn is None


def test_another_type_is_a_new_configuration() -> None:
    found = planned(InstanceFleet(), Target("ml.g6.xlarge", 3), deploys=True)
    assert isinstance(found, PlannedChange)
    assert found.plan.new_config
    assert found.plan.back_config
