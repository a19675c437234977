"""Rows of the table as nouns: one that cannot be read is counted and told, and stops no other (law 10)."""

from collections.abc import Callable, Iterable, Iterator

from rightsizer import wire
from rightsizer.aws.table import Value
from rightsizer.errors import InputError, ReadError, RightsizerError, UnreadableError
from rightsizer.model.outcome import UnreadRow
from rightsizer.telemetry import count, logger

type Row = dict[str, Value]


def noun_of[T](noun: type[T], row: Row) -> T:
    """The noun of the row's document; UnreadableError when there is none, or this release cannot read it."""
    return read_row(row, lambda found: wire.restored(noun, str(found["doc"])))


def read_row[Found, T](row: Found, read: Callable[[Found], T]) -> T:
    """What `read` makes of the row; UnreadableError, with the cause, when it can make nothing of it."""
    try:
        return read(row)
    except KeyError as error:
        raise UnreadableError(f"it has no attribute {error.args[0]}") from error
    except UnreadableError:
        raise
    except (InputError, ReadError, ValueError, TypeError, AttributeError) as error:
        raise UnreadableError(str(error)) from error


def readable[T](rows: Iterable[Row], read: Callable[[Row], T], unread: list[UnreadRow] | None = None) -> Iterator[T]:
    """What `read` makes of each row. One of which it can make nothing is logged, put into `unread`, and passed over.

    The metric `RowsUnreadable` counts them.
    """
    for row in rows:
        try:
            made = read_row(row, read)
        except UnreadableError as error:
            passed_over(f"{row['pk']} {row['sk']}", error, unread)
        else:
            yield made


def passed_over(key: str, error: RightsizerError, unread: list[UnreadRow] | None = None) -> None:
    """Log and count a row that cannot be read, and put it into `unread`."""
    logger.warning("a stored row cannot be read and is passed over", row=key, problem=str(error))
    count(RowsUnreadable=1)
    if unread is not None:
        unread.append(UnreadRow(key, str(error)))
