"""Whatever arrives, the answer is a Trigger, a NoTrigger or an InputError, never another exception."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer import intake
from rightsizer.domain.trigger import Trigger
from rightsizer.errors import InputError
from rightsizer.intake.registry import BY_KEY, INVOKING, QUEUED

EVENTS = Path(__file__).parents[2] / "events"
TOPIC = "arn:aws:sns:eu-west-1:111122223333:alarms"
FILES = [
    path
    for path in sorted(EVENTS.glob("*/*.json"))
    if path.parent.name not in ("sqs", "slack", "stream") and not path.stem.startswith("stream-")
]
DOCUMENTS: list[Any] = [json.loads(path.read_text()) for path in FILES]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
trees = st.recursive(scalars, lambda t: st.lists(t, max_size=3) | st.dictionaries(st.text(max_size=8), t, max_size=3))
markers = st.sampled_from([*BY_KEY, "detail-type", "source", "detail", "Type", "Message", "state", "time", "id"])
kinds = st.sampled_from(sorted(key for parsers in (*QUEUED, *INVOKING) for key in parsers))


def parse(value: object) -> Trigger | None:
    try:
        return intake.parse(value, topic=TOPIC)
    except InputError:
        return None


@given(trees)
def test_garbage_never_raises_anything_else(value: object) -> None:
    parse(value)


@given(st.dictionaries(markers, trees))
def test_garbage_with_familiar_keys_never_raises_anything_else(value: object) -> None:
    parse(value)


@given(kinds, st.dictionaries(markers, trees), trees)
def test_garbage_in_a_familiar_envelope_never_raises_anything_else(
    kind: tuple[str, str], more: dict[str, Any], detail: Any
) -> None:
    parse({**more, "source": kind[0], "detail-type": kind[1], "detail": detail})


@given(st.text() | st.binary())
def test_garbage_text_never_raises_anything_else(text: str | bytes) -> None:
    parse(text)


def _paths(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path] * bool(path) + [found for key, item in items for found in _paths(item, (*path, key))]


@settings(max_examples=300)
@given(st.data())
def test_a_documented_event_with_one_field_spoilt_is_parsed_or_refused(data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    *way, last = data.draw(st.sampled_from(_paths(document)))
    place = document
    for key in way:
        place = place[key]
    if isinstance(place, dict) and data.draw(st.booleans()):
        del place[last]
    else:
        place[last] = data.draw(trees)
    parse(document)


@given(st.sampled_from(DOCUMENTS), st.dictionaries(st.text(min_size=12, max_size=16), trees, max_size=3))
def test_new_fields_of_aws_change_nothing(document: dict[str, Any], novel: dict[str, Any]) -> None:
    spread = {**document, **{f"novel-{key}": value for key, value in novel.items()}}
    if isinstance(document.get("detail"), dict):
        spread["detail"] = {**document["detail"], **{f"novel{key}": value for key, value in novel.items()}}
    assert intake.parse(spread, topic=TOPIC) == intake.parse(document, topic=TOPIC)


def test_a_message_nested_too_deep_is_refused() -> None:
    assert parse("[" * 200_000) is None
    wrapped = {"Type": "Notification", "Message": "[" * 200_000}
    assert intake.parse(wrapped) is not None


def _deep(levels: int) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for _ in range(levels):
        tree = {"Metrics": [tree]}
    return tree


NASTY: list[Any] = [None, "", "x" * 1025, "\ud800", float("nan"), 10**400, _deep(300), [[]], {"": None}]


def test_every_field_of_every_documented_event_may_be_nasty() -> None:
    for path, document in zip(FILES, DOCUMENTS, strict=True):
        for *way, last in _paths(document):
            spoilt = copy.deepcopy(document)
            place = spoilt
            for key in way:
                place = place[key]
            for value in NASTY:
                place[last] = value
                try:
                    parse(spoilt)
                except Exception as error:
                    raise AssertionError(f"{path.name}: {[*way, last]} = {value!r:.60}") from error
