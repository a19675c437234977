"""A tape of what one cold invocation of a built function asked, and what it was answered, to be played again.

While it records, the simulated account (or the simulated Slack) answers. Played, the same answers come again, from
memory and without the account, so that each later run meets exactly what the first one met.
"""

import pickle
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from sandbox.requests import described
from sandbox.server import Application, Environ, Start

AT_A_TIME = """
import os, runpy
from datetime import datetime
from rightsizer import bootstrap

moment = datetime.fromisoformat(os.environ["BENCH_NOW"])
bootstrap.set_clock(lambda: moment)
runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)
"""
"""Starts the runtime client with a fixed time, so that what was signed or kept then is as old in each run."""

NOTING = f"""
import os, pickle, urllib3
from botocore.client import BaseClient

made, posted = BaseClient._make_api_call, urllib3.PoolManager.request

def note(*row):
    with open(os.environ["BENCH_CALLS"], "ab") as file:
        pickle.dump(row, file)

def make(self, operation, parameters):
    note("aws", self.meta.service_model.service_name, self.meta.region_name, operation, parameters)
    return made(self, operation, parameters)

def post(self, method, url, **options):
    note("http", method, url, {{key: options[key] for key in ("body", "headers")}})
    return posted(self, method, url, **options)

BaseClient._make_api_call, urllib3.PoolManager.request = make, post
{AT_A_TIME}
"""
"""The same, and each call is noted as the function's code asks for it: service, Region, operation and parameters."""


def noted(path: Path) -> list[Any]:
    """What a function that was started by `NOTING` noted in the file."""
    rows = []
    with path.open("rb") as file:
        while file.peek(1):
            rows.append(pickle.load(file))
    return rows


@dataclass(frozen=True)
class Exchange:
    """A request and its answer. `name` is `service:Operation`, `slack:` and the method, or `response_url`."""

    name: str
    parameters: Any
    status: str
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Recording:
    """One cold invocation: what it was given, what it asked, and what it answered."""

    door: str
    event: Any
    at: datetime
    payload: Any = None
    exchanges: list[Exchange] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    """As the function's code asked for them; `bench/bare/app.py` makes them again."""

    def names(self) -> Counter[str]:
        """The calls, counted by name."""
        return Counter(one.name for one in self.exchanges)


class Tape:
    """Stands before the account as a WSGI application: records into a recording, or plays one, or lets pass."""

    def __init__(self) -> None:
        self.slack = ""
        """Where the simulated Slack listens."""
        self._account: Application | None = None
        self._lock = threading.Lock()
        self.recording: Recording | None = None
        self._left: list[Exchange] | None = None
        self._unexpected: list[str] = []

    def before(self, account: Application) -> Application:
        """Stand before this account."""
        self._account = account
        return self

    def play(self, recording: Recording) -> None:
        """Answer from the recording from now on."""
        self.recording, self._left, self._unexpected = None, list(recording.exchanges), []

    def told_otherwise(self) -> str:
        """How the requests since `play` differ from those of the recording; empty where they do not."""
        missing = Counter(one.name for one in self._left or [])
        told = [f"not asked: {name} ({count})" for name, count in missing.items()]
        return "; ".join([*told, *(f"not in the recording: {name}" for name in self._unexpected)])

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        """Answer one request."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        name, parameters = _named({**environ, "wsgi.input": BytesIO(body)})
        with self._lock:
            if self._left is not None:
                found = self._played(name, parameters)
            else:
                found = self._asked(name, parameters, environ, body)
                if self.recording:
                    self.recording.exchanges.append(found)
        start(found.status, found.headers)
        return [found.body]

    def _played(self, name: str, parameters: Any) -> Exchange:
        """The next answer to such a request; to the same one where several of its kind are left."""
        assert self._left is not None
        alike = [one for one in self._left if one.name == name]
        if not alike:
            self._unexpected.append(name)
            return Exchange(name, parameters, "400 Refused", [("content-length", "0")], b"")
        found = next((one for one in alike if one.parameters == parameters), alike[0])
        self._left.remove(found)
        return found

    def _asked(self, name: str, parameters: Any, environ: Environ, body: bytes) -> Exchange:
        if not _signed(environ):
            status, headers, data = self._ask_slack(environ, body)
            return Exchange(name, parameters, status, headers, data)
        assert self._account is not None
        told: list[Any] = []

        def begin(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
            told[:] = [status, headers]
            return lambda _: None

        data = b"".join(self._account({**environ, "wsgi.input": BytesIO(body)}, begin))
        return Exchange(name, parameters, told[0], list(told[1]), data)

    def _ask_slack(self, environ: Environ, body: bytes) -> tuple[str, list[tuple[str, str]], bytes]:
        headers = {"Content-Type": environ["CONTENT_TYPE"], "Authorization": environ.get("HTTP_AUTHORIZATION", "")}
        asked = urllib.request.Request(self.slack + environ["PATH_INFO"], body, headers, method="POST")
        try:
            with urllib.request.urlopen(asked) as answer:
                status, data = answer.status, answer.read()
        except HTTPError as error:
            status, data = error.code, error.read()
        return f"{status} Answered", [("content-type", "application/json"), ("content-length", str(len(data)))], data


def _signed(environ: Environ) -> bool:
    return "aws4_request" in environ.get("HTTP_AUTHORIZATION", "")


def _named(environ: Environ) -> tuple[str, Any]:
    if _signed(environ):
        service, operation, parameters = described(environ)
        return f"{service}:{operation}", parameters
    path = environ["PATH_INFO"]
    return ("response_url" if path.startswith("/actions/") else f"slack:{path.rpartition('/')[2]}"), None
