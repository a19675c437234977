"""Byte-compiles the functions of a SAM build, so that a cold start finds bytecode: `compile_build.py .aws-sam/build`.

Lambda's code folders are read-only, so it cannot write bytecode itself. `unchecked-hash`, because packaging changes
file times, and because the result is then the same on every machine (Python documentation, `py_compile`).
"""

import compileall
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

LAMBDA_VERSION = (3, 13)


def compile_functions(build: Path) -> int:
    """Compile every function folder of the build; the number of folders done."""
    done = 0
    for folder in sorted(path.parent for path in build.glob("*/app.py")):
        if not compileall.compile_dir(
            folder,
            quiet=1,
            force=True,
            stripdir=str(folder),
            prependdir="/var/task",
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        ):
            sys.exit(f"{folder}: a file does not compile; see above")
        done += 1
    return done


if __name__ == "__main__":
    if sys.version_info[:2] != LAMBDA_VERSION:
        sys.exit("run this with Python 3.13, Lambda's version: other bytecode would be ignored")
    print(f"{compile_functions(Path(sys.argv[1]))} functions compiled")
