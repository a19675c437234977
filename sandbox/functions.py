"""Runs the functions: in this process, as plain Python, with the environment that the template gives them."""

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from unittest.mock import patch

from sandbox.gate import Call


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the template."""

    name: str
    door: str
    """Folder below functions/."""
    arn: str
    handler: str
    environment: Mapping[str, str]
    retries: int
    timeout: int
    memory: int


@dataclass(slots=True)
class Invocation:
    """One run of a function."""

    at: datetime
    door: str
    source: str
    """What called it: the resource of the template, or ``url``, ``action``, ``test``."""
    event: Any
    answer: Any = None
    error: BaseException | None = None
    calls: Sequence[Call] = ()
    """The requests to AWS that it made."""


class Invoker(Protocol):
    """Runs a function; a failure is an exception."""

    def __call__(self, function: Function, event: Any, request_id: str) -> Any:
        """The handler's answer."""
        ...

    def cold(self) -> None:
        """Start each function anew at its next invocation."""
        ...


@dataclass(slots=True)
class Context:
    """The Lambda context, as Powertools reads it."""

    function_name: str
    memory_limit_in_mb: int
    invoked_function_arn: str
    aws_request_id: str
    timeout_s: int
    function_version: str = "$LATEST"
    log_group_name: str = "/aws/lambda/sandbox"
    log_stream_name: str = "sandbox"
    identity: None = None
    client_context: None = None

    def get_remaining_time_in_millis(self) -> int:
        """All of it: simulated functions take no time."""
        return self.timeout_s * 1000


@dataclass(slots=True)
class InProcess:
    """Calls ``functions.<door>.app`` here. A new one starts cold: nothing cached from an earlier account is kept."""

    now: Callable[[], datetime]
    region: str
    prepare: Callable[[Function], None] = lambda function: None
    _warm: dict[str, Callable[[Any, Any], Any]] = field(default_factory=dict)
    _built: dict[str, tuple[Mapping[str, str], dict[Any, Any]]] = field(default_factory=dict)
    """What each function keeps between its invocations, with the environment for which it built that."""

    def __post_init__(self) -> None:
        _forget()

    def cold(self) -> None:
        """Forget the doors and everything that they built."""
        self._warm.clear()
        self._built.clear()
        _forget()

    def __call__(self, function: Function, event: Any, request_id: str) -> Any:
        """Run the handler under the function's environment and the simulated time."""
        environment = dict(function.environment) | {
            "AWS_REGION": self.region,
            "AWS_LAMBDA_FUNCTION_NAME": function.name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
            "POWERTOOLS_METRICS_DISABLED": "true",
            "POWERTOOLS_LOG_LEVEL": os.environ.get("POWERTOOLS_LOG_LEVEL", "CRITICAL"),
        }
        environment.pop("AWS_DATA_PATH", None)  # the slim models belong to the built layer
        # Pauses between tries (of Slack, of a picture) take no time of the machine, as they take none of the account's.
        with _environment(environment), patch.object(time, "sleep", lambda seconds: None), self._warm_process(function):
            handler = self._handler(function)
            self.prepare(function)
            context = Context(function.name, function.memory, function.arn, request_id, function.timeout)
            return handler(event, context)

    def _handler(self, function: Function) -> Callable[[Any, Any], Any]:
        if function.door not in self._warm:
            module, _, name = function.handler.rpartition(".")
            self._warm[function.door] = getattr(importlib.import_module(f"functions.{function.door}.{module}"), name)
        return self._warm[function.door]

    @contextmanager
    def _warm_process(self, function: Function) -> Iterator[None]:
        """What this function built before, as in its own process on AWS; another environment starts with nothing."""
        from rightsizer import bootstrap

        if function.name not in self._built or self._built[function.name][0] != function.environment:
            self._built[function.name] = function.environment, {}
        others = bootstrap.exchange_built(self._built[function.name][1])
        bootstrap.set_clock(self.now)
        try:
            yield
        finally:
            bootstrap.exchange_built(others)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set these variables alone: to copy all of a process's and put them back takes longer than many invocations do."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update({name: value for name, value in variables.items() if before[name] != value})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            elif value != variables[name]:
                os.environ[name] = value


def _forget() -> None:
    """Drop the doors and what bootstrap built for an earlier account."""
    for name in [name for name in sys.modules if name.startswith("functions.") and name.endswith(".app")]:
        del sys.modules[name]
    bootstrap = sys.modules.get("rightsizer.bootstrap")
    reset = getattr(bootstrap, "reset", None)
    if reset:
        reset()
