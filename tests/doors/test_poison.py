"""Ten things at once with one poisoned, for each door, kind of poison and position: the nine others are done once.

Batches are delivered twice, as AWS may do: the nine are not done again, the poisoned one is reported as failed where
another try may help, told once where none will, and raises nothing.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import cycle
from math import inf
from typing import Any

import pytest

from bench.events import EVENTS, message, record, training
from rightsizer import bootstrap, wire
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.errors import RightsizerError
from sandbox.gate import Call
from sandbox.spot import add_spot
from tests.doors.scene import APPROVER, Scene, scene
from tests.samples import proposal, recommendation
from tests.table import decide

TEN = range(10)
SOME = (0, 4, 9)
"""The only positions of a slow door: first, in the middle, last."""
HOSTILE = "\u202e\x1b[31m<!channel>" + "x" * 200_000
AT = "2026-11-16T04:25:00Z"
TICK = {"source": "rightsizer.scheduler", "detail-type": "Tick", "id": "tick", "time": AT, "detail": {}}


@dataclass
class Lane(ABC):
    """A door with a batch on its way."""

    at: Scene
    names: list[str] = field(default_factory=list)
    events: dict[str, Any] = field(default_factory=dict)
    door = ""

    def lay(self, place: int) -> None:
        self.names = self.named(place)
        self.events = {name: self.event(name) for name in self.names}
        self.at.box.calls.clear()

    def named(self, place: int) -> list[str]:
        return [f"n{place}-{number}" for number in TEN]

    @abstractmethod
    def event(self, name: str) -> Any:
        """What brings this name to the door."""

    def deliver(self) -> set[str]:
        """Names of those that are to be delivered again."""
        answer = self.at.stack.invoke(self.door, {"Records": [self.events[name] for name in self.names]})
        return {row["itemIdentifier"] for row in answer["batchItemFailures"]}

    @abstractmethod
    def done(self, name: str) -> list[int]:
        """How often each effect for this name was seen."""

    def written(self, *parts: str) -> int:
        return sum(call.error is None and all(one in str(call.params) for one in parts) for call in self._writes())

    def _writes(self) -> list[Call]:
        return self.at.box.calls.writes()

    def fail(self, service: str, operation: str, code: str, *parts: str) -> None:
        def where(params: Mapping[str, Any]) -> bool:
            return all(one in str(params) for one in parts)

        self.at.box.gate.fail(service, operation, code, times=inf, where=where)

    def told(self, *parts: str) -> int:
        published = self.at.box.calls.of("sns", "Publish")
        return sum(call.error is None and all(one in str(call.params) for one in parts) for call in published)


class Alone(Lane):
    """A door that gets one thing at a time, ten times."""

    def deliver(self) -> set[str]:
        failed = set()
        for name in self.names:
            try:
                self.at.stack.invoke(self.door, self.events[name])
            except RightsizerError:
                failed.add(name)
        return failed


class Jobs(Lane):
    """`evaluate` by its queue: events of training jobs."""

    door = "evaluate"

    def event(self, name: str) -> Any:
        return message(name, json.dumps(training(name)))

    def done(self, name: str) -> list[int]:
        return [self.written(f"training-job/{name}:")]

    def body(self, name: str, text: str) -> None:
        self.events[name] = message(name, text)

    def hostile(self, name: str) -> None:
        event = training(name)
        event["detail"]["TrainingJobName"] = HOSTILE
        self.body(name, json.dumps(event))

    def late(self, name: str) -> None:
        event = training(name)
        event["detail"]["LastModifiedTime"] = "9999-12-31T23:59:59-01:00"
        self.body(name, json.dumps(event))


class Endpoints(Lane):
    """`evaluate` by its queue: pages of the sweep with one endpoint each."""

    door = "evaluate"

    def event(self, name: str) -> Any:
        self.at.add("tiny-serverless", as_name=name, days=1)
        look = {"endpoints": [name], "because": "light-sweep", "alarm": "", "at": "2026-11-16T04:20:00Z", "key": name}
        return message(name, json.dumps({"kind": "look-at", **look, "fleet": 10}))

    def done(self, name: str) -> list[int]:
        return [self.written(f"ENDPOINT#{name}'", "RECOMMENDATION")]

    def garble_usage(self, _name: str) -> None:
        with self.at.box.gate.unrecorded():
            bucket = self.at.stack.parts.names["Bucket"]
            s3 = self.at.box.client("s3")
            for page in range(4):
                s3.put_object(Bucket=bucket, Key=f"digests/{page}.json.gz", Body=b"no gzip")

    def garble_row(self, name: str) -> None:
        with self.at.box.gate.unrecorded():
            row = {"pk": f"ENDPOINT#{name}", "sk": "RECOMMENDATION", "evaluated_at": "soon", "doc": "{"}
            bootstrap.table().put(row)


class Proposals(Lane):
    """`propose` by the table's stream."""

    door = "propose"

    def event(self, name: str) -> Any:
        made = record(name)
        made["dynamodb"]["Keys"] = {"pk": {"S": f"PROPOSAL#{name}"}, "sk": {"S": "PROPOSAL"}}
        return made

    def done(self, name: str) -> list[int]:
        return [self.told(name), self.written("PutEvents", name) or len(self._announced(name))]

    def _announced(self, name: str) -> list[Call]:
        return [call for call in self.at.box.calls.of("events", "PutEvents") if name in str(call.params)]

    def doc(self, name: str, text: str) -> None:
        self.events[name]["dynamodb"]["NewImage"]["doc"] = {"S": text}

    def edit(self, name: str, **fields: Any) -> None:
        doc = json.loads(self.events[name]["dynamodb"]["NewImage"]["doc"]["S"])
        self.doc(name, json.dumps(doc | fields))

    def hostile(self, name: str) -> None:
        found = proposal(name, "chat-7b", recommendation=recommendation("chat-7b", owner=HOSTILE))
        self.doc(name, wire.dumps(found))


