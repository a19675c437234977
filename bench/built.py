"""What `make build` left for this machine's processor, and the processor time of a function's process."""

import platform
import time
from collections.abc import Mapping
from pathlib import Path

from sandbox.runtime import BuiltFunction, built

ROOT = Path(__file__).parents[1]
BUILD = ROOT / (".aws-sam/build" if platform.machine() in ("aarch64", "arm64") else ".aws-sam/x86")
PYTHON = ROOT / ".venv-lambda" / "bin" / "python"
"""Holds boto3 and awslambdaric only, as the Lambda runtime does."""
SCHEDULED = 2
"""The part of a Linux process clock's number that asks for the time that the scheduler counted."""


def functions(parameters: Mapping[str, str]) -> dict[str, BuiltFunction]:
    """The built functions that a stack with these parameters has, by logical id. SystemExit where nothing is built."""
    if not PYTHON.exists() or not (BUILD / "template.yaml").exists():
        raise SystemExit("nothing is built: run make bench, or make build first")
    return built(BUILD, {}, parameters)


def cpu_seconds(process: int) -> float:
    """Processor seconds that a running process and all its threads have used so far, user and system, on Linux.

    The process's own clock (POSIX clock_getcpuclockid) counts nanoseconds; /proc/PID/stat counts hundredths of seconds.
    """
    return time.clock_gettime((~process << 3) | SCHEDULED)
