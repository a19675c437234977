"""The policy document at a terminal: read from a file, shown as rows, and published as a JSON schema."""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, create_model

from rightsizer.bootstrap.policy import StackPolicy
from rightsizer.domain.approvers import SHORT, SLACK, WHOLE
from rightsizer.domain.environment import Environment
from rightsizer.domain.office_hours import DAYS
from rightsizer.domain.policy import ADDABLE, ChangeWindow
from rightsizer.domain.policy_document import PolicyDocument, Subject, find_value
from rightsizer.domain.policy_key import APPROVERS, CHANNEL, KEYS, OBJECTIVE, PEOPLE, Fallback, KeyKind, PolicyKey
from rightsizer.errors import InputError
from rightsizer.policy_reader import AS_TODAY, CHANNEL_ID, MOST_ALARMS

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


def read_file(name: str) -> str:
    """The document of a file as compact JSON. InputError names the file and the line that is wrong."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"reading the policy document {name}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"reading the policy document {name}: it is no text in UTF-8 ({error.reason}); save it so"
        ) from None
    if name.endswith(".json"):
        return text  # as it is: a key that is given twice shall be seen
    try:
        found = yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader)
        return json.dumps({} if found is None else found, separators=(",", ":"), ensure_ascii=False)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"reading the policy document {name}: {_where(error)}") from None


class _Loader(yaml.SafeLoader):
    """YAML without aliases, which can make a small file huge, and without keys that are given twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read; write the value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            first, second, *_ = (key.start_mark.line + 1 for key, _ in node.value if key.value == twice)
            raise yaml.YAMLError(f"line {second}: {twice} is given twice, first in line {first}; keep one of them")
        return dict(super().construct_mapping(node, deep))

    def construct_yaml_float(self, node: Any) -> Any:
        """A number; what is none of JSON stays a text, which the reader of its key then names with its place."""
        found = super().construct_yaml_float(node)
        return found if math.isfinite(found) else node.value


_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: node.value)  # a day stays a text, as in JSON


def _where(error: Exception) -> str:
    """What is wrong with the YAML, and its line and column."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return " ".join(str(error).split())[:300]
    if "'\\t'" in str(error.problem):
        return f"line {mark.line + 1}, column {mark.column + 1}: YAML is indented by spaces, and this is a tab"
    return f"line {mark.line + 1}, column {mark.column + 1}: {' '.join(str(error.problem).split())[:240]}"


TITLE = "Policy document of rightsizer"
WINDOW = r"^(always|\S+ \d{2}:\d{2}-\d{2}:\d{2}( \S+)?)$"
PERSON = "|".join(form.pattern.replace("(?P<partition>", "(").replace("(?P<account>", "(") for form in (SLACK, SHORT))
ARN = WHOLE.pattern
for _name in ("partition", "account", "what", "other", "federated"):
    ARN = ARN.replace(f"(?P<{_name}>", "(")


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _type_of(policy_key: PolicyKey) -> Any:
    """The type of a key's value, with its bounds."""
    if policy_key.kind is KeyKind.WHOLE:
        return Annotated[StrictInt, Field(ge=policy_key.least, le=policy_key.most)]
    number = Annotated[StrictFloat, Field(ge=policy_key.least, le=policy_key.most)]
    if policy_key.kind is KeyKind.NUMBER:
        return number
    return Literal[AS_TODAY] | number if policy_key.kind is KeyKind.OBJECTIVE else TYPES[policy_key.kind]


TYPES: Mapping[KeyKind, Any] = MappingProxyType(
    {
        KeyKind.FLAG: StrictBool,
        KeyKind.WINDOW: Annotated[str, Field(pattern=WINDOW)],
        KeyKind.ALARMS: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=MOST_ALARMS)],
        KeyKind.DATES: list[date],
        KeyKind.ZONE: Annotated[str, Field(min_length=1)],
        KeyKind.DIMENSIONS: list[Literal[*sorted(kind.value for kind in ADDABLE)]],  # type: ignore[misc]
        KeyKind.PEOPLE: Annotated[list[Annotated[str, Field(pattern=f"^({PERSON}|{ARN})$")]], Field(min_length=1)],
        KeyKind.CHANNEL: Annotated[str, Field(pattern=f"^{CHANNEL_ID.pattern}$")],
    }
)
"""Types of the values that have no bounds."""


def _model(name: str, base: type[BaseModel], fields: Mapping[str, Any]) -> Any:
    return create_model(name, __base__=base, **dict[str, Any](fields))


def _field(policy_key: PolicyKey) -> Any:
    about = f"{policy_key.about[:1].upper()}{policy_key.about[1:]}. Default: {policy_key.default}."
    return (_type_of(policy_key), Field(default=None, description=about))


def _differs(environment: Environment) -> str:
    return f"What differs for endpoints in {environment.value}."


def policy_model() -> type[BaseModel]:
    """The document as a pydantic model: what the schema is made from."""
    section = _model(
        "Section", _Closed, {k: _field(policy_key) for k, policy_key in KEYS.items() if not policy_key.is_of_account}
    )
    defaults = _model("Defaults", _Closed, {key: _field(policy_key) for key, policy_key in KEYS.items()})
    about = "The persons who own, for the rule of four eyes."
    people = (_type_of(KEYS[APPROVERS]), Field(default=None, description=about))
    owner = _model("Owner", section, {PEOPLE: people})
    differs = {each.value: (section, Field(default=None, description=_differs(each))) for each in Environment}
    environments = _model("Environments", _Closed, differs)
    rule = create_model(
        "Rule",
        __base__=_Closed,
        environment=(Environment, Field(description="The environment that it assigns.")),
        endpoints=(Annotated[str, Field(min_length=1)], Field(default=None, description="A name; * for any signs.")),
        tag=(
            Annotated[str, Field(pattern=r"^[^=]*[^=\s][^=]*=.*\S.*$")],
            Field(default=None, description="KEY=VALUE; * for any signs of the value."),
        ),
    )
    return create_model(
        "Policy",
        __base__=_Closed,
        schema_=(str, Field(default=None, alias="$schema", description="Address of this schema, for editors.")),
        version=(Literal[1], Field(default=1, description="Version of the document.")),
        defaults=(defaults, Field(default=None, description="What holds for every endpoint.")),
        environments=(environments, Field(default=None, description="What differs in an environment.")),
        assign=(
            list[rule],  # type: ignore[valid-type]
            Field(default=None, description="Environments of endpoints; the first rule that fits counts, then tags."),
        ),
        owners=(
            dict[str, owner],  # type: ignore[valid-type]
            Field(default=None, description="What differs for an owner, by the value of the endpoint's tag owner."),
        ),
    )


def policy_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of the document."""
    found: dict[str, Any] = _without_nulls(policy_model().model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, "title": TITLE}


def _without_nulls(node: Any) -> Any:
    """The schema without `default: null`, which no value may be, and without the titles that pydantic makes up."""
    if isinstance(node, list):
        return [_without_nulls(each) for each in node]
    if not isinstance(node, dict):
        return node
    is_schema = "type" in node or "$ref" in node or "anyOf" in node
    spare = {"title"} if is_schema else set()
    spare |= {"default"} if is_schema and node.get("default", "") is None else set()
    return {key: _without_nulls(value) for key, value in node.items() if key not in spare}