class Approvals(Proposals):
    """`apply` by the table's stream: approvals, whose changes begin."""

    door = "apply"

    def event(self, name: str) -> Any:
        made = proposal(name, name, created_at=self.at.box.clock.now, expires_at=self.at.box.clock.now + timedelta(9))
        with self.at.box.gate.unrecorded():
            bootstrap.store().save(made.recommendation, made)
            decision = Decision(ProposalState.APPROVED, "slack:U1", self.at.box.clock.now)
            approved = decide(bootstrap.store(), name, decision, self.at.box.clock.now)
        event = super().event(name)
        event["dynamodb"]["NewImage"] |= {"state": {"S": "approved"}, "doc": {"S": wire.dump_stored(approved)}}
        return event

    def done(self, name: str) -> list[int]:
        begun = [call for call in self.at.box.calls.of("dynamodb", "TransactWriteItems") if call.error is None]
        return [
            sum(
                f"LOCK#ENDPOINT#{name}'" in str(call.params)
                and "'Put'" in str(call.params)
                and "attribute_not_exists(pk) OR change" in str(call.params)
                and "CHANGE#" in str(call.params)
                and "'version': {'N': '1'}" in str(call.params)
                for call in begun
            )
        ]

    def garble(self, name: str) -> None:
        self.doc(name, '{"schema": 999}')
        with self.at.box.gate.unrecorded():
            row = bootstrap.table().get(f"PROPOSAL#{name}", "PROPOSAL")
            assert row is not None
            bootstrap.table().put(row | {"doc": '{"schema": 999}'})


class Tick(Approvals):
    """`apply` by its tick: approvals that no event brought."""

    def deliver(self) -> set[str]:
        self.at.stack.invoke("apply", TICK)
        return set()


class Instances(Alone):
    """`interruption`: warnings of Spot for ten instances of a group."""

    door = "interruption"

    def named(self, place: int) -> list[str]:
        spot = add_spot(self.at.box)
        spot.group("gpu", zones=("us-east-1a", "us-east-1b"), desired=len(TEN), maximum=2 * len(TEN))
        self.at.sweep("Hourly")
        return spot.members("gpu")

    def event(self, name: str) -> Any:
        event = json.loads((EVENTS / "spot" / "interruption-terminate.json").read_text())
        event["detail"]["instance-id"] = name
        event["resources"] = [f"arn:aws:ec2:us-east-1a:instance/{name}"]
        return event | {"id": name, "time": f"{self.at.box.clock.now:%Y-%m-%dT%H:%M:%SZ}"}

    def deliver(self) -> set[str]:
        failed = super().deliver()
        self.at.pass_time(seconds=40)  # a claim of an invocation that failed is over
        return failed

    def done(self, name: str) -> list[int]:
        calls = [call for call in self._writes() if call.service == "autoscaling" and call.error is None]
        return [sum(name in str(call.params) for call in calls)]


