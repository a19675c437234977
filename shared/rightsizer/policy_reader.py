"""The policy document from its JSON text. Total: what cannot be understood is named in `PolicyDocument.problems`.

Neither pydantic nor boto3: the door that answers clicks reads it too. The published schema is made from the same table
of keys (`terminal.policy_page`), and tests hold both to the same documents.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from rightsizer.domain.approvers import SHORT, SLACK, WHOLE
from rightsizer.domain.environment import Environment, environment_of_word
from rightsizer.domain.policy import ADDABLE
from rightsizer.domain.policy_document import (
    ASSIGN,
    DEFAULTS,
    ENVIRONMENTS,
    OWNERS,
    Assignment,
    PolicyDocument,
    PolicyOwner,
    Section,
    describe_problem,
    nearest,
)
from rightsizer.domain.policy_key import APPROVERS, KEYS, PEOPLE, Fallback, KeyKind
from rightsizer.errors import SettingsError
from rightsizer.settings import parse_window, parse_zone

TOP = (DEFAULTS, ENVIRONMENTS, ASSIGN, OWNERS)
IGNORED = ("version", "$schema")
RELEASE = 1
"""The version of the document that this release reads."""
MOST_ALARMS = 100
"""Names that one DescribeAlarms may carry (CloudWatch API Reference)."""
CHANNEL_ID = re.compile("[CDG][A-Z0-9]{2,20}")
AS_TODAY = "as-today"
HELD = "until then no change begins"
LOST = (
    "until it is put right no change begins, nobody decides, and nothing changes by itself; what began goes on, and "
    "what goes back is not stopped"
)


def read_policy(text: str) -> PolicyDocument:
    """The document behind its JSON text; a text of blanks is an empty document."""
    if not text.strip():
        return PolicyDocument()
    try:
        found = json.loads(text, parse_float=Decimal, parse_constant=float, object_pairs_hook=_Pairs)
    except (ValueError, ArithmeticError, RecursionError) as error:
        return lost_document(f"policy document: it is not JSON: {str(error)[:120]}")
    if not isinstance(found, _Pairs):
        return lost_document("policy document: it should be an object with " + ", ".join(TOP))
    version = found.values.get("version", RELEASE)
    if version != RELEASE or isinstance(version, bool):
        return lost_document(f"policy document, version: it is {_shorten(version)}; this release reads {RELEASE}")
    return _Reading(found).document()


def lost_document(why: str) -> PolicyDocument:
    """The document that holds where the whole of it cannot be read: nothing begins and nobody decides."""
    sentence = f"{why}; {LOST}"
    return PolicyDocument(Section(DEFAULTS, lost=sentence), problems=(sentence,))


class _Pairs:
    """An object of JSON, with the keys that it gives twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.values = dict(pairs)
        keys = [key for key, _ in pairs]
        self.twice = {key for key in keys if keys.count(key) > 1} if len(self.values) < len(keys) else set[str]()


