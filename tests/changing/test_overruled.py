"""An approval that waited is carried out only while the newest judgement still allows it."""

from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest

from rightsizer.flows.orders import Orders
from rightsizer.model.change import ChangeState
from rightsizer.model.limits import ChangeLimits, ChangeWindow
from rightsizer.model.option import Target
from rightsizer.model.proposal import ProposalState
from rightsizer.model.reason import Code, Reason
from rightsizer.model.recommendation import Finding
from tests.changing import scenarios
from tests.changing.world import NAME, NEW_TYPE, World, an_option, world

SATURDAY = ChangeLimits(
    window=ChangeWindow(days=frozenset({5}), start=time(8), end=time(18)), probation=timedelta(hours=2)
)


def judged(w: World, *counts: int, **changes: Any) -> None:
    """A newer evaluation of the endpoint; what is approved stays approved."""
    options = tuple(an_option(target=Target(NEW_TYPE, count)) for count in counts)
    fields: dict[str, Any] = {"evaluated_at": w.now, "options": options} | changes
    found = replace(w.proposal.recommendation, **fields)
    with w.box.gate.unrecorded():
        w.store.save(found, None)


def written(w: World) -> list[str]:
    return [call.action for call in w.box.calls.writes() if call.service != "dynamodb"]


def test_traffic_that_grew_while_the_change_waited_for_its_window_withdraws_it() -> None:
    with world(limits=SATURDAY) as w:
        assert w.start().state is ChangeState.PLANNED
        w.box.clock.advance(timedelta(days=3))
        judged(w, 2)
        change = w.run(24 * 5)
        shown = w.shown()
    assert (change.state, written(w)) == (ChangeState.REFUSED, [])
    assert change.reason is not None
    assert change.reason.code is Code.NEWER_JUDGEMENT
    assert shown.state is ProposalState.WITHDRAWN
    assert "needs 2 instance(s)" in shown.outcome
    assert any("needs 2 instance(s)" in text for _, text in w.told)


def test_a_newer_judgement_that_needs_no_more_lets_the_change_begin() -> None:
    with world(limits=SATURDAY) as w:
        w.start()
        w.box.clock.advance(timedelta(days=3))
        judged(w, 1)
        assert w.run(24 * 5).state is ChangeState.PROVEN


def test_a_thaw_does_not_carry_out_what_was_overruled_in_the_freeze() -> None:
    with world() as w:
        Orders(w.journal).freeze("U1", w.now)
        w.start()
        judged(w, finding=Finding.UNDER_PROVISIONED, reason=Reason(Code.UNDER_PROVISIONED, "requests wait"))
        Orders(w.journal).thaw("U1", w.now)
        change = w.run(2)
    assert (change.state, written(w)) == (ChangeState.REFUSED, [])


@pytest.mark.parametrize("scenario", [scenarios.PLAIN, scenarios.AUTOSCALED], ids=lambda s: s.name)
def test_a_judgement_that_comes_between_two_writes_stops_the_next_one(scenario: scenarios.Scenario) -> None:
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        held = ChangeLimits(incident_alarms=("burst",), probation=timedelta(hours=2), rewire_alarms=True)
        w.box.client("cloudwatch").put_metric_alarm(
            AlarmName="burst",
            Namespace="mine",
            MetricName="m",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
            TreatMissingData="notBreaching",
        )
        w.box.clock.advance(timedelta(minutes=2))
        w.apply = replace(w.apply, limits=held)
        w.start()
        while not any(e.detail == "cloudwatch:PutMetricAlarm" for e in w.change.journal):
            w.run(0.05)
        judged(w, finding=Finding.UNDER_PROVISIONED, reason=Reason(Code.UNDER_PROVISIONED, "requests wait"))
        change = w.run(5)
    assert change.state is ChangeState.REFUSED
    assert "sagemaker:UpdateEndpoint" not in written(w)
    assert w.box.config_name(NAME) == f"{NAME}-config"


def test_what_brings_room_back_waits_for_no_judgement() -> None:
    with world(an_option(restores=True)) as w:
        judged(w, finding=Finding.UNDER_PROVISIONED, reason=Reason(Code.UNDER_PROVISIONED, "requests wait"))
        w.start()
        assert w.run(12).state is ChangeState.PROVEN
