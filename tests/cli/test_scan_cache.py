"""`scan --cache`: what cannot change is asked for once, what can is asked for each time, and nobody else reads it."""

import gzip
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.aws.endpoints import SageMakerFleet
from rightsizer.aws.local_cache import cache_folder
from rightsizer.ports.evaluation import EndpointSummary
from rightsizer.terminal.run import run
from sandbox.account import Sandbox
from tests.cli.conftest import use

CONFIG, MODEL, METRICS = "sagemaker:DescribeEndpointConfig", "sagemaker:DescribeModel", "cloudwatch:GetMetricData"
ENDPOINT = "sagemaker:DescribeEndpoint"


class Scans:
    """Scans of one account from one cache folder."""

    def __init__(self, box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
        self.box, self._capsys = box, capsys

    def scan(self, *options: str) -> tuple[dict[str, Any], Counter[str], str]:
        """The document, the calls by action and the error stream."""
        bootstrap.reset()
        bootstrap.set_clock(lambda: self.box.clock.now)
        self.box.calls.clear()
        run(["scan", "--json", *options])
        out, err = self._capsys.readouterr()
        return json.loads(out), self.box.calls.counts(), " ".join(err.split())


@pytest.fixture
def scans(box: Sandbox, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scans:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("chat", "search"):
        box.add_endpoint(name, "ml.g5.2xlarge", 2)
        use(box, name, gpu=20.0, requests=300)
    return Scans(box, capsys)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def facts(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "evaluated_at"} for row in found["endpoints"]]


def test_a_second_scan_says_the_same_and_asks_for_neither_configurations_nor_closed_days(scans: Scans) -> None:
    first, asked, said = scans.scan("--cache")
    assert (asked[CONFIG], asked[MODEL]) == (2, 2)
    assert "nothing came from the cache" in said
    scans.box.clock.advance(timedelta(hours=1))
    again, spared, said = scans.scan("--cache")
    assert (spared[CONFIG], spared[MODEL], spared[METRICS]) == (0, 0, 0)
    assert facts(again) == facts(first)
    assert "configurations of 2 endpoints" in said
    assert "1.0 hours ago" in said


def test_without_the_option_nothing_is_kept(scans: Scans, tmp_path: Path) -> None:
    scans.scan()
    assert files(tmp_path) == []


def move(box: Sandbox, name: str, count: int) -> None:
    weights = [{"VariantName": "AllTraffic", "DesiredInstanceCount": count}]
    box.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName=name, DesiredWeightsAndCapacities=weights
    )
    box.clock.advance(timedelta(hours=1))


def counts(found: dict[str, Any]) -> dict[str, int]:
    return {row["endpoint"]: row["instance_count"] for row in found["endpoints"]}


def test_how_an_endpoint_stands_is_asked_for_where_a_listing_shows_that_it_was_modified(scans: Scans) -> None:
    scans.scan("--cache")
    move(scans.box, "chat", 1)
    again, asked, said = scans.scan("--cache")
    assert counts(again) == {"chat": 1, "search": 2}
    assert asked[ENDPOINT] == 1
    assert "the counts of those that were not modified and that no policy moves" in said


