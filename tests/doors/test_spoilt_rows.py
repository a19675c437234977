"""Each row of the table is spoilt, at all doors at once: the doors do their other work, and what is not ours stays.

The rows are those of the first release (tests/golden), about an endpoint and a group; the other work is about another
endpoint.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.events import EVENTS
from rightsizer import bootstrap
from rightsizer.domain import checks
from rightsizer.domain.proposal import Decision, ProposalState
from tests.doors.scene import APPROVER, BIG, PROPOSE, Scene, scene
from tests.samples import proposal
from tests.table import decide

GOLDEN = Path(__file__).parents[1] / "golden" / "first-release"
NOW = datetime.fromisoformat("2026-11-16T06:30:00+00:00")
NOT_AT_ONCE = {"digests", "change-applied", "change-proven", "errand-rolled-back", "proposal-proven"}
"""No row, or of the same key as an earlier one."""
OTHER, ASKED = "healthy", "elsewhere"
ANEW = {"RECOMMENDATION", "SPENDING", "FACTS", "MARK", "SCORE", "PARKED"}
"""Rows that are made anew, whatever they hold: nothing of them is kept (decision 56)."""
KEYS = {"pk", "sk", "gsi1pk", "gsi1sk"}
UNKNOWN: dict[str, Any] = {
    "n-text": {"S": "kept"},
    "n-whole": {"N": "7"},
    "n-fraction": {"N": "1.5"},
    "n-yes": {"BOOL": True},
    "n-null": {"NULL": True},
    "n-list": {"L": [{"N": "1"}, {"M": {"a": {"NULL": True}}}]},
    "n-map": {"M": {"a": {"S": "b"}}},
    "n-texts": {"SS": ["a", "b"]},
    "n-numbers": {"NS": ["1.5", "2"]},
    "n-bytes": {"B": b"\x00\xff"},
    "n-many": {"BS": [b"a"]},
}
"""One attribute of each type that DynamoDB has."""
type Item = dict[str, Any]


def missing(item: Item, turn: int) -> Item:
    ours = sorted(set(item) - KEYS - {"expires"})
    gone = ours[turn % len(ours)] if ours else ""
    return {name: value for name, value in item.items() if name != gone}


def of_another_type(item: Item, turn: int) -> Item:
    ours = sorted(set(item) - KEYS - {"expires"})
    return item | ({ours[turn % len(ours)]: {"M": {}}} if ours else {})


def nonsense(item: Item, turn: int) -> Item:
    said = ("~", "NaN", "0001-01-01T00:00:00+14:00")[turn % 3]
    spoilt = {"S": {"S": said}, "N": {"N": ("1.5", "-3", "9" * 38)[turn % 3]}}
    return item | {name: spoilt[next(iter(item[name]))] for name in set(item) - KEYS - {"kind", "expires"}}


def of_a_future_schema(item: Item, _turn: int) -> Item:
    if "doc" not in item:
        return item
    return (
        item
        | {
            "doc": {
                "S": json.dumps(json.loads(item["doc"]["S"]) | {"schema": checks.SCHEMA_TEST_FIRST + 1, "novel": 1})
            }
        }
        | UNKNOWN
    )


def with_unknown_attributes(item: Item, _turn: int) -> Item:
    return item | UNKNOWN


SPOILS: Mapping[str, tuple[Callable[[Item, int], Item], int]] = {
    "missing-1": (missing, 0),
    "missing-2": (missing, 1),
    "type": (of_another_type, 0),
    "nonsense-1": (nonsense, 0),
    "nonsense-2": (nonsense, 1),
    "future": (of_a_future_schema, 0),
    "unknown": (with_unknown_attributes, 0),
}


def rows() -> dict[str, Item]:
    """One row of each kind."""
    found = {p.stem: json.loads(p.read_text()) for p in GOLDEN.glob("*.json") if p.stem not in NOT_AT_ONCE}
    found["spending"] = {"pk": {"S": "ACCOUNT"}, "sk": {"S": "SPENDING"}, "usd": {"S": "9"}, "at": {"S": "2026"}}
    told = {"pk": {"S": "PARKED#CHANGE#c-5db143886004d0d1"}, "sk": {"S": "PARKED"}, "at": {"S": "2026-11-01"}}
    return found | {"parked": told}


@pytest.fixture(scope="module")
def at() -> Iterator[Scene]:
    with scene(now=NOW) as made:
        made.add(BIG, tags=PROPOSE, days=2)
        made.add("tiny-serverless", as_name=OTHER, days=1)
        made.stack.quiet |= {schedule.name for schedule in made.stack.parts.schedules}
        yield made


class Ledger:
    """The table, as DynamoDB has it."""

    def __init__(self, at: Scene) -> None:
        self.at, self.client, self.name = at, at.box.client("dynamodb"), at.stack.parts.names["Table"]

    def all(self) -> dict[tuple[str, str], Item]:
        with self.at.box.gate.unrecorded():
            pages = self.client.get_paginator("scan").paginate(TableName=self.name)
            return {(i["pk"]["S"], i["sk"]["S"]): i for page in pages for i in page["Items"]}

    def hold(self, items: list[Item]) -> None:
        """Nothing but these rows, of which no stream tells."""
        with self.at.box.gate.unrecorded():
            for pk, sk in self.all():
                self.client.delete_item(TableName=self.name, Key={"pk": {"S": pk}, "sk": {"S": sk}})
            for item in items:
                self.client.put_item(TableName=self.name, Item=item)
        for stream in self.at.stack.streams:
            stream.skip()


def run_every_door(at: Scene) -> None:
    """All seven doors, each with the spoilt rows and with other work."""
    made = proposal("p-other", ASKED, created_at=NOW, expires_at=NOW + timedelta(days=9))
    with at.box.gate.unrecorded():
        bootstrap.store().save(made.recommendation, made)
    at.stack.settle()  # propose posts it
    at.stack.fire("Sweep.Hourly")
    at.stack.fire("Sweep.Daily")
    at.stack.fire("Apply.Tick")
    event = json.loads((EVENTS / "spot" / "interruption-terminate.json").read_text())
    for instance in ("i-00000000000000001", "i-00000000000000002"):
        of_one = {"id": instance, "time": f"{NOW:%Y-%m-%dT%H:%M:%SZ}", "detail": event["detail"]}
        of_one["detail"] = {**event["detail"], "instance-id": instance}
        at.stack.invoke("interruption", event | of_one)
    at.stack.fire("Report.Weekly")
    click = at.slack.click(at.message(ASKED), "Approve", APPROVER, at.box.clock.now)
    assert at.stack.invoke("respond", click, "url")["statusCode"] == 200


@pytest.mark.parametrize("spoil", SPOILS)
def test_spoilt_rows_stop_no_door_and_lose_nothing(at: Scene, spoil: str) -> None:
    table, (make, turn) = Ledger(at), SPOILS[spoil]
    spoilt = {
        name: make(item, turn + (0 if spoil == "future" else number))
        for number, (name, item) in enumerate(sorted(rows().items()))
    }
    table.hold(list(spoilt.values()))
    at.box.calls.clear()
    runs, letters = len(at.stack.failures), len(at.stack.dead_letters())
    run_every_door(at)
    assert [repr(one.error) for one in at.stack.failures[runs:]] == []
    assert len(at.stack.dead_letters()) == letters
    after = table.all()
    assert f"ENDPOINT#{OTHER}" in {pk for pk, sk in after if sk == "RECOMMENDATION"}
    assert after["PROPOSAL#p-other", "PROPOSAL"]["state"] == {"S": "approved"}
    for name, item in spoilt.items():
        key = item["pk"]["S"], item["sk"]["S"]
        if key[1] not in ANEW and (key in after or key[1] != "LOCK"):  # a change that ends gives its locks back
            found = after[key]
            assert {n: found.get(n) for n in UNKNOWN if n in item} == {n: item[n] for n in UNKNOWN if n in item}, name
            if spoil == "future" and "doc" in item and key[1] != "FREEZE":
                assert {**found, "gsi1sk": 0} == {**item, "gsi1sk": 0}, name


def test_a_decision_keeps_the_unknown_attributes_of_a_proposal(at: Scene) -> None:
    table = Ledger(at)
    pending = rows()["proposal-pending"] | UNKNOWN
    table.hold([pending])
    with at.box.gate.unrecorded():
        pid = pending["pk"]["S"].removeprefix("PROPOSAL#")
        decide(bootstrap.store(), pid, Decision(ProposalState.APPROVED, "slack:U1", NOW), NOW)
    (found,) = table.all().values()
    assert found["state"] == {"S": "approved"}
    assert {name: found[name] for name in UNKNOWN} == UNKNOWN
