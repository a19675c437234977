"""Answers of Slack on the table: another option, revisions, snoozes, silence after a no, the digest, the picture."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rightsizer.aws import decisions
from rightsizer.aws.message_book import Messages
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table, epoch
from rightsizer.bootstrap.deciders import require_decider
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.message import DigestLine, Gathering
from rightsizer.domain.option import OptionKind, Risk, Target
from rightsizer.domain.proposal import (
    Decision,
    MessageRef,
    Proposal,
    ProposalState,
    may_ask_again,
    shown_revision,
    shown_state,
)
from rightsizer.domain.recommendation import Gate
from rightsizer.errors import ConflictError, NotApproverError, VanishedError
from tests.policies import document
from tests.samples import NOW, option, proposal, recommendation
from tests.table import decide

PID = "p-5f2c9a7d1e3b4c60"
OTHER = option(target=Target("ml.g5.2xlarge", 1), saving_usd_per_month=Decimal(3000))
NO = Decision(ProposalState.REJECTED, "slack:U1", NOW)


def asked(**more: object) -> Proposal:
    made = proposal(recommendation=recommendation(options=(option(), OTHER)))
    return replace(made, **more)  # type: ignore[arg-type]


def test_an_option_that_is_taken_is_a_new_revision_that_waits_and_is_approved_by_the_same_rules(
    table: Table, store: Recommendations
) -> None:
    store.save(asked().recommendation, asked())
    decisions.take_option(table, PID, 0, 1, "slack:U1", NOW)
    taken = store.proposal(PID)
    assert taken is not None
    assert (taken.state, taken.revision, taken.decision) == (ProposalState.PENDING, 1, None)
    assert [one.target.instance_type for one in taken.recommendation.options] == ["ml.g5.2xlarge", "ml.g5.xlarge"]
    assert taken.recommendation.gate is Gate.PROPOSE
    assert taken.recommendation.replay is None, "what was replayed was the other option"
    with pytest.raises(ConflictError, match="asks for something else now"):
        decide(store, PID, Decision(ProposalState.APPROVED, "slack:U2", NOW, revision=0), NOW)
    approved = Decision(ProposalState.APPROVED, "slack:U2", NOW, revision=1)
    assert decide(store, PID, approved, NOW).state is ProposalState.APPROVED


def test_an_option_that_is_taken_twice_is_told_twice_and_sent_again_where_its_message_was_lost(
    table: Table, store: Recommendations
) -> None:
    store.save(asked().recommendation, asked())
    keys = []
    for revision in (0, 1):
        decisions.take_option(table, PID, revision, 1, "slack:U1", NOW)
        taken = store.proposal(PID)
        assert taken is not None
        keys.append(shown_state(taken.state, taken.outcome, taken.asked_back_by, taken.revision))
    assert keys[0] != keys[1]
    assert [shown_revision(one) for one in keys] == [1, 2]
    Messages(table).remember(MessageRef(PID, "C1", "1.0", keys[0]))
    assert store.tell_again(NOW + timedelta(hours=2), everything=True) == 1
    Messages(table).remember(MessageRef(PID, "C1", "1.0", keys[1]))
    assert store.tell_again(NOW + timedelta(hours=4), everything=True) == 0


def test_who_took_an_option_asked_for_it_and_the_stages_behind_the_other_one_go(
    table: Table, store: Recommendations
) -> None:
    made = asked(recommendation=replace(asked().recommendation, stages=(option(kind=OptionKind.INSTANCE_COUNT),)))
    store.save(made.recommendation, made)
    decisions.take_option(table, PID, 0, 1, "slack:U1", NOW)
    taken = store.proposal(PID)
    assert taken is not None
    assert taken.recommendation.stages == ()
    assert taken.ordered_by == "slack:U1"
    lists = Approvers(), document({"defaults": {"four_eyes": True, "approvers": ["U1", "U2"]}})
    with pytest.raises(NotApproverError, match="four eyes: U1 asked for this"):
        require_decider(table, PID, "slack:U1", lists, approves=True)
    require_decider(table, PID, "slack:U2", lists, approves=True)


@pytest.mark.parametrize(
    ("made", "revision", "place", "why"),
    [
        (asked(), 1, 1, "asks for something else now"),
        (asked(), 0, 0, "no option 1"),
        (asked(), 0, 9, "no option 10"),
        (asked(approvable=False, enable="tag it"), 0, 1, "may not be changed by rightsizer"),
        (asked(expires_at=NOW), 0, 1, "has expired"),
    ],
)
def test_what_cannot_be_taken_says_why(
    table: Table, store: Recommendations, made: Proposal, revision: int, place: int, why: str
) -> None:
    store.save(made.recommendation, made)
    with pytest.raises(ConflictError, match=why):
        decisions.take_option(table, PID, revision, place, "slack:U1", NOW)
    with pytest.raises(VanishedError):
        decisions.take_option(table, "p-none", 0, 1, "slack:U1", NOW)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (option(kind=OptionKind.SERVERLESS, in_place=False, client_change="call another one"), "its owner carries it"),
        (option(risk=Risk.HIGH), "its risk is 3 of 4"),
    ],
)
def test_an_option_of_the_owners_or_of_a_high_risk_is_not_taken(
    table: Table, store: Recommendations, other: object, why: str
) -> None:
    made = proposal(recommendation=recommendation(options=(option(), other)))
    store.save(made.recommendation, made)
    with pytest.raises(ConflictError, match=why):
        decisions.take_option(table, PID, 0, 1, "slack:U1", NOW)


@pytest.mark.parametrize("days", [7, 30, 90])
def test_a_snooze_lasts_as_long_as_it_says_and_ends_before_the_row_is_deleted(
    table: Table, store: Recommendations, days: int
) -> None:
    store.save(asked().recommendation, asked())
    snoozed = decide(store, PID, Decision(ProposalState.SNOOZED, "slack:U1", NOW, snooze_days=days), NOW)
    assert snoozed.decision is not None
    assert snoozed.decision.snooze_days == days
    row = decisions.find(table, PID)
    assert row is not None
    assert row["expires"] == epoch(NOW, days)
    for late, opened in ((timedelta(days=days, seconds=-1), False), (timedelta(days=days), True)):
        again = replace(asked().recommendation, evaluated_at=NOW + late)
        assert store.save(again, replace(asked(), recommendation=again)) is opened


@pytest.mark.parametrize(
    ("share", "days", "opened"),
    [(1.0, 1, False), (1.24, 30, False), (0.76, 30, False), (1.25, 1, True), (0.75, 1, True), (1.0, 90, True)],
)
def test_after_a_no_there_is_silence_until_the_demand_moves_by_a_quarter_or_ninety_days_passed(
    store: Recommendations, share: float, days: int, opened: bool
) -> None:
    store.save(asked().recommendation, asked())
    decide(store, PID, NO, NOW)
    seen = asked().recommendation.evidence
    assert seen is not None
    moved = replace(seen, requests=round(seen.requests * share))
    later = replace(asked().recommendation, evaluated_at=NOW + timedelta(days=days), evidence=moved)
    assert store.save(later, replace(asked(), recommendation=later)) is opened


def test_what_is_not_known_does_not_break_the_silence() -> None:
    rejected = asked(state=ProposalState.REJECTED, decision=NO)
    unknown = replace(rejected.recommendation, evidence=None)
    assert not may_ask_again(rejected, unknown, NOW)
    assert not may_ask_again(replace(rejected, recommendation=unknown), rejected.recommendation, NOW)


def test_a_picture_belongs_to_the_message_that_it_was_drawn_for(table: Table) -> None:
    book = Messages(table)
    book.remember(MessageRef("p-1", "C1", "1.0", "pending|", 1, "U0ADA123", "0.5"))
    book.keep_picture("p-1", "1.0", "F000000001")
    known = book.message("p-1")
    assert known == MessageRef("p-1", "C1", "1.0", "pending|", 1, "U0ADA123", "0.5", "F000000001")
    book.remember(replace(known, ts="2.0"))
    again = book.message("p-1")
    assert again is not None
    assert again.picture == ""


def test_new_proposals_are_gathered_once_though_several_count_at_once(table: Table) -> None:
    book = Messages(table)
    assert book.gathering() is None
    one = Gathering(NOW, (DigestLine("p-1", "chat", Decimal(5)),), version=1)
    book.swap_gathering(one, 0)
    for version in (0, 5):
        with pytest.raises(ConflictError):
            book.swap_gathering(replace(one, version=2), version)
    book.swap_gathering(replace(one, ts="1.0", channel="C1", claimed_at=NOW, version=2), 1)
    assert book.gathering() == replace(one, ts="1.0", channel="C1", claimed_at=NOW, version=2)
    assert book.gathering("C0ADS") is None
    book.swap_gathering(one, 0, "C0ADS")
    assert book.gathering("C0ADS") == one
