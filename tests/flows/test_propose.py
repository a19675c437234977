"""A proposal's message is posted once, follows its change, and one failure stays alone."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from unittest.mock import patch

import pytest

from rightsizer import telemetry
from rightsizer.domain.message import CapacityChangeMessage, Gathering, Message, Notice, ProposalMessage
from rightsizer.domain.proposal import MessageRef, Proposal, ProposalMoved, ProposalState
from rightsizer.errors import ConflictError, ThrottledError, WriteRefusedError
from rightsizer.flows.propose import REFUSED, ProposePorts, propose
from rightsizer.render.messages import plain, slack_line, thread_line
from tests.notifiers import Told
from tests.samples import NOW, proposal


@dataclass
class Spy:
    """Stands for the channel, the book and the page store, and remembers what was said."""

    posts: list[str] = field(default_factory=list)
    updates: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)
    known: dict[str, MessageRef] = field(default_factory=dict)
    slack: bool = True
    events: list[str] = field(default_factory=list)
    parked: list[str] = field(default_factory=list)
    fail_once: dict[str, Exception] = field(default_factory=dict)
    gatherings: dict[str, Gathering] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    replies: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def _may_fail(self, method: str) -> None:
        if error := self.fail_once.pop(method, None):
            raise error

    def post(self, message: Message) -> MessageRef | None:
        assert not isinstance(message, Notice)
        self._may_fail("post")
        self.posts.append(slack_line(message))
        self.messages.append(message)
        thread = message.thread if isinstance(message, ProposalMessage) else ""
        return MessageRef("", "C1", f"{len(self.posts)}.0", "", thread=thread) if self.slack else None

    def update(self, ref: MessageRef, message: Message) -> None:
        self._may_fail("update")
        self.updates.append(slack_line(message))
        self.messages.append(message)

    def publish(self, subject: str, text: str) -> None:
        self._may_fail("publish")
        self.texts.append(subject)

    def proposal_moved(self, proposal: Proposal) -> None:
        self._may_fail("event")
        self.events.append(f"{proposal.id}/{proposal.state}")

    def message(self, proposal_id: str) -> MessageRef | None:
        return self.known.get(proposal_id)

    def remember(self, message: MessageRef) -> None:
        self.known[message.proposal_id] = message

    def keep_picture(self, proposal_id: str, ts: str, file: str) -> None:
        self.known[proposal_id] = replace(self.known[proposal_id], picture=file)

    def gathering(self, name: str = "") -> Gathering | None:
        return self.gatherings.get(name)

    def swap_gathering(self, gathering: Gathering, version: int, name: str = "") -> None:
        self._may_fail("swap")
        known = self.gatherings.get(name)
        if (known.version if known else 0) != version:
            raise ConflictError("somebody was faster")
        self.gatherings[name] = gathering

    def person(self, owner: str) -> str:
        self._may_fail("person")
        return self.ids.get(owner, "")

    def reply(self, ref: MessageRef, message: ProposalMessage) -> None:
        self._may_fail("reply")
        self.replies.append(f"{ref.thread or ref.ts}: {thread_line(message)}")

    def draw(self, identity: str) -> None:
        self._may_fail("draw")
        self.drawn.append(identity)

    def park(self, proposal_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> bool:
        if proposal_id in self.parked:
            return True
        if tell(f"proposal {proposal_id} cannot be read and waits", cause):
            self.parked.append(proposal_id)
        return proposal_id in self.parked

    def keep(self, message: ProposalMessage | CapacityChangeMessage) -> str:
        self._may_fail("put")
        self.pages.append(plain(message)[0])
        return f"https://example.com/{len(self.pages)}"

    def tell(self, *moves: ProposalMoved) -> list[str]:
        return propose(ProposePorts(self, Told(self.publish), self, self, self, self, self.draw), moves, NOW)


def moved(asked: Proposal, before: ProposalState | None = None, sequence: str = "1") -> ProposalMoved:
    return ProposalMoved(sequence, asked, before)


def test_rows_that_are_read_once_more_are_not_told_again() -> None:
    spy = Spy()
    asked = proposal()
    gone = replace(asked, state=ProposalState.ROLLED_BACK, outcome="It is as it was.")
    first = ProposalMoved("1", asked, None, version=1)
    last = ProposalMoved("2", gone, asked.state, version=2)
    assert spy.tell(first, last) == []
    told = (list(spy.posts), list(spy.updates), list(spy.texts), list(spy.events))
    assert len(told[2]) == 2
    assert spy.tell(first, last) == []
    assert (spy.posts, spy.updates, spy.texts, spy.events) == told
    again = ProposalMoved("3", asked, ProposalState.ROLLED_BACK, version=3)
    assert spy.tell(again) == []
    assert len(spy.texts) == 3, "a later row is told"


def test_a_new_proposal_is_posted_and_published_once_however_often_it_is_delivered() -> None:
    spy = Spy()
    for _ in range(5):
        assert spy.tell(moved(proposal())) == []
    assert (len(spy.posts), len(spy.updates), len(spy.texts)) == (1, 0, 1)
    assert spy.events == [f"{proposal().id}/pending"]


def test_the_message_follows_the_change_to_its_end() -> None:
    spy, asked = Spy(), proposal()
    spy.tell(moved(asked))
    steps = [("approved", ""), ("applying", "Baking."), ("applying", "Shifting."), ("proven", "812 requests.")]
    before = ProposalState.PENDING
    for state, outcome in steps:
        spy.tell(moved(replace(asked, state=ProposalState(state), outcome=outcome), before))
        before = ProposalState(state)
    assert len(spy.posts) == 1
    assert len(spy.updates) == 4
    assert [event.partition("/")[2] for event in spy.events] == ["pending", "approved", "applying", "proven"]
    assert len(spy.texts) == 2
    assert spy.known[asked.id].ts == "1.0"


def test_a_proposal_that_is_opened_again_is_posted_anew() -> None:
    spy, asked = Spy(), proposal()
    spy.tell(moved(asked))
    spy.tell(moved(replace(asked, state=ProposalState.EXPIRED), ProposalState.PENDING))
    spy.tell(moved(asked, ProposalState.EXPIRED))
    assert len(spy.posts) == 2
    assert spy.known[asked.id].ts == "2.0"


def test_a_deleted_message_is_posted_anew() -> None:
    spy, asked = Spy(), proposal()
    spy.tell(moved(asked))
    spy.fail_once["update"] = WriteRefusedError("calling Slack", "message_not_found", "")
    assert spy.tell(moved(replace(asked, state=ProposalState.APPROVED), ProposalState.PENDING)) == []
    assert len(spy.posts) == 2


def test_a_failed_text_is_tried_again_without_a_second_message() -> None:
    spy, asked = Spy(fail_once={"publish": ThrottledError("later")}), proposal()
    assert spy.tell(moved(asked)) == ["1"]
    assert spy.tell(moved(asked)) == []
    assert (len(spy.posts), len(spy.updates), len(spy.texts)) == (1, 1, 1)


def test_one_failure_leaves_the_others_alone() -> None:
    spy = Spy(fail_once={"post": ThrottledError("later")})
    other = proposal("p-2", "other")
    assert spy.tell(moved(proposal()), moved(other, sequence="3")) == ["1"]
    assert list(spy.known) == ["p-2"]


def test_a_record_that_nobody_can_read_is_told_once_and_does_not_come_again() -> None:
    spy, bad = Spy(), ProposalMoved("2", None, None, "id: Field required", "p-bad")
    for _ in range(3):
        assert spy.tell(bad, moved(proposal(), sequence="3")) == []
    assert spy.texts.count("proposal p-bad cannot be read and waits") == 1
    assert len(spy.posts) == 1


def test_a_record_that_nobody_can_read_comes_again_while_the_topic_does_not_take_the_message() -> None:
    spy, bad = Spy(), ProposalMoved("2", None, None, "id: Field required", "p-bad")
    spy.fail_once["publish"] = ThrottledError("later")
    assert spy.tell(bad) == ["2"]
    assert spy.tell(bad) == []


def test_a_record_without_any_key_is_passed_over() -> None:
    assert Spy().tell(ProposalMoved("2", None, None, "pk: Field required")) == []


def test_a_fault_of_ours_at_one_proposal_leaves_the_others_alone() -> None:
    spy = Spy(fail_once={"post": OverflowError("date value out of range")})
    other = proposal("p-2", "other")
    assert spy.tell(moved(proposal()), moved(other, sequence="2")) == ["1"]
    assert list(spy.known) == ["p-2"]


@pytest.mark.parametrize("spoilt", ["p-1", "p-2", "p-3"])
def test_an_unforeseen_error_at_one_of_three_fails_that_record_and_the_others_are_told(spoilt: str) -> None:
    @dataclass
    class Faulty(Spy):
        def message(self, proposal_id: str) -> MessageRef | None:
            if proposal_id == spoilt:
                raise ValueError("a case that nobody foresaw")
            return super().message(proposal_id)

    names, spy = ("p-1", "p-2", "p-3"), Faulty()
    moves = [moved(proposal(name, f"endpoint-{name}"), sequence=f"sequence of {name}") for name in names]
    with patch.object(telemetry, "count") as counted:
        assert spy.tell(*moves) == [f"sequence of {spoilt}"]
    assert list(spy.known) == [name for name in names if name != spoilt]
    assert len(spy.posts) == 2
    counted.assert_called_once_with(UnforeseenErrors=1)


def test_without_a_details_page_the_message_still_asks() -> None:
    spy = Spy(fail_once={"put": WriteRefusedError("storing", "NoSuchBucket", "")})
    assert spy.tell(moved(proposal())) == []
    assert len(spy.posts) == 1


def test_an_event_that_is_not_taken_does_not_stop_the_message() -> None:
    spy = Spy(fail_once={"event": WriteRefusedError("sending", "InternalFailure", "")})
    assert spy.tell(moved(proposal())) == []
    assert (len(spy.posts), spy.events) == (1, [])


def test_without_slack_the_text_is_published_once() -> None:
    spy = Spy(slack=False)
    for _ in range(3):
        spy.tell(moved(proposal()))
    assert len(spy.texts) == 1


def test_a_record_that_is_no_proposal_is_nothing_to_tell() -> None:
    spy = Spy()
    assert spy.tell(ProposalMoved("1", None)) == []
    assert spy.posts == []


@dataclass
class Refusing(Spy):
    """A Slack that refuses for as long as nobody invites the app."""

    code: str = "not_in_channel"

    def _may_fail(self, method: str) -> None:
        super()._may_fail(method)
        if self.code and method in ("post", "update"):
            raise WriteRefusedError("calling Slack", self.code, "invite the app to the channel")


def test_what_slack_refuses_for_good_is_told_by_the_topic_once_and_not_tried_again() -> None:
    spy = Refusing()
    for number in range(3):
        assert spy.tell(moved(proposal(f"p-{number}", f"e-{number}"))) == []
    assert [one for one in spy.texts if "Slack refuses" in one] == ["rightsizer: Slack refuses its messages"]
    assert len(spy.texts) == 4, "each proposal is told as text"


def test_once_slack_takes_messages_again_the_proposal_is_posted_and_a_new_refusal_is_told() -> None:
    spy, asked = Refusing(), proposal()
    spy.tell(moved(asked))
    spy.code = ""
    spy.tell(moved(replace(asked, state=ProposalState.APPROVED), ProposalState.PENDING))
    assert spy.known[asked.id].ts == "1.0"
    spy.code = "not_in_channel"
    spy.tell(moved(replace(asked, state=ProposalState.PROVEN), ProposalState.APPROVED))
    assert len([one for one in spy.texts if "Slack refuses" in one]) == 2


def test_a_refusal_is_told_again_after_a_message_took_its_new_form() -> None:
    spy, asked = Refusing(code=""), proposal()
    spy.tell(moved(asked))
    steps = [("approved", "not_in_channel"), ("applying", ""), ("proven", "not_in_channel")]
    before = ProposalState.PENDING
    for state, code in steps:
        spy.code = code
        spy.tell(moved(replace(asked, state=ProposalState(state)), before))
        before = ProposalState(state)
    assert len(spy.posts) == 1, "the one message is updated"
    assert len([one for one in spy.texts if "Slack refuses" in one]) == 2


def test_the_note_of_a_refusal_is_cleared_once() -> None:
    spy = Refusing()
    spy.tell(moved(proposal()))
    spy.code = ""
    noted: list[str] = []
    with patch.object(spy, "remember", lambda message: noted.append(message.proposal_id)):
        for number in range(3):
            spy.tell(moved(proposal(f"p-{number}", f"e-{number}")))
            if number == 0:
                spy.known[REFUSED] = MessageRef(REFUSED, "", "", "")
    assert noted.count(REFUSED) == 1


def test_a_proposal_whose_first_record_was_lost_is_told_whole_by_a_later_one() -> None:
    spy = Spy()
    spy.tell(moved(proposal(), ProposalState.PENDING))
    assert (len(spy.posts), len(spy.texts), len(spy.events)) == (1, 1, 1)
