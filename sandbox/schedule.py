"""When a schedule expression fires next: ``rate(5 minutes)``, ``cron(20 4 * * ? *)``, ``at(2026-11-02T09:00:00)``.

Source: EventBridge Scheduler user guide, schedule types; Application Auto Scaling uses the same ones. Cron fields:
minutes hours day-of-month month day-of-week year. Times are in the zone of `after`; L, W and # raise.
"""

import re
from datetime import datetime, timedelta
from functools import cache

from sandbox.refusals import NotSimulated

_UNITS = {"minute": 60, "hour": 3600, "day": 86400}
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


_FIELDS = (("", 0, 59), ("", 0, 23), ("LW", 1, 31), ("", 1, 12), ("L#", 1, 7), ("", 1970, 2199))
"""Letters that a field may have beside numbers, and its least and largest number."""


def cron_problem(expression: str) -> str:
    """What is wrong with a cron expression: ``cron`` its fields, ``days`` both or none of its days; "" nothing.

    AWS takes a ``*`` or values in one of the two fields of days, and wants a ``?`` in the other.
    """
    if not expression.startswith("cron("):
        return ""
    fields = expression[5:-1].split()
    if len(fields) != len(_FIELDS):
        return "cron"
    for field, names, (letters, low, high) in zip(fields, ((), (), (), _MONTHS, _DAYS, ()), _FIELDS, strict=True):
        text = field.upper()
        for at, name in enumerate(names):
            text = text.replace(name, str(at + 1))
        numbers = re.findall(r"\d+", re.sub(r"[/#]\d+", "", text))
        formed = re.fullmatch(rf"[\d,*?/{re.escape(letters)}-]+", text)
        if not formed or any(not low <= int(number) <= high for number in numbers):
            return "cron"
    return "" if (fields[2] == "?") != (fields[4] == "?") else "days"


def next_fire(expression: str, since: datetime, after: datetime) -> datetime | None:
    """The first moment after `after`; a rate counts from `since`. None when an ``at`` has passed."""
    if match := re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression):
        step = timedelta(seconds=int(match[1]) * _UNITS[match[2]])
        return since + step * ((after - since) // step + 1)
    if match := re.fullmatch(r"at\((.+)\)", expression):
        moment = datetime.fromisoformat(match[1]).replace(tzinfo=after.tzinfo)
        return moment if moment > after else None
    if match := re.fullmatch(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)", expression):
        return _cron(match.groups(), after)
    raise NotSimulated(f"the schedule expression {expression!r}")


def _cron(fields: tuple[str, ...], after: datetime) -> datetime | None:
    minutes, hours = _values(fields[0], 0, 59), _values(fields[1], 0, 23)
    days, months = _values(fields[2], 1, 31), _values(fields[3], 1, 12, _MONTHS, 1)
    weekdays, years = _values(fields[4], 1, 7, _DAYS, 1), _values(fields[5], 1970, 2199)
    day = after.replace(hour=0, minute=0, second=0, microsecond=0)
    for _ in range(366 * 5):
        cron_weekday = day.isoweekday() % 7 + 1  # Sunday is 1
        if day.year in years and day.month in months and day.day in days and cron_weekday in weekdays:
            for hour in sorted(hours):
                for minute in sorted(minutes):
                    moment = day.replace(hour=hour, minute=minute)
                    if moment > after:
                        return moment
        day += timedelta(days=1)
    return None


@cache
def _values(field: str, low: int, high: int, names: tuple[str, ...] = (), first: int = 0) -> frozenset[int]:
    for at, name in enumerate(names):
        field = field.replace(name, str(at + first))
    found: set[int] = set()
    for part in field.split(","):
        body, _, step = part.partition("/")
        if body in {"*", "?"}:
            start, end = low, high
        elif match := re.fullmatch(r"(\d+)(?:-(\d+))?", body):
            start = int(match[1])
            end = int(match[2] or (high if step else match[1]))
        else:
            raise NotSimulated(f"the cron field {field!r}")
        found |= set(range(start, end + 1, int(step or 1)))
    return frozenset(found)
