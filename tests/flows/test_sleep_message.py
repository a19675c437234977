"""The message of a night: one each, edited to its end, whatever is delivered twice, late or deleted."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.message import Message, SleepMessage, SleepNote
from rightsizer.domain.proposal import MessageRef
from rightsizer.errors import ThrottledError, WriteRefusedError
from rightsizer.flows.sleep_message import tell_of_sleep
from rightsizer.render import sleep

NIGHT = SleepNote(
    "chat", HoursState.STOPPED, datetime(2026, 11, 2, 18, tzinfo=UTC), 4, "mon-fri 08:00-19:00 UTC", longest_minutes=720
)
MORNING = replace(NIGHT, state=HoursState.RUNNING, version=9)


@dataclass
class Slack:
    """A channel, and the message book beside it."""

    posts: list[Message] = field(default_factory=list)
    edits: list[tuple[str, Message]] = field(default_factory=list)
    known: dict[str, MessageRef] = field(default_factory=dict)
    deleted: bool = False
    down: bool = False

    def post(self, message: Message) -> MessageRef:
        if self.down:
            raise ThrottledError("Slack is away")
        self.posts.append(message)
        return MessageRef("", "C1", str(len(self.posts)), "")

    def update(self, ref: MessageRef, message: Message) -> None:
        if self.deleted:
            raise WriteRefusedError("editing", "message_not_found", "it was deleted")
        self.edits.append((ref.ts, message))

    def message(self, identity: str) -> MessageRef | None:
        return self.known.get(identity)

    def remember(self, ref: MessageRef) -> None:
        self.known[ref.proposal_id] = ref


def tell(slack: Slack, *notes: SleepNote) -> None:
    for note in notes:
        tell_of_sleep(slack, slack, note)  # type: ignore[arg-type]


def test_a_night_is_one_message_and_the_next_night_another() -> None:
    slack = Slack()
    starting = replace(NIGHT, state=HoursState.STARTING, version=7)
    tell(slack, NIGHT, starting, MORNING, replace(NIGHT, version=20))
    assert slack.posts == [SleepMessage(NIGHT), SleepMessage(replace(NIGHT, version=20))]
    assert slack.edits == [("1", SleepMessage(starting)), ("1", SleepMessage(MORNING))]


def test_what_comes_twice_or_late_says_nothing_again() -> None:
    slack = Slack()
    tell(slack, NIGHT, NIGHT, MORNING, NIGHT)
    assert (len(slack.posts), len(slack.edits)) == (1, 1)


def test_a_stop_that_was_taken_back_posts_nothing() -> None:
    slack = Slack()
    tell(slack, replace(MORNING, version=5))
    assert slack.posts == []
    assert slack.edits == []


def test_asleep_again_after_a_wake_is_the_same_night() -> None:
    slack = Slack()
    tell(slack, NIGHT, replace(NIGHT, state=HoursState.STARTING, version=6), replace(NIGHT, version=8))
    assert len(slack.posts) == 1
    assert "Wake" in str(sleep.blocks(NIGHT))
    assert "rightsizer_wake" not in str(sleep.blocks(MORNING))


def test_a_message_that_somebody_deleted_comes_again_while_it_sleeps_alone() -> None:
    slack = Slack()
    tell(slack, NIGHT)
    slack.deleted = True
    tell(slack, replace(NIGHT, state=HoursState.STARTING, version=6))
    assert len(slack.posts) == 1
    tell(slack, replace(NIGHT, version=8))
    assert len(slack.posts) == 2


def test_while_slack_does_not_answer_nothing_is_remembered_so_that_it_comes_again() -> None:
    slack = Slack(down=True)
    with pytest.raises(ThrottledError):
        tell(slack, NIGHT)
    slack.down = False
    tell(slack, NIGHT)
    assert len(slack.posts) == 1
