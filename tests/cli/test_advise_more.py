"""The command `advise`: its questions, templates and chart."""

import io
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml

from rightsizer.advice.advise import advise
from rightsizer.advice.describe import workload_of
from rightsizer.advice.hosting import HOLD_H
from rightsizer.render import pictures
from rightsizer.terminal.advise_page import break_even_chart
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from rightsizer.terminal.workload import ask


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")


CPU = ["--task", "real-time", "--kind", "classical", "--seconds-per-request", "0.2"]


def dialogue(*answers: str) -> tuple[dict[str, object], list[str]]:
    """What is understood of the answers, and what the person sees."""
    lines: Iterator[str] = iter(answers)
    seen: list[str] = []

    def read(prompt: str) -> str:
        seen.append(prompt)
        return next(lines)

    given = dict(ask(read, seen.append))
    assert next(lines, None) is None, "an answer was not asked for"
    return given, seen


def test_a_service_is_described_by_answers_and_the_command_line_is_told() -> None:
    given, seen = dialogue("llama-3-8b", "", "5", "", "9000", "dev", "eu-west-1")
    assert given == {
        "model": "llama-3-8b",
        "task": "real-time",
        "rate": "5",
        "p95_ms": "9000",
        "environment": "dev",
        "region": "eu-west-1",
    }
    assert "rightsizer advise --model llama-3-8b --task real-time --rate 5" in seen[-1]


def test_the_told_command_line_gives_the_same_description(capsys: pytest.CaptureFixture[str]) -> None:
    _, seen = dialogue("", "training", "llm", "13B", "1e9", "", "no", "", "")
    told = seen[-1].partition(": ")[2]
    assert run([*shlex.split(told)[1:], "--json"]) == Exit.NOTHING_TO_DO
    workload = json.loads(capsys.readouterr().out)["workload"]
    assert workload["model"] == {"kind": "llm", "parameters": "13B"}
    assert workload["constraints"]["checkpoints"] is False


def test_a_wrong_answer_is_explained_and_asked_again() -> None:
    given, seen = dialogue("", "dance", "training", "llm", "lots", "7B", "", "", "maybe", "yes", "", "xx-1", "")
    assert given["parameters"] == "7B"
    assert given["checkpoints"] is True
    said = " ".join(seen)
    for text in ("must be one of", "7e9 or 7B", "neither yes nor no", "no prices are known for the Region 'xx-1'"):
        assert text in said


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        (("", "preprocessing", "100", "", ""), "GiB of data"),
        (("", "asynchronous", "vision", "1B", "90", "1000", "", ""), "seconds does a request"),
        (("", "classical-ml", "10", "", ""), "GiB of data"),
        (("xgboost", "training", "10", "", ""), "GiB of data"),
        (("deepar", "real-time", "", "", "", "", ""), "requests a second"),
        (("", "notebook", "", ""), "AWS Region"),
        (("our-own", "real-time", "llm", "8B", "", "", "", "", ""), "How many parameters"),
        (("tiiuae/falcon-40b", "real-time", "", "", "", "", ""), "requests a second"),
    ],
)
def test_each_task_has_its_questions(answers: tuple[str, ...], asked: str) -> None:
    _, seen = dialogue(*answers)
    assert any(asked in line for line in seen)


class Terminal(io.StringIO):
    """Standard input of a person."""

    def isatty(self) -> bool:
        return True


def test_the_command_asks_a_person_and_not_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("\npreprocessing\n100\n\n\n"))
    assert run(["advise", "--json"]) == Exit.NOTHING_TO_DO
    out, err = capsys.readouterr()
    assert json.loads(out)["workload"]["data"] == {"size_gib": "100"}
    assert "What do you want to run?" in err
    monkeypatch.setattr(sys, "stdin", io.StringIO("preprocessing\n"))
    assert run(["advise"]) == Exit.FAILED
    assert "for example rightsizer advise --task real-time" in capsys.readouterr().err


def test_the_end_of_input_leaves_the_questions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("real-time\n"))
    assert run(["advise"]) == Exit.INTERRUPTED
    assert "nothing was changed" in capsys.readouterr().err


def test_a_template_is_all_that_standard_output_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", *CPU, "--rate", "50", "--template", "cloudformation"]) == Exit.NOTHING_TO_DO
    assert yaml.safe_load(capsys.readouterr().out)["AWSTemplateFormatVersion"] == "2010-09-09"
    assert run(["advise", *CPU, "--rate", "50", "--template", "terraform", "--json"]) == Exit.NOTHING_TO_DO
    assert "aws_sagemaker_endpoint" in json.loads(capsys.readouterr().out)["template"]


