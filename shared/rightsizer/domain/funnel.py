"""The savings of one window from found to proven: each endpoint's saving stands at exactly one stage."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class Stage(StrEnum):
    """Where a saving stands at the end of a window."""

    NOT_ASKED = "not-asked"
    WAITING = "waiting"
    """Proposed; nobody has answered."""
    DECLINED = "declined"
    """Rejected or snoozed."""
    UNDER_WAY = "under-way"
    """Approved, and not in force yet."""
    WENT_BACK = "went-back"
    """Approved, and rolled back or handed over: it saves nothing."""
    APPLIED = "applied"
    """In force, and not proven."""
    PROVEN = "proven"


IDENTIFIED = frozenset(Stage)
PROPOSED = IDENTIFIED - {Stage.NOT_ASKED}
APPROVED = PROPOSED - {Stage.WAITING, Stage.DECLINED}
IN_FORCE = frozenset({Stage.APPLIED, Stage.PROVEN})
OPEN = frozenset({Stage.NOT_ASKED, Stage.WAITING, Stage.UNDER_WAY})
"""What could still be saved: not what was declined, went back, or is saved already."""


@dataclass(frozen=True, slots=True)
class Saving:
    """One saving of the funnel."""

    stage: Stage
    usd_per_month: Decimal
    """Estimated, whole cents; never negative. Rounded here and nowhere else."""
    endpoint: str
    owner: str
    proposal_id: str = ""
    """Whose judgement promises it; empty where it was not asked, and the endpoint's latest judgement does."""