def test_instances_that_a_policy_moved_are_counted_though_no_listing_shows_it(
    scans: Scans, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans.box.autoscale("chat", 1, 4)
    scans.scan("--cache")
    listed = {row["EndpointName"]: row for row in scans.box.client("sagemaker").list_endpoints()["Endpoints"]}
    move(scans.box, "chat", 3)
    same = listed["chat"]["LastModifiedTime"]
    original = SageMakerFleet.list_endpoints

    def unmodified(fleet: SageMakerFleet) -> Iterator[EndpointSummary]:
        yield from (replace(one, modified_at=same) if one.ref.name == "chat" else one for one in original(fleet))

    monkeypatch.setattr(SageMakerFleet, "list_endpoints", unmodified)
    again, asked, _ = scans.scan("--cache")
    assert counts(again)["chat"] == 3
    assert asked[ENDPOINT] == 1


def test_instances_are_counted_of_an_endpoint_that_got_a_policy_since(scans: Scans) -> None:
    scans.scan("--cache")
    scans.box.autoscale("chat", 1, 4)
    assert scans.scan("--cache")[1][ENDPOINT] == 1


def test_how_an_endpoint_stands_is_believed_for_a_day(scans: Scans) -> None:
    scans.scan("--cache")
    assert scans.scan("--cache")[1][ENDPOINT] == 0
    scans.box.clock.advance(timedelta(hours=25))
    later = scans.scan("--cache")[1]
    assert (later[ENDPOINT], later[CONFIG]) == (2, 0)
    assert scans.scan("--cache")[1][ENDPOINT] == 0


def test_refresh_reads_everything_anew_and_keeps_it(scans: Scans) -> None:
    scans.scan("--cache")
    _, asked, said = scans.scan("--refresh")
    assert asked[CONFIG] == 2
    assert asked[METRICS] > 0
    assert "nothing came from the cache" in said
    _, spared, _ = scans.scan("--cache")
    assert spared[CONFIG] == 0


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_the_files_are_the_users_alone_and_one_that_others_can_write_is_not_believed(
    scans: Scans, tmp_path: Path
) -> None:
    scans.scan("--cache")
    kept = files(tmp_path)
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    folders = {path for file in kept for path in file.parents if path.is_relative_to(tmp_path / "rightsizer")}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    for path in kept:
        path.chmod(0o622)
    assert scans.scan("--cache")[1][CONFIG] == 2


def test_what_is_corrupt_or_of_another_format_is_read_anew(scans: Scans, tmp_path: Path) -> None:
    first, _, _ = scans.scan("--cache")
    for path in files(tmp_path):
        path.write_bytes(b'{"format": "1-other"}' if "chat" in path.name else b"{")
    again, asked, _ = scans.scan("--cache")
    assert asked[CONFIG] == 2
    assert facts(again) == facts(first)


def test_no_credential_and_no_environment_of_a_container_is_kept(
    scans: Scans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "FwoGZXIvYXdzE")
    box = scans.box
    container = {"Image": "img", "Environment": {"API_KEY": "hunter2"}}
    role = "arn:aws:iam::111122223333:role/sagemaker"
    box.add_endpoint("secretive", "ml.g5.2xlarge", 1)
    name = box.client("sagemaker").describe_endpoint_config(
        EndpointConfigName=box.client("sagemaker").describe_endpoint(EndpointName="secretive")["EndpointConfigName"]
    )["ProductionVariants"][0]["ModelName"]
    box.client("sagemaker").delete_model(ModelName=name)
    box.client("sagemaker").create_model(ModelName=name, PrimaryContainer=container, ExecutionRoleArn=role)
    scans.scan("--cache")
    kept = " ".join(
        (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
        for path in files(tmp_path)
    )
    assert "secretive" in kept
    assert [word for word in ("wJalrXUtnFEMI", "FwoGZXIvYXdzE", "API_KEY", "hunter2") if word in kept] == []


def test_a_folder_that_cannot_be_written_costs_the_calls_and_no_answer(
    scans: Scans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    found, asked, _ = scans.scan("--cache")
    assert len(found["endpoints"]) == 2
    assert asked[CONFIG] == 2


def test_what_nobody_wrote_for_two_months_is_removed(scans: Scans, tmp_path: Path) -> None:
    scans.scan("--cache")
    long_ago = (scans.box.clock.now - timedelta(days=64)).timestamp()
    old = next(path for path in files(tmp_path) if path.name == "chat.json")
    os.utime(old, (long_ago, long_ago))
    scans.scan("--cache")
    assert old.stat().st_mtime > long_ago


def test_another_account_region_or_role_has_another_folder() -> None:
    folders = {
        cache_folder("1", "eu-west-1", "role/a"),
        cache_folder("2", "eu-west-1", "role/a"),
        cache_folder("1", "us-east-1", "role/a"),
        cache_folder("1", "eu-west-1", "role/b"),
    }
    assert len(folders) == 4
