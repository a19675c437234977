"""A group's policy is changed as a journal: new, old or handed over, wherever the process dies."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.aws import decisions
from rightsizer.aws.table import Table
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import ProposalState
from rightsizer.errors import InputError
from rightsizer.flows.change_capacity import request_rollback
from rightsizer.spot.capacity_change import MOST_TRIES
from sandbox.refusals import Killed
from tests.flows.errand_scene import Stage, stage
from tests.flows.spot_scene import scene

__all__ = ["scene", "stage"]


@pytest.mark.parametrize(("by", "sent"), [("slack:U1", 1), ("policy", 1), ("slack:U2", 0), ("cli:arn:x", 0)])
def test_an_errand_is_begun_only_where_the_list_lets_decide_who_approved_it(stage: Stage, by: str, sent: int) -> None:
    stage.approve(by)
    flow = replace(stage.flow, approvers=Approvers(frozenset({"U1", "role/ml-oncall"}), "aws:111122223333"))
    done = flow.start(stage.errand.id, stage.now)
    assert stage.updates() == sent
    if not sent:
        assert done.state is ProposalState.WITHDRAWN
        assert "list Approvers" in done.outcome
        assert any("list Approvers" in text for _, text in stage.scene.told.said)


def test_an_errand_that_was_sent_goes_back_though_nobody_on_the_list_approved_it(stage: Stage) -> None:
    stage.start()
    listed = Approvers(frozenset({"U9"}), "aws:111122223333")
    back = stage.go_back("cli:me", replace(stage.flow, approvers=listed))
    assert (back.state, stage.group.mixed) == (ProposalState.ROLLED_BACK, stage.old)


def test_an_approved_policy_is_set_seen_and_proven_after_a_day(stage: Stage) -> None:
    done = stage.start()
    assert stage.group.mixed == stage.new
    assert done.state is ProposalState.APPLYING
    assert done.done_at is not None
    assert [(line.step, line.status) for line in done.journal] == [
        ("UpdateAutoScalingGroup gpu", "intended"),
        ("UpdateAutoScalingGroup gpu", "done"),
    ]
    assert stage.later(hours=23).state is ProposalState.APPLYING
    proven = stage.later(hours=2)
    assert proven.state is ProposalState.PROVEN
    assert proven.next_due is None
    assert stage.updates() == 1
    assert stage.group.wanted == [4], "the size of the group is nobody's business here"


def test_a_stack_that_may_change_nothing_withdraws_an_approval_and_says_what_allows_it(stage: Stage) -> None:
    stage.approve()
    done = replace(stage.flow, dry_run=True).start("e-1", stage.now)
    assert (done.state, stage.updates()) == (ProposalState.WITHDRAWN, 0)
    assert "MayChange=tagged allows it. Nothing was written" in done.outcome
    assert [subject for subject, _ in stage.scene.told.said] == ["gpu: withdrawn"]


def test_a_stack_that_may_change_nothing_any_more_still_writes_the_old_policy_back(stage: Stage) -> None:
    stage.start()
    back = stage.go_back("cli:me", replace(stage.flow, dry_run=True))
    assert (back.state, stage.group.mixed) == (ProposalState.ROLLED_BACK, stage.old)


def test_a_write_that_did_not_arrive_is_not_repeated_where_nothing_may_change_any_more(stage: Stage) -> None:
    stage.scene.box.gate.fail("autoscaling", "UpdateAutoScalingGroup", "ScalingActivityInProgress", times=1)
    assert stage.start().state is ProposalState.APPLYING
    stage.scene.box.clock.advance(timedelta(minutes=6))
    (done,) = replace(stage.flow, dry_run=True).tick(stage.now)
    assert (done.state, stage.group.mixed, stage.updates()) == (ProposalState.ROLLED_BACK, stage.old, 1)


def test_an_errand_that_nobody_approved_is_not_started(stage: Stage) -> None:
    with pytest.raises(InputError, match="pending, not approved"):
        stage.flow.start("e-1", stage.now)
    stage.flow.tick(stage.now)
    assert stage.updates() == 0


def test_a_lost_stream_record_is_made_good_by_the_tick(stage: Stage) -> None:
    stage.approve()
    stage.later(minutes=5)
    assert stage.group.mixed == stage.new


def other_release(stage: Stage, capacity_change_id: str, **fields: Any) -> None:
    """Another release wrote these fields of the errand's document."""
    table = Table(stage.scene.box.client("dynamodb"), "t")
    found = decisions.find(table, capacity_change_id)
    assert found is not None
    table.put({**found, "doc": json.dumps(json.loads(str(found["doc"])) | fields)})


