"""`--help` teaches: a line that fits the list of commands, what is written, and examples that can be copied."""

import re
import shlex

import pytest
import typer

from rightsizer.terminal.app import app
from rightsizer.terminal.run import join_commands, run

join_commands()
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
EXAMPLE = re.compile(r"^  +rightsizer .+$", re.MULTILINE)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run([*words, "--help"]) == 0
    return capsys.readouterr().out


def test_the_list_of_commands_cuts_no_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = shown(capsys).partition("Commands:")[2].partition("Examples:")[0]
    assert len(re.findall(r"^  [a-z]+  ", listed, re.MULTILINE)) == len(COMMANDS)
    assert "..." not in listed


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_examples_that_a_shell_takes_as_they_are(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = shown(capsys, command)
    given = {option for option in re.findall(r"(?<![\w-])--[a-z-]+", said.partition("Options:")[2])}
    lines = EXAMPLE.findall(said.partition("Examples:")[2])
    assert lines
    for line in lines:
        words = shlex.split(line, comments=True)
        assert words[:2] == ["rightsizer", command]
        assert {word for word in words if word.startswith("--")} <= given
        assert len(line) <= 100


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_and_argument_says_what_it_means(command: str) -> None:
    found = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    silent = [each.name for each in found.params if not (getattr(each, "help", "") or "").strip()]
    assert silent == []


@pytest.mark.parametrize(("command", "promise"), [("scan", "Reads only"), ("freeze", "--off"), ("apply", "goes on")])
def test_the_help_says_what_happens_to_the_account(
    command: str, promise: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert promise in shown(capsys, command)
