"""DynamoDB. Limits: developer guide, "Quotas in Amazon DynamoDB" and "Reserved words in DynamoDB"."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from sandbox.strict import Check, Key, Params, moto, shape
from sandbox.strict.words import other_than, twice

SERVICE = "dynamodb"
INVALID, NOWHERE = "ValidationException", "ResourceNotFoundException"
LARGEST_ITEM, LARGEST_TRANSACTION = 400 * 1024, 4 * 1024 * 1024
_EXPRESSIONS = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
_WORDS = frozenset(
    {
        "and",
        "or",
        "not",
        "between",
        "in",
        "set",
        "remove",
        "add",
        "delete",
        "size",
        "attribute_exists",
        "contains",
        "attribute_not_exists",
        "attribute_type",
        "begins_with",
        "if_not_exists",
        "list_append",
    }
)
_FUNCTION = re.compile(r"\b([A-Za-z_]+)\s*\(")
_FUNCTIONS = _WORDS - {"and", "or", "not", "between", "in", "set", "remove", "add", "delete"}


def _actions(p: Params) -> list[Params]:
    return [action for item in p.get("TransactItems") or [] for action in item.values()]


def _texts(p: Params) -> str:
    return " ".join(p.get(name) or "" for name in _EXPRESSIONS)


def _reserved(p: Params) -> bool:
    return _has_reserved_word(_texts(p))


@lru_cache(1024)
def _has_reserved_word(text: str) -> bool:
    names = re.findall(r"(?<![#:\w])[A-Za-z_]\w*", text)
    reserved = set(ReservedKeywords.get_reserved_keywords())
    return any(name.upper() in reserved for name in names if name.lower() not in _WORDS)


def _misspelt_function(p: Params) -> bool:
    """Names of functions are lower case; AND ( and the like are no functions."""
    return _has_misspelt_function(_texts(p))


@lru_cache(1024)
def _has_misspelt_function(text: str) -> bool:
    operators = {"AND", "OR", "NOT", "IN", "BETWEEN"}
    return any(name not in _FUNCTIONS and name.upper() not in operators for name in _FUNCTION.findall(text))


@lru_cache(1024)
def _places(text: str) -> frozenset[str]:
    """The places of names and values that expressions use."""
    return frozenset(re.findall(r"[#:]\w+", text))


def _unused(p: Params) -> bool:
    places = [*(p.get("ExpressionAttributeNames") or {}), *(p.get("ExpressionAttributeValues") or {})]
    return not _places(_texts(p)).issuperset(places)


def _undefined(p: Params) -> bool:
    given = {*(p.get("ExpressionAttributeNames") or {}), *(p.get("ExpressionAttributeValues") or {})}
    return bool(_places(_texts(p)) - given)


def _size(value: Any) -> int:
    """Bytes of a typed attribute, roughly as DynamoDB counts: UTF-8 text, 3 bytes of overhead of lists and maps."""
    if isinstance(value, Mapping):
        return 3 + sum(len(str(name).encode()) + _size(inner) for name, inner in value.items())
    if isinstance(value, list):
        return 3 + sum(map(_size, value))
    return len(value if isinstance(value, bytes) else str(value).encode())


def item_size(item: Params) -> int:
    """Bytes of an item: its names and values."""
    return sum(len(name.encode()) + _size(next(iter(value.values()))) for name, value in item.items())


def _items(p: Params) -> Iterator[Params]:
    yield from (holder["Item"] for holder in (p, *_actions(p)) if "Item" in holder)


def _sets(value: Any) -> Iterator[list[Any]]:
    """Every set of a typed attribute, at every depth."""
    for kind, held in value.items() if isinstance(value, Mapping) else ():
        if kind in {"SS", "NS", "BS"}:
            yield held
        elif kind in {"M", "L"}:
            for inner in held.values() if kind == "M" else held:
                yield from _sets(inner)


def _given_sets(p: Params) -> Iterator[list[Any]]:
    """Sets of the items and of the values of expressions."""
    for holder in (p, *_actions(p)):
        for value in (*(holder.get("Item") or {}).values(), *(holder.get("ExpressionAttributeValues") or {}).values()):
            yield from _sets(value)


def _empty_set(p: Params) -> bool:
    return any(not held for held in _given_sets(p))


def _doubled(p: Params) -> bool:
    return any(twice(held) for held in _given_sets(p))


def _empty_key(p: Params) -> bool:
    return any("" in value.values() for holder in (p, *_actions(p)) for value in (holder.get("Key") or {}).values())


def _same_item(p: Params) -> bool:
    keys = [a.get("Key") or {name: a["Item"].get(name) for name in ("pk", "sk")} for a in _actions(p)]
    return twice([(a["TableName"], sorted(map(str, key.items()))) for a, key in zip(_actions(p), keys, strict=True)])


def _filtered_keys(p: Params) -> bool:
    """The filter of a query names an attribute of the key that is queried, directly or by a place."""
    keys = {"gsi1pk", "gsi1sk"} if "IndexName" in p else {"pk", "sk"}
    names = p.get("ExpressionAttributeNames") or {}
    words = re.findall(r"(?<![:\w])#?\w+", p.get("FilterExpression") or "")
    return any(names.get(word, word) in keys for word in words)


def _each(broken: Any) -> Any:
    return lambda p: any(broken(action) for action in _actions(p))


_RESERVED = Check("reserved", "a reserved word as a bare name in an expression", INVALID, _reserved)
_FUNCTION_CASE = Check("functions", "a function that is unknown, or not in lower case", INVALID, _misspelt_function)
_UNUSED = Check("unused", "names or values that no expression uses", INVALID, _unused)
_UNDEFINED = Check("undefined", "a place in an expression without its name or value", INVALID, _undefined)
_EMPTY_SET = Check("empty set", "an empty set, at any depth, in an item or a value", INVALID, _empty_set)
_DOUBLED = Check("doubled", "a set that has a member twice", INVALID, _doubled)
_EMPTY_KEY = Check(
    "empty key",
    "a key with an empty text",
    INVALID,
    _empty_key,
    source="developer guide, NamingRulesDataTypes",
)


def _batch_keys(params: Params) -> list[str]:
    """The keys of a BatchGetItem, as text."""
    return [f"{name} {sorted(key.items())}" for name, one in params["RequestItems"].items() for key in one["Keys"]]


def _batch_items(params: Params) -> list[Any]:
    """The items that a BatchWriteItem puts."""
    rows = (row for rows in params["RequestItems"].values() for row in rows)
    return [row["PutRequest"]["Item"] for row in rows if "PutRequest" in row]


def _batch_writes(params: Params) -> list[str]:
    """The keys that a BatchWriteItem puts or deletes, as text; our tables have pk and sk."""
    found = []
    for name, rows in params["RequestItems"].items():
        for row in rows:
            item = row["PutRequest"]["Item"] if "PutRequest" in row else row["DeleteRequest"]["Key"]
            found.append(f"{name} {item.get('pk')} {item.get('sk')}")
    return found


def _has_doubled(keys: list[str]) -> bool:
    return len(set(keys)) < len(keys)


_TOO_LARGE = "Item size has exceeded the maximum allowed size"
_TABLE = moto("table", "a table that does not exist", NOWHERE)

CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (SERVICE, "GetItem"): (
        shape(SERVICE, "an empty table name, ReturnConsumedCapacity outside its enum"),
        _RESERVED,
        _UNUSED,
        _UNDEFINED,
        moto("key", "a key that is not that of the schema", INVALID),
        _TABLE,
    ),
    (SERVICE, "BatchGetItem"): (
        shape(SERVICE, "more than 100 keys"),
        Check("twice", "a key twice", INVALID, lambda p: _has_doubled(_batch_keys(p))),
    ),
    (SERVICE, "BatchWriteItem"): (
        shape(SERVICE, "more than 25 items"),
        Check("twice", "an item twice", INVALID, lambda p: _has_doubled(_batch_writes(p))),
        Check(
            "size",
            "an item of more than 400 KB",
            INVALID,
            lambda p: any(item_size(item) > LARGEST_ITEM for item in _batch_items(p)),
            text=_TOO_LARGE,
        ),
    ),
    (SERVICE, "PutItem"): (
        shape(SERVICE, "an empty table name"),
        Check(
            "values", "ReturnValues other than NONE or ALL_OLD", INVALID, other_than("ReturnValues", "NONE", "ALL_OLD")
        ),
        _RESERVED,
        _FUNCTION_CASE,
        _UNUSED,
        _UNDEFINED,
        Check(
            "size",
            "an item of more than 400 KB",
            INVALID,
            lambda p: item_size(p["Item"]) > LARGEST_ITEM,
            text=_TOO_LARGE,
        ),
        _EMPTY_SET,
        _DOUBLED,
        moto("key", "an item without its whole key, or with an empty key", INVALID),
        moto("condition", "a condition that does not hold", "ConditionalCheckFailedException"),
        _TABLE,
    ),
    (SERVICE, "UpdateItem"): (
        shape(SERVICE, "an empty table name, ReturnValues outside its enum"),
        _RESERVED,
        _FUNCTION_CASE,
        _UNUSED,
        _UNDEFINED,
        _EMPTY_SET,
        _DOUBLED,
        _EMPTY_KEY,
        moto("size", "an update by which the item has more than 400 KB", INVALID),
        moto("of the key", "an update of an attribute of the key", INVALID),
        moto("condition", "a condition that does not hold", "ConditionalCheckFailedException"),
        _TABLE,
    ),
    (SERVICE, "DescribeTable"): (shape(SERVICE, "an empty table name"), _TABLE),
    (SERVICE, "DescribeTimeToLive"): (
        shape(SERVICE, "an empty table name"),
        moto("table", "a table that does not exist (on AWS with `ResourceNotFoundException`)", "ResourceNotFound"),
    ),
    (SERVICE, "DescribeContinuousBackups"): (
        shape(SERVICE, "an empty table name"),
        moto("table", "a table that does not exist", "TableNotFoundException"),
    ),
    (SERVICE, "Query"): (
        shape(SERVICE, "a limit of 0, an index name of fewer than 3 characters"),
        Check(
            "no key",
            "a query without a key condition",
            INVALID,
            lambda p: not p.get("KeyConditionExpression") and not p.get("KeyConditions"),
        ),
        _RESERVED,
        _FUNCTION_CASE,
        _UNUSED,
        _UNDEFINED,
        Check(
            "select",
            "ALL_PROJECTED_ATTRIBUTES without an index",
            INVALID,
            lambda p: p.get("Select") == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in p,
        ),
        Check(
            "projection",
            "a projection with another Select than SPECIFIC_ATTRIBUTES",
            INVALID,
            lambda p: "ProjectionExpression" in p and p.get("Select", "SPECIFIC_ATTRIBUTES") != "SPECIFIC_ATTRIBUTES",
        ),
        Check("filtered", "a filter on an attribute of the key", INVALID, _filtered_keys),
        Check(
            "consistent",
            "a consistent read of a global index",
            INVALID,
            lambda p: p.get("ConsistentRead") and "IndexName" in p,
        ),
        moto("partition", "a condition without equality of the partition key", INVALID),
        _TABLE,
    ),
    (SERVICE, "TransactWriteItems"): (
        shape(SERVICE, "none or more than 100 actions, a token of more than 36 characters"),
        Check(
            "one action",
            "an entry without exactly one action",
            INVALID,
            lambda p: any(len(item) != 1 for item in p["TransactItems"]),
        ),
        Check("same item", "two actions on one item", INVALID, _same_item),
        Check(
            "total", "more than 4 MB together", INVALID, lambda p: sum(map(item_size, _items(p))) > LARGEST_TRANSACTION
        ),
        Check(
            "size",
            "an item of more than 400 KB",
            INVALID,
            lambda p: any(item_size(i) > LARGEST_ITEM for i in _items(p)),
            text=_TOO_LARGE,
        ),
        _EMPTY_SET,
        _DOUBLED,
        _EMPTY_KEY,
        Check("reserved", _RESERVED.says, INVALID, _each(_reserved)),
        Check("functions", _FUNCTION_CASE.says, INVALID, _each(_misspelt_function)),
        Check("unused", _UNUSED.says, INVALID, _each(_unused)),
        Check("undefined", _UNDEFINED.says, INVALID, _each(_undefined)),
        moto("condition", "a condition that does not hold", "TransactionCanceledException"),
        _TABLE,
    ),
}
