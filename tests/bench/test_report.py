"""A report over many endpoints stays small: the page and the JSON show the largest, CSV and JSON lines have all."""

import csv
import gzip
import json
from pathlib import Path

import pytest

from bench.report import PAGE_MB, written
from rightsizer.domain.report import SHOWN

ENDPOINTS = 320


def test_a_report_over_many_endpoints_shows_the_largest_and_keeps_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    made = written(ENDPOINTS, tmp_path)
    page = Path(made.page).read_text()
    assert len(page) < PAGE_MB * 1e6
    assert "200 of 223 are shown; all endpoints are in the CSV and in the JSON lines." in page
    stored = json.loads(Path(made.data).read_text())
    assert len(stored["recommendations"]) == SHOWN
    assert stored["not_shown"] == ENDPOINTS - SHOWN
    assert stored["totals"]["endpoints"] == ENDPOINTS
    rows = list(csv.DictReader(Path(made.rows).read_text().splitlines()))
    assert {row["endpoint"] for row in rows} == {f"endpoint-{number:05}" for number in range(ENDPOINTS)}
    kept = [json.loads(line) for path in made.lines for line in gzip.decompress(Path(path).read_bytes()).splitlines()]
    assert len(kept) == ENDPOINTS
    assert all(len(one["excluded"]) == 49 and len(one["hourly_requests"]) == 336 for one in kept)
