"""Pages with opaque tokens. A token that was not given out is refused."""

import base64
import binascii
from collections.abc import Sequence

from sandbox.refusals import AwsRefusal


def page[T](
    items: Sequence[T], token: str | None, size: int, code: str = "ValidationException"
) -> tuple[list[T], str | None]:
    """The page of `items` that `token` names, and the token of the next one."""
    start = _offset(token, code) if token else 0
    end = start + size
    return list(items[start:end]), (_token(end) if end < len(items) else None)


def _token(offset: int) -> str:
    return base64.urlsafe_b64encode(f"sandbox:{offset}".encode()).decode()


def _offset(token: str, code: str) -> int:
    try:
        label, _, offset = base64.urlsafe_b64decode(token.encode()).decode().partition(":")
        if label == "sandbox":
            return int(offset)
    except (ValueError, binascii.Error):
        pass
    raise AwsRefusal(code, "Invalid pagination token given.")
