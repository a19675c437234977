"""Terraform of the templates beside the provider's own pages: each resource, block and argument is one of theirs."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from rightsizer.advice.terraform import terraform
from tests.advice.test_templates import KINDS, LLM, made_of

MAP = re.compile(r"^\s*(\S+)\s*= \{$")
BLOCK = re.compile(r"^\s*(\w+) \{$")
ARGUMENT = re.compile(r"^\s*(\w+)\s*= .+$")
RESOURCE = re.compile(r'^resource "(\w+)" "\w+" \{$')


@cache
def allowed() -> dict[str, Any]:
    """Arguments by resource, as the provider's pages name them."""
    found: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "terraform_arguments.yaml").read_text())
    return found


def resources(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each resource of a configuration with its arguments and blocks; a repeated block counts by its last."""
    lines = iter(text.splitlines())
    for line in lines:
        if found := RESOURCE.match(line):
            yield found[1], _body(lines)


def _body(lines: Iterator[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for line in lines:
        if line.strip() == "}":
            return made
        if found := MAP.match(line):
            _body(lines)
            made[found[1]] = "map"
        elif found := BLOCK.match(line):
            made[found[1]] = _body(lines)
        elif found := ARGUMENT.match(line):
            made[found[1]] = "value"
    raise AssertionError("a block does not end")


def faults(given: dict[str, Any], page: dict[str, Any], where: str) -> Iterator[str]:
    """Arguments that the page has not, kinds that differ, and required ones that are not given."""
    known = {name.rstrip("!"): kind for name, kind in page.items()}
    yield from (f"{where}.{name[:-1]} is required" for name in page if name.endswith("!") and name[:-1] not in given)
    for name, kind in given.items():
        if name not in known:
            yield f"{where}.{name} is no argument"
        elif isinstance(kind, dict) and isinstance(known[name], dict):
            yield from faults(kind, known[name], f"{where}.{name}")
        elif kind != known[name]:
            yield f"{where}.{name} is of another kind"


def all_faults(text: str) -> list[str]:
    return [fault for name, given in resources(text) for fault in faults(given, allowed().get(name, {}), name)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_argument_of_terraform_is_on_the_providers_page_and_no_required_one_lacks(kind: str) -> None:
    text = terraform(made_of(KINDS[kind]))
    assert all_faults(text) == []
    assert len(list(resources(text))) == text.count("\nresource ") >= 2


def test_an_argument_that_is_none_or_lacks_is_found() -> None:
    text = terraform(made_of(LLM))
    assert all_faults(text.replace("termination_wait_in_seconds", "termination_wait")) == [
        "aws_sagemaker_endpoint.deployment_config.blue_green_update_policy.termination_wait is no argument"
    ]
    assert "aws_appautoscaling_target.min_capacity is required" in all_faults(text.replace("min_capacity", "least"))


def test_every_resource_of_the_pages_is_written_by_some_template() -> None:
    written = {name for kind in KINDS.values() for name, _ in resources(terraform(made_of(kind)))}
    assert written == set(allowed())
