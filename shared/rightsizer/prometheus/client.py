"""Instant queries to a Prometheus server. Source: the HTTP API, https://prometheus.io/docs/prometheus/latest/querying/api/."""

import json
import math
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rightsizer.domain.reason import one_line
from rightsizer.errors import InputError, ReadError

TIMEOUT_S = 60.0
MOST_SAID = 300
"""Characters of what a server says that a message shows."""
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
        _require_address(url)
        self._base = url.rstrip("/")
        self._timeout_s = timeout_s
        self._opener = build_opener(_NoRedirect)

    def query(self, expression: str) -> tuple[Sample, ...]:
        """The instant vector of an expression; series without a finite value are left out."""
        place = f"asking {self._base} for {expression}"
        data = self._ask(expression, place).get("data")
        if not isinstance(data, Mapping) or data.get("resultType") != "vector":
            raise ReadError(f"{place}: the answer is no vector; is it a Prometheus server?")
        rows = data.get("result")
        if not isinstance(rows, list):
            raise ReadError(f"{place}: the answer's result is no list of series; is it a Prometheus server?")
        return tuple(sample for row in rows if (sample := _sample(row)) is not None)

    def _ask(self, expression: str, place: str) -> Mapping[str, Any]:
        asked = urlencode({"query": expression, "timeout": f"{self._timeout_s:g}s"})
        address = f"{self._base}/api/v1/query?{asked}"
        request = Request(address, headers={"Accept": "application/json"})  # noqa: S310  (the scheme is checked)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                body = answer.read(MOST_BYTES + 1)
        except HTTPError as error:
            raise ReadError(f"{place}: HTTP {error.code}, {_said_of(error)}{HINTS.get(error.code, '')}") from None
        except HTTPException as error:
            cause = one_line(f"{type(error).__name__}: {error}", MOST_SAID)
            raise ReadError(f"{place}: the answer is no HTTP ({cause}); is the address right?") from None
        except (URLError, OSError) as error:
            why = getattr(error, "reason", None) or error
            raise ReadError(f"{place}: {one_line(str(why), MOST_SAID)}; {self._hint(why)}") from None
        if len(body) > MOST_BYTES:
            raise ReadError(f"{place}: the answer is larger than 64 MiB; give --namespace or fewer --days")
        return _answer(body, place)

    def _hint(self, why: object) -> str:
        """What to do about a connection that failed."""
        if isinstance(why, ssl.SSLCertVerificationError):
            return "its certificate is not trusted here: name your authority's file by SSL_CERT_FILE"
        if isinstance(why, ssl.SSLError):
            return "no TLS is spoken there: give the address with http://"
        if isinstance(why, TimeoutError):
            text = f"no answer within {self._timeout_s:g} seconds"
            return f"{text}: is the address right? Else give --namespace or fewer --days"
        return "is the address right, or a kubectl port-forward missing?"


LOGIN = "; a server that asks for a login is not asked: give the address of a port-forward or of a proxy that signs in"
HINTS = {
    401: LOGIN,
    403: LOGIN,
    404: "; give the address in front of /api/v1, with its path where the server has one",
}
"""What to do about an answer, by its HTTP code."""


def _require_address(url: str) -> None:
    """InputError where the address cannot be asked, without the user and the password that it may hold."""
    shown = one_line(re.sub(r"^([a-z+.-]*:?//)?.*@", r"\1", url, flags=re.IGNORECASE | re.DOTALL), MOST_SAID)
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        good = parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not match, a host that is no name
        good = False
    if good and "@" in parts.netloc:
        text = f"the address of {shown!r} holds a user or a password, and a server that asks for a login is not asked"
        raise InputError(f"{text}; give an address without them, of a port-forward or a proxy that signs in")
    if not good or re.search(r"[\s\x00-\x1f\x7f-\U0010ffff]", url) or parts.query or parts.fragment:
        raise InputError(
            f"{shown!r} is no address of a Prometheus server; give one such as http://127.0.0.1:9090, with the path in"
            " front of /api/v1 where there is one"
        )


def _said_of(error: HTTPError) -> str:
    """What the server says with an HTTP error."""
    with error:
        try:
            return _said(error.read(MOST_BYTES))
        except (HTTPException, OSError):
            return "and the answer ended early"


def _answer(body: bytes, place: str) -> Mapping[str, Any]:
    """The document of a successful answer."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise ReadError(f"{place}: the answer is no JSON; is it a Prometheus server?") from None
    if not isinstance(found, Mapping) or found.get("status") != "success":
        raise ReadError(f"{place}: {_said(body)}")
    return found


def _said(body: bytes) -> str:
    """What the server says went wrong, in at most `MOST_SAID` characters."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, Mapping) and found.get("error"):
        return one_line(f"{found.get('errorType', 'error')}: {found['error']}", MOST_SAID)
    return one_line(body[:MOST_SAID].decode("utf-8", "replace"), MOST_SAID) or "no text"


def _sample(row: Any) -> Sample | None:
    """One row of a vector; None where its value is not finite or cannot be read."""
    try:
        labels = {str(key): str(value) for key, value in row["metric"].items()}
        value = float(row["value"][1])
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    return Sample(labels, value) if math.isfinite(value) else None
