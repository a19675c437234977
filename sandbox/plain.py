"""Parsed requests as plain containers."""

from datetime import UTC, datetime
from typing import Any


def plain(value: Any) -> Any:
    """The parsed request as plain containers, without absent members, with aware times."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value
