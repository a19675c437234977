"""Workloads beside what vendors publish: class, memory and hosting agree, and no type that they name is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rightsizer.advice.advise import advise
from rightsizer.advice.models import size_in_name
from sandbox.template import QUICK
from tests.advice.test_cases import faults

CASES: list[dict[str, Any]] = [
    case
    for name in (
        "vendors.yaml",
        "vendors_second.yaml",
        "vendors_third.yaml",
        "vendors_fourth.yaml",
        "vendors_fifth.yaml",
        "vendors_sixth.yaml",
    )
    for case in yaml.load((Path(__file__).parent / name).read_text(), QUICK)
]


def disagreements(case: dict[str, Any]) -> list[str]:
    """What of the answer differs from the vendor's recommendation, each in words."""
    workload, accepted = case["workload"], case.get("accepts", [])
    answer = advise({**workload, "ask": [*workload.get("ask", []), *accepted]})
    return faults(answer, case["expect"]) + [
        f"{each.subject} is refused: {each.reason.text}" for each in answer.refused if each.subject in accepted
    ]


@pytest.mark.parametrize("case", [each for each in CASES if "open" not in each], ids=lambda case: str(case["title"]))
def test_a_published_recommendation_agrees(case: dict[str, Any]) -> None:
    assert disagreements(case) == []


@pytest.mark.parametrize("case", [each for each in CASES if "open" in each], ids=lambda case: str(case["title"]))
def test_an_open_disagreement_is_one_still(case: dict[str, Any]) -> None:
    assert disagreements(case) != []


def test_no_workload_is_in_the_lists_twice() -> None:
    titles = [each["title"] for each in CASES]
    workloads = [str(each["workload"]) for each in CASES]
    assert len(set(titles)) == len(titles)
    assert len(set(workloads)) == len(workloads)
    assert all(each["source"].startswith("https://") for each in CASES)


def test_a_model_of_unknown_size_is_never_applied() -> None:
    for task in ("real-time", "training"):
        answer = advise({"task": task, "model": {"kind": "llm", "name": "nobody/secret-model"}})
        assert {each.action.value for each in answer.options} == {"UNKNOWN"}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("tiiuae/falcon-40b-instruct", 40e9),
        ("EleutherAI/gpt-neo-2.7B", 2.7e9),
        ("some/Mixtral-4x7B", 28e9),
        ("a/small-350m", 350e6),
        ("Qwen/Qwen3-30B-A3B", 30e9),
        ("x/Scout-17B-16E", None),
        ("bert-v2", None),
        ("0b", None),
    ],
)
def test_the_size_in_a_name(name: str, size: float | None) -> None:
    assert size_in_name(name) == size
