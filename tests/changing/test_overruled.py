"""An approval that waited is carried out only while the newest judgement still allows it."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import Target
from rightsizer.domain.policy import ChangeLimits, ChangeWindow
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding
from rightsizer.flows.orders import Orders
from tests.changing import scenarios
from tests.changing.world import NAME, NEW_TYPE, World, an_option, world
from tests.table import create_table

SATURDAY = ChangeLimits(
    window=ChangeWindow(days=frozenset({5}), start=time(8), end=time(18)), probation=timedelta(hours=2)
)


def judged(w: World, *counts: int, **changes: Any) -> None:
    """A newer evaluation of the endpoint; what is approved stays approved."""
    options = tuple(an_option(target=Target(NEW_TYPE, count)) for count in counts)
    fields: dict[str, Any] = {"evaluated_at": w.now + timedelta(seconds=1), "options": options} | changes
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


def made_unreadable(w: World) -> None:
    """A newer release wrote the newest judgement, and was rolled back."""
    client, key = w.box.client("dynamodb"), {"pk": {"S": f"ENDPOINT#{NAME}"}, "sk": {"S": "RECOMMENDATION"}}
    with w.box.gate.unrecorded():
        item = client.get_item(TableName="t", Key=key)["Item"]
        item["doc"] = {"S": json.dumps(json.loads(item["doc"]["S"]) | {"schema": 99})}
        client.put_item(TableName="t", Item=item)


def restored(w: World) -> None:
    """The rows of now, in a table that is made a day later."""
    client = w.box.client("dynamodb")
    with w.box.gate.unrecorded():
        rows = client.scan(TableName="t")["Items"]
        w.box.clock.advance(timedelta(days=1))
        client.delete_table(TableName="t")
        create_table(client)
        for row in rows:
            client.put_item(TableName="t", Item=row)


LOST: tuple[Callable[[World], None], ...] = (made_unreadable, restored)
WAITS = f"{NAME}: approved, and waits for a new judgement"


@pytest.mark.parametrize("lost", LOST, ids=lambda lost: lost.__name__)
def test_an_approval_waits_while_nobody_knows_the_newest_judgement_and_is_told_once(lost: Any) -> None:
    with world() as w:
        lost(w)
        w.start()
        change = w.run(12)
        assert (change.state, written(w)) == (ChangeState.PLANNED, [])
        assert [subject for subject, _ in w.told] == [WAITS]
        judged(w, 1)
        assert w.run(12).state is ChangeState.PROVEN


def test_the_wait_after_a_restore_names_both_dates() -> None:
    with world() as w:
        restored(w)
        w.start()
        ((_, text),) = w.told
    assert "is of 2026-11-02 09:00 UTC and older than the table" in text
    assert "restored or copied on 2026-11-03 09:00 UTC" in text


@pytest.mark.parametrize("lost", LOST, ids=lambda lost: lost.__name__)
def test_an_approval_for_which_no_judgement_comes_expires_after_a_week_and_is_told(lost: Any) -> None:
    with world() as w:
        lost(w)
        w.start()
        change = w.run(24 * 8)
        shown = w.shown()
    assert (change.state, written(w)) == (ChangeState.REFUSED, [])
    assert change.reason is not None
    assert change.reason.code is Code.EXPIRED
    assert shown.state is ProposalState.EXPIRED
    assert "waited 7 days" in w.told[-1][1]


def test_a_table_that_cannot_be_described_lets_the_change_wait() -> None:
    with world() as w:
        w.box.deny("dynamodb:DescribeTable")
        w.start()
        assert (w.run(1).state, written(w)) == (ChangeState.PLANNED, [])
        w.box.gate.allow("dynamodb:DescribeTable")
        assert w.run(12).state is ChangeState.PROVEN


def upto(w: World, step: str) -> None:
    """Ticks until the journal has this write."""
    for _ in range(200):
        if any(entry.detail == step for entry in w.change.journal):
            return
        w.run(0.05)
    raise AssertionError(f"no {step} in {[entry.detail for entry in w.change.journal]}")


@pytest.mark.parametrize("lost", LOST, ids=lambda lost: lost.__name__)
def test_a_change_that_has_written_already_waits_before_its_next_write(lost: Any) -> None:
    with world() as w:
        w.start()
        upto(w, "cloudwatch:PutMetricAlarm")
        lost(w)
        change = w.run(5)
        assert not change.closed
        assert "sagemaker:UpdateEndpoint" not in written(w)
        assert [subject for subject, _ in w.told] == [WAITS]
        judged(w, 1)
        assert w.run(12).state is ChangeState.PROVEN


def test_a_change_that_has_written_already_and_gets_no_judgement_for_a_week_is_ended_and_told() -> None:
    with world() as w:
        w.start()
        upto(w, "cloudwatch:PutMetricAlarm")
        made_unreadable(w)
        change = w.run(24 * 8)
    assert change.state is ChangeState.REFUSED
    assert change.reason is not None
    assert change.reason.code is Code.EXPIRED
    assert "sagemaker:UpdateEndpoint" not in written(w)
    assert "waited 7 days" in w.told[-1][1]


def test_autoscaling_that_was_taken_away_does_not_wait_for_a_judgement() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.start()
        w.box.fail("sagemaker", "UpdateEndpoint", "ThrottlingException", times=9)
        upto(w, "application-autoscaling:DeregisterScalableTarget")
        made_unreadable(w)
        w.box.gate.heal()
        change = w.run(5)
        targets = w.box.client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")
    assert change.closed
    assert len(targets["ScalableTargets"]) == 1


def test_a_proposal_that_cannot_be_read_hides_no_newer_judgement() -> None:
    with world() as w:
        w.start()
        upto(w, "cloudwatch:PutMetricAlarm")
        client, key = w.box.client("dynamodb"), {"pk": {"S": f"PROPOSAL#{w.proposal.id}"}, "sk": {"S": "PROPOSAL"}}
        with w.box.gate.unrecorded():
            row = client.get_item(TableName="t", Key=key)["Item"]
            client.put_item(TableName="t", Item={**row, "doc": {"S": "not a document"}})
        judged(w, finding=Finding.UNDER_PROVISIONED, reason=Reason(Code.UNDER_PROVISIONED, "requests wait"))
        change = w.run(5)
    assert change.closed
    assert "sagemaker:UpdateEndpoint" not in written(w)


@pytest.mark.parametrize("scenario", [scenarios.PLAIN, scenarios.AUTOSCALED], ids=lambda s: s.name)
def test_an_update_that_aws_refused_is_not_tried_again_against_a_newer_judgement(scenario: scenarios.Scenario) -> None:
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.box.fail("sagemaker", "UpdateEndpoint", "ThrottlingException", times=1000)
        w.start()
        upto(w, "sagemaker:UpdateEndpoint")
        Orders(w.journal).freeze("U1", w.now)
        judged(w, finding=Finding.UNDER_PROVISIONED, reason=Reason(Code.UNDER_PROVISIONED, "requests wait"))
        w.box.gate.heal()
        Orders(w.journal).thaw("U1", w.now)
        change = w.run(12)
        targets = w.box.client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")
        assert w.box.config_name(NAME) == f"{NAME}-config"
    assert (change.closed, change.state is ChangeState.PROVEN) == (True, False)
    assert len(targets["ScalableTargets"]) == (scenario is scenarios.AUTOSCALED)


def test_autoscaling_that_was_taken_away_does_not_wait_for_the_permission_to_read_the_table() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.start()
        w.box.fail("sagemaker", "UpdateEndpoint", "ThrottlingException", times=9)
        upto(w, "application-autoscaling:DeregisterScalableTarget")
        w.box.deny("dynamodb:DescribeTable")
        w.box.gate.heal()
        w.box.deny("dynamodb:DescribeTable")
        change = w.run(5)
        targets = w.box.client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")
    assert change.closed
    assert "dynamodb:DescribeTable" in change.outcome
    assert len(targets["ScalableTargets"]) == 1


def test_a_wait_for_a_judgement_is_told_once_however_often_a_new_one_says_too_little() -> None:
    with world() as w:
        for day in range(3):
            judged(w, finding=Finding.NOT_ENOUGH_DATA, reason=Reason(Code.NO_DATAPOINTS, f"{day} days of data"))
            if day == 0:
                w.start()
            w.run(24)
    assert [subject for subject, _ in w.told].count(WAITS) == 1
