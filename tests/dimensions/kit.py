"""Endpoints whose owners tolerate much, and what is said, offered and planned of one dimension."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.asynchronous import ASYNC_TAG
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.history import History
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.plan import Before, VariantCount
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import MetricWindow
from tests import samples
from tests.changes.test_preflight import NOW, preflight_input
from tests.recommender import kit
from tests.recommender.kit import judge

TYPE = "ml.g5.xlarge"
BODY = {"EndpointConfigArn": "arn:c", "ProductionVariants": [{"VariantName": "AllTraffic", "InstanceType": TYPE}]}


def said(one: Dimension, target: Target | None = None, **changes: Any) -> tuple[str, str]:
    """What an option of the dimension does, and what brings back what was there."""
    option = samples.option(**{"kind": one.kinds[0], "target": target or Target(TYPE, 2)} | changes)
    return one.describe(option), one.undo(option)


def planned(
    one: Dimension, target: Target, count: int = 3, kind: OptionKind | None = None, **seen: Any
) -> PlannedChange | Code:
    """The plan for a fleet of `count` instances, or the code of the first reason why there is none."""
    option = samples.option(kind=kind or one.kinds[0], target=target)
    change = samples.change(NOW, option=option, variant="AllTraffic")
    config = ConfigSight("old", BODY, NOW)
    before = Before("old", NOW, "", (VariantCount(change.variant, TYPE, count, 1.0),))
    given = Approved(change, preflight_input(option=option, **seen), config, before, kit.catalogue(), ChangeLimits())
    found = one.plan(given)
    return found if isinstance(found, PlannedChange) else found[0].code


def bursts(**usage: float) -> MetricWindow:
    """Two hours of long requests a day."""
    made = kit.steady(**{"per_slot": 4.0, "latency_s": 15.0, "gpu": 20.0, "memory": 90.0} | usage)
    quiet = ("Invocations", "Sum"), ("GPUUtilization", "Average")
    for key in quiet:
        value = made[key]
        assert isinstance(value, float)
        made[key] = lambda i, value=value: value if 108 <= i % 288 < 132 else 0.0  # type: ignore[misc]
    return kit.window(made)


def judged(
    endpoint: Endpoint, window: MetricWindow, policy: Policy | None = None, quotas: Mapping[str, int] | None = None
) -> Recommendation:
    types = kit.catalogue(kit.OTHERS)
    return judge(endpoint, [window], kit.prices(), types, quotas or {}, History(), policy or Policy(), kit.NOW)


def tolerant(p95_s: float = 22.0) -> Endpoint:
    return replace(kit.endpoint(p95_s=p95_s), tags={ASYNC_TAG: "true"})


def only(found: Recommendation, kind: OptionKind) -> Option:
    return next(option for option in found.options if option.kind is kind)


def why(found: Recommendation, kind: OptionKind, of: str = "") -> str:
    outs = [out for out in found.excluded if out.dimension is kind and of in out.instance_type]
    return outs[0].reason.sentence
