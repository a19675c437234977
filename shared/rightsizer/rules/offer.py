"""Put numbers together into options: one target, priced and rated."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from rightsizer.model.option import Effort, Option, OptionKind, Risk, Target
from rightsizer.model.price import Price


@dataclass(frozen=True, slots=True)
class Money:
    """US dollars of an option."""

    usd_per_month: Decimal
    saving: Decimal
    switch_usd: Decimal
    payback_days: float


def type_option(
    now: tuple[str, int],
    target: Target,
    price: Price,
    money: Money,
    risks: Mapping[str, Risk],
    confidence: float,
    p95_s: float | None,
    facts: Mapping[str, str],
    not_checked: tuple[str, ...] = (),
) -> Option:
    """An option of another type, another count, or both; carried out in place."""
    return Option(
        kind=_kind(now, target),
        target=target,
        price=price,
        usd_per_month=money.usd_per_month,
        saving_usd_per_month=money.saving,
        switch_usd=money.switch_usd,
        payback_days=money.payback_days,
        risks=risks,
        risk=max(risks.values(), default=Risk.VERY_LOW),
        confidence=round(confidence, 2),
        effort=Effort.VERY_LOW if target.instance_type == now[0] else Effort.LOW,
        restart_needed=target.instance_type != now[0],
        rollback_possible=True,
        in_place=True,
        client_change="",
        p95_s=p95_s,
        facts=facts,
        not_checked=not_checked,
    )


def delete_option(now: tuple[str, int], price: Price, usd: Decimal, confidence: float, silent_days: int) -> Option:
    """Deleting an idle endpoint: a person's act, the configuration is kept to bring it back."""
    return Option(
        kind=OptionKind.DELETE,
        target=Target(instance_type=now[0], instance_count=0),
        price=price,
        usd_per_month=Decimal(0),
        saving_usd_per_month=usd,
        switch_usd=Decimal(0),
        payback_days=0.0,
        risks={"availability": Risk.MEDIUM},
        risk=Risk.MEDIUM,
        confidence=round(confidence, 2),
        effort=Effort.MEDIUM,
        restart_needed=True,
        rollback_possible=True,
        in_place=False,
        client_change="calls fail once the endpoint is deleted",
        p95_s=None,
        notes=("keep the endpoint configuration: CreateEndpoint with it brings the endpoint back",),
        facts={"days without a request": str(silent_days)},
        not_checked=("whether the endpoint is kept for rare or seasonal use",),
    )


def nap_option(
    now: tuple[str, int], price: Price, money: Money, confidence: float, minutes: int, asleep: float, in_place: bool
) -> Option:
    """Scale to zero after `minutes` without a request. On AWS this needs inference components, so it is proposed."""
    return Option(
        kind=OptionKind.SCALE_TO_ZERO,
        target=Target(instance_type=now[0], instance_count=now[1], minimum=0, idle_minutes=minutes),
        price=price,
        usd_per_month=money.usd_per_month,
        saving_usd_per_month=money.saving,
        switch_usd=money.switch_usd,
        payback_days=money.payback_days,
        risks={"availability": Risk.LOW},
        risk=Risk.LOW,
        confidence=round(confidence, 2),
        effort=Effort.HIGH,
        restart_needed=True,
        rollback_possible=True,
        in_place=in_place,
        client_change="" if in_place else "must name an inference component and retry while the endpoint wakes",
        p95_s=None,
        notes=(f"asleep {100 * asleep:.0f} % of the look-back with a timeout of {minutes} minutes",),
        facts={"idle timeout": f"{minutes} minutes", "asleep": f"{100 * asleep:.0f} %"},
    )


def restore_option(now: tuple[str, int], target: Target, price: Price, money: Money, confidence: float) -> Option:
    """Back to the last configuration that was good."""
    return Option(
        kind=_kind(now, target),
        target=target,
        price=price,
        usd_per_month=money.usd_per_month,
        saving_usd_per_month=money.saving,
        switch_usd=money.switch_usd,
        payback_days=money.payback_days,
        risks={"capacity": Risk.LOW},
        risk=Risk.LOW,
        confidence=round(confidence, 2),
        effort=Effort.LOW,
        restart_needed=target.instance_type != now[0],
        rollback_possible=True,
        in_place=True,
        client_change="",
        p95_s=None,
        notes=("the configuration that ran before our last change",),
        restores=True,
    )


def _kind(now: tuple[str, int], target: Target) -> OptionKind:
    if target.hourly_counts is not None:
        return OptionKind.SCHEDULE
    if target.instance_type == now[0]:
        return OptionKind.INSTANCE_COUNT
    return OptionKind.INSTANCE_TYPE if target.instance_count == now[1] else OptionKind.TYPE_AND_COUNT
