"""An approval that waited is carried out only while the newest judgement still allows it."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding
from tests.changes.memory import SAVING
from tests.changing import scenarios
from tests.changing.world import NAME, NEW_TYPE, World, an_option, world
from tests.table import create_table


def judged(w: World, *counts: int, **changes: Any) -> None:
    """A newer evaluation of the endpoint, that saves less with each instance; what is approved stays approved."""
    options = tuple(an_option(target=Target(NEW_TYPE, n), saving_usd_per_month=SAVING / n) for n in counts)
    fields: dict[str, Any] = {"evaluated_at": w.now + timedelta(seconds=1), "options": options} | changes
    found = replace(w.proposal.recommendation, **fields)
    with w.box.gate.unrecorded():
        w.store.save(found, None)


def written(w: World) -> list[str]:
    return [call.action for call in w.box.calls.writes() if call.service != "dynamodb"]


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
WAITS = f"{NAME}: approved, and waits for a new recommendation"


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
    assert change.is_closed
    assert "sagemaker:UpdateEndpoint" not in written(w)


def test_autoscaling_that_was_taken_away_does_not_wait_for_the_permission_to_read_the_table() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.start()
        w.box.gate.fail("sagemaker", "UpdateEndpoint", "ThrottlingException", times=9)
        upto(w, "application-autoscaling:DeregisterScalableTarget")
        w.box.deny("dynamodb:DescribeTable")
        w.box.gate.heal()
        w.box.deny("dynamodb:DescribeTable")
        change = w.run(5)
        targets = w.box.client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")
    assert change.is_closed
    assert "dynamodb:DescribeTable" in change.outcome
    assert len(targets["ScalableTargets"]) == 1
