"""The same flows for a person at a terminal."""

import os
import sys
from importlib.util import find_spec

NEEDED = ("typer", "rich", "boto3", "yaml")
"""What the extra `cli` of the package brings; the library and the functions do without."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit; see docs/cli.md for the exit codes."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"rightsizer: {' and '.join(missing)} not found. The command line is an extra of the package:"
            " install it with its extra, for example pip install '.[cli]' in a clone.",
            file=sys.stderr,
        )
        sys.exit(1)
    try:
        from rightsizer.terminal.run import run

        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # while modules are loaded
        print("\ninterrupted; nothing was changed", file=sys.stderr)
        code = INTERRUPTED
    if code == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the interpreter would wait for the answers of requests that are under way
    sys.exit(code)


if __name__ == "__main__":
    main()
