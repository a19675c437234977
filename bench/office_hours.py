"""A month of an account with eight endpoints that have office hours, and faults: the bill, and who met a closed door.

    python -m bench.office_hours                 four weeks from 12 October 2026, in which Europe sets its clocks back
    python -m bench.office_hours --days 7        only so many days
    python -m bench.office_hours --zones south   from 15 March 2027, in zones that set their clocks by other rules
    python -m bench.office_hours --seed 3        other ticks are lost, doubled and killed

The real flow on the simulated account, by the role of the template: a tick every five minutes, some of them lost, late
or killed. Each endpoint gets requests in each minute of its hours. A request that finds no endpoint met a closed door:
none may, unless AWS refused capacity or quota, and then people must have been told 15 minutes after the hour at the
latest. Exits with 1 where one was not.
"""

import argparse
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rightsizer.aws.hours import HoursTable
from rightsizer.domain.office_hours import OfficeHours, Opening, parse_hours
from rightsizer.errors import RightsizerError, WriteRefusedError
from rightsizer.flows.orders import Orders
from rightsizer.flows.wake import record_wake
from rightsizer.telemetry import logger
from sandbox.prices import hourly
from sandbox.refusals import Killed
from sandbox.sagemaker.load import LoadModel, Served
from tests.hours.world import NAME, HoursWorld, hours_world
from tests.notifiers import Told

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NEVER = datetime.min.replace(tzinfo=UTC)
SERVING = ("InService", "Updating", "SystemUpdating")
RECOVERY = timedelta(minutes=50)
"""After capacity is back: the tick, a failed creation that is deleted, and the start."""
PRICED_IN = "us-east-1"
"""The snapshot has no price of every type in the Region of the account."""
TOLD_WITHIN = timedelta(minutes=15)


@dataclass(frozen=True)
class Tagged:
    """An endpoint of the account."""

    name: str
    hours: str
    kind: str
    count: int
    fallback: str = ""


EUROPE = (
    Tagged(NAME, "mon-fri 08:00-19:00 Europe/Berlin", "ml.g5.xlarge", 2),
    Tagged("search", "mon-fri 07:00-20:00 Europe/London", "ml.g5.2xlarge", 1),
    Tagged("rank", "mon-thu 08:00-18:00 fri 08:00-14:00 Europe/Berlin", "ml.g6.xlarge", 2),
    Tagged("vision", "daily 06:00-22:00 UTC", "ml.g4dn.xlarge", 3),
    Tagged("support", "mon-fri 09:00-17:00 America/New_York", "ml.g5.4xlarge", 1, fallback="ml.g4dn.2xlarge"),
    Tagged("batches", "mon-fri 22:00-06:00 UTC", "ml.g5.xlarge", 1),
    Tagged("lab", "mon-fri 09:00-18:00 Asia/Tokyo", "ml.g6.2xlarge", 1),
    Tagged("sales", "sat-sun 10:00-16:00 mon 09:00-12:00 Europe/Berlin", "ml.g5.8xlarge", 1),
)


SOUTH = (
    replace(EUROPE[0], hours="mon-fri 08:00-19:00 Australia/Lord_Howe"),
    replace(EUROPE[1], hours="mon-fri 07:00-20:00 Atlantic/Azores"),
    replace(EUROPE[2], hours="mon-thu 08:00-18:00 fri 08:00-14:00 Africa/Casablanca"),
    EUROPE[3],
    replace(EUROPE[4], hours="mon-fri 09:00-17:00 America/St_Johns"),
    replace(EUROPE[5], hours="mon-fri 22:00-06:00 America/Santiago"),
    replace(EUROPE[6], hours="mon-fri 09:00-18:00 Asia/Kathmandu"),
    replace(EUROPE[7], hours="sat-sun 10:00-16:00 mon 09:00-12:00 Pacific/Auckland"),
)
"""Half an hour of summer time, a quarter of an hour beside the full one, and clocks that are set in March and April."""
ACCOUNTS = {
    "europe": (datetime(2026, 10, 12, tzinfo=UTC), EUROPE),
    "south": (datetime(2027, 3, 15, tzinfo=UTC), SOUTH),
}
"""When the month begins, and its endpoints; their names and types are the same, since the faults name them."""


@dataclass
class Month:
    """What happened so far."""

    world: HoursWorld
    dice: random.Random
    begins: datetime
    endpoints: tuple[Tagged, ...]
    refused: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    """(Endpoint, from, until) in which AWS refuses it capacity or quota, the way back included."""
    told: list[tuple[datetime, str]] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    closed: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    usd: float = 0.0
    mute_until: datetime = NEVER
    printed: int = 0

    @property
    def now(self) -> datetime:
        return self.world.now

    def post(self, subject: str, _text: str) -> None:
        """SNS, which now and then does not answer."""
        if self.now < self.mute_until:
            raise WriteRefusedError("telling people", "InternalError", "SNS does not answer")
        self.told.append((self.now, subject))


