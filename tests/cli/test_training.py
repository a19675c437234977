"""The command `training` on a simulated month of 200 finished jobs."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from rightsizer.advice.market import snapshot
from rightsizer.advice.training_history import advise_runs
from rightsizer.aws.session import Session
from rightsizer.aws.training import TrainingHistory
from rightsizer.errors import InputError
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from rightsizer.terminal.training import training_chart
from sandbox.account import Sandbox
from sandbox.spot import Spot, add_spot
from sandbox.training_history import WORK, seed_processing, seed_training


@pytest.fixture
def spot(box: Sandbox) -> Spot:
    return add_spot(box)


def work(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = run(["training", "--region", "eu-west-1", "--json", *arguments])
    found = json.loads(capsys.readouterr().out)
    return code, {"jobs": found["jobs"], **{each["name"]: each for each in found["work"]}}


def finding(found: dict[str, Any], name: str, rule: str) -> dict[str, Any]:
    (made,) = [each for each in found[name]["findings"] if rule in each["reason"]["source"]]
    assert isinstance(made, dict)
    return made


def test_a_month_of_200_jobs_is_compared_and_each_works_fault_is_found(
    spot: Spot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert seed_training(spot.box, spot.jobs) == 200 == sum(each.runs for each in WORK)
    code, found = work(capsys)
    assert (code, found["jobs"]) == (Exit.SAVINGS_FOUND, 200)
    assert finding(found, "churn-xgboost", "rule C2")["instance_type"].startswith(("ml.m", "ml.c"))
    assert finding(found, "rank-nightly", "rule C2")["action"] == "TEST"
    assert finding(found, "resnet-train", "rule P2")["action"] == "PROPOSE"
    assert "0 of 20 warm pools" in finding(found, "segment-study", "rule P8")["reason"]["text"]
    assert finding(found, "speech-encoder", "rule R3")["instance_type"] == "ml.g4dn.xlarge"
    assert found["llm-sft"]["findings"] == []
    assert (found["llm-sft"]["interruptions"], found["segment-study"]["failed"]) == (32, 4)
    types = {each["instance_type"]: each["is_on_frontier"] for each in found["bert-finetune"]["results"]}
    assert types == {"ml.g5.2xlarge": True, "ml.g5.12xlarge": True, "ml.g4dn.xlarge": False}


def test_each_work_says_in_json_what_it_could_save(spot: Spot, capsys: pytest.CaptureFixture[str]) -> None:
    seed_training(spot.box, spot.jobs)
    _, found = work(capsys)
    nightly = found["rank-nightly"]
    assert nightly["saving_usd"] == max(each["usd_per_run"] for each in nightly["findings"]) * nightly["runs"] > 0
    assert found["llm-sft"]["saving_usd"] == 0


def test_a_chart_that_cannot_be_drawn_or_written_is_refused_before_a_job_is_read(
    spot: Spot, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert run(["training", "--region", "eu-west-1", "--png", str(tmp_path / "a.png")]) == Exit.FAILED
    monkeypatch.setitem(sys.modules, "matplotlib", MagicMock())
    monkeypatch.setitem(sys.modules, "matplotlib.figure", MagicMock())
    for path in (tmp_path, tmp_path / "none" / "a.png"):
        assert run(["training", "--region", "eu-west-1", "--png", str(path)]) == Exit.FAILED
    said = capsys.readouterr().err
    assert "pip install 'rightsizer[pictures]'" in said
    assert said.count("it cannot be written there") == 2
    assert spot.box.calls.of("sagemaker") == []


def test_the_page_names_types_hours_prices_and_reasons(spot: Spot, capsys: pytest.CaptureFixture[str]) -> None:
    seed_training(spot.box, spot.jobs)
    assert run(["training", "--region", "eu-west-1", "--most", "150"]) == Exit.SAVINGS_FOUND
    page = capsys.readouterr().out
    for text in (
        "150 finished training and processing jobs of 30 days",
        "USD/run",
        "no other is quicker and cheaper",
        "[rule P2",
    ):
        assert text in page


def test_the_chart_has_a_point_for_each_type_of_a_work(spot: Spot) -> None:
    seed_training(spot.box, spot.jobs)
    now = spot.box.clock.now
    runs = TrainingHistory(Session("eu-west-1")).runs(now - timedelta(days=30), now, 500)
    chart = training_chart(advise_runs(runs, snapshot("eu-west-1")), "eu-west-1", 30)
    points = {line.name: line.points for line in chart.lines}
    assert len(points["bert-finetune"]) == 3
    assert sorted(points["bert-finetune"]) == list(points["bert-finetune"])
    assert any(text == "1 x ml.g4dn.xlarge" for _, _, text in chart.marks)
    with pytest.raises(InputError, match="nothing to draw"):
        training_chart((), "eu-west-1", 30)


def test_jobs_that_run_or_are_older_are_left_out(spot: Spot, capsys: pytest.CaptureFixture[str]) -> None:
    spot.jobs.train("still-running")
    spot.jobs.train("old", hours_ago=40 * 24, TrainingJobStatus="Completed", TrainingTimeInSeconds=3600)
    code, found = work(capsys)
    assert (code, found) == (Exit.NOTHING_TO_DO, {"jobs": 0})


def test_a_type_without_a_price_is_said(spot: Spot, capsys: pytest.CaptureFixture[str]) -> None:
    resources = {"InstanceType": "ml.p99.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1}
    spot.jobs.train("new", TrainingJobStatus="Completed", TrainingTimeInSeconds=3600, ResourceConfig=resources)
    assert run(["training", "--region", "eu-west-1"]) == Exit.NOTHING_TO_DO
    assert "no price is known of ml.p99.xlarge" in capsys.readouterr().out


@pytest.mark.parametrize(
    "action", ["sagemaker:ListTrainingJobs", "sagemaker:DescribeTrainingJob", "cloudwatch:GetMetricData"]
)
def test_a_missing_permission_is_named(spot: Spot, capsys: pytest.CaptureFixture[str], action: str) -> None:
    seed_training(spot.box, spot.jobs)
    spot.box.deny(action)
    assert run(["training", "--region", "eu-west-1"]) == Exit.FAILED
    assert action in capsys.readouterr().err


def test_processing_jobs_are_judged_as_runs_without_spot(spot: Spot, capsys: pytest.CaptureFixture[str]) -> None:
    assert seed_processing(spot.box, spot.jobs) == 32
    code, found = work(capsys)
    assert (code, found["jobs"]) == (Exit.SAVINGS_FOUND, 32)
    daily, weekly = found["features-daily"], found["embed-weekly"]
    assert daily["is_processing"]
    assert [each["action"] for each in daily["findings"]] == ["TEST"]
    assert finding(found, "embed-weekly", "rule C2")["instance_type"].startswith(("ml.m", "ml.c"))
    assert weekly["results"][0]["hours"] == pytest.approx(2.0, rel=0.1)
    assert not [each for one in (daily, weekly) for each in one["findings"] if "Spot" in each["reason"]["text"]]


@pytest.mark.parametrize("action", ["sagemaker:ListProcessingJobs", "sagemaker:DescribeProcessingJob"])
def test_without_the_right_to_read_processing_jobs_the_training_jobs_are_still_judged(
    spot: Spot, capsys: pytest.CaptureFixture[str], action: str
) -> None:
    seed_training(spot.box, spot.jobs)
    seed_processing(spot.box, spot.jobs)
    spot.box.deny(action)
    assert run(["training", "--region", "eu-west-1", "--json"]) == Exit.SAVINGS_FOUND
    out, err = capsys.readouterr()
    assert json.loads(out)["jobs"] == 200
    assert "processing jobs are left out" in err
    assert action in err


def test_the_owner_of_each_work_is_read_from_tags_a_hundred_jobs_a_request(
    spot: Spot, capsys: pytest.CaptureFixture[str]
) -> None:
    seed_training(spot.box, spot.jobs)
    seed_processing(spot.box, spot.jobs)
    _, found = work(capsys)
    owners = {name: found[name]["owner"] for name in ("churn-xgboost", "resnet-train", "rank-nightly", "llm-sft")}
    assert owners == {"churn-xgboost": "growth", "resnet-train": "vision", "rank-nightly": "search", "llm-sft": ""}
    assert found["features-daily"]["owner"] == "growth"
    assert len(spot.box.calls.of("resourcegroupstaggingapi", "GetResources")) == 3
    assert run(["training", "--region", "eu-west-1"]) == Exit.SAVINGS_FOUND
    page = capsys.readouterr().out
    assert "resnet-train (owner vision): 30 runs" in page
    assert "llm-sft: 16 runs" in page


@pytest.mark.parametrize("word", ["off", "OFF "])
def test_a_work_whose_newest_run_is_tagged_off_is_shown_and_proposed_nothing(
    spot: Spot, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    seed_training(spot.box, spot.jobs)
    ordered = sorted((name for name in spot.jobs.jobs if name.startswith("churn-xgboost")), reverse=True)
    newest, oldest = (spot.jobs.jobs[name]["TrainingJobArn"] for name in (ordered[0], ordered[-1]))
    spot.box.world.tags.put(oldest, {"rightsizer:mode": word})
    assert work(capsys)[1]["churn-xgboost"]["findings"]
    spot.box.world.tags.put(newest, {"rightsizer:mode": word})
    _, found = work(capsys)
    churn = found["churn-xgboost"]
    assert (churn["is_opted_out"], churn["findings"], churn["saving_usd"], churn["runs"]) == (True, [], 0, 40)
    assert found["resnet-train"]["findings"]
    run(["training", "--region", "eu-west-1"])
    assert "nothing is proposed: the tag rightsizer:mode of the newest run says off" in capsys.readouterr().out


def test_tags_that_cannot_be_read_are_told_once_and_stop_nothing(
    spot: Spot, capsys: pytest.CaptureFixture[str]
) -> None:
    seed_training(spot.box, spot.jobs)
    spot.box.deny("tag:GetResources")
    assert run(["training", "--region", "eu-west-1", "--json"]) == Exit.SAVINGS_FOUND
    out, err = capsys.readouterr()
    assert {each["owner"] for each in json.loads(out)["work"]} == {""}
    assert err.count("owners and opt-outs of some jobs are not known") == 1
    assert "tag:GetResources" in err
    assert spot.box.calls.of("sagemaker", "ListTags") == []