def test_the_chart_shows_where_the_cheapest_hosting_changes() -> None:
    described = {"task": "real-time", "model": {"kind": "classical"}, "data": {"seconds_per_request": 0.2}}
    chart = break_even_chart(workload_of(described), advise(described))
    names = [line.name for line in chart.lines]
    assert {"real-time", "serverless"} <= set(names)
    at = {line.name: dict(line.points) for line in chart.lines}
    (crossing, cost, text) = chart.marks[-1]
    assert text.startswith("real-time from")
    before, after = max(x for x in at["serverless"] if x < crossing), min(x for x in at["serverless"] if x >= crossing)
    assert at["serverless"][before] < at["real-time"][before] == pytest.approx(cost, abs=0.01)
    assert at["serverless"][after] >= at["real-time"][after]


@pytest.mark.parametrize(
    ("described", "said"),
    [
        ({"model": {"kind": "classical"}, "data": {"seconds_per_request": 40}}, "serverless is cheaper"),
        ({"model": {"name": "llama-3-8b"}}, "giving the instance back"),
        (
            {"model": {"kind": "vision", "parameters": 1e9}, "data": {"seconds_per_request": 5}},
            "giving the instance back",
        ),
    ],
)
def test_the_chart_and_the_note_name_the_same_break_even(described: dict[str, Any], said: str) -> None:
    whole = {"task": "real-time", **described}
    answer = advise(whole)
    note = next(each.text for each in answer.notes if each.text.startswith(said))
    marks = [text for _, _, text in break_even_chart(workload_of(whole), answer).marks]
    (figure,) = re.findall(r"below ([\d,]+) requests", note)
    assert f"real-time from {figure}" in marks


def test_the_break_even_is_where_both_cost_the_same() -> None:
    answer = advise({"task": "real-time", "model": {"name": "llama-3-8b"}})
    alone = 730 / (HOLD_H + 1 / 3600)
    assert any(f"below {alone:,.0f} requests a month that come alone" in each.text for each in answer.notes)


def test_a_chart_without_matplotlib_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert run(["advise", *CPU, "--png", str(tmp_path / "a.png")]) == Exit.FAILED
    assert "pip install 'rightsizer[pictures]'" in capsys.readouterr().err


def test_a_chart_has_every_line_mark_and_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    drawn = MagicMock()
    drawn.Figure.return_value.savefig.side_effect = lambda file, **_: file.write(b"picture")
    monkeypatch.setitem(sys.modules, "matplotlib", MagicMock())
    monkeypatch.setitem(sys.modules, "matplotlib.figure", drawn)
    assert run(["advise", *CPU, "--png", str(tmp_path / "a.png")]) == Exit.NOTHING_TO_DO
    assert (tmp_path / "a.png").read_bytes() == b"picture"
    axes = drawn.Figure.return_value.subplots.return_value
    labels = {call.kwargs.get("label") for call in axes.plot.call_args_list}
    assert {"real-time", "serverless"} <= labels
    assert axes.annotate.call_count >= 1
    axes.set_xscale.assert_called_once_with("log")
    assert "chart written to" in capsys.readouterr().err


def test_a_chart_is_a_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra pictures is not installed: nothing is drawn")
    assert run(["advise", *CPU, "--png", str(tmp_path / "a.png")]) == Exit.NOTHING_TO_DO
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert run(["advise", *CPU, "--png", str(tmp_path / "none" / "a.png")]) == Exit.FAILED
    assert "writing the chart" in capsys.readouterr().err


def test_a_cluster_has_no_chart_and_is_not_asked_for_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    asked = ["--from-prometheus", "http://127.0.0.1:1", "--png", str(tmp_path / "a.png")]
    assert run(["advise", *asked]) == Exit.FAILED
    assert "leave it out for a cluster" in capsys.readouterr().err


def test_a_job_has_no_chart_over_traffic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    assert run(["advise", "--task", "training", "--parameters", "1B", "--png", str(tmp_path / "a")]) == Exit.FAILED
    assert "belongs to a service" in capsys.readouterr().err


def test_pictures_load_no_library_before_they_draw() -> None:
    assert not hasattr(pictures, "Figure")
