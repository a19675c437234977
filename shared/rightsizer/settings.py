"""Environment to frozen settings; the only reader of os.environ. An error names the variable and what it should be."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from rightsizer.errors import InputError, SettingsError
from rightsizer.model.limits import ChangeLimits, ChangeWindow
from rightsizer.model.option import OptionKind
from rightsizer.model.policy import ADDABLE

LOOKBACK = range(14, 64)
"""Days: fewer see no second week; CloudWatch keeps five-minute datapoints for 63."""
_RANGE = f"it should be a whole number of days from {LOOKBACK.start} to {LOOKBACK.stop - 1}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a deployed function may be told. The names are those of the template."""

    table: str = ""
    bucket: str = ""
    queue_url: str = ""
    topic_arn: str = ""
    slack_channel: str = ""
    slack_secret: str = ""
    """ARN of the Secrets Manager secret (JSON: ``signing_secret``, ``bot_token``), never the secret itself."""
    slack_endpoint: str = "https://slack.com/api"
    approvers: frozenset[str] = frozenset()
    """Slack user ids that may decide."""
    alarm_prefix: str = "rightsizer-"
    """Alarms of ours begin with this; roll-back alarms too."""
    user_alarm_prefix: str = ""
    alarm_topic_arn: str = ""
    """The one SNS topic whose alarm messages are read from the evaluation queue; empty: none."""
    lookback_days: int = 14
    """Days of metrics behind each judgement and its replay, 14 to 63."""
    minimum_saving_usd: Decimal = Decimal(50)
    change_untagged: bool = False
    edit_user_alarms: bool = False
    """Whether customers' alarms may be re-pointed to the step policies that were restored with new ARNs."""
    price_region: str = "us-east-1"
    proposal_days: int = 14
    dry_run: bool = False
    limits: ChangeLimits = field(default_factory=ChangeLimits)
    """Window, cooldown, daily budget, probation and incident alarms, from the JSON of the stack's parameter Limits."""
    functions: Mapping[str, int] = field(default_factory=dict)
    """Memory in MB by the name of each function of the stack (``name=512,...``); for the report's own cost."""
    arch: str = "arm64"
    grouped_alarm: bool = False

    @property
    def lookback(self) -> timedelta:
        """The look-back period."""
        return timedelta(days=self.lookback_days)


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from RIGHTSIZER_* variables; SettingsError names the one that cannot be understood."""
    env = os.environ if environment is None else environment
    text = {name: env.get(f"RIGHTSIZER_{name.upper()}", "") for name in Settings.__dataclass_fields__}
    given = {name: value for name, value in text.items() if value}
    known = replace(Settings(), **{name: _parse(name, value) for name, value in given.items()})
    asked = _object("RIGHTSIZER_LIMITS", given.get("limits", "{}"))
    known = replace(known, **{key: read(key, asked[key]) for key, read in _DECIDING.items() if key in asked})
    if known.lookback_days not in LOOKBACK:
        raise SettingsError(f"RIGHTSIZER_LOOKBACK_DAYS is {known.lookback_days}; {_RANGE}")
    limits = replace(
        known.limits,
        alarm_prefix=known.alarm_prefix,
        change_untagged=known.change_untagged,
        rewire_alarms=known.edit_user_alarms,
        dry_run=known.dry_run,
    )
    return replace(known, limits=limits)


def require(settings: Settings, *names: str) -> None:
    """SettingsError when one of these settings is empty, with the variable's name."""
    for name in names:
        if not getattr(settings, name):
            raise SettingsError(f"the environment variable RIGHTSIZER_{name.upper()} is missing; the template sets it")


def _parse(name: str, value: str) -> Any:
    kind = Settings.__dataclass_fields__[name].type
    try:
        if kind is int:
            return int(value)
        if kind is Decimal:
            return Decimal(value)
        if kind is ChangeLimits:
            return change_limits(value)
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        if kind == frozenset[str]:
            return frozenset(part.strip() for part in value.split(",") if part.strip())
        if kind == Mapping[str, int]:
            pairs = (part.partition("=") for part in value.split(",") if part.strip())
            return {name.strip(): int(size) for name, _, size in pairs}
    except (ValueError, KeyError, InvalidOperation):
        raise SettingsError(
            f"RIGHTSIZER_{name.upper()} is {value!r}, which is not a {getattr(kind, '__name__', kind)}"
        ) from None
    return value


