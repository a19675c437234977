"""The published JSON schema of the policy document, made by pydantic from the table of its keys.

Functions read the document without pydantic (`rightsizer.policy_reader`), since the one that answers clicks has three
seconds. Tests hold both to the same documents. The schema cannot say everything: the reader also knows time zones, the
least length of a window, and keys that are given twice.
"""

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, create_model

from rightsizer.domain.approvers import SHORT, SLACK, WHOLE
from rightsizer.domain.environment import Environment
from rightsizer.domain.policy import ADDABLE
from rightsizer.domain.policy_key import APPROVERS, KEYS, PEOPLE, KeyKind, PolicyKey
from rightsizer.policy_reader import AS_TODAY, CHANNEL_ID, MOST_ALARMS

TITLE = "Policy document of rightsizer"
WINDOW = r"^\S+ \d{2}:\d{2}-\d{2}:\d{2}( \S+)?$"
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
