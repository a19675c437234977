"""What people read when a change takes another course or ends, and what its proposal shows."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.ending import (
    SHOWN,
    end_subject,
    end_text,
    finish_change,
    handover_text,
    shown_change_id,
    shown_outcome,
    shown_proposal_state,
    steer_change,
)
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent, PassedTest
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import EndpointSight, Gone, LiveState
from rightsizer.domain.next_action import Finish, Steer
from rightsizer.domain.plan import AutoscalingBeforeRollback, Before, Plan, PlanKind, Step, StepKind
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code, Reason
from tests import samples
from tests.changes.test_ending import FIRST, TARGET, change
from tests.changes.test_reconcile import BEFORE, PLAN, TURN, WHO

NOW = samples.NOW
GONE = LiveState(Gone("chat"))
SLOW = Reason(Code.ROLLED_BACK, "p95 was 900 ms")
DONE = Reason(Code.PROVEN, "p95 is 200 ms")


def test_a_change_of_course_keeps_everything_that_the_move_says_nothing_of() -> None:
    known = change(
        looks=7,
        failure=FailureClass.ERRORS,
        back_for=FailureClass.ERRORS,
        ending=ChangeState.ROLLED_BACK,
        course=Course.CLOSE,
        turned_at=NOW,
        returned_at=NOW,
        remaining=("a",),
        state=ChangeState.RETURNING,
    )
    made = steer_change(known, Steer(SLOW), NOW + timedelta(hours=1))
    line = Entry(NOW + timedelta(hours=1), JournalEvent.STEER, "noted", "p95 was 900 ms")
    assert made == replace(known, looks=0, outcome="p95 was 900 ms", journal=(line,))


def test_a_milestone_is_noted_with_its_time() -> None:
    arrived = steer_change(change(), Steer(DONE, turned=True), NOW)
    assert (arrived.turned_at, arrived.returned_at, arrived.state) == (NOW, None, ChangeState.PLANNED)
    settled = steer_change(arrived, Steer(DONE, applied=True), NOW)
    assert (settled.state, settled.journal[-1].step) == (ChangeState.APPLIED, JournalEvent.APPLIED)
    assert steer_change(arrived, Steer(DONE, returned=True), NOW).returned_at == NOW


def test_the_cause_of_going_back_is_the_failure_of_the_move_or_the_one_known_before() -> None:
    known = change(failure=FailureClass.ALARM, back_for=FailureClass.MEMORY)
    back = Steer(SLOW, Course.BACK)
    assert steer_change(known, back, NOW).back_for is FailureClass.ALARM
    assert steer_change(known, replace(back, failure=FailureClass.ERRORS), NOW).back_for is FailureClass.ERRORS
    closed = steer_change(known, Steer(SLOW, Course.CLOSE, ChangeState.PROVEN, FailureClass.ERRORS), NOW)
    assert (closed.failure, closed.back_for) == (FailureClass.ERRORS, FailureClass.MEMORY)


def test_a_handover_tells_its_own_reason_and_no_other_end_replaces_the_first() -> None:
    known = change(reason=SLOW)
    for ending, reason in ((ChangeState.HANDED_OVER, DONE), (ChangeState.ROLLED_BACK, SLOW)):
        assert steer_change(known, Steer(DONE, Course.CLOSE, ending), NOW).reason == reason
    assert steer_change(change(), Steer(DONE), NOW).reason is None, "it goes on"
    assert steer_change(known, Steer(DONE, ending=ChangeState.HANDED_OVER), NOW).reason == SLOW, "it goes on"


def test_a_refusal_after_an_earlier_try_is_a_rollback_and_an_unknown_failure_gets_its_class() -> None:
    refused = Steer(SLOW, Course.CLOSE, ChangeState.REFUSED)
    assert steer_change(change(), refused, NOW).ending is ChangeState.REFUSED
    assert steer_change(change(tries=1), refused, NOW).ending is ChangeState.ROLLED_BACK
    proven = Steer(DONE, Course.CLOSE, ChangeState.PROVEN)
    assert steer_change(change(tries=1), proven, NOW).ending is ChangeState.PROVEN
    text = Reason(Code.WAY_BACK_FAILED, "there was not enough capacity: InsufficientInstanceCapacity")
    failed = steer_change(change(), Steer(text, Course.CLOSE, ChangeState.HANDED_OVER, FailureClass.UNKNOWN), NOW)
    assert (failed.failure, failed.outcome) == (FailureClass.CAPACITY, f"capacity: {text.sentence}")


def test_commands_that_are_left_are_listed_once_and_a_long_line_of_the_journal_is_cut() -> None:
    known = change(remaining=("a",))
    long = Reason(Code.ROLLED_BACK, "x" * 600)
    made = steer_change(known, Steer(long, remaining=("a", "b")), NOW)
    assert made.remaining == ("a", "b")
    assert (made.journal[-1].detail, made.outcome) == ("x" * 500, "x" * 600)


def finished(known: Change, state: ChangeState = ChangeState.ROLLED_BACK, **more: Any) -> Change:
    end = Finish(state, SLOW)
    return finish_change(known, end, more.get("live", GONE), NOW, more.get("theirs", {}))


def turned(**known: Any) -> Change:
    """A change that was deployed from the configuration `old`."""
    sent = Entry(NOW - timedelta(hours=2), TURN.key, "done")
    return change(**{"before": BEFORE, "plan": PLAN, "journal": (sent,), "returned_at": NOW, **known})


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (turned(), "chat runs old again: p95 was 900 ms"),
        (turned(plan=replace(PLAN, back_config="old-rs")), "chat runs old-rs again: p95 was 900 ms"),
        (turned(plan=replace(PLAN, back_config="old-rs"), returned_at=None), "chat runs old again: p95 was 900 ms"),
        (turned(plan=replace(PLAN, back_config=""), before=None), "chat runs what it ran before again: p95 was 900 ms"),
        (turned(journal=()), "chat was never updated by this change: p95 was 900 ms"),
        (
            turned(plan=replace(PLAN, new_config="")),
            "chat has what it had before this change again, on the same configuration: p95 was 900 ms",
        ),
        (change(plan=Plan(kind=PlanKind.DELETE)), "chat stays: p95 was 900 ms"),
    ],
)
def test_a_rollback_says_first_what_the_endpoint_runs_now(known: Change, said: str) -> None:
    ended = finished(known)
    assert ended.outcome == said
    assert ended.journal[len(known.journal)] == Entry(NOW, JournalEvent.FINISH, "noted", f"rolled-back: {said}")


def test_a_change_that_stands_says_only_its_reason() -> None:
    for known in (turned(), change(plan=Plan(kind=PlanKind.DELETE))):
        assert finished(known, ChangeState.PROVEN).outcome == "p95 was 900 ms"


def test_the_end_repeats_each_line_about_the_way_back_edits_schedules_and_images_once() -> None:
    events = (JournalEvent.WAY_BACK, JournalEvent.OWNER_EDITS, JournalEvent.SCHEDULE, JournalEvent.IMAGES)
    lines = [Entry(NOW, step, "noted", str(step)) for step in (*events, *events, JournalEvent.PLAN)]
    ended = finished(change(journal=tuple(lines)), ChangeState.PROVEN, theirs={"m": "2 copies are left", "n": ""})
    assert ended.outcome == "; ".join(("p95 was 900 ms", *map(str, events), "2 copies are left"))


def counted(count: int) -> Step:
    rows = [{"VariantName": "v", "DesiredInstanceCount": count}]
    return Step(StepKind.SET_CAPACITY, "chat to v", {"DesiredWeightsAndCapacities": rows})


def test_counts_that_a_rollback_leaves_higher_are_told_and_only_by_a_rollback() -> None:
    known = turned(plan=replace(PLAN, new_config="", restore=(counted(4),)))
    kept = "what ran for the load stays, and nothing lowers it by itself: v keeps 4 instances (1 before)"
    assert finished(known).outcome.endswith(f": p95 was 900 ms; {kept}")
    assert finished(known, ChangeState.PROVEN).outcome == "p95 was 900 ms"


def test_what_the_owner_added_to_autoscaling_is_put_again_by_the_lines_that_follow() -> None:
    night = {
        "ScheduledActionName": "night",
        "Schedule": "cron(0 22 * * ? *)",
        "ScalableTargetAction": {"MinCapacity": 1, "MaxCapacity": 2},
    }
    theirs = ScalableTarget(
        WHO["ResourceId"], WHO["ScalableDimension"], 1, 4, scheduled=(night, night | {"ScheduledActionName": "day"})
    )
    known = turned(met=AutoscalingBeforeRollback(NOW, (theirs,)))
    outcome = finished(known).outcome
    head, _, lines = outcome.partition(
        "; what was added to autoscaling since the change went with it, and is put again by: "
    )
    assert head == "chat runs old again: p95 was 900 ms"
    assert [line.split(" --")[0] for line in lines.split(" ; ")] == [
        "aws application-autoscaling put-scheduled-action"
    ] * 2
    assert finished(known, ChangeState.PROVEN).outcome == "p95 was 900 ms"


def test_autoscaling_that_is_not_as_planned_and_what_a_person_has_to_do_come_last() -> None:
    target = ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], 3, 9)
    seen = LiveState(EndpointSight("InService", "new", NOW, "", "", ()), scaling=(target,), alarms={})
    ended = finished(turned(remaining=("aws a", "aws b")), ChangeState.PROVEN, live=seen)
    key = PLAN.settle[0].key
    assert ended.outcome == (
        f"p95 was 900 ms; autoscaling is not as planned, somebody changed it meanwhile: {key};"
        " to be done by a person: aws a ; aws b"
    )


def test_an_end_closes_the_change_and_names_the_configurations_that_stay() -> None:
    made = Entry(NOW - timedelta(hours=3), "sagemaker:CreateEndpointConfig new", "done")
    also = replace(made, step="sagemaker:CreateEndpointConfig newer")
    known = turned(next_due=NOW, lease_until=NOW, journal=(made, also))
    ended = finished(known)
    assert (ended.state, ended.reason, ended.next_due, ended.lease_until) == (ChangeState.ROLLED_BACK, SLOW, None, None)
    assert ended.journal[:2] == known.journal
    stay = "configurations that stay and cost nothing: new, newer"
    assert ended.journal[3:] == (Entry(NOW, JournalEvent.LEFT, "noted", stay),)
    assert len(finished(turned()).journal) == 2, "nothing stays"
    long = finish_change(turned(), Finish(ChangeState.PROVEN, Reason(Code.PROVEN, "x" * 600)), GONE, NOW, {})
    assert long.journal[-1].detail == f"proven: {'x' * 492}"


def test_the_end_of_a_shadow_test_and_of_a_stage_says_what_follows() -> None:
    test = change(plan=Plan(kind=PlanKind.SHADOW_TEST), leads_on=True)
    assert finished(test, ChangeState.ROLLED_BACK).outcome.endswith("; the change does not follow")
    stage = turned(stages=(samples.option(),))
    assert "; stage 2 (instance-type) follows by the same approval" in finished(stage, ChangeState.PROVEN).outcome
    assert finished(stage).outcome.endswith("; stage 2 of the plan does not follow")


def test_a_proposal_shows_what_became_of_its_change() -> None:
    for state, shown in SHOWN.items():
        assert shown_proposal_state(change(state=state, next_due=NOW)) is shown
    closed = change(state=ChangeState.APPLIED)
    assert shown_proposal_state(closed) is ProposalState.APPLIED
    assert shown_proposal_state(change(state=ChangeState.PROVEN, asked_back_by="slack:U1")) is ProposalState.PROVEN
    late = Reason(Code.EXPIRED, "old")
    assert shown_proposal_state(change(state=ChangeState.ROLLED_BACK, reason=late)) is ProposalState.ROLLED_BACK


def passed(**known: Any) -> Change:
    """A shadow test that ended well and that its change follows."""
    line = Entry(NOW, JournalEvent.FINISH, "noted", "x")
    fields: dict[str, Any] = {
        "plan": Plan(kind=PlanKind.SHADOW_TEST),
        "state": ChangeState.ROLLED_BACK,
        "leads_on": True,
        "turned_at": NOW,
        "reason": Reason(Code.PROVEN, "it answered in 0.4 s"),
        "journal": (line,),
        "measured": {"mean_s": 0.4, "live_mean_s": 0.4},
    }
    return change(**(fields | known))


def staged(**known: Any) -> Change:
    """A proven change that another stage follows."""
    line = Entry(NOW, JournalEvent.FINISH, "noted", "x")
    return change(
        **{"state": ChangeState.PROVEN, "stages": (samples.option(),), "before": BEFORE, "journal": (line,), **known}
    )


def test_a_proposal_is_approved_again_while_a_change_or_a_stage_is_to_follow() -> None:
    for known in (passed(), staged()):
        assert shown_proposal_state(known) is ProposalState.APPROVED
    assert shown_proposal_state(staged(stages=())) is ProposalState.PROVEN


def test_a_later_stage_that_was_rolled_back_leaves_the_one_before_and_one_that_stands_is_shown_itself() -> None:
    undone = change(state=ChangeState.ROLLED_BACK, stage_before=FIRST)
    assert (shown_proposal_state(undone), shown_change_id(undone)) == (ProposalState.PROVEN, "c-first")
    stands = change(state=ChangeState.PROVEN, stage_before=FIRST)
    assert shown_change_id(stands) == "c-1"
    assert shown_proposal_state(replace(stands, state=ChangeState.HANDED_OVER)) is ProposalState.HANDED_OVER
    assert shown_change_id(change(state=ChangeState.ROLLED_BACK)) == "c-1"


def test_the_outcome_counts_stages_and_names_the_shadow_test_before_it() -> None:
    assert shown_outcome(change(outcome="fine")) == "fine"
    assert shown_outcome(change(outcome="fine", stages=(samples.option(),))) == "stage 1 of 2: fine"
    test = PassedTest("c-0", NOW, "tested: its mean latency was 1.21 times today's")
    said = "fine. Before the change it was tested: its mean latency was 1.21 times today's"
    assert shown_outcome(change(outcome="fine", after=test)) == said
    assert shown_outcome(change(outcome="fine", stage_before=FIRST)) == "stage 2 of 2: fine"


def test_who_may_delete_an_endpoint_gets_the_file_that_brings_it_back() -> None:
    handed = change(state=ChangeState.HANDED_OVER, outcome="idle", plan=Plan(restore_file=("one", "two")))
    assert end_text(handed) == "idle\n\nTo bring it back, keep this file:\n\none\ntwo"
    assert end_text(replace(handed, state=ChangeState.ROLLED_BACK)) == "idle"
    assert end_text(replace(handed, plan=Plan())) == "idle"
    undone = change(state=ChangeState.REFUSED, outcome="too risky", stage_before=FIRST)
    assert end_text(undone) == "too risky; this ends the plan, and stage 1 (c-first) stands"


@pytest.mark.parametrize(
    ("known", "subject"),
    [
        (change(state=ChangeState.PROVEN), "chat: change proven"),
        (change(state=ChangeState.REFUSED, reason=Reason(Code.EXPIRED, "old")), "chat: approval expired"),
        (
            change(state=ChangeState.ROLLED_BACK, reason=Reason(Code.EXPIRED, "old"), remaining=("aws x",)),
            "chat: change rolled-back",
        ),
        (change(state=ChangeState.ROLLED_BACK, asked_back_by="slack:U1"), "chat: change rolled-back"),
        (
            change(state=ChangeState.HANDED_OVER, plan=Plan(kind=PlanKind.DELETE), remaining=("aws x",)),
            "chat: idle, and ready to be deleted by its owner",
        ),
        (change(state=ChangeState.ROLLED_BACK, plan=Plan(kind=PlanKind.DELETE)), "chat: change rolled-back"),
        (change(state=ChangeState.HANDED_OVER, remaining=("aws x",)), "chat: change handed-over"),
        (staged(), "chat: stage 1 proven, the next one follows"),
        (passed(turned_at=None), "chat: change rolled-back"),
        (passed(state=ChangeState.HANDED_OVER), "INCIDENT chat: its shadow may still run and cost money"),
        (passed(leads_on=False), "chat: shadow test ended"),
        (passed(), "chat: shadow test passed, the change follows"),
    ],
)
def test_the_subject_of_the_last_message_says_how_it_ended(known: Change, subject: str) -> None:
    assert end_subject(known) == subject


def test_a_test_that_somebody_else_has_to_approve_says_so_in_its_subject() -> None:
    asked = Entry(NOW, JournalEvent.ASK_TEST, "noted", "slack:U7")
    known = passed(journal=(asked, *passed().journal))
    assert end_subject(known) == "chat: shadow test passed, somebody else approves the change"


def test_a_handover_names_each_target_that_is_missing_and_none_that_is_there_or_was_not_read() -> None:
    second = replace(TARGET, resource_id="endpoint/chat/variant/w")
    handed = change(before=Before("old", NOW, "", (), scaling=(TARGET, second)), outcome="refused")
    both = f"AUTOSCALING IS MISSING on {TARGET.resource_id}, {second.resource_id}"
    rest = ": it serves with the instances it has. refused"
    assert handover_text(handed, LiveState(Gone("chat"), scaling=())) == both + rest
    one = handover_text(handed, LiveState(Gone("chat"), scaling=(TARGET,)))
    assert one == f"AUTOSCALING IS MISSING on {second.resource_id}{rest}"
    assert handover_text(handed, LiveState(Gone("chat"), scaling=(TARGET, second))) == "refused"
    assert handover_text(handed, LiveState(Gone("chat"), scaling=None)) == "refused"
    assert handover_text(replace(handed, before=None), LiveState(Gone("chat"), scaling=())) == "refused"
