"""`make replay`: what it runs, what it says without a referee, and that nothing of ours knows the referee's truth."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.replay import ACCOUNTS, POLICIES, TO_BEAT, commands, main
from rightsizer.domain.policy import Policy

ROOT = Path(__file__).parents[2]
HARM = ("harmed", "out of memory", "roll-backs")


def test_without_the_referee_one_sentence_says_so(tmp_path: Path) -> None:
    environment = os.environ | {"RIGHTSIZER_REFEREE": str(tmp_path), "PYTHONPATH": f"shared{os.pathsep}."}
    command = [sys.executable, "-m", "bench.replay"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    sentence = f"no referee in {tmp_path}: set RIGHTSIZER_REFEREE to its folder to replay the decision engine\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)


def test_seeds_that_are_no_numbers_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--seeds", "1 to 3"])
    assert "'1 to 3': seeds are whole numbers with commas between them, as in 1,2,3" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")
def test_make_passes_seeds_and_speed_on() -> None:
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}

    def said(*words: str) -> str:
        command = ["make", "-n", "--no-print-directory", "replay", *words]
        done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1].partition("python ")[2]

    assert said().split() == ["-m", "bench.replay"]
    assert said("FAST=1", "SEEDS=3,4").split() == ["-m", "bench.replay", "--fast", "--seeds", "3,4"]


def test_the_rules_of_the_field_run_beside_what_ships_on_the_same_seeds_and_days() -> None:
    for fast in (False, True):
        runs = commands((), ACCOUNTS, "3,4", fast)
        assert [run[1] for run in runs] == ACCOUNTS.split(",")
        for run in runs:
            assert run[run.index("--seeds") + 1] == "3,4"
            assert [path for path in POLICIES.values() if path not in run] == []
            assert ("--baselines" in run) is not fast
            assert [path for path in TO_BEAT if (path in run) is not fast] == []


def test_a_policy_is_chosen_by_name_and_played_after_a_week(capsys: pytest.CaptureFixture[str]) -> None:
    gentd, lora = commands(["shipped-auto", "shipped-approved"], "gentd,lora", "2", fast=False)
    assert gentd == [
        "--account", "gentd", "--seeds", "2", "--days", "15", "--warmup", "7",
        "--policy", "bench.policy:ShippedAuto", "--policy", "bench.policy:ShippedApproved",
    ]  # fmt: skip
    assert lora[4:8] == ["--days", "12", "--warmup", "5"]
    assert commands(["shipped-auto"], "gentd", "1", fast=True)[0][8:] == [
        "--fast",
        "--policy",
        "bench.policy:ShippedAuto",
    ]
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    said = capsys.readouterr().out
    assert [name for name in POLICIES if name not in said] == []


def test_only_what_a_user_can_switch_on_is_played() -> None:
    assert set(POLICIES) == {"shipped-auto", "shipped-approved"}
    for path in POLICIES.values():
        module, _, name = path.partition(":")
        assert getattr(importlib.import_module(module), name).policy == Policy()


def test_what_is_saved_stands_beside_what_was_harmed() -> None:
    page = (ROOT / "docs" / "decision-quality.md").read_text()
    heads = [line for line in page.splitlines() if line.startswith("| account") and "HFS" in line]
    assert len(heads) >= 2
    for head in heads:
        assert [word for word in HARM if word not in head] == [], head


def test_nothing_of_ours_reads_more_of_the_referee_than_its_actions() -> None:
    asked = re.findall(r"referee\.[a-z_]+", (ROOT / "bench" / "policy.py").read_text())
    assert set(asked) == {"referee.actions"}
    paths = [path for folder in ("shared/rightsizer", "functions") for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in paths if re.search(r"\breferee\b", path.read_text())] == []


def test_the_adapter_is_typed_by_protocols_of_its_own() -> None:
    for name in ("policy.py", "views.py"):
        text = (ROOT / "bench" / name).read_text()
        assert re.search(r"\bAny\b|^\s*(from|import) referee", text, re.MULTILINE) is None, name
