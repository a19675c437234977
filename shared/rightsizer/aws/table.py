"""The one DynamoDB table: keys pk and sk, index GSI1, TTL attribute ``expires``. docs/ledger.md lists every item.

Plain botocore calls on the client that it is given, so that `respond` can use it without boto3.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Never

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import DENIED, THROTTLED, code_of, reading, translate
from rightsizer.domain.reason import one_line
from rightsizer.errors import ConflictError, WriteRefusedError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class Kept:
    """An attribute of a type that this program does not write, as DynamoDB returned it: it is only written back."""

    attribute: Mapping[str, Any]


type Value = str | int | bool | Kept
type Item = Mapping[str, Value]
type Writes = Sequence[Mapping[str, Any]]

INDEX = "GSI1"
WHOLE = re.compile(r"-?[0-9]+")
LOST = frozenset({"ConditionalCheckFailed", "TransactionConflict"})


def typed(item: Item) -> dict[str, Any]:
    """Python values as DynamoDB's typed attributes."""
    return {name: _attribute(value) for name, value in item.items()}


def plain(item: Mapping[str, Any]) -> dict[str, Value]:
    """DynamoDB's typed attributes as Python values, nothing left out: `typed` makes the same item of them again."""
    return {name: _value(attribute) for name, attribute in item.items()}


def stamp(at: datetime) -> str:
    """A time as a sort key: UTC and of fixed width, so that text order is time order."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def epoch(at: datetime, days: float = 0) -> int:
    """Seconds since 1970 of `at` plus some days, for TTL and conditions."""
    return int((at + timedelta(days=days)).timestamp())


class Table:
    """One table. Errors are those of `rightsizer.errors`; a lost condition is a ConflictError."""

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client = client
        self.name = name

    def get(self, pk: str, sk: str) -> dict[str, Value] | None:
        """The item, read consistently, or None."""
        key: Any = typed({"pk": pk, "sk": sk})
        with reading("dynamodb:GetItem", f"reading {pk} from the table {self.name}"):
            found = self._client.get_item(TableName=self.name, Key=key, ConsistentRead=True)
        return plain(found["Item"]) if "Item" in found else None

    def made_at(self) -> datetime:
        """CreationDateTime of the table; a table that a backup was restored to has the time of the restore.

        Source: DynamoDB API Reference, TableDescription, and the AWS CLI's example of restore-table-from-backup, where
        it is half an hour after the RestoreDateTime, which is the time of the backup.
        """
        with reading("dynamodb:DescribeTable", f"reading when the table {self.name} was made"):
            return self._client.describe_table(TableName=self.name)["Table"]["CreationDateTime"]

    def put(self, item: Item, unless: str = "") -> None:
        """Write the item. `unless` names an attribute that must not be there yet."""
        condition: dict[str, Any] = {"ConditionExpression": f"attribute_not_exists({unless})"} if unless else {}
        try:
            self._client.put_item(TableName=self.name, Item=typed(item), **condition)
        except (ClientError, BotoCoreError) as error:
            _write_failed(error, "dynamodb:PutItem", f"writing {item['pk']} to the table {self.name}")

    def swap(self, item: Item, version: int) -> None:
        """Replace the item if its ``version`` still is `version`; the new item carries its own."""
        try:
            self._client.put_item(
                TableName=self.name,
                Item=typed(item),
                ConditionExpression="version = :version",
                ExpressionAttributeValues={":version": {"N": str(version)}},
            )
        except (ClientError, BotoCoreError) as error:
            _write_failed(error, "dynamodb:PutItem", f"replacing {item['pk']} in the table {self.name}")

    def update(self, pk: str, sk: str, change: str, condition: str, values: Mapping[str, Any]) -> None:
        """Change some attributes of the item on condition, the others stay; `values` are typed as DynamoDB's."""
        key: Any = typed({"pk": pk, "sk": sk})
        try:
            self._client.update_item(
                TableName=self.name,
                Key=key,
                UpdateExpression=change,
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
            )
        except (ClientError, BotoCoreError) as error:
            _write_failed(error, "dynamodb:UpdateItem", f"updating {pk} in the table {self.name}")

    def transact(self, writes: Writes, doing: str) -> None:
        """All of these writes (as `put_if` makes them) or none; ConflictError when a condition failed."""
        try:
            self._client.transact_write_items(TransactItems=list(writes))  # type: ignore[arg-type]
        except (ClientError, BotoCoreError) as error:
            _write_failed(error, "dynamodb:TransactWriteItems", doing)

    def put_if(self, item: Item, condition: str = "", names: Mapping[str, str] | None = None, **values: Value) -> Any:
        """A put for `transact`; `values` fill the ``:name`` places of the condition."""
        put: dict[str, Any] = {"TableName": self.name, "Item": typed(item)}
        if condition:
            put["ConditionExpression"] = condition
        if names:
            put["ExpressionAttributeNames"] = dict(names)
        if values:
            put["ExpressionAttributeValues"] = {f":{name}": _attribute(value) for name, value in values.items()}
        return {"Put": put}

    def put_over(self, item: Item, read: Item | None, *names: str) -> Any:
        """A put for `transact`, over the item that was read: these attributes of it are as they were, or still absent.

        Without an item that was read there must be none now.
        """
        if read is None:
            return self.put_if(item, "attribute_not_exists(pk)")
        there = {name: read[name] for name in names if name in read}
        parts = [f"#{name} = :{name}" if name in there else f"attribute_not_exists(#{name})" for name in names]
        return self.put_if(item, " AND ".join(parts), {f"#{name}": name for name in names}, **there)

    def partition(self, pk: str, beginning: str = "") -> Iterator[dict[str, Value]]:
        """The items of one partition whose sort key begins so, in key order, read consistently."""
        condition, values = "pk = :pk", {":pk": {"S": pk}}
        if beginning:
            condition, values = f"{condition} AND begins_with(sk, :sk)", {**values, ":sk": {"S": beginning}}
        yield from self._query(KeyConditionExpression=condition, ExpressionAttributeValues=values, ConsistentRead=True)

    def index(
        self, gsi1pk: str, start: str = "", end: str = "", *, newest_first: bool = False, only: Sequence[str] = ()
    ) -> Iterator[dict[str, Value]]:
        """Items of the index between two sort keys, `start` included and `end` not; `only` names the attributes."""
        condition, values = "gsi1pk = :pk", {":pk": {"S": gsi1pk}}
        if start or end:
            condition += " AND gsi1sk BETWEEN :start AND :end"
            values |= {":start": {"S": start or " "}, ":end": {"S": end or "\U0010ffff"}}
        places = {f"#{n}": name for n, name in enumerate(only)}
        some: dict[str, Any] = (
            {"ProjectionExpression": ", ".join(places), "ExpressionAttributeNames": places} if only else {}
        )
        for item in self._query(
            IndexName=INDEX,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=values,
            ScanIndexForward=not newest_first,
            **some,
        ):
            if not end or str(item.get("gsi1sk", "")) < end:
                yield item

    def keys_until(self, gsi1pk: str, end: str, most: int) -> tuple[str, ...]:
        """Partition keys of at most so many items of the index up to this sort key, the lowest first."""
        found = self._query(
            IndexName=INDEX,
            KeyConditionExpression="gsi1pk = :pk AND gsi1sk <= :end",
            ExpressionAttributeValues={":pk": {"S": gsi1pk}, ":end": {"S": end}},
            ProjectionExpression="pk",
            PaginationConfig={"MaxItems": most},
        )
        return tuple(str(item["pk"]) for item in found)

    def _query(self, **request: Any) -> Iterator[dict[str, Value]]:
        pages = self._client.get_paginator("query").paginate(TableName=self.name, **request)
        with reading("dynamodb:Query", f"querying the table {self.name}"):
            for page in pages:
                yield from map(plain, page["Items"])


