"""What `make build` left behind, for this machine's processor; where it must be there, its absence is a failure."""

import os
import platform
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[2]
BUILDS = {"x86_64": ".aws-sam/x86", "aarch64": ".aws-sam/build", "arm64": ".aws-sam/build"}
MUST = ("CI", "ARTEFACT")
"""Variables of the environment: one of them set, and nothing here is skipped. `make artefact` sets the second."""


def absent(what: str) -> NoReturn:
    """Fail where the artefact must be tested, skip elsewhere."""
    if any(os.environ.get(name) for name in MUST):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def build() -> Path:
    """The folder of the build, which no source is newer than."""
    found = ROOT / BUILDS.get(platform.machine(), ".aws-sam/x86")
    stamp = found / ".built"
    if not stamp.exists():
        absent(f"{found.name}: nothing is built for {platform.machine()}; make artefact does it")
    held = (path for folder in ("shared", "functions") for path in (ROOT / folder).rglob("*"))
    sources = [ROOT / "template.yaml", *(path for path in held if path.is_file() and path.suffix != ".pyc")]
    newer = [path for path in sources if path.stat().st_mtime > stamp.stat().st_mtime]
    if newer:
        absent(f"{newer[0].relative_to(ROOT)} is newer than the build; make artefact does it again")
    return found


def interpreter(environment: str) -> Path:
    """The Python of an environment that holds boto3 and awslambdaric only."""
    python = ROOT / environment / "bin" / "python"
    if not python.exists():
        absent(f"there is no {environment}; make artefact creates it")
    return python


@pytest.fixture(scope="session")
def runtime_python() -> Path:
    """An interpreter that holds the pinned boto3, as the Lambda runtime brings one, and awslambdaric only."""
    return interpreter(".venv-lambda")


@pytest.fixture(scope="session")
def oldest_python() -> Path:
    """The same with the oldest botocore that is supported."""
    return interpreter(".venv-lambda-oldest")
