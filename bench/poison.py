"""Part of `make faults`: one poisoned thing at each of ten positions, for each door and every kind of poison.

    python -m bench.poison                       the whole grid
    python -m bench.poison --lane Clicks --place 3

`tests/doors/test_poison.py` has the lanes, a part of the kinds and, of each, one position in `make test`. Asserted: the
nine others are done, once, though the batch is delivered twice; the poisoned one ends as it must. Exits with 1 where
something broke. Pages of the sweep and rows of the report are in tests/flows.
"""

import argparse
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from bench.events import message
from rightsizer.telemetry import logger
from tests.doors import test_poison as known
from tests.doors.test_poison import AGAIN, HOSTILE, IGNORED, PARKED, TEN, Lane, Spoil, the_nine_others_are_done

type Kinds = Mapping[str, tuple[Spoil, str]]


def _message(body: str) -> Spoil:
    def spoil(lane: Any, name: str) -> None:
        lane.events[name] = message(name, body)

    return spoil


def _instance(identity: str) -> Spoil:
    def spoil(lane: Any, name: str) -> None:
        event = lane.events[name]
        lane.events[name] = event | {"detail": event["detail"] | {"instance-id": identity}}

    return spoil


def _click(body: str) -> Spoil:
    def spoil(lane: Any, name: str) -> None:
        lane.events[name] = lane.events[name] | {"body": body, "isBase64Encoded": False}

    return spoil


def _denied(lane: Any, name: str) -> None:
    lane.fail("autoscaling", "DescribeAutoScalingInstances", "AccessDenied", name)


def _pages(endpoint: str) -> str:
    look = {"endpoints": [endpoint], "because": "light-sweep", "alarm": "", "at": "2026-11-16T04:20:00Z", "key": "k"}
    return json.dumps({"kind": "look-at", **look, "fleet": 10})


FURTHER: Mapping[str, Kinds] = {
    "Endpoints": {
        "malformed": (_message("{not json"), AGAIN),
        "hostile": (_message(_pages(HOSTILE)), AGAIN),
        "too large": (_message(json.dumps({"source": "x" * 1_000_000})), IGNORED),
    },
    "Approvals": {
        "hostile": (lambda lane, name: lane.doc(name, HOSTILE), PARKED),
        "too large": (lambda lane, name: lane.doc(name, "x" * 380_000), PARKED),
    },
    "Instances": {
        "malformed": (_instance("no instance"), AGAIN),
        "hostile": (_instance(HOSTILE), AGAIN),
        "too large": (_instance("i-" + "0" * 200_000), AGAIN),
        "unreadable": (_denied, IGNORED),
    },
    "Clicks": {
        "hostile": (_click("payload=" + HOSTILE), IGNORED),
        "too large": (_click("payload=" + "x" * 1_000_000), IGNORED),
    },
}
"""Kinds that the tests leave out, by their lane."""
LANES: Mapping[str, tuple[type[Lane], Kinds]] = {
    lane.__name__: (lane, {**kinds, **FURTHER.get(lane.__name__, {})}) for lane, kinds, _ in known.LANES
}
type Cell = tuple[str, str, int]
"""Lane, kind, position."""


def tried(cell: Cell) -> tuple[Cell, str]:
    """What broke in one cell; empty where all held."""
    logger.setLevel(logging.CRITICAL)
    name, kind, place = cell
    lane, kinds = LANES[name]
    spoil, end = kinds[kind]
    try:
        the_nine_others_are_done(lane, spoil, end, (place,))
    except Exception as error:
        return cell, f"{type(error).__name__}: {error!s:.300}"
    return cell, ""


def main() -> int:
    """Run, print, and say by the exit code whether everything held."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lane", default="", help="only lanes whose name contains this")
    parser.add_argument("--place", type=int, default=-1, help="only this position, from 0")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    places = TEN if given.place < 0 else (given.place,)
    cells = [
        (name, kind, place)
        for name, (_, kinds) in LANES.items()
        if given.lane in name
        for kind in kinds
        for place in places
    ]
    began, bad, ran = time.monotonic(), 0, Counter[str]()
    with ProcessPoolExecutor(given.workers) as pool:
        for (name, kind, place), why in pool.map(tried, cells):
            ran[name] += 1
            bad += bool(why)
            if why:
                print(f"    {name} {kind}, position {place}: {why}", flush=True)
    lanes = ", ".join(f"{name} {count}" for name, count in ran.items())
    kinds = len({(name, kind) for name, kind, _ in cells})
    seconds = time.monotonic() - began
    print(f"{len(cells)} batches of ten, {kinds} poisons: {lanes}; {bad} broken; {seconds:.0f} s")
    return 1 if bad or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
