"""One run of the program of `make demo`: everything that it promises is looked for, and what is frozen of it."""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sandbox.account import Sandbox
from sandbox.demo import REGION, START, Demo, main
from sandbox.demo_picture import SAVED, WAITS, read
from sandbox.demo_table import BEGIN, BY_TAG, END, Row
from sandbox.seed import seed
from tests.frozen.account import Played, played
from tests.frozen.rows import differences
from tests.frozen.rows import read as read_rows

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TRACES = ROOT.parent / "shared" / "traces"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return played(tmp_path_factory.mktemp("demo"))


def printed_table(ran: Played) -> str:
    """The table as a page of it has it."""
    lines = [line for line in ran.printed.splitlines() if line.startswith("|")]
    return "\n".join([BEGIN, *lines, END])


def report_of(ran: Played) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(next(ran.out.glob("*.json")).read_text())
    return found


def states(ran: Played) -> dict[str, str]:
    return {one["recommendation"]["ref"]["name"]: one["state"] for one in report_of(ran)["proposals"]}


def test_it_ends_well_and_says_so(demo: Played) -> None:
    assert demo.code == 0, demo.progress
    assert "failed" not in demo.progress


def test_its_table_is_the_readmes(demo: Played) -> None:
    page = (ROOT / "README.md").read_text()
    shown = page.partition(BEGIN)[2].partition(END)[0].strip()
    printed = "\n".join(line for line in demo.printed.splitlines() if line.startswith("|"))
    assert shown == printed, "run `make readme-table`"


def test_the_table_the_slack_page_and_the_report_say_the_same_money(demo: Played) -> None:
    totals, waits = report_of(demo)["totals"], report_of(demo)["money"]["waits"]
    answers = sum(one["proposals"] for one in waits)
    waiting, paid, proven = (f"${Decimal(totals[name]):,.0f}" for name in ("waiting", "spend", "proven"))
    assert sum(Decimal(one["usd_per_month"]) for one in waits) == Decimal(totals["waiting"])
    pages = {path.stem: path.read_text() for path in demo.out.glob("*.html")}
    lead = f"You pay {paid} a month for {totals['endpoints']} endpoints. {proven} a month is proven saved"
    for said in (demo.printed, *pages.values()):
        assert lead in said
        assert f"{waiting} a month" in said
    found = re.search(
        r"(\d+) of (\d+) proposals wait for an answer: (\d+) could save (\S+) a month, (\d+)", pages["slack"]
    )
    assert found is not None
    assert (int(found[3]), found[4], int(found[1])) == (answers, waiting, answers + int(found[5]))
    assert f"{waiting} a month waits for {answers} answers in Slack; {found[5]} more" in demo.printed
    shown = read(printed_table(demo))
    assert abs(shown.sum_of(WAITS) - Decimal(totals["waiting"])) <= len(shown.named)
    hours = sum(line.saving for line in shown.named if line.happened.startswith(BY_TAG))
    assert abs(shown.sum_of(SAVED) - hours - Decimal(totals["proven"])) <= len(shown.named)
    assert abs(shown.cost - shown.sum_of(SAVED) - Decimal(totals["spend"])) <= len(shown.named)


def test_no_log_line_of_a_function_comes_between(demo: Played) -> None:
    assert [line for line in (demo.printed + demo.progress).splitlines() if line.lstrip().startswith("{")] == []


def test_a_finding_of_one_endpoint_has_its_name(demo: Played) -> None:
    assert "| 1 more |" not in demo.printed


def test_one_change_is_proven_one_rolled_back_one_approved_by_a_signed_click(demo: Played) -> None:
    found = states(demo)
    assert found["search-embeddings"] == "proven"
    assert found["image-tagging"] == "rolled-back"
    assert found["product-ranking"] == "proven"
    approved = {
        one["recommendation"]["ref"]["name"]: one["decision"]["by"]
        for one in report_of(demo)["proposals"]
        if one["decision"]
    }
    assert approved["product-ranking"] == "slack:U0ADA"
    assert approved["search-embeddings"] == "policy"


def test_every_picture_of_the_slack_page_is_drawn(demo: Played) -> None:
    shown = (demo.out / "slack.html").read_text().split("data:image/png;base64,")[1:]
    assert len(shown) > 10
    assert all(picture.startswith("iVBOR") for picture in shown), "a PNG begins so"


def test_the_rollback_names_the_alarm(demo: Played) -> None:
    told = next(one for one in report_of(demo)["occurrences"] if one["kind"] == "change-rolled-back")
    assert told["subject"] == "image-tagging"
    assert "p95" in told["text"]


