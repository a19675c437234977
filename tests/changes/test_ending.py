"""How a change ends, and what its proposal and people are told of that."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.changes.ending import (
    end_subject,
    finish_change,
    handover_text,
    shown_change_id,
    shown_outcome,
    shown_proposal_state,
    steer_change,
)
from rightsizer.domain.change import Change, ChangeState, Course, FailureClass, JournalEvent, ProvenStage
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import Gone, LiveState
from rightsizer.domain.next_action import Finish, Steer
from rightsizer.domain.plan import Before
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code, Reason
from tests import samples

NOW = samples.NOW
TARGET = ScalableTarget("endpoint/chat/variant/v", "sagemaker:variant:DesiredInstanceCount", 1, 4)
FIRST = ProvenStage(1, "c-first", NOW, "chat-cfg", "AllTraffic=3", None)


def change(**known: Any) -> Change:
    return samples.change(NOW, **known)


def test_a_change_that_goes_back_keeps_the_first_reason_and_its_failure() -> None:
    slow = Steer(Reason(Code.ROLLED_BACK, "p95 was 900 ms"), Course.BACK, failure=FailureClass.PERFORMANCE)
    back = steer_change(change(), slow, NOW)
    assert (back.state, back.course, back.back_for) == (ChangeState.RETURNING, Course.BACK, FailureClass.PERFORMANCE)
    assert back.journal[-1].step == JournalEvent.STEER
    again = steer_change(back, replace(slow, reason=Reason(Code.ROLLED_BACK, "asked")), NOW)
    assert again.reason == slow.reason
    assert again.outcome == "asked"


def test_a_finished_change_names_what_a_person_has_to_do() -> None:
    end = Finish(ChangeState.HANDED_OVER, Reason(Code.TIMEOUT, "it is Updating for 30 h"))
    ended = finish_change(
        change(remaining=("aws sagemaker x",)), end, LiveState(Gone("chat")), NOW, {"m": "2 copies are left"}
    )
    assert ended.state is ChangeState.HANDED_OVER
    assert ended.next_due is None
    assert ended.outcome == "it is Updating for 30 h; 2 copies are left; to be done by a person: aws sagemaker x"


@pytest.mark.parametrize(
    ("known", "state", "subject"),
    [
        ({"reason": Reason(Code.EXPIRED, "old")}, ProposalState.EXPIRED, "approval expired"),
        ({"asked_back_by": "slack:U1"}, ProposalState.REJECTED, "stopped before it began"),
        ({}, ProposalState.WITHDRAWN, "change refused"),
    ],
)
def test_a_refused_change_says_why_it_never_began(known: dict[str, Any], state: ProposalState, subject: str) -> None:
    refused = change(state=ChangeState.REFUSED, **known)
    assert shown_proposal_state(refused) is state
    assert end_subject(refused) == f"{refused.ref.name}: {subject}"


def test_a_later_stage_that_is_refused_leaves_the_proposal_on_the_stage_that_stands() -> None:
    refused = change(state=ChangeState.REFUSED, stage_before=FIRST, outcome="too risky")
    assert shown_proposal_state(refused) is ProposalState.PROVEN
    assert shown_change_id(refused) == "c-first"
    assert shown_outcome(refused) == "stage 2 of 2: too risky; this ends the plan, and stage 1 (c-first) stands"


def test_a_handover_says_first_that_autoscaling_is_missing() -> None:
    handed = change(before=Before("old", NOW, "", (), scaling=(TARGET,)), outcome="the registration was refused")
    assert handover_text(handed, LiveState(Gone("chat"), scaling=())).startswith("AUTOSCALING IS MISSING on endpoint/")
    assert handover_text(handed, None) == "the registration was refused"
