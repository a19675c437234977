"""Counts what a reader visits who follows one endpoint, or one change, through the library.

The walk begins at one function and reads each function of the library that it names, in the order of the text, depth
first, each once. It follows imported names, modules, `self`, and fields and parameters that have a class as their
type. A method without a body (a port) is not read. Nouns (domain, errors, telemetry, wire) are not counted.

A climb is a step from a function to the next one in a higher layer of the import contract in pyproject.toml. It is a
return where a function of that layer, or of a higher one, goes on with its next call. It is from below where a lower
layer calls: there the reader has to hold both in mind.
"""

import argparse
import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
STARTS = {
    "endpoint": "rightsizer.flows.evaluate:_recommend_or_reason",
    "change": "rightsizer.flows.advance_change:ChangeAdvancer.advance_change",
}
NOUNS = frozenset({"domain", "errors", "telemetry", "wire"})

type Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """One module by its syntax tree."""

    name: str
    functions: dict[str, Function] = field(default_factory=dict)
    """By name; a method is `Class.method`."""
    fields: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of each class, the type that each field is annotated with."""
    imports: dict[str, str] = field(default_factory=dict)
    """Dotted origin of each imported name."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What was read."""

    steps: tuple[tuple[str, str], ...]
    """Module and function, in the order of reading."""
    climbs: tuple[tuple[str, str], ...]
    """The function that was read before each climb, and the one after it."""
    from_below: tuple[str, ...]
    """Functions after a climb that a function of a lower layer calls."""

    @property
    def files(self) -> tuple[str, ...]:
        """Modules in the order in which they are first visited."""
        return tuple(dict.fromkeys(module for module, _ in self.steps))


def layer_ranks(pyproject: str) -> Mapping[str, int]:
    """Rank of each package in the first contract on layers; a higher layer has a higher rank."""
    contracts = tomllib.loads(pyproject)["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    return {
        name: len(layers) - place
        for place, line in enumerate(layers)
        for name in line.replace("|", " ").replace(":", " ").split()
    }


@cache
def library(root: Path) -> Mapping[str, Module]:
    """Every module below a package folder, by its dotted name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = _module(name, ast.parse(path.read_text()))
    return found


def _module(name: str, tree: ast.Module) -> Module:
    module = Module(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            module.imports.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            module.functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            module.fields[node.name] = {
                each.target.id: ast.unparse(each.annotation)
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            }
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            module.functions.update({f"{node.name}.{each.name}": each for each in methods})
    return module


def walk(modules: Mapping[str, Module], ranks: Mapping[str, int], start: str) -> Walk:
    """Read from `start` ("module:function") on. Raises KeyError where there is no such function."""
    name, function = start.split(":")
    if function not in modules[name].functions:
        raise KeyError(f"{name} has no function {function}")
    callers: dict[tuple[str, str], str] = {}
    steps = tuple(_read(modules, name, function, callers, name))
    rank = [ranks[module.split(".")[1]] for module, _ in steps]
    places = [n for n in range(1, len(steps)) if rank[n] > rank[n - 1]]
    below = [n for n in places if ranks[callers[steps[n]].split(".")[1]] < rank[n]]
    climbs = tuple((":".join(steps[n - 1]), ":".join(steps[n])) for n in places)
    return Walk(steps, climbs, tuple(":".join(steps[n]) for n in below))


def _read(
    modules: Mapping[str, Module], module: str, function: str, callers: dict[tuple[str, str], str], caller: str
) -> Iterator[tuple[str, str]]:
    node = modules[module].functions[function]
    if (module, function) in callers or _has_no_body(node) or module.split(".")[1] in NOUNS:
        return
    callers[module, function] = caller
    yield module, function
    for found in _named(modules, modules[module], function, node):
        yield from _read(modules, *found, callers, module)


def _has_no_body(node: Function) -> bool:
    return all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in node.body)


def _named(modules: Mapping[str, Module], module: Module, function: str, node: Function) -> Iterator[tuple[str, str]]:
    """Functions that a function names, in the order of its text."""
    owner = function.split(".")[0] if "." in function else ""
    taken = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    types = {each.arg: ast.unparse(each.annotation) for each in taken if each.annotation}
    types |= {"self": owner} if owner else {}
    names = [each for line in node.body for each in ast.walk(line) if isinstance(each, ast.Name | ast.Attribute)]
    for each in sorted(names, key=lambda name: (name.end_lineno or 0, name.end_col_offset or 0)):
        parts = ast.unparse(each).split(".")
        if parts[0] in types:
            found = _method(modules, module, types[parts[0]], parts[1:])
        else:
            found = _function(modules, module, parts)
        if found is not None:
            yield found


def _method(modules: Mapping[str, Module], module: Module, kind: str, parts: list[str]) -> tuple[str, str] | None:
    """The method at the end of `value.field.method`, where the type of the value is `kind`."""
    home = _class(modules, module, kind)
    if home is None or not parts:
        return None
    where, name = home
    if len(parts) == 1:
        return (where.name, f"{name}.{parts[0]}") if f"{name}.{parts[0]}" in where.functions else None
    return _method(modules, where, where.fields[name].get(parts[0], ""), parts[1:])


def _class(modules: Mapping[str, Module], module: Module, kind: str) -> tuple[Module, str] | None:
    name = kind.strip("'\"").removesuffix(" | None")
    if name in module.fields:
        return module, name
    where, _, name = module.imports.get(name, "").rpartition(".")
    return _class(modules, modules[where], name) if where in modules else None


def _function(modules: Mapping[str, Module], module: Module, parts: list[str]) -> tuple[str, str] | None:
    """The function that a dotted name means in a module; names that are handed on are followed to their origin."""
    name = ".".join(parts)
    if name in module.functions:
        return module.name, name
    origin = module.imports.get(parts[0], "")
    where, _, last = origin.rpartition(".")
    if origin in modules:
        return _function(modules, modules[origin], parts[1:]) if len(parts) > 1 else None
    return _function(modules, modules[where], [last, *parts[1:]]) if where in modules else None


def report(name: str, found: Walk) -> Iterator[str]:
    """Lines that say what was read, each climb by itself."""
    below, functions = len(found.from_below), len(found.steps)
    yield f"{name}: {len(found.files)} files, {len(found.climbs)} climbs, {below} from below, {functions} functions"
    yield from (f"  climb from {below} to {above}" for below, above in found.climbs)


def main(arguments: Iterable[str] | None = None) -> None:
    """Print the walk of what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Example: python scripts/walk.py change --files",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=STARTS, help="what is followed: " + ", ".join(map(": ".join, STARTS.items())))
    parser.add_argument("--files", action="store_true", help="print the files too, in the order of reading")
    given = parser.parse_args(None if arguments is None else list(arguments))
    ranks = layer_ranks((ROOT / "pyproject.toml").read_text())
    found = walk(library(ROOT / "shared" / "rightsizer"), ranks, STARTS[given.what])
    print("\n".join((*report(given.what, found), *(found.files if given.files else ()))))


if __name__ == "__main__":
    main()
