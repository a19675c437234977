"""A known vulnerability fails the check; a database that does not answer is said, and fails nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.audit import Audit, read, requirement_files, tell

ROOT = Path(__file__).parents[2]
KNOWN = {"name": "jinja2", "version": "2.4.1", "vulns": [{"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"]}]}
CLEAN = {"name": "boto3", "version": "1.44.5", "vulns": []}
SKIPPED = {"name": "six", "skip_reason": "Dependency not found and could not be audited: six (1.17.0)"}


def test_a_known_vulnerability_is_named_with_its_remedy_and_fails() -> None:
    said, code = tell([("dev.txt", read({"dependencies": [CLEAN, KNOWN]}))])
    assert code == 1
    assert said == ["dev.txt: jinja2 2.4.1: PYSEC-2019-217, fixed in 2.10.1"]


def test_a_vulnerability_in_one_file_fails_whatever_the_others_say() -> None:
    found: list[tuple[str, Audit | str]] = [
        ("a", read({"dependencies": [KNOWN]})),
        ("b", read({"dependencies": [CLEAN]})),
        ("c", "no route to host"),
    ]
    assert tell(found)[1] == 1


@pytest.mark.parametrize(
    "found", ["Failed to resolve the host", Audit(0, 12, ())], ids=["no network", "nothing is known"]
)
def test_what_the_database_does_not_answer_is_said_to_be_not_checked(found: Audit | str) -> None:
    (line,), code = tell([("dev.txt", found)])
    assert "not checked" in line
    assert code == 0


def test_packages_that_were_left_out_are_counted() -> None:
    said, code = tell([("dev.txt", read({"dependencies": [CLEAN, SKIPPED]}))])
    assert said == ["dev.txt: 1 packages without a known vulnerability, 1 not checked"]
    assert code == 0


def test_every_compiled_requirement_file_is_audited() -> None:
    named = {path.name for path in requirement_files(ROOT)}
    assert {"dev.txt", "sam.txt", "lambda.txt", "requirements.txt", "requirements-models.txt"} <= named


def test_a_key_that_is_about_to_be_committed_fails_the_check(tmp_path: Path) -> None:
    flags = re.findall(r"--disable-plugin (\w+)", (ROOT / "Makefile").read_text())
    assert flags
    options = [part for flag in flags for part in ("--disable-plugin", flag)]
    leaked = tmp_path / "settings.py"
    leaked.write_text('KEY = "AKIA' + 'ZQ3DRSPWLT5XJ2VN"\n')
    command = [str(Path(sys.executable).with_name("detect-secrets-hook")), *options, str(leaked)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "AWS Access Key" in done.stdout
