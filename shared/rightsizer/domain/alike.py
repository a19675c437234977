"""Tell whether AWS shows what was asked for; it adds defaults of its own."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def covers(live: Any, wanted: Any, skip: tuple[str, ...]) -> bool:
    """Whether everything that was asked for is there; AWS may add defaults of its own."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            covers(live.get(key), value, skip) for key, value in wanted.items() if key not in skip
        )
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(live, (list, tuple))
            and len(live) == len(wanted)
            and all(covers(a, b, skip) for a, b in zip(live, wanted, strict=True))
        )
    if isinstance(wanted, float) or isinstance(live, float):
        return isinstance(live, (int, float)) and float(live) == float(wanted)
    return bool(_moment(live) == _moment(wanted))


def _moment(value: Any) -> Any:
    """Times compare as instants, whether AWS gave a datetime or the journal kept ISO text."""
    if isinstance(value, str) and value[:4].isdigit() and "T" in value:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value
