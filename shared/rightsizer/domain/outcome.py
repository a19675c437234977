"""What became of a change, and what it is worth in the ledger."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from rightsizer.domain.checks import aware, money, named


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One line of the savings ledger."""

    id: str
    endpoint: str
    change_id: str
    owner: str
    at: datetime
    kind: Literal["estimated", "realised", "reconciled", "switch-cost"]
    usd: Decimal
    """US dollars: per month for `estimated`, of the hours covered for the others."""
    hours: float
    """Hours that the entry covers; 730 for `estimated`."""
    proven: bool
    note: str

    def __post_init__(self) -> None:
        named("LedgerEntry.id", self.id)
        aware("LedgerEntry.at", self.at)
        money("LedgerEntry.usd", self.usd)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened and is worth telling: an interruption, a roll-back, a refusal."""

    key: str
    """The same occurrence has the same key, however often it is delivered."""
    at: datetime
    kind: str
    subject: str
    """Endpoint, instance or group."""
    text: str

    def __post_init__(self) -> None:
        named("Occurrence.key", self.key)
        aware("Occurrence.at", self.at)


@dataclass(frozen=True, slots=True)
class UnreadRow:
    """A row of the table that could not be read: it is in no figure."""

    key: str
    """Its keys ``pk`` and ``sk``, with a space between."""
    cause: str

    def __post_init__(self) -> None:
        named("UnreadRow.key", self.key)
