"""Serving without a GPU where it is not used: a type of each CPU architecture and serverless, or why not."""

import math
from dataclasses import replace

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Excluded, Option, OptionKind
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender import alternative_prices as rule
from rightsizer.recommender import alternative_refusals as why_not
from rightsizer.recommender.context import Situation
from rightsizer.recommender.cost import volumes
from rightsizer.recommender.other_types import bill_of, cheaper, out, unsaved
from rightsizer.recommender.scale_to_zero import tolerates_cold

type Sold = tuple[InstanceType, Price]


def without_gpu(at: Situation) -> list[Option | Excluded]:
    """The cheapest type of each CPU architecture and serverless inference, each as an option or with its reason."""
    reason = why_not.cpu_refusal(at.demand, at.policy)
    if reason is not None:
        return [out(at, kind, reason) for kind in (OptionKind.OTHER_ARCHITECTURE, OptionKind.SERVERLESS)]
    held = why_not.memory_of(at.reference, at.demand)
    plain = cheaper(at, [h for h in at.given.catalogue if h.accelerator is None and not h.family.startswith("t")])
    found = [
        _cheapest(at, arch, [sold for sold in plain if sold[0].cpu_arch == arch], held) for arch in rule.CPU_CALLERS
    ]
    return [*found, _serverless(at, held)]


def _cheapest(at: Situation, arch: str, sold: list[Sold], held: float) -> Option | Excluded:
    """The cheapest type of the architecture that may serve; else the reason of the dearest, for others are smaller."""
    refused: Excluded | None = None
    for hardware, price in sold:
        found = _on(at, hardware, price, held)
        if isinstance(found, Option):
            return found
        refused = Excluded(hardware.name, found, OptionKind.OTHER_ARCHITECTURE)
    if refused is not None:
        return refused
    usd = f"USD {at.price.usd_per_hour} per hour of {at.runs.name}"
    sentence = f"no {arch} type without a GPU is sold here for less than the {usd}"
    return out(at, OptionKind.OTHER_ARCHITECTURE, Reason(Code.NOT_CHEAPER, sentence))


def _on(at: Situation, hardware: InstanceType, price: Price, held: float) -> Option | Reason:
    quota = at.given.quotas.get(hardware.name)
    if quota is not None and quota < 1:
        return Reason(Code.NO_QUOTA, f"the account's quota for {hardware.name} endpoints is {quota}")
    small = why_not.host_refusal(at.reference, hardware, at.demand, held)
    if small is not None:
        return small
    count = at.variant.current_count
    bill = bill_of(at, price, at.instances, count, 0.0)
    if bill.saving <= 0:
        return unsaved(at, hardware.name)
    option = rule.cpu_option(hardware, count, price, bill, at.demand)
    return replace(option, not_checked=option.not_checked + volumes(at.runs, hardware))


def _serverless(at: Situation, held: float) -> Option | Excluded:
    """A serverless endpoint of the memory that host and model need, where its price is known."""
    known = at.given.prices.serverless
    if known is None:
        return out(at, OptionKind.SERVERLESS, why_not.serverless_reason(at.demand, at.usd))
    host = at.demand.host_memory_gib
    need = held + (at.reference.memory_gib if host is None else host)
    reason = why_not.serverless_refusal(at.demand, need, tolerates_cold(at.endpoint))
    if reason is not None:
        return out(at, OptionKind.SERVERLESS, reason)
    size, seconds = max(1, math.ceil(need)), why_not.busy_seconds(at.demand)
    hour = known.usd_per_gb_second * size * 3600
    price = Price(f"serverless {size} GB", known.region, hour, "snapshot", known.basis, known.as_of)
    bill = bill_of(at, price, seconds / why_not.SECONDS_PER_MONTH, 0, 0.0)
    if bill.saving <= 0:
        return out(at, OptionKind.SERVERLESS, unsaved(at, price.instance_type))
    return rule.serverless_option(size, seconds, price, bill, at.demand)