def open_for(one: Tagged) -> LoadModel:
    """Requests in each minute of its hours."""
    hours = parse_hours(one.hours)
    known: dict[datetime, Opening | None] = {}

    def minute(at: datetime, _type: str, _count: int) -> Served:
        return Served(30 if is_open(hours, known, at) else 0, latency_ms=100)

    return minute


def is_open(hours: OfficeHours, known: dict[datetime, Opening | None], at: datetime) -> bool:
    """Whether the minute lies in its hours; openings are looked up once a quarter of an hour."""
    quarter = at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0)
    if quarter not in known:
        known[quarter] = hours.opening(quarter)
    return known[quarter] is not None


@contextmanager
def account(zones: str, seed: int) -> Iterator[Month]:
    """Eight endpoints that run, in the night before the first day."""
    begins, endpoints = ACCOUNTS[zones]
    first, others = endpoints[0], endpoints[1:]
    with hours_world(evening=begins, more_tags={"rightsizer:hours": first.hours}) as w:
        month = Month(w, random.Random(seed), begins, endpoints)
        ports = w.flow.ports
        w.flow = replace(w.flow, ports=replace(ports, notifier=Told(month.post)))
        with w.box.gate.unrecorded():
            for one in others:
                tags = {"rightsizer:hours": one.hours}
                tags |= {"rightsizer:fallback-config": f"{one.name}-small"} if one.fallback else {}
                w.box.add_endpoint(one.name, one.kind, one.count, tags=tags, image=IMAGE.format(one.name))
                if one.fallback:
                    spare(w, one)
        for one in endpoints:
            w.box.load(one.name, open_for(one))
        yield month


IMAGE = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/{}@sha256:" + "b" * 64


def spare(w: HoursWorld, one: Tagged) -> None:
    """The configuration of another type that its owner made beforehand."""
    sagemaker = w.box.client("sagemaker")
    body = sagemaker.describe_endpoint_config(EndpointConfigName=f"{one.name}-config")
    row = {**body["ProductionVariants"][0], "InstanceType": one.fallback}
    sagemaker.create_endpoint_config(EndpointConfigName=f"{one.name}-small", ProductionVariants=[row])


# faults


def no_capacity(month: Month, kind: str, hours: float) -> None:
    """AWS has none of the type until then; each endpoint of it without a fallback may be late."""
    month.world.box.world.fleet.scarce.add(kind)
    month.refused += [
        (one.name, month.now, month.now + hours * HOUR + RECOVERY) for one in month.endpoints if one.kind == kind
    ]


def plenty(month: Month) -> None:
    month.world.box.world.fleet.scarce.clear()
    month.world.box.gate.heal()


def no_quota(month: Month, name: str, hours: float) -> None:
    """The quota of its type is used up by others until then."""
    month.world.box.gate.fail(
        "sagemaker",
        "CreateEndpoint",
        "ResourceLimitExceeded",
        "the service limit is 0",
        times=1e9,
        where=lambda params: params.get("EndpointName") == name,
    )
    month.refused.append((name, month.now, month.now + hours * HOUR + RECOVERY))


def throttle(month: Month) -> None:
    for service in ("sagemaker", "cloudwatch", "application-autoscaling"):
        month.world.box.gate.fail(service, "*", "ThrottlingException", times=20)


def owner(month: Month, do: Callable[[Any], object]) -> None:
    with month.world.others() as sagemaker:
        try:
            do(sagemaker)
        except sagemaker.exceptions.ClientError as error:
            month.broken.append(f"{month.now:%d %b %H:%M} the owner's call was refused: {error}")


def create_again(month: Month) -> None:
    """The owner needs it at night, and knows nothing of `wake`."""
    owner(month, lambda sagemaker: sagemaker.create_endpoint(EndpointName="rank", EndpointConfigName="rank-config"))


def wake(month: Month, name: str, hours: float) -> None:
    ports = month.world.flow.ports
    with month.world.box.gate.unrecorded():
        record_wake(ports.book, ports.limits.hours, name, month.now + hours * HOUR, "U1", month.now)


def freeze(month: Month, on: bool) -> None:
    with month.world.box.gate.unrecorded():
        orders = Orders(month.world.flow.ports.journal)
        orders.freeze("U1", month.now) if on else orders.thaw("U1", month.now)


def mute(month: Month, minutes: float) -> None:
    month.mute_until = month.now + minutes * MINUTE


FAULTS: tuple[tuple[float, Callable[[Month], object]], ...] = (
    (2 + 5 / 24, lambda m: no_capacity(m, "ml.g5.xlarge", 4)),
    (2 + 9 / 24, plenty),
    (3 + 4 / 24, lambda m: no_quota(m, "vision", 4)),
    (3 + 8 / 24, plenty),
    (4 + 17 / 24, throttle),
    (8 + 5 / 24, throttle),
    (9 + 12 / 24, lambda m: no_capacity(m, "ml.g5.4xlarge", 3)),
    (9 + 15 / 24, plenty),
    (10 + 21 / 24, create_again),
    (11 + 14 / 24, lambda m: wake(m, "lab", 2)),
    (14 + 17 / 24, lambda m: freeze(m, on=True)),
    (15 + 9 / 24, lambda m: freeze(m, on=False)),
    (16 + 5 / 24, lambda m: no_capacity(m, "ml.g6.xlarge", 4)),
    (16 + 6.9 / 24, lambda m: mute(m, 16)),
    (16 + 9 / 24, plenty),
    (21 + 21 / 24, lambda m: wake(m, "rank", 3)),
    (23 + 4 / 24, lambda m: no_quota(m, "search", 5)),
    (23 + 9 / 24, plenty),
)
"""(Days from the beginning, what happens then)."""


