"""The command `advise`: flags, files, JSON, the page for a person, exit codes and errors. It reads no account."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rightsizer.advice.advise import advise
from rightsizer.advice.workload import Task
from rightsizer.terminal.advise_page import page
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from rightsizer.terminal.workload import FLAGS


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = run(["advise", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_flags_describe_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = answer(
        capsys, "--task", "training", "--kind", "llm", "--parameters", "0.5B", "--goal", "experiment", "--ask", "spot"
    )
    assert code == Exit.NOTHING_TO_DO
    assert found["version"] == 1
    assert found["workload"]["model"] == {"kind": "llm", "parameters": "0.5B"}
    first = found["advice"]["options"][0]
    assert (first["instance_type"], first["hardware"], first["hosting"]) == ("ml.g4dn.xlarge", "GPU-G", "JOB")
    assert first["cost"]["usd_per_hour"] == "0.7364"
    assert first["cost"]["region"] == "us-east-1"


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_a_file_describes_a_workload_and_flags_go_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    described = {"task": "real-time", "model": {"kind": "classical"}, "traffic": {"requests_per_second": 100}}
    path = tmp_path / f"workload{suffix}"
    path.write_text(json.dumps(described))
    code, found = answer(capsys, "--file", str(path), "--region", "eu-west-1")
    assert code == Exit.NOTHING_TO_DO
    assert found["workload"]["constraints"] == {"region": "eu-west-1"}
    assert found["advice"]["options"][0]["hardware"].startswith("CPU")


def test_the_page_shows_options_memory_reasons_and_what_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(
        [
            "advise",
            "--task",
            "real-time",
            "--kind",
            "llm",
            "--model",
            "llama-3-8b",
            "--rate",
            "2",
            "--ask",
            "serverless",
        ]
    )
    page = capsys.readouterr().out
    assert code == Exit.NOTHING_TO_DO
    for text in ("Cost:", "Advised:", "KV cache", "tokens a second", "no GPU", "to be sure:", "USD a month by"):
        assert text in page


@pytest.mark.parametrize("width", [80, 120])
def test_what_to_buy_is_the_first_line_and_the_table_breaks_no_word(width: int) -> None:
    answer = advise({"task": "real-time", "model": {"kind": "llm", "name": "llama-3-8b"}})
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(page(answer, width))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    first = answer.options[0]
    assert shown.startswith(f"Advised: 1 x {first.instance_type}, real-time endpoint, On-Demand\nCost:    USD ")
    rows = shown.splitlines()
    for number, option in enumerate(answer.options[:6], 1):
        row = next(each for each in rows if each.startswith(f"{number}  "))
        assert option.instance_type in row
        assert f"{option.cost.usd_per_month:,.2f}" in row
    assert max(map(len, rows)) <= width
    assert ("USD/hour" in shown) is (width == 120)


def test_no_word_of_the_program_is_left_on_the_page() -> None:
    for task in ("real-time", "asynchronous", "batch-inference", "fine-tuning"):
        console = Console(width=100, file=io.StringIO(), force_terminal=False)
        console.print(page(advise({"task": task, "model": {"name": "llama-3-8b"}}), 100))
        shown = console.file.getvalue()  # type: ignore[attr-defined]
        assert not re.search(r"REALTIME|ASYNC|BATCH|PROPOSE|APPLY|GPU-[GP]|CPU-", shown)
        assert "https://docs.aws.amazon.com/" in shown, "a rule is told with its source"


def test_what_cannot_be_is_said_and_ends_with_20(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["advise", "--task", "real-time", "--kind", "llm", "--parameters", "9000B"])
    assert code == Exit.INCOMPLETE
    assert "holds 9000 billion parameters" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--task real-time"),
        (["--task", "dance"], "must be one of"),
        (["--task", "training", "--parameters", "lots"], "7e9 or 7B"),
        (["--file", "/nowhere/workload.yaml"], "reading /nowhere/workload.yaml"),
    ],
)
def test_what_is_wrong_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert run(["advise", *arguments]) == Exit.FAILED
    assert says in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("text", ["task: [", "- a\n- b\n", "task: training\nmodel: 7\n"])
def test_a_file_that_cannot_be_understood_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(text)
    assert run(["advise", "--file", str(path), "--parameters", "7B"]) == Exit.FAILED
    assert "error:" in capsys.readouterr().err


def test_the_help_of_task_names_every_task() -> None:
    _, said = FLAGS["--task"]
    assert {task.value for task in Task} <= set(said.rstrip(".").split(", "))


def test_json_has_the_rules_that_the_answer_cites(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = answer(capsys, "--task", "real-time", "--kind", "llm", "--model", "llama-3-8b", "--rate", "2")
    cited = {reason["source"] for option in found["advice"]["options"] for reason in option["reasons"]}
    assert {source for source in cited if source.startswith("rule ") and "," not in source} <= set(found["rules"])
    assert found["rules"]["rule C3"]["url"].startswith("https://docs.aws.amazon.com/")


def test_the_rules_can_be_listed_without_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", "--rules"]) == Exit.NOTHING_TO_DO
    said = capsys.readouterr().out
    assert "rule M1: Serving needs the weights times 1.2" in said
    assert "https://blog.eleuther.ai/transformer-math/" in said
    assert run(["advise", "--rules", "--json"]) == Exit.NOTHING_TO_DO
    assert json.loads(capsys.readouterr().out)["rules"]["rule P1"]["name"] == "SPOT_FOR_TRAINING"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--checkpoints", "--no-checkpoints", "--task", "training"], "say the opposite of each other"),
        (["--namespace", "serving", "--task", "real-time"], "give --from-prometheus URL with it"),
        (
            ["--from-prometheus", "http://127.0.0.1:1", "--template", "terraform"],
            "--template describe a single workload",
        ),
        (["--from-prometheus", "http://127.0.0.1:1", "--rate", "5"], "--rate describe a single workload"),
        (["--file", "/nowhere/a.yaml"], "reading /nowhere/a.yaml: No such file or directory; give"),
    ],
)
def test_what_does_not_go_together_is_said_and_not_ignored(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert run(["advise", *arguments]) == Exit.FAILED
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("described", "says"),
    [
        (
            {"task": "real-time", "objectives": {"deadline_hours": 3}},
            "objectives.deadline_hours is not used for real-time",
        ),
        (
            {"task": "real-time", "data": {"tokens": 1e9}, "constraints": {"checkpoints": True}},
            "checkpoints are not used",
        ),
        ({"task": "training", "traffic": {"requests_per_second": 5}}, "requests_per_second is not used for training"),
    ],
)
def test_a_field_that_says_nothing_of_the_task_is_named(described: dict[str, Any], says: str) -> None:
    assert says in advise({**described, "model": {"name": "llama-3-8b"}}).words


def test_a_guess_is_not_called_advised(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", "--task", "real-time", "--kind", "llm"]) == Exit.INCOMPLETE
    shown = capsys.readouterr().out
    assert "No advice before the size of the model is known" in shown
    assert "Advised:" not in shown
