"""The context of one endpoint made by hand: a steady week of four instances, and replays that a test makes up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from rightsizer.domain.demand import Fleet, ReplayResult
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.history import History, PastChange
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import SLOTS, DailyUsage
from rightsizer.recommender.context import AccountInputs, EvaluationContext
from rightsizer.recommender.workload import evaluation_context
from tests.recommender import kit, plain
from tests.recommender.test_dimensions import TRACKING

TYPE, OTHER, FIRST = "ml.g6.xlarge", "ml.g5.xlarge", date(2026, 11, 13)
SCALED = ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 2, 8, policies=(TRACKING,))
"""The owner's autoscaling, two to eight instances."""
HOURS = (3,) * 12 + (1,) * 12
"""Counts of which the second half of the day needs fewer."""


def day(number: int, instances: float = 4.0, per_slot: float = 20.0, late: float = 0.0, name: str = TYPE) -> DailyUsage:
    """A day of requests of a second each, the share `late` of which took five."""
    calls = per_slot * SLOTS
    bins = ((349, calls * (1 - late)), (430, calls * late)) if late else ((349, calls),)
    return DailyUsage(
        FIRST + timedelta(days=number),
        name,
        1,
        (per_slot,) * SLOTS,
        (per_slot * 0.8,) * SLOTS,
        (instances,) * 24,
        bins,
        calls,
        0.0,
        None,
        None,
        None,
        None,
    )


@cache
def _steady() -> EvaluationContext:
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    found = evaluation_context(kit.endpoint(TYPE, 4, p95_s=4.0), [day(number) for number in range(7)], inputs)
    assert found is not None
    return found


def context(
    counts: Sequence[float | None] = (4.0,) * 24,
    scaling: Sequence[ScalableTarget] = (),
    past: Sequence[PastChange] = (),
    policy: Mapping[str, Any] | None = None,
    **more: Any,
) -> EvaluationContext:
    """Seven days with these counts by the hour on the reference type; `more` is said of the context itself."""
    steady = _steady()
    days = [replace(one, instances=tuple(counts)) for one in steady.days]
    inputs = replace(
        steady.inputs, history=History(tuple(past)), policy=replace(steady.inputs.policy, **(policy or {}))
    )
    endpoint = replace(steady.endpoint, scaling=tuple(scaling))
    made = {"endpoint": endpoint, "inputs": inputs, "days": days, "base": days, "_replays": {}, "_of_days": {}}
    return replace(steady, **{**made, "_on_reference": {}, **more})


def running(seen: EvaluationContext, name: str) -> EvaluationContext:
    """The same while another type runs than the one that the latency was measured on."""
    hardware = seen.inputs.catalogue.find(name)
    assert hardware is not None
    variant = replace(seen.variant, instance_type=name)
    return replace(seen, runs=hardware, endpoint=replace(seen.endpoint, variants=(variant,)))


def serve(monkeypatch: pytest.MonkeyPatch, of: Callable[[Fleet], ReplayResult]) -> list[Fleet]:
    """Have every fleet served as `of` says, and the shares of late requests that the policy names allowed as they are;
    the fleets that were asked about.
    """
    asked: list[Fleet] = []

    def replay(_: EvaluationContext, fleet: Fleet) -> ReplayResult:
        asked.append(fleet)
        return of(fleet)

    monkeypatch.setattr(EvaluationContext, "replay", replay)
    monkeypatch.setattr(EvaluationContext, "allowed_late_share", lambda _, share: share)
    return asked


def late(number: int, rings: int = 0, **more: Any) -> ReplayResult:
    """That many of a thousand requests were late."""
    return ReplayResult(1000, number, 0.0, rings, **more)


def fleet(count: int = 2, maximum: int = 0, load: float = 1.0, **more: Any) -> Fleet:
    """So many instances at all hours."""
    return replace(Fleet((count,) * 24, 1, False, 1.0, load, maximum), **more)


def ours(**more: Any) -> PastChange:
    """A change of ours that left two of four instances."""
    return replace(plain.past(TYPE, from_type=TYPE, counts=(4, 2), days_ago=3), **more)


def stub(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, answer: Callable[..., Any]) -> None:
    """Have a rule of the module answer so, where it is told everything that it is to judge by."""

    def play(*given: Any) -> Any:
        assert None not in given, f"{name} was not told something"
        return answer(*given)

    monkeypatch.setattr(module, name, play)


def noted[V, A](seen: list[V], value: V, answer: A) -> A:
    """The answer of a stub that notes what it was asked."""
    seen.append(value)
    return answer
