"""Environment to frozen settings; the only reader of os.environ.

A setting that cannot be understood stops no function: it takes its safest value, `Settings.misread` names it with what
it should be, each message and report says so, and no change begins until it is put right.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from rightsizer.domain.approvers import Approvers
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import ADDABLE, TICK, ChangeLimits, ChangeWindow
from rightsizer.errors import InputError, SettingsError

MOST = 1_000_000
"""Of any limit: a number beyond it is a slip of the pen."""
LOOKBACK = range(14, 64)
"""Days: fewer see no second week; CloudWatch keeps five-minute datapoints for 63."""
TESTS = range(32)
"""Shadow tests of one endpoint in a month: one a day at most."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a deployed function may be told. The names are those of the template."""

    table: str = ""
    bucket: str = ""
    queue_url: str = ""
    topic_arn: str = ""
    topic_for_chat: bool = False
    """Whether the topic's subscribers over HTTPS get the form of Amazon Q Developer in chat applications."""
    slack_channel: str = ""
    slack_secret: str = ""
    """ARN of the Secrets Manager secret (JSON: ``signing_secret``, ``bot_token``), never the secret itself."""
    slack_endpoint: str = "https://slack.com/api"
    picture_function: str = ""
    """Name of the function that draws; only `propose` is told it, and only where the stack has Slack."""
    approvers: frozenset[str] = frozenset()
    """Slack user ids and AWS identities that may decide (`domain.approvers`)."""
    may_stop: str = ""
    """The stack's parameter MayStop, ``nothing`` or ``tagged``; only `respond` is told it."""
    policy_parameter: str = ""
    """Name of the SSM parameter that holds the policy document; empty where the stack has none."""
    account: str = ""
    """Partition and account of the stack, ``aws:111122223333``."""
    alarm_prefix: str = "rightsizer-"
    """Alarms of ours begin with this; roll-back alarms too."""
    alarm_topic_arn: str = ""
    """The one SNS topic whose alarm messages are read from the evaluation queue; empty: none."""
    lookback_days: int = 14
    """Days of metrics behind each recommendation and its replay, 14 to 63."""
    minimum_saving_usd: Decimal = Decimal(50)
    tests_per_month: int = 4
    """Shadow tests of one endpoint in a month, 0 to 31; 0 switches them off."""
    change_untagged: bool = False
    edit_user_alarms: bool = False
    """Whether customers' alarms may be re-pointed to the step policies that were restored with new ARNs."""
    proposal_days: int = 14
    dry_run: bool = False
    limits: ChangeLimits = field(default_factory=ChangeLimits)
    """Window, cooldown, daily budget, probation and incident alarms, from the JSON of the stack's parameter Limits."""
    functions: Mapping[str, int] = field(default_factory=dict)
    """Memory in MB by the name of each function of the stack (``name=512,...``); for the report's own cost."""
    bill: str = ""
    """AWS's bill beside the report: ``cost-explorer`` or ``s3://...``; empty: none. Only `report` gets it."""
    arch: str = "arm64"
    grouped_alarm: bool = False
    misread: tuple[str, ...] = ()
    """What could not be understood, a sentence each."""


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from RIGHTSIZER_* variables. Total: what cannot be understood is in `misread`."""
    env = os.environ if environment is None else environment
    given = {name: env.get(f"RIGHTSIZER_{name.upper()}", "") for name in Settings.__dataclass_fields__}
    del given["limits"], given["misread"]
    problems: list[str] = []
    fields: dict[str, Any] = {}
    for name, value in given.items():
        try:
            fields |= {name: _parse(name, value)} if value else {}
        except SettingsError as error:
            problems.append(str(error))
            fields |= {name: SAFEST[name]} if name in SAFEST else {}
    limits, deciding, more = _parse_limits(env.get("RIGHTSIZER_LIMITS", "") or "{}")
    settings = replace(Settings(), **fields | deciding, misread=(*problems, *more))
    limits = replace(
        limits,
        alarm_prefix=settings.alarm_prefix,
        change_untagged=settings.change_untagged,
        rewire_alarms=settings.edit_user_alarms,
        dry_run=settings.dry_run,
        approvers=Approvers(settings.approvers, settings.account),
        misread=settings.misread,
    )
    return replace(settings, limits=limits)


SAFEST: Mapping[str, Any] = {"dry_run": True}
"""Values in place of what cannot be understood; every other setting has its default, which is the careful one."""


def require_settings(settings: Settings, *names: str) -> None:
    """SettingsError when one of these settings is empty, with the variable's name."""
    for name in names:
        if not getattr(settings, name):
            raise SettingsError(f"the environment variable RIGHTSIZER_{name.upper()} is missing; the template sets it")


