"""Documents as rows of a file: without sentences, with short numbers and short lists, one JSON line each."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
TEXT = "…"
"""Stands where a sentence was left out, so that a file still shows whether there was one."""
SENTENCES = frozenset(
    {
        "because", "cause", "change_words", "client_change", "comment", "enable", "not_checked", "not_known", "notes",
        "outcome", "problem", "promise_words", "remedy", "said", "sentence", "shown", "text", "title", "told", "words",
    }
)  # fmt: skip
"""Fields that hold text for people. Any other text of many words counts as a sentence too."""
FIGURES = frozenset({"facts", "figures"})
"""Fields whose texts are figures with their units: they are kept."""
USUAL: Mapping[str, Any] = {"hours_per_month": "730", "asleep_hours": 0.0, "wake_s": None, "component": ""}
"""Fields that are left out at this value: nearly all documents have it."""
MANY_WORDS = 7
MANY_NUMBERS = 30
DIGITS = 10
"""Significant digits of a number: fewer than a processor's own rounding shows in."""


def row_of(value: Any) -> Any:
    """A plain JSON value without its sentences, with rounded numbers and with each long list of numbers as a sum."""
    return _row(value, "")


def _row(value: Any, field: str) -> Any:
    if isinstance(value, Mapping):
        inner = field if field in FIGURES else ""
        told = {key: found for key, found in value.items() if key not in USUAL or found != USUAL[key]}
        return {key: _row(found, inner or key) for key, found in told.items()}
    if isinstance(value, list | tuple):
        return _list(value, field)
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, str):
        return _text(value, field)
    return value


def _list(values: Sequence[Any], field: str) -> Any:
    if len(values) >= MANY_NUMBERS and all(value is None or isinstance(value, int | float) for value in values):
        rounded = [_row(value, field) for value in values]
        digest = hashlib.sha256(json.dumps(rounded).encode()).hexdigest()[:12]
        return {"numbers": len(values), "sum": _row(float(sum(v for v in values if v is not None)), ""), "hash": digest}
    if field in SENTENCES and all(isinstance(value, str) for value in values):
        return [TEXT] if values else []
    return [_row(value, field) for value in values]


def _text(value: str, field: str) -> str:
    if field in FIGURES or not value:
        return value
    return TEXT if field in SENTENCES or len(value.split()) >= MANY_WORDS else value


def detail_of(text: str) -> str:
    """The words before colons that begin a detail of a journal, which the program reads; the rest is for people."""
    found = re.match(r"(?:[a-z-]+:)+", text)
    return (found[0] if found else "") + (TEXT if text else "")


def write(name: str, found: Iterable[tuple[str, Any]]) -> Path:
    """Write the rows as JSON lines, each with its name first."""
    path = DATA / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = [json.dumps([at, value], separators=(",", ":"), ensure_ascii=False) + "\n" for at, value in found]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def read(name: str) -> dict[str, Any]:
    """The rows of a file by their names, in order."""
    return dict(map(json.loads, (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()))


def differences(frozen: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Each difference on a line: the row, the field, what it was and what it is."""
    found = [f"{at}: the row is gone" for at in frozen if at not in now]
    found += [f"{at}: the row is new" for at in now if at not in frozen]
    for at, old in frozen.items():
        if at in now:
            found += _differences(old, json.loads(json.dumps(now[at])), at)
    if not found and list(frozen) != list(now):
        found = ["the rows stand in another order"]
    return found


def _differences(old: Any, new: Any, at: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        gone = [f"{at}: {key} is gone, it was {_shown(old[key])}" for key in old if key not in new]
        more = [f"{at}: {key} is new, it is {_shown(new[key])}" for key in new if key not in old]
        deeper = [line for key in old if key in new for line in _differences(old[key], new[key], f"{at}: {key}")]
        if not (gone or more or deeper) and list(old) != list(new):
            deeper = [f"{at}: the fields stood as {', '.join(old)} and now stand as {', '.join(new)}"]
        return gone + more + deeper
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for n, (was, now) in pairs for line in _differences(was, now, f"{at}[{n}]")]
    same = old == new and type(old) is type(new)
    return [] if same else [f"{at}: was {_shown(old)}, is {_shown(new)}"]


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}{TEXT}"
