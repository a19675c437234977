"""Spoilt events: the files of events/ with wrong types, missing keys, extremes, odd letters, sizes, nests, forgeries.

`spoilt(document, chance)` is one such event. The same seed gives the same events.
"""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

ODD = [
    *(
        "",
        " ",
        "\x00",
        "\x1b[31m",
        "\u202eevil",
        "\u2028",
        "a\nb",
        "ｅ",
        "\ud800",
        "*bold*",
        "`x`",
        "<!channel>",
        "=1+1",
    ),
    *("../../etc", "'; DROP", "{}", "[", "null", "-0", "NaN", "1e999", "\uff1dSUM(A1)", "\U0001f600" * 40, "é" * 64),
]
EXTREMES: list[Any] = [
    *(None, True, False, 0, -1, 2**31, -(2**63), 10**400, 1e308, -1e308, float("nan"), float("inf"), [], {}, [[]]),
    *("9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+14:00", "2026-13-45", "1e30", 4e15, -4e15, {"S": 5}, {"": {}}),
]
SOURCES = [
    *(
        "aws.ec2",
        "aws.sagemaker",
        "aws.cloudwatch",
        "aws.autoscaling",
        "rightsizer.scheduler",
        "rightsizer",
        "aws.evil",
    ),
]
KINDS = [
    *("Sweep Due", "Report Due", "Tick", "SageMaker Training Job State Change", "SageMaker Endpoint State Change"),
    *("CloudWatch Alarm State Change", "EC2 Spot Instance Interruption Warning", "Unheard Of"),
]
FORGED: list[dict[str, Any]] = [
    {"Type": "Notification", "TopicArn": "arn:aws:sns:eu-west-1:111122223333:other"},
    {"kind": "look-at", "because": "full-sweep", "fleet": 10**9},
    {"kind": "look-beyond", "subject": "group", "names": ["g"] * 30, "because": "no-capacity"},
    {"replay-name": "again"},
    {"Records": [{}]},
    {"alarmData": {}},
]
LARGE = (100, 5_000, 60_000)
"""Characters or items of something overlong; SQS takes 1 MiB, Lambda 6 MB."""

type Place = tuple[Any, Any]
"""What holds a value, and its key there."""
type Spoil = Callable[[random.Random, Place], None]


def spoilt(document: Any, chance: random.Random) -> Any:
    """A copy with one to three things wrong, also inside texts that are JSON."""
    made = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        made = _once(made, chance)
    return made


def _once(document: Any, chance: random.Random) -> Any:
    holder = {"it": document}
    places = list(_places(document))
    place: Place = chance.choice(places) if places else (holder, "it")
    inside = _inside(place[0][place[1]])
    if inside is not None and chance.random() < 0.85:
        place[0][place[1]] = _text(_once(inside, chance))
    else:
        chance.choice(SPOILS)(chance, place)
    return holder.get("it")  # the whole document may have been dropped


def _places(tree: Any, depth: int = 0) -> "list[Place]":
    """Every key of the tree; a text that is JSON several times, since most of an event is in it."""
    if depth > 40 or not isinstance(tree, dict | list):
        return []
    found: list[Place] = []
    for key in list(tree)[:200] if isinstance(tree, dict) else range(min(len(tree), 200)):
        found += [(tree, key)] * (12 if _inside(tree[key]) is not None else 1)
        found += _places(tree[key], depth + 1)
    return found


def _inside(value: Any) -> Any:
    """The object or list that a text holds as JSON, or None."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) and found else None


def _text(value: Any) -> str:
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):  # a number of more digits than Python writes, or a nest too deep for it
        return "{"


def _set(place: Place, value: Any) -> None:
    place[0][place[1]] = value


def _missing(_: random.Random, place: Place) -> None:
    holder, key = place
    if isinstance(holder, dict):
        del holder[key]
    else:
        holder.pop(key)


def _type(chance: random.Random, place: Place) -> None:
    old = place[0][place[1]]
    _set(place, chance.choice([str(old)[:99], [old], {"value": old}, 7, None, True, [old, old]]))


def _extreme(chance: random.Random, place: Place) -> None:
    _set(place, copy.deepcopy(chance.choice(EXTREMES)))


def _odd(chance: random.Random, place: Place) -> None:
    old = place[0][place[1]]
    said = chance.choice(ODD)
    _set(place, chance.choice([said, f"{old}{said}"[:500], f"{said}{old}"[:500]]))


def _odd_key(chance: random.Random, place: Place) -> None:
    holder, key = place
    if isinstance(holder, dict):
        holder[chance.choice(ODD) + "k" * chance.choice((0, 0, *LARGE))] = holder.pop(key)


def _large(chance: random.Random, place: Place) -> None:
    size, old = chance.choice(LARGE), place[0][place[1]]
    _set(place, chance.choice(["x" * size, [old if isinstance(old, str) and len(old) < 9 else 0] * (size // 9)]))


def _nest(chance: random.Random, place: Place) -> None:
    tree: Any = place[0][place[1]]
    for _ in range(chance.choice((3, 30, 300))):
        tree = {"Metrics": [tree]} if chance.random() < 0.5 else [tree]
    _set(place, tree)


def _twice(_: random.Random, place: Place) -> None:
    old = place[0][place[1]]
    _set(place, old + old if isinstance(old, list) else [copy.deepcopy(old)] * 3)


def _forged(chance: random.Random, place: Place) -> None:
    holder = place[0][place[1]] if isinstance(place[0][place[1]], dict) else place[0]
    if isinstance(holder, dict):
        holder |= copy.deepcopy(chance.choice(FORGED))
        holder |= (
            {"source": chance.choice(SOURCES), "detail-type": chance.choice(KINDS)} if chance.random() < 0.7 else {}
        )


def _torn(_: random.Random, place: Place) -> None:
    old = place[0][place[1]]
    _set(place, old[: len(old) // 2] if isinstance(old, str | list) else None)


SPOILS: list[Spoil] = [_missing, _type, _extreme, _odd, _odd_key, _large, _nest, _twice, _forged, _torn]