def _parse(name: str, value: str) -> Any:
    kind = Settings.__dataclass_fields__[name].type
    try:
        if name in _CHECKED:
            return _CHECKED[name](value)
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        if kind == frozenset[str]:
            return frozenset(part.strip() for part in value.split(",") if part.strip())
        if kind == Mapping[str, int]:
            pairs = (part.partition("=") for part in value.split(",") if part.strip())
            return {name.strip(): int(size) for name, _, size in pairs}
    except (ValueError, KeyError, InvalidOperation, SettingsError) as error:
        wanted = str(error) if isinstance(error, SettingsError) else f"which is not {_WANTED.get(name, 'a flag')}"
        raise SettingsError(f"RIGHTSIZER_{name.upper()} is {value[:80]!r}; {wanted}") from None
    return value


def change_limits(text: str) -> ChangeLimits:
    """Limits from the JSON of the parameter Limits; what it does not name keeps its careful default.

    Keys: ``window`` ("mon-fri 09:00-17:00 Europe/Berlin"), ``cooldown_hours``, ``changes_per_day``, ``usd_per_day``,
    ``probation_hours`` (1 to 24), ``proof_requests``, ``proof_days``, ``grace_days``, ``bake_minutes`` (0 to 60),
    ``incident_alarms`` (names), ``dimensions`` (a list of ``autoscaling``, ``routing``, ``schedule``),
    ``minimum_saving_usd``, ``lookback_days`` (14 to 63), ``tests_per_month`` (0 to 31); these three are of the decision
    and only checked here. Of the office hours: ``holidays`` (days), ``stop_grace_minutes``, ``wakes_per_day``,
    ``longest_wake_hours``.
    SettingsError names the key that cannot be understood.
    """
    found, _, problems = _parse_limits(text)
    if problems:
        raise SettingsError(problems[0])
    return found


def _parse_limits(text: str) -> tuple[ChangeLimits, dict[str, Any], tuple[str, ...]]:
    """The limits that can be understood, the fields of `Settings` beside them, and what cannot, a sentence each."""
    found, deciding, problems = ChangeLimits(), dict[str, Any](), list[str]()
    try:
        given = _object("RIGHTSIZER_LIMITS", text)
    except SettingsError as error:
        return replace(found, dimensions=frozenset()), deciding, (str(error),)
    for key, value in given.items():
        try:
            if key in _DECIDING:
                deciding[key] = _DECIDING[key](key, value)
            elif key in _HOURS:
                name, read = _HOURS[key]
                found = replace(found, hours=replace(found.hours, **{name: read(key, value)}))
            elif key in _LIMITS:
                name, read = _LIMITS[key]
                found = replace(found, **{name: read(key, value)})
            else:
                known = ", ".join(sorted((*_LIMITS, *_HOURS, *_DECIDING)))
                problems.append(f"Limits has the key {key[:80]!r}, which means nothing; it may have {known}")
        except SettingsError as error:
            problems.append(str(error))
            if key == "dimensions":
                found = replace(found, dimensions=frozenset())
        except (InputError, OverflowError) as error:
            problems.append(f"Limits has {key}: {_shorten(value)}; {error}")
    return found, deciding, tuple(problems)


def _shorten(value: Any) -> str:
    return repr(value)[:80]


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{name} is {text[:80]!r}, which is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise SettingsError(f"{name} is {text[:80]!r}; it should be a JSON object")
    return found


