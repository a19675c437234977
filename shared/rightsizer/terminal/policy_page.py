"""A policy as rows: each key's value, and where it was said. Tables and JSON show the same rows."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from rightsizer.bootstrap.policy import StackPolicy
from rightsizer.domain.environment import Environment
from rightsizer.domain.office_hours import DAYS
from rightsizer.domain.policy import ChangeWindow
from rightsizer.domain.policy_document import PolicyDocument, Subject, find_value
from rightsizer.domain.policy_key import APPROVERS, CHANNEL, KEYS, OBJECTIVE, Fallback
from rightsizer.policy_reader import AS_TODAY

OF_THE_STACK = {APPROVERS: "Approvers", CHANNEL: "SlackChannel"}
"""Keys that a parameter of the stack says where the document does not; all others may stand in `Limits`."""

DEFAULT_SOURCE = "default"
"""Source of a row that nobody said."""


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One key as it holds for a subject."""

    key: str
    value: str
    """For people; what falls back says so in `problem`."""
    source: str
    """Place in the policy document, parameter of the stack, or `DEFAULT_SOURCE`."""
    problem: str = ""


def policy_rows(stack_policy: StackPolicy, subject: Subject) -> Iterator[PolicyRow]:
    """Each key with the value that holds for the subject, in the order of docs/policy.md."""
    limits = _limits(stack_policy.parameters.get("Limits", ""))
    for key in KEYS:
        effective = find_value(stack_policy.document, key, subject)
        if effective is not None:
            held = KEYS[key].safest if KEYS[key].fallback is Fallback.SAFE else KEYS[key].fallback.value
            value = held if effective.problem else value_text(key, effective.value)
            yield PolicyRow(key, value, f"policy document, {effective.place}", effective.problem)
        elif stack_policy.parameters.get(OF_THE_STACK.get(key, "")):
            yield PolicyRow(key, stack_policy.parameters[OF_THE_STACK[key]], f"stack parameter {OF_THE_STACK[key]}")
        elif key in limits:
            wrong = next((each for each in stack_policy.settings.misread if f"Limits has {key}:" in each), "")
            value = Fallback.HOLD.value if wrong else _plain(limits[key])
            yield PolicyRow(key, value, "stack parameter Limits", wrong)
        else:
            yield PolicyRow(key, KEYS[key].default, DEFAULT_SOURCE)


def subjects(document: PolicyDocument) -> Iterator[tuple[str, Subject]]:
    """Everything that the document tells apart: all endpoints, each environment, each owner in each environment."""
    yield "every endpoint", Subject()
    for environment in Environment:
        if environment in document.environments:
            yield environment.value, Subject(environment)
    for name, owner in document.owners.items():
        yield f"owner {owner.section.place.partition('.')[2]}", Subject(owner=name)
        for environment in Environment:
            if environment in document.environments:
                yield f"owner {name} in {environment.value}", Subject(environment, name)


@dataclass(frozen=True, slots=True)
class PolicyDifference:
    """One value that another document would change."""

    subject: str
    key: str
    now: str
    then: str
    source: str
    """Where the other document says it."""


def differences(now: StackPolicy, then: StackPolicy) -> Iterator[PolicyDifference]:
    """Each value that would change, first for every endpoint; for others where it differs from that."""
    names = dict(subjects(now.document)) | dict(subjects(then.document))
    for_all = dict[str, tuple[str, str]]()
    for name, subject in names.items():
        rows = zip(policy_rows(now, subject), policy_rows(then, subject), strict=True)
        for before, after in rows:
            pair = (before.value, after.value)
            if subject == Subject():
                for_all[before.key] = pair
            elif pair == for_all[before.key]:
                continue
            if before.value != after.value:
                yield PolicyDifference(name, before.key, before.value, after.value, after.source)
    if now.document.assignments != then.document.assignments:
        old, new = (f"{len(stack_policy.document.assignments)} rules" for stack_policy in (now, then))
        yield PolicyDifference("environments of endpoints", "assign", old, new, "policy document, assign")
    people = {name: owner.people for name, owner in now.document.owners.items()}
    for name, owner in then.document.owners.items():
        if owner.people != people.get(name, frozenset()):
            old, new = (", ".join(sorted(each)) or "nobody" for each in (people.get(name, frozenset()), owner.people))
            yield PolicyDifference(
                f"owner {name}", "people", old, new, f"policy document, {owner.section.place}.people"
            )


def value_text(key: str, value: Any) -> str:
    """A value as the document would say it."""
    if key == OBJECTIVE:
        return AS_TODAY if value is None else f"p95 of {1000 * value:g} ms"
    return _plain(value)


def _plain(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case ChangeWindow():
            hours = "always" if value == ChangeWindow() else f"{value.start:%H:%M}-{value.end:%H:%M} {value.zone}"
            days = ",".join(DAYS[day] for day in sorted(value.days)) or "daily"
            return hours if hours == "always" else f"{days} {hours}"
        case Decimal():
            return f"{value.normalize():f}"
        case date():
            return value.isoformat()
        case list() | tuple():
            return ", ".join(map(_plain, value)) or "none"
        case frozenset():
            return ", ".join(sorted(map(_plain, value))) or "none"
        case _:
            return str(value)


def _limits(text: str) -> Mapping[str, Any]:
    """Keys that the stack's parameter Limits says; none where it cannot be understood."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
