"""Proposals of which the message was lost are written once more, so that the stream carries them again."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from rightsizer.aws.message_book import Messages
from rightsizer.aws.proposals import MOST
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table
from rightsizer.domain.proposal import MessageRef, Proposal, ProposalState
from sandbox.account import Sandbox
from tests import samples
from tests.table import create_table

NOW = samples.NOW


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with Sandbox(now=NOW) as made:
        create_table(made.client("dynamodb"))
        yield made


@pytest.fixture
def client(box: Sandbox) -> Any:
    return box.client("dynamodb")


def ask(client: Any, number: int = 1) -> Proposal:
    asked = samples.proposal(f"p-{number}", f"chat-{number}")
    Recommendations(Table(client, "t"), lambda: NOW).save(asked.recommendation, asked)
    return asked


def again(client: Any, *, everything: bool = False, hours: float = 2) -> int:
    store = Recommendations(Table(client, "t"), lambda: NOW)
    return store.tell_again(NOW + timedelta(hours=hours), everything=everything)


def version(client: Any, asked: Proposal) -> int:
    key = {"pk": {"S": f"PROPOSAL#{asked.id}"}, "sk": {"S": "PROPOSAL"}}
    return int(client.get_item(TableName="t", Key=key)["Item"]["version"]["N"])


def test_a_proposal_without_a_message_is_written_again_unchanged(client: Any) -> None:
    asked = ask(client)
    assert again(client) == 1
    assert Recommendations(Table(client, "t"), lambda: NOW).proposal(asked.id) == asked
    assert version(client, asked) == 2


def test_the_stream_has_an_hour_before_anything_is_written_again(client: Any) -> None:
    asked = ask(client)
    assert again(client, hours=0.9) == 0
    assert version(client, asked) == 1


def test_a_proposal_that_was_told_is_left_alone(client: Any) -> None:
    asked = ask(client)
    Messages(Table(client, "t")).remember(MessageRef(asked.id, "C1", "1.0", "pending|"))
    assert (again(client), again(client, everything=True)) == (0, 0)


def test_a_proposal_whose_event_was_refused_is_written_again_each_hour_until_it_was_sent(client: Any) -> None:
    asked, book = ask(client), Messages(Table(client, "t"))
    book.remember(MessageRef(asked.id, "C1", "1.0", "pending|", event_due=True))
    assert book.message(asked.id) == MessageRef(asked.id, "C1", "1.0", "pending|", event_due=True)
    assert again(client) == 1
    book.remember(MessageRef(asked.id, "C1", "1.0", "pending|"))
    assert again(client) == 0


def test_a_message_that_shows_an_earlier_state_is_found_once_a_day(client: Any) -> None:
    asked = ask(client)
    Messages(Table(client, "t")).remember(MessageRef(asked.id, "C1", "1.0", "pending|"))
    store = Recommendations(Table(client, "t"), lambda: NOW)
    store.follow(asked.id, ProposalState.EXPIRED, "", "too late")
    assert (again(client), again(client, everything=True)) == (0, 1)


def test_a_channel_that_is_down_for_many_proposals_gets_a_few_of_them_at_a_time(client: Any) -> None:
    for number in range(MOST + 3):
        ask(client, number)
    assert again(client) == MOST


def of(number: int) -> Callable[[Mapping[str, Any]], bool]:
    return lambda params: params["Item"]["pk"]["S"] == f"PROPOSAL#p-{number}"


@pytest.mark.parametrize("code", ["ThrottlingException", "ValidationException", "AccessDeniedException"])
@pytest.mark.parametrize("place", range(10))
def test_one_proposal_that_cannot_be_written_stops_no_other(box: Sandbox, client: Any, place: int, code: str) -> None:
    for number in range(10):
        ask(client, number)
    box.gate.fail("dynamodb", "PutItem", code, times=inf, where=of(place))
    assert again(client) == 9
    closed = Recommendations(Table(client, "t"), lambda: NOW).expire(NOW + timedelta(days=15))
    assert {one.id for one in closed} == {f"p-{number}" for number in range(10) if number != place}


@pytest.mark.parametrize("place", range(10))
def test_one_proposal_that_cannot_be_read_stops_no_other(client: Any, place: int) -> None:
    asked = [ask(client, number) for number in range(10)]
    key = {"pk": {"S": f"PROPOSAL#{asked[place].id}"}, "sk": {"S": "PROPOSAL"}}
    client.update_item(TableName="t", Key=key, UpdateExpression="REMOVE version")
    assert again(client) == 9


def test_proposals_that_cannot_be_read_do_not_take_the_place_of_others(client: Any) -> None:
    for number in range(MOST):
        key = {"pk": {"S": f"PROPOSAL#{ask(client, number).id}"}, "sk": {"S": "PROPOSAL"}}
        garbled = {":doc": {"S": '{"id": 1}'}}
        client.update_item(TableName="t", Key=key, UpdateExpression="SET doc = :doc", ExpressionAttributeValues=garbled)
    lost = ask(client, 99)
    assert again(client) == 1
    assert version(client, lost) == 2
