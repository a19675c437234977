"""How long decisions take: `python -m bench.decide [--endpoints 2000]`, CPU seconds of one core.

First endpoints that nothing cheaper could serve, so that no fleet is replayed, from digests of 14 days at five minutes:
their time must grow with their number only. Then the options of one endpoint, each replayed, by its rate of requests.
"""

import argparse
import math
import sys
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from unittest.mock import patch

from rightsizer.bootstrap import catalogue
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.endpoint import Endpoint, EndpointKind, EndpointRef, Mode, Objective, Variant
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.history import History
from rightsizer.domain.option import Option
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Commitment, Price, PriceTable
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import BIN, SLOTS, DailyUsage, Spread, VariantUsage
from rightsizer.recommender import options
from rightsizer.recommender.candidates import CandidateType
from rightsizer.recommender.context import AccountInputs, EvaluationContext
from rightsizer.recommender.options import size_and_price
from rightsizer.recommender.packing import find_packs
from rightsizer.recommender.recommend import recommend

NOW = datetime(2026, 11, 15, tzinfo=UTC)
DAYS = 14
"""All of them before `NOW` and within the look-back."""
LIMIT_S = 60.0
"""Seconds for 10,000 endpoints that need no replay."""
OPTION_S = 0.25
"""Seconds for an option that is replayed."""
PACKED, PACKED_S = 2000, 2.0
"""Small endpoints of one owner on one card, and the seconds to find partners for them."""
LINEAR = 2.6
"""Times as long for twice as many, at most."""
TYPE = "ml.g6e.xlarge"
FULL, LITTLE = Spread(0.7, 0.8, 0.85, 0.9, 0.92), Spread(0.2, 0.21, 0.22, 0.23, 0.24)
PEAK = 1.6
"""Requests of a busy slot over those of a usual one."""


def catalogue_and_prices() -> tuple[Catalogue, PriceTable]:
    """The product's own catalogue, and a price by memory and GPUs for each type: figures that only order them."""
    known = catalogue()
    usd = {
        t.name: Decimal(round(0.3 + t.accelerator.memory_gib * t.accelerator_count / 20, 3).__str__())
        for t in known
        if t.accelerator
    }
    prices = {n: Price(n, "us-east-1", p, "snapshot", "direct-hosting", "2026-11") for n, p in usd.items()}
    return known, PriceTable("us-east-1", prices, Commitment(Decimal(0), known=True))


def digests(
    per_minute: float, latency_s: float, busy: float, memory: Spread, instances: float = 4.0
) -> tuple[DailyUsage, ...]:
    """Fourteen days of the same shape: busy by day, quiet by night; `busy` is the share of the latency on the GPU."""
    requests = tuple(per_minute * 5 * (PEAK if 96 <= i < 228 else 0.4) * (1.1 if i % 3 else 0.8) for i in range(SLOTS))
    work = tuple(n * latency_s * busy for n in requests)
    shares = ((0.7, 50), (1.1, 40), (2, 10))
    bins = tuple((round(math.log(1000 * latency_s * f) / math.log(BIN)), w) for f, w in shares)
    small = Spread(0.2, 0.2, 0.2, 0.2, 0.2)
    return tuple(
        DailyUsage(
            date(2026, 11, 1) + timedelta(days=i), TYPE, 1, requests, work, (instances,) * 24, bins, 100 * latency_s,
            0.0, Spread(0.01, 0.2, 0.5, 0.6, 0.7), memory, small, small, 0.8,
        )
        for i in range(DAYS)
    )  # fmt: skip


def endpoint(count: int, p95_s: float) -> Endpoint:
    """A plain endpoint that has run for sixty days."""
    then = NOW - timedelta(days=60)
    variant = Variant("AllTraffic", "m", TYPE, count, count, 1.0, (), "LEAST_OUTSTANDING_REQUESTS")
    kind = EndpointKind.REAL_TIME
    return Endpoint(
        EndpointRef("111122223333", "us-east-1", "chat"), "InService", "c", then, then, kind, (kind,), (variant,), {},
        Mode.AUTO, True, Objective(p95_s), "bench", "", framework="pytorch",
    )  # fmt: skip


def decided(count: int, p95_s: float, usage: VariantUsage) -> Recommendation:
    """One decision with the product's own policy."""
    known, prices = FACTS
    return recommend(
        endpoint(count, p95_s), usage, AccountInputs(prices, known, {}, History(), Policy(), NOW), DIMENSIONS
    )


