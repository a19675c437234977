"""What a change is told where the newest recommendation is unknown, older than the table, or sizes it anew."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from rightsizer.changes.overruled import covered_sentence
from rightsizer.changes.stages import (
    NewestRecommendation,
    action_in_place,
    refusal_by_newest,
    stage_size_sentence,
    with_covered_fleet,
)
from rightsizer.domain.change import (
    Change,
    ChangeState,
    Course,
    Entry,
    FailureClass,
    JournalEvent,
    PassedTest,
    ProvenStage,
)
from rightsizer.domain.next_action import Steer, Wait
from rightsizer.domain.option import Option, Target
from rightsizer.domain.plan import Plan, PlanKind
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from tests.changes.memory import known_types
from tests.changes.test_reconcile import CLEAR, TURN
from tests.changes.test_stages_newest_recommendation import DECIDED, LATER, PROPOSAL, UPDATE, change

DAY = timedelta(days=1)
FIRST = ProvenStage(1, "c-first", DECIDED.evaluated_at, "chat-cfg", "AllTraffic=3", None)
SLOW = Reason(Code.NEWER_JUDGEMENT, "too slow")
UNKNOWN = Reason(Code.JUDGEMENT_UNKNOWN, "nobody knows")


def option(**known: Any) -> Option:
    found = DECIDED.chosen_option
    assert found is not None
    return replace(found, **known)


def newest(*options: Option, **known: Any) -> Recommendation:
    return replace(DECIDED, evaluated_at=LATER, excluded=(), options=options or DECIDED.options, **known)


def against(
    known: Change, found: Recommendation | None, proposal: Proposal | None = PROPOSAL, **more: Any
) -> Reason | None:
    return refusal_by_newest(known, proposal, NewestRecommendation(found, **more))


def test_a_recommendation_that_cannot_be_read_is_named_with_the_cause() -> None:
    assert against(change(), None, unreadable="field gate is missing") == Reason(
        Code.JUDGEMENT_UNKNOWN,
        "the newest recommendation of chat cannot be read by this release (field gate is missing), so nobody knows it;"
        " the next evaluation, within a day, writes a new one",
    )


def test_a_recommendation_older_than_the_table_may_not_be_the_newest() -> None:
    said = (
        "the newest recommendation of chat is of Mon 12 Jan 2026, 09:30 UTC and older than the table, which was"
        " restored or"
        " copied on Tue 13 Jan 2026, 09:30 UTC: a later one may be lost; the next evaluation, within a day,"
        " writes a new one"
    )
    for found in (DECIDED, None):
        assert against(change(), found, table_made=LATER) == Reason(Code.JUDGEMENT_UNKNOWN, said)
    assert against(change(), None, table_made=DECIDED.evaluated_at) is None


def test_without_a_proposal_only_what_was_judged_since_the_change_was_created_counts() -> None:
    short = newest(finding=Finding.UNDER_PROVISIONED)
    found = against(change(), short, None)
    assert found is not None
    assert found.code is Code.NEWER_JUDGEMENT
    since = replace(change(), created_at=LATER + DAY)
    assert against(since, short, None) is None
    assert against(change(), None, None, table_made=LATER) is None, "nothing is known of either"
    assert against(since, short, None, table_made=LATER + DAY) is not None, "it may not be the newest"


def test_a_change_after_a_shadow_test_waits_for_an_evaluation_that_knows_the_test() -> None:
    done = PassedTest("c-0", LATER, "the shadow answered in 0.4 s", 0.4)
    known = replace(change(), after=done)
    said = (
        "the shadow test of chat ended on Tue 13 Jan 2026, 09:30 UTC (the shadow answered in 0.4 s); the change"
        " waits for an"
        " evaluation that knows what it measured, within a day"
    )
    for found in (None, DECIDED, newest()):
        assert against(known, found) == Reason(Code.JUDGEMENT_UNKNOWN, said)
    assert against(known, replace(newest(), evaluated_at=LATER + DAY)) is None


def test_a_change_whose_test_was_too_slow_does_not_follow_it() -> None:
    done = PassedTest("c-0", DECIDED.evaluated_at, "it answered", 0.9)
    assert DECIDED.replay is not None
    decided = replace(DECIDED, replay=replace(DECIDED.replay, objective_s=0.5))
    found = against(replace(change(), after=done), newest(), replace(PROPOSAL, recommendation=decided))
    assert found is not None
    assert found.code is Code.TOO_SLOW


def test_a_later_stage_waits_for_an_evaluation_of_what_runs_and_ends_where_nothing_covers_it() -> None:
    known = replace(change(), stage_before=FIRST)
    waits = against(known, DECIDED)
    assert waits is not None
    assert waits.sentence == (
        "stage 1 of chat was proven on Mon 12 Jan 2026, 09:30 UTC; stage 2 waits for an evaluation of what runs now"
    )
    assert against(known, newest()) is None
    gone = against(known, newest(option(target=Target("ml.g6.xlarge", 1))))
    assert gone is not None
    assert "does not offer" in gone.sentence


def test_automatic_mode_is_held_to_what_a_person_would_be_asked_about() -> None:
    asks = newest(gate=Gate.PROPOSE, gate_reason=Reason(Code.NEEDS_APPROVAL, "ask"))
    assert against(change(), asks, replace(PROPOSAL, decision=by("slack:U1"))) is None
    assert against(change(), asks, replace(PROPOSAL, decision=by("policy"))) is not None


def by(who: str, **known: Any) -> Decision:
    return Decision(ProposalState.APPROVED, who, DECIDED.evaluated_at, **known)


def test_an_approved_test_runs_and_its_change_does_not_where_a_test_is_asked_for() -> None:
    asks = newest(option(test_usd=Decimal(9)), gate=Gate.TEST, gate_reason=Reason(Code.TEST_WORTH_IT, "test first"))
    tested = replace(PROPOSAL, decision=by("slack:U1", test_first=True))
    assert against(change(), asks, tested) is None
    assert against(change(), asks) is not None
    leads = replace(change(), leads_on=True)
    for known, is_refused in ((leads, False), (change(), True)):
        found = against(replace(known, plan=Plan(kind=PlanKind.CHANGE)), asks, None)
        assert (found is not None) is is_refused, "without the proposal the change itself tells"


LARGER = option(target=Target("ml.g5.xlarge", 2), saving_usd_per_month=Decimal(3000))


def sized(known: Change, found: Recommendation | None, proposal: Proposal = PROPOSAL, **more: Any) -> Change:
    return with_covered_fleet(known, proposal, NewestRecommendation(found, **more), known_types(), LATER)


def test_the_fleet_that_the_approval_covers_is_the_one_that_begins_with_its_saving_and_a_line() -> None:
    made = sized(change(), newest(LARGER))
    said = covered_sentence(LARGER, option(), newest())
    assert made == replace(
        change(),
        option=LARGER,
        saving_usd_per_month=Decimal(3000),
        journal=(Entry(LATER, JournalEvent.PREFLIGHT, "noted", said),),
    )
    for found in (newest(), None, DECIDED):
        assert sized(change(), found) == change()
    assert sized(change(), newest(LARGER), unreadable="x") == change()


def test_the_kind_of_approval_decides_which_fleet_it_covers() -> None:
    needs_a_test = replace(LARGER, test_usd=Decimal(9))
    tested = replace(PROPOSAL, decision=by("slack:U1", test_first=True))
    assert sized(change(), newest(needs_a_test)) == change()
    assert sized(change(), newest(needs_a_test), tested).option == needs_a_test


def test_a_later_stage_begins_as_the_newest_recommendation_sizes_it() -> None:
    known = replace(change(), stage_before=FIRST)
    made = sized(known, newest(LARGER))
    assert made.option == LARGER
    assert made.journal[-1].detail == stage_size_sentence(made, newest())
    for found in (None, DECIDED, newest(option(target=Target("ml.g6.xlarge", 1)))):
        assert sized(known, found) == known, "it waits, or is refused"
    nothing = replace(PROPOSAL, recommendation=replace(DECIDED, options=()))
    assert sized(known, newest(LARGER), nothing) == known


def done(*steps: Any, hours: float = 0.2) -> Change:
    lines = tuple(Entry(LATER - timedelta(hours=hours), step.key, "done") for step in steps)
    return replace(change(), plan=Plan(clear=(CLEAR,), turn=TURN), journal=lines)


def test_an_endpoint_with_its_autoscaling_waits_for_an_update_that_may_still_show() -> None:
    until = LATER + timedelta(minutes=48)
    said = "too slow; the update that was asked already may still show until 10:18 UTC, and is not asked again"
    assert action_in_place(done(TURN), UPDATE, SLOW, LATER) == Wait(until, said)
    over = action_in_place(done(TURN, hours=2), UPDATE, SLOW, LATER)
    assert isinstance(over, Steer)


def test_what_is_forbidden_right_before_a_write_ends_the_change_and_gives_autoscaling_back() -> None:
    said = "too slow; seen right before the next write, and it was not made"
    ended = Steer(Reason(Code.NEWER_JUDGEMENT, said), Course.CLOSE, ChangeState.REFUSED, FailureClass.OUTSIDE)
    assert action_in_place(done(), UPDATE, SLOW, LATER) == ended
    for reason in (SLOW, UNKNOWN):
        for known in (done(CLEAR), done(CLEAR, TURN)):
            found = action_in_place(known, UPDATE, reason, LATER)
            text = f"{reason.sentence}; seen right before the next write, and it was not made"
            text += "; autoscaling goes back as it was"
            assert found == Steer(
                Reason(reason.code, text), Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.OUTSIDE
            )
