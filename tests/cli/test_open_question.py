"""`scan` and `explain` know what the stack asked: while a question is open the terminal answers as its proposal."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.terminal.run import run
from tests.doors.scene import BIG, PROPOSE, Scene, scene


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[Scene, Proposal]]:
    """A stack that asked yesterday about the second of its options, which saves a little less than the first."""
    with scene(slack=False) as at:
        at.add(BIG, tags=PROPOSE | {"rightsizer:min-instances": "2"})
        at.drive(BIG)
        at.sweep()
        (first,) = at.proposals(ProposalState.PENDING)
        found = first.recommendation
        best, other = found.options[:2]
        assert best.target != other.target
        assert found.usd_per_month is not None
        assert best.saving_usd_per_month - other.saving_usd_per_month < found.usd_per_month / 10
        turned = replace(found, options=(other, best, *found.options[2:]))
        with at.box.gate.unrecorded():
            bootstrap.store().save(turned, replace(first, id="p-asked-yesterday", recommendation=turned))
        at.pass_time(days=1)
        yield at, replace(first, recommendation=turned)


def said(capsys: pytest.CaptureFixture[str], *line: str) -> tuple[Any, str]:
    capsys.readouterr()
    run([*line, "--json"])
    told = capsys.readouterr()
    return json.loads(told.out), " ".join(told.err.split())


def test_the_terminal_answers_as_the_proposal_that_waits(
    asked: tuple[Scene, Proposal], capsys: pytest.CaptureFixture[str]
) -> None:
    at, proposal = asked
    chosen = proposal.recommendation.chosen_option
    assert chosen is not None
    explained, _ = said(capsys, "explain", BIG)
    scanned, _ = said(capsys, "scan")
    (row,) = scanned["endpoints"]
    assert explained["recommended"]["instance_type"] == chosen.target.instance_type
    assert row["recommended"]["instance_type"] == chosen.target.instance_type
    at.sweep()
    stays = at.recommendations()[BIG].chosen_option
    assert stays is not None
    assert stays.target == chosen.target, "and the stack itself asks the same on the day after"


def test_a_table_that_may_not_be_read_is_said_and_the_rest_is_answered(
    asked: tuple[Scene, Proposal], capsys: pytest.CaptureFixture[str]
) -> None:
    at, _ = asked
    at.box.gate.deny("dynamodb:BatchGetItem")
    try:
        found, errors = said(capsys, "scan")
    finally:
        at.box.gate.allow("dynamodb:BatchGetItem")
    assert found["endpoints"][0]["recommended"] is not None
    assert "what the stack changed and asked is not known" in errors