FACTS = catalogue_and_prices()


def many(number: int) -> float:
    """CPU seconds of `number` decisions that no replay is needed for: nothing cheaper has the memory and the speed."""
    usage = VariantUsage("chat", "AllTraffic", digests(20, 0.5, 0.9, FULL))
    start = time.process_time()
    for _ in range(number):
        found = decided(1, 1.2, usage)
    seconds = time.process_time() - start
    assert found.replay is None, "a replay ran where none was needed"
    return seconds


def one(per_minute: float) -> tuple[float, float, Recommendation]:
    """CPU seconds of the decision of one endpoint of four instances: all options replayed, the slowest of them."""
    usage = VariantUsage("chat", "AllTraffic", digests(per_minute, 0.05, 0.9, LITTLE))
    each: list[float] = [0.0]

    def timed(context: EvaluationContext, candidate: CandidateType) -> Option | Reason:
        begun = time.process_time()
        found = size_and_price(context, candidate)
        each.append(time.process_time() - begun)
        return found

    start = time.process_time()
    with patch.object(options, "size_and_price", timed):
        found = decided(4, 0.5, usage)
    return time.process_time() - start, max(each), found


def packed(number: int) -> float:
    """CPU seconds to find partners on one card for so many small endpoints of one owner, whose loads all differ."""
    small = recommend_small()
    needs, card = [], small.needs
    assert card is not None, small.reason.sentence
    for i in range(number):
        busy = tuple(round(0.3 * ((7 * i + 5 * hour * hour) % 23) / 23, 4) for hour in range(24))
        needs.append(replace(card, gpu_memory_gib=0.5 + (13 * i) % 20, busy=busy))
    found = [replace(small, ref=replace(small.ref, name=f"e{i:05}"), needs=each) for i, each in enumerate(needs)]
    start = time.process_time()
    assert find_packs(found, Policy())
    return time.process_time() - start


def recommend_small() -> Recommendation:
    """The decision of an endpoint that uses little of its only card."""
    return decided(1, 0.5, VariantUsage("chat", "AllTraffic", digests(13, 0.05, 0.9, LITTLE, instances=1)))


def over(endpoints: int, half_s: float, whole_s: float, slowest_s: float, packed_s: float = 0.0) -> list[str]:
    """What is over its limit, each with its figure; `half_s` are the seconds of half of the `endpoints`."""
    scaled = whole_s / endpoints * 10_000
    found = []
    if scaled > LIMIT_S:
        found.append(f"10,000 decisions take {scaled:.0f} s, above {LIMIT_S:.0f} s")
    if whole_s > LINEAR * half_s:
        found.append(f"twice as many take {whole_s / half_s:.1f} times as long, above {LINEAR} times")
    if slowest_s > OPTION_S:
        found.append(f"an option takes {1000 * slowest_s:.0f} ms, above {1000 * OPTION_S:.0f} ms")
    if packed_s > PACKED_S:
        found.append(f"packing {PACKED} endpoints takes {packed_s:.1f} s, above {PACKED_S:g} s")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; 1 where one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, default=2000)
    given = parser.parse_args(arguments)
    many(10)
    half, whole = many(given.endpoints // 2), many(given.endpoints)
    print(f"{given.endpoints} decisions without a replay: {whole:.1f} s CPU, half of them {half:.1f} s;"
          f" 10,000 would take {whole / given.endpoints * 10_000:.0f} s (limit {LIMIT_S:.0f} s)")  # fmt: skip
    worst = 0.0
    for rate in (13, 130, 1300, 13000):
        seconds, slowest, found = one(rate)
        worst = max(worst, slowest)
        served = found.chosen_option.facts.get("replay", "no option") if found.chosen_option else "no option"
        print(f"{rate} requests a minute: {1000 * seconds:.0f} ms CPU for all options,"
              f" at most {1000 * slowest:.0f} ms for one of them ({served})")  # fmt: skip
    together = packed(PACKED)
    print(f"{PACKED} small endpoints of one owner: partners on one card in {together:.2f} s CPU (limit {PACKED_S:g} s)")
    broken = over(given.endpoints, half, whole, worst, together)
    for sentence in broken:
        print(f"over its limit: {sentence}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
