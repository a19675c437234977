"""Ids of proposals and changes. A proposal asked again must get its old id, and an approval its old change."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rightsizer.domain.schedule import DayCounts
from tests.frozen.library import (
    Decision,
    OptionKind,
    Proposal,
    ProposalState,
    ScaleIn,
    Target,
    VariantTarget,
    change_id_of,
    proposal_id,
    samples,
)

BASE = Target("ml.g6.xlarge", 2)
TARGETS = {
    "a type and a count": BASE,
    "another count": replace(BASE, instance_count=3),
    "another type": replace(BASE, instance_type="ml.g6e.12xlarge"),
    "no instance": replace(BASE, instance_count=0),
    "counts by the hour": replace(BASE, hourly_counts=(1,) * 8 + (4,) * 10 + (1,) * 6),
    "a minimum": replace(BASE, minimum=1),
    "bounds": replace(BASE, minimum=1, maximum=6),
    "a minimum of zero": replace(BASE, minimum=0, maximum=2),
    "routing": replace(BASE, routing="LEAST_OUTSTANDING_REQUESTS"),
    "pools": replace(BASE, pools=("ml.g6.xlarge", "ml.g5.xlarge")),
    "a target value": replace(BASE, target_value=70.0),
    "a fraction as target value": replace(BASE, target_value=0.1 + 0.2),
    "a share of each instance": replace(BASE, per_instance=1.5),
    "copies": replace(BASE, copies=(("chat", 2), ("search", 1))),
    "idle minutes": replace(BASE, idle_minutes=30),
    "a scale-in policy": replace(BASE, scale_in=ScaleIn("AllTraffic", "CONSOLIDATION")),
    "a scale-in policy with limits": replace(BASE, scale_in=ScaleIn("AllTraffic", "IDLE_RELEASE", 3, 30)),
    "a placement": replace(BASE, placement=(("chat", "SPREAD"),)),
    "two placements": replace(BASE, placement=(("chat", "BINPACK"), ("search", "BINPACK"))),
    "a policy and a placement": replace(
        BASE, scale_in=ScaleIn("AllTraffic", "CONSOLIDATION"), placement=(("chat", "SPREAD"),)
    ),
    "added target tracking": replace(BASE, minimum=1, maximum=4, target_value=84.0, metric="Invocations"),
    "a lower minimum of copies": replace(BASE, least_copies=(("tags", 1),)),
    "two variants": replace(BASE, others=(VariantTarget("B", "ml.g5.xlarge", 1, Decimal("1.408")),)),
    "counts of the week": replace(
        BASE,
        hourly_counts=(4,) * 24,
        day_counts=(DayCounts((0, 1, 2, 3, 4), (4,) * 24), DayCounts((5, 6), (1,) * 24)),
    ),
    "all at once": Target(
        "ml.p5.48xlarge", 9, (2,) * 24, 1, 9, "RANDOM", ("ml.p5.48xlarge",), 55.5, 0.25, (("chat", 1),), 15
    ),
}
"""Targets in which each field differs at least once."""


def ids() -> Iterator[tuple[str, Any]]:
    """A proposal's id for each target and for each kind of option, and the ids of the changes of one proposal."""
    found = samples.recommendation()
    for name, target in TARGETS.items():
        yield f"target: {name}", proposal_id(found, replace(samples.option(), target=target))
    for kind in OptionKind:
        yield f"kind: {kind}", proposal_id(found, replace(samples.option(), kind=kind))
    moved = replace(found, fingerprint="chat-config-2|2026-11-02T09:00:00+00:00|AllTraffic=2")
    yield "another configuration", proposal_id(moved, samples.option())
    first = _approved(7)
    yield "change: of an approval", change_id_of(first)
    yield "change: of the same approval, later", change_id_of(_approved(9))
    yield "change: of an approval after a refused change", change_id_of(first, again=True)
    yield "change: of a third approval", change_id_of(_approved(11), again=True)


def _approved(hour: int) -> Proposal:
    decision = Decision(ProposalState.APPROVED, "slack:U0ADA", datetime(2026, 11, 2, hour, 30, tzinfo=UTC))
    return samples.proposal(state=ProposalState.APPROVED, decision=decision)
