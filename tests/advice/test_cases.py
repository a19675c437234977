"""The 60 numbered cases of hardware selection: each is answered with the expected class and reason."""

import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml

CASES = [
    case
    for path in sorted((Path(__file__).parent / "cases").glob("*.yaml"))
    for case in yaml.safe_load(path.read_text())
]


def name_of(case: dict[str, Any]) -> str:
    return f"{case['number']}{case.get('part', '')}"


def test_every_number_from_1_to_60_is_a_case() -> None:
    assert {case["number"] for case in CASES} == set(range(1, 61))


@pytest.mark.xfail(reason="the rules are written after the cases", raises=ModuleNotFoundError, strict=True)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_case_is_answered_as_expected(case: dict[str, Any]) -> None:
    importlib.import_module("rightsizer.advice.advise")
