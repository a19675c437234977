"""What follows a change of type by the same approval: counts by the hour on the new type, were it in force today."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.history import History
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.policy import TYPE_AND_COUNT, Policy
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.recommender.context import AccountInputs, EvaluationContext
from rightsizer.recommender.stages import with_later_stages
from rightsizer.recommender.workload import evaluation_context
from tests import samples
from tests.recommender import kit
from tests.recommender.test_late_requests import _morning, day

NEW = "ml.g6.2xlarge"


def context(policy: Policy | None = None) -> EvaluationContext:
    """Sixteen instances, busy for half of each day and idle in the other half; two may run alone at night."""
    days = [day(number, 0.0, 16.0, crowd=8.0) for number in range(7)]
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), policy or Policy(), _morning(7))
    endpoint = kit.endpoint(count=16, p95_s=12.0)
    endpoint = replace(endpoint, objective=replace(endpoint.objective, min_instances=2))
    found = evaluation_context(endpoint, days, inputs)
    assert found is not None
    return found


def first(seen: EvaluationContext, **changes: Any) -> Option:
    price = seen.inputs.prices.find(NEW)
    assert price is not None
    made = samples.option(kind=OptionKind.TYPE_AND_COUNT, target=Target(NEW, 12), price=price, promise=None)
    return replace(made, **changes)


def asked(option: Option, gate: Gate = Gate.PROPOSE) -> Recommendation:
    return replace(samples.recommendation(), options=(option,), gate=gate, stages=())


def test_counts_by_the_hour_follow_on_the_type_that_is_taken() -> None:
    seen = context()
    (stage,) = with_later_stages(asked(first(seen)), seen).stages
    counts = stage.target.hourly_counts or ()
    assert (stage.kind, stage.target.instance_type) == (OptionKind.SCHEDULE, NEW)
    assert min(counts) == 2
    assert max(counts) <= 16
    assert not stage.restart_needed
    whole = 12 * 730 * stage.price.usd_per_hour
    assert stage.saving_usd_per_month == pytest.approx(whole - stage.usd_per_month, abs=1), "what it adds to the first"


@pytest.mark.parametrize(
    ("changes", "gate", "policy"),
    [
        ({"kind": OptionKind.INSTANCE_COUNT, "target": Target("ml.g6e.xlarge", 12)}, Gate.PROPOSE, Policy()),
        ({"target": Target(NEW, 1)}, Gate.PROPOSE, Policy()),
        ({"restores": True}, Gate.PROPOSE, Policy()),
        ({"in_place": False}, Gate.PROPOSE, Policy()),
        ({}, Gate.APPLY, Policy()),
        ({}, Gate.SILENT, Policy()),
        ({}, Gate.PROPOSE, Policy(by_itself=TYPE_AND_COUNT)),
    ],
    ids=["the type stays", "one instance", "a return", "elsewhere", "by itself", "silent", "hours are closed"],
)
def test_no_stage_follows(changes: dict[str, Any], gate: Gate, policy: Policy) -> None:
    seen = context(policy)
    assert with_later_stages(asked(first(seen, **changes), gate), seen).stages == ()


def test_a_stage_that_is_riskier_than_the_change_is_asked_about_later() -> None:
    seen = context()
    alone = replace(
        seen, endpoint=replace(seen.endpoint, objective=replace(seen.endpoint.objective, min_instances=None))
    )
    assert with_later_stages(asked(first(alone)), alone).stages == (), "one instance at night is in one zone alone"
