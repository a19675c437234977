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
FORBIDDEN = {"respond": {"pydantic", "boto3"}, "apply": {"rightsizer.dimensions"}}
ENGINE = {"rightsizer.recommender.context", "rightsizer.changes.plan", "rightsizer.autoscaling", "rightsizer.catalog"}
"""What offers and plans; a message needs the words of a dimension alone."""


def loaded_by(door: str) -> set[str]:
    """Names of the modules in memory after importing the door, and of their parents."""
    return loaded_with(f"functions.{door}.app")


def loaded_with(module: str) -> set[str]:
    """The same of any module."""
    code = f"import sys, {module}; print('\\n'.join(sys.modules))"
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


def test_a_message_loads_the_words_of_the_dimensions_and_neither_what_offers_nor_what_plans() -> None:
    loaded = loaded_with("rightsizer.render.slack")
    assert "rightsizer.dimensions.schedule" in loaded
    assert loaded & ENGINE == set()
