"""The sandbox as a server on loopback, so that any boto3, AWS CLI or built function can be pointed at it.

    with serve(box) as url:
        subprocess.run([...], env={"AWS_ENDPOINT_URL": url, ...})

moto's WSGI application answers; a thin layer around it feeds the gate. HTTP/1.1 with keep-alive, and without Nagle's
algorithm, which would cost some 40 ms a call. Three paths are our own: GET /sandbox/clock, POST
/sandbox/advance?seconds=N, GET /sandbox/calls; beside them the pages that are given.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from email.utils import format_datetime
from io import BytesIO
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from sandbox.account import Sandbox
from sandbox.answers import error_answer
from sandbox.gate import Call, Fault
from sandbox.refusals import Killed, NotSimulated
from sandbox.requests import described

type Environ = dict[str, Any]
type Start = Callable[..., Any]
type Application = Callable[[Environ, Start], Iterable[bytes]]


class GatedApplication:
    """moto's application behind the gate; one request at a time, as the account has one state."""

    def __init__(
        self, box: Sandbox, before: Callable[[], None], pages: Mapping[str, Callable[[], str]] = MappingProxyType({})
    ) -> None:
        self._box, self._before, self._pages = box, before, pages
        self._application = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.RLock()

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        """Answer one request."""
        with self._lock:
            self._before()
            undated = _undated(start)
            if environ["PATH_INFO"].startswith("/sandbox/"):
                return self._own(environ, undated)
            return self._gated(environ, undated)

    def _gated(self, environ: Environ, start: Start) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        service, operation, params = described({**environ, "wsgi.input": BytesIO(body)})
        environ["wsgi.input"] = BytesIO(body)
        try:
            call, fault = self._box.gate.arrive(service, operation, params)
        except Killed as killed:  # the caller is another process: it sees the connection fail
            return _answer(start, 503, {"content-type": "text/plain"}, str(killed).encode())
        if fault:
            return _answer(start, *error_answer(fault, service, _headers(environ)))
        return self._passed(environ, start, service, call)

    def _passed(self, environ: Environ, start: Start, service: str, call: Call | None) -> Iterable[bytes]:
        seen: list[str] = []

        def record(status: str, headers: Any, *rest: Any) -> Any:
            seen.append(status)
            return start(status, headers, *rest)

        try:
            parts = list(self._application(environ, record))
        except NotSimulated as refusal:
            if call:
                call.error = "NotSimulated"
            fault = Fault("NotSimulated", str(refusal))  # 400, so that botocore does not repeat it
            return _answer(start, *error_answer(fault, service, _headers(environ)))
        if call:
            self._box.gate.leave(call, None if seen and seen[0][:1] in "23" else _code(b"".join(parts)))
        return parts

    def _own(self, environ: Environ, start: Start) -> Iterable[bytes]:
        query = parse_qs(environ.get("QUERY_STRING", ""))
        page = self._pages.get(environ["PATH_INFO"].removeprefix("/sandbox/"))
        if page is not None:
            return _answer(start, 200, {"content-type": "text/html; charset=utf-8"}, page().encode())
        match environ["PATH_INFO"]:
            case "/sandbox/advance":
                self._box.clock.advance(timedelta(seconds=float(query["seconds"][0])))
                answer: Any = {"now": self._box.clock.now.isoformat()}
            case "/sandbox/clock":
                answer = {"now": self._box.clock.now.isoformat()}
            case "/sandbox/calls":
                answer = self._box.calls.counts()
            case _:
                return _answer(start, 404, {}, b"{}")
        return _answer(start, 200, {"content-type": "application/json"}, json.dumps(answer).encode())


def _undated(start: Start) -> Start:
    """Leave the date to the server, which adds one to each answer."""

    def begin(status: str, headers: Any, *rest: Any) -> Any:
        return start(status, [(name, value) for name, value in headers if name.lower() != "date"], *rest)

    return begin


def _headers(environ: Environ) -> dict[str, str | bytes]:
    return {"content-type": environ.get("CONTENT_TYPE", "")}


def _answer(start: Start, status: int, headers: dict[str, str], body: bytes) -> Iterable[bytes]:
    start(f"{status} {'OK' if status < 300 else 'Refused'}", [*headers.items(), ("content-length", str(len(body)))])
    return [body]


def _code(body: bytes) -> str:
    match = re.search(rb'"__type":\s*"(?:[^"#]*#)?([^"]+)"|<Code>([^<]+)</Code>', body)
    return (match[1] or match[2]).decode() if match else "Error"


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    box: Sandbox
    """The account whose time the answers carry."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The account's time, by which a client knows how far its own clock is off."""
        return format_datetime(self.box.clock.now, usegmt=True)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing: the calls are recorded."""


def listen(
    box: Sandbox,
    port: int = 0,
    before: Callable[[], None] = lambda: None,
    around: Callable[[Application], Application] = lambda account: account,
    pages: Mapping[str, Callable[[], str]] = MappingProxyType({}),
) -> BaseWSGIServer:
    """A server of `box` on 127.0.0.1; `before` runs before each request, `around` puts something before the account.

    `pages`: HTML pages below /sandbox/, made anew for each visit.
    """
    application = around(GatedApplication(box, before, pages))
    handler = type("Handler", (_Handler,), {"box": box})
    return make_server("127.0.0.1", port, application, threaded=True, request_handler=handler)


@contextmanager
def serve(
    box: Sandbox, port: int = 0, around: Callable[[Application], Application] = lambda account: account
) -> Iterator[str]:
    """Serve `box` from a thread of this process; the address to set as AWS_ENDPOINT_URL."""
    server = listen(box, port, around=around)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
