"""Pages with opaque tokens. A token that was not given out is refused."""

import base64
import binascii
from collections.abc import Sequence

from sandbox.refusals import AwsRefusal
from sandbox.strict import on


def page[T](
    items: Sequence[T], token: str | None, size: int, code: str = "ValidationException", operation: str = ""
) -> tuple[list[T], str | None]:
    """The page of `items` that `token` names, and the token of the next one; `operation` refuses other tokens."""
    start = _offset(token, code, operation) if token else 0
    end = start + size
    return list(items[start:end]), (_token(end) if end < len(items) else None)


def _token(offset: int) -> str:
    return base64.urlsafe_b64encode(f"sandbox:{offset}".encode()).decode()


def _offset(token: str, code: str, operation: str) -> int:
    try:
        label, _, offset = base64.urlsafe_b64decode(token.encode()).decode().partition(":")
        if label == "sandbox":
            return int(offset)
    except (ValueError, binascii.Error):
        pass
    if not on(operation, "token"):
        return 0
    raise AwsRefusal(code, "Invalid pagination token given.")
