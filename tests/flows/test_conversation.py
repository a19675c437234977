"""The owner is mentioned, what follows goes into the thread, many at once become one digest, a picture is begun."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.domain.message import DigestLine, Gathering, ProposalMessage
from rightsizer.domain.proposal import Decision, ProposalMoved, ProposalState
from rightsizer.errors import ReadError, RightsizerError, ThrottledError, WriteRefusedError
from rightsizer.flows.digest import FEW, thread_for
from tests.flows.test_propose import Spy, moved
from tests.samples import NOW, proposal


def mentioned(spy: Spy) -> list[str]:
    return [one.owner for one in spy.messages if isinstance(one, ProposalMessage)]


def test_the_owner_is_looked_up_once_and_mentioned_to_the_end() -> None:
    spy = Spy(ids={"search": "U0ADA123"})
    spy.tell(moved(proposal()))
    spy.ids.clear()
    spy.tell(moved(replace(proposal(), state=ProposalState.APPROVED), ProposalState.PENDING))
    assert mentioned(spy) == ["U0ADA123", "U0ADA123"]


def test_without_the_scope_the_message_goes_out_all_the_same_and_that_is_told_once() -> None:
    spy = Spy()
    for number in range(3):
        spy.fail_once["person"] = WriteRefusedError("users.lookupByEmail", "missing_scope", "add it")
        assert spy.tell(moved(proposal(f"p-{number}", f"chat-{number}"))) == []
    assert mentioned(spy) == ["", "", ""]
    assert len([one for one in spy.texts if "who an owner is" in one]) == 1


def test_what_follows_goes_into_the_thread_of_the_one_message() -> None:
    spy, asked = Spy(), proposal()
    spy.tell(moved(asked))
    decided = replace(asked, state=ProposalState.APPROVED, decision=Decision(ProposalState.APPROVED, "slack:U1", NOW))
    spy.tell(moved(decided, ProposalState.PENDING))
    spy.tell(moved(replace(decided, state=ProposalState.APPLYING, outcome="Baking."), ProposalState.APPROVED))
    spy.tell(moved(replace(decided, state=ProposalState.APPLYING, outcome="Watched."), ProposalState.APPLYING))
    assert (len(spy.posts), len(spy.updates)) == (1, 3)
    assert [one.partition(":")[0] for one in spy.replies] == ["1.0", "1.0"]
    assert "Approved by <@U1>" in spy.replies[0]


def test_a_thread_that_fails_loses_nothing() -> None:
    spy, asked = Spy(), proposal()
    spy.tell(moved(asked))
    spy.fail_once["reply"] = ThrottledError("later")
    assert spy.tell(moved(replace(asked, state=ProposalState.REJECTED), ProposalState.PENDING)) == []
    assert spy.known[asked.id].shown == "rejected|"


@pytest.mark.parametrize("state", [ProposalState.REJECTED, ProposalState.SNOOZED])
def test_a_question_that_comes_back_is_a_new_message(state: ProposalState) -> None:
    spy, asked = Spy(), proposal()
    spy.tell(moved(asked))
    spy.tell(moved(replace(asked, state=state), ProposalState.PENDING))
    spy.tell(moved(asked, None, sequence="9"))
    assert len(spy.posts) == 2, "its row was deleted by its TTL, and made anew"
    spy.tell(moved(replace(asked, state=state), ProposalState.PENDING))
    spy.tell(moved(asked, state))
    assert len(spy.posts) == 3


def many(count: int) -> list[ProposalMoved]:
    return [moved(proposal(f"p-{n}", f"chat-{n}"), sequence=str(n)) for n in range(count)]


def test_up_to_five_stand_by_themselves_and_more_in_the_thread_of_one_digest() -> None:
    spy = Spy()
    assert spy.tell(*many(FEW)) == []
    assert len(spy.posts) == FEW
    spy = Spy()
    assert spy.tell(*many(8)) == []
    assert spy.posts[0].startswith("8 new proposals could save $33,124 a month")
    assert len(spy.posts) == 9
    threads = {one.thread for one in spy.messages if isinstance(one, ProposalMessage)}
    assert threads == {"1.0"}


def test_those_of_the_next_batch_join_the_digest_and_those_of_the_next_hour_do_not() -> None:
    spy = Spy()
    spy.tell(*many(8))
    spy.tell(*(replace(one, sequence=f"{one.sequence}b") for one in many(10)))
    assert spy.updates == ["10 new proposals could save $41,405 a month"]
    assert len(spy.posts) == 1 + 10
    later = NOW + timedelta(minutes=31)
    line = DigestLine("p-x", "x", proposal().recommendation.saving_usd_per_month)
    assert thread_for(spy, spy, [line], later).ts == ""


def test_a_second_invocation_waits_for_the_digest_that_the_first_one_posts() -> None:
    line = [DigestLine(f"p-{n}", "x", proposal().recommendation.saving_usd_per_month) for n in range(FEW + 1)]
    spy = Spy(gatherings={"": Gathering(NOW, tuple(line), claimed_at=NOW, version=3)})
    assert sorted(spy.tell(*many(2))) == ["0", "1"], "they come again"
    assert spy.posts == []
    after = NOW + timedelta(minutes=2)
    assert thread_for(spy, spy, line, after).ts == "1.0", "who claimed it is dead"


def test_a_digest_that_slack_refuses_leaves_each_to_itself() -> None:
    spy = Spy(fail_once={"post": WriteRefusedError("posting", "msg_too_long", "")})
    assert spy.tell(*many(7)) == []
    assert {one.thread for one in spy.messages if isinstance(one, ProposalMessage)} == {""}


def test_the_picture_is_begun_after_the_post_once_and_its_failure_hurts_nobody() -> None:
    spy, asked = Spy(), proposal()
    spy.tell(moved(asked))
    spy.tell(moved(replace(asked, state=ProposalState.APPROVED), ProposalState.PENDING))
    assert spy.drawn == [asked.id]
    other = Spy(fail_once={"draw": ReadError("no function")})
    assert other.tell(moved(asked)) == []
    assert len(other.posts) == 1


def test_later_edits_keep_the_picture() -> None:
    spy, asked = Spy(), proposal()
    spy.tell(moved(asked))
    spy.keep_picture(asked.id, "1.0", "F0PICTURE1")
    spy.tell(moved(replace(asked, state=ProposalState.APPROVED), ProposalState.PENDING))
    last = spy.messages[-1]
    assert isinstance(last, ProposalMessage)
    assert last.picture == "F0PICTURE1"


def test_another_option_that_is_taken_shows_no_old_picture_and_is_drawn_once() -> None:
    spy, asked = Spy(), proposal()
    spy.tell(moved(asked))
    spy.keep_picture(asked.id, "1.0", "F0PICTURE1")
    taken = replace(asked, revision=1, outcome="U1 took option 2.")
    for revision in (1, 2):
        taken = replace(taken, revision=revision)
        assert spy.tell(moved(taken, ProposalState.PENDING)) == []
        assert len(spy.updates) == revision, "the outcome is the same, the option is another"
        last = spy.messages[-1]
        assert isinstance(last, ProposalMessage)
        assert (last.picture, spy.known[asked.id].picture) == ("", "")
    spy.tell(moved(taken, ProposalState.PENDING))
    assert spy.drawn == [asked.id] * 3


def test_a_message_that_was_deleted_and_is_posted_anew_is_drawn_anew() -> None:
    spy, asked = Spy(), proposal()
    spy.tell(moved(asked))
    spy.keep_picture(asked.id, "1.0", "F0PICTURE1")
    spy.fail_once["update"] = WriteRefusedError("calling Slack", "message_not_found", "")
    spy.tell(moved(replace(asked, state=ProposalState.APPROVED), ProposalState.PENDING))
    last = spy.messages[-1]
    assert isinstance(last, ProposalMessage)
    assert last.picture == "", "its file may be gone with the message"
    assert spy.drawn == [asked.id] * 2


def test_a_post_whose_rest_failed_is_drawn_when_it_comes_again() -> None:
    spy, asked = Spy(fail_once={"publish": ThrottledError("later")}), proposal()
    assert spy.tell(moved(asked)) == ["1"]
    assert spy.tell(moved(asked)) == []
    assert spy.drawn == [asked.id]


@pytest.mark.parametrize("error", [ThrottledError("Slack answers 503"), ReadError("no token")])
def test_a_digest_that_slack_does_not_take_now_is_posted_by_the_next_try(error: RightsizerError) -> None:
    spy = Spy(fail_once={"post": error})
    assert sorted(spy.tell(*many(7))) == [str(n) for n in range(7)], "they come again with their digest"
    assert spy.gatherings[""].claimed_at is None
    assert spy.tell(*many(7)) == []
    assert spy.posts[0].startswith("7 new proposals")
    assert len(spy.posts) == 8


def test_what_was_told_at_that_version_is_in_no_digest_when_the_stream_is_read_again() -> None:
    spy = Spy()
    rows = [replace(one, version=1) for one in many(4)]
    assert spy.tell(*rows) == []
    spy = Spy(known=spy.known)  # another day
    assert spy.tell(*rows, *(replace(one, sequence=f"{one.sequence}n") for one in many(6)[4:])) == []
    assert len(spy.posts) == 2, "six rows, of which two are new: no digest"
    assert len(spy.gatherings[""].lines) == 2