class Clicks(Alone):
    """`respond`: approvals of ten proposals."""

    door = "respond"

    def named(self, place: int) -> list[str]:
        names, now = super().named(place), self.at.box.clock.now
        with self.at.box.gate.unrecorded():
            for name in names:
                made = proposal(name, name, created_at=now, expires_at=now + timedelta(days=9))
                bootstrap.store().save(made.recommendation, made)
        self.at.stack.settle()
        return names

    def event(self, name: str) -> Any:
        return self.at.slack.click(self.at.message(name), "Approve", APPROVER, self.at.box.clock.now)

    def done(self, name: str) -> list[int]:
        return [self.written(f"PROPOSAL#{name}'", "'state': {'S': 'approved'}")]

    def garble(self, name: str) -> None:
        with self.at.box.gate.unrecorded():
            row = bootstrap.table().get(f"PROPOSAL#{name}", "PROPOSAL")
            assert row is not None
            bootstrap.table().put(row | {"doc": "{"})

    def spoil_body(self, name: str) -> None:
        self.events[name] = self.events[name] | {"body": "no form", "isBase64Encoded": False}


AGAIN, PARKED, DONE, WAITS, IGNORED = "again", "parked", "done", "waits", "ignored"
"""What becomes of the poisoned one: failed as a batch item; told once; done all the same; left to the next tick;
nothing, since it is none of ours."""
type Spoil = Callable[[Any, str], None]


def table_write(code: str, operation: str, key: str) -> Spoil:
    return lambda lane, name: lane.fail("dynamodb", operation, code, key.format(name))


def table_read(code: str, key: str) -> Spoil:
    return lambda lane, name: lane.fail("dynamodb", "GetItem", code, key.format(name))


