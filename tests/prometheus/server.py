"""A server that answers instant queries as the HTTP API of Prometheus documents it, from fixed series."""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.prometheus.series import Series

NAME = re.compile(r"\b((?:DCGM_FI|kube|neuron|container)\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(!=|=)"([^"]*)"')

type Reply = tuple[int, bytes]


def vector(series: Iterable[Series], expression: str) -> bytes:
    """The answer to an expression over one name. Values are constant, so that each function over time gives them."""
    found = NAME.search(expression)
    assert found is not None, expression
    name, matchers = found[1], MATCHER.findall(found[2] or "")
    bare = "over_time" in expression
    rows = [
        {"metric": dict(labels) if bare else {"__name__": each} | dict(labels), "value": [1790000000.0, str(value)]}
        for each, labels, value in series
        if each == name and all((labels.get(key, "") == wanted) is (how == "=") for key, how, wanted in matchers)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}).encode()


@contextmanager
def serving(reply: Callable[[str], Reply], headers: Mapping[str, str] | None = None) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that replies to each expression, and the requests that it got."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            expression = parse_qs(parts.query).get("query", [""])[0]
            asked.append(f"{self.command} {parts.path} {expression}")
            code, body = reply(expression)
            self.send_response(code)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return None

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{made.server_address[1]}", asked
    finally:
        made.shutdown()
        made.server_close()
        thread.join()
