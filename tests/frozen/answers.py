"""What is recommended in each labelled case: the finding, the figures, the options and what was ruled out, in order."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.frozen.library import Recommendation, proposal_id, read_case, recommendation_of, wire
from tests.frozen.rows import differences, read, row_of

_ALL = sorted((Path(__file__).parents[1] / "cases").glob("*.yaml"))
CASES = [path for path in _ALL if "expected_from" not in read_case(path)]
"""The cases but those that wait for a rule: what is answered to them today is known to be wrong."""


def answers() -> Iterator[tuple[str, Any]]:
    """The rows of all cases."""
    for path in CASES:
        yield from rows_of(path.stem, recommendation_of(read_case(path)))


def rows_of(case: str, found: Recommendation) -> Iterator[tuple[str, Any]]:
    """A row for the recommendation, one for each option with the id of its proposal, one for all that is excluded."""
    plain = wire.plain(found)
    options, excluded = plain.pop("options"), plain.pop("excluded")
    yield case, row_of(plain)
    for number, (option, shown) in enumerate(zip(found.options, options, strict=True)):
        yield f"{case} option {number}", {"proposal_id": proposal_id(found, option), **row_of(shown)}
    yield (
        f"{case} excluded",
        [f"{one['instance_type']} {one['dimension'] or '-'} {one['reason']['code']}" for one in excluded],
    )


@cache
def _frozen() -> Mapping[str, Mapping[str, Any]]:
    """The frozen rows of each case; no name of a case has a space in it."""
    found: dict[str, dict[str, Any]] = {}
    for at, row in read("answers").items():
        found.setdefault(at.partition(" ")[0], {})[at] = row
    return found


def frozen_cases() -> frozenset[str]:
    """The cases of which an answer is frozen."""
    return frozenset(_frozen())


def differences_of(case: str, found: Recommendation) -> list[str]:
    """What differs from the frozen answer of a case, each on a line."""
    return differences(_frozen().get(case, {}), dict(rows_of(case, found)))