def _number(key: str, value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise SettingsError(f"Limits has {key}: {_shorten(value)}; it should be a number")
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or not 0 <= found <= MOST:
        raise SettingsError(f"Limits has {key}: {_shorten(value)}; it should be a number from 0 to {MOST:,}")
    return found


def _whole_number(allowed: range, unit: str = "") -> Callable[[str, Any], int]:
    """Reads a whole number of that range; `unit` begins with a blank, such as `` of days``."""

    def read(key: str, value: Any) -> int:
        if type(value) is not int or value not in allowed:
            wanted = f"it should be a whole number{unit} from {allowed.start} to {allowed.stop - 1}"
            raise SettingsError(f"Limits has {key}: {_shorten(value)}; {wanted}")
        return value

    return read


def _days_of(text: str, allowed: range) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 4 or int(text) not in allowed:
        raise SettingsError(f"it should be a whole number of days from {allowed.start} to {allowed.stop - 1}")
    return int(text)


def _names(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or any(not isinstance(one, str) or not one for one in value):
        raise SettingsError(f"Limits has {key}: {_shorten(value)}; it should be a list of alarm names")
    return tuple(value)


def _dates(key: str, value: Any) -> frozenset[date]:
    try:
        return frozenset(date.fromisoformat(one) for one in _names(key, value))
    except (SettingsError, ValueError):
        text = f'Limits has {key}: {_shorten(value)}; it should be a list of days such as ["2026-12-25"]'
        raise SettingsError(text) from None


def _dimensions(key: str, value: Any) -> frozenset[OptionKind]:
    known = {kind.value: kind for kind in ADDABLE}
    if not isinstance(value, list) or any(not isinstance(one, str) or one not in known for one in value):
        raise SettingsError(f"Limits has {key}: {_shorten(value)}; it should be a list of {', '.join(sorted(known))}")
    return frozenset(known[one] for one in value)


def parse_zone(zone: Any) -> str:
    """An IANA name; SettingsError where there is no such time zone."""
    try:
        ZoneInfo(zone)
    except (KeyError, TypeError, ValueError, OSError):
        raise SettingsError(f"there is no time zone {_shorten(zone)} (IANA names)") from None
    return str(zone)


def _named_zone(key: str, value: Any) -> str:
    try:
        return parse_zone(value)
    except SettingsError as error:
        raise SettingsError(f"Limits has {key}: {_shorten(value)}; {error}") from None


def _window(key: str, value: Any) -> ChangeWindow:
    try:
        return parse_window(value)
    except SettingsError as error:
        raise SettingsError(f"Limits has {key}: {_shorten(value)}; {error}") from None


def parse_window(value: Any) -> ChangeWindow:
    """The window of ``DAYS HH:MM-HH:MM ZONE``; days as ``mon-fri``, ``mon,wed`` or ``daily``. Wall time of the zone.

    ``always`` is every minute of the week. SettingsError says what it should be.
    """
    wanted = "it should look like 'mon-fri 09:00-17:00 Europe/Berlin'"
    parts = ("daily 00:00-00:00" if value == "always" else value).split() if isinstance(value, str) else []
    if len(parts) not in (2, 3):
        raise SettingsError(wanted)
    zone = parse_zone(parts[2] if len(parts) == 3 else "UTC")
    try:
        start, end = (time.fromisoformat(one) for one in parts[1].split("-"))
        if start.tzinfo or end.tzinfo:
            raise SettingsError(wanted)
        window = ChangeWindow(zone, _days(parts[0].lower()), start, end)
    except ValueError:
        raise SettingsError(wanted) from None
    if window.length < 2 * TICK:
        least = f"it should last {2 * TICK // timedelta(minutes=1)} minutes or more"
        why = f"changes begin at ticks, {TICK // timedelta(minutes=1)} minutes apart, which may miss it"
        raise SettingsError(f"{least}: {why}")
    return window


def _days(text: str) -> frozenset[int]:
    if text == "daily":
        return frozenset()
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        start, end = _DAYS.index(first), _DAYS.index(last or first)
        found |= {day % 7 for day in range(start, end + 1 if end >= start else end + 8)}
    return frozenset(found)


_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
type Reader = Callable[[str, Any], Any]
_CHECKED: Mapping[str, Callable[[str], Any]] = {
    "lookback_days": lambda text: _days_of(text, LOOKBACK),
    "proposal_days": lambda text: _days_of(text, range(1, 91)),
    "minimum_saving_usd": lambda text: _number("minimum_saving_usd", text),
    "tests_per_month": lambda text: _whole_number(TESTS)("tests_per_month", int(text) if text.isdecimal() else text),
}
"""Settings that are numbers, and how their texts are read."""
_WANTED = {"functions": "a list of NAME=MB,..."}
_LIMITS: Mapping[str, tuple[str, Reader]] = {
    "window": ("window", _window),
    "cooldown_hours": ("cooldown", lambda k, v: timedelta(hours=float(_number(k, v)))),
    "changes_per_day": ("changes_per_day", lambda k, v: int(_number(k, v))),
    "usd_per_day": ("usd_per_day", _number),
    "probation_hours": ("probation", lambda k, v: timedelta(hours=float(_number(k, v)))),
    "proof_requests": ("proof_requests", lambda k, v: int(_number(k, v))),
    "proof_days": ("proof_limit", lambda k, v: timedelta(days=float(_number(k, v)))),
    "grace_days": ("grace", lambda k, v: timedelta(days=float(_number(k, v)))),
    "bake_minutes": ("bake_s", lambda k, v: int(60 * _number(k, v))),
    "incident_alarms": ("incident_alarms", _names),
    "dimensions": ("dimensions", _dimensions),
}
"""Key of the parameter: field of `ChangeLimits`, and how its value is read."""
_HOURS: Mapping[str, tuple[str, Reader]] = {
    "holidays": ("holidays", _dates),
    "stop_grace_minutes": ("grace", lambda k, v: timedelta(minutes=float(_number(k, v)))),
    "wakes_per_day": ("wakes_a_day", lambda k, v: int(_number(k, v))),
    "longest_wake_hours": ("longest_wake", lambda k, v: timedelta(hours=float(_number(k, v)))),
    "hours_zone": ("zone", _named_zone),
}
"""Key of the same parameter: field of `HoursLimits`, and how its value is read."""
_DECIDING: Mapping[str, Reader] = {
    "minimum_saving_usd": _number,
    "lookback_days": _whole_number(LOOKBACK, " of days"),
    "tests_per_month": _whole_number(TESTS),
}
"""Keys of the same parameter that are fields of `Settings`: what is decided by, not how far changes go."""


def user_cache() -> str:
    """The cache folder of the user of this machine (XDG Base Directory Specification; macOS and Windows have own)."""
    if home := os.environ.get("XDG_CACHE_HOME"):
        return home
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")
    return os.path.expanduser("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
