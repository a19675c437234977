"""Copy the process at a request, and let the copy meet its fault there: each run begins where the whole run was.

A run that is killed after its n-th request is the whole run up to there. So the whole is run once, and at each request
the process is copied (fork); the copy meets the fault, goes on to its end, checks the laws, reports and is gone.
"""

import gc
import json
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sandbox.gate import Call, Gate

RUNS = count()
"""Runs of this process that were watched so far."""


@dataclass(frozen=True)
class Row:
    """One run: where it was disturbed, how it ended, and which laws broke."""

    name: str
    ended: str
    violations: tuple[str, ...]


@dataclass
class Branches:
    """The copies of one run."""

    wanted: Callable[[Call], bool]
    """At which requests a copy is made."""
    fault: Callable[[Call], None]
    """What happens to the copy there; may raise."""
    every: int = 1
    rows: list[Row] = field(default_factory=list)
    at: str = ""
    """Where this process was copied; empty in the original."""
    _pipe: int = -1
    _seen: int = 0

    def watch(self, gate: Gate) -> None:
        """Make copies from now on. What is there already is left to no collector: it would copy every page of it.

        What the runs before left is collected at every tenth one: to look through all took a quarter of a run's time.
        """
        if next(RUNS) % 10 == 0:
            gc.unfreeze()
            gc.collect()
        gc.freeze()
        gate.after = lambda call: self._answered(gate, call)

    def _answered(self, gate: Gate, call: Call) -> None:
        if not self.wanted(call):
            return
        self._seen += 1
        if self._seen % self.every:
            return
        ours, theirs = os.pipe()
        child = os.fork()
        if child:
            os.close(theirs)
            self._collect(child, ours)
            return
        os.close(ours)
        gc.disable()
        self._pipe, self.at, gate.after = theirs, f"{call.number} {call.action}", None
        self.fault(call)

    def _collect(self, child: int, ours: int) -> None:
        with os.fdopen(ours) as report:
            text = report.read()
        os.waitpid(child, 0)
        row: list[Any] = json.loads(text) if text else ["a copy that died", "", ["it died without a word"]]
        self.rows.append(Row(row[0], row[1], tuple(row[2])))

    def report(self, name: str, ended: str, violations: list[str]) -> None:
        """End a copy with what came of it; the original keeps its own row and goes on."""
        if self._pipe < 0:
            self.rows.append(Row(name, ended, tuple(violations)))
            return
        with os.fdopen(self._pipe, "w") as pipe:
            json.dump([f"{name} / at {self.at}", ended, violations], pipe)
        os._exit(0)

    def failed(self, name: str, error: BaseException) -> None:
        """A run that raised is a run that broke a law."""
        where = " <- ".join(f"{f.name}:{f.lineno}" for f in reversed(traceback.extract_tb(error.__traceback__)[-4:]))
        self.report(name, "raised", [f"{type(error).__name__}: {error} ({where})"])
