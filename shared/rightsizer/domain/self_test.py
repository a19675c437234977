"""What a check of a deployment found: each permission and each part, tried once."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """How a check ended."""

    OK = "ok"
    FAILED = "failed"
    NOT_CHECKED = "not-checked"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried."""

    action: str
    """The IAM action, or the part of the deployment."""
    purpose: str
    """What the program needs it for."""
    outcome: Outcome
    detail: str = ""
    """What was found, or why it failed."""
    remedy: str = ""
    """What to do about it; empty where nothing has to be done."""

    @property
    def is_ok(self) -> bool:
        """False only for what failed: what was not checked says nothing against the deployment."""
        return self.outcome is not Outcome.FAILED


@dataclass(frozen=True, slots=True)
class Tested:
    """The checks of one function, or of what is around the functions."""

    part: str
    """The door, or ``stack`` for what belongs to none."""
    checks: Sequence[Check]

    def count(self, outcome: Outcome) -> int:
        """How many checks ended so."""
        return sum(check.outcome is outcome for check in self.checks)
