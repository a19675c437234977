"""What a simulated account ends with after the story of the demo: the JSON of the commands, and the rows of the table.

The account has fewer endpoints than the demo's, so that it takes seconds. Every row was written by the deployed
functions themselves; a kind that the story does not write is in tests/golden.
"""

import io
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from rich.console import Console

from sandbox import seed as seeding
from sandbox.account import Sandbox
from sandbox.demo import ALARMED, APPROVER, STORY, Demo
from sandbox.demo_table import Row
from sandbox.slack import Workspace
from sandbox.wiring import Stack
from tests.frozen.library import bootstrap, run
from tests.frozen.rows import detail_of, row_of
from tests.once import drawn_once, judged_once, replayed_once

OTHERS = ("poc-summariser", "legacy-ocr", "stack-owned", "autoscaled-feed", "async-video", "fraud-scores")
"""Beside those of the story: idle, without metrics, owned by a stack, autoscaled, asynchronous, and one to answer."""
EXPLAINED = ("search-embeddings", "poc-summariser", "autoscaled-feed", "async-video")
ROOT = Path(__file__).parents[2]
QUIET = {"POWERTOOLS_METRICS_DISABLED": "true"}


class Told(Demo):
    """The story of the demo, in which the commands of a terminal are asked and the table is read."""

    def __init__(self, out: Path) -> None:
        super().__init__(Console(file=io.StringIO()), out, None)
        self.documents: dict[str, Any] = {}
        self.rows: dict[str, Any] = {}

    def deploy(self, box: Sandbox, slack: Workspace, address: str) -> Stack:
        """Deploy; then ask what needs nothing deployed, while the fortnight of metrics ends now."""
        stack = super().deploy(box, slack, address)
        bootstrap.set_clock(lambda: box.clock.now)
        self.ask("scan")
        for name in EXPLAINED:
            self.ask("explain", name)
        self.ask("backtest", "--days", "2")
        self.ask("doctor")
        return stack

    def close(self, stack: Stack, written: list[Path], result: list[Row]) -> None:
        """At the end of the story, ask for the rest and read the table and the bucket."""
        assert not stack.failures
        stack.redeploy(Approvers=f"{APPROVER},role/apply")  # who runs these commands may decide
        bootstrap.set_clock(lambda: self.box.clock.now)  # functions that start cold forget it
        self.ask("proposals")
        listed = self.documents["proposals"]["proposals"]
        for one in listed:
            if one["change"]:
                self.ask("apply", one["id"])
        for order, one in zip(("reject", "snooze"), (p for p in listed if p["state"] == "pending"), strict=False):
            self.ask(order, one["id"])
        self.ask("report")
        self.ask("report", "--monthly")
        self.ask("freeze", "--hard")
        done = next(one for one in listed if one["state"] == "proven")
        self.ask("rollback", done["change"])
        self.rows = dict(sorted(rows_of(self.box)))

    def ask(self, *words: str) -> None:
        """Run one command with --json and keep what it prints, with its exit code."""
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            code = run([*words, "--json"])
        found = json.loads(out.getvalue()) if out.getvalue() else None
        self.documents[" ".join(words)] = {"exit code": int(code), **(found or {})}


def rows_of(box: Sandbox) -> Iterator[tuple[str, Any]]:
    """Every item of the table by its keys, and every object of the bucket by its key."""
    settings = bootstrap.settings()
    for page in box.client("dynamodb").get_paginator("scan").paginate(TableName=settings.table):
        for item in page["Items"]:
            plain = {name: next(iter(value.items())) for name, value in sorted(item.items())}
            yield f"{item['pk']['S']} {item['sk']['S']}", {name: _value(*pair) for name, pair in plain.items()}
    for page in box.client("s3").get_paginator("list_objects_v2").paginate(Bucket=settings.bucket):
        for entry in page.get("Contents", ()):
            yield f"s3 {entry['Key']}", {}


def _value(kind: str, value: Any) -> Any:
    if kind == "S" and value.startswith("{"):
        return {"type": kind, "json": json.loads(value)}
    return {"type": kind, "value": value}


def _journals(value: Any) -> Any:
    """The value in which the details of journals keep only the words that the program reads."""
    if isinstance(value, Mapping):
        return {k: detail_of(v) if k == "detail" and isinstance(v, str) else _journals(v) for k, v in value.items()}
    return [_journals(one) for one in value] if isinstance(value, list) else value


def account() -> tuple[dict[str, Any], dict[str, Any]]:
    """The documents of the commands by command line, and the rows of the table by key."""
    few = [one for one in seeding.residents() if one.name in (*STORY, ALARMED, *OTHERS)]
    with (
        TemporaryDirectory() as out,
        chdir(ROOT),
        patch.dict("os.environ", QUIET),
        patch.object(seeding, "residents", lambda: few),
        drawn_once(),
        judged_once(),
        replayed_once(),
    ):
        story = Told(Path(out))
        logging.disable()
        try:
            story.play()
        finally:
            logging.disable(logging.NOTSET)
            bootstrap.reset()
    documents = {at: row_of(_journals(found)) for at, found in story.documents.items()}
    return documents, {at: row_of(_journals(found)) for at, found in story.rows.items()}