# the month


def live(month: Month, days: int) -> None:
    """Minute by minute; a tick every five, of which some are lost, doubled or killed."""
    w, due = month.world, [(month.begins + days_in * DAY, do) for days_in, do in FAULTS]
    opened: dict[str, dict[datetime, Opening | None]] = {one.name: {} for one in month.endpoints}
    hours = {one.name: parse_hours(one.hours) for one in month.endpoints}
    lost = 0
    while month.now < month.begins + days * DAY:
        w.box.clock.advance(MINUTE)
        while due and due[0][0] <= month.now:
            due.pop(0)[1](month)
        if month.now.hour == month.now.minute == 0:
            tell_of_the_day(month)
        if month.now.minute % 5 == 0:
            lost = lost + 1 if lost < 2 and month.dice.random() < 0.04 else 0
            if not lost:
                tick(month)
        bill(month)
        for one in month.endpoints:
            if is_open(hours[one.name], opened[one.name], month.now):
                call(month, one, opened[one.name])


def tell_of_the_day(month: Month) -> None:
    """Print the day, and what broke since the last midnight."""
    print(f"{month.now:%d %b}: {month.usd:,.0f} USD, {sum(month.closed.values()):,} met a closed door", flush=True)
    month.world.box.calls.clear()  # nobody reads them here, and a month makes millions
    for line in month.broken[month.printed :]:
        print(f"    {line}", flush=True)
    month.printed = len(month.broken)


def tick(month: Month) -> None:
    """One invocation; sometimes two at once, sometimes it dies at a write."""
    w = month.world
    if month.dice.random() < 0.02:
        w.box.gate.kill(month.dice.randint(1, 12), after=month.dice.random() < 0.5)
    for _ in range(2 if month.dice.random() < 0.05 else 1):
        try:
            w.flow.tick(month.now)
        except (Killed, RightsizerError):
            w.box.gate._kill = None


def bill(month: Month) -> None:
    """A minute of what exists; AWS bills from the creation until the delete."""
    for endpoint in month.world.box.world.fleet.endpoints.values():
        for variant in endpoint.variants.values():
            month.usd += max(variant.count, variant.desired_count) * hourly(PRICED_IN, str(variant.instance_type)) / 60


def call(month: Month, one: Tagged, opened: dict[datetime, Opening | None]) -> None:
    """The requests of a minute."""
    w, rate = month.world, 30
    month.requests[one.name] += rate
    found = w.box.world.fleet.endpoints.get(one.name)
    if found is not None and found.status in SERVING:
        return
    month.closed[one.name] += rate
    if not any(name == one.name and start <= month.now < end for name, start, end in month.refused):
        status = found.status if found is not None else "gone"
        month.broken.append(
            f"{month.now:%d %b %H:%M} {one.name} is {status}, and AWS refused neither capacity nor quota"
        )
        return
    month.excused[one.name] += rate
    quarter = month.now.replace(minute=month.now.minute // 15 * 15, second=0, microsecond=0)
    opening = opened[quarter]
    since = opening.start if opening is not None else month.now
    if month.now - since >= TOLD_WITHIN and not any(one.name in said and at >= since for at, said in month.told):
        month.broken.append(f"{month.now:%d %b %H:%M} {one.name} does not serve, and nobody was told")


def main() -> int:
    """Live the month and print what it came to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--zones", choices=tuple(ACCOUNTS), default="europe")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    days = given.days
    logger.setLevel(logging.CRITICAL)
    began = time.monotonic()
    with account(given.zones, given.seed) as month:
        live(month, days)
        with month.world.box.gate.unrecorded():
            book = HoursTable(month.world.flow.ports.book.table)  # type: ignore[attr-defined]
            stops = {record.ref.name: len(record.stopped_times) for record in book.records()}
    always = sum(one.count * hourly(PRICED_IN, one.kind) for one in month.endpoints) * 24 * days
    for one in month.endpoints:
        shut, late = month.closed[one.name], month.excused[one.name]
        print(f"{one.name:9}{stops.get(one.name, 0):4} stops{month.requests[one.name]:10,} requests", end="")
        print(f"{shut:7,} met a closed door, {late:,} of them while AWS refused capacity or quota")
    less = 100 * (1 - month.usd / always)
    print(f"{days} days: {month.usd:,.0f} USD against {always:,.0f} always on, {less:.0f} % less; ", end="")
    unexcused = sum(month.closed.values()) - sum(month.excused.values())
    print(f"{unexcused:,} requests met a closed door without a refusal of AWS; {len(month.told)} messages; ", end="")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if month.broken else 0


if __name__ == "__main__":
    sys.exit(main())
