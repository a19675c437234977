"""Digests: one for each channel, and its lines follow their proposals to the end."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from rightsizer.domain.message import Digest, ProposalMessage
from rightsizer.domain.proposal import Proposal, ProposalMoved, ProposalState
from rightsizer.errors import ConflictError, ThrottledError
from rightsizer.flows.digest import FEW
from rightsizer.flows.propose import ProposePorts, propose
from rightsizer.render.messages import slack_blocks
from tests.flows.test_conversation import many
from tests.flows.test_propose import Spy, moved
from tests.notifiers import Told
from tests.samples import NOW, proposal


def tell(spy: Spy, moves: list[ProposalMoved], odd_apart: bool = False, now: datetime = NOW) -> list[str]:
    """Every second proposal goes to a channel of its own with `odd_apart`."""

    def digest_of(one: Proposal) -> str:
        return "C0ADS" if odd_apart and int(one.id.removeprefix("p-")) % 2 else ""

    ports = ProposePorts(spy, Told(spy.publish), spy, spy, spy, spy, digest_of=digest_of)
    return propose(ports, moves, now)


def later(number: int, state: ProposalState, measured: Decimal | None = None) -> ProposalMoved:
    asked = replace(proposal(f"p-{number}", f"chat-{number}"), state=state, measured_usd_per_month=measured)
    return moved(asked, ProposalState.PENDING)


def digests(spy: Spy) -> list[Digest]:
    return [one for one in spy.messages if isinstance(one, Digest)]


def test_each_channel_counts_for_itself_and_has_a_digest_of_its_own() -> None:
    spy = Spy()
    assert tell(spy, many(2 * FEW), odd_apart=True) == []
    assert digests(spy) == [], "five in each channel"
    spy = Spy()
    assert tell(spy, many(2 * FEW + 1), odd_apart=True) == []
    assert [(one.channel, len(one.lines)) for one in digests(spy)] == [("", FEW + 1)]
    spy = Spy()
    assert tell(spy, many(2 * FEW + 2), odd_apart=True) == []
    assert [(one.channel, len(one.lines)) for one in digests(spy)] == [("", 6), ("C0ADS", 6)]
    threads = {one.proposal.id: one.thread for one in spy.messages if isinstance(one, ProposalMessage)}
    assert {threads["p-0"], threads["p-2"]} == {"1.0"}
    assert {threads["p-1"], threads["p-3"]} == {"2.0"}


def test_lines_follow_their_proposals_and_the_digest_is_edited_in_place() -> None:
    spy = Spy()
    tell(spy, many(8))
    posts = len(spy.posts)
    proven = later(2, ProposalState.PROVEN, Decimal(412))
    assert tell(spy, [later(0, ProposalState.APPROVED), later(1, ProposalState.REJECTED), proven]) == []
    assert len(spy.posts) == posts
    last = digests(spy)[-1]
    assert sum(isinstance(one, Digest) for one in spy.messages) == 2, "one edit for the whole batch"
    said = str(slack_blocks(last))
    assert "5 of 8 proposals wait for an answer and could save $20,703 a month" in said
    assert "chat-0: approved, saves $4,141 a month" in said
    assert "chat-1: rejected\\n" in said
    assert "chat-2: changed and proven, measured: $412 a month" in said
    for number in range(8):
        tell(spy, [later(number, ProposalState.WITHDRAWN)])
    assert spy.updates[-2:][0 if spy.updates[-1].startswith("chat") else 1] == (
        "None of 8 proposals waits for an answer any more"
    )


def test_a_digest_follows_after_the_next_one_began() -> None:
    spy = Spy()
    tell(spy, many(8))
    tomorrow = NOW + timedelta(days=1)
    tell(spy, [replace(one, sequence=f"{one.sequence}b") for one in many(20)[8:]], now=tomorrow)
    assert len(digests(spy)) == 2
    tell(spy, [later(3, ProposalState.APPROVED)], now=tomorrow)
    assert [len(one.lines) for one in digests(spy)] == [8, 12, 8]
    assert "chat-3: approved" in str(slack_blocks(digests(spy)[-1]))


@pytest.mark.parametrize("error", [ConflictError("somebody was faster"), ThrottledError("slow down")])
def test_a_digest_that_cannot_be_renewed_stops_no_proposal(error: Exception) -> None:
    spy = Spy()
    tell(spy, many(8))
    spy.fail_once["swap"] = error
    assert tell(spy, [later(0, ProposalState.APPROVED)]) == []
    assert spy.known["p-0"].shown.startswith("approved")
    tell(spy, [later(1, ProposalState.APPROVED)])
    assert "chat-1: approved" in str(slack_blocks(digests(spy)[-1]))


def test_a_question_that_comes_back_while_the_topic_fails_is_posted_once() -> None:
    spy, asked = Spy(), proposal()
    snoozed = replace(asked, state=ProposalState.SNOOZED)
    tell(spy, [moved(asked)])
    tell(spy, [moved(snoozed, ProposalState.PENDING)])
    back = moved(asked, ProposalState.SNOOZED, sequence="7")
    for _ in range(3):
        spy.fail_once["publish"] = ThrottledError("SNS is down")
        assert tell(spy, [back]) == ["7"]
    assert tell(spy, [back]) == []
    assert len(spy.posts) == 2
    assert len(spy.texts) == 2, "and the text follows once"


def test_what_was_posted_before_the_topic_failed_joins_no_later_digest() -> None:
    spy = Spy()
    for one in many(FEW):
        spy.fail_once["publish"] = ThrottledError("SNS is down")
        assert tell(spy, [one]) == [one.sequence]
    assert tell(spy, many(FEW), now=NOW + timedelta(hours=1)) == []
    assert len(spy.posts) == FEW
    assert len(spy.texts) == FEW


def test_a_refused_event_is_sent_when_the_proposal_comes_again_and_only_once() -> None:
    spy, asked = Spy(fail_once={"event": ThrottledError("EventBridge is down")}), proposal()
    first = ProposalMoved("1", asked, None, version=1)
    assert tell(spy, [first]) == []
    assert (spy.events, spy.known[asked.id].event_due) == ([], True)
    again = ProposalMoved("2", asked, asked.state, version=2)
    spy.fail_once["event"] = ThrottledError("EventBridge is still down")
    assert tell(spy, [again]) == []
    assert spy.known[asked.id].event_due
    assert tell(spy, [replace(again, version=3)]) == []
    assert (spy.events, spy.known[asked.id].event_due) == ([f"{asked.id}/pending"], False)
    assert tell(spy, [replace(again, version=4)]) == []
    assert len(spy.events) == 1
    assert (len(spy.posts), len(spy.texts)) == (1, 1)