def change_limits(text: str) -> ChangeLimits:
    """Limits from the JSON of the parameter Limits; what it does not name keeps its careful default.

    Keys: ``window`` ("mon-fri 09:00-17:00 Europe/Berlin"), ``cooldown_hours``, ``changes_per_day``, ``usd_per_day``,
    ``probation_hours`` (1 to 24), ``proof_requests``, ``proof_days``, ``grace_days``, ``bake_minutes`` (0 to 60),
    ``incident_alarms`` (names), ``dimensions`` (a list of ``autoscaling``, ``routing``, ``schedule``),
    ``minimum_saving_usd``, ``lookback_days`` (14 to 63); the last two are of the decision and only checked here.
    SettingsError names the key that cannot be understood.
    """
    given = _object("RIGHTSIZER_LIMITS", text)
    unknown = sorted(set(given) - set(_LIMITS) - set(_DECIDING))
    if unknown:
        known = ", ".join(sorted((*_LIMITS, *_DECIDING)))
        raise SettingsError(f"Limits has the key {unknown[0]!r}, which means nothing; it may have {known}")
    for key, read in _DECIDING.items():
        if key in given:
            read(key, given[key])
    try:
        fields = {_LIMITS[key][0]: _LIMITS[key][1](key, value) for key, value in given.items() if key in _LIMITS}
        return replace(ChangeLimits(), **fields)
    except InputError as error:
        raise SettingsError(f"Limits: {error}") from None


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"{name} is {text[:80]!r}, which is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise SettingsError(f"{name} is {text[:80]!r}; it should be a JSON object")
    return found


def _number(key: str, value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise SettingsError(f"Limits has {key}: {value!r}; it should be a number")
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or found < 0:
        raise SettingsError(f"Limits has {key}: {value!r}; it should be a number, zero or more")
    return found


def _lookback(key: str, value: Any) -> int:
    if type(value) is not int or value not in LOOKBACK:
        raise SettingsError(f"Limits has {key}: {value!r}; {_RANGE}")
    return value


def _names(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or any(not isinstance(one, str) or not one for one in value):
        raise SettingsError(f"Limits has {key}: {value!r}; it should be a list of alarm names")
    return tuple(value)


def _dimensions(key: str, value: Any) -> frozenset[OptionKind]:
    known = {kind.value: kind for kind in ADDABLE}
    if not isinstance(value, list) or any(not isinstance(one, str) or one not in known for one in value):
        raise SettingsError(f"Limits has {key}: {value!r}; it should be a list of {', '.join(sorted(known))}")
    return frozenset(known[one] for one in value)


def _window(key: str, value: Any) -> ChangeWindow:
    """``DAYS HH:MM-HH:MM ZONE``; days as ``mon-fri``, ``mon,wed`` or ``daily``. Wall time of the zone."""
    wanted = f"Limits has {key}: {value!r}; it should look like 'mon-fri 09:00-17:00 Europe/Berlin'"
    parts = value.split() if isinstance(value, str) else []
    if len(parts) not in (2, 3):
        raise SettingsError(wanted)
    zone = parts[2] if len(parts) == 3 else "UTC"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise SettingsError(f"Limits has {key}: {value!r}; there is no time zone {zone!r} (IANA names)") from None
    try:
        start, end = (time.fromisoformat(one) for one in parts[1].split("-"))
        return ChangeWindow(zone, _days(parts[0].lower()), start, end)
    except ValueError:
        raise SettingsError(wanted) from None


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
_DECIDING: Mapping[str, Reader] = {"minimum_saving_usd": _number, "lookback_days": _lookback}
"""Keys of the same parameter that are fields of `Settings`: what is decided by, not how far changes go."""
