"""Second half of `dimensions.dimension.Dimension`: how a way to change an endpoint is carried out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Protocol

from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import CHANGEABLE, Option, OptionKind
from rightsizer.domain.reason import Code, Reason

if TYPE_CHECKING:
    from rightsizer.domain.change import Change
    from rightsizer.domain.hardware import Catalogue
    from rightsizer.domain.live_state import ConfigSight
    from rightsizer.domain.plan import Before, Plan
    from rightsizer.domain.policy import ChangeLimits
    from rightsizer.domain.preflight import PreflightInput


@dataclass(frozen=True, slots=True)
class Approved:
    """An approved change that has passed preflight, with all that a plan is made from."""

    change: Change
    inputs: PreflightInput
    config: ConfigSight
    before: Before
    catalogue: Catalogue
    limits: ChangeLimits


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """Everything that a change stores before its first write."""

    before: Before
    plan: Plan
    notes: tuple[str, ...] = ()

    def apply_to(self, change: Change, now: datetime) -> Change:
        """The change with this plan, noted in its journal."""
        from rightsizer.domain.change import Entry, JournalEvent

        note = Entry(now, JournalEvent.PLAN, "noted", "; ".join((self.plan.guardrail, *self.notes)))
        text, journal = self.plan.guardrail, (*change.journal, note)
        return replace(change, before=self.before, plan=self.plan, outcome=text, journal=journal)


class Planning(Protocol):
    """How options of a dimension are carried out."""

    applies_to: ClassVar[frozenset[EndpointKind]] = CHANGEABLE
    """Kinds of endpoint that an approval may change so; none where owners or callers have to do it."""
    deploys: ClassVar[tuple[OptionKind, ...]] = ()
    """Kinds of option that need a new endpoint configuration."""

    def is_deployed(self, option: Option) -> bool:
        """Whether the option needs a new endpoint configuration."""
        return option.kind in self.deploys

    def is_watched(self, kind: OptionKind) -> bool:
        """Whether roll-back alarms watch such a change; else only the requests that it serves are read."""
        return kind in self.deploys

    def kind_refusal(self, kind: EndpointKind) -> Reason | None:
        """Why no approval changes an endpoint of that kind so, though it may be offered; None where one does."""
        return None

    def with_live_counts(self, inputs: PreflightInput) -> PreflightInput:
        """Preflight inputs with live counts filled in where the option leaves them open."""
        return inputs

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """The steps of both directions, or every reason why there are none."""
        text = f"{approved.inputs.option.kind.value} is not carried out by this program"
        return (Reason(Code.NOT_IN_PLACE, text),)
