"""Instant queries to a Prometheus server. Source: the HTTP API, https://prometheus.io/docs/prometheus/latest/querying/api/."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rightsizer.errors import InputError, ReadError

TIMEOUT_S = 60.0
MOST_BYTES = 64 * 2**20
"""An answer that is larger is refused: a narrower namespace or a shorter window is needed."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of an answer with its value at the time of the question."""

    labels: Mapping[str, str]
    value: float


class _NoRedirect(HTTPRedirectHandler):
    """Ask the address that was given and no other."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Prometheus:
    """Asks one server. ReadError names the query, the cause and what to do."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InputError(f"{url!r} is no address of a Prometheus server; give one such as http://127.0.0.1:9090")
        self._base = url.rstrip("/")
        self._timeout_s = timeout_s
        self._opener = build_opener(_NoRedirect)

    def query(self, expression: str) -> tuple[Sample, ...]:
        """The instant vector of an expression; series without a finite value are left out."""
        place = f"asking {self._base} for {expression}"
        data = self._ask(expression, place).get("data")
        if not isinstance(data, Mapping) or data.get("resultType") != "vector":
            raise ReadError(f"{place}: the answer is no vector; is it a Prometheus server?")
        return tuple(sample for row in data.get("result", ()) if (sample := _sample(row)) is not None)

    def _ask(self, expression: str, place: str) -> Mapping[str, Any]:
        asked = urlencode({"query": expression, "timeout": f"{self._timeout_s:g}s"})
        address = f"{self._base}/api/v1/query?{asked}"
        request = Request(address, headers={"Accept": "application/json"})  # noqa: S310  (the scheme is checked above)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                body = answer.read(MOST_BYTES + 1)
        except HTTPError as error:
            with error:
                said = _said(error.read(MOST_BYTES))
            raise ReadError(f"{place}: HTTP {error.code}, {said}") from None
        except (URLError, OSError) as error:
            cause = getattr(error, "reason", error)
            raise ReadError(f"{place}: {cause}; is the address right, or a kubectl port-forward missing?") from None
        if len(body) > MOST_BYTES:
            raise ReadError(f"{place}: the answer is larger than 64 MiB; give --namespace or fewer --days")
        return _answer(body, place)


def _answer(body: bytes, place: str) -> Mapping[str, Any]:
    """The document of a successful answer."""
    try:
        found = json.loads(body)
    except ValueError:
        raise ReadError(f"{place}: the answer is no JSON; is it a Prometheus server?") from None
    if not isinstance(found, Mapping) or found.get("status") != "success":
        raise ReadError(f"{place}: {_said(body)}")
    return found


def _said(body: bytes) -> str:
    """What the server says went wrong, in at most 300 characters."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if isinstance(found, Mapping) and found.get("error"):
        return f"{found.get('errorType', 'error')}: {found['error']}"[:300]
    return body[:300].decode("utf-8", "replace") or "no text"


def _sample(row: Any) -> Sample | None:
    """One row of a vector; None where its value is not finite or cannot be read."""
    try:
        labels = {str(key): str(value) for key, value in row["metric"].items()}
        value = float(row["value"][1])
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None
    return Sample(labels, value) if math.isfinite(value) else None
