"""An alarm of the customer's comes back as its owner has it now; only its policy actions are re-wired."""

from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from sandbox.sagemaker.deployment import Ending
from tests.changing import scenarios
from tests.changing.world import NAME, World, others, world

PAGER, SECOND = (f"arn:aws:sns:eu-west-1:111122223333:{name}" for name in ("pager", "second"))


def alarm(w: World) -> dict[str, Any]:
    (found,) = w.box.client("cloudwatch").describe_alarms(AlarmNames=["burst-now"])["MetricAlarms"]
    return dict(found)


def policy_arn(w: World) -> str:
    (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    return next(str(p["PolicyARN"]) for p in target.policies if p["PolicyName"] == "burst")


def to_the_deployment(w: World) -> None:
    w.start()
    while w.box.status(NAME) != "Updating":
        w.box.clock.advance(timedelta(minutes=1))
        w.apply.tick(w.now)


def edit(w: World, **changes: Any) -> None:
    """The owner edits the alarm as it stands, which has lost its policy by then."""
    keys = ("Namespace", "MetricName", "Dimensions", "Statistic", "Period", "EvaluationPeriods")
    now = alarm(w)
    kept = {key: now[key] for key in (*keys, "ComparisonOperator", "TreatMissingData", "AlarmActions", "Threshold")}
    with others(w):
        w.box.client("cloudwatch").put_metric_alarm(AlarmName="burst-now", **{**kept, **changes})


@pytest.mark.parametrize("ending", [Ending.SUCCESS, Ending.ALARM])
def test_a_threshold_that_was_edited_during_the_deployment_is_kept(ending: Ending) -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.box.script_deployment(NAME, ending)
        to_the_deployment(w)
        edit(w, Threshold=777.0)
        change = w.run(6)
        now, arn = alarm(w), policy_arn(w)
    assert change.state is (ChangeState.PROVEN if ending is Ending.SUCCESS else ChangeState.ROLLED_BACK)
    assert (now["Threshold"], now["AlarmActions"]) == (777.0, [arn, PAGER])
    assert "somebody changed it meanwhile" not in change.outcome


def test_other_actions_that_were_exchanged_during_the_deployment_are_kept() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        to_the_deployment(w)
        edit(w, AlarmActions=[SECOND], OKActions=[SECOND])
        change = w.run(6)
        now, arn = alarm(w), policy_arn(w)
    assert change.state is ChangeState.PROVEN
    assert (now["AlarmActions"], now["OKActions"]) == ([arn, SECOND], [SECOND])


def test_an_alarm_that_was_deleted_during_the_deployment_comes_back_as_it_was_stored() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        to_the_deployment(w)
        with others(w):
            w.box.client("cloudwatch").delete_alarms(AlarmNames=["burst-now"])
        change = w.run(6)
        now, arn = alarm(w), policy_arn(w)
    assert change.state is ChangeState.PROVEN
    assert (now["Threshold"], now["AlarmActions"]) == (100_000.0, [arn, PAGER])
