"""Automatic mode on past days of an account.

Nothing is written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import batched

from rightsizer.backtest.simulate import Allowance, Backtester, BacktestInputs
from rightsizer.domain.backtest import Backtest
from rightsizer.domain.endpoint import Endpoint, Mode, Unobserved
from rightsizer.domain.history import History
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import EndpointUsage, NoMetrics, VariantUsage
from rightsizer.flows.evaluate import EvaluatePorts, ProgressWatcher, read_surroundings
from rightsizer.flows.read_usage import Usage, UsageReader
from rightsizer.ports.evaluation import EndpointSummary
from rightsizer.recommender.context import AccountInputs
from rightsizer.telemetry import logger

KEPT_DAYS = 63
"""CloudWatch keeps five-minute datapoints for so long."""
TOGETHER = 25
"""Endpoints that are read before they are tested: more would save no request, and nothing would seem to happen."""


@dataclass(frozen=True, slots=True)
class BacktestPeriod:
    """The past days that are tested, and the settings under which."""

    days: int
    policy: Policy
    limits: ChangeLimits


def backtests(
    ports: EvaluatePorts,
    summaries: Sequence[EndpointSummary],
    period: BacktestPeriod,
    now: datetime,
    watcher: ProgressWatcher,
) -> Iterator[Backtest | Unobserved]:
    """Each endpoint from the first morning of the period to that of `now`, in order.

    Unobserved where it or its metrics could not be read. The look-back of the first morning is read too, as far as
    CloudWatch keeps it.
    """
    if not summaries:
        return
    policy, days = period.policy, period.days
    around = read_surroundings(ports, summaries[0].ref.region, watcher)
    inputs = AccountInputs(around.prices, ports.catalogue, around.quotas, History(), policy, now)
    stage = BacktestInputs(
        inputs, ports.dimensions, Allowance(period.limits), now.date() - timedelta(days=days), now.date()
    )
    reach = replace(policy, lookback_days=min(days + policy.lookback_days, KEPT_DAYS))
    for some in batched(ports.fleet.observe(summaries), TOGETHER):
        reader = UsageReader(ports.metrics, ports.catalogue, cache(ports.history), reach, ports.memory)
        read = reader.read([each for each in some if isinstance(each, Endpoint)], now)
        for each in some:
            yield each if isinstance(each, Unobserved) else _backtest_or_reason(each, read.get(each.ref.name), stage)
            watcher.done()


def _backtest_or_reason(endpoint: Endpoint, usage: Usage | None, stage: BacktestInputs) -> Backtest | Unobserved:
    """The back-test of one endpoint, or why there is none."""
    if isinstance(usage, EndpointUsage):  # the first variant alone is played back
        usage = usage.of_variant(endpoint.variants[0].name)
    match usage:
        case VariantUsage():
            return _run_backtest(endpoint, usage, stage)
        case NoMetrics():
            return Unobserved(endpoint.ref, usage.reason)
        case None:
            sentence = f"{endpoint.ref.name} runs on no instance type whose metrics tell its load"
            return Unobserved(endpoint.ref, Reason(Code.OTHER_KIND, sentence))
        case _:
            return Unobserved(endpoint.ref, Reason(Code.READ_FAILED, str(usage)))


def _run_backtest(endpoint: Endpoint, usage: VariantUsage, stage: BacktestInputs) -> Backtest | Unobserved:
    try:
        return backtest(endpoint, usage, stage)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # A fault of ours on one endpoint's odd data: the other endpoints go on.
        logger.exception("back-test failed", extra={"endpoint": endpoint.ref.name})
        sentence = f"testing {endpoint.ref.name} failed with {error!r}; this is a fault of rightsizer, please report it"
        return Unobserved(endpoint.ref, Reason(Code.UNKNOWN_FAILURE, sentence))


def backtest(endpoint: Endpoint, usage: VariantUsage, stage: BacktestInputs) -> Backtest:
    """Each morning of the stage as if the endpoint were opted in; nothing is looked up, nothing written.

    The day that is not over is left out: at its midnight nobody knew it.
    """
    opted_in = replace(endpoint, mode=Mode.AUTO, mode_declared=True)
    whole = [d for d in usage.days if d.day < stage.today]
    found = Backtester(opted_in, whole, stage, opted_in).run()
    return replace(found, left_out=tuple(variant.name for variant in endpoint.variants[1:]))
