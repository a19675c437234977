"""A new serverless endpoint, billed by the second of requests."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING

from rightsizer.dimensions.dimension import Elsewhere
from rightsizer.dimensions.other_architecture import cpu_refusal, memory_of
from rightsizer.domain.demand import Demand
from rightsizer.domain.option import Effort, Option, OptionKind, Risk, RiskResource, Target, new_option
from rightsizer.domain.price import HOURS_PER_MONTH, Price
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.dimension import OfferAnswer, Restart
from rightsizer.recommender.other_endpoint import (
    SERVERLESS_GB,
    SERVERLESS_REQUEST_S,
    Bill,
    bill_of,
    no_saving_reason,
    serverless_usd,
    whole_gigabytes,
)

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext

SECONDS_PER_MONTH = int(HOURS_PER_MONTH) * 3600
SERVERLESS_CALLERS = (
    "name a new endpoint: a real-time one cannot become serverless; requests and answers up to 4 MB, 60 s, and a wait"
    " for the start after a pause"
)


class Serverless(Elsewhere):
    """For a model that does not use its GPU; its owner makes the endpoint."""

    kinds = (OptionKind.SERVERLESS,)
    does = "become a serverless endpoint"
    back = "sends the callers back to this endpoint, as long as it is kept"
    applies_to = frozenset()
    """A real-time endpoint cannot become serverless."""
    restart = Restart.NEW_ENDPOINT

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """An endpoint of the memory that host and model need, where its price is known."""
        from rightsizer.recommender.scale_to_zero import may_start_cold

        unneeded = cpu_refusal(context.demand, context.policy)
        if unneeded is not None:
            return [unneeded]
        held = memory_of(context.reference, context.demand)
        serverless_price = context.inputs.prices.serverless
        if serverless_price is None:
            return [serverless_reason(context.demand, context.usd_per_month)]
        host = context.demand.host_memory_gib
        need = held + (context.reference.memory_gib if host is None else host)
        reason = serverless_refusal(context.demand, need, may_start_cold(context.endpoint))
        if reason is not None:
            return [reason]
        size, seconds = whole_gigabytes(need) or SERVERLESS_GB, busy_seconds(context.demand)
        hour = serverless_usd(serverless_price.usd_per_gb_second, size, Decimal(3600))
        price = Price(
            f"serverless {size} GB",
            serverless_price.region,
            hour,
            "snapshot",
            serverless_price.basis,
            serverless_price.as_of,
        )
        bill = bill_of(context, price, seconds / SECONDS_PER_MONTH, 0, 0.0)
        if bill.saving <= 0:
            return [no_saving_reason(context, price.instance_type)]
        return [serverless_option(size, seconds, price, bill, context.demand)]


def serverless_refusal(demand: Demand, need_gib: float, cold_ok: bool) -> Reason | None:
    """Why serverless inference, whose price is known, is no option, or None. `need_gib`: model and host together."""
    if need_gib > SERVERLESS_GB:
        sentence = f"host and model need up to {need_gib:.0f} GiB, serverless has {SERVERLESS_GB} GB at most"
        return Reason(Code.HOST_MEMORY_TOO_SMALL, sentence)
    if demand.latency is None or demand.latency.p99_s > SERVERLESS_REQUEST_S / 2:
        slow = f"{demand.latency.p99_s:.0f} s" if demand.latency else "unknown"
        return Reason(Code.TOO_SLOW, f"p99 is {slow} with a GPU beside it; serverless ends a request after 60 s")
    if not cold_ok:
        sentence = "no tag rightsizer:cold-start-ok=true says that callers can wait for a start after a pause"
        return Reason(Code.NOT_OPTED_IN, sentence)
    return None


def busy_seconds(demand: Demand) -> float:
    """Seconds of requests in a month, at today's latency."""
    return (demand.latency.mean_s if demand.latency else 0.0) * demand.load.mean_rate * SECONDS_PER_MONTH


def serverless_reason(demand: Demand, usd: Decimal) -> Reason:
    """Reason that names serverless inference without offering it: its price is unknown, its break-even is not."""
    seconds = busy_seconds(demand)
    limit = f"{float(usd) / (SERVERLESS_GB * seconds):.5f}" if seconds > 0 else "any price"
    return Reason(
        Code.NO_PRICE,
        f"no GPU is needed, but the price table has no serverless price here: {SERVERLESS_GB} GB for {seconds:.0f} s of"
        f" requests a month cost less than today below USD {limit} per GB-second; it needs a new endpoint",
    )


def serverless_option(gigabytes: int, seconds: float, price: Price, bill: Bill, demand: Demand) -> Option:
    """A new serverless endpoint, billed by the second of requests, for a model that does not use its GPU."""
    ratio = float(bill.now_usd / bill.usd_per_month) if bill.usd_per_month > 0 else math.inf
    return new_option(
        OptionKind.SERVERLESS,
        Target("", 0),
        price,
        bill,
        demand.confidence,
        in_place=False,
        restarts=True,
        risks={RiskResource.LATENCY: Risk.HIGH, RiskResource.VCPU: Risk.MEDIUM},
        effort=Effort.HIGH,
        client_change=SERVERLESS_CALLERS,
        notes=(f"{gigabytes} GB for {seconds:.0f} s of requests a month, priced by the GB-second",),
        facts={
            "break-even": f"as dear as today at {ratio:,.{0 if ratio >= 100 else 2}f} times the seconds of requests"
        },
        not_checked=(
            "whether the model runs without CUDA, and how fast: slower requests are billed for longer",
            "how long it takes to start after a pause",
            "what data in and out cost: the size of requests is not published",
            "whether the model needs a VPC, network isolation or an image above 10 GB, which serverless does not have",
            "whether 200 requests at once are enough",
        ),
    )
