"""Reads the SAM template as CloudFormation would: parameters, conditions, Ref, Sub, GetAtt, If, Join, Split, Select.

What the sandbox does not know of it raises, so that the wiring of a test is the wiring that is deployed.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sandbox.refusals import NotSimulated

type Node = Any
QUICK: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader where PyYAML has it: the same answer in a tenth of the time."""


class _Loader(QUICK):  # type: ignore[misc, valid-type]
    """YAML with CloudFormation's short tags."""


def _tagged(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> Node:
    if isinstance(node, yaml.ScalarNode):
        value: Node = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)  # type: ignore[arg-type]
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {tag if tag in {"Ref", "Condition"} else f"Fn::{tag}": value}


_Loader.add_multi_constructor("!", _tagged)


@cache
def parsed(text: str) -> Any:
    """A template is only read, so that stacks share it: parsing it takes a tenth of a second."""
    return yaml.load(text, Loader=_Loader)


REMOVED = object()
"""AWS::NoValue."""


class Template:
    """A template with its parameters filled in."""

    def __init__(self, source: Path | str, parameters: Mapping[str, str], pseudo: Mapping[str, str]) -> None:
        text = source.read_text() if isinstance(source, Path) else source
        self._raw: dict[str, Node] = parsed(text)
        defaults = {name: str(row.get("Default", "")) for name, row in self._raw.get("Parameters", {}).items()}
        unknown = set(parameters) - set(defaults)
        if unknown:
            raise ValueError(f"the template has no parameters {sorted(unknown)}")
        self._values: dict[str, str] = defaults | dict(parameters) | dict(pseudo)
        self._attributes: dict[str, dict[str, str]] = {}

    @property
    def parameters(self) -> dict[str, str]:
        """The values of the parameters, defaults included."""
        return {name: self._values[name] for name in self._raw.get("Parameters", {})}

    def change(self, parameters: Mapping[str, str]) -> None:
        """Give parameters other values, as an update of the stack does."""
        unknown = set(parameters) - set(self._raw.get("Parameters", {}))
        if unknown:
            raise ValueError(f"the template has no parameters {sorted(unknown)}")
        self._values |= parameters

    def names(self, resource: str, ref: str, **attributes: str) -> None:
        """Give the physical names of a resource that was made."""
        self._values[resource] = ref
        self._attributes[resource] = attributes

    def resources(self, *types: str) -> dict[str, dict[str, Node]]:
        """Resources of these types whose condition holds, with the raw properties."""
        return {
            name: row.get("Properties", {})
            for name, row in self._raw["Resources"].items()
            if row["Type"] in types and self.holds(row.get("Condition"))
        }

    def globals(self) -> dict[str, Node]:
        """Globals.Function, resolved."""
        return dict(self.resolve(self._raw.get("Globals", {}).get("Function", {})))

    def outputs(self) -> dict[str, str]:
        """Outputs whose condition holds, resolved."""
        rows = self._raw.get("Outputs", {}).items()
        return {name: str(self.resolve(row["Value"])) for name, row in rows if self.holds(row.get("Condition"))}

    def holds(self, condition: str | None) -> bool:
        """Whether a named condition is true."""
        return condition is None or bool(self._condition(self._raw["Conditions"][condition]))

    def _condition(self, node: Node) -> bool:
        ((kind, value),) = node.items()
        match kind:
            case "Condition":
                return self.holds(value)
            case "Fn::Equals":
                left, right = (self.resolve(part) for part in value)
                return bool(left == right)
            case "Fn::Not":
                return not self._condition(value[0])
            case "Fn::And":
                return all(self._condition(part) for part in value)
            case "Fn::Or":
                return any(self._condition(part) for part in value)
        raise NotSimulated(f"the template's condition function {kind}")

    def resolve(self, node: Node) -> Node:
        """The node with every intrinsic function worked out."""
        if isinstance(node, list):
            return [value for item in node if (value := self.resolve(item)) is not REMOVED]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            ((kind, value),) = node.items()
            if kind == "Ref" or kind.startswith("Fn::"):
                return self._function(kind, value)
        made = {key: self.resolve(value) for key, value in node.items()}
        return {key: value for key, value in made.items() if value is not REMOVED}

    def _function(self, kind: str, value: Node) -> Node:
        match kind:
            case "Ref":
                return REMOVED if value == "AWS::NoValue" else self._ref(value)
            case "Fn::GetAtt":
                return self._attribute(value[0], value[1])
            case "Fn::If":
                return self.resolve(value[1] if self.holds(value[0]) else value[2])
            case "Fn::Sub":
                text = value if isinstance(value, str) else value[0]
                return re.sub(r"\$\{([^}]+)\}", lambda match: self._substitute(match[1]), text)
            case "Fn::Join":
                return str(value[0]).join(str(self.resolve(part)) for part in value[1])
            case "Fn::Split":
                return str(self.resolve(value[1])).split(str(value[0]))
            case "Fn::Select":
                return self.resolve(value[1])[int(value[0])]
        raise NotSimulated(f"the template's function {kind}")

    def _substitute(self, name: str) -> str:
        if "." in name:
            return self._attribute(*name.split(".", 1))
        return self._ref(name)

    def _ref(self, name: str) -> str:
        if name not in self._values:
            raise NotSimulated(f"!Ref {name}: the sandbox has not made that resource")
        return self._values[name]

    def _attribute(self, resource: str, attribute: str) -> str:
        known = self._attributes.get(resource, {})
        if attribute not in known:
            raise NotSimulated(f"!GetAtt {resource}.{attribute}: the sandbox has not made that resource")
        return known[attribute]


def matches(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Whether an EventBridge pattern (or the filter of an event source mapping) matches; moto's matcher."""
    from moto.events.models import EventPattern

    return not _differs(pattern, event) and bool(EventPattern(None, dict(pattern)).matches_event(dict(event)))


def _differs(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Whether a text of the event is none of those that the pattern lists: nearly all events differ by one."""
    for key, wanted in pattern.items():
        found = event.get(key)
        if isinstance(wanted, Mapping):
            if isinstance(found, Mapping) and _differs(wanted, found):
                return True
        elif type(found) is str and all(type(one) is str for one in wanted) and found not in wanted:
            return True
    return False
