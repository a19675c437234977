"""A finished plan, before anything is written."""

from dataclasses import dataclass

from rightsizer.model.plan import Before, Plan


@dataclass(frozen=True, slots=True)
class Planned:
    """What a change stores before its first write."""

    before: Before
    plan: Plan
    notes: tuple[str, ...] = ()
