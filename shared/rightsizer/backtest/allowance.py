"""How much an account may change in a day, as the operator's limits have it."""

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from rightsizer.domain.daily_budget import room_for
from rightsizer.domain.limits import ChangeLimits
from rightsizer.domain.option import Option
from rightsizer.domain.reason import Code, Reason


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one day of the account may start, shared by its endpoints in the order in which they are evaluated."""

    limits: ChangeLimits
    started: dict[date, tuple[int, Decimal]] = field(default_factory=dict)

    def take(self, option: Option, at: datetime) -> Reason | None:
        """Count the change, or say why it waits. What restores an earlier fleet is never held back, and counts."""
        number, usd = self.started.get(at.date(), (0, Decimal(0)))
        if not room_for(option.switch_usd, self.limits, restores=option.restores).has(number, usd):
            if number >= self.limits.changes_per_day:
                sentence = f"{number} changes started that day, Limits allows {self.limits.changes_per_day}"
            else:
                sentence = f"the switches of that day would cost more than ${self.limits.usd_per_day}"
            return Reason(Code.BUDGET_SPENT, sentence)
        self.started[at.date()] = number + 1, usd + option.switch_usd
        return None