JOBS: dict[str, tuple[Spoil, str]] = {
    "malformed": (lambda lane, name: lane.body(name, "{not json"), AGAIN),
    "deep": (lambda lane, name: lane.body(name, "[" * 9000), AGAIN),
    "too large": (lambda lane, name: lane.body(name, json.dumps({"source": "x" * 1_000_000})), IGNORED),
    "hostile": (Jobs.hostile, AGAIN),
    "late": (Jobs.late, AGAIN),
    "throttled": (table_write("ThrottlingException", "PutItem", "training-job/{}:"), AGAIN),
    "unwritable": (table_write("ValidationException", "PutItem", "training-job/{}:"), AGAIN),
    "unreadable": (
        lambda lane, name: lane.fail("sagemaker", "DescribeTrainingJob", "AccessDeniedException", f"'{name}'"),
        AGAIN,
    ),
}
ENDPOINTS: dict[str, tuple[Spoil, str]] = {
    "throttled": (
        lambda lane, name: lane.fail("sagemaker", "DescribeEndpoint", "ThrottlingException", f"'{name}'"),
        AGAIN,
    ),
    "denied": (
        lambda lane, name: lane.fail("sagemaker", "DescribeEndpoint", "AccessDeniedException", f"'{name}'"),
        AGAIN,
    ),
    "unreadable row": (Endpoints.garble_row, DONE),
    "unreadable usage": (Endpoints.garble_usage, DONE),
    "unwritable": (table_write("ValidationException", "*WriteItem*", "ENDPOINT#{}'"), AGAIN),
}
PROPOSALS: dict[str, tuple[Spoil, str]] = {
    "malformed": (lambda lane, name: lane.doc(name, "{"), PARKED),
    "unreadable": (lambda lane, name: lane.edit(name, schema=999), PARKED),
    "hostile": (Proposals.hostile, DONE),
    "too large": (lambda lane, name: lane.edit(name, outcome="x" * 380_000), DONE),
    "throttled": (table_read("ThrottlingException", "MESSAGE#{}'"), AGAIN),
    "denied": (table_read("AccessDeniedException", "MESSAGE#{}'"), AGAIN),
    "unwritable page": (lambda lane, name: lane.fail("s3", "PutObject", "InternalError", f"pages/{name}.html"), DONE),
}
APPROVALS: dict[str, tuple[Spoil, str]] = {
    "malformed": (lambda lane, name: lane.doc(name, "{"), PARKED),
    "unreadable": (Approvals.garble, PARKED),
    "throttled": (table_read("ThrottlingException", "PROPOSAL#{}'"), AGAIN),
    "unwritable": (table_write("ValidationException", "TransactWriteItems", "LOCK#ENDPOINT#{}'"), AGAIN),
}
TICKS: dict[str, tuple[Spoil, str]] = {
    "unreadable": (Approvals.garble, PARKED),
    "throttled": (table_read("ThrottlingException", "PROPOSAL#{}'"), WAITS),
    "unwritable": (table_write("ValidationException", "TransactWriteItems", "LOCK#ENDPOINT#{}'"), WAITS),
}
INSTANCES: dict[str, tuple[Spoil, str]] = {
    "throttled": (
        lambda lane, name: lane.fail("autoscaling", "DescribeAutoScalingInstances", "Throttling", name),
        AGAIN,
    ),
    "unwritable": (lambda lane, name: lane.fail("dynamodb", "PutItem", "ValidationException", "SPOT#", name), AGAIN),
    "unwritable mark": (lambda lane, _: lane.fail("dynamodb", "PutItem", "ValidationException", "POOL#"), DONE),
    "refused": (lambda lane, name: lane.fail("autoscaling", "*", "ValidationError", "ShouldDecrement", name), IGNORED),
}
CLICKS: dict[str, tuple[Spoil, str]] = {
    "malformed": (Clicks.spoil_body, IGNORED),
    "unreadable": (Clicks.garble, IGNORED),
    "throttled": (table_read("ThrottlingException", "PROPOSAL#{}'"), IGNORED),
    "unwritable": (table_write("ValidationException", "PutItem", "PROPOSAL#{}'"), IGNORED),
}
LANES: list[tuple[type[Lane], Mapping[str, tuple[Spoil, str]], Iterable[int]]] = [
    (Jobs, JOBS, TEN),
    (Endpoints, ENDPOINTS, SOME),
    (Proposals, PROPOSALS, TEN),
    (Approvals, APPROVALS, SOME),
    (Tick, TICKS, (4,)),
    (Instances, INSTANCES, (4,)),
    (Clicks, CLICKS, (4,)),
]


EACH = [(lane, kind, *row, set(places)) for lane, kinds, places in LANES for kind, row in kinds.items()]
ONCE = [
    pytest.param(lane, spoil, end, (place if place in places else 4,), id=f"{lane.__name__}-{kind}")
    for place, (lane, kind, spoil, end, places) in zip(cycle(SOME), EACH, strict=False)
]
"""Each door and kind of poison at one position, the positions in turn; `make faults` tries all of them."""
GRID = [
    pytest.param(lane, spoil, end, sorted(places), id=f"{lane.__name__}-{kind}-everywhere", marks=pytest.mark.grid)
    for lane, kind, spoil, end, places in EACH
    if len(places) > 1
]


@pytest.mark.parametrize(("lane", "spoil", "end", "places"), [*ONCE, *GRID])
def test_the_nine_others_are_done_once(lane: type[Lane], spoil: Spoil, end: str, places: Iterable[int]) -> None:
    the_nine_others_are_done(lane, spoil, end, places)


def the_nine_others_are_done(lane: type[Lane], spoil: Spoil, end: str, places: Iterable[int]) -> None:
    """AssertionError where they are not, or where the poisoned one does not end so; `bench.poison` has every place."""
    with scene() as at:
        for place in places:
            batch = lane(at)
            batch.lay(place)
            bad = batch.names[place]
            spoil(batch, bad)
            at.box.calls.clear()
            for _ in range(2):
                assert batch.deliver() == ({bad} if end == AGAIN else set())
            good = [name for name in batch.names if name != bad]
            assert {name: batch.done(name) for name in good} == {name: [1] * len(batch.done(name)) for name in good}
            if end == PARKED:
                assert batch.told(bad, "cannot be read and waits") == 1
            if end == DONE:
                assert set(batch.done(bad)) == {1}
            if end in (WAITS, IGNORED):
                assert set(batch.done(bad)) == {0}
