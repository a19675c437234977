"""What a person types in place of an id: names of endpoints and beginnings of ids; and what happened to an endpoint."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer import bootstrap
from rightsizer.domain.approvers import caller_name
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.errors import InputError
from rightsizer.terminal import naming
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from tests import samples
from tests.changing.world import NAME, World, world


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A deployed table with one pending proposal."""
    monkeypatch.setenv("COLUMNS", "300")
    with world(proposed={"state": ProposalState.PENDING, "decision": None}, by="cli:somebody") as w:
        monkeypatch.setenv("RIGHTSIZER_TABLE", "t")
        bootstrap.set_clock(lambda: w.box.clock.now)
        yield w
        bootstrap.reset()


def proposals(*rows: tuple[str, str, ProposalState, str]) -> list[Proposal]:
    """Proposals by id, endpoint, state and id of the change, the oldest first."""
    found = []
    for number, (name, endpoint, state, change) in enumerate(rows):
        base = samples.proposal(state=state)
        told = replace(base.recommendation, ref=replace(base.ref, name=endpoint))
        at = base.created_at + timedelta(hours=number)
        found.append(replace(base, id=name, recommendation=told, created_at=at, change_id=change))
    return found


KNOWN = proposals(
    ("p-aaa1" + 16 * "0", "chat", ProposalState.PROVEN, "c-123" + 13 * "0"),
    ("p-aab2" + 16 * "0", "chat", ProposalState.PENDING, ""),
    ("p-bbb3" + 16 * "0", "search", ProposalState.PENDING, ""),
    ("p-bbb4" + 16 * "0", "twice", ProposalState.PROVEN, "c-124" + 13 * "0"),
    ("p-ccc5" + 16 * "0", "twice", ProposalState.APPLYING, "c-9" + 15 * "0"),
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("chat", "p-aab2"), ("p-bbb3", "p-bbb3"), ("p-aaa", "p-aaa1"), ("search", "p-bbb3"), ("twice", "p-ccc5")],
)
def test_a_name_or_the_beginning_of_an_id_means_one_proposal(typed: str, meant: str) -> None:
    assert naming.named_proposal(typed, "approving", lambda: KNOWN)[:6] == meant


def test_several_that_fit_are_listed_and_nothing_is_chosen() -> None:
    with pytest.raises(InputError, match=r"fits several; give more of the id: p-bbb4.*twice.*; p-bbb3.*search"):
        naming.named_proposal("p-bbb", "approving p-bbb", lambda: KNOWN)
    with pytest.raises(InputError, match=r"these can be named: p-bbb3.*p-aab2"):
        naming.named_proposal("p-", "approving p-", lambda: KNOWN)
    with pytest.raises(InputError, match=r"fits several.*c-9.*applying.*c-124.*proven"):
        naming.named_change("twice", "rolling back twice", lambda: KNOWN)


@pytest.mark.parametrize(("typed", "meant"), [("serch", "search"), ("sea", "search"), ("chatt", "chat"), ("zzzz", "")])
def test_a_name_that_is_nearly_right_is_answered_by_the_name_that_was_meant(typed: str, meant: str) -> None:
    assert naming.did_you_mean(typed, ["search", "chat", "chat"]) == (f" (did you mean {meant}?)" if meant else "")
    with pytest.raises(InputError) as refused:
        naming.named_proposal(typed, f"approving {typed}", lambda: KNOWN)
    assert ("these can be named" in str(refused.value)) == (not meant), "the list is for whoever is nowhere near"


def test_whoever_takes_back_or_reads_an_unknown_name_is_told_where_the_names_are(
    asked: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["rollback", "nobody"], ["history", NAME[:-1]], ["explain", "nobody"], ["explain", "nobody-"]):
        assert run([*command, "--region", asked.box.region]) == Exit.FAILED
        said = " ".join(capsys.readouterr().err.split())
        assert f"--region {asked.box.region} lists" in said, command
        assert (f"did you mean {NAME}?" in said) == (command[0] == "history")


