"""What a change stores before its first write: what ran, and the steps of both directions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.peak import Peak
from rightsizer.domain.step import Step


@dataclass(frozen=True, slots=True)
class VariantCount:
    """What one variant ran, or shall run."""

    name: str
    instance_type: str
    count: int
    weight: float


@dataclass(frozen=True, slots=True)
class Before:
    """Everything that is needed to go back; stored before the first write."""

    config_name: str
    modified_at: datetime
    failure_reason: str
    variants: tuple[VariantCount, ...]
    scaling: tuple[ScalableTarget, ...] = ()
    alarms: tuple[Mapping[str, Any], ...] = ()
    """The customer's alarms whose actions point at a step policy, in the API's own form."""
    copies: Mapping[str, int] = field(default_factory=dict)
    """Copies of each inference component."""
    tags: Mapping[str, str] = field(default_factory=dict)
    routing: str = ""
    """How requests were routed to the instances of the changed variant; empty where that was not recorded."""


@dataclass(frozen=True, slots=True)
class Met:
    """Autoscaling as a return found it, before it took it away: what a return that fails gives back."""

    at: datetime
    scaling: tuple[ScalableTarget, ...] = ()
    alarms: tuple[Mapping[str, Any], ...] = ()
    """Alarms whose actions point at a step policy then, in the API's own form."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of both directions, made once from what was seen at the start.

    Each list is a goal, not a script: a step that the account already shows is skipped, so any part may be run again.
    """

    prepare: tuple[Step, ...] = ()
    """Things that serve nobody: the new configuration, the roll-back alarms."""
    clear: tuple[Step, ...] = ()
    """Deregistering of scalable targets, which would refuse the update."""
    turn: Step | None = None
    """The one write that changes what serves; None when only autoscaling changes."""
    settle: tuple[Step, ...] = ()
    """Autoscaling on the new capacity."""
    back: Step | None = None
    """The write that brings the old configuration back."""
    restore: tuple[Step, ...] = ()
    """Autoscaling as it was."""
    tidy: tuple[Step, ...] = ()
    """Removal of what we made for the time of the change."""
    new_config: str = ""
    """Empty when no configuration is created."""
    back_config: str = ""
    """What the way back deploys: the old configuration, or a clone of it with the live counts where those differ."""
    after: tuple[VariantCount, ...] = ()
    """What each variant shall run."""
    alarms: tuple[str, ...] = ()
    """Names of the roll-back alarms."""
    deployment_limit_s: int = 28_800
    """The longest that the deployment may take by its own configuration, seconds."""
    kind: Literal["change", "shadow-test", "delete"] = "change"
    """``delete`` writes nothing to AWS: it waits, watches, and hands over what its owner does."""
    guardrail: str = ""
    """The deployment guardrail in a sentence."""
    shadow: str = ""
    """Name of the shadow variant of a test."""
    test_s: int = 0
    """Seconds that a shadow test lasts, or that an endpoint marked for deletion is watched."""
    peak: Peak | None = None
    """The busiest hour that a shadow test is to see; None where none stands out."""
    exchange: tuple[int, int] = (0, 0)
    """(old, new): so many instances of the changed variant serve the same, as decided; zeros where no type changes."""
    grown: tuple[VariantCount, ...] = ()
    """What the way back runs where the fleet grew since the plan; empty: as stored."""
    first_back: Step | None = None
    """The way back of the plan's hour, where another one was chosen."""
    restore_file: tuple[str, ...] = ()
    """Lines of a shell script that makes a deleted endpoint again."""

    @property
    def keeps_counts(self) -> bool:
        """Whether the deployment leaves counts and weights as they are live (RetainAllVariantProperties)."""
        return self.turn is not None and bool(self.turn.params.get("RetainAllVariantProperties"))