@dataclass
class _Reading:
    """One pass over a document; problems are collected in the order of the text."""

    found: _Pairs
    problems: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    """Problems that may hide a limit of any endpoint."""

    def document(self) -> PolicyDocument:
        for key in self.found.values:
            self._check_top(key)
        defaults = self._section(DEFAULTS, self.found.values.get(DEFAULTS, _Pairs([])), scoped=False)
        environments = dict(self._environments())
        owners = dict(self._owners())
        assignments, broken = self._assignments()
        if self.held:
            defaults = replace(defaults, held=(*defaults.held, *self.held))
        return PolicyDocument(defaults, environments, owners, assignments, broken, tuple(dict.fromkeys(self.problems)))

    def _check_top(self, key: str) -> None:
        if key in self.found.twice:
            self._hold(f"policy document, {key}: it is given twice; {HELD}")
        if key in TOP or key in IGNORED:
            return
        place = f"policy document, {_name(key)}: there is no such key"
        if key in KEYS:
            self._hold(f"{place} here; write it into {DEFAULTS}; {HELD}")
            return
        meant = nearest(key, TOP)
        hint = f"did you mean {meant}? It may have" if meant else "there may be"
        self._hold(f"{place}; {hint} {', '.join(TOP)}; {HELD}")

    def _hold(self, sentence: str) -> None:
        self.problems.append(sentence)
        self.held.append(sentence)

    def _objects(self, place: str) -> Iterator[tuple[str, Any]]:
        """The entries of an object at the top; nothing where it is none."""
        found = self.found.values.get(place, _Pairs([]))
        if not isinstance(found, _Pairs):
            self._hold(f"policy document, {place}: it is {_shorten(found)}, and should be an object; {HELD}")
            return
        for key in sorted(found.twice):
            self._hold(f"policy document, {place}.{_name(key)}: it is given twice; {HELD}")
        yield from found.values.items()

    def _environments(self) -> Iterator[tuple[Environment, Section]]:
        for name, value in self._objects(ENVIRONMENTS):
            place = f"{ENVIRONMENTS}.{_name(name)}"
            if name in tuple(Environment):
                yield Environment(name), self._section(place, value)
                continue
            close = nearest(name, tuple(Environment))
            meant = environment_of_word(name) or (Environment(close) if close else None)
            text = f"policy document, {place}: there is no such environment; it may be {', '.join(Environment)}"
            if meant is None or meant.value in self.found.values[ENVIRONMENTS].values:
                self._hold(f"{text}; {HELD}")
                continue
            sentence = f"{text}; did you mean {meant.value}? There, {LOST}"
            self.problems.append(sentence)
            yield meant, Section(place, lost=sentence)

    def _owners(self) -> Iterator[tuple[str, PolicyOwner]]:
        seen = set[str]()
        for name, value in self._objects(OWNERS):
            place, key = f"{OWNERS}.{_name(name)}", name.strip().casefold()
            if not key or key in seen:
                why = "two owners differ by upper and lower case only" if key else "an owner needs a name"
                self._hold(f"policy document, {place}: {why}; {HELD}")
                continue
            seen.add(key)
            section, people = self._section(place, value, extra=(PEOPLE,)), tuple[str, ...]()
            if isinstance(value, _Pairs) and PEOPLE in value.values:
                people, problem = _people(f"{place}.{PEOPLE}", value.values[PEOPLE])
                if problem:
                    self.problems.append(problem)
                    section = replace(section, held=(*section.held, problem))
            yield key, PolicyOwner(section, frozenset(people))

    def _section(self, place: str, found: Any, *, scoped: bool = True, extra: tuple[str, ...] = ()) -> Section:
        """One section; `scoped` is false for `defaults`, where keys of the whole account stand too."""
        if not isinstance(found, _Pairs):
            lost = f"policy document, {place}: it is {_shorten(found)}, and should be an object; {LOST}"
            self.problems.append(lost)
            return Section(place, lost=lost)
        values, broken, held = dict[str, Any](), dict[str, str](), list[str]()
        allowed = [key for key, policy_key in KEYS.items() if not (scoped and policy_key.is_of_account)]
        for key, value in found.values.items():
            where = f"{place}.{_name(key)}"
            if key in extra and key not in found.twice:
                continue
            if key not in allowed:
                sentence, meant = _unknown_key(where, key, [*allowed, *extra])
                if meant in allowed and meant not in found.values:
                    broken[meant] = sentence
                elif key not in KEYS or KEYS[key].fallback is Fallback.HOLD:
                    held.append(sentence)
                self.problems.append(sentence)
                continue
            if key in found.twice:
                broken[key] = describe_problem(where, "it is given twice", key)
            else:
                try:
                    values[key] = READERS[KEYS[key].kind](key, value)
                except _WrongValueError as error:
                    broken[key] = describe_problem(where, error.wrong, key, error.allowed)
                    values |= {key: error.rest} if error.rest else {}
            self.problems += [broken[key]] if key in broken else []
        return Section(place, values, broken, tuple(held))

    def _assignments(self) -> tuple[tuple[Assignment, ...], bool]:
        """The rules that could be understood, and whether one could not."""
        rules, given = list[Assignment](), self.found.values.get(ASSIGN, [])
        broken = ASSIGN in self.found.twice or not isinstance(given, list)
        if not isinstance(given, list):
            self.problems.append(f"policy document, {ASSIGN}: it is {_shorten(given)}, and should be a list; {_STRICT}")
        for number, entry in enumerate(given if isinstance(given, list) else []):
            place = f"{ASSIGN}[{number}]"
            rule = _assignment(place, entry)
            if isinstance(rule, str):
                self.problems.append(f"policy document, {place}: {rule}; {_STRICT}")
                broken = True
            elif not broken:  # a later rule counts only where no earlier one does, and that is not known any more
                rules.append(rule)
        return tuple(rules), broken


