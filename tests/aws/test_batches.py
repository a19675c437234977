"""Rows in batches: all of them, whatever DynamoDB leaves unprocessed; and what a hundred recommendations become."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from rightsizer.aws.documents import PAUSES_S, Batches
from rightsizer.aws.proposals import LATELY
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.session import Session
from rightsizer.aws.table import Row, Table, to_dynamodb
from rightsizer.domain.history import OpenQuestion
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.domain.recommendation import Recommendation
from rightsizer.errors import PermissionMissingError, ThrottledError, WriteRefusedError
from sandbox.account import Sandbox
from tests.samples import NOW, proposal, recommendation
from tests.table import create_table, decide

KEYS = [("ENDPOINT#a", "X"), ("ENDPOINT#b", "X")]


def row(number: int) -> Row:
    return {"pk": f"ENDPOINT#e{number:03}", "sk": "X", "n": number}


@pytest.fixture
def table(box: Sandbox, account: Session) -> Table:
    create_table(box.client("dynamodb"))
    return Table(account.client("dynamodb"), "t")


def test_many_rows_are_written_and_read_in_few_calls(box: Sandbox, table: Table) -> None:
    batches = Batches(table)
    batches.write([row(number) for number in range(130)])
    box.calls.clear()
    found = batches.read([(f"ENDPOINT#e{number:03}", "X") for number in range(131)])
    assert found == {(f"ENDPOINT#e{number:03}", "X"): row(number) for number in range(130)}
    assert box.calls.counts() == {"dynamodb:BatchGetItem": 2}


def test_nothing_is_asked_for_nothing(box: Sandbox, table: Table) -> None:
    batches = Batches(table)
    box.calls.clear()
    batches.write([])
    assert batches.read([]) == {}
    assert not box.calls


def left_over(times: int) -> tuple[Table, Any, list[float]]:
    """A table that leaves the second key, or the second row, undone so often; its client, and the pauses taken."""
    client, state = Mock(), {"left": times}

    def undone() -> bool:
        state["left"] -= 1
        return state["left"] >= 0

    def read(RequestItems: Any) -> Any:  # noqa: N803
        keys = RequestItems["t"]["Keys"]
        left = keys[-1:] if undone() else []
        return {
            "Responses": {"t": [key for key in keys if key not in left]},
            "UnprocessedKeys": _if(left, {"Keys": left}),
        }

    def write(RequestItems: Any) -> Any:  # noqa: N803
        return {"UnprocessedItems": _if(RequestItems["t"][-1:] if undone() else [])}

    client.batch_get_item.side_effect, client.batch_write_item.side_effect = read, write
    return Table(client, "t"), client, []


def _if(left: list[Any], said: Any = None) -> dict[str, Any]:
    return {"t": said or left} if left else {}


@pytest.mark.parametrize("times", [1, 3])
def test_what_is_left_unprocessed_is_asked_again_later_each_time(times: int) -> None:
    table, client, pauses = left_over(times)
    batches = Batches(table, pauses.append)
    assert set(batches.read(KEYS)) == set(KEYS)
    assert client.batch_get_item.call_count == times + 1
    assert pauses == list(PAUSES_S[: times + 1])
    table, client, pauses = left_over(times)
    Batches(table, pauses.append).write([row(0), row(1)])
    last = client.batch_write_item.call_args.kwargs["RequestItems"]["t"]
    assert last == [{"PutRequest": {"Item": to_dynamodb(row(1))}}], "only what was left"


def test_what_is_left_every_time_is_an_error_that_may_pass() -> None:
    table, _, pauses = left_over(99)
    with pytest.raises(ThrottledError, match="left 1 of a batch undone 4 times"):
        Batches(table, pauses.append).read(KEYS)
    with pytest.raises(ThrottledError, match="writing 2 rows to the table t"):
        Batches(table, pauses.append).write([row(0), row(1)])


@pytest.mark.parametrize(
    ("code", "kind"), [("AccessDeniedException", PermissionMissingError), ("ValidationException", WriteRefusedError)]
)
def test_a_refused_batch_names_the_action_or_the_table(code: str, kind: type[Exception]) -> None:
    client = Mock()
    client.batch_write_item.side_effect = ClientError({"Error": {"Code": code, "Message": "no"}}, "BatchWriteItem")
    with pytest.raises(kind, match=r"table t"):
        Batches(Table(client, "t")).write([row(0)])


@pytest.fixture
def store(table: Table) -> Recommendations:
    return Recommendations(table, lambda: NOW)


def judged(count: int) -> Iterator[tuple[Recommendation, Proposal | None]]:
    yield from ((recommendation(f"e{number:03}"), None) for number in range(count))


def test_recommendations_without_a_proposal_are_stored_in_batches(box: Sandbox, store: Recommendations) -> None:
    found = list(judged(25))
    box.calls.clear()
    store.save_all(found)
    assert box.calls.counts() == {"dynamodb:BatchGetItem": 1, "dynamodb:BatchWriteItem": 2}
    assert list(store.recommendations()) == [each for each, _ in found]
    assert store.last_evaluated(["e000", "gone"]) == {"e000": NOW}


def test_what_is_asked_of_many_endpoints_is_read_in_two_batches(box: Sandbox, store: Recommendations) -> None:
    asked, refused = proposal("p-1", "chat"), proposal("p-2", "search")
    for one in (asked, refused):
        store.save(one.recommendation, one)
    store.follow("p-2", ProposalState.REJECTED, "", "no")
    box.calls.clear()
    found = store.open_questions(["chat", "search", "gone"])
    assert box.calls.counts() == {"dynamodb:BatchGetItem": 2}
    option = asked.recommendation.chosen_option
    assert option is not None
    assert found == {"chat": OpenQuestion(option, asked.recommendation.fingerprint)}


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [(("ENDPOINT#search", "OPEN"), "proposal", 7), (("PROPOSAL#p-2", "PROPOSAL"), "doc", "{}")],
    ids=["a lock", "a proposal"],
)
def test_a_row_that_cannot_be_read_hides_no_question_of_another_endpoint(
    table: Table, store: Recommendations, key: tuple[str, str], name: str, value: int | str
) -> None:
    for one in (proposal("p-1", "chat"), proposal("p-2", "search")):
        store.save(one.recommendation, one)
    batches = Batches(table)
    spoilt: Row = {**batches.read([key])[key], name: value}
    batches.write([spoilt])
    assert list(store.open_questions(["chat", "search"])) == ["chat"]


def test_each_that_opens_or_closes_a_proposal_is_one_transaction(box: Sandbox, store: Recommendations) -> None:
    asked, older = proposal("p-1", "chat"), proposal("p-2", "search")
    store.save(older.recommendation, older)
    moved = replace(older.recommendation, fingerprint="another", evaluated_at=NOW + timedelta(hours=1))
    box.calls.clear()
    store.save_all([*judged(3), (asked.recommendation, asked), (moved, None)])
    assert box.calls.counts()["dynamodb:TransactWriteItems"] == 2
    assert store.proposal("p-1") == asked
    closed = store.proposal("p-2")
    assert closed is not None
    assert closed.state is ProposalState.WITHDRAWN
    assert set(store.last_evaluations()) == {"chat", "search", "e000", "e001", "e002"}


def test_a_proposal_that_is_open_already_costs_no_transaction(box: Sandbox, store: Recommendations) -> None:
    asked = proposal("p-1", "chat")
    store.save(asked.recommendation, asked)
    box.calls.clear()
    store.save_all([(replace(asked.recommendation, evaluated_at=NOW + timedelta(days=1)), asked)])
    assert box.calls.counts()["dynamodb:TransactWriteItems"] == 0
    assert store.proposal("p-1") == asked
    assert store.last_evaluated(["chat"]) == {"chat": NOW + timedelta(days=1)}


def test_lists_of_all_endpoints_read_small_rows(box: Sandbox, store: Recommendations) -> None:
    store.save_all(list(judged(3)))
    box.calls.clear()
    assert len(store.last_evaluations()) == 3
    store.note_spending(NOW)
    assert box.calls.counts() == {"dynamodb:Query": 2, "dynamodb:PutItem": 1}
    (page,) = [box.client("dynamodb").query(
        TableName="t", IndexName="GSI1", KeyConditionExpression="gsi1pk = :pk",
        ExpressionAttributeValues={":pk": {"S": "EVALUATED"}},
    )]  # fmt: skip
    assert all("doc" not in item for item in page["Items"])


def test_a_recommendation_of_a_release_that_kept_it_in_the_index_is_listed_once(
    store: Recommendations, table: Table
) -> None:
    store.save_all(list(judged(2)))
    for name in ("e001", "old"):  # e001: a release went back and came again
        kept = recommendation(name)
        store.save(kept, None)
        found = table.get(f"ENDPOINT#{name}", "RECOMMENDATION")
        assert found is not None
        table.put(found | {"gsi1pk": "RECOMMENDATION", "gsi1sk": name})
    table.client.delete_item(TableName="t", Key=to_dynamodb({"pk": "ENDPOINT#old", "sk": "EVALUATED"}))
    assert sorted(each.ref.name for each in store.recommendations()) == ["e000", "e001", "old"]


def queried(box: Sandbox) -> list[str]:
    """Partitions of the index that were read."""
    return [call.params["ExpressionAttributeValues"][":pk"]["S"] for call in box.calls.of("dynamodb", "Query")]


def test_an_hourly_sweep_closes_what_ended_lately_without_a_look_at_what_waits(
    box: Sandbox, store: Recommendations
) -> None:
    ends = {"p-long-ago": -LATELY - timedelta(hours=1), "p-lately": -timedelta(hours=1), "p-later": timedelta(hours=1)}
    for name, end in ends.items():
        asked = proposal(name, name, expires_at=NOW + end, created_at=NOW - timedelta(days=14))
        store.save(asked.recommendation, asked)
    box.calls.clear()
    assert [one.id for one in store.expire(NOW, everything=False)] == ["p-lately"]
    assert queried(box) == ["EXPIRY"]
    assert store.expire(NOW, everything=False) == ()
    assert [one.id for one in store.expire(NOW, everything=True)] == ["p-long-ago"]


def test_a_proposal_that_was_answered_has_ended_for_the_sweep(store: Recommendations) -> None:
    asked = proposal("p-1", "chat", expires_at=NOW + timedelta(days=14))
    store.save(asked.recommendation, asked)
    decide(store, "p-1", Decision(ProposalState.REJECTED, "slack:U1", NOW, "no"), NOW)
    assert store.expire(NOW + timedelta(days=14, hours=1), everything=False) == ()


def test_a_report_leaves_out_proposals_whose_change_ended_long_ago(store: Recommendations) -> None:
    for name, days, state in (
        ("p-old-waits", 300, ProposalState.PENDING),
        ("p-old-proven", 300, ProposalState.PROVEN),
        ("p-proven", 100, ProposalState.PROVEN),
    ):
        asked = proposal(name, name, created_at=NOW - timedelta(days=days), expires_at=NOW + timedelta(days=1))
        store.save(asked.recommendation, asked)
        if state is not ProposalState.PENDING:
            store.follow(name, state, f"c-{name}", "proven", NOW)
    seen = store.proposals(ended_since=NOW - timedelta(days=180))
    assert [one.id for one in seen] == ["p-proven", "p-old-waits"]
    assert len(list(store.proposals())) == 3
