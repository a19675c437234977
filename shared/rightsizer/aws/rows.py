"""The one reader of the table's rows: each attribute as what it is meant to be, or UnreadableError.

A row that cannot be read is counted, told and left as it is, and stops no other (law 10). Nothing else in
`rightsizer.aws` looks into a row (tests/house/test_rows.py). No pydantic: `respond` uses this module too; rows with a
noun are read by `rightsizer.aws.nouns`.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rightsizer.aws.table import Kept, Value
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.schema import newer_than_known
from rightsizer.errors import InputError, ReadError, RightsizerError, UnreadableError
from rightsizer.telemetry import count, logger

type Row = dict[str, Value]

LARGEST_USD = Decimal(10) ** 15
"""No sum of money that the program keeps comes near; a larger one is nonsense, and would overflow a sum."""
LARGEST_WHOLE = 10**15
"""Far beyond every version and every time in seconds; DynamoDB takes numbers of 38 digits."""


def text(row: Row, name: str) -> str:
    """An attribute that is text. UnreadableError."""
    value = _attribute(row, name)
    if not isinstance(value, str):
        raise UnreadableError(f"its attribute {name} is no text")
    return value


def whole(row: Row, name: str) -> int:
    """An attribute that is a whole number. UnreadableError."""
    value = _attribute(row, name)
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
    value = _attribute(row, name)
    said = value.attribute.get("N") if isinstance(value, Kept) else value
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
    """What `read` makes of the row; UnreadableError, with the cause, when it can make nothing of it."""
    try:
        return read(row)
    except UnreadableError:
        raise
    except (InputError, ReadError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise UnreadableError(str(error)) from error


def readable[T](rows: Iterable[Row], read: Callable[[Row], T], unread: list[UnreadRow] | None = None) -> Iterator[T]:
    """What `read` makes of each row. One of which it can make nothing is logged, put into `unread`, and passed over.

    The metric `RowsUnreadable` counts them.
    """
    for row in rows:
        try:
            made = read_row(row, read)
        except UnreadableError as error:
            passed_over(key_of(row), error, unread)
        else:
            yield made


def if_readable[T](row: Row | None, read: Callable[[Row], T]) -> T | None:
    """What `read` makes of the row; None where there is none, and for one that cannot be read, which is counted."""
    return None if row is None else next(readable([row], read), None)


def passed_over(key: str, error: RightsizerError, unread: list[UnreadRow] | None = None) -> None:
    """Log and count a row that cannot be read, and put it into `unread`."""
    logger.warning("a stored row cannot be read and is passed over", row=key, problem=str(error))
    count(RowsUnreadable=1)
    if unread is not None:
        unread.append(UnreadRow(key, str(error)))


def beyond(row: Row, ours: Iterable[str]) -> Row:
    """What the row holds beside our own attributes: a rewrite puts it back as it was."""
    known = frozenset(ours)
    return {name: value for name, value in row.items() if name not in known}


def as_read(row: Row, *names: str) -> Row:
    """These attributes as they are, of whatever type, where the row has them: for conditions."""
    return {name: row[name] for name in names if name in row}


def _attribute(row: Row, name: str) -> Value:
    if name not in row:
        raise UnreadableError(f"it has no attribute {name}")
    return row[name]
