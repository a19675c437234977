"""One inference component as AWS shows it, in the form in which UpdateInferenceComponent takes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rightsizer.domain.step import Step

SPREAD = "SPREAD"
"""What the way back names where a component showed no placement: AWS does not say what leaving it out means."""
OR_NONE = f"{SPREAD}, or none as before"
"""How the step of such a way back is called: one that never took another placement shows none, and is back."""


@dataclass(frozen=True, slots=True)
class ComponentSight:
    """DescribeInferenceComponent, now."""

    name: str
    arn: str
    endpoint: str
    status: str
    modified_at: datetime
    desired: int
    """Copies that are asked for."""
    specifications: tuple[Mapping[str, Any], ...]
    """As the request takes them: one, or one for each instance type."""
    several: bool = False
    """Whether it was made with Specifications, one for each instance type."""
    images: tuple[tuple[str, str], ...] = ()
    """(as specified, as resolved) of each container."""
    failure_reason: str = ""
    unknown_fields: tuple[str, ...] = ()
    """Paths that this program does not know: such a specification is never sent back."""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def moving(self) -> bool:
        """Whether it is being changed, so that AWS refuses another change."""
        return self.status not in ("InService", "Failed")

    @property
    def strategies(self) -> frozenset[str]:
        """How its copies are placed; empty text where AWS shows nothing."""
        return frozenset(
            str((s.get("SchedulingConfig") or {}).get("PlacementStrategy", "")) for s in self.specifications
        )

    @property
    def base(self) -> str:
        """The component that it is an adapter of; empty for one with resources of its own."""
        return next(
            (str(s["BaseInferenceComponentName"]) for s in self.specifications if s.get("BaseInferenceComponentName")),
            "",
        )

    def placed(self, strategy: str) -> dict[str, Any]:
        """Its whole specification and copies as a request, with another placement and nothing else."""
        rows = [
            {**s, "SchedulingConfig": {**(s.get("SchedulingConfig") or {}), "PlacementStrategy": strategy}}
            for s in self.specifications
        ]
        whole: dict[str, Any] = {"Specifications": rows} if self.several else {"Specification": rows[0]}
        return {**whole, "RuntimeConfig": {"CopyCount": self.desired}}


def placement_of(step: Step) -> frozenset[str]:
    """What AWS may show once the step is done: the strategy that it asks for, or none where none was there before."""
    return frozenset({strategy_of(step.params), *([""] if step.subject.endswith(OR_NONE) else [])})


def strategy_of(params: Mapping[str, Any]) -> str:
    """The placement that an UpdateInferenceComponent request asks for."""
    rows = params.get("Specifications") or [params.get("Specification") or {}]
    return str((rows[0].get("SchedulingConfig") or {}).get("PlacementStrategy", ""))
