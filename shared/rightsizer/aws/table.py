"""The one DynamoDB table, and the one reader of its rows. docs/ledger.md lists every item.

Keys pk and sk, index GSI1, TTL attribute ``expires``. Plain botocore calls on the client that it is given, so that
`respond` can use it without boto3.

The reader takes each attribute as what it is meant to be, or raises UnreadableError. A row that cannot be read is
counted, told and left as it is, and stops no other. Nothing else in `rightsizer.aws` looks into a row
(tests/house/test_rows.py). No pydantic: `respond` uses this module too; rows with a noun are read by
`rightsizer.aws.documents`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Never

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import code_of, translate_read_errors, write_error
from rightsizer.domain.checks import newer_than_known
from rightsizer.domain.outcome import UnreadRow
from rightsizer.errors import ConflictError, InputError, ReadError, RightsizerError, UnreadableError
from rightsizer.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

INDEX = "GSI1"
WHOLE = re.compile(r"-?[0-9]+")
LOST = frozenset({"ConditionalCheckFailed", "TransactionConflict"})
LARGEST_USD = Decimal(10) ** 15
"""No sum of money that the program keeps comes near; a larger one is nonsense, and would overflow a sum."""
LARGEST_WHOLE = 10**15
"""Far beyond every version and every time in seconds; DynamoDB takes numbers of 38 digits."""


@dataclass(frozen=True, slots=True)
class RawAttribute:
    """An attribute of a type that this program does not write, as DynamoDB returned it: it is only written back."""

    attribute: Mapping[str, Any]


type Value = str | int | bool | RawAttribute
type Item = Mapping[str, Value]
type Writes = Sequence[Mapping[str, Any]]
type Row = dict[str, Value]


def to_dynamodb(item: Item) -> dict[str, Any]:
    """Python values as DynamoDB's typed attributes."""
    return {name: _attribute(value) for name, value in item.items()}


