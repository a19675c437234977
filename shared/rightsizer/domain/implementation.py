"""What carrying an option out takes, by its kind: whether the model starts again, and who brings back what was there.

The words are Cost Optimization Hub's: restart needed, rollback possible. Options are made here, so that none says more.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import assert_never

from rightsizer.domain.option import Effort, Money, Option, OptionKind, Risk, Target
from rightsizer.domain.price import Price


class WayBack(StrEnum):
    """Who brings back what was there before an option."""

    PROGRAM = "rightsizer"
    """The journal of the change runs back: by itself where it goes wrong, or when somebody asks."""
    OWNER = "owner"
    """What was there still exists, and its owner deploys it or calls it again."""
    NONE = "created-anew"
    """What was there is gone: its owner creates it anew from what was kept."""


def way_back(kind: OptionKind, in_place: bool) -> WayBack:
    """Who brings back what was there before an option of that kind; `in_place` as of `Option`."""
    match kind:
        case OptionKind.DELETE:
            return WayBack.NONE
        case OptionKind.ASYNC | OptionKind.SERVERLESS | OptionKind.PACKING | OptionKind.OTHER_ARCHITECTURE:
            return WayBack.OWNER
        case (
            OptionKind.INSTANCE_TYPE
            | OptionKind.INSTANCE_COUNT
            | OptionKind.TYPE_AND_COUNT
            | OptionKind.FEWER_GPUS
            | OptionKind.AUTOSCALING
            | OptionKind.SCHEDULE
            | OptionKind.ROUTING
            | OptionKind.INSTANCE_POOLS
            | OptionKind.SCALE_TO_ZERO
            | OptionKind.COPIES
            | OptionKind.SCALE_IN
            | OptionKind.PLACEMENT
        ):
            return WayBack.PROGRAM if in_place else WayBack.OWNER
        case unreachable:
            assert_never(unreachable)


def starts_anew(kind: OptionKind, in_place: bool, redeploys: bool = False, of_components: bool = False) -> bool:
    """Whether the model starts again, on other instances or as another copy, for an option of that kind.

    A routing strategy and a scale-in policy are parts of the endpoint configuration, of which another one replaces
    every instance (SageMaker, UpdateEndpoint); counts, bounds and scheduled actions replace none. `redeploys`: the
    type or the routing changes with it. `of_components`: the endpoint is made of inference components, whose copies
    may be none where they are.
    """
    match kind:
        case OptionKind.INSTANCE_COUNT | OptionKind.AUTOSCALING | OptionKind.SCHEDULE | OptionKind.COPIES:
            return redeploys
        case OptionKind.DELETE:
            return False
        case OptionKind.SCALE_TO_ZERO:
            return not (in_place or of_components)  # bounds alone; else a new endpoint of inference components
        case (
            OptionKind.INSTANCE_TYPE
            | OptionKind.TYPE_AND_COUNT
            | OptionKind.FEWER_GPUS
            | OptionKind.ROUTING
            | OptionKind.INSTANCE_POOLS
            | OptionKind.SCALE_IN
            | OptionKind.PLACEMENT
            | OptionKind.ASYNC
            | OptionKind.SERVERLESS
            | OptionKind.PACKING
            | OptionKind.OTHER_ARCHITECTURE
        ):
            return True
        case unreachable:
            assert_never(unreachable)


def priced(
    kind: OptionKind,
    target: Target,
    price: Price,
    money: Money,
    confidence: float,
    risks: Mapping[str, Risk],
    effort: Effort,
    *,
    in_place: bool,
    moved: bool = False,
    client_change: str = "",
    p95_s: float | None = None,
    notes: tuple[str, ...] = (),
    facts: Mapping[str, str] | None = None,
    not_checked: tuple[str, ...] = (),
    restores: bool = False,
    of_components: bool = False,
) -> Option:
    """An option with its money spread out and the worst of its risks as its risk; `moved` to another type."""
    return Option(
        kind=kind,
        target=target,
        price=price,
        usd_per_month=money.usd_per_month,
        saving_usd_per_month=money.saving,
        switch_usd=money.switch_usd,
        payback_days=money.payback_days,
        risks=risks,
        risk=max(risks.values(), default=Risk.VERY_LOW),
        confidence=round(confidence, 2),
        effort=effort,
        restart_needed=starts_anew(kind, in_place, moved or target.routing is not None, of_components),
        rollback_possible=way_back(kind, in_place) is not WayBack.NONE,
        in_place=in_place,
        client_change=client_change,
        p95_s=p95_s,
        notes=notes,
        facts=facts or {},
        not_checked=not_checked,
        restores=restores,
    )
