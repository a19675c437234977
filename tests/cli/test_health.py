"""What a terminal says when credentials, the clock, the Region or permissions are wrong, and how its bar moves."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.aws.session import Session
from rightsizer.bootstrap import reading_ports
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Recommendation
from rightsizer.flows import evaluate
from rightsizer.recommender.recommend import recommend
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from rightsizer.terminal.survey import survey
from sandbox.account import Sandbox
from tests.cli.conftest import use


def test_without_credentials_doctor_says_so_once(
    box: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    assert run(["doctor", "--json"]) == Exit.INCOMPLETE
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["action"] == "sts:GetCallerIdentity"
    assert check["outcome"] == "failed"
    assert check["remedy"].startswith("sign in to AWS")


@pytest.mark.parametrize(("off_s", "outcome"), [(0, "ok"), (200, "ok"), (400, "failed"), (-400, "failed")])
def test_doctor_compares_the_clock_with_that_of_aws(
    off_s: int, outcome: str, box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap.set_clock(lambda: box.clock.now + timedelta(seconds=off_s))
    run(["doctor", "--json"])
    (check,) = [
        one for one in json.loads(capsys.readouterr().out)["checks"] if one["action"] == "clock of this machine"
    ]
    assert (check["outcome"], check["detail"]) == (outcome, f"{abs(off_s)} s away from AWS's")


def test_doctor_counts_the_types_that_may_be_started(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.set_quota("ml.g5.xlarge", 0)
    run(["doctor"])
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"GPU types may be started for endpoints, \d+ have a quota of 0: .*ml\.g5\.xlarge", said)
    assert "Not looked at: Slack" in said


@pytest.mark.parametrize("region", ["mars-1", "eu-west-99"])
def test_a_region_that_does_not_exist_is_refused_with_those_that_do(
    region: str, box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["scan", "--region", region]) == Exit.FAILED
    said = " ".join(capsys.readouterr().err.split())
    assert f"error: '{region}' is no AWS Region" in said
    assert "us-east-1" in said
    assert ("Did you mean eu-west-" in said) is (region == "eu-west-99")
    assert not box.calls


def test_the_region_of_the_environment_counts(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert (Session().region, Session("us-west-2").region) == ("eu-central-1", "us-west-2")


def test_metrics_that_nobody_may_read_are_explained_once(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two", "three"):
        box.add_endpoint(name, "ml.g5.2xlarge")
        use(box, name, gpu=5.0, requests=40)
    box.deny("cloudwatch:GetMetricData")
    run(["scan"])
    out, err = (" ".join(each.split()) for each in capsys.readouterr())
    assert out.count("see “not read” below") == 3
    assert (out + err).count("the permission cloudwatch:GetMetricData is missing") == 1


def test_the_bar_of_a_scan_moves_with_every_endpoint_and_before_all_are_read(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[Recommendation] = []  # the first one, as which all others stand: the bar is what counts here

    def alike(endpoint: Endpoint, *given: Any) -> Recommendation:
        judged.extend([] if judged else [recommend(endpoint, *given)])
        return replace(judged[0], ref=endpoint.ref)

    monkeypatch.setattr(evaluate, "recommend", alike)
    for number in range(25):
        box.add_endpoint(f"e{number}", "ml.g5.2xlarge")
        use(box, f"e{number}", gpu=5.0, requests=40)
    moves: list[tuple[int, int]] = []

    def moved(done: int, _: int) -> None:
        moves.append((done, len(box.calls.of("cloudwatch", "GetMetricData"))))

    survey(reading_ports(Session()), "eu-west-1", Policy(minimum_saving_usd=Decimal(50)), box.clock.now, moved)
    shown = [done for done, _ in moves]
    assert (shown, set(shown)) == (sorted(shown), set(range(26)))
    assert max(done for done, read in moves if not read) >= 5, "it moves while endpoints are described"
    assert moves[1][1] < moves[-1][1], "the first endpoint is done before the last one's metrics are read"
