"""The thresholds of a decision, and how far changes may go in this account and on one day.

The policy holds every default in one frozen value. The operator sets the limits; they are never derived.
"""

from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from decimal import Decimal

from rightsizer.domain.approvers import Approvers
from rightsizer.domain.office_hours import HoursLimits
from rightsizer.domain.option import OptionKind, Risk
from rightsizer.errors import InputError

TYPE_AND_COUNT = frozenset({OptionKind.INSTANCE_TYPE, OptionKind.INSTANCE_COUNT, OptionKind.TYPE_AND_COUNT})
"""Kinds of option that automatic mode always changes; an operator may add those of `ADDABLE`."""
ADDABLE = frozenset({OptionKind.AUTOSCALING, OptionKind.ROUTING, OptionKind.SCHEDULE})
"""Dimensions that an operator may add: the journal carries them out and takes them back."""
UNLIMITED = 1_000_000
TICK = timedelta(minutes=5)
"""How often the apply function looks at what it carries out, without an event (its schedule in template.yaml)."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds of the decision. Shares are 0..1; the reasons for each default are in docs/decision-model.md."""

    lookback_days: int = 14
    by_itself: frozenset[OptionKind] = TYPE_AND_COUNT | ADDABLE
    """Dimensions that are offered in place, and may be applied without a person; the others are proposed."""
    several_at_once: bool = False
    """Whether one change may move several of them, and add autoscaling where there is none. The journal moves one."""
    act_without_gpu_metrics: bool = False
    """Whether latency and host metrics are enough to judge an endpoint that publishes no GPU utilisation."""
    tests: bool = True
    """Whether shadow tests may be planned."""
    test_tells: float = 0.5
    """What a test has to tell, 0..1, for its type to wait for it: sparse requests rarely come while it runs."""
    untested_chance: float = 0.9
    """Where none may run or would tell: the chance of being fast enough from which a type is taken untested.

    Its change is the test: canary and roll-back alarms bring the old type back. The middle of what is likely sizes the
    fleet. 1: only what is certain. docs/quality-tried.md has what smaller chances save and cost.
    """
    untested_requests: int = 200
    """Requests that must have been seen before."""
    # evidence
    valid_share: float = 0.8
    """Periods with utilisation datapoints that a window needs."""
    mask_minutes: int = 30
    """Minutes around a deployment that do not count."""
    requests_needed: int = 200
    """Requests before GPU seconds per request are believed, and of a day's worth of evidence for automatic mode."""
    # load
    batching_concurrency: float = 1.5
    """Mean concurrency per GPU above which latency is taken as wholly GPU-bound."""
    load_percentile: float = 0.98
    load_small_sample: float = 0.2
    """The planned load is raised by this / sqrt(days)."""
    days_for_hours: int = 3
    """Days before an hour-of-day profile is believed."""
    growth_days: int = 30
    # memory
    prealloc_ratio: float = 1.03
    prealloc_share: float = 0.8
    static_ratio: float = 1.1
    memory_margin: float = 0.03
    memory_margin_small_sample: float = 0.12
    memory_bump_after_kill: float = 0.2
    memory_room_smaller: float = 0.0
    """Room over the largest memory seen on a card smaller than today's, for new versions of the model; as a share.

    Nothing beyond the margin of the need by default: an owner who deploys a version names its instance type with it.
    """
    host_memory_margin: float = 1.15
    vcpu_margin: float = 1.2
    # speed
    slowdown_bound: float = 1.25
    """Bound of slowdown over phi before anything was learnt: 98.9 % of 1,131 measured moves stayed below."""
    slowdown_mid: float = 0.71
    slowdown_hopeful: float = 0.33
    slowdown_faster: float = 1.05
    """Bound for a GPU that is faster in both FLOPS and bandwidth."""
    measured_error: float = 0.08
    served_error: float = 0.03
    """The same for a ratio that production requests on the type showed."""
    other_type_spread: float = 0.25
    """Spread given to a ratio learnt on another type of the same endpoint."""
    shrinkage: int = 20
    """Outcomes at which the account's own slowdowns weigh as much as the prior."""
    # latency
    rho_many: float = 0.85
    rho_one: float = 0.6
    objective_factor: float = 1.1
    """Without a declared objective, *as today*: max(this x p95, p99) of the look-back."""
    objective_most: float = 1.25
    """Upper end of *as today*, x p95: where few requests are very slow, the p99 says little about the others."""
    # candidates
    count_factor: int = 2
    count_spare: int = 2
    """Instances beyond `count_factor` times today's, so that one large one may become four small ones."""
    excess_share: float = 0.003
    """Requests over the objective, beyond those of today, that a choice may cause in the replay."""
    late_budget: float = 0.002
    """Requests over the objective, beyond the usual, that our changes may have caused in all."""
    late_a_week: float = 2.0
    """Requests a week that may be late behind a declared objective where these shares of them are fewer."""
    late_most: float = 0.05
    """Share of the requests that are late in all, up to which they do: an objective for the p95 lets as many pass."""
    replay_requests: int = 5000
    """Requests that one run of the replay serves at most."""
    cold_share: float = 0.005
    """Requests that may meet a cold start when an endpoint sleeps."""
    async_from_s: float = 10.0
    cpu_class_share: float = 0.01
    """GPU utilisation maximum below which no GPU is needed."""
    nap_days: int = 14
    """Days of history before sleeping is dared where nobody said that cold starts are fine."""
    idle_days: int = 14
    stopped_hours: float = 72.0
    """Silence after which the traffic counts as stopped, when no gap before was a quarter as long."""
    # objective and risk
    risk_steps: tuple[float, float, float, float] = (0.005, 0.02, 0.05, 0.20)
    provision_minutes: float = 30.0
    """Overlap of both fleets during a change of type: provisioning, baking, draining."""
    test_chance: float = 0.30
    test_value: float = 5.0
    tests_per_month: int = 4
    """Of one endpoint."""
    test_budget_share: float = 0.03
    """What all tests of a month may cost, as a share of what the account's GPU endpoints cost a month."""
    test_hours: float = 2.0
    test_hours_most: float = 24.0
    test_requests: int = 20
    """Requests that a test should see; sparse traffic is tested for longer, a day at most."""
    # gate
    minimum_saving_share: float = 0.10
    minimum_saving_usd: Decimal = Decimal(50)
    confidence_propose: float = 1.0
    confidence_apply: float = 3.0
    confidence_smaller: float = 7.0
    risk_propose: int = 3
    """Performance risk above which nobody is asked."""
    risk_apply: int = 1
    payback_days: float = 7.0
    cooldown_hours: float = 24.0
    cooldown_type_hours: float = 72.0
    halve_at_most: bool = True
    capacity_days: float = 7.0
    """A type that had no capacity so lately comes after those that may have some."""
    blacklist_days: float = 30.0
    """Doubled with every further failure of the same type."""
    blacklist_demand: float = 0.25
    """So much less demand than at the failure lifts a blacklist entry."""
    failed_room: float = 0.2
    """How much larger than a fleet that failed under such a load the next one has to be, as a share."""
    lone_instance: Risk = Risk.MEDIUM
    """Availability risk of one instance in place of two or more; `domain.environment` lowers it."""
    down_with_growth: float = 0.2
    """A smaller configuration must stay feasible with this much more load."""
    grown_share: float = 0.01
    """Requests over the objective, beyond those of today, that it may have then."""
    error_share: float = 0.005

    def stated_chance(self, risk: int) -> tuple[float, float]:
        """Range of the chance of harm that a performance risk of 0 to 4 states; 1 is the highest end."""
        steps = (0.0, *self.risk_steps, 1.0)
        return steps[Risk(risk)], steps[Risk(risk) + 1]

    def late_allowed(self, share: float, declared: bool, baseline: float, requests: float, days: int) -> float:
        """The share of `requests` on so many `days` that may be late beyond the `baseline` share.

        `share`, but behind a declared objective no less than `late_a_week` requests: one in two hundred is half a per
        cent, and chance. With the usual ones that makes at most `late_most` of them late.
        """
        if not declared or requests <= 0:
            return share
        return max(share, min(self.late_a_week * days / 7 / requests, self.late_most - baseline))


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

    @property
    def length(self) -> timedelta:
        """Time on a clock from its start to its end; a day where they are equal."""
        seconds = [60 * (60 * one.hour + one.minute) + one.second for one in (self.start, self.end)]
        return timedelta(seconds=(seconds[1] - seconds[0]) % 86_400 or 86_400)


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
    dimensions: frozenset[OptionKind] = ADDABLE
    """Dimensions beside type and count that are offered, and changed in automatic mode (`ADDABLE`)."""
    change_untagged: bool = False
    """Whether untagged endpoints may be changed after an approval."""
    dry_run: bool = False
    """The stack has no write permissions: no change starts, and one that runs makes no forward step."""

    hours: HoursLimits = field(default_factory=HoursLimits)
    """Bounds of the office hours: holidays, the grace after requests, wakes."""
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


@dataclass(frozen=True, slots=True)
class Room:
    """Changes and switch cost that may have started earlier on a day for another change to start.

    The journal asks this by a conditional write, so it is a pair of bounds and no function.
    """

    changes: int
    """Fewer changes than these."""
    usd: Decimal
    """Switch costs of at most this, US dollars; below zero where the change alone is dearer than the budget."""

    def has(self, changes: int, usd: Decimal) -> bool:
        """Whether there is room after so many changes, with so much switch cost, on that day."""
        return self.changes > 0 and (changes == 0 or (changes < self.changes and usd <= self.usd))


@dataclass(frozen=True, slots=True)
class BudgetShare:
    """The part of one day's budget that a change takes when it begins."""

    day: str
    """The UTC day, such as ``2026-11-02``."""
    usd: Decimal
    """What its switch costs, US dollars."""
    room: Room
    """What the day needs to have left."""
    limit: str
    """The whole budget of a day, in words."""
