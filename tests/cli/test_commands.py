"""The commands of a terminal against a simulated account: scan, explain, doctor, and their exit codes."""

import json
import platform
import runpy
import sys
import threading
import time
import tomllib
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from rich.console import Console

from rightsizer import __version__, cli
from rightsizer.aws.session import Session, request_threads
from rightsizer.bootstrap import reading_ports
from rightsizer.domain.policy import Policy
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from rightsizer.terminal.survey import survey
from rightsizer.terminal.tables import listing
from sandbox.account import Sandbox
from tests.cli.conftest import use

ROOT = Path(__file__).parents[2]


def scan(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    code = run(["scan", "--json", *arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


def rows(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["endpoint"]: row for row in found["endpoints"]}


def test_a_scan_finds_the_idle_endpoint_and_leaves_the_unknown_one_unjudged(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    box.add_endpoint("idle", "ml.g5.2xlarge")
    use(box, "idle", gpu=0.0, requests=0)
    box.add_endpoint("dark", "ml.g5.2xlarge")
    box.add_endpoint("cpu", "ml.m5.xlarge")
    code, found, _ = scan(capsys)
    assert code == Exit.SAVINGS_FOUND
    seen = rows(found)
    assert (seen["idle"]["finding"], seen["dark"]["finding"]) == ("Idle", "NotEnoughData")
    assert seen["dark"]["reason"]["code"] == "no-datapoints"
    assert seen["dark"]["saving_usd_per_month"] == "0"
    assert seen["cpu"]["reason"]["code"] == "no-accelerator"
    assert found["totals"]["savings_found"] == 1
    assert seen["idle"]["price"]["as_of"]
    assert not box.calls.writes()


def test_a_failed_read_of_the_calls_is_never_an_idle_endpoint(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.add_endpoint("idle", "ml.g5.2xlarge")
    use(box, "idle", gpu=0.0, requests=0)
    box.deny("cloudwatch:GetMetricData")
    code, found, err = scan(capsys)
    assert code == Exit.INCOMPLETE
    assert rows(found)["idle"]["finding"] == "NotEnoughData"
    assert "cloudwatch:GetMetricData" in err


def test_throttled_metrics_leave_the_endpoint_unread_rather_than_judged(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    box.add_endpoint("idle", "ml.g5.2xlarge")
    use(box, "idle", gpu=0.0, requests=0)
    box.gate.fail("cloudwatch", "GetMetricData", "ThrottlingException", "Rate exceeded", times=999)
    code, found, _ = scan(capsys)
    assert code == Exit.INCOMPLETE
    assert [lost["reason"]["code"] for lost in found["unobserved"]] == ["throttled"]


def test_one_missing_permission_is_named_and_the_rest_goes_on(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.add_endpoint("idle", "ml.g5.2xlarge")
    use(box, "idle", gpu=0.0, requests=0)
    box.deny("servicequotas:ListServiceQuotas", "tag:GetResources", "sagemaker:ListTags")
    code, found, err = scan(capsys)
    assert code == Exit.SAVINGS_FOUND
    assert rows(found)["idle"]["finding"] == "Idle"
    assert rows(found)["idle"]["mode"] == "report"
    assert "sagemaker:ListTags is missing" in err
    assert "servicequotas:ListServiceQuotas is missing" in err


def test_without_the_first_permission_a_scan_fails_in_one_line(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    box.deny("sagemaker:ListEndpoints")
    assert run(["scan"]) == Exit.FAILED
    out, err = capsys.readouterr()
    assert out == ""
    assert "sagemaker:ListEndpoints is missing" in err
    assert "Traceback" not in err


def test_an_endpoint_without_a_price_promises_no_saving(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.add_endpoint("rare", "ml.p5e.48xlarge")
    use(box, "rare", gpu=5.0, requests=10)
    _, found, _ = scan(capsys)
    row = rows(found)["rare"]
    assert (row["price"], row["usd_per_month"], row["saving_usd_per_month"]) == (None, None, "0")


def test_a_gap_of_six_hours_does_not_stop_the_judgement(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge")
    use(box, "chat", gpu=10.0, requests=40, gap_periods=72)
    _, found, _ = scan(capsys)
    row = rows(found)["chat"]
    assert row["finding"] != "Idle"
    assert row["evidence"]["valid_share"] < 1
    assert row["evidence"]["requests"] > 1000


def test_a_saving_below_the_minimum_is_shown_and_does_not_count(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    box.add_endpoint("idle", "ml.g5.2xlarge")
    use(box, "idle", gpu=0.0, requests=0)
    code, found, _ = scan(capsys, "--min-saving", "999999")
    assert code != Exit.SAVINGS_FOUND
    assert found["totals"]["savings_found"] == 0
    assert found["minimum_saving_usd_per_month"] == "999999"


def test_an_empty_account_has_nothing_to_do(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan"]) == Exit.NOTHING_TO_DO
    assert "No endpoint exists" in capsys.readouterr().out


def test_the_table_names_the_endpoint_the_saving_and_the_totals(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    box.add_endpoint("idle-one", "ml.g5.2xlarge")
    use(box, "idle-one", gpu=0.0, requests=0)
    assert run(["scan"]) == Exit.SAVINGS_FOUND
    out = capsys.readouterr().out
    assert "idle-one" in out
    assert "Idle" in out
    assert "could save USD" in out


def test_explain_shows_the_evidence_of_one_endpoint(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge", tags={"rightsizer:p95-ms": "800", "rightsizer:mode": "yolo"})
    use(box, "chat", gpu=10.0, requests=40)
    run(["explain", "chat"])
    out = capsys.readouterr().out
    for part in ("Evidence", "1 × ml.g5.12xlarge", "GPU utilisation", "Requests an hour", "price-list-api"):
        assert part in out
    run(["explain", "chat", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["endpoint"] == "chat"
    assert {"options", "excluded", "replay", "evidence"} <= told.keys()


def test_explaining_an_endpoint_that_does_not_exist_is_said(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "nope"]) == Exit.FAILED
    assert "no endpoint is named nope" in capsys.readouterr().err


def test_doctor_tries_each_permission_and_names_the_one_that_lacks(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    box.deny("sagemaker:DescribeModel", "cloudwatch:ListMetrics")
    assert run(["doctor", "--json"]) == Exit.INCOMPLETE
    checks = {check["action"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["sagemaker:ListEndpoints"]["ok"]
    assert checks["sagemaker:DescribeEndpoint"]["ok"]
    assert not checks["sagemaker:DescribeModel"]["ok"]
    assert "permission sagemaker:DescribeModel is missing" in checks["sagemaker:DescribeModel"]["detail"]
    assert not checks["cloudwatch:ListMetrics"]["ok"]


def stack(box: Sandbox, limits: str) -> None:
    """A deployed stack with these limits."""
    template = {
        "Parameters": {"Limits": {"Type": "String"}},
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
    }
    box.client("cloudformation").create_stack(
        StackName="rightsizer",
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": "Limits", "ParameterValue": limits}],
    )


def test_doctor_warns_of_an_incident_alarm_of_the_settings_that_does_not_exist(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    cloudwatch = box.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName="pager",
        Namespace="Shop",
        MetricName="Orders",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1.0,
        ComparisonOperator="LessThanThreshold",
    )
    stack(box, '{"incident_alarms": ["pager", "gone"]}')
    assert run(["doctor", "--json"]) == Exit.INCOMPLETE
    checks = json.loads(capsys.readouterr().out)["checks"]
    alarms = [(check["ok"], check["detail"]) for check in checks if check["action"] == "cloudwatch:DescribeAlarms"]
    assert alarms == [
        (True, "alarm pager"),
        (False, "there is no alarm gone; no change begins until it exists or leaves incident_alarms of Limits"),
    ]


def test_doctor_says_what_is_wrong_with_the_settings_of_the_stack(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(box, '{"incident_alarms": "pager", "window": "nonsense"}')
    assert run(["doctor", "--json"]) == Exit.INCOMPLETE
    alarms, window = (c["detail"] for c in json.loads(capsys.readouterr().out)["checks"] if not c["ok"])
    assert "it should be a list of alarm names" in alarms
    assert "it should look like 'mon-fri 09:00-17:00 Europe/Berlin'; no change begins until it is put right" in window


@pytest.mark.parametrize("ways", ["no stack", "nobody may ask"])
def test_doctor_lacks_nothing_where_there_are_no_settings_to_read(
    ways: str, box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    if ways == "nobody may ask":
        box.deny("cloudformation:*")
    assert run(["doctor", "--json"]) == Exit.NOTHING_TO_DO
    checks = json.loads(capsys.readouterr().out)["checks"]
    unchecked = [check for check in checks if check["outcome"] == "not-checked"]
    assert bool(unchecked) is (ways == "nobody may ask")
    assert all(check["ok"] and check["remedy"].startswith("allow") for check in unchecked)


@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf"])
def test_a_minimum_that_is_no_amount_of_money_is_a_usage_error(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", "--min-saving", value]) == Exit.USAGE
    assert "--min-saving" in capsys.readouterr().err


@pytest.mark.parametrize("days", ["13", "64"])
def test_a_look_back_that_cannot_be_read_is_a_usage_error(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", "--look-back", days]) == Exit.USAGE
    assert "--look-back" in capsys.readouterr().err


def test_a_longer_look_back_is_read_and_said(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.add_endpoint("chat", "ml.g5.2xlarge")
    use(box, "chat", gpu=5.0, requests=40)
    box.clock.advance(timedelta(days=10))
    whole, known = (
        rows(scan(capsys, *more)[1])["chat"]["evidence"]["requests"] for more in (("--look-back", "30"), ())
    )
    assert whole > 3 * known > 0


def test_ctrl_c_leaves_cleanly(
    box: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rightsizer.terminal.app.survey", interrupted)
    assert run(["scan"]) == Exit.INTERRUPTED
    assert "nothing was changed" in capsys.readouterr().err


def test_ctrl_c_waits_for_no_answer_that_is_under_way() -> None:
    answered, begun = threading.Event(), threading.Event()
    later = list[int]()

    def ask(number: int) -> None:
        begun.set()
        answered.wait(20)
        later.append(number)

    def interrupted() -> None:
        with request_threads(1) as pool:
            pool.submit(ask, 1)
            pool.submit(ask, 2)
            begun.wait(20)
            raise KeyboardInterrupt

    at = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - at < 10
    answered.set()
    assert 2 not in later, "what had not begun is dropped"


@pytest.mark.parametrize(
    ("command", "words"), [(["scan"], "nothing was changed"), (["approve", "chat"], "may be recorded all the same")]
)
def test_ctrl_c_leaves_with_130_and_does_not_claim_that_an_order_was_not_recorded(
    command: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list[int]()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.core.TyperGroup.main", interrupted)
    monkeypatch.setattr("os._exit", left.append)
    with pytest.raises(SystemExit):
        cli.main(command)
    assert left == [Exit.INTERRUPTED]
    assert words in capsys.readouterr().err


def test_ctrl_c_while_modules_are_loaded_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    left = list[int]()
    monkeypatch.setattr("rightsizer.terminal.run.run", interrupted)
    monkeypatch.setattr("os._exit", left.append)
    with pytest.raises(SystemExit):
        cli.main(["scan"])
    assert left == [Exit.INTERRUPTED]
    assert capsys.readouterr().err == "\ninterrupted; nothing was changed\n"


def test_a_missing_extra_is_one_line_with_its_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name in ("typer", "boto3") else name)
    with pytest.raises(SystemExit) as left:
        cli.main(["scan"])
    assert left.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("rightsizer: typer and boto3 not found.")
    assert "pip install '.[cli]'" in said
    assert said.count("\n") == 1


def test_the_extra_of_the_package_is_what_the_command_line_asks_for() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["cli"]
    modules = {"pyyaml": "yaml"}
    names = [line.partition(">")[0] for line in extra]
    assert {modules.get(name, name) for name in names} == set(cli.NEEDED)


def test_the_version_comes_with_those_of_python_and_boto3(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    python = platform.python_version()
    assert capsys.readouterr().out == f"rightsizer {__version__} (Python {python}, boto3 {boto3.__version__})\n"


def test_no_name_of_a_type_is_cut_in_a_pipe_or_on_a_narrow_terminal(
    box: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    box.add_endpoint("recommendations-of-the-shop", "ml.g4dn.12xlarge", count=2)
    use(box, "recommendations-of-the-shop", gpu=0.0, requests=0)
    monkeypatch.setenv("COLUMNS", "80")
    run(["scan"])
    assert "2 × ml.g4dn.12xlarge" in capsys.readouterr().out
    for width in (40, 80, 200):
        narrow = Console(width=width)
        ports = reading_ports(Session("eu-west-1", None, None))
        found = survey(
            ports, "eu-west-1", Policy(minimum_saving_usd=Decimal(50)), box.clock.now, lambda done, number: None
        )
        with narrow.capture() as shown:
            narrow.print(listing(found, width))
        assert "ml.g4dn.12xlarge" in shown.get()


def test_the_module_runs_as_a_program_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["rightsizer", "--help"])
    monkeypatch.delitem(sys.modules, "rightsizer.cli")
    with pytest.raises(SystemExit) as left:
        runpy.run_module("rightsizer.cli", run_name="__main__")
    assert (left.value.code, "scan" in capsys.readouterr().out) == (0, True)


def test_an_address_without_a_scheme_is_refused_before_anything_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", "--endpoint-url", "localhost"]) == 2
    assert "is not an address" in capsys.readouterr().err
