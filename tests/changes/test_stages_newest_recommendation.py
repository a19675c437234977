"""What the newest recommendation lets an approved change do, without a table or an account."""

from dataclasses import replace
from datetime import timedelta

from rightsizer.changes.stages import (
    LOOK_AGAIN,
    NewestRecommendation,
    action_in_place,
    refusal_by_newest,
    with_covered_fleet,
)
from rightsizer.domain.change import Change, ChangeState, Course
from rightsizer.domain.next_action import Do, Steer, Wait
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding
from tests import samples
from tests.changes.memory import known_types

PROPOSAL = samples.proposal()
DECIDED = PROPOSAL.recommendation
LATER = DECIDED.evaluated_at + timedelta(days=1)
UPDATE = Do(Step(StepKind.UPDATE_ENDPOINT, "chat-prod to chat-prod-new"))


def change() -> Change:
    option = DECIDED.chosen_option
    assert option is not None
    return replace(samples.change(DECIDED.evaluated_at), option=option, proposal_id=PROPOSAL.id)


def code(read: NewestRecommendation) -> Code | None:
    found = refusal_by_newest(change(), PROPOSAL, read)
    return None if found is None else found.code


def test_a_change_goes_on_where_nothing_newer_stands_against_it() -> None:
    assert code(NewestRecommendation(DECIDED, table_made=DECIDED.evaluated_at)) is None
    assert code(NewestRecommendation(None)) is None


def test_a_change_waits_where_nobody_knows_the_newest_recommendation() -> None:
    assert code(NewestRecommendation(None, "field gate is missing")) is Code.JUDGEMENT_UNKNOWN
    assert code(NewestRecommendation(DECIDED, table_made=LATER)) is Code.JUDGEMENT_UNKNOWN


def test_a_change_ends_where_the_newest_recommendation_forbids_it() -> None:
    harmed = replace(DECIDED, evaluated_at=LATER, finding=Finding.UNDER_PROVISIONED)
    assert code(NewestRecommendation(harmed, table_made=LATER)) is Code.NEWER_JUDGEMENT


def test_what_restores_capacity_asks_no_recommendation() -> None:
    known = change()
    restoring = replace(known, option=replace(known.option, restores=True))
    assert refusal_by_newest(restoring, PROPOSAL, NewestRecommendation(None, "unreadable")) is None


def test_an_unreadable_recommendation_leaves_the_fleet_as_it_was_approved() -> None:
    known = change()
    assert with_covered_fleet(known, PROPOSAL, NewestRecommendation(None, "unreadable"), known_types(), LATER) == known


def test_an_unknown_recommendation_lets_the_change_wait_an_hour_and_a_forbidding_one_ends_it() -> None:
    unknown, forbids = Reason(Code.JUDGEMENT_UNKNOWN, "nobody knows"), Reason(Code.NEWER_JUDGEMENT, "too slow")
    assert action_in_place(change(), UPDATE, None, LATER) is UPDATE
    assert action_in_place(change(), UPDATE, unknown, LATER) == Wait(LATER + LOOK_AGAIN, "nobody knows")
    ended = action_in_place(change(), UPDATE, forbids, LATER)
    assert isinstance(ended, Steer)
    assert (ended.course, ended.ending, ended.reason.code) == (Course.CLOSE, ChangeState.REFUSED, Code.NEWER_JUDGEMENT)
