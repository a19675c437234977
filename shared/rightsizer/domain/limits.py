"""How far changes may go in this account: set by the operator, never derived."""

from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from decimal import Decimal

from rightsizer.domain.approvers import Approvers
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import ADDABLE, TYPE_AND_COUNT
from rightsizer.errors import InputError


@dataclass(frozen=True, slots=True)
class ChangeWindow:
    """When a change may start. An empty set of days means every day."""

    zone: str = "UTC"
    """IANA name of the time zone, such as ``Europe/Berlin``."""
    days: frozenset[int] = frozenset()
    """Monday is 0."""
    start: time = time(0, 0)
    end: time = time(0, 0)
    """Equal to `start`: the whole day. Earlier than `start`: past midnight."""

    def __post_init__(self) -> None:
        if any(not 0 <= day <= 6 for day in self.days):
            raise InputError(f"days of a change window run from 0 (Monday) to 6, got {sorted(self.days)}")


@dataclass(frozen=True, slots=True)
class ChangeLimits:
    """Bounds on changing. Defaults are the careful ones."""

    alarm_prefix: str = "rightsizer-"
    window: ChangeWindow = field(default_factory=ChangeWindow)
    cooldown: timedelta = timedelta(hours=24)
    """After the endpoint's last change of ours."""
    changes_per_day: int = 10
    usd_per_day: Decimal = Decimal(500)
    """Switch costs that one day may add up to, US dollars."""
    probation: timedelta = timedelta(hours=24)
    """1 h to 24 h of watching after the change."""
    proof_requests: int = 200
    """Served well, these many requests prove a change."""
    proof_limit: timedelta = timedelta(days=14)
    """After that an unproven change is closed as applied, unproven."""
    grace: timedelta = timedelta(days=7)
    """How long an idle endpoint is watched after its deletion was approved, before the command is handed over."""
    incident_alarms: tuple[str, ...] = ()
    """Nothing starts while one of these alarms of the user's is in ALARM."""
    bake_s: int = 600
    """Baking time of a deployment, seconds (AWS: 0 to 3600)."""
    rewire_alarms: bool = False
    """Whether customers' alarms that start step policies may be written (their actions only)."""
    dimensions: frozenset[OptionKind] = frozenset()
    """Dimensions beside type and count that are offered, and changed in automatic mode (`ADDABLE`)."""
    change_untagged: bool = False
    """Whether untagged endpoints may be changed after an approval."""
    dry_run: bool = False
    """The stack has no write permissions: no change starts, and one that runs makes no forward step."""

    approvers: Approvers = field(default_factory=Approvers)
    """Who may decide; a change that somebody else approved does not begin."""
    misread: tuple[str, ...] = ()
    """Settings that could not be understood, a sentence each: no change begins while there is one."""

    def __post_init__(self) -> None:
        if not timedelta(hours=1) <= self.probation <= timedelta(hours=24):
            raise InputError(f"probation must be between 1 h and 24 h, got {self.probation}")
        if self.grace < timedelta(days=1):
            raise InputError(f"grace must be at least 1 day, got {self.grace}")
        if not 0 <= self.bake_s <= 3600:
            raise InputError(f"bake_s must be between 0 and 3600 seconds, got {self.bake_s}")
        if self.changes_per_day < 0 or self.usd_per_day < 0:
            raise InputError("changes_per_day and usd_per_day must not be negative")
        if odd := sorted(self.dimensions - ADDABLE):
            known = ", ".join(sorted(ADDABLE))
            raise InputError(f"dimensions may name {known}; {odd[0].value} is never changed by itself")

    @property
    def by_itself(self) -> frozenset[OptionKind]:
        """Every dimension that may be changed without a person."""
        return TYPE_AND_COUNT | self.dimensions


@dataclass(frozen=True, slots=True)
class Switch:
    """The freeze switch as it stands."""

    frozen: bool = False
    hard: bool = False
    """Also the steps that restore stop."""
    by: str = ""
    at: datetime | None = None
