"""What `make build` left behind, for this machine's processor."""

import platform
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILDS = {"x86_64": ".aws-sam/x86", "aarch64": ".aws-sam/build", "arm64": ".aws-sam/build"}


@pytest.fixture(scope="session")
def build() -> Path:
    """The folder of the build; skips when there is none, or when a source is newer than it."""
    found = ROOT / BUILDS.get(platform.machine(), ".aws-sam/x86")
    stamp = found / ".built"
    if not stamp.exists():
        pytest.skip(f"{found.name}: nothing is built for {platform.machine()}; make build does it")
    sources = [ROOT / "template.yaml", *(ROOT / "shared").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    newer = [path for path in sources if path.stat().st_mtime > stamp.stat().st_mtime]
    if newer:
        pytest.skip(f"{newer[0].relative_to(ROOT)} is newer than the build; make build does it again")
    return found


@pytest.fixture(scope="session")
def runtime_python() -> Path:
    """An interpreter that holds boto3 and awslambdaric only."""
    python = ROOT / ".venv-lambda" / "bin" / "python"
    if not python.exists():
        pytest.skip("there is no .venv-lambda; make test creates it")
    return python
