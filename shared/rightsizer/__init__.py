"""rightsizer: finds oversized SageMaker GPU endpoints and changes them, with a proven rollback.

The flow, in order: trigger, observation, usage, demand, options, recommendation, proposal, change, outcome, report.
`docs/architecture.md` draws the floors; import-linter holds them.
"""

import builtins
import dataclasses
import hashlib
import marshal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rightsizer.advice.advise import advise as advise

__version__ = "0.3.0.dev0"
BUILT_METHODS = Path(__file__).with_name(f"dataclasses.{sys.implementation.cache_tag}.bin")
"""Bytecode of dataclass methods for this Python, by digest of their source. `make build` writes it into the layer."""


def source_digest(source: str) -> bytes:
    """Key of generated source in `BUILT_METHODS`."""
    return hashlib.blake2b(source.encode(), digest_size=16).digest()


def use_built_methods(path: Path = BUILT_METHODS) -> None:
    """Let `dataclasses` take the methods that it generates from the build's bytecode; nothing changes without the file.

    `dataclasses` writes the methods of a class as source and has `exec` compile it, at each start anew, which is most
    of what a dataclass costs, and a tenth to a quarter of a cold start (docs/performance.md). Source that the file does
    not have, of a newer patch release of Python say, is compiled as before.
    """
    if not path.exists():
        return
    methods: dict[bytes, bytes] = marshal.loads(path.read_bytes())  # noqa: S302  (a file of the layer, as its other bytecode)

    def run(source: str, *namespaces: Any) -> None:
        code = methods.get(source_digest(source))
        builtins.exec(source if code is None else marshal.loads(code), *namespaces)  # noqa: S102, S302  (as above)

    vars(dataclasses)["exec"] = run


use_built_methods()


def __getattr__(name: str) -> Any:
    """``from rightsizer import advise`` loads the advice and its tables then, and no function of the stack does."""
    if name == "advise":
        from rightsizer.advice.advise import advise

        return advise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
