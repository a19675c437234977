"""Rows of the table as nouns: one that cannot be read is told, and stops no other (law 10)."""

from collections.abc import Callable, Iterable, Iterator

from rightsizer.aws.table import Value
from rightsizer.errors import InputError
from rightsizer.model.outcome import UnreadRow
from rightsizer.telemetry import logger

type Row = dict[str, Value]


def readable[T](rows: Iterable[Row], read: Callable[[Row], T], unread: list[UnreadRow] | None = None) -> Iterator[T]:
    """What `read` makes of each row. One of which it can make nothing is logged, put into `unread`, and passed over."""
    for row in rows:
        try:
            made = read(row)
        except (InputError, KeyError) as error:
            cause = f"it has no attribute {error.args[0]}" if isinstance(error, KeyError) else str(error)
            lost = UnreadRow(f"{row['pk']} {row['sk']}", cause)
            logger.warning("a stored row cannot be read and is passed over", row=lost.key, problem=cause)
            if unread is not None:
                unread.append(lost)
        else:
            yield made