def _value(attribute: Mapping[str, Any]) -> Value:
    ((kind, value),) = attribute.items()
    if kind == "S":
        return str(value)
    if kind == "BOOL":
        return bool(value)
    return int(value) if kind == "N" and WHOLE.fullmatch(value) else Kept(attribute)


def _attribute(value: Value) -> dict[str, Any]:
    if isinstance(value, Kept):
        return dict(value.attribute)
    if isinstance(value, bool):
        return {"BOOL": value}
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def _write_failed(error: ClientError | BotoCoreError, action: str, doing: str) -> Never:
    code = code_of(error) if isinstance(error, ClientError) else type(error).__name__
    if code == "ConditionalCheckFailedException" or (code == "TransactionCanceledException" and _lost(error)):
        raise ConflictError(f"{doing}: somebody else was first; read it again") from error
    if isinstance(error, ClientError) and code in DENIED | THROTTLED:
        raise translate(error, action, doing) from error
    raise WriteRefusedError(doing, code, one_line(str(error))) from error


def _lost(error: ClientError | BotoCoreError) -> bool:
    """Whether a transaction failed by its conditions, and not by a malformed item."""
    reasons: Any = error.response.get("CancellationReasons", []) if isinstance(error, ClientError) else []
    return any(reason.get("Code") in LOST for reason in reasons)
