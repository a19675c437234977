"""A finished plan, before anything is written."""

from dataclasses import dataclass, replace
from datetime import datetime

from rightsizer.domain.change import Change, Entry
from rightsizer.domain.plan import Before, Plan


@dataclass(frozen=True, slots=True)
class Planned:
    """What a change stores before its first write."""

    before: Before
    plan: Plan
    notes: tuple[str, ...] = ()

    def on(self, change: Change, now: datetime) -> Change:
        """The change with this plan, noted in its journal."""
        note = Entry(now, "plan", "noted", "; ".join((self.plan.guardrail, *self.notes)))
        said, journal = self.plan.guardrail, (*change.journal, note)
        return replace(change, before=self.before, plan=self.plan, outcome=said, journal=journal)
