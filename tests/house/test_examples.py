"""The examples in docstrings of the library run, and the ports that others implement have one."""

import ast
import doctest
import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rightsizer.domain.price import KnownPrices, NoPrice
from rightsizer.domain.reason import Code, Reason
from rightsizer.ports import evaluation

SHARED = Path(__file__).parents[2] / "shared"
IMPLEMENTED = (evaluation.Notifier, evaluation.PriceSource)
"""Ports that a newcomer implements. docs/extending.md and docs/extending-dimensions.md have the whole examples."""
FURTHER: Mapping[str, Mapping[str, Any]] = {
    evaluation.__name__: {"Code": Code, "KnownPrices": KnownPrices, "NoPrice": NoPrice, "Reason": Reason},
}
"""Names that the examples of a module use and that the module imports for its types alone."""


def with_examples() -> list[str]:
    """Dotted names of the modules in which a prompt of doctest stands."""
    found = [path for path in sorted((SHARED / "rightsizer").rglob("*.py")) if ">>>" in path.read_text()]
    parts = [path.relative_to(SHARED).with_suffix("").parts for path in found]
    return [".".join(part[:-1] if part[-1] == "__init__" else part) for part in parts]


def prompts(name: str) -> int:
    """How many prompts stand in the docstrings of a module's source, also of those that doctest does not look at."""
    source = inspect.getsource(importlib.import_module(name))
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    lines = [line for node in nodes for line in (ast.get_docstring(node) or "").splitlines()]
    return sum(line.lstrip().startswith(">>> ") for line in lines)


@pytest.mark.parametrize("port", IMPLEMENTED)
def test_a_port_for_newcomers_has_an_example(port: type) -> None:
    assert "Example:" in (inspect.getdoc(port) or "")


def test_the_modules_with_examples_are_found() -> None:
    """A floor: without it a search that finds nothing passes."""
    assert {"rightsizer.advice.advise", "rightsizer.advice.describe", evaluation.__name__} <= set(with_examples())


@pytest.mark.parametrize("name", with_examples())
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(name)
    done = doctest.testmod(module, extraglobs=dict(FURTHER.get(name, {})))
    assert (done.failed, done.attempted) == (0, prompts(name))
    assert done.attempted > 0
