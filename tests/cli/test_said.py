"""What `scan` and `explain` say beside the figures: what rightsizer does next, and each name once."""

import re

import pytest

from rightsizer.terminal.run import run
from sandbox.account import Sandbox
from tests.cli.conftest import use


def test_no_inside_word_stands_for_what_follows(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.add_endpoint("idle", "ml.g5.2xlarge")
    use(box, "idle", gpu=0.0, requests=0)
    run(["scan"])
    listed = " ".join(capsys.readouterr().out.split())
    assert "be deleted by its owner; needs your approval" in listed
    run(["explain", "idle"])
    said = capsys.readouterr().out
    assert "What follows" in said
    assert re.search(r"\n  now +needs your approval: rightsizer then watches it", said)
    lines = [line.strip() for line in said.partition("Excluded")[2].splitlines()]
    assert lines
    assert [line for line in lines if line.count(line.partition(":")[0]) > 1 and line.startswith("ml.")] == []
