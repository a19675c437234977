"""What the tags of an endpoint say, in rightsizer's own names.

A value is clear as people type it: with spaces around it, in capital letters, with its unit. What is not clear is left
out and named. While one tag is not clear, nothing of its endpoint changes by itself: whoever wrote it meant something.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rightsizer.domain.endpoint import (
    ERROR_TAG,
    MAY_GROW_TAG,
    MAY_GROW_WANTED,
    MODE_TAG,
    P95_TAG,
    Mode,
    Objective,
    may_grow_usd,
)
from rightsizer.domain.office_hours import HOURS_TAG, parse_hours
from rightsizer.domain.ownership import named_owner, owner_of
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import InputError

PREFIX = "rightsizer:"
LEAST_TAG = "rightsizer:min-instances"
YES_OR_NO = ("rightsizer:cold-start-ok", "rightsizer:shadow-ok", "rightsizer:async-ok")
YES, NO = ("true", "yes"), ("false", "no")
"""What such a tag may say, in any case."""
OTHERS = ("rightsizer:owner", "rightsizer:fallback-config", "rightsizer:alarms", "rightsizer:change")
"""Tags whose values are names."""
KNOWN = (MODE_TAG, P95_TAG, ERROR_TAG, LEAST_TAG, MAY_GROW_TAG, HOURS_TAG, *YES_OR_NO, *OTHERS)
P95 = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,2})?) *(?:ms)?|([0-9]{1,4}(?:\.[0-9]{1,3})?) *s", re.IGNORECASE)
"""Milliseconds, or seconds with their unit. 2.000 alone is two thousand to some and two to others: not clear."""
PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,4})?) *%?")
MODES: Mapping[str, Mode] = {mode.value: mode for mode in Mode}


@dataclass(frozen=True, slots=True)
class TagWishes:
    """Wishes that the tags of an endpoint state."""

    mode: Mode
    mode_declared: bool
    objective: Objective
    owner: str
    owned_by: str
    bad: tuple[Reason, ...]
    """Tags of ours that are not clear: each with its value and what it should be."""
    asks_because: str = ""
    """Why the mode is `propose` although its tag says `auto`; empty where it is not so."""


def declared_p95_s(tags: Mapping[str, str]) -> float | None:
    """The p95 in seconds that the owner's tag names; None where it is absent or not clear.

    Less than a millisecond is a slip: who writes 0.8 means seconds.
    """
    found = P95.fullmatch(tags.get(P95_TAG, "").strip())
    if found is None:
        return None
    milliseconds = float(found[1]) if found[1] else 1000 * float(found[2])
    return milliseconds / 1000 if 1 <= milliseconds <= 3_600_000 else None


def allowed_errors(tags: Mapping[str, str]) -> float | None:
    """Share of failed requests that the owner's tag allows, 0..1; None where it is absent or no percentage."""
    found = PERCENT.fullmatch(tags.get(ERROR_TAG, "").strip())
    return float(found[1]) / 100 if found is not None and float(found[1]) <= 100 else None


def least_instances(tags: Mapping[str, str]) -> int | None:
    """Instances that always run, by the owner's tag.

    None where it is absent or no whole number from 1 to 1000.
    """
    found = re.fullmatch(r"[0-9]{1,4}", tags.get(LEAST_TAG, "").strip())
    return int(found[0]) if found is not None and 1 <= int(found[0]) <= 1000 else None


FIGURES: Sequence[tuple[str, Callable[[Mapping[str, str]], object], str]] = (
    (P95_TAG, declared_p95_s, "milliseconds from 1 to 3600000, such as 800, or seconds with their unit: 0.8 s"),
    (ERROR_TAG, allowed_errors, "a percentage from 0 to 100, such as 0.5"),
    (LEAST_TAG, least_instances, "a whole number from 1 to 1000"),
    (MAY_GROW_TAG, may_grow_usd, f"{MAY_GROW_WANTED}; it allows nothing"),
)
"""Tags with a figure: how each is read, and what it should be."""


def is_yes(value: str) -> bool:
    """Whether the value of a tag of `YES_OR_NO` says yes; what is not clear says no."""
    return value.strip().lower() in YES


def parse_tags(tags: Mapping[str, str]) -> TagWishes:
    """Read our tags. Total: what is not clear is left out, named, and keeps automatic mode from acting."""
    mode, bad = _mode(tags), tuple(_unclear(tags))
    held = mode is Mode.AUTO and bool(bad)
    return TagWishes(
        mode=Mode.PROPOSE if held else mode,
        mode_declared=MODE_TAG in tags,
        objective=Objective(declared_p95_s(tags), allowed_errors(tags), least_instances(tags)),
        owner=named_owner(tags),
        owned_by=owner_of(tags),
        bad=bad,
        asks_because=f"{bad[0].sentence}; until then nothing changes by itself" if held else "",
    )


def bad_tag_refusal(tags: Mapping[str, str]) -> Reason | None:
    """Why nothing of the endpoint changes by itself: the first tag of ours that is not clear. None: all are."""
    return next(_unclear(tags), None)


def _mode(tags: Mapping[str, str]) -> Mode:
    """The mode that the tag says. A word that is none of the four counts as report.

    IAM compares the tag letter by letter, so that AUTO permits nothing; off and report are obeyed however they are
    written.
    """
    text = tags.get(MODE_TAG, Mode.PROPOSE.value)
    meant = MODES.get(text.strip().lower(), Mode.REPORT)
    return Mode.PROPOSE if meant is Mode.AUTO and text not in MODES else meant


def _unclear(tags: Mapping[str, str]) -> Iterator[Reason]:
    yield from _unclear_mode(tags)
    for key, read, wanted in FIGURES:
        if key in tags and read(tags) is None:
            yield _bad(key, tags, wanted)
    for key in YES_OR_NO:
        if tags.get(key, "true").strip().lower() not in YES + NO:
            yield _bad(key, tags, "true or false; it counts as false")
    if HOURS_TAG in tags:
        try:
            parse_hours(tags[HOURS_TAG])
        except InputError as error:
            yield Reason(Code.BAD_TAG, f"the tag {error}")
    for key in sorted(tags):
        if key.strip().lower().startswith(PREFIX) and key not in KNOWN:
            near = difflib.get_close_matches(key.strip().lower(), KNOWN, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            yield Reason(Code.BAD_TAG, f"the tag {key} is none that rightsizer reads{meant}")


def _unclear_mode(tags: Mapping[str, str]) -> Iterator[Reason]:
    text = tags.get(MODE_TAG, "propose")
    meant = MODES.get(text.strip().lower())
    if text in MODES or meant in (Mode.OFF, Mode.REPORT):
        return
    if meant is None:
        yield _bad(MODE_TAG, tags, "one of off, report, propose, auto; it counts as report")
    else:
        yield _bad(
            MODE_TAG, tags, f"{meant.value}, letter by letter, for IAM compares it so; until then nothing changes"
        )


def _bad(key: str, tags: Mapping[str, str], wanted: str) -> Reason:
    return Reason(Code.BAD_TAG, f"the tag {key} is {tags[key]!r}; it should be {wanted}")