def test_an_errand_that_cannot_be_read_is_told_once_and_stops_no_other(stage: Stage) -> None:
    lost = replace(stage.errand, id="e-0", subject="other", state=ProposalState.APPROVED)
    assert stage.book.add(lost)
    other_release(stage, "e-0", reason={"code": "novel", "sentence": "s"})
    stage.approve()
    for _ in range(3):
        stage.later(minutes=5)
    assert stage.group.mixed == stage.new
    told = [subject for subject, _ in stage.scene.told.said if "cannot be read" in subject]
    assert told == ["proposal e-0 cannot be read and waits"]
    newer = replace(stage.errand, id="e-2")
    assert not stage.book.add(newer), "the one that is being carried out comes first"


def test_a_field_of_a_newer_program_is_there_after_the_errand_moved_on(stage: Stage) -> None:
    stage.approve()
    other_release(stage, "e-1", novel={"a": 1})
    assert stage.later(minutes=5).state is ProposalState.APPLYING
    found = decisions.find(Table(stage.scene.box.client("dynamodb"), "t"), "e-1")
    assert found is not None
    assert json.loads(str(found["doc"]))["novel"] == {"a": 1}


def test_an_order_for_the_way_back_is_carried_out_by_the_next_tick(stage: Stage) -> None:
    stage.start()
    stage.later(hours=25)
    request_rollback(stage.book, "e-1", "cli:me", stage.now)
    assert stage.group.mixed == stage.new
    assert stage.later(minutes=5).state is ProposalState.ROLLED_BACK
    assert stage.group.mixed == stage.old


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("nth", range(1, 7))
def test_killed_after_any_write_the_ticks_bring_it_to_new_or_old(
    stage: Stage, nth: int, after: bool, back: bool
) -> None:
    stage.approve()
    if back:
        stage.flow.start("e-1", stage.now)
    stage.scene.box.gate.kill(nth, after=after)
    try:
        if back:
            stage.go_back()
        else:
            stage.flow.start("e-1", stage.now)
    except Killed:
        pass
    stage.scene.box.gate.heal()
    for _ in range(4):
        stage.later(minutes=6)
    asked = stage.seen().back is not None
    assert stage.group.mixed == (stage.old if asked else stage.new)
    ended = stage.later(hours=25)
    assert ended.state is (ProposalState.ROLLED_BACK if asked else ProposalState.PROVEN)
    assert stage.group.wanted == [4]


def test_a_person_gets_the_old_policy_back_even_after_the_proof(stage: Stage) -> None:
    stage.start()
    stage.later(hours=25)
    back = stage.go_back()
    assert back.state is ProposalState.ROLLED_BACK
    assert stage.group.mixed == stage.old
    with pytest.raises(InputError, match="nothing to undo"):
        stage.go_back()


def test_a_launch_that_fails_for_the_new_policy_brings_the_old_one_back(stage: Stage) -> None:
    stage.start()
    text = "gpu could not launch an instance: The architecture 'x86_64' of the image does not fit"
    stage.flow.ledger.note(Occurrence("f1", stage.now + timedelta(minutes=1), "launch-failure", "gpu", text))
    ended = stage.later(minutes=40)
    assert ended.state is ProposalState.ROLLED_BACK
    assert "does not fit" in ended.outcome
    assert stage.group.mixed == stage.old


def test_a_lack_of_capacity_is_no_fault_of_the_policy(stage: Stage) -> None:
    stage.start()
    text = "gpu could not launch an instance: InsufficientInstanceCapacity"
    stage.flow.ledger.note(Occurrence("f1", stage.now + timedelta(minutes=1), "launch-failure", "gpu", text))
    assert stage.later(hours=25).state is ProposalState.PROVEN


def test_a_policy_that_changed_since_it_was_asked_is_not_touched(stage: Stage) -> None:
    stage.group.mixed = stage.old | {"InstancesDistribution": {"OnDemandBaseCapacity": 2}}
    assert stage.start().state is ProposalState.WITHDRAWN
    assert stage.updates() == 0


def test_a_policy_that_somebody_changes_under_it_is_handed_over(stage: Stage) -> None:
    stage.start()
    stage.group.mixed = stage.old | {"InstancesDistribution": {"OnDemandBaseCapacity": 2}}
    ended = stage.later(minutes=40)
    assert ended.state is ProposalState.HANDED_OVER
    assert "aws autoscaling update-auto-scaling-group" in ended.outcome
    assert stage.updates() == 1


