"""Compiles the methods that `dataclasses` generates for the library's classes; the layer's build runs it.

Writes the file that `rightsizer.use_built_methods` reads into the package `rightsizer` that PYTHONPATH has. It imports
every module of the package, so the dependencies must be those of the processor and the Python that run this.
"""

import builtins
import dataclasses
import marshal
import sys
from importlib import import_module
from pkgutil import walk_packages
from types import CodeType
from typing import Any

from rightsizer import BUILT_METHODS, source_digest


def generated(package: str) -> set[str]:
    """Source of the methods of all dataclasses that the modules of a package, and what they import, define."""
    found: set[str] = set()

    def note(source: str, *namespaces: Any) -> None:
        found.add(source)
        builtins.exec(source, *namespaces)

    vars(dataclasses)["exec"] = note
    try:
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            import_module(module.name)
    finally:
        del vars(dataclasses)["exec"]
    return found


def without_lines(code: CodeType) -> CodeType:
    """Code without its table of line numbers, which lead nowhere: generated source is in no file."""
    inner = tuple(without_lines(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=inner)


def main() -> int:
    """Write the package's file of methods."""
    sources = sorted(generated("rightsizer"))
    methods = {
        source_digest(source): marshal.dumps(without_lines(compile(source, "<dataclass>", "exec")))
        for source in sources
    }
    BUILT_METHODS.write_bytes(marshal.dumps(methods))
    print(f"methods of {len(methods)} dataclasses compiled into {BUILT_METHODS.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
