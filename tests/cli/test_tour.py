"""docs/tour.md on the account that `make sandbox` starts: every command, and what its answer must say."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rightsizer import bootstrap
from rightsizer.domain.proposal import ProposalState
from rightsizer.terminal.app import app
from rightsizer.terminal.run import join_commands, run
from sandbox.history import ASLEEP, BY_TERMINAL, REJECTED, RETURNED, SNOOZED, History, beginning, with_history
from sandbox.pages import report_page
from sandbox.wiring import Stack

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "tour.md"
MONDAY = datetime(2026, 11, 23, 17, 0, tzinfo=UTC)
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
ANY = "…"


@pytest.fixture(scope="module")
def account() -> Iterator[tuple[History, Stack]]:
    """The account with its past; what a test does is there for the next."""
    with with_history(MONDAY, lambda text: None) as found:
        bootstrap.set_clock(lambda: found[0].box.clock.now)
        yield found


def steps() -> list[tuple[str, list[str]]]:
    """The commands of the page in their order, each with the lines that its answer must hold."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(BLOCKS).splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            found[-1][1].append(line)
    return found


def missing(wanted: list[str], answer: str) -> str:
    """The first line that the answer does not hold, empty where it holds all; an ellipsis bridges a row or two."""
    text = " ".join(answer.split())
    for line in wanted:
        parts = [re.escape(" ".join(part.split())) for part in line.split(ANY) if part.strip()]
        if not re.search(".{0,400}?".join(parts), text):
            return line
    return ""


def test_the_past_has_one_of_everything(account: tuple[History, Stack]) -> None:
    history, stack = account
    states = {one.ref.name: one.state for one in history.proposals()}
    assert stack.failures == []
    assert stack.dead_letters() == []
    assert states[RETURNED] is ProposalState.ROLLED_BACK
    assert (states[REJECTED[0]], states[SNOOZED]) == (ProposalState.REJECTED, ProposalState.SNOOZED)
    assert sorted(name for name, state in states.items() if state is ProposalState.PROVEN) == [
        "doc-layout",
        "search-embeddings",
    ]
    (staged,) = [one for one in history.proposals() if one.ref.name == BY_TERMINAL and one.change_id]
    assert "stage 1 of 2" in staged.outcome
    assert len([name for name, state in states.items() if state is ProposalState.PENDING]) >= 8
    assert ASLEEP not in history.box.world.fleet.endpoints
    assert "$" in report_page(stack)
    assert any("doc-layout" in message.text for message in history.slack.messages)


@pytest.mark.parametrize("day", range(7))
def test_the_past_lies_in_the_last_whole_week_whenever_the_account_starts(day: int) -> None:
    end = MONDAY.replace(hour=0, minute=30) + timedelta(days=day)
    began, monday = beginning(end), (end - timedelta(days=end.weekday())).replace(hour=0, minute=0)
    assert monday - timedelta(days=7) <= began
    assert began + timedelta(hours=36) < monday, "the changes are proven in the same week"


def test_every_command_of_the_tour_does_what_the_page_says(
    account: tuple[History, Stack], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for line, wanted in steps():
        bootstrap.set_clock(lambda: account[0].box.clock.now)
        command, _, filtered = line.partition(" | ")
        name, *arguments = shlex.split(command)
        if name == "curl":
            seconds = int(arguments[-1].partition("seconds=")[2])
            account[0].box.clock.advance(timedelta(seconds=seconds))
            continue
        assert name == "rightsizer", line
        run(arguments)
        answer = "".join(capsys.readouterr())
        if filtered and shutil.which("jq"):
            done = subprocess.run(shlex.split(filtered), input=answer, capture_output=True, text=True, check=True)
            assert json.loads(done.stdout) is not None, line
        elif not filtered:
            assert missing(wanted, answer) == "", f"{line}\n{answer}"
        account[1].settle()


def test_the_tour_leaves_no_command_out() -> None:
    join_commands()
    tried = {shlex.split(line)[1] for line, _ in steps() if line.startswith("rightsizer ")}
    known = {one.name or one.callback.__name__ for one in app.registered_commands if one.callback}
    assert tried == known


def test_a_line_that_the_answer_lacks_is_noticed() -> None:
    assert missing(["a … c", "d"], "a b c\nd") == ""
    assert missing(["a … z"], "a " + 500 * "b" + " z") == "a … z"
    assert missing(["a … z"], "a b c") == "a … z"