def test_a_policy_that_somebody_puts_back_is_left_so(stage: Stage) -> None:
    stage.start()
    stage.group.mixed = stage.old
    assert stage.later(minutes=40).state is ProposalState.ROLLED_BACK
    assert stage.updates() == 1


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ({}, "is off now"),
        ({"rightsizer:mode": "report"}, "is report now"),
        ({"rightsizer:mode": "auto", "aws:cloudformation:stack-name": "ml"}, "CloudFormation stack ml"),
    ],
)
def test_a_group_that_no_longer_allows_it_is_not_touched(stage: Stage, tags: dict[str, str], words: str) -> None:
    stage.group.tags = tags
    ended = stage.start()
    assert ended.state is ProposalState.WITHDRAWN
    assert words in ended.outcome
    assert stage.updates() == 0


def test_what_the_policy_approved_needs_the_automatic_mode_still(stage: Stage) -> None:
    stage.group.tags = {"rightsizer:mode": "propose"}
    stage.approve("policy")
    assert stage.flow.start("e-1", stage.now).state is ProposalState.WITHDRAWN


def test_a_group_that_is_gone_is_said_to_be(stage: Stage) -> None:
    del stage.scene.spot.groups.groups["gpu"]
    assert stage.start().state is ProposalState.WITHDRAWN


def test_a_refusal_hands_the_request_over_and_the_group_is_as_it_was(stage: Stage) -> None:
    stage.scene.box.gate.fail("autoscaling", "UpdateAutoScalingGroup", "ValidationError", "You are not authorized")
    ended = stage.start()
    assert ended.state is ProposalState.HANDED_OVER
    assert "You are not authorized" in ended.outcome
    assert stage.group.mixed == stage.old
    assert stage.scene.told.said[-1][0] == "gpu: handed-over"


def test_a_missing_permission_is_named_and_nothing_changes(stage: Stage) -> None:
    stage.scene.box.deny("autoscaling:UpdateAutoScalingGroup")
    ended = stage.start()
    assert ended.state is ProposalState.HANDED_OVER
    assert "autoscaling:UpdateAutoScalingGroup" in ended.outcome


def test_throttling_is_tried_again_and_ends(stage: Stage) -> None:
    stage.scene.box.gate.fail("autoscaling", "UpdateAutoScalingGroup", "Throttling", times=100)
    stage.start()
    for _ in range(MOST_TRIES + 1):
        stage.later(minutes=6)
    assert stage.seen().state is ProposalState.HANDED_OVER
    assert stage.group.mixed == stage.old


def test_a_reading_that_fails_is_told_once_and_tried_again(stage: Stage) -> None:
    stage.scene.box.deny("autoscaling:DescribeAutoScalingGroups")
    stage.start()
    stage.later(minutes=6)
    assert [subject for subject, _ in stage.scene.told.said] == ["capacity change e-1 of gpu cannot be looked at"]
    stage.scene.box.gate.heal()
    assert stage.later(minutes=6).done_at is not None


def test_a_freeze_begins_nothing_and_lets_the_way_back_go_on(stage: Stage) -> None:
    frozen = replace(stage.flow, switch=lambda: Switch(True, False, "U1", stage.now))
    stage.approve()
    assert frozen.start("e-1", stage.now).sent_at is None
    stage.flow.start("e-1", stage.now)
    assert stage.go_back("U1", frozen).state is ProposalState.ROLLED_BACK


def test_a_hard_freeze_stops_the_way_back_too(stage: Stage) -> None:
    stage.start()
    held = replace(stage.flow, switch=lambda: Switch(True, True, "U1", stage.now))
    assert stage.go_back("U1", held).state is ProposalState.APPLYING
    assert stage.group.mixed == stage.new
    assert stage.later(minutes=6).state is ProposalState.ROLLED_BACK


def test_the_policy_document_lets_no_group_change_by_itself(stage: Stage) -> None:
    stage.approve("policy")
    found = replace(stage.flow, automatic=False).start(stage.errand.id, stage.now)
    assert found.state is ProposalState.WITHDRAWN
    assert "policy document lets nothing change by itself" in found.outcome
    assert stage.seen().sent_at is None


def test_a_list_that_cannot_be_understood_lets_an_approval_of_a_group_wait(stage: Stage) -> None:
    stage.approve("slack:U1")
    unread = Approvers(unreadable="policy document, defaults.approvers: it is 3")
    waiting = replace(stage.flow, approvers=unread).start(stage.errand.id, stage.now)
    assert waiting.state is not ProposalState.WITHDRAWN
    assert "defaults.approvers: it is 3" in waiting.journal[-1].detail
    assert waiting.sent_at is None
