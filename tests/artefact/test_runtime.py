"""The runtime that the built functions are tested with behaves as Lambda's."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.runtime import BuiltFunction, ExecutionEnvironment

APP = """
import os, sys, time
started = []
def lambda_handler(event, context):
    started.append(1)
    if event.get("say") == "fail":
        raise ValueError("the input was bad")
    if event.get("say") == "sleep":
        time.sleep(30)
    if event.get("say") == "exit":
        os._exit(3)
    print("handled", event)
    return {"calls": len(started), "name": context.function_name, "memory": context.memory_limit_in_mb,
            "remaining": context.get_remaining_time_in_millis() > 0, "table": os.environ["RIGHTSIZER_TABLE"],
            "home": "HOME" in os.environ, "models": os.environ["AWS_DATA_PATH"], "text": event.get("text")}
"""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[ExecutionEnvironment]:
    with ExecutionEnvironment(function(tmp_path, APP), Path(sys.executable), "http://127.0.0.1:1") as found:
        yield found


def function(folder: Path, code: str) -> BuiltFunction:
    (folder / "app.py").write_text(code)
    variables = {"RIGHTSIZER_TABLE": "ledger", "AWS_DATA_PATH": "/opt/models"}
    return BuiltFunction("Apply", folder, "app.lambda_handler", (folder / "layer",), 512, 10, variables)


def test_a_handler_gets_its_event_its_context_and_only_its_own_environment(environment: ExecutionEnvironment) -> None:
    answer = environment.invoke({"text": "ü" * 70_000})
    assert answer.ok
    assert answer.payload == {
        "calls": 1,
        "name": "Apply",
        "memory": "512",
        "remaining": True,
        "table": "ledger",
        "home": False,
        "models": str(environment.function.layers[0] / "models"),
        "text": "ü" * 70_000,
    }
    assert "handled" in answer.log


def test_the_second_invocation_is_warm(environment: ExecutionEnvironment) -> None:
    assert [environment.invoke({}).payload["calls"] for _ in range(3)] == [1, 2, 3]


def test_an_error_comes_back_with_its_type_and_leaves_the_environment_warm(environment: ExecutionEnvironment) -> None:
    answer = environment.invoke({"say": "fail"})
    assert answer.error is not None
    assert (answer.error["errorType"], answer.error["errorMessage"]) == ("ValueError", "the input was bad")
    assert environment.invoke({}).payload["calls"] == 2


@pytest.mark.parametrize(
    ("say", "error", "message"),
    [("sleep", "Sandbox.Timedout", "timed out after 1.00 seconds"), ("exit", "Runtime.ExitError", "exit status 3")],
)
def test_after_a_timeout_or_an_exit_the_next_invocation_is_cold(
    environment: ExecutionEnvironment, say: str, error: str, message: str
) -> None:
    environment.invoke({})
    answer = environment.invoke({"say": say}, timeout=1 if say == "sleep" else None)
    assert answer.error is not None
    assert answer.error["errorType"] == error
    assert message in answer.error["errorMessage"]
    assert environment.invoke({}).payload["calls"] == 1


def test_a_module_that_cannot_be_imported_is_an_error_of_the_start(tmp_path: Path) -> None:
    broken = function(tmp_path, "import a_package_that_nobody_put_into_the_layer")
    with ExecutionEnvironment(broken, Path(sys.executable), "http://127.0.0.1:1") as environment:
        answer = environment.invoke({})
    assert answer.error is not None
    assert "a_package_that_nobody_put_into_the_layer" in answer.error["errorMessage"]


def test_running_leaves_no_bytecode_in_the_artefact(environment: ExecutionEnvironment) -> None:
    environment.invoke({})
    assert list(environment.function.folder.rglob("*.pyc")) == []