_STRICT = "until then whatever no rule before it names counts as production"


def _assignment(place: str, entry: Any) -> Assignment | str:
    """The rule, or what is wrong with it."""
    if not isinstance(entry, _Pairs):
        return f"it is {_shorten(entry)}, and should be an object with environment, and endpoints or tag or both"
    keys = ("environment", "endpoints", "tag")
    for key in entry.values:
        if key not in keys or key in entry.twice:
            meant = nearest(key, keys)
            return f"{_name(key)} is no key of it; " + (
                f"did you mean {meant}?" if meant else f"it has {', '.join(keys)}"
            )
    name, pattern, tag = (entry.values.get(key, "") for key in keys)
    if name not in tuple(Environment):
        meant_one = environment_of_word(name) if isinstance(name, str) else None
        hint = f"; did you mean {meant_one.value}?" if meant_one else ""
        return f"environment is {_shorten(name)}, and should be one of {', '.join(Environment)}{hint}"
    if not isinstance(pattern, str) or not isinstance(tag, str) or not (pattern or tag):
        return "it should have endpoints (a name, with * for any signs) or tag (KEY=VALUE) or both, as texts"
    key, equals, value = tag.partition("=")
    if tag and not (key.strip() and equals and value.strip()):
        return f"tag is {_shorten(tag)}, and should look like team=research"
    return Assignment(Environment(name), place, pattern or "*", key.strip(), value.strip() or "*")


def _people(place: str, value: Any) -> tuple[tuple[str, ...], str]:
    """Persons who own, and what is wrong with the list; empty where nothing is."""
    try:
        return _entries(APPROVERS, value), ""
    except _WrongValueError as error:
        wanted = error.allowed or KEYS[APPROVERS].kind.value
        why = f"policy document, {place}: {error.wrong}, and should be {wanted}"
        return error.rest, f"{why}; until then nobody knows who owns, and no change of this owner begins"


def _unknown_key(where: str, key: str, allowed: list[str]) -> tuple[str, str]:
    """The sentence about a key that has no meaning there, and the key that was probably meant."""
    if key in KEYS:
        text = f"policy document, {where}: it counts the whole account; write it into {DEFAULTS}"
        return text + (f"; {HELD} of what the section is about" if KEYS[key].fallback is Fallback.HOLD else ""), ""
    meant = nearest(key, allowed)
    text = f"policy document, {where}: there is no such key"
    if not meant:
        return f"{text}; there are {', '.join(allowed)}; {HELD} of what the section is about", ""
    if meant not in KEYS:
        return f"{text}; did you mean {meant}? {HELD} of what the section is about", ""
    return describe_problem(where, f"there is no such key; did you mean {meant}? It", meant).replace(", and", ""), meant


class _WrongValueError(Exception):
    """A value that is not what its key takes. `rest`: what of it could be understood."""

    def __init__(self, wrong: str, allowed: str = "", rest: tuple[str, ...] = ()) -> None:
        self.wrong, self.allowed, self.rest = wrong, allowed, rest
        super().__init__(wrong)


def _shorten(value: Any) -> str:
    if isinstance(value, _Pairs):
        return "an object"
    return json.dumps(value, default=str)[:80] if not isinstance(value, list) else f"a list of {len(value)}"


def _name(key: str) -> str:
    """A key as sentences show it: on one line and short."""
    return re.sub(r"[^\w.@ -]", "?", key)[:60] or '""'


