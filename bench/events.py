"""Half of `make faults`: spoilt events at the real doors, beside healthy ones.

    python -m bench.events                       10,000 events, seed 1
    python -m bench.events --events 300 --seed 7
    python -m bench.events --only 4711           one event again, with what it was

Each event of events/ is spoilt (`bench.mutants`) and delivered as AWS would: on the queue and the stream in a batch
with healthy ones, at a random position, and to the other doors alone. Asserted: no exception but a refusal of ours, no
call to AWS from an event that is refused, so no write, bounded log lines, and each healthy event of the batch done
exactly once.
"""

import argparse
import io
import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.mutants import spoilt
from rightsizer import intake, wire
from rightsizer.aws.message_book import GATHERING
from rightsizer.domain.capacity_change import CapacityChangeMoved
from rightsizer.domain.proposal import ProposalMoved
from rightsizer.domain.trigger import NoTrigger
from rightsizer.errors import InputError, RightsizerError
from rightsizer.flows.propose import REFUSED
from rightsizer.telemetry import LONGEST_LINE, logger
from sandbox.gate import Call
from tests.doors.scene import Scene, scene
from tests.samples import proposal

EVENTS = Path(__file__).parents[1] / "events"
TOPIC = "arn:aws:sns:eu-west-1:111122223333:alarms"
"""The topic of the examples."""
QUEUED = ("alarm", "contributor", "endpoint", "training", "hyperpod", "sns", "unrouted")
ALONE = {
    "scheduler": ("sweep", "report", "apply"),
    "endpoint": ("apply",),
    "spot": ("interruption",),
    "autoscaling": ("interruption",),
    "direct": ("evaluate",),
    "slack": ("respond",),
}
"""The doors that a folder's events invoke by themselves."""
FORGED = ("scheduler", "spot", "direct", "autoscaling")
"""Folders whose events must not come by the queue: delivered there, too."""


@dataclass
class Outcome:
    """What the events of one worker came to."""

    kinds: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


def routes() -> list[tuple[str, Path]]:
    """How each file may arrive: ``queue``, ``stream``, or the door that it invokes."""
    found: list[tuple[str, Path]] = []
    for path in sorted(EVENTS.glob("*/*.json")):
        folder = path.parent.name
        found += [(door, path) for door in ALONE.get(folder, ())]
        found += [("queue", path)] if folder in (*QUEUED, *FORGED) else []
        found += [("batch", path)] if folder == "sqs" else []
        found += [("propose", path), ("apply-stream", path)] if folder == "stream" else []
    return found


def message(identity: str, body: str) -> dict[str, Any]:
    """A message as Lambda gets it."""
    return {"messageId": identity, "body": body, "attributes": {"ApproximateReceiveCount": "1"}}


def training(name: str) -> dict[str, Any]:
    """A healthy event, which leaves one note in the ledger."""
    event: dict[str, Any] = json.loads((EVENTS / "training" / "completed.json").read_text())
    event["detail"] |= {"TrainingJobName": name, "TrainingJobArn": f"arn:aws:sagemaker:::training-job/{name}"}
    return event


def record(name: str) -> dict[str, Any]:
    """A healthy record of the stream: a proposal that is to be told."""
    doc = wire.dumps(proposal(name, "chat-7b"))
    image = {"pk": {"S": f"PROPOSAL#{name}"}, "sk": {"S": "PROPOSAL"}, "state": {"S": "pending"}, "doc": {"S": doc}}
    return {"eventName": "INSERT", "dynamodb": {"SequenceNumber": name, "NewImage": image, "Keys": {}}}


