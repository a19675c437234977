"""A fleet, the requests of some past days, and what became of them when the one served the other."""

from collections.abc import Sequence
from dataclasses import dataclass

SPEAKS_FOR = 10
"""Requests that one request of the heaviest slots stands for, at most."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests of some past days: arrival in seconds from the day's midnight, service in seconds on today's type."""

    days: tuple[tuple[Sequence[float], Sequence[float]], ...]
    slots: tuple[tuple[Sequence[float], Sequence[float]], ...] = ()
    """Of each day the requests and the seconds of service of all its five-minute slots; () where unknown."""
    whole: bool = True
    """Whether every request is there; of busy endpoints only the heaviest slots of each hour are kept."""
    copies: int = 1
    """Times that each day is there, with other chance: few requests alone would prove a fleet by luck."""

    @property
    def size(self) -> int:
        """How many requests there are to serve."""
        return sum(len(arrivals) for arrivals, _ in self.days)

    @property
    def requests(self) -> int:
        """How many requests those that are kept speak for: lighter slots have fewer late ones, not none."""
        return self.size if self.whole else min(round(sum(sum(c) for c, _ in self.slots)), SPEAKS_FOR * self.size)


@dataclass(frozen=True, slots=True)
class Plan:
    """A fleet to serve with."""

    counts: tuple[int, ...]
    """24 instance counts by hour of the day UTC."""
    workers: int
    """Requests that an instance serves at once."""
    random_routing: bool
    slower: float
    """Service time over today's."""
    load: float = 1.0
    """Load over the load seen: a request occupies its worker that much longer, but is not itself slower."""
    maximum: int = 0
    """Instances up to which target tracking adds to the counts; 0 without autoscaling."""


@dataclass(frozen=True, slots=True)
class Served:
    """What happened to the requests."""

    requests: int
    late: int
    worst_p95_s: float
    """The largest p95 of an hour with at least 20 requests."""
    rung: int = 0
    """Days on which the guard of a change would have rung."""
    mean_instances: float = 0.0
    """Instances on average, what autoscaling added included."""
    drowned: int = 0
    """Of the late ones those that a backlog over whole slots makes late; counted over every request, kept or not."""
