"""`scan` and `explain` obey the policy document as the deployed stack does, and say what of it cannot be understood."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rightsizer.aws.session import Session
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from rightsizer.terminal.survey import survey_policy
from tests.doors.scene import BIG, PROPOSE, Scene, scene

NAME = "/rightsizer/policy"
SAID: dict[str, Any] = {
    "defaults": {"minimum_saving_usd": 20, "lookback_days": 15},
    "assign": [{"endpoints": BIG, "environment": "staging"}],
    "environments": {"staging": {"window": "mon-fri 09:00-17:00 Europe/Berlin", "objective": 700, "automatic": False}},
    "owners": {"search": {"minimum_saving_usd": 1000000}},
}


@pytest.fixture(scope="module")
def at() -> Iterator[Scene]:
    """A stack with a policy document, and an endpoint of the owner `search` in automatic mode."""
    with scene(slack=False, Limits='{"changes_per_day": 3}') as found:
        found.box.client("ssm").put_parameter(Name=NAME, Value=json.dumps(SAID), Type="String")
        found.stack.template.change({"PolicyParameter": NAME})
        found.add(BIG, tags=PROPOSE | {"owner": "search", "rightsizer:mode": "auto"})
        found.drive(BIG)
        yield found


def said(capsys: pytest.CaptureFixture[str], *line: str) -> tuple[int, Any, str]:
    """The exit code, the JSON on standard output, and what was said on standard error."""
    capsys.readouterr()
    code = run([*line, "--json"])
    told = capsys.readouterr()
    return code, json.loads(told.out), " ".join(told.err.split())


def store(at: Scene, document: str | dict[str, Any]) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    at.box.client("ssm").put_parameter(Name=NAME, Value=text, Type="String", Overwrite=True)


def test_explain_obeys_the_document_of_the_stack_and_shows_where_it_says_so(
    at: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    store(at, SAID)
    _, found, _ = said(capsys, "explain", BIG)
    assert (found["environment"]["name"], found["mode"]) == ("staging", "propose")
    assert found["options"][0]["facts"]["objective"] == "0.70 s (policy document, environments.staging.objective)"
    assert found["policy"]["source"] == f"the stack rightsizer with its policy document {NAME}"
    values = {row["key"]: (row["value"], row["source"]) for row in found["policy"]["values"]}
    window = "mon,tue,wed,thu,fri 09:00-17:00 Europe/Berlin"
    assert values["window"] == (window, "policy document, environments.staging.window")
    assert values["changes_per_day"] == ("3", "stack parameter Limits")
    assert run(["explain", BIG]) == Exit.NOTHING_TO_DO
    assert window in " ".join(capsys.readouterr().out.split())


def test_the_minimum_of_the_owner_counts_and_the_command_line_comes_before_it(
    at: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    store(at, SAID)
    code, found, _ = said(capsys, "scan")
    assert (code, found["totals"]["savings_found"]) == (Exit.NOTHING_TO_DO, 0)
    assert "below the least of USD 1000000" in found["endpoints"][0]["reason"]["sentence"]
    code, found, _ = said(capsys, "scan", "--min-saving", "50")
    assert (code, found["totals"]["savings_found"]) == (Exit.SAVINGS_FOUND, 1)
    store(at, {})
    code, found, _ = said(capsys, "scan")
    assert (code, found["minimum_saving_usd_per_month"]) == (Exit.SAVINGS_FOUND, "50")


def test_what_cannot_be_understood_is_told_with_its_place_and_holds_changes(
    at: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    store(at, {"environments": {"staging": {"window": "whenever"}}, "assign": SAID["assign"]})
    _, found, errors = said(capsys, "explain", BIG)
    assert "policy document, environments.staging.window" in errors
    assert any("environments.staging.window" in each for each in found["policy"]["held"])
    _, found, errors = said(capsys, "scan")
    assert [each for each in found["policy"]["problems"] if "staging.window" in each]
    assert "warning: policy document, environments.staging.window" in errors
    run(["explain", BIG])
    assert "no change begins" in capsys.readouterr().out


def test_a_document_from_a_file_or_another_parameter_takes_the_place_of_the_stacks(
    at: Scene, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store(at, SAID)
    path = tmp_path / "policy.yaml"
    path.write_text("defaults:\n  minimum_saving_usd: 30\n  look_back: 3\n")
    code, found, errors = said(capsys, "scan", "--policy", str(path))
    assert (code, found["minimum_saving_usd_per_month"]) == (Exit.SAVINGS_FOUND, "30")
    assert str(path) in found["policy"]["source"]
    assert "defaults.look_back" in errors
    at.box.client("ssm").put_parameter(Name="/other", Value='{"defaults":{"minimum_saving_usd":40}}', Type="String")
    _, found, _ = said(capsys, "scan", "--policy", "ssm:/other")
    assert found["minimum_saving_usd_per_month"] == "40"
    for wrong in ("ssm:/none", str(tmp_path / "none.yaml")):
        assert run(["scan", "--policy", wrong]) == Exit.FAILED
        assert "reading the policy document" in capsys.readouterr().err


def test_a_stack_that_may_not_be_read_is_said_and_the_defaults_hold(
    at: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    at.box.gate.deny("cloudformation:DescribeStacks")
    try:
        _, found, errors = said(capsys, "explain", BIG)
    finally:
        at.box.gate.allow("cloudformation:DescribeStacks")
    assert found["policy"]["source"] == "the defaults"
    assert "the defaults hold, for the policy of the stack was not read" in errors
    assert found["mode"] == "auto"


def test_without_a_stack_the_defaults_hold_and_nothing_is_said(at: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    obeyed = survey_policy(Session("us-east-1", None, None), "none", "", None, None)
    assert (obeyed.policy.lookback_days, obeyed.policy.minimum_saving_usd, obeyed.problems) == (14, Decimal(50), ())
    assert run(["explain", BIG, "--stack", "none"]) == Exit.SAVINGS_FOUND
    told = capsys.readouterr()
    assert "olicy here" not in told.out + told.err
    assert "warning" not in told.err
