"""The command `advise --from-prometheus`: the page, the JSON and the errors."""

import io
import json

import pytest
from rich.console import Console

from rightsizer.terminal.app import Exit
from rightsizer.terminal.cluster_page import advise_from_prometheus, cluster_page
from rightsizer.terminal.run import run
from tests.prometheus.series import cluster
from tests.prometheus.server import serving, vector


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    held = list(cluster())
    with serving(lambda expression: (200, vector(held, expression))) as (url, _):
        code = run(["advise", "--from-prometheus", url, *arguments])
    return code, capsys.readouterr().out


def test_the_page_shows_pods_node_groups_reasons_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    code, page = said(capsys)
    assert code == Exit.NOTHING_TO_DO
    for text in (
        "2 x serving/chat/server",
        "Node groups",
        "2 x g4dn.xlarge, 2 to 4 nodes",
        "nvidia.com/gpu=present:NoSchedule",
        "[rule K4]",
        "EC2 On-Demand prices of us-east-1, 2026-07-20",
        "Spot, Savings Plans",
    ):
        assert text in page


def test_a_narrow_terminal_gets_lines() -> None:
    held = list(cluster())
    with serving(lambda expression: (200, vector(held, expression))) as (url, _):
        answer = advise_from_prometheus(url, None, 14, None)
    console = Console(width=80, file=io.StringIO(), force_terminal=False)
    console.print(cluster_page(answer, 80))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "2 x serving/chat/server, 1 nvidia.com/gpu on g5.2xlarge" in shown
    assert "Runs on" not in shown


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "--json", "--namespace", "serving", "--days", "7", "--region", "eu-west-1")
    found = json.loads(text)["cluster"]
    assert code == Exit.NOTHING_TO_DO
    assert (found["days"], found["region"]) == (7, "eu-west-1")
    assert {each["group"]["name"] for each in found["pods"]} == {"chat", "embed", "rank"}
    assert float(found["advised_usd_per_month"]) < float(found["usd_per_month"])


def test_a_cluster_without_pods_ends_with_20_and_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(lambda expression: (200, vector([], expression))) as (url, _):
        assert run(["advise", "--from-prometheus", url]) == Exit.INCOMPLETE
    assert "kube-state-metrics is not scraped" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--from-prometheus", "nowhere"], "no address of a Prometheus server"),
        (["--from-prometheus", "http://127.0.0.1:1"], "port-forward"),
        (["--from-prometheus", "http://127.0.0.1:1", "--namespace", "A"], "no name of a Kubernetes namespace"),
    ],
)
def test_what_cannot_be_asked_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert run(["advise", *arguments]) == Exit.FAILED
    assert says in capsys.readouterr().err
