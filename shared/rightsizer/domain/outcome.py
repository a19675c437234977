"""What became of a change, what it is worth in the ledger, and what changes promised against what they did."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from rightsizer.domain.checks import aware, finite, money, not_empty
from rightsizer.domain.history import PastEnd
from rightsizer.domain.price import CENT


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One line of the savings ledger."""

    id: str
    endpoint: str
    change_id: str
    owner: str
    at: datetime
    kind: Literal["estimated", "realised", "reconciled", "switch-cost", "growth-cost"]
    """`growth-cost`: what growth added, above zero; it is in no saving."""
    usd: Decimal
    """US dollars: per month for `estimated`, of the hours covered for the others."""
    hours: float
    """Hours that the entry covers; 730 for `estimated`."""
    proven: bool
    note: str

    def __post_init__(self) -> None:
        not_empty("LedgerEntry.id", self.id)
        aware("LedgerEntry.at", self.at)
        money("LedgerEntry.usd", self.usd)

    @property
    def saved_usd(self) -> Decimal:
        """Part of the money saved, whole cents: below zero for a switch, 0 for a promise and for growth."""
        if self.kind == "realised":
            return self.usd.quantize(CENT)
        return -abs(self.usd).quantize(CENT) if self.kind == "switch-cost" else Decimal(0)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened and is worth telling: an interruption, a roll-back, a refusal."""

    key: str
    """Key of the occurrence, one and the same however often it is delivered."""
    at: datetime
    kind: str
    subject: str
    """Endpoint, instance or group."""
    text: str

    def __post_init__(self) -> None:
        not_empty("Occurrence.key", self.key)
        aware("Occurrence.at", self.at)


@dataclass(frozen=True, slots=True)
class UnreadRow:
    """A row of the table that could not be read: it is in no figure."""

    key: str
    """Its keys ``pk`` and ``sk``, with a space between."""
    cause: str

    def __post_init__(self) -> None:
        not_empty("UnreadRow.key", self.key)


@dataclass(frozen=True, slots=True)
class SpeedOutcome:
    """One change or shadow test of which the slowdown was measured: GPU seconds of a request, new type over old."""

    endpoint: str
    change_id: str
    at: datetime
    from_type: str
    to_type: str
    framework: str
    """Empty where it is not known."""
    ended: PastEnd
    """Any end but RUNNING."""
    promised: float | None
    """The most likely slowdown, as the decision took it to be; None where none was promised."""
    bound: float | None
    """Largest slowdown that was promised; None where that was not recorded."""
    measured: float
    ratio: float | None
    """Measured over promised: above 1 it was slower than promised."""
    beyond: bool | None
    """Whether it was slower than the bound; None without one."""
    latency_ratio: float | None
    """Mean latency on the new type over that on the old one; None where it was not measured."""

    def __post_init__(self) -> None:
        not_empty("SpeedOutcome.endpoint", self.endpoint)
        finite("SpeedOutcome.measured", self.measured)
        if self.ratio is not None:
            finite("SpeedOutcome.ratio", self.ratio)


@dataclass(frozen=True, slots=True)
class SpeedSummary:
    """Promised and measured slowdowns of a group: an endpoint, a framework, or all."""

    name: str
    """Empty for all, and for endpoints of unknown framework."""
    n: int
    """Outcomes with a promise."""
    bias: float | None
    """Geometric mean of measured over promised; None without an outcome."""
    spread: float | None
    """Geometric standard deviation of that, a factor of 1 or more; None below two outcomes."""
    bounded: int
    """Outcomes with a recorded bound."""
    beyond: int
    """Outcomes that were slower than their bound."""


@dataclass(frozen=True, slots=True)
class RiskLevel:
    """Outcomes of the changes that were stated with one performance risk."""

    risk: int
    """0 to 4."""
    chance_from: float
    chance: float
    """The chance of harm that it states: from, and at most; 0..1."""
    n: int
    """Changes that were proven, or fell short; at least one."""
    fell_short: int
    """Changes that went back for how they served, should have and could not, or were undone by a later one."""
    low: float
    high: float
    """Between these, 0..1, the chance lies at 95 % confidence (Clopper and Pearson, 1934)."""
    missing: int = 0
    """Outcomes like these that are missing until that range is narrow enough to say anything of what was stated."""

    @property
    def share(self) -> float:
        """The share that fell short, 0..1."""
        return self.fell_short / self.n


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """How far promises were kept by what ended between two days. Where nothing did there is no figure, and no zero."""

    since: datetime
    until: datetime
    """What ended at this time or later is not in it."""
    ended: int
    """Changes and shadow tests that ended."""
    outcomes: tuple[SpeedOutcome, ...]
    """Ended changes and tests with a measured slowdown, newest first."""
    overall: SpeedSummary
    frameworks: tuple[SpeedSummary, ...]
    """Frameworks with promised outcomes, the one with the most first."""
    endpoints: tuple[SpeedSummary, ...]
    changes: int
    """Changes that ended, without the tests."""
    levels: tuple[RiskLevel, ...]
    """Ascending; only those of which a change tells."""
    brier: float | None
    """Mean of (stated chance at most - fell short)^2 over the changes that tell: 0 is best. None where none tells."""
    brier_without: float | None
    """Score of a forecast that calls every change harmless."""

    def __post_init__(self) -> None:
        aware("TrackRecord.since", self.since)
        aware("TrackRecord.until", self.until)

    @property
    def rated_changes(self) -> int:
        """Changes that tell whether the stated risk was right."""
        return sum(level.n for level in self.levels)

    @property
    def short_changes(self) -> int:
        """Number of rated changes that fell short."""
        return sum(level.fell_short for level in self.levels)