def _number(key: str, value: Any) -> Decimal:
    policy_key = KEYS[key]
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if not is_number or not Decimal(str(policy_key.least)) <= value <= Decimal(str(policy_key.most)):
        raise _WrongValueError(f"it is {_shorten(value)}")
    return Decimal(value)


def _whole(key: str, value: Any) -> int:
    found = _number(key, value)
    if found != found.to_integral_value():
        raise _WrongValueError(f"it is {_shorten(value)}")
    return int(found)


def _flag(_: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _WrongValueError(f"it is {_shorten(value)}")
    return value


def _window(_: str, value: Any) -> Any:
    try:
        return parse_window(value)
    except SettingsError as error:
        why = "" if "look like" in str(error) else f": {error}"
        raise _WrongValueError(f"it is {_shorten(value)}{why}") from None


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise _WrongValueError(f"it is {_shorten(value)}")
    return tuple(value)


def _alarms(_: str, value: Any) -> tuple[str, ...]:
    found = _texts(value)
    if len(found) > MOST_ALARMS:
        raise _WrongValueError(f"it has {len(found)} names", f"at most {MOST_ALARMS}")
    return found


def _dates(_: str, value: Any) -> frozenset[date]:
    texts, days = _texts(value), {}
    for one in texts:
        with suppress(ValueError):
            days[one] = date.fromisoformat(one)
    if bad := [one for one in texts if one not in days]:
        raise _WrongValueError(_list_wrong(bad, "a day"))
    return frozenset(days.values())


def _list_wrong(entries: Sequence[Any], what: str) -> str:
    """``"a b" is not a person``; of several ``not a person: "a b", "c d"``, the first three of them in full."""
    more = f" and {len(entries) - 3} more" if len(entries) > 3 else ""
    if len(entries) == 1:
        return f"{_shorten(entries[0])} is not {what}"
    return f"not {what}: {', '.join(map(_shorten, entries[:3]))}{more}"


def _zone(_: str, value: Any) -> str:
    try:
        return parse_zone(value)
    except SettingsError as error:
        raise _WrongValueError(str(error)) from None


def _dimensions(_: str, value: Any) -> Any:
    known = {kind.value: kind for kind in ADDABLE}
    found = _texts(value)
    odd = next((one for one in found if one not in known), None)
    if odd is not None:
        raise _WrongValueError(f"{_shorten(odd)} is none of them")
    return frozenset(known[one] for one in found)


def _objective(key: str, value: Any) -> float | None:
    """Seconds; None keeps the latency as today."""
    return None if value == AS_TODAY else float(_number(key, value)) / 1000


def _entries(_: str, value: Any) -> tuple[str, ...]:
    """Entries of a list of people; those that can be understood are kept where others cannot."""
    given = value if isinstance(value, list) else []
    good = tuple(
        one.strip()
        for one in given
        if isinstance(one, str) and any(form.fullmatch(one.strip()) for form in (SLACK, SHORT, WHOLE))
    )
    if not given:
        raise _WrongValueError(f"it is {_shorten(value)}", f"{KEYS[APPROVERS].kind.value}, of one or more")
    if bad := [one for one in given if not isinstance(one, str) or one.strip() not in good]:
        raise _WrongValueError(_list_wrong(bad, "a person"), rest=good)
    return good


def _channel(_: str, value: Any) -> str:
    if not isinstance(value, str) or not CHANNEL_ID.fullmatch(value):
        raise _WrongValueError(f"it is {_shorten(value)}")
    return value


READERS: Mapping[KeyKind, Callable[[str, Any], Any]] = MappingProxyType(
    {
        KeyKind.NUMBER: _number,
        KeyKind.WHOLE: _whole,
        KeyKind.FLAG: _flag,
        KeyKind.WINDOW: _window,
        KeyKind.ALARMS: _alarms,
        KeyKind.DATES: _dates,
        KeyKind.ZONE: _zone,
        KeyKind.DIMENSIONS: _dimensions,
        KeyKind.OBJECTIVE: _objective,
        KeyKind.PEOPLE: _entries,
        KeyKind.CHANNEL: _channel,
    }
)
"""How the value of each kind of key is read; `_WrongValueError` says what is wrong with it."""
