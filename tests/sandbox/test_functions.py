"""Functions run in this process as they run on AWS: each stays warm, and none finds what another one built."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rightsizer import bootstrap
from sandbox.functions import Function, InProcess

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)


@dataclass
class Seen:
    """What the doors built, in the order of their invocations."""

    settings: list[Any] = field(default_factory=list)
    clocks: list[datetime] = field(default_factory=list)

    def handler(self, event: Any, context: Any) -> None:
        self.settings.append(bootstrap.settings())
        self.clocks.append(bootstrap.now())


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found = Seen()
    monkeypatch.setattr(InProcess, "_handler", lambda invoker, function: found.handler)
    return found


def function(name: str, table: str) -> Function:
    return Function(name, name, f"arn:{name}", "app.lambda_handler", {"RIGHTSIZER_TABLE": table}, 0, 60, 512)


def test_each_function_builds_once_and_for_itself(seen: Seen) -> None:
    invoker, apply, sweep = InProcess(lambda: NOW, "eu-west-1"), function("apply", "one"), function("sweep", "two")
    for each in (apply, sweep, apply):
        invoker(each, {}, "r-1")
    first, other, again = seen.settings
    assert (first.table, other.table) == ("one", "two")
    assert again is first
    assert seen.clocks == [NOW] * 3


def test_a_function_of_another_environment_and_one_that_starts_cold_build_anew(seen: Seen) -> None:
    invoker, apply = InProcess(lambda: NOW, "eu-west-1"), function("apply", "one")
    invoker(apply, {}, "r-1")
    invoker(replace(apply, environment={"RIGHTSIZER_TABLE": "new"}), {}, "r-2")
    invoker.cold()
    invoker(apply, {}, "r-3")
    assert [one.table for one in seen.settings] == ["one", "new", "one"]
    assert seen.settings[2] is not seen.settings[0]


def test_a_function_leaves_to_others_what_they_built(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    invoker = InProcess(lambda: NOW, "eu-west-1")
    monkeypatch.setenv("RIGHTSIZER_TABLE", "of a terminal")
    before = bootstrap.settings()
    invoker(function("apply", "one"), {}, "r-1")
    assert bootstrap.settings() is before
    bootstrap.reset()
