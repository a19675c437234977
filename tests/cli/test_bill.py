"""`--bill` at a terminal: a file, an export in S3 and Cost Explorer; what is none is refused."""

import gzip
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from rightsizer import bootstrap
from rightsizer.domain.proposal import ProposalState
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from sandbox.billing import ran_until
from sandbox.charges import CUR_HEADS, Payer, charges, cur_rows, written
from sandbox.prices import hourly
from tests.changing.world import World, world

PENDING = {"state": ProposalState.PENDING, "decision": None}


@pytest.fixture(scope="module")
def deployed() -> Iterator[World]:
    with world(proposed=PENDING, by="cli:somebody") as found:
        yield found


@pytest.fixture
def asked(deployed: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("RIGHTSIZER_TABLE", "t")
    bootstrap.set_clock(lambda: deployed.box.clock.now)
    yield deployed
    bootstrap.reset()


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(list(arguments))
    return (code, *capsys.readouterr())


def bill(asked: World) -> bytes:
    """What the simulated account is billed."""
    box = asked.box
    payer = Payer(box.world.account, box.world.region, "EU", lambda kind: hourly(box.world.region, kind))
    now = box.clock.now
    found = charges(ran_until(box.world, now), payer, now - timedelta(days=14), now)
    return written(CUR_HEADS, cur_rows(found))


def window(asked: World) -> list[str]:
    now = asked.box.clock.now
    return ["--since", f"{now - timedelta(days=7):%Y-%m-%d}", "--until", f"{now - timedelta(days=1):%Y-%m-%d}"]


def test_a_file_is_compared_by_endpoint(asked: World, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "cur.csv.gz"
    path.write_bytes(gzip.compress(bill(asked)))
    code, out, _ = told(capsys, "report", *window(asked), "--bill", str(path))
    assert code == Exit.NOTHING_TO_DO
    assert "reconciled with CUR 2.0 by endpoint" in out
    _, said, _ = told(capsys, "report", *window(asked), "--bill", str(path), "--format", "json")
    found = json.loads(said)["reconciliation"]
    assert (found["source"], found["level"]) == ("CUR 2.0", "endpoint")
    assert f"{found['rows'][0]['name']}: $" in out


def test_savings_are_reconciled_too(asked: World, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "cur.csv"
    path.write_bytes(bill(asked))
    _, out, _ = told(capsys, "savings", "--days", "7", "--bill", str(path))
    assert "Reconciled with CUR 2.0 by endpoint" in out
    _, out, _ = told(capsys, "savings", "--days", "7")
    assert "Not reconciled: no bill was read" in out
    _, out, _ = told(capsys, "savings", "--json", "--days", "7", "--bill", str(path))
    assert json.loads(out)["reconciliation"]["rows"]


def test_cost_explorer_is_compared_by_instance_type(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "report", *window(asked), "--bill", "cost-explorer")
    assert code == Exit.NOTHING_TO_DO
    assert "reconciled with Cost Explorer by instance type" in out
    assert "no figure here is of one endpoint" in out


def test_an_export_in_s3_is_found_by_its_manifest(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    s3 = asked.box.client("s3")
    s3.create_bucket(Bucket="bills", CreateBucketConfiguration={"LocationConstraint": asked.box.world.region})
    now = asked.box.clock.now
    for at in {f"{now - timedelta(days=7):%Y-%m}", f"{now - timedelta(days=1):%Y-%m}"}:
        key = f"exports/cur/data/BILLING_PERIOD={at}/cur-00001.csv.gz"
        s3.put_object(Bucket="bills", Key=key, Body=gzip.compress(bill(asked)))
        listed = json.dumps({"dataFiles": [f"s3://bills/{key}"]})
        s3.put_object(
            Bucket="bills", Key=f"exports/cur/metadata/BILLING_PERIOD={at}/cur-Manifest.json", Body=listed.encode()
        )
    _, out, _ = told(capsys, "report", *window(asked), "--bill", "s3://bills/exports/cur")
    assert "reconciled with CUR 2.0 by endpoint" in out
    _, out, _ = told(capsys, "report", *window(asked), "--bill", "s3://bills/exports/other")
    assert "not reconciled: reading s3://bills/exports/other/metadata" in " ".join(out.split())


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("where", "said"), [("nowhere.csv", "is no file"), ("s3://bills", "it should be s3://BUCKET/PREFIX/EXPORT-NAME")]
)
def test_what_is_no_bill_is_refused(capsys: pytest.CaptureFixture[str], where: str, said: str) -> None:
    code, out, err = told(capsys, "report", "--bill", where)
    assert (code, out) == (Exit.FAILED, "")
    assert said in " ".join(err.split())


def test_a_damaged_bill_leaves_the_report(asked: World, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "cur.csv"
    path.write_bytes(bill(asked)[:-40])
    code, out, _ = told(capsys, "report", *window(asked), "--bill", str(path))
    assert code == Exit.NOTHING_TO_DO
    assert "not reconciled: " in out
    assert "the file is damaged" in " ".join(out.split())
