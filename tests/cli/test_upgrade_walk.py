"""Every command of docs/upgrade.md, one after the other on one stack: upgrade, restore, uninstall, adopt, delete.

Commands of the AWS CLI are sent by boto3 with the parameters of the page; `sam deploy` is the deployment of the
sandbox. Capital names of the page get their values from what the commands before printed.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import botocore.session
import pytest
from botocore import xform_name

from rightsizer.aws.journal import TableJournal
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table
from rightsizer.domain.proposal import Decision, Proposal, ProposalState, change_id_of
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from sandbox.wiring import Stack
from tests.doors.scene import BIG, PROPOSE, REGION, ROOT, Scene, scene
from tests.table import decide

OTHER = "product-ranking"
RESTORED = "rightsizer-restored"


def section(title: str) -> list[str]:
    """The command lines of one section of the page, in their order."""
    text = (ROOT / "docs" / "upgrade.md").read_text()
    part = next(one for one in text.split("\n## ") if one.startswith(title))
    return [
        line.strip()
        for block in re.findall(r"```sh\n(.*?)```", part, re.S)
        for line in block.splitlines()
        if line.strip()
    ]


class Walk:
    """One account, the stack that is deployed in it, and what the commands printed."""

    def __init__(self, at: Scene) -> None:
        self.at, self.box, self.stack = at, at.box, at.stack
        self.values: dict[str, str] = {"eu-west-1": REGION}
        self.tried: list[str] = []
        self.said = ""

    @property
    def table(self) -> str:
        return self.stack.template.outputs()["TableName"]

    def take(self, lines: list[str], **also: str) -> None:
        """Run these lines; `also` are values of names that a person reads elsewhere."""
        self.values |= also
        for line in lines:
            self.tried.append(line)
            words = shlex.split(line)
            given = [self._valued(word) for word in words]
            match words[0]:
                case "rightsizer":
                    self._ours(given[1:])
                case "aws":
                    self._aws(given[1], given[2], given[3:])
                case "make":
                    assert words[1] == "build"
                case _:
                    self._deploy(dict(word.split("=", 1) for word in given if re.match(r"[A-Z]\w+=", word)))

    def _valued(self, word: str) -> str:
        for name, value in self.values.items():
            word = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", value, word)
        return word

    def _ours(self, given: list[str]) -> None:
        mine = {key: value for key, value in os.environ.items() if not key.startswith("RIGHTSIZER_")}
        with patch.dict(os.environ, mine, clear=True):
            assert run(given) == Exit.NOTHING_TO_DO, given

    def _aws(self, service: str, command: str, words: list[str]) -> None:
        client = self.box.client(service)
        if (service, command) == ("s3", "rb"):
            return self._remove_bucket(words[0].removeprefix("s3://"))
        waits = command == "wait"
        options = dict(zip(words[waits::1], words[waits + 1 :], strict=False))
        if waits:
            client.get_waiter(words[0].replace("-", "_")).wait(**self._params(service, "", options))
            return None
        answer = getattr(client, command.replace("-", "_"))(**self._params(service, command, options))
        assert "FunctionError" not in answer, answer["Payload"].read()
        if "--query" in options:
            match options["--query"]:
                case "Table.LatestStreamArn":
                    self.values["STREAM_ARN"] = answer["Table"]["LatestStreamArn"]
                case "StackResourceDetail.PhysicalResourceId":
                    self.values["SWEEP_FUNCTION"] = answer["StackResourceDetail"]["PhysicalResourceId"]
                case "Stacks[0].Outputs":
                    self.values |= {row["OutputKey"]: row["OutputValue"] for row in answer["Stacks"][0]["Outputs"]}
                case query:
                    raise AssertionError(f"{command}: nobody reads {query}")
        return None

    def _params(self, service: str, command: str, options: dict[str, str]) -> dict[str, Any]:
        """What boto3 gets of the options: those of the operation, with the shapes that it has."""
        model = botocore.session.get_session().get_service_model(service)
        named = {xform_name(name, "-"): name for name in model.operation_names}
        shape = model.operation_model(named[command]).input_shape if command else None
        found: dict[str, Any] = {}
        for option, value in options.items():
            if not option.startswith("--") or option in ("--region", "--query", "--output", "--cli-binary-format"):
                continue
            on = option.removeprefix("--no-")
            member = "".join(part.capitalize() for part in on.strip("-").split("-"))
            if on != option:  # how the AWS CLI says false
                found[member] = False
                continue
            kind = shape.members[member].type_name if shape else "string"
            found[member] = {"structure": json.loads, "timestamp": datetime.fromisoformat}.get(kind, str)(value)
        return found

    def _remove_bucket(self, name: str) -> None:
        s3 = self.box.client("s3")
        for row in s3.list_objects_v2(Bucket=name).get("Contents", []):
            s3.delete_object(Bucket=name, Key=row["Key"])
        s3.delete_bucket(Bucket=name)

    def _deploy(self, parameters: dict[str, str]) -> None:
        if self.stack.deleted:
            self.stack = Stack(self.box, ROOT / "template.yaml", parameters=parameters)
            self.stack.settle()
        else:
            self.stack.redeploy(**parameters)

    # what people and time do

    def frozen(self) -> bool:
        with self.box.gate.unrecorded():
            return TableJournal(self.box.client("dynamodb"), self.table).switch().frozen

    def store(self) -> Recommendations:
        return Recommendations(Table(self.box.client("dynamodb"), self.table), lambda: self.box.clock.now)

    def proposal(self, endpoint: str) -> Proposal:
        """The newest about the endpoint."""
        with self.box.gate.unrecorded():
            found = self.store().proposals()
            return next(one for one in found if one.ref.name == endpoint)

    def approve(self, endpoint: str) -> str:
        """A person approves; the change that answers it, once its update was sent."""
        asked, before = self.proposal(endpoint), self.updates()
        with self.box.gate.unrecorded():
            decide(
                self.store(),
                asked.id,
                Decision(ProposalState.APPROVED, "cli:ada", self.box.clock.now),
                self.box.clock.now,
            )
        assert self.box.clock.run_until(lambda: self.updates() > before, timedelta(hours=2))
        return change_id_of(asked)

    def updates(self) -> int:
        return len(self.box.calls.of("sagemaker", "UpdateEndpoint"))

    def told(self) -> list[str]:
        """What the topic got, by subject."""
        return [str(call.params.get("Subject")) for call in self.box.calls.of("sns", "Publish")]

    def rows(self, table: str) -> list[dict[str, Any]]:
        with self.box.gate.unrecorded():
            found = self.box.client("dynamodb").scan(TableName=table)["Items"]
        return sorted(found, key=lambda row: (row["pk"]["S"], row["sk"]["S"]))

    def put_in_place(self, table: str, rows: list[dict[str, Any]]) -> None:
        """The restored table holds what was known at its time: moto copies what is there now."""
        client = self.box.client("dynamodb")
        with self.box.gate.unrecorded():
            for row in self.rows(table):
                client.delete_item(TableName=table, Key={"pk": row["pk"], "sk": row["sk"]})
            for row in rows:
                client.put_item(TableName=table, Item=row)


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Walk]:
    """A stack that asked about an endpoint; who approves is not limited."""
    monkeypatch.setenv("COLUMNS", "300")
    with scene(slack=False) as at:
        at.add(BIG, tags=PROPOSE | {"rightsizer:p95-ms": "900"})
        at.drive(BIG)
        at.sweep()
        yield Walk(at)


@pytest.mark.slow
def test_a_stack_is_upgraded_restored_uninstalled_adopted_and_deleted_as_the_page_says(
    walk: Walk, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = walk.rows(walk.table)
    walk.box.clock.advance(timedelta(minutes=10))
    change = walk.approve(BIG)
    walk.box.clock.advance(timedelta(minutes=40))

    walk.take(section("Upgrade"), TABLE=walk.table)
    assert change in capsys.readouterr().out, "the freeze lists what is open"
    assert not walk.frozen()

    _restored(walk, backup, change, capsys)
    _uninstalled(walk, capsys)
    _adopted(walk)
    last = section("Uninstall")
    walk.take([line for line in last if "rollback" not in line], TABLE=walk.table, BUCKET=walk.values["BucketName"])
    assert RESTORED not in walk.box.client("dynamodb").list_tables()["TableNames"]
    assert walk.values["BucketName"] not in [one["Name"] for one in walk.box.client("s3").list_buckets()["Buckets"]]
    page = (ROOT / "docs" / "upgrade.md").read_text()
    every = {line for title in re.findall(r"^## (.+)$", page, re.M) for line in section(title)}
    assert every - set(walk.tried) == set(), "every command of the page is tried"


def _restored(walk: Walk, backup: list[dict[str, Any]], change: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The table of the time before the approval takes the place of the stack's own."""
    lines, adopt = section("Restore a backup"), section("Adopt")
    made = next(n for n, line in enumerate(lines) if "restore-table-to-point-in-time" in line) + 1
    swept = next(n for n, line in enumerate(lines) if "describe-stack-resource" in line)
    walk.take(lines[:made], TABLE=walk.table)
    walk.put_in_place(RESTORED, backup)
    walk.take(lines[made:swept])
    dynamodb = walk.box.client("dynamodb")
    expiry = dynamodb.describe_time_to_live(TableName=RESTORED)["TimeToLiveDescription"]
    assert (expiry["TimeToLiveStatus"], expiry["AttributeName"]) == ("ENABLED", "expires")
    recovery = dynamodb.describe_continuous_backups(TableName=RESTORED)["ContinuousBackupsDescription"]
    assert recovery["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    stream = dynamodb.describe_table(TableName=RESTORED)["Table"]["StreamSpecification"]
    assert stream == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    walk.take([adopt[0]], TABLE=RESTORED)
    walk.take([adopt[1].replace(" AdoptBucket=BUCKET", "")])
    assert (walk.table, walk.frozen()) == (RESTORED, True)
    assert walk.stack.function("apply").environment["RIGHTSIZER_TABLE"] == RESTORED
    updates = walk.updates()
    walk.take(lines[swept:-1])
    walk.box.clock.advance(timedelta(minutes=10))
    capsys.readouterr()
    walk.take(lines[-1:])
    assert not walk.frozen()
    walk.box.clock.advance(timedelta(hours=2))
    assert walk.updates() == updates, "an approval that the backup does not hold is carried out by nobody"
    assert walk.proposal(BIG).state is not ProposalState.APPROVED
    assert f"CHANGE#{change}" not in {row["pk"]["S"] for row in walk.rows(RESTORED)}


def _uninstalled(walk: Walk, capsys: pytest.CaptureFixture[str]) -> None:
    """A change goes through the restored table and its stream; then the way of the page to an empty list."""
    walk.at.add(OTHER)
    walk.at.drive(OTHER)
    walk.stack.fire("Sweep.Daily")
    change = walk.approve(OTHER)
    lines = section("Uninstall")
    capsys.readouterr()
    walk.take(lines[:2], **{"c-0a1b2c": change})
    assert change in capsys.readouterr().out
    walk.box.clock.advance(timedelta(hours=3))
    walk.take(lines[:1])
    assert change not in capsys.readouterr().out, "a freeze lets what restores go on"
    assert walk.proposal(OTHER).state is ProposalState.ROLLED_BACK
    gone = next(n for n, line in enumerate(lines) if "stack-delete-complete" in line) + 1
    walk.take(lines[2:gone])
    assert walk.stack.deleted
    assert RESTORED in walk.box.client("dynamodb").list_tables()["TableNames"]


def _adopted(walk: Walk) -> None:
    """A new stack of the same name goes on with the table and the bucket, and repeats nothing."""
    before, told, updates = walk.rows(RESTORED), len(walk.told()), walk.updates()
    walk.take(section("Adopt"), TABLE=RESTORED, BUCKET=walk.values["BucketName"])
    environment = walk.stack.function("apply").environment
    assert (environment["RIGHTSIZER_TABLE"], environment["RIGHTSIZER_BUCKET"]) == (RESTORED, walk.values["BucketName"])
    walk.box.clock.advance(timedelta(minutes=10))
    assert (walk.updates(), walk.told()[told:]) == (updates, [])
    assert {row["pk"]["S"] for row in before} <= {row["pk"]["S"] for row in walk.rows(RESTORED)}
    assert [run.error for run in walk.stack.invocations if run.error] == []
