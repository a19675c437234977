"""The benchmarks of large first days at their smallest size; their account answers as the simulated one does."""

from datetime import timedelta
from typing import Any

import pytest

from bench import first, report
from bench.canned import KINDS, Canned, Recorded, seed
from rightsizer.aws.metrics import CloudWatchMetrics
from rightsizer.aws.session import Session
from rightsizer.domain.usage import SIGNALS, MetricWindow
from rightsizer.ports.evaluation import MetricRequest
from sandbox.account import Sandbox


def test_a_first_evaluation_has_a_factor_of_two_to_spare(capsys: pytest.CaptureFixture[str]) -> None:
    assert first.measured(1, 1, 1, {})
    told = capsys.readouterr().out
    assert "1 days, 1 endpoints, 1 at a time" in told
    assert "1 judgements, 4,320 datapoints, 0 requests throttled" in told


@pytest.mark.grid
def test_the_day_after_is_read_on_top_of_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert first.remembered(3, 1, {})
    assert "3 endpoints of 1 days kept: 1 invocations" in capsys.readouterr().out


def test_functions_ask_for_nothing_that_aws_would_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answer = list[str](), Canned._answered

    def noted(server: Canned, environ: dict[str, Any], start: Any) -> Any:
        asked.append(environ["PATH_INFO"])
        return answer(server, environ, start)

    monkeypatch.setattr(Canned, "_answered", noted)
    with first.account(2, 1, {}) as of:
        of.sweep()
        first.evaluated(of, 1, first.BATCH)
        assert of.server.requests == len(asked) > 0
    assert not [path for path in asked if path.startswith("/sandbox/")], "they would count as calls"


@pytest.mark.parametrize(
    ("wall_s", "peak_mib", "held"),
    [(150.0, 884.0, True), (151.0, 100.0, False), (1.0, 885.0, False)],
)
def test_less_than_a_factor_of_two_is_a_failure(wall_s: float, peak_mib: float, held: bool) -> None:
    function = first.Process("evaluate", "http://127.0.0.1:9", {}, 63, first.START)
    assert (function.timeout, function.memory) == (300, 1769), "the cases above are for these"
    try:
        costs = [first.Cost(1.0, 1.0, 1.0), first.Cost(wall_s, 1.0, peak_mib)]
        assert first.spare("a case", costs, function) is held
    finally:
        function.close()


def windows(box: Sandbox, names: list[str], url: str | None) -> list[dict[Any, list[float]]]:
    end = box.clock.now.replace(hour=0)
    reader = CloudWatchMetrics(Session(endpoint_url=url))
    requests = [MetricRequest(name, "AllTraffic", SIGNALS) for name in names]
    found = list(reader.read(requests, end - timedelta(days=1), end, 300))
    assert all(isinstance(one, MetricWindow) for one in found)
    return [{key: list(s.values) for key, s in one.series.items()} for one in found if isinstance(one, MetricWindow)]


def test_replayed_answers_are_those_of_the_simulated_account() -> None:
    recorded: Recorded = {}
    with first.account(KINDS + 1, 1, recorded) as of:
        names = [f"endpoint-{number:05}" for number in range(KINDS + 1)]
        real = windows(of.box, names[:KINDS], None)
        replayed = windows(of.box, names, of.url)
    assert replayed == [*real, real[0]], "the third endpoint is like the first"
    assert real[0] != real[1]
    assert len(recorded) == KINDS * len(SIGNALS)


def test_requests_beyond_the_quota_are_throttled() -> None:
    with Sandbox() as box:
        seed(box, 1, 1)
        server = Canned(box, {})
        assert [server.within_quota(100_800) for _ in range(5)] == [True, True, True, False, False]
    assert server.throttled == 2


def test_a_year_of_changes_is_booked_once_a_day() -> None:
    start, end = report.PERIODS["weekly"]
    rows = list(report.booked(start, end, 20 * report.CHANGED))
    assert {row.kind for row in rows} <= {"estimated", "realised", "switch-cost"}
    assert len({row.id for row in rows}) == len(rows)
    assert sum(row.kind == "realised" for row in rows) == 7 * 19, "the newest was turned after the week's end"
    assert all(start <= row.at < end for row in rows)
