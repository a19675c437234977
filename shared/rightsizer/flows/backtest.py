"""What automatic mode would have done: the judge on each past morning, with no more than it could know then."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import batched

from rightsizer.flows.evaluate import CHUNK, EvaluatePorts, Surroundings, Watcher, surroundings
from rightsizer.flows.judge import judge_digests
from rightsizer.flows.usage import Usage, UsageReader
from rightsizer.model.digest import UsageDigest
from rightsizer.model.hardware import Catalogue
from rightsizer.model.history import History
from rightsizer.model.observation import Endpoint, Mode, Unobserved
from rightsizer.model.policy import Policy
from rightsizer.model.price import PriceTable
from rightsizer.model.reason import Code, Reason
from rightsizer.model.recommendation import Gate, Recommendation
from rightsizer.model.usage import NoMetrics
from rightsizer.ports import EndpointSummary


@dataclass(frozen=True, slots=True)
class Backtest:
    """One endpoint over its look-back, had it been opted in."""

    endpoint: str
    acted_on: date | None
    """The first morning on which a change would have been applied; None when on none."""
    recommendation: Recommendation | None
    """What would have been applied then; else the judgement of the last morning; None without a day."""
    days_after: int
    saved_usd: Decimal
    """Saving over the days that followed, less the cost of the switch."""
    mornings: Mapping[str, int]
    """How many mornings ended at each gate."""


def backtests(
    ports: EvaluatePorts, summaries: Sequence[EndpointSummary], policy: Policy, now: datetime, watcher: Watcher
) -> Iterator[Backtest | Unobserved]:
    """Each endpoint over its look-back, in order; Unobserved where it or its metrics could not be read."""
    if not summaries:
        return
    around = surroundings(ports, summaries[0].ref.region, watcher)
    for some in batched(ports.fleet.observe(summaries), CHUNK):
        reader = UsageReader(ports.metrics, ports.catalogue, cache(ports.history), policy, ports.memory)
        read = reader.read([each for each in some if isinstance(each, Endpoint)], now)
        for each in some:
            watcher.done()
            yield each if isinstance(each, Unobserved) else _one(each, read.get(each.ref.name), ports, around, policy)


def _one(
    endpoint: Endpoint, usage: Usage | None, ports: EvaluatePorts, around: Surroundings, policy: Policy
) -> Backtest | Unobserved:
    """The back-test of one endpoint, or why there is none."""
    match usage:
        case UsageDigest():
            return backtest(endpoint, usage, around.prices, ports.catalogue, around.quotas, policy)
        case NoMetrics():
            return Unobserved(endpoint.ref, usage.reason)
        case None:
            sentence = f"{endpoint.ref.name} runs on no instance type whose metrics tell its load"
            return Unobserved(endpoint.ref, Reason(Code.OTHER_KIND, sentence))
        case _:
            return Unobserved(endpoint.ref, Reason(Code.READ_FAILED, str(usage)))


def backtest(
    endpoint: Endpoint,
    usage: UsageDigest,
    prices: PriceTable,
    catalogue: Catalogue,
    quotas: Mapping[str, int],
    policy: Policy,
) -> Backtest:
    """Judge each morning of the look-back as if the endpoint were opted in; nothing is looked up, nothing written."""
    opted_in = replace(endpoint, mode=Mode.AUTO, mode_declared=True)
    dates = sorted({d.day for d in usage.days})
    mornings: dict[str, int] = {}
    last: Recommendation | None = None
    for known in dates:
        seen = UsageDigest(usage.endpoint, usage.variant, tuple(d for d in usage.days if d.day <= known))
        now = datetime.combine(known, time(), UTC) + timedelta(days=1)
        last = judge_digests(opted_in, seen, prices, catalogue, quotas, History(), policy, now)
        mornings[last.gate.value] = mornings.get(last.gate.value, 0) + 1
        if last.gate is Gate.APPLY and last.chosen is not None:
            left = sum(1 for d in dates if d > known)
            saved = last.chosen.saving_usd_per_month * left / 30 - last.chosen.switch_usd
            return Backtest(usage.endpoint, now.date(), last, left, saved.quantize(Decimal("0.01")), mornings)
    return Backtest(usage.endpoint, None, last, 0, Decimal(0), mornings)
