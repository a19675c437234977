"""Several channels are told as one, each whatever becomes of the others."""

import pytest

from rightsizer.channels.notifier import Channels
from rightsizer.domain.message import Message, Notice
from rightsizer.domain.proposal import MessageRef
from rightsizer.errors import ThrottledError, WriteRefusedError
from tests.notifiers import Told

HELLO = Notice("hello", "It is there.")


class Board:
    """A channel whose messages can be changed."""

    def __init__(self, ts: str) -> None:
        self.ts, self.updated = ts, list[tuple[str, Message]]()

    def post(self, message: Message) -> MessageRef | None:
        return MessageRef("", "C1", self.ts, "")

    def update(self, ref: MessageRef, message: Message) -> None:
        self.updated.append((ref.ts, message))


def refusing(error: Exception) -> Told:
    def refuse(subject: str, body: str) -> None:
        raise error

    return Told(refuse)


@pytest.mark.parametrize("error", [ThrottledError("later"), WriteRefusedError("x", "y", "z"), OverflowError("a fault")])
def test_a_channel_that_fails_stops_no_other_and_the_first_error_goes_up(error: Exception) -> None:
    said: list[str] = []
    told = Told(lambda subject, _: said.append(subject))
    channels = Channels((told, refusing(error), refusing(ValueError("another")), told))
    with pytest.raises(type(error)):
        channels.post(HELLO)
    assert said == ["hello", "hello"]


def test_the_first_channel_that_can_change_its_messages_says_where_it_is() -> None:
    posted = Channels((Told(lambda *_: None), Board("1.0"), Board("2.0"))).post(HELLO)
    assert posted is not None
    assert posted.ts == "1.0"


def test_every_message_ends_with_the_settings_that_could_not_be_understood() -> None:
    said: list[str] = []
    board = Board("1.0")
    channels = Channels((Told(lambda _, body: said.append(body)),), ("Limits is no JSON",))
    channels.post(HELLO)
    (body,) = said
    assert body.startswith("It is there.\n")
    assert body.endswith("Limits is no JSON.\n")
    Channels((board,), ("Limits is no JSON",)).update(MessageRef("", "C1", "1.0", ""), HELLO)
    assert [(ts, message.misread) for ts, message in board.updated] == [("1.0", ("Limits is no JSON",))]
