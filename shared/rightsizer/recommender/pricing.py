"""Put numbers together into options: one target, priced and rated."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Effort, Money, Option, OptionKind, Risk, Target, carried_out, payback_of, priced
from rightsizer.domain.price import Price

TOLD = (
    "{} in place of {} GPUs in an instance: a server that is told how many (tensor parallel degree,"
    " CUDA_VISIBLE_DEVICES) has to be told anew"
)
WAITS = "must retry while the endpoint wakes"
MANAGED = (
    "whether managed instance scaling may go down to 0 instances (MinInstanceCount): where it may not, the"
    " configuration that lets it is a deployment"
)


def type_option(
    endpoint: EndpointKind,
    runs: tuple[InstanceType, int],
    to: InstanceType,
    target: Target,
    price: Price,
    money: Money,
    risks: Mapping[str, Risk],
    confidence: float,
    p95_s: float | None,
    facts: Mapping[str, str],
    not_checked: tuple[str, ...] = (),
) -> Option:
    """An option of another type, another count, or both; in place where the program changes such an endpoint.

    As many instances of the same card with fewer of them each are fewer GPUs.
    """
    now = (runs[0].name, runs[1])
    kind, fewer = _kind(now, target), to.accelerator_count < runs[0].accelerator_count
    if fewer and kind is OptionKind.INSTANCE_TYPE and to.accelerator == runs[0].accelerator:
        kind = OptionKind.FEWER_GPUS
    return priced(
        kind,
        target,
        price,
        money,
        confidence,
        risks,
        Effort.VERY_LOW if target.instance_type == now[0] else Effort.MEDIUM if fewer else Effort.LOW,
        moved=target.instance_type != now[0],
        in_place=carried_out(endpoint, kind),
        p95_s=p95_s,
        notes=(TOLD.format(to.accelerator_count, runs[0].accelerator_count),) if fewer else (),
        facts={**facts, "break-even": _break_even(money)},
        not_checked=not_checked,
    )


def _break_even(money: Money) -> str:
    """Until where it saves; the commitment is taken off the saving already."""
    if money.saving <= 0 or money.usd_per_month <= 0:
        return "it saves nothing: it serves what today's fleet does not"
    ratio = float((money.usd_per_month + money.saving) / money.usd_per_month)
    return f"as dear as today at {ratio:.2f} times the planned instance hours"


def tested(option: Option, test_usd: Decimal) -> Option:
    """The option behind a shadow test of `test_usd`: the saving has to pay for the test and for the change after it."""
    payback = payback_of(option.switch_usd + test_usd, option.saving_usd_per_month)
    return replace(option, test_usd=test_usd, payback_days=payback)


def delete_option(now: tuple[str, int], price: Price, usd: Decimal, confidence: float, silent_days: int) -> Option:
    """Deleting an idle endpoint: a person's act, the configuration is kept to bring it back."""
    return priced(
        OptionKind.DELETE,
        Target(instance_type=now[0], instance_count=0),
        price,
        Money(Decimal(0), usd, Decimal(0), 0.0),
        confidence,
        {"availability": Risk.MEDIUM},
        Effort.MEDIUM,
        in_place=False,
        client_change="calls fail once the endpoint is deleted",
        notes=("keep the endpoint configuration: CreateEndpoint with it brings the endpoint back",),
        facts={"days without a request": str(silent_days), "break-even": "from the first hour"},
        not_checked=("whether the endpoint is kept for rare or seasonal use",),
    )


def nap_option(
    now: tuple[str, int],
    price: Price,
    money: Money,
    confidence: float,
    minutes: int,
    asleep: float,
    in_place: bool,
    of_components: bool = False,
) -> Option:
    """Scale to zero after `minutes` without a request. On AWS this needs inference components, so it is proposed.

    `of_components`: the endpoint is made of them, so that its owner changes their copies and its callers name them.
    """
    asked = WAITS if of_components else f"must name an inference component and {WAITS.removeprefix('must ')}"
    return priced(
        OptionKind.SCALE_TO_ZERO,
        Target(instance_type=now[0], instance_count=now[1], minimum=0, idle_minutes=minutes),
        price,
        money,
        confidence,
        {"availability": Risk.LOW},
        Effort.HIGH,
        in_place=in_place,
        client_change="" if in_place else asked,
        notes=(f"asleep {100 * asleep:.0f} % of the look-back with a timeout of {minutes} minutes",),
        facts={
            "idle timeout": f"{minutes} minutes",
            "asleep": f"{100 * asleep:.0f} %",
            "break-even": f"saves nothing once a request comes every {minutes} minutes",
        },
        not_checked=(MANAGED,) if of_components else (),
        of_components=of_components,
    )


def restore_option(
    endpoint: EndpointKind, now: tuple[str, int], target: Target, price: Price, money: Money, confidence: float
) -> Option:
    """Back to the last configuration that was good; in place where the program changes such an endpoint."""
    kind = _kind(now, target)
    return priced(
        kind,
        target,
        price,
        money,
        confidence,
        {"capacity": Risk.LOW},
        Effort.LOW,
        moved=target.instance_type != now[0],
        in_place=carried_out(endpoint, kind),
        notes=("the configuration that ran before our last change",),
        restores=True,
    )


def _kind(now: tuple[str, int], target: Target) -> OptionKind:
    if target.hourly_counts is not None:
        return OptionKind.SCHEDULE
    if target.instance_type == now[0]:
        if target.routing is not None:
            return OptionKind.ROUTING
        return OptionKind.INSTANCE_COUNT if target.minimum is None else OptionKind.AUTOSCALING
    return OptionKind.INSTANCE_TYPE if target.instance_count == now[1] else OptionKind.TYPE_AND_COUNT
