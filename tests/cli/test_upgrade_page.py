"""Each command of docs/upgrade.md: ours are run on the simulated account, the others have only known parameters."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from rightsizer import bootstrap, intake
from rightsizer.domain.change import ChangeState
from rightsizer.domain.trigger import SweepDue
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from tests.changing.world import World, world

ROOT = Path(__file__).parents[2]
SAM = ROOT / ".venv-sam" / "bin" / "sam"
GLOBAL = {"--region", "--query", "--output", "--profile", "--cli-binary-format"}
HIGH_LEVEL = {("s3", "rb"): {"--force"}}
"""Commands of the AWS CLI that are no operation (AWS CLI Command Reference, `s3 rb`)."""


def commands(first: str) -> list[str]:
    """The distinct command lines of the page that begin so, in the order of the page."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "upgrade.md").read_text(), re.S)
    lines = [line.strip() for block in blocks for line in block.splitlines() if line.strip()]
    assert all(line.split()[0] in ("rightsizer", "aws", "make", ".venv-sam/bin/sam") for line in lines)
    return list(dict.fromkeys(line for line in lines if line.split()[0] == first))


@pytest.fixture
def proven(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A deployed table with a change that is proven."""
    monkeypatch.setenv("COLUMNS", "300")
    with world() as w:
        monkeypatch.setenv("RIGHTSIZER_TABLE", "t")
        bootstrap.set_clock(lambda: w.box.clock.now)
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        yield w
        bootstrap.reset()


@pytest.mark.parametrize("line", commands("rightsizer"))
def test_each_command_of_ours_does_its_work(proven: World, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = line.replace("c-0a1b2c", proven.change.id).replace("rightsizer-restored", "t")
    code = run(shlex.split(given)[1:])
    out, err = capsys.readouterr()
    assert code == Exit.NOTHING_TO_DO, err
    assert out
    match line.split()[1]:
        case "freeze":
            assert proven.journal.switch().frozen is ("--off" not in line)
        case "rollback":
            assert proven.change.state is ChangeState.RETURNING


def test_the_way_of_the_page_to_an_empty_list_is_walked(proven: World, capsys: pytest.CaptureFixture[str]) -> None:
    change = proven.change.id
    assert run(["rollback", change, "--region", "eu-west-1"]) == Exit.NOTHING_TO_DO
    assert run(["freeze", "--region", "eu-west-1"]) == Exit.NOTHING_TO_DO
    assert change in capsys.readouterr().out
    assert proven.run(12).state is ChangeState.ROLLED_BACK, "a freeze lets the steps that restore go on"
    assert run(["freeze", "--region", "eu-west-1"]) == Exit.NOTHING_TO_DO
    assert change not in capsys.readouterr().out


def known(service: str, command: str, words: list[str]) -> tuple[set[str], Any]:
    """Options of a command of the AWS CLI, and the shape of its input; AssertionError when there is no such command."""
    if (service, command) in HIGH_LEVEL:
        return HIGH_LEVEL[service, command], None
    session = botocore.session.get_session()
    model = session.get_service_model(service)
    operation = {xform_name(name, "-"): name for name in model.operation_names}
    if command == "wait":
        waiters = session.get_waiter_model(service)
        named = {xform_name(name, "-"): name for name in waiters.waiter_names}
        assert words[0] in named, f"{service} has no waiter {words[0]}"
        shape = model.operation_model(waiters.get_waiter(named[words[0]]).operation).input_shape
    else:
        assert command in operation, f"{service} has no command {command}"
        shape = model.operation_model(operation[command]).input_shape
    assert shape is not None
    return {f"--{xform_name(member, '-')}" for member in shape.members}, shape


@pytest.mark.parametrize("line", commands("aws"))
def test_each_command_of_the_aws_cli_and_its_parameters_exist(line: str) -> None:
    _, service, command, *words = shlex.split(line)
    options, shape = known(service, command, words)
    given = [word for word in words if word.startswith("--")]
    off = {f"--no-{name.removeprefix('--')}": name for name in options}  # how the AWS CLI says false
    given = [off.get(word, word) for word in given]
    assert set(given) <= options | GLOBAL
    members = {} if shape is None else {f"--{xform_name(name, '-')}": one for name, one in shape.members.items()}
    for option, value in pairwise(words):
        if option in members and members[option].type_name == "structure":
            parts = json.loads(value)
            assert set(parts) <= set(members[option].members)
            for name, part in parts.items():
                assert part in (getattr(members[option].members[name], "enum", None) or [part])
    if shape is not None:
        required = {f"--{xform_name(name, '-')}" for name in shape.required_members}
        assert required <= set(given), f"{line} needs {required - set(given)}"


def test_the_sweep_that_the_page_asks_for_after_a_restore_is_a_full_one() -> None:
    (line,) = (line for line in commands("aws") if line.startswith("aws lambda invoke"))
    words = shlex.split(line)
    due = intake.parse(json.loads(words[words.index("--payload") + 1]))
    assert isinstance(due, SweepDue)
    assert due.sweep == "full"


@pytest.mark.slow
@pytest.mark.skipif(not SAM.exists(), reason="SAM CLI is not installed; make validate installs it")
@pytest.mark.parametrize("line", commands(".venv-sam/bin/sam"))
def test_each_option_of_sam_exists_and_the_parameters_are_the_templates(line: str, tmp_path: Path) -> None:
    _, command, *words = shlex.split(line)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SAM_CLI_TELEMETRY": "0", "COLUMNS": "200"}
    done = subprocess.run([SAM, command, "--help"], env=environment, capture_output=True, text=True, check=True)
    template = (ROOT / "template.yaml").read_text()
    assert [word for word in words if word.startswith("--") and word not in done.stdout] == []
    for word in words:
        name, is_parameter, _ = word.partition("=")
        assert not is_parameter or f"\n  {name}:\n    Description:" in template


def test_the_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{line.split()[1]}:" in makefile for line in commands("make"))