class Trial:
    """One event after the other in one small account."""

    def __init__(self, at: Scene, log: io.StringIO) -> None:
        self.at, self.log = at, log
        self.done = Outcome()

    def run(self, number: int, seed: int) -> None:
        """Spoil one event, deliver it, and note what broke."""
        chance = random.Random(f"{seed}/{number}")
        ways = routes()
        way, path = ways[number % len(ways)]
        event = spoilt(json.loads(path.read_text()), chance)
        self.at.box.calls.clear()
        self.at.stack.invocations.clear()
        self.log.seek(0)
        self.log.truncate()
        try:
            broken = list(self._delivered(way, event, number, chance))
        except Exception as error:
            broken = [f"{type(error).__name__}: {error!s:.200}"]
        broken += self._log()
        said = f"{number} {way} {path.parent.name}/{path.stem}"
        self.done.broken += [f"{said}: {why}" for why in broken]

    def _delivered(self, way: str, event: Any, number: int, chance: random.Random) -> Iterator[str]:
        if way in ("queue", "batch"):
            return self._queue(event, way == "batch", number, chance)
        if way in ("propose", "apply-stream"):
            return self._stream("apply" if way == "apply-stream" else way, event, number, chance)
        return self._alone(way, event)

    def _queue(self, event: Any, whole: bool, number: int, chance: random.Random) -> Iterator[str]:
        bad = _listed(event) if whole else [message("bad", _body(event))]
        names = [f"healthy-{number}-{n}" for n in range(chance.randint(1, 3))]
        batch: list[Any] = [message(name, json.dumps(training(name))) for name in names]
        place = chance.randint(0, len(batch))
        batch[place:place] = bad
        answer = self.at.stack.invoke("evaluate", {"Records": batch})
        failed = {row["itemIdentifier"] for row in answer["batchItemFailures"]}
        if failed & set(names):
            yield f"healthy messages failed: {sorted(failed & set(names))}"
        for name in names:
            noted = sum(call.error is None and f"training-job/{name}:" in str(call.params) for call in self._writes())
            if noted != 1:
                yield f"the healthy message {name} was noted {noted} times"
        if self._refused_on_queue(bad):
            yield from self._calls(
                [call for call in self.at.box.calls if not any(n in str(call.params) for n in names)]
            )

    def _stream(self, door: str, event: Any, number: int, chance: random.Random) -> Iterator[str]:
        names = [f"p-healthy-{number}-{n}" for n in range(chance.randint(1, 2))] if door == "propose" else []
        bad, batch = _listed(event), [record(name) for name in names]
        place = chance.randint(0, len(batch))
        batch[place:place] = bad
        refused = self._refused_on_stream(batch, names)
        try:
            answer = self.at.stack.invoke(door, {"Records": batch})
        except InputError:
            answer = {"batchItemFailures": []}
            if names:
                raise
        failed = {row["itemIdentifier"] for row in answer["batchItemFailures"]}
        if failed & set(names):
            yield f"healthy records failed: {sorted(failed & set(names))}"
        for name in names:
            told = sum(call.operation == "Publish" and name in str(call.params) for call in self._writes())
            if told != 1:
                yield f"the healthy proposal {name} was told {told} times"
        if refused:  # beside each post: whether Slack refused one before, and the digest; what is unreadable is parked
            parked = {f"PROPOSAL#{move.id}" for move in _moves(batch) if isinstance(move, ProposalMoved) and move.id}
            theirs = (*names, REFUSED, GATHERING, *parked, "cannot be read and waits")
            yield from self._calls(
                [call for call in self.at.box.calls if not any(n in str(call.params) for n in theirs)]
            )

    def _alone(self, door: str, event: Any) -> Iterator[str]:
        refused = False
        try:
            answer = self.at.stack.invoke(door, event)
        except RightsizerError as error:
            self.done.kinds["refused"] += 1
            refused = isinstance(error, InputError)
        else:
            if door == "respond":
                refused = answer["statusCode"] != 200
                self.done.kinds["refused" if refused else "taken"] += 1
            else:
                refused = self._nothing(event)
                self.done.kinds["refused" if refused else "taken"] += 1
        if refused:
            yield from self._calls(self.at.box.calls)

    def _nothing(self, event: Any) -> bool:
        try:
            return isinstance(intake.parse(event, topic=TOPIC), NoTrigger)
        except RightsizerError:
            return True

    def _refused_on_queue(self, bad: list[Any]) -> bool:
        try:
            found = intake.batch({"Records": bad}, TOPIC) if bad else []
        except InputError:
            found = []
        refused = all(one.trigger is None or isinstance(one.trigger, NoTrigger) for one in found)
        self.done.kinds["refused" if refused else "taken"] += 1
        return refused

    def _refused_on_stream(self, batch: list[Any], names: list[str]) -> bool:
        moves = [move for move in _moves(batch) if move.sequence not in names]
        refused = all(not isinstance(one, CapacityChangeMoved) and one.proposal is None for one in moves)
        self.done.kinds["refused" if refused else "taken"] += 1
        return refused

    def _writes(self) -> list[Call]:
        return self.at.box.calls.writes()

    def _calls(self, made: list[Call]) -> Iterator[str]:
        # The Slack secret is read to see that a request is forged, and to tell a healthy proposal.
        calls = [call for call in made if call.service != "secretsmanager"]
        if calls:
            yield f"a refused event made calls: {sorted({call.action for call in calls})}"

    def _log(self) -> Iterator[str]:
        for line in self.log.getvalue().splitlines():
            if len(line) > LONGEST_LINE or not line.isascii():
                yield f"a log line of {len(line)} characters: {line[:100]!r}"
            if "a fault of rightsizer" in line:
                yield f"an unforeseen error: {line[:1500]}"


