"""Rules of composite alarms: ALARM(name), OK(name), INSUFFICIENT_DATA(name), TRUE, FALSE, AND, OR, NOT, brackets.

Source: API reference of PutCompositeAlarm, AlarmRule.
"""

import re
from collections.abc import Callable, Iterator

from sandbox.refusals import AwsRefusal

_TOKEN = re.compile(
    r"\s*(?:(ALARM|OK|INSUFFICIENT_DATA)\s*\(\s*(\"[^\"]+\"|[^)\"\s]+)\s*\)|(AND|OR|NOT|TRUE|FALSE|\(|\)))"
)

type State = Callable[[str], str]


def checked_rule(rule: str) -> None:
    """Refuse a rule that cannot be read."""
    holds(rule, lambda name: "OK")


def children(rule: str) -> tuple[str, ...]:
    """Names (or ARNs) of the alarms that the rule mentions."""
    return tuple(name for kind, name in _tokens(rule) if name)


def holds(rule: str, state: State) -> bool:
    """Whether the rule is true now."""
    tokens = list(_tokens(rule))
    value, rest = _either(tokens, state)
    if rest:
        raise AwsRefusal("ValidationError", f"AlarmRule: cannot read {rest[0][0]!r} in {rule!r}")
    return value


def _tokens(rule: str) -> Iterator[tuple[str, str]]:
    at = 0
    text = rule.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise AwsRefusal("ValidationError", f"AlarmRule: cannot read {text[at : at + 20]!r}")
        at = match.end()
        yield (match[1], match[2].strip('"').rpartition(":alarm:")[2]) if match[1] else (match[3], "")


type _Tokens = list[tuple[str, str]]


def _either(tokens: _Tokens, state: State) -> tuple[bool, _Tokens]:
    value, tokens = _both(tokens, state)
    while tokens and tokens[0][0] == "OR":
        other, tokens = _both(tokens[1:], state)
        value = value or other
    return value, tokens


def _both(tokens: _Tokens, state: State) -> tuple[bool, _Tokens]:
    value, tokens = _one(tokens, state)
    while tokens and tokens[0][0] == "AND":
        other, tokens = _one(tokens[1:], state)
        value = value and other
    return value, tokens


def _one(tokens: _Tokens, state: State) -> tuple[bool, _Tokens]:
    if not tokens:
        raise AwsRefusal("ValidationError", "AlarmRule ends too early")
    (kind, name), rest = tokens[0], tokens[1:]
    match kind:
        case "NOT":
            value, rest = _one(rest, state)
            return not value, rest
        case "(":
            value, rest = _either(rest, state)
            if not rest or rest[0][0] != ")":
                raise AwsRefusal("ValidationError", "AlarmRule: a bracket is not closed")
            return value, rest[1:]
        case "TRUE" | "FALSE":
            return kind == "TRUE", rest
        case "ALARM" | "OK" | "INSUFFICIENT_DATA":
            return state(name) == kind, rest
    raise AwsRefusal("ValidationError", f"AlarmRule: cannot read {kind!r}")