def test_a_whole_id_costs_no_look_at_the_table() -> None:
    def never() -> list[Proposal]:
        raise AssertionError("a whole id was looked up")

    assert naming.named_proposal("p-" + 20 * "a", "approving", never) == "p-" + 20 * "a"
    assert naming.named_change("c-" + 16 * "a", "rolling back", never) == "c-" + 16 * "a"


def test_a_change_is_meant_by_its_endpoint_and_by_the_beginning_of_its_id() -> None:
    assert naming.named_change("chat", "rolling back", lambda: KNOWN)[:5] == "c-123"
    assert naming.named_change("c-124", "rolling back", lambda: KNOWN)[:5] == "c-124"
    assert naming.named_change("errand-of-a-group", "rolling back", lambda: KNOWN) == "errand-of-a-group"


def test_an_endpoint_whose_change_has_not_begun_is_no_unknown_change() -> None:
    waiting = replace(samples.proposal(), change_id="")
    history = f"rightsizer history {waiting.ref.name} --region {waiting.ref.region}"
    with pytest.raises(InputError, match=f"no change of {waiting.ref.name} has begun; {history} tells"):
        naming.named_change(waiting.ref.name, "rolling back", lambda: [waiting])


def test_an_endpoint_is_approved_and_taken_back_by_its_name(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["approve", NAME, "--json"]) == Exit.NOTHING_TO_DO
    assert json.loads(capsys.readouterr().out)["proposal"]["id"] == asked.proposal.id
    asked.start()
    asked.run(12)
    assert run(["rollback", NAME, "--json"]) == Exit.NOTHING_TO_DO
    assert json.loads(capsys.readouterr().out)["change"]["endpoint"] == NAME


def test_the_history_says_who_decided_where_and_what_was_done(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    run(["approve", NAME])
    asked.start()
    asked.run(12)
    capsys.readouterr()
    assert run(["history", NAME, "--json"]) == Exit.NOTHING_TO_DO
    events = json.loads(capsys.readouterr().out)["events"]
    assert [one["at"] for one in events] == sorted(one["at"] for one in events)
    assert [one["event"] for one in events[:2]] == ["proposed", "decided"]
    assert events[1]["from"] == "terminal"
    assert events[1]["by"].startswith("arn:aws:sts::")
    assert any(one["text"].startswith("UpdateEndpoint ") for one in events)
    run(["history", NAME])
    shown = capsys.readouterr().out
    assert "session (role apply), terminal" in shown
    assert f"UpdateEndpoint {NAME} to" in shown


def test_a_click_and_a_rejection_keep_their_person_and_reason(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    decided = Decision(ProposalState.REJECTED, "slack:U0ADA", asked.box.clock.now, "needed in May")
    from rightsizer.aws import decisions
    from rightsizer.aws.table import Table

    decisions.decide(Table(asked.box.client("dynamodb"), "t"), asked.proposal.id, decided, asked.box.clock.now)
    run(["history", NAME, "--json"])
    (event,) = [e for e in json.loads(capsys.readouterr().out)["events"] if e["event"] == "decided"]
    assert (event["by"], event["from"], event["text"]) == ("U0ADA", "Slack", "rejected: needed in May")


def test_an_endpoint_that_the_stack_does_not_know_has_no_history(
    asked: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["history", "nobody"]) == Exit.FAILED
    assert "knows nothing about an endpoint of this name" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("by", "shown"),
    [
        ("arn:aws:sts::111122223333:assumed-role/admin/ada", "ada (role admin)"),
        ("arn:aws:iam::111122223333:user/eng/bob", "user eng/bob"),
        ("U0ADA", "U0ADA"),
    ],
)
def test_a_caller_is_named_by_what_a_person_recognises(by: str, shown: str) -> None:
    assert caller_name(by) == shown


def test_a_beginning_that_every_id_has_is_called_too_short() -> None:
    with pytest.raises(InputError, match=f"'p-' is too short; give at least {naming.SHORTEST} characters of the id"):
        naming.named_proposal("p-", "approving", lambda: KNOWN)
