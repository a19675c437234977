"""Each command of the program in docs/runbook.md is run on the simulated account, as the page has it."""

import re
from collections.abc import Iterator

import pytest

from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from tests.doors.scene import APPROVER, BIG, PROPOSE, Scene, scene
from tests.runbook.test_runbook import PAGE

CODE = sorted(
    {" ".join(each.split()) for each in re.findall(r"`(rightsizer [^`]+)`", PAGE)}
    | {line.strip() for line in PAGE.splitlines() if line.strip().startswith("rightsizer ")}
)
"""Those between backquotes, and the lines of code blocks."""
WITHOUT_SUBJECT = {"rightsizer apply": "the page says not to use it to look"}


@pytest.fixture(scope="module")
def at() -> Iterator[Scene]:
    """A stack with one change under way."""
    with scene(Approvers=f"{APPROVER},role/operator") as found:
        found.add(BIG, tags=PROPOSE)
        found.drive(BIG)
        found.sweep()
        found.click(BIG, "Approve")
        found.stack.settle()
        yield found


def test_the_page_has_commands() -> None:
    assert {"rightsizer freeze", "rightsizer rollback CHANGE", "rightsizer history ENDPOINT"} <= set(CODE)


@pytest.mark.parametrize("line", [line for line in CODE if line not in WITHOUT_SUBJECT])
def test_a_command_of_the_page_runs(
    line: str, at: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RIGHTSIZER_TABLE", raising=False)
    at.box.world.sts.arn = "arn:aws:sts::111122223333:assumed-role/operator/ada"
    change = next(one.change_id for one in at.proposals() if one.change_id)
    given = line.replace("CHANGE", change).replace("ENDPOINT", BIG).split()[1:]
    code = run(given)
    told = capsys.readouterr()
    assert code in (Exit.NOTHING_TO_DO, Exit.INCOMPLETE), told.err
    assert told.out.strip()
