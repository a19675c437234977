"""The 60 numbered cases of choosing hardware: each is answered with the expected class and reason."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rightsizer.advice.advise import advise
from rightsizer.advice.answer import Advice, AdvisedOption
from rightsizer.advice.market import known_types
from sandbox.template import QUICK

FILES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
CASES = [case for path in FILES for case in yaml.load(path.read_text(), QUICK)]


def name_of(case: dict[str, Any]) -> str:
    return f"{case['number']}{case.get('part', '')}"


def meets(option: AdvisedOption, wanted: Mapping[str, Any]) -> bool:
    """Whether the option has every part that is wanted."""
    family = option.instance_type.split(".")[1] if option.instance_type else ""
    found = known_types().find(option.instance_type)
    chip = found.accelerator if found else None
    total = option.accelerators * option.count
    facts = {
        "hardware": option.hardware.value if option.hardware else "",
        "hosting": option.hosting.value,
        "purchase": option.purchase.value,
        "action": option.action.value,
        "family": family,
        "type_in": option.instance_type,
    }
    checks: dict[str, Callable[[Any], bool]] = {
        "type": lambda value: option.instance_type == value,
        "count": lambda value: option.count == value,
        "gpus": lambda value: option.accelerators == value,
        "says": lambda value: str(value) in option.words,
        "several_accelerators": lambda value: (total > 1) is value,
        "accelerator_gib_at_least": lambda value: total * (chip.usable_gib if chip else 0) >= value,
        "accelerator_gib_at_most": lambda value: total * (chip.usable_gib if chip else 0) <= value,
    }
    return all(checks[key](value) if key in checks else facts[key] in value for key, value in wanted.items())


def faults(advice: Advice, expect: Mapping[str, Any]) -> list[str]:
    """What the answer lacks, each in words."""
    found = [
        f"no option meets {each}" for each in expect.get("any", ()) if not any(meets(o, each) for o in advice.options)
    ]
    if "first" in expect and not (advice.options and meets(advice.options[0], expect["first"])):
        found.append(f"the first option does not meet {expect['first']}")
    for each in expect.get("never", ()):
        found += [f"{option.instance_type} meets {each}" for option in advice.options if meets(option, each)]
    for each in expect.get("rejects", ()):
        texts = [refused.reason.text for refused in advice.refused if refused.subject == each["subject"]]
        if not any(str(each.get("says", "")) in text for text in texts):
            found.append(f"{each} is not refused so: {texts}")
    found += [f"{text!r} is not said" for text in expect.get("notes", ()) if text not in advice.words]
    found += [f"{text!r} is said" for text in expect.get("silent", ()) if text in advice.words]
    return found


def test_every_number_from_1_to_60_is_a_case() -> None:
    assert {case["number"] for case in CASES} == set(range(1, 61))


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_case_is_answered_as_expected(case: dict[str, Any]) -> None:
    assert faults(advise(case["workload"]), case["expect"]) == []


def test_a_wrong_answer_is_found() -> None:
    advice = advise({"task": "preprocessing", "data": {"size_gib": 1}})
    wrong = {
        "first": {"hardware": ["GPU-P"]},
        "rejects": [{"subject": "gpu"}],
        "notes": ["moon"],
        "never": [{"count": 1}],
    }
    assert len(faults(advice, wrong)) >= 4