def test_every_endpoint_has_a_finding_and_a_reason(demo: Played) -> None:
    found = report_of(demo)["recommendations"]
    assert len(found) >= 24
    assert all(one["finding"] and one["reason"]["sentence"] and one["gate_reason"]["sentence"] for one in found)


def test_the_alarm_and_the_sweep_both_lead_to_recommendations(demo: Played) -> None:
    asked = sorted((one["created_at"], one["recommendation"]["ref"]["name"]) for one in report_of(demo)["proposals"])
    first = {name: at for at, name in reversed(asked)}
    assert first["doc-layout"] < "2026-11-20T04:20"
    assert first["image-tagging"].startswith("2026-11-20T04:20")


def test_a_person_runs_the_test_and_the_change_follows_it(demo: Played) -> None:
    (tested,) = (one for one in report_of(demo)["proposals"] if one["decision"] and one["decision"].get("test_first"))
    assert (tested["recommendation"]["ref"]["name"], tested["state"]) == ("product-ranking", "proven")
    assert "Before the change it was tested: the mean latency on ml.g4dn.xlarge was" in tested["outcome"]


def test_the_spot_interruption_is_acted_on_and_told(demo: Played) -> None:
    told = [one for one in report_of(demo)["occurrences"] if one["kind"] == "spot-interruption"]
    assert len(told) == 1
    assert "gpu-batch" in told[0]["text"]


def test_the_report_is_one_file_with_pictures(demo: Played) -> None:
    page = next(demo.out.glob("20*.html")).read_text()
    assert "<svg" in page
    assert not re.findall(r"""(?:src|href)=["']https?://""", page)


def test_the_paths_it_prints_exist(demo: Played) -> None:
    paths = re.findall(r"^\s+(\S+\.(?:html|json|csv))$", demo.progress, re.MULTILINE)
    assert len(paths) >= 4
    assert all(Path(path).exists() for path in paths)


@pytest.mark.skipif(not TRACES.is_dir(), reason="needs the real traces in ../shared/traces")
def test_real_traces_seed_the_same_account_with_another_load(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[Path | None] = []

    def play(demo: Demo) -> list[Row]:
        asked_for.append(demo.traces)
        return []

    monkeypatch.setattr(Demo, "play", play)
    monkeypatch.setattr(sys, "argv", ["demo", "--traces", str(TRACES)])
    monkeypatch.setattr("sandbox.demo.logger", logging.getLogger("a logger that no other test has"))
    for name, default in (("POWERTOOLS_LOG_LEVEL", "CRITICAL"), ("POWERTOOLS_METRICS_DISABLED", "true")):
        monkeypatch.setenv(name, os.environ.get(name, default))  # put back afterwards, whatever `main` sets
    main()
    assert asked_for == [TRACES]
    works = []
    for traces in (None, *asked_for):
        with Sandbox(now=START, region=REGION) as box:
            works.append(seed(box, traces))
    own, traced = works
    assert len(traced) >= 24
    assert traced.keys() == own.keys()
    hours = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(hours=hour) for hour in range(168)]
    for name, work in traced.items():
        shape, plain = [work.shape(at) for at in hours], [own[name].shape(at) for at in hours]
        assert sum(shape) == pytest.approx(sum(plain), rel=1e-6), name
        assert shape != plain or sum(plain) == 0, name


def test_a_folder_that_is_not_there_is_named_by_the_program_in_a_process_of_its_own(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RIGHTSIZER_"))}
    ran = subprocess.run(
        [sys.executable, "-m", "sandbox.demo", "--out", str(tmp_path), "--traces", str(tmp_path / "none")],
        cwd=ROOT,
        env=kept | {"PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "there is no folder" in ran.stderr


def test_the_commands_print_and_the_table_holds_what_they_did(demo: Played) -> None:
    assert differences(read_rows("commands"), demo.documents) == []
    assert differences(read_rows("rows"), demo.rows) == []


def test_one_endpoint_goes_home_in_the_evening_and_is_back_in_the_morning(demo: Played) -> None:
    (row,) = (line for line in demo.printed.splitlines() if line.startswith("| desk-assistant |"))
    assert "| mon-fri 08:00-19:00 Europe/Berlin |" in row
    assert re.search(r"went home Fri 19:\d\d, back Mon 07:\d\d \|$", row)
    saving = int(row.split("|")[5].replace(",", ""))
    assert 0.5 * 1028 < saving < 0.7 * 1028, "of a g5.xlarge"
    (saved,) = report_of(demo)["office_hours"]
    assert saved["endpoint"] == "desk-assistant"
    assert 50 < saved["stopped_hours"] < 61
