"""docs/security.md lists each write to what serves, with the limit that the template really sets."""

import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.template.stack import DOORS, EVERYTHING, ROOT, listed, stack
from tests.template.test_permissions import writes

PAGE = ROOT / "docs" / "security.md"
ROW = re.compile(r"^\| (\w+) \| `([\w:-]+)` \| (.+?) \| (.+?) \|$", re.MULTILINE)
KEY = re.compile(r"`((?:aws|iam|kms|ec2|sagemaker|application-autoscaling):[\w/:-]+)`")


@cache
def rows() -> dict[tuple[str, str], tuple[str, str]]:
    found = ROW.findall(PAGE.read_text())
    table = {(role, action): (limit, check) for role, action, limit, check in found}
    assert len(table) == len(found), "a write is listed twice"
    return table


def given() -> Iterator[tuple[str, str]]:
    deployed = stack(**EVERYTHING)
    for door in DOORS:
        for action in writes(deployed, door):
            yield door, action


def condition_keys(door: str, action: str) -> set[str]:
    statements = [s for s in stack(**EVERYTHING).statements(door) if action in listed(s["Action"])]
    return {key for s in statements for test in s.get("Condition", {}).values() for key in test}


def test_the_page_lists_exactly_the_writes_that_the_template_gives() -> None:
    assert set(rows()) == set(given())


@pytest.mark.parametrize(("door", "action"), sorted(given()))
def test_the_limit_on_the_page_is_the_condition_of_the_template(door: str, action: str) -> None:
    limit, check = rows()[door, action]
    assert set(KEY.findall(limit)) == condition_keys(door, action)
    assert check.strip()


def test_a_write_without_a_condition_is_limited_by_its_resource() -> None:
    for door in ("apply", "interruption"):
        for statement in stack(MayChange="tagged").statements(door):
            for action in set(listed(statement["Action"])) & writes(stack(), door):
                narrow = ("alarm:TargetTracking-endpoint/", ":111122223333:scalable-target/")
                assert statement.get("Condition") or any(n in statement["Resource"] for n in narrow), action
