"""Runs a stack's functions as `sam build` made them: layer, cut models, bytecode, under the Lambda runtime client.

    with Sandbox() as box, serve(box) as url, Artefact(build, python, url, parameters) as functions:
        stack = Stack(box, parameters=parameters, invoker=functions)

Each function is a process that stays warm between invocations, and reaches the account over HTTP only.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sandbox.functions import Function
from sandbox.runtime import BuiltFunction, ExecutionEnvironment, built

ON_THE_ACCOUNTS_CLOCK = """
import json, os, runpy, urllib.request
from datetime import datetime
from rightsizer import bootstrap

def now():
    with urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL"] + "/sandbox/clock") as answer:
        return datetime.fromisoformat(json.load(answer)["now"])

bootstrap.set_clock(now)
runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)
"""
"""Starts the runtime client with the simulated account's time; no file of the artefact is changed for it."""

PATIENCE = 10
"""How much longer than on AWS a run may take: a test judges what is done, not how busy the machine is."""


def deployed(functions: Mapping[str, BuiltFunction], function: Function) -> BuiltFunction:
    """The built function of a stack's function, with the stack's name, memory, time-out and environment."""
    return replace(
        functions[function.name.rpartition("-")[2]],
        name=function.name,
        memory=function.memory,
        timeout=function.timeout,
        variables=function.environment,
    )


class FunctionError(Exception):
    """A built function ended with an error; the text has Lambda's type and message, and the end of the log."""


class Artefact:
    """Runs each function of a stack (`sandbox.functions.Invoker`) from a build, for the account that answers at `url`.

    `python` holds what the Lambda runtime brings and nothing else. `parameters` are those of the stack.
    """

    def __init__(self, build: Path, python: Path, url: str, parameters: Mapping[str, str]) -> None:
        self._python, self._url = python.absolute(), url
        self._functions = built(build.absolute(), {}, parameters)
        self._warm: dict[str, tuple[Function, ExecutionEnvironment]] = {}
        self._logs: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cold()

    def __call__(self, function: Function, event: Any, request_id: str) -> Any:
        """The handler's answer; FunctionError when it raised, timed out or its process ended."""
        environment = self._environment(function)
        answer = environment.invoke(event, timeout=PATIENCE * function.timeout)
        if answer.error is not None:
            kind, message = answer.error.get("errorType"), answer.error.get("errorMessage")
            raise FunctionError(f"{function.door}: {kind}: {message}\n{answer.log[-2000:]}")
        return answer.payload

    def cold(self) -> None:
        """End every process; the next invocation of each function starts a new one."""
        for _, environment in self._warm.values():
            self._logs.append(environment.log())
            environment.close()
        self._warm.clear()

    def log(self) -> str:
        """Everything that the functions printed so far."""
        return "".join([*self._logs, *(environment.log() for _, environment in self._warm.values())])

    def _environment(self, function: Function) -> ExecutionEnvironment:
        held = self._warm.get(function.door)
        if held is not None and held[0] == function:
            return held[1]
        if held is not None:
            self._logs.append(held[1].log())
            held[1].close()
        region = function.arn.split(":")[3]
        environment = ExecutionEnvironment(
            deployed(self._functions, function),
            self._python,
            self._url,
            start=("-c", ON_THE_ACCOUNTS_CLOCK),
            AWS_REGION=region,
            AWS_DEFAULT_REGION=region,
        )
        self._warm[function.door] = (function, environment)
        return environment
