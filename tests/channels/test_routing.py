"""Proposals go to the channel of their owner or environment; a channel that Slack refuses loses none."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.channels.notifier import RoutedSlack
from rightsizer.domain.environment import Environment, EnvironmentReading
from rightsizer.domain.message import Digest, Message, Notice, ProposalMessage
from rightsizer.domain.proposal import MessageRef
from rightsizer.errors import WriteRefusedError
from tests.policies import document
from tests.samples import proposal

SAID: dict[str, Any] = {
    "environments": {"staging": {"channel": "C0STAGING"}},
    "owners": {"ads": {"channel": "C0ADS"}},
}


class Posted:
    """Stands in for Slack's channel."""

    def __init__(self, name: str, log: list[tuple[str, str]], refused: str = "") -> None:
        self.name, self.log, self.refused = name, log, refused

    def post(self, message: Message) -> MessageRef:
        if self.refused and self.name != "C0STACK":
            raise WriteRefusedError("posting", self.refused, "invite the app")
        self.log.append(("post", self.name))
        return MessageRef("", self.name, "1.0", "")

    def update(self, ref: MessageRef, message: Message) -> None:
        self.log.append(("update", ref.channel))


def routed(log: list[tuple[str, str]], refused: str = "") -> RoutedSlack:
    def make(name: str) -> Any:
        return Posted(name, log, refused)

    return RoutedSlack(make, "C0STACK", document(SAID))


def message(owner: str, environment: Environment | None = None) -> ProposalMessage:
    found = proposal()
    reading = EnvironmentReading(environment, "a tag") if environment else None
    judged = replace(found.recommendation, owner=owner, environment=reading)
    return ProposalMessage(replace(found, recommendation=judged))


@pytest.mark.parametrize(
    ("owner", "environment", "channel"),
    [
        ("Ads", Environment.STAGING, "C0ADS"),
        ("search", Environment.STAGING, "C0STAGING"),
        ("search", Environment.PRODUCTION, "C0STACK"),
        ("", None, "C0STACK"),
    ],
)
def test_a_proposal_goes_to_the_channel_of_its_owner_or_environment(
    owner: str, environment: Environment | None, channel: str
) -> None:
    log: list[tuple[str, str]] = []
    assert routed(log).post(message(owner, environment)).channel == channel
    assert log == [("post", channel)]


def test_a_notice_goes_to_the_channel_of_the_stack() -> None:
    log: list[tuple[str, str]] = []
    routed(log).post(Notice("s", "b"))
    assert log == [("post", "C0STACK")]


def test_a_message_is_changed_where_it_was_posted() -> None:
    log: list[tuple[str, str]] = []
    known = routed(log)
    ref = known.post(message("ads"))
    known.update(ref, message("ads"))
    assert log == [("post", "C0ADS"), ("update", "C0ADS")]


@pytest.mark.parametrize("code", ["channel_not_found", "not_in_channel", "is_archived"])
def test_a_channel_that_slack_refuses_is_stood_in_for(code: str) -> None:
    log: list[tuple[str, str]] = []
    assert routed(log, code).post(message("ads")).channel == "C0STACK"


def test_what_no_channel_would_take_goes_up() -> None:
    with pytest.raises(WriteRefusedError):
        routed([], "invalid_auth").post(message("ads"))


def test_a_proposal_is_posted_where_its_digest_stands() -> None:
    log: list[tuple[str, str]] = []
    board = routed(log)
    posted = board.post(Digest((), channel="C0ADS"))
    board.post(replace(message("ads"), thread=posted.ts, thread_channel=posted.channel))
    board.post(Digest(()))
    assert log == [("post", "C0ADS"), ("post", "C0ADS"), ("post", "C0STACK")]


def test_a_refused_channel_is_stood_in_for_with_its_digest_and_the_threads_in_it() -> None:
    log: list[tuple[str, str]] = []
    threads: list[str] = []

    class Threaded(Posted):
        def post(self, message: Message) -> MessageRef:
            posted = super().post(message)
            threads.append(message.thread if isinstance(message, ProposalMessage) else "digest")
            return posted

    board = RoutedSlack(lambda name: Threaded(name, log, "is_archived"), "C0STACK", document(SAID))  # type: ignore[arg-type, return-value]  # a stand-in
    posted = board.post(Digest((), channel="C0ADS"))
    assert posted.channel == "C0STACK"
    board.post(replace(message("ads"), thread=posted.ts, thread_channel=posted.channel))
    assert log == [("post", "C0STACK"), ("post", "C0STACK")]
    assert threads == ["digest", posted.ts]
    board.post(replace(message("ads"), thread=posted.ts, thread_channel="C0ADS"))
    assert threads[-1] == "", "a thread does not reach into another channel"


def test_each_channel_has_digests_of_its_own() -> None:
    known = routed([])
    assert [known.digest_of(message(owner).proposal) for owner in ("ads", "search")] == ["C0ADS", ""]
