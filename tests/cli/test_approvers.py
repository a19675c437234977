"""The terminal obeys the list `Approvers` of the deployed stack: whoever it does not name gives no order."""

from collections.abc import Iterator

import pytest

from rightsizer import bootstrap
from rightsizer.aws.journal import TableJournal
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from tests.doors.scene import BIG, PROPOSE, Scene, scene

DEV = "arn:aws:sts::111122223333:assumed-role/dev/ml-oncall"
ONCALL = "arn:aws:sts::111122223333:assumed-role/ml-oncall/ada"
ADA = "arn:aws:iam::111122223333:user/research/ada"
MIXED = "U1, role/ml-*, user/ada"


@pytest.fixture(scope="module")
def standing() -> Iterator[Scene]:
    """A stack with a list and one pending proposal, for tests that record nothing."""
    with scene(slack=False, Approvers=MIXED) as at:
        at.add(BIG, tags=PROPOSE | {"rightsizer:p95-ms": "900"})
        at.drive(BIG)
        at.sweep()
        yield at


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Said":
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.delenv("RIGHTSIZER_TABLE", raising=False)  # the scene sets what functions are told
    return Said(capsys)


class Said:
    """Gives orders at a terminal."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, at: Scene, by: str, line: str, approvers: str = MIXED) -> tuple[int, str]:
        """The exit code of a command line of `by` and what it said on standard error."""
        at.box.world.sts.arn = by
        at.stack.template.change({"Approvers": approvers})
        self._capsys.readouterr()
        with at.box.gate.unrecorded():
            code = run(line.split())
        return code, " ".join(self._capsys.readouterr().err.split())


def one(at: Scene) -> Proposal:
    (found,) = at.proposals()
    return found


def refusal(doing: str) -> str:
    return f"{doing}: nothing was recorded: role/dev ({DEV}) is not on the list Approvers"


@pytest.mark.parametrize(
    ("line", "doing"),
    [
        ("approve {id}", "approving {id}"),
        ("apply {id}", "applying {id}"),
        ("reject {id}", "rejecting {id}"),
        ("snooze {id}", "putting {id} aside"),
        ("rollback c-1", "rolling back c-1"),
        ("freeze --hard", "freezing hard"),
        ("freeze --off", "lifting the freeze"),
        ("wake chat", "waking chat"),
    ],
)
def test_whoever_the_list_does_not_name_gives_no_order(standing: Scene, said: Said, line: str, doing: str) -> None:
    proposal = one(standing)
    code, text = said(standing, DEV, line.format(id=proposal.id))
    assert code == Exit.FAILED
    assert refusal(doing.format(id=proposal.id)) in text
    assert "at a terminal it lets role/ml-*, user/ada decide" in text
    assert "adds role/dev to the stack's parameter Approvers, or somebody on the list answers in Slack" in text
    assert one(standing).state is ProposalState.PENDING
    with standing.box.gate.unrecorded():
        assert not TableJournal(standing.box.client("dynamodb"), bootstrap.settings().table).switch().by


def test_whoever_the_list_does_not_name_may_look(standing: Scene, said: Said) -> None:
    assert said(standing, DEV, "proposals") == (Exit.NOTHING_TO_DO, "")


@pytest.mark.parametrize(
    ("by", "approvers"), [(ONCALL, MIXED), (ADA, MIXED), (DEV, ""), (ADA, ADA), (ONCALL, "role/a, role/ml-oncall")]
)
def test_whoever_the_list_names_and_everybody_without_a_list_gets_further(
    standing: Scene, said: Said, by: str, approvers: str
) -> None:
    assert "there is no change c-1" in said(standing, by, "rollback c-1", approvers)[1]


def test_a_list_of_slack_users_lets_nobody_decide_at_a_terminal(standing: Scene, said: Said) -> None:
    code, text = said(standing, ONCALL, "rollback c-1", "U1,U2")
    assert code == Exit.FAILED
    assert "the list names Slack users only, so that nobody decides at a terminal" in text


def test_the_list_counts_where_the_table_of_the_stack_is_named(standing: Scene, said: Said) -> None:
    table = bootstrap.settings().table
    code, text = said(standing, DEV, f"rollback c-1 --table {table}")
    assert (code, refusal("rolling back c-1") in text) == (Exit.FAILED, True)


def test_the_list_of_another_stack_says_nothing_of_a_table_that_is_named(standing: Scene, said: Said) -> None:
    text = said(standing, DEV, "rollback c-1 --table other")[1]
    unchecked = "who may decide (the stack's parameter Approvers) was not checked here: the table of the stack"
    assert f"warning: rolling back c-1: {unchecked}" in text
    assert "not other" in text
