"""An errand after a backup was restored, and after its seven days: withdrawn or expired, and told."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.aws import decisions
from rightsizer.aws.table import Table
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import time_text
from rightsizer.render.capacity_change import standing_sentence
from tests.flows.errand_scene import Stage, stage
from tests.flows.spot_scene import scene
from tests.table import create_table

__all__ = ["scene", "stage"]


def restored(stage: Stage) -> None:
    """The rows of now, in a table that is made a day later."""
    client = stage.scene.box.client("dynamodb")
    rows = client.scan(TableName="t")["Items"]
    stage.scene.box.clock.advance(timedelta(days=1))
    client.delete_table(TableName="t")
    create_table(client)
    for row in rows:
        client.put_item(TableName="t", Item=row)


@pytest.mark.parametrize("held", [True, False])
def test_an_approved_errand_of_a_backup_is_withdrawn_with_a_reason_and_told(stage: Stage, held: bool) -> None:
    stage.approve()
    restored(stage)
    if held:
        replace(stage.flow, switch=lambda: Switch(True, False, "U1", stage.now)).tick(stage.now)
    stage.later(minutes=5)
    found = stage.seen()
    assert (found.state, stage.updates(), stage.group.mixed) == (ProposalState.WITHDRAWN, 0, stage.old)
    assert f"before the table was restored or copied on {time_text(stage.now - timedelta(minutes=5))}" in found.outcome
    assert "aws autoscaling update-auto-scaling-group" in found.outcome, "the way back, should it have been carried out"
    assert stage.scene.told.said == [("gpu: withdrawn", found.outcome)]
    assert stage.book.add(replace(stage.errand, id="e-2"))


def test_an_errand_that_is_approved_after_the_restore_is_carried_out(stage: Stage) -> None:
    restored(stage)
    assert stage.start().sent_at is not None
    assert stage.group.mixed == stage.new


def test_an_errand_of_a_backup_that_was_sent_and_taken_back_since_is_not_sent_again(stage: Stage) -> None:
    stage.scene.box.gate.fail("autoscaling", "UpdateAutoScalingGroup", "Throttling", times=10)
    stage.start()
    stage.scene.box.gate.heal()
    assert stage.seen().sent_at is not None
    restored(stage)
    found = stage.later(minutes=10)
    assert (found.state, stage.group.mixed) == (ProposalState.ROLLED_BACK, stage.old)
    assert "so it is not written again" in found.outcome
    assert stage.scene.told.said[-1] == ("gpu: rolled-back", found.outcome)


def test_an_errand_of_a_backup_whose_new_policy_stands_goes_on_and_back(stage: Stage) -> None:
    stage.start()
    restored(stage)
    assert stage.later(hours=2).state is ProposalState.PROVEN
    assert stage.go_back().state is ProposalState.ROLLED_BACK
    assert stage.group.mixed == stage.old


def test_an_errand_waits_while_nobody_knows_when_the_table_was_made(stage: Stage) -> None:
    stage.scene.box.deny("dynamodb:DescribeTable")
    stage.start()
    assert stage.updates() == 0
    stage.scene.box.gate.heal()
    assert stage.later(minutes=6).sent_at is not None


def assert_expired(stage: Stage) -> None:
    """Closed without a write, told with the reason, and the group is free for the next question."""
    found = stage.seen()
    assert (found.state, found.next_due, stage.updates()) == (ProposalState.EXPIRED, None, 0)
    assert "approved on" in found.outcome
    assert "could not be begun within 7 days" in found.outcome
    assert stage.scene.told.said[-1] == ("gpu: expired", found.outcome)
    assert "Expired after it was approved by" in standing_sentence(found)
    assert stage.book.add(replace(stage.errand, id="e-2"))


@pytest.mark.parametrize("days", [1, 8])
def test_an_errand_waits_seven_days_for_a_thaw_and_then_expires(stage: Stage, days: int) -> None:
    frozen = replace(stage.flow, switch=lambda: Switch(True, False, "U1", stage.now))
    stage.approve()
    frozen.start("e-1", stage.now)
    stage.scene.box.clock.advance(timedelta(days=days))
    frozen.tick(stage.now)
    stage.later(minutes=5)
    if days == 1:
        assert stage.group.mixed == stage.new
    else:
        assert_expired(stage)
        assert "Frozen: nothing is begun" in stage.seen().outcome


@pytest.mark.parametrize("days", [1, 6, 8, 30])
def test_an_errand_that_no_event_brought_and_no_tick_looked_at_starts_or_expires(stage: Stage, days: int) -> None:
    """Its record of the stream is lost, and the function is switched off for so many days."""
    stage.approve()
    stage.later(days=days)
    if days < 7:
        assert stage.group.mixed == stage.new
    else:
        assert_expired(stage)


def test_an_errand_whose_group_cannot_be_read_for_a_week_expires_too(stage: Stage) -> None:
    stage.scene.box.deny("autoscaling:DescribeAutoScalingGroups")
    stage.start()
    stage.later(days=8)
    assert_expired(stage)


def test_the_seven_days_of_an_errand_begin_with_its_approval(stage: Stage) -> None:
    stage.scene.box.clock.advance(timedelta(days=10))
    stage.start()
    assert stage.group.mixed == stage.new


def test_an_errand_that_was_sent_never_expires(stage: Stage) -> None:
    stage.start()
    assert stage.later(days=30).state is ProposalState.PROVEN


def test_the_same_question_is_asked_again_only_when_it_was_withdrawn(stage: Stage) -> None:
    assert not stage.book.add(stage.errand)
    decision = Decision(ProposalState.REJECTED, "slack:U1", stage.now)
    decisions.decide(Table(stage.scene.box.client("dynamodb"), "t"), "e-1", decision, stage.now)
    assert not stage.book.add(stage.errand)
    stage.book.save(replace(stage.seen(), state=ProposalState.WITHDRAWN))
    assert stage.book.add(stage.errand)


def test_a_newer_question_takes_the_place_of_a_pending_one_and_waits_for_one_under_way(stage: Stage) -> None:
    assert stage.book.add(replace(stage.errand, id="e-2"))
    assert stage.seen().state is ProposalState.WITHDRAWN
    stage.flow.book.save(replace(stage.book.load("e-2") or stage.errand, state=ProposalState.APPLYING))
    assert not stage.book.add(replace(stage.errand, id="e-3"))
