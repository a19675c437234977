"""Instance counts by the hour of the day or of the week (UTC), and the scheduled actions that set them."""

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass

NAMES = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
DAY, WEEK = 24, 168


@dataclass(frozen=True, slots=True)
class Turn:
    """One scheduled action: on these days, at this full hour (UTC), the count becomes this."""

    hour: int
    count: int
    days: tuple[int, ...]
    """0 is Monday; () is every day."""

    @property
    def cron(self) -> str:
        """The schedule as AWS writes it (Application Auto Scaling, PutScheduledAction)."""
        if not self.days:
            return f"cron(0 {self.hour} * * ? *)"
        return f"cron(0 {self.hour} ? * {','.join(NAMES[day] for day in self.days)} *)"

    @property
    def name(self) -> str:
        """What tells it from the other turns of these counts: the hour, and the days (1-7) where they are not all."""
        return f"{self.hour:02d}" + "".join(str(day + 1) for day in self.days)


def turns(counts: Sequence[int]) -> tuple[Turn, ...]:
    """Every change of count, of 24 counts of the day or 168 of the week from Monday on, as few actions as it takes."""
    if len(counts) == DAY:
        return tuple(Turn(hour, n, ()) for hour, n in enumerate(counts) if n != counts[hour - 1])
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, count in enumerate(counts):
        if count != counts[at - 1]:
            found[at % DAY, count].append(at // DAY)
    every = len(NAMES)
    return tuple(Turn(hour, n, tuple(days) * (len(days) < every)) for (hour, n), days in sorted(found.items()))


def week_of(usual: Sequence[int], quiet: Sequence[int], days: Set[int]) -> tuple[int, ...]:
    """168 counts from Monday on: the `quiet` ones on those days (0 is Monday), the usual ones on the others."""
    return tuple(count for day in range(len(NAMES)) for count in (quiet if day in days else usual))


def on_day(counts: Sequence[int], weekday: int) -> Sequence[int]:
    """The 24 counts of that weekday (0 is Monday)."""
    return counts if len(counts) == DAY else counts[DAY * weekday : DAY * (weekday + 1)]
