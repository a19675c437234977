"""Doors import little: what a door must not load at its cold start, measured in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOORS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
NEVER = {
    "aws_lambda_powertools.utilities.idempotency",
    "aws_lambda_powertools.utilities.parameters",
    "aws_xray_sdk",
    "matplotlib",
    "moto",
    "numpy",
    "rich",
    "sandbox",
    "slack_sdk",
    "typer",
}
"""Not in the layer, or dear at a cold start (the figures are in docs/performance.md)."""
FORBIDDEN = {"respond": {"pydantic", "boto3"}}


def loaded_by(door: str) -> set[str]:
    """Names of the modules in memory after importing the door, and of their parents."""
    code = f"import sys, functions.{door}.app; print('\\n'.join(sys.modules))"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'shared'}{os.pathsep}{ROOT}",
        "AWS_DEFAULT_REGION": "eu-west-1",
    }
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("door", DOORS)
def test_a_door_does_not_load_what_is_forbidden_to_it(door: str) -> None:
    assert loaded_by(door) & (NEVER | FORBIDDEN.get(door, set())) == set()
