"""The template translated by SAM's own translator in process, and resolved as CloudFormation would.

What only exists after a deployment stays recognisable: a reference to a resource is its logical id, an attribute is
``LogicalId.Attribute``.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from samtranslator.translator.transform import transform

from sandbox.template import parsed

ROOT = Path(__file__).parents[1]
PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": "111122223333",
    "AWS::StackName": "rightsizer",
    "AWS::URLSuffix": "amazonaws.com",
}
_NOTHING = object()
_CALCULATED: dict[str, Callable[[Any], Any]] = {
    "Fn::Equals": lambda both: both[0] == both[1],
    "Fn::Not": lambda one: not one[0],
    "Fn::And": all,
    "Fn::Or": any,
    "Fn::Join": lambda given: given[0].join(given[1]),
    "Fn::Split": lambda given: given[1].split(given[0]),
    "Fn::Select": lambda given: given[1][int(given[0])],
}


def source() -> dict[str, Any]:
    """The template as it is written, parsed once: nobody may change it."""
    found: dict[str, Any] = parsed((ROOT / "template.yaml").read_text())
    return found


@cache
def _translated() -> str:
    with patch.dict("os.environ", {"AWS_DEFAULT_REGION": "eu-west-1"}):
        written = deepcopy(source())
        for resource in written["Resources"].values():
            for key in ("CodeUri", "ContentUri"):
                if key in resource.get("Properties", {}):
                    resource["Properties"][key] = "s3://bucket/key"
        return json.dumps(transform(written, {}, _ManagedPolicies()))


class _ManagedPolicies:
    """No managed policy is looked up by name; the translator only wants the object."""

    def load(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True)
class Stack:
    """Resources after translation, conditions and references resolved."""

    resources: Mapping[str, Mapping[str, Any]]
    outputs: Mapping[str, Any]

    def of(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of the resources of a type, by logical id."""
        return {name: dict(r.get("Properties", {})) for name, r in self.resources.items() if r["Type"] == kind}

    def function(self, door: str) -> dict[str, Any]:
        """Properties of a door's function."""
        return self.of("AWS::Lambda::Function")[door.capitalize()]

    def statements(self, door: str) -> Iterator[dict[str, Any]]:
        """Every statement of the door's inline policies."""
        role = self.of("AWS::IAM::Role")[f"{door.capitalize()}Role"]
        for policy in role.get("Policies", []):
            yield from policy["PolicyDocument"]["Statement"]

    def actions(self, door: str) -> set[str]:
        """Every action that the door's role allows."""
        allows = (statement for statement in self.statements(door) if statement["Effect"] == "Allow")
        return {action for statement in allows for action in listed(statement["Action"])}


def listed(value: Any) -> list[Any]:
    """IAM writes one thing as itself and several as a list."""
    return value if isinstance(value, list) else [value]


def stack(**parameters: str) -> Stack:
    """The stack that these parameters give; the others have their defaults."""
    translated = json.loads(_translated())
    values = {name: str(p["Default"]) for name, p in translated["Parameters"].items()} | parameters
    resolver = Resolver(values, translated["Conditions"], set(translated["Resources"]))
    kept = {name: r for name, r in translated["Resources"].items() if resolver.holds(r.get("Condition"))}
    outputs = {name: o for name, o in translated["Outputs"].items() if resolver.holds(o.get("Condition"))}
    return Stack({name: resolver.resolve(r) for name, r in kept.items()}, resolver.resolve(outputs))


class Resolver:
    """Evaluates the intrinsic functions that the template uses, for given parameters; raises on any other."""

    def __init__(self, values: Mapping[str, str], conditions: Mapping[str, Any], resources: set[str]) -> None:
        self.values, self.conditions, self.resources = {**PSEUDO, **values}, conditions, resources

    def holds(self, condition: str | None) -> bool:
        """Whether a condition of the template is true; no condition is."""
        return condition is None or bool(self.resolve(self.conditions[condition]))

    def resolve(self, node: Any) -> Any:
        """A piece of the template with every intrinsic function replaced by its value."""
        if isinstance(node, list):
            return [found for found in map(self.resolve, node) if found is not _NOTHING]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            name, value = next(iter(node.items()))
            if name in ("Ref", "Condition") or name.startswith("Fn::"):
                return self._intrinsic(name, value)
        found = {key: self.resolve(value) for key, value in node.items()}
        return {key: value for key, value in found.items() if value is not _NOTHING}

    def _intrinsic(self, name: str, value: Any) -> Any:
        match name:
            case "Ref":
                return self._reference(value)
            case "Condition" if isinstance(value, str):
                return self.holds(value)
            case "Condition":  # an IAM statement's, alone in its mapping
                return {name: self.resolve(value)}
            case "Fn::If":
                return self.resolve(value[1] if self.holds(value[0]) else value[2])
            case "Fn::GetAtt":
                return ".".join(listed(value))
            case "Fn::Sub":
                return re.sub(r"\$\{([^!}]+)\}", lambda found: str(self._reference(found[1])), value)
        if name not in _CALCULATED:
            raise NotImplementedError(f"the template uses {name}; teach it to sandbox/stack.py")
        return _CALCULATED[name](self.resolve(value))

    def _reference(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NOTHING
        if name in self.values:
            return self.values[name]
        if name.split(".")[0] in self.resources:
            return name
        raise LookupError(f"the template refers to {name!r}, which is no parameter and no resource")
