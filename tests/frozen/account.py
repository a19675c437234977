"""The story of the demo, with what the commands of a terminal print meanwhile and the rows of the table at its end.

One run serves the tests of the demo and the frozen files. Every row was written by the deployed functions themselves; a
kind that the story does not write is in tests/golden. The files hold a third of the endpoints, so that they are small.
"""

import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sandbox import demo
from sandbox.account import Sandbox
from sandbox.demo import ALARMED, APPROVER, STORY, Demo
from sandbox.demo_table import Row
from sandbox.seed import residents
from sandbox.slack import Workspace
from sandbox.wiring import Stack
from tests.frozen.library import bootstrap, run
from tests.frozen.rows import detail_of, row_of
from tests.once import drawn_once, judged_once, read_once, replayed_once

OTHERS = ("poc-summariser", "legacy-ocr", "stack-owned", "autoscaled-feed", "async-video", "fraud-scores")
"""Beside those of the story: idle, without metrics, owned by a stack, autoscaled, asynchronous, and one to answer."""
EXPLAINED = ("search-embeddings", "poc-summariser", "autoscaled-feed", "async-video")
HIDDEN = frozenset(one.name for one in residents()) - {*STORY, ALARMED, *OTHERS}
"""Endpoints of which the frozen files say nothing."""
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Played:
    """A run of the demo: its exit code, what it printed, where its files are, and what is frozen of it."""

    code: int
    printed: str
    progress: str
    out: Path
    documents: dict[str, Any]
    """What the commands print with --json, by command line."""
    rows: dict[str, Any]
    """The rows of the table, and the names of the objects of the bucket, by key."""


class Told(Demo):
    """The story of the demo, in which the commands of a terminal are asked and the table is read."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.documents: dict[str, Any] = {}
        self.rows: dict[str, Any] = {}

    def deploy(self, box: Sandbox, slack: Workspace, address: str) -> Stack:
        """Deploy; then ask of some endpoints what needs no function, while the fortnight of metrics ends now."""
        stack = super().deploy(box, slack, address)
        bootstrap.set_clock(lambda: box.clock.now)
        few = {name: one for name, one in box.world.fleet.endpoints.items() if name not in HIDDEN}
        with patch.object(box.world.fleet, "endpoints", few):
            self.ask("scan")
            for name in EXPLAINED:
                self.ask("explain", name)
            self.ask("backtest", "--days", "2")
            self.ask("doctor")
        return stack

    def close(self, stack: Stack, written: list[Path], result: list[Row]) -> None:
        """At the end of the story, ask for the rest and read the table and the bucket."""
        super().close(stack, written, result)
        stack.redeploy(Approvers=f"{APPROVER},role/apply")  # who runs these commands may decide
        bootstrap.set_clock(lambda: self.box.clock.now)  # functions that start cold forget it
        self.ask("proposals")
        listed = [one for one in self.documents["proposals"]["proposals"] if one["endpoint"] not in HIDDEN]
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


def shown(documents: Mapping[str, Any], rows: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The documents and rows without the hidden endpoints, their proposals and their changes, as they are frozen."""
    names = _any_of(HIDDEN)
    ids = {key.split()[0].partition("#")[2] for key, row in rows.items() if _is_of(names, key, row)}
    hidden = _any_of(HIDDEN | ids)
    left = {at: _without(hidden, found) for at, found in documents.items()}
    kept = {at: _without(hidden, row) for at, row in rows.items() if not hidden.search(at)}
    kept = {at: row for at, row in kept.items() if not hidden.search(json.dumps(row))}
    return {at: row_of(_journals(one)) for at, one in left.items()}, {
        at: row_of(_journals(one)) for at, one in kept.items()
    }


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(words))})(?![\w-])")


def _is_of(names: re.Pattern[str], key: str, row: Any) -> bool:
    """Whether a row is the proposal or the change of a hidden endpoint."""
    body = row.get("doc", {}).get("json", {}) if key.startswith(("PROPOSAL#", "CHANGE#")) else {}
    ref = body.get("ref") or body.get("recommendation", {}).get("ref") or {}
    return names.fullmatch(str(ref.get("name", ""))) is not None


def _without(hidden: re.Pattern[str], value: Any) -> Any:
    """The value without the elements of its lists that name something hidden."""
    if isinstance(value, Mapping):
        return {key: _without(hidden, found) for key, found in value.items()}
    if isinstance(value, list):
        return [_without(hidden, one) for one in value if not hidden.search(json.dumps(one))]
    return value


def played(out: Path) -> Played:
    """Run the program of the demo in this process, without any credential or profile of the machine."""
    stories: list[Told] = []

    def begin(*given: Any) -> Told:
        stories.append(Told(*given))
        return stories[-1]

    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RIGHTSIZER_"))}
    printed, progress, code = io.StringIO(), io.StringIO(), 0
    with (
        chdir(ROOT),
        patch.dict("os.environ", kept, clear=True),
        patch.object(demo, "Demo", begin),
        patch.object(sys, "argv", ["demo", "--out", str(out)]),
        redirect_stdout(printed),
        redirect_stderr(progress),
        drawn_once(),
        judged_once(),
        replayed_once(),
        read_once(),
    ):
        try:
            demo.main()
        except SystemExit as ended:
            code = int(ended.code or 0) if isinstance(ended.code, int | None) else 1
            progress.write(f"{ended.code}")
        finally:
            logging.disable(logging.NOTSET)
            bootstrap.reset()
    documents, rows = shown(stories[0].documents, stories[0].rows)
    return Played(code, printed.getvalue(), progress.getvalue(), out, documents, rows)