def from_dynamodb(item: Mapping[str, Any]) -> dict[str, Value]:
    """DynamoDB's typed attributes as Python values; `to_dynamodb` makes the same item of them again."""
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
        self.client = client
        self.name = name

    @property
    def region(self) -> str:
        """Region of the table and of its stack."""
        return self.client.meta.region_name

    def get(self, pk: str, sk: str) -> dict[str, Value] | None:
        """The item, read consistently, or None."""
        key: Any = to_dynamodb({"pk": pk, "sk": sk})
        with translate_read_errors("dynamodb:GetItem", f"reading {pk} from the table {self.name}"):
            found = self.client.get_item(TableName=self.name, Key=key, ConsistentRead=True)
        return from_dynamodb(found["Item"]) if "Item" in found else None

    def made_at(self) -> datetime:
        """CreationDateTime of the table; a table that a backup was restored to has the time of the restore.

        Source: DynamoDB API Reference, TableDescription, and the AWS CLI's example of restore-table-from-backup, where
        it is half an hour after the RestoreDateTime, which is the time of the backup.
        """
        with translate_read_errors("dynamodb:DescribeTable", f"reading when the table {self.name} was made"):
            return self.client.describe_table(TableName=self.name)["Table"]["CreationDateTime"]

    def put(self, item: Item, unless: str = "") -> None:
        """Write the item. `unless` names an attribute that must not be there yet."""
        condition: dict[str, Any] = {"ConditionExpression": f"attribute_not_exists({unless})"} if unless else {}
        try:
            self.client.put_item(TableName=self.name, Item=to_dynamodb(item), **condition)
        except (ClientError, BotoCoreError) as error:
            raise_write_error(error, "dynamodb:PutItem", f"writing {item['pk']} to the table {self.name}")

    def swap(self, item: Item, version: int) -> None:
        """Replace the item if its ``version`` still is `version`; the new item carries its own."""
        try:
            self.client.put_item(
                TableName=self.name,
                Item=to_dynamodb(item),
                ConditionExpression="version = :version",
                ExpressionAttributeValues={":version": {"N": str(version)}},
            )
        except (ClientError, BotoCoreError) as error:
            raise_write_error(error, "dynamodb:PutItem", f"replacing {item['pk']} in the table {self.name}")

    def update(self, pk: str, sk: str, change: str, condition: str, values: Mapping[str, Any]) -> None:
        """Change some attributes of the item on condition, the others stay; `values` are typed as DynamoDB's."""
        key: Any = to_dynamodb({"pk": pk, "sk": sk})
        try:
            self.client.update_item(
                TableName=self.name,
                Key=key,
                UpdateExpression=change,
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
            )
        except (ClientError, BotoCoreError) as error:
            raise_write_error(error, "dynamodb:UpdateItem", f"updating {pk} in the table {self.name}")

    def transact(self, writes: Writes, doing: str) -> None:
        """All of these writes (as `put_if` makes them) or none; ConflictError when a condition failed."""
        try:
            self.client.transact_write_items(TransactItems=list(writes))  # type: ignore[arg-type]
        except (ClientError, BotoCoreError) as error:
            raise_write_error(error, "dynamodb:TransactWriteItems", doing)

    def put_if(self, item: Item, condition: str = "", names: Mapping[str, str] | None = None, **values: Value) -> Any:
        """A put for `transact`; `values` fill the ``:name`` places of the condition."""
        put: dict[str, Any] = {"TableName": self.name, "Item": to_dynamodb(item)}
        if condition:
            put["ConditionExpression"] = condition
        if names:
            put["ExpressionAttributeNames"] = dict(names)
        if values:
            put["ExpressionAttributeValues"] = {f":{name}": _attribute(value) for name, value in values.items()}
        return {"Put": put}

    def delete_if(self, pk: str, sk: str, condition: str, **values: Value) -> Any:
        """A delete for `transact`; `values` fill the ``:name`` places of the condition."""
        delete: dict[str, Any] = {"TableName": self.name, "Key": to_dynamodb({"pk": pk, "sk": sk})}
        filled = {f":{name}": _attribute(value) for name, value in values.items()}
        return {"Delete": {**delete, "ConditionExpression": condition, "ExpressionAttributeValues": filled}}

    def put_over(self, item: Item, read: Item | None, *names: str) -> Any:
        """A put for `transact` on condition that the item still has these attributes as read.

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
        pages = self.client.get_paginator("query").paginate(TableName=self.name, **request)
        with translate_read_errors("dynamodb:Query", f"querying the table {self.name}"):
            for page in pages:
                yield from map(from_dynamodb, page["Items"])


def _value(attribute: Mapping[str, Any]) -> Value:
    ((kind, value),) = attribute.items()
    if kind == "S":
        return str(value)
    if kind == "BOOL":
        return bool(value)
    return int(value) if kind == "N" and WHOLE.fullmatch(value) else RawAttribute(attribute)


def _attribute(value: Value) -> dict[str, Any]:
    if isinstance(value, RawAttribute):
        return dict(value.attribute)
    if isinstance(value, bool):
        return {"BOOL": value}
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def raise_write_error(error: ClientError | BotoCoreError, action: str, doing: str) -> Never:
    code = code_of(error) if isinstance(error, ClientError) else type(error).__name__
    if code == "ConditionalCheckFailedException" or (
        code == "TransactionCanceledException" and _is_lost_condition(error)
    ):
        raise ConflictError(f"{doing}: somebody else was first; read it again") from error
    raise write_error(error, action, doing) from error


def _is_lost_condition(error: ClientError | BotoCoreError) -> bool:
    """Whether a transaction failed by its conditions, and not by a malformed item."""
    reasons: Any = error.response.get("CancellationReasons", []) if isinstance(error, ClientError) else []
    return any(reason.get("Code") in LOST for reason in reasons)


def text(row: Row, name: str) -> str:
    """An attribute that is text. UnreadableError."""
    value = _require(row, name)
    if not isinstance(value, str):
        raise UnreadableError(f"its attribute {name} is no text")
    return value


def whole_number(row: Row, name: str) -> int:
    """An attribute that is a whole number. UnreadableError."""
    value = _require(row, name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST_WHOLE:
        raise UnreadableError(f"its attribute {name} is no whole number of a sensible size")
    return value


def money(row: Row, name: str) -> Decimal:
    """US dollars, kept as text. UnreadableError."""
    said = text(row, name)
    try:
        value = Decimal(said)
    except ArithmeticError:
        value = Decimal("NaN")
    if not value.is_finite() or abs(value) > LARGEST_USD:
        raise UnreadableError(f"its attribute {name} is {said[:40]!r}, which is no sum of money")
    return value


def number(row: Row, name: str) -> Decimal:
    """An attribute that is a number, such as a sum that DynamoDB itself adds to. UnreadableError."""
    value = _require(row, name)
    said = value.attribute.get("N") if isinstance(value, RawAttribute) else value
    if isinstance(value, str | bool) or said is None or abs(Decimal(said)) > LARGEST_USD:
        raise UnreadableError(f"its attribute {name} is no number of a sensible size")
    return Decimal(said)


def moment(row: Row, name: str) -> datetime:
    """A time, in UTC. UnreadableError for one without a time zone too."""
    said = text(row, name)
    try:
        value = datetime.fromisoformat(said)
        if value.tzinfo is not None:
            return value.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UnreadableError(f"its attribute {name} is {said[:40]!r}, which is no time") from error
    raise UnreadableError(f"its attribute {name} is {said[:40]!r}, a time without a time zone")


def document(row: Row) -> dict[str, Any]:
    """The row's document as plain JSON values. UnreadableError where it has none that this release may act on."""
    try:
        found = json.loads(text(row, "doc"))
    except (ValueError, RecursionError) as error:
        raise UnreadableError("its attribute doc holds no JSON; restore it or delete it") from error
    if not isinstance(found, dict):
        raise UnreadableError("its attribute doc is no JSON object; restore it or delete it")
    if newer := newer_than_known(found):
        raise UnreadableError(newer)
    return found