def _moves(batch: list[Any]) -> list[ProposalMoved | CapacityChangeMoved]:
    """What the stream's records say; nothing where none of them has a number."""
    try:
        return intake.moves({"Records": batch})
    except InputError:
        return []


def _listed(event: Any) -> list[Any]:
    """The records of a spoilt batch; what is no batch any more is one record."""
    found = event.get("Records") if isinstance(event, dict) else None
    return found[:8] if isinstance(found, list) else [event]


def _body(event: Any) -> str:
    try:
        return json.dumps(event)
    except (ValueError, RecursionError):
        return "{"


@contextmanager
def trial() -> Iterator[Trial]:
    """An empty account with the stack, with the logger's lines kept."""
    log = io.StringIO()
    handlers = [one for one in logger.handlers if isinstance(one, logging.StreamHandler)]
    before, level = [one.stream for one in handlers], logger.log_level
    with scene() as at:
        at.stack.redeploy(AlarmTopicArn=TOPIC)
        for handler in handlers:
            handler.stream = log
        logger.setLevel(logging.INFO)
        try:
            yield Trial(at, log)
        finally:
            logger.setLevel(level)
            for handler, stream in zip(handlers, before, strict=True):
                handler.stream = stream


CHUNK = 250
"""Events in one account; the next has a new one."""


def tried(job: tuple[int, int, int]) -> Outcome:
    """The outcome of the events of one chunk: first number, how many, seed."""
    first, number, seed = job
    with trial() as run:
        for one in range(first, first + number):
            run.run(one, seed)
    return run.done


def main() -> int:
    """Run, print, and say by the exit code whether everything held."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, default=-1, help="the number of one event")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    began, whole = time.monotonic(), Outcome()
    jobs = [(n, min(CHUNK, given.events - n), given.seed) for n in range(0, given.events, CHUNK)]
    jobs = [(given.only, 1, given.seed)] if given.only >= 0 else jobs
    with ProcessPoolExecutor(given.workers) as pool:
        for found in pool.map(tried, jobs):
            whole.kinds.update(found.kinds)
            whole.broken += found.broken
            for line in found.broken:
                print(f"    {line}", flush=True)
    ended = ", ".join(f"{count:,} {kind}" for kind, count in whole.kinds.most_common())
    seconds, number = time.monotonic() - began, sum(job[1] for job in jobs)
    print(f"{number:,} spoilt events, seed {given.seed}: {ended}; {len(whole.broken)} broken; {seconds:.0f} s")
    return 1 if whole.broken else 0


if __name__ == "__main__":
    sys.exit(main())
