"""How events travel: at once and once, or late, twice and out of order, always the same way for the same seed.

EventBridge delivers at least once and in no promised order (user guide, eb-event-delivery); so does SQS.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(slots=True)
class Delivery:
    """The manners of the event bus. `Delivery()` is kind; `Delivery(seed=7, latest=..., copies=5)` is not."""

    seed: int = 0
    latest: timedelta = timedelta(0)
    """Each copy comes up to this much later; different delays change the order."""
    copies: int = 1
    """How often each event is delivered, at most; each number from one up is as likely."""
    exactly: bool = False
    """Deliver `copies` times, every time."""
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def arrivals(self, sent: datetime) -> Iterator[datetime]:
        """When the copies of an event that was sent at `sent` arrive."""
        copies = self.copies if self.exactly else self._random.randint(1, self.copies)
        for _ in range(copies):
            yield sent + timedelta(seconds=round(self._random.uniform(0, self.latest.total_seconds())))