def key_of(row: Row) -> str:
    """Both parts of the key, for people; DynamoDB takes no row without them."""
    return f"{row.get('pk')} {row.get('sk')}"


def read_row[Found, T](row: Found, read: Callable[[Found], T]) -> T:
    """Result of `read` on the row; UnreadableError, with the cause, where it fails."""
    try:
        return read(row)
    except UnreadableError:
        raise
    except (InputError, ReadError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise UnreadableError(str(error)) from error


def readable_rows[T](
    rows: Iterable[Row], read: Callable[[Row], T], unread: list[UnreadRow] | None = None
) -> Iterator[T]:
    """Result of `read` on each row.

    One of which it can make nothing is logged, put into `unread`, and passed over.

    The metric `RowsUnreadable` counts them.
    """
    for row in rows:
        try:
            made = read_row(row, read)
        except UnreadableError as error:
            pass_over(key_of(row), error, unread)
        else:
            yield made


def read_if_readable[T](row: Row | None, read: Callable[[Row], T]) -> T | None:
    """Result of `read` on the row; None for a missing or an unreadable row, which is counted."""
    return None if row is None else next(readable_rows([row], read), None)


def pass_over(key: str, error: RightsizerError, unread: list[UnreadRow] | None = None) -> None:
    """Log and count a row that cannot be read, and put it into `unread`."""
    logger.warning("a stored row cannot be read and is passed over", row=key, problem=str(error))
    count(RowsUnreadable=1)
    if unread is not None:
        unread.append(UnreadRow(key, str(error)))


def unknown_attributes(row: Row, ours: Iterable[str]) -> Row:
    """Attributes of the row beside our own, which a rewrite puts back."""
    known = frozenset(ours)
    return {name: value for name, value in row.items() if name not in known}


def condition_values(row: Row, *names: str) -> Row:
    """The row's present values of these attributes, of whatever type, for conditions."""
    return {name: row[name] for name in names if name in row}


def _require(row: Row, name: str) -> Value:
    if name not in row:
        raise UnreadableError(f"it has no attribute {name}")
    return row[name]
