"""Clients of the program are copies of one that nobody uses: what a client changes is its own."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rightsizer.aws.session import Session
from sandbox.account import Sandbox
from tests.table import create_table


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with Sandbox() as found:
        yield found


def client(box: Sandbox, **given: Any) -> Any:
    """The client of a function that has just started."""
    return Session(box.region).client("sagemaker", **given)


def tries(box: Sandbox, of: Any) -> int:
    before = len(box.calls)
    with pytest.raises(ClientError):
        of.list_endpoints()
    return len(box.calls) - before


def test_a_handler_of_one_client_hears_nothing_of_another(box: Sandbox) -> None:
    one, other = client(box), client(box)
    heard: list[str] = []
    one.meta.events.register("after-call", lambda **_: heard.append("one"))
    other.list_endpoints()
    assert heard == []
    one.list_endpoints()
    assert heard == ["one"]
    assert "Endpoints" in client(box).list_endpoints()


def test_a_client_that_has_used_up_its_retries_takes_none_from_another(box: Sandbox) -> None:
    box.gate.fail("sagemaker", "ListEndpoints", "InternalFailure", times=math.inf)
    one = client(box, seconds=5.0)
    counts = [tries(box, one) for _ in range(60)]
    assert (counts[0], counts[-1]) == (3, 1), "botocore lets a client try again a hundred times in a row"
    assert tries(box, client(box, seconds=5.0)) == 3


def test_clients_with_other_settings_are_other_clients(box: Sandbox) -> None:
    swift, patient, local = (
        client(box, seconds=5.0),
        client(box),
        Session(box.region, endpoint_url="http://127.0.0.1:1"),
    )
    assert (swift.meta.config.read_timeout, patient.meta.config.read_timeout) == (5.0, 30)
    assert local.client("sagemaker").meta.endpoint_url == "http://127.0.0.1:1"
    own = Session(box.region).client("cloudwatch-promql")
    assert own.meta.events is not Session(box.region).client("cloudwatch-promql").meta.events
    assert client(box, region="us-west-2").meta.region_name == "us-west-2"
    assert Session(box.region, attempts=1).client("sagemaker").meta.config.retries["mode"] == "standard"


def test_an_index_brings_its_rows_of_all_partitions_in_their_order_page_by_page(box: Sandbox) -> None:
    table = box.client("dynamodb")
    create_table(table)
    for number, (pk, sk, key) in enumerate((("a", "1", "x"), ("b", "1", "x"), ("a", "2", "y"), ("c", "3", "x"))):
        keys = {"pk": pk, "sk": sk, "gsi1pk": key, "gsi1sk": f"{9 - number}"}
        table.put_item(TableName="t", Item={name: {"S": text} for name, text in keys.items()})
    table.put_item(TableName="t", Item={"pk": {"S": "b"}, "sk": {"S": "no index"}})
    question = {
        "TableName": "t",
        "IndexName": "GSI1",
        "KeyConditionExpression": "gsi1pk = :key AND gsi1sk < :below",
        "ExpressionAttributeValues": {":key": {"S": "x"}, ":below": {"S": "9"}},
    }
    assert [row["pk"]["S"] for row in table.query(**question)["Items"]] == ["c", "b"]
    first = table.query(**question, Limit=1)
    assert [row["pk"]["S"] for row in first["Items"]] == ["c"]
    rest = table.query(**question, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert [row["pk"]["S"] for row in rest["Items"]] == ["b"]
    question["ExpressionAttributeValues"] = {":key": {"S": "z"}, ":below": {"S": "9"}}
    assert table.query(**question)["Items"] == []
