"""Cuts botocore's service models to what rightsizer calls; the layer's build runs it.

botocore looks in AWS_DATA_PATH first and falls back to its own data for every other service (botocore.loaders). A cut
model loads faster, and it brings the pinned version's API members to the runtime's older boto3. The operations are
found in the source: each attribute or string that is the Python name of an operation of a service that is named there.
A name too many costs bytes; a name that is built at run time would be missed, so name operations in full.
"""

import argparse
import ast
import gzip
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

KEPT = ("endpoint-rule-set-1", "paginators-1", "waiters-2")
"""Files beside the model that a client reads; examples and endpoint tests are left out."""

ONLY = {"SearchRecord": ("Endpoint", "Model"), "ModelDashboardModel": ("Model",)}
"""Members that are kept of shapes that reach far more than is read of them; botocore passes over the others."""

type Json = dict[str, Any]


def names_in(source: Path) -> frozenset[str]:
    """Every attribute and every string of the Python files under a folder."""
    found: set[str] = set()
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return frozenset(found)


def read(path: Path) -> Json:
    """A model file, zipped or not."""
    packed = path.with_name(path.name + ".json.gz")
    raw = gzip.decompress(packed.read_bytes()) if packed.exists() else path.with_name(path.name + ".json").read_bytes()
    loaded: Json = json.loads(raw)
    return loaded


def slim(model: Json, operations: Iterable[str]) -> Json:
    """The model with these operations (API names) and the shapes that they reach, without the documentation of both.

    What the model says of the whole service stays as it is: botocore requires documentation in some of it
    (`ServiceModel.client_context_parameters`), and of operations and shapes it takes none for an empty text.
    """
    kept = {name: model["operations"][name] for name in sorted(operations)}
    waiting = [found for operation in kept.values() for found in _shapes(operation)]
    shapes: Json = {}
    while waiting:
        name = waiting.pop()
        if name not in shapes:
            shapes[name] = _only(name, model["shapes"][name])
            waiting.extend(_shapes(shapes[name]))
    of_the_service = {key: value for key, value in model.items() if key != "documentation"}
    return of_the_service | {
        "operations": _undocumented(kept, members=True),
        "shapes": _undocumented(dict(sorted(shapes.items())), members=True),
    }


def _only(name: str, shape: Json) -> Json:
    """The shape with those of its members that are read."""
    if name not in ONLY:
        return shape
    return shape | {"members": {member: shape["members"][member] for member in ONLY[name]}}


def _shapes(node: Any) -> Iterable[str]:
    """Names of the shapes that a piece of the model mentions."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "shape" and isinstance(value, str):
                yield value
            else:
                yield from _shapes(value)
    elif isinstance(node, list):
        for value in node:
            yield from _shapes(value)


def _undocumented(node: Any, members: bool = False) -> Any:
    """Without documentation; a member or shape that is itself called so is kept."""
    if isinstance(node, dict):
        return {
            key: _undocumented(value, members=key == "members")
            for key, value in node.items()
            if members or key not in ("documentation", "documentationUrl", "examples")
        }
    return [_undocumented(value) for value in node] if isinstance(node, list) else node


def slim_service(folder: Path, names: frozenset[str], out: Path) -> int:
    """Write the cut model of one service (a folder of botocore's data); the number of its operations, 0 for none."""
    from botocore import xform_name

    version = max(path for path in folder.iterdir() if path.is_dir())
    model = read(version / "service-2")
    wanted = [name for name in model["operations"] if xform_name(name) in names]
    if not wanted:
        return 0
    target = out / folder.name / version.name
    target.mkdir(parents=True)
    (target / "service-2.json").write_text(json.dumps(slim(model, wanted), separators=(",", ":")))
    for name in KEPT:
        if any(version.glob(f"{name}.json*")):
            (target / f"{name}.json").write_text(json.dumps(read(version / name), separators=(",", ":")))
    return len(wanted)


def main() -> None:
    """Command line: --botocore folder that holds the package, --source, --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--botocore", "--source", "--out"):
        parser.add_argument(name, type=Path, required=True)
    given = parser.parse_args()
    sys.path.insert(0, str(given.botocore))
    names = names_in(given.source)
    shutil.rmtree(given.out, ignore_errors=True)
    given.out.mkdir(parents=True)
    for folder in sorted((given.botocore / "botocore" / "data").iterdir()):
        if folder.is_dir() and folder.name in names:
            count = slim_service(folder, names, given.out)
            print(f"{folder.name}: {count} operations", file=sys.stderr)


if __name__ == "__main__":
    main()
