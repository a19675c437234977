"""Write the frozen files, or compare them: `python -m tests.frozen.write [--check] [--replay] [FILE ...]`.

The files are answers, ids, commands and rows; with --replay, replay too, which needs the referee and a minute more.
"""

import argparse
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.frozen import replayed, rows
from tests.frozen.account import Played, played
from tests.frozen.answers import answers
from tests.frozen.ids import ids


@cache
def _played() -> Played:
    with TemporaryDirectory() as out:
        found = played(Path(out))
    if found.code:
        raise SystemExit(f"the demo ended with {found.code}: {found.progress}")
    return found


FILES: dict[str, Callable[[], dict[str, Any]]] = {
    "ids": lambda: dict(ids()),
    "answers": lambda: dict(answers()),
    "commands": lambda: _played().documents,
    "rows": lambda: _played().rows,
    "replay": lambda: dict(replayed.replayed()),
}
"""How each file is made."""


def main(arguments: list[str] | None = None) -> int:
    """Write or compare; the exit code is 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.frozen.write", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"only these: {', '.join(FILES)}")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--replay", action="store_true", help="also the tables of the referee")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.files if name not in FILES]:
        parser.error(f"there is no file {unknown[0]}; say one of {', '.join(FILES)}")
    names = given.files or [name for name in FILES if name != "replay"]
    if given.replay and "replay" not in names:
        names.append("replay")
    if "replay" in names and (why := replayed.absent()):
        _say(f"replay: left out, {why}")
        names.remove("replay")
    found = 0
    for name in names:
        now = FILES[name]()
        if given.check:
            lines = rows.differences(rows.read(name), now)
            found += len(lines)
            _say("\n".join([f"{name}: {len(lines)} differences in {len(now)} rows", *lines]))
        else:
            _say(f"{rows.write(name, now.items())}: {len(now)} rows")
    return 1 if found else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
