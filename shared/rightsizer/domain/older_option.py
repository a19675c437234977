"""Options as earlier releases stored them: what is a field now was one of the facts for people then."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rightsizer.domain.endpoint import POLICY_TITLE, PolicyChange
from rightsizer.domain.option import Option

HOURS_FACT = "test hours"
"""The name of the fact that tells people how long a shadow test lasts."""


def with_older_facts(option: Option) -> Option:
    """The option with the fields that an earlier release kept among its facts; a field that is set stays.

    What earlier releases put where hours were to stand, and is no number, tells nothing.
    """
    hours, changes = option.test_hours, option.policy_changes
    return replace(
        option,
        test_hours=_number(option.facts.get(HOURS_FACT)) if hours is None else hours,
        policy_changes=changes or tuple(_policy_changes(option.facts)),
    )


def _policy_changes(facts: Mapping[str, str]) -> Iterator[PolicyChange]:
    for name, text in facts.items():
        if name.startswith(POLICY_TITLE):
            yield PolicyChange(name.removeprefix(POLICY_TITLE), text)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
