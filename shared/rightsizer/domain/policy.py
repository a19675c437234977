"""The thresholds of a decision, and how far changes may go in this account and on one day.

The policy holds every default in one frozen value. The operator sets the limits; they are never derived.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from decimal import Decimal

from rightsizer.domain.approvers import Approvers
from rightsizer.domain.office_hours import HoursLimits
from rightsizer.domain.option import OptionKind, Risk
from rightsizer.errors import InputError

TYPE_AND_COUNT = frozenset({OptionKind.INSTANCE_TYPE, OptionKind.INSTANCE_COUNT, OptionKind.TYPE_AND_COUNT})
"""Kinds of option that automatic mode always changes; those of `ADDABLE` too, unless an operator closes them."""
ADDABLE = frozenset({OptionKind.AUTOSCALING, OptionKind.ROUTING, OptionKind.SCHEDULE})
"""Dimensions that an operator may close: the journal carries them out and takes them back."""
COMES_AND_GOES = frozenset({OptionKind.SCHEDULE, OptionKind.AUTOSCALING, OptionKind.SCALE_TO_ZERO})
"""Dimensions that give instances back for some hours and need them again; AWS keeps no capacity for them."""
UNLIMITED = 1_000_000
TICK = timedelta(minutes=5)
"""How often the apply function looks at what it carries out, without an event (its schedule in template.yaml)."""


SETTINGS = frozenset({"lookback_days", "minimum_saving_usd", "by_itself", "tests_per_month"})
"""Fields of the policy that an operator sets (docs/limits.md)."""
BY_ENVIRONMENT = frozenset({"lone_instance", "down_with_growth", "risk_apply", "confidence_smaller"})
"""Fields that the tag `environment` of an endpoint changes (`domain.environment`)."""
BY_QUESTION = frozenset({"excess_share", "grown_share", "late_budget", "cooldown_hours", "cooldown_type_hours"})
"""Fields that a rule replaces for one question: what a declared objective itself allows; growth, which never waits."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds of the decision, each with its reason. Shares are 0..1.

    `SETTINGS` are the operator's. All others are constants: nothing of the product replaces them but
    `BY_ENVIRONMENT` and `BY_QUESTION`. *Measured* figures are of 1,131 pairs of GPUs and of replayed public traces.
    """

    lookback_days: int = 14
    """A setting. Two weeks: each day of the week twice, and what Compute Optimizer looks at."""
    by_itself: frozenset[OptionKind] = TYPE_AND_COUNT | ADDABLE
    """Dimensions that may be applied without a person; the setting `dimensions` closes some. All can be taken back."""
    # evidence
    valid_share: float = 0.8
    """Periods with utilisation datapoints that a window needs: a lost fifth can hide an hour of peak on each day, not
    the peak of every day."""
    mask_minutes: int = 30
    """Minutes around a deployment that do not count: both fleets run, and new instances are warming up."""
    requests_needed: int = 200
    """Requests before GPU seconds per request are believed, and of a day's worth of evidence for automatic mode: ten
    of them are above the p95, which is then known to about a third."""
    # load
    batching_concurrency: float = 1.5
    """Mean concurrency per GPU above which latency is taken as wholly GPU-bound: servers then batch requests."""
    load_percentile: float = 0.98
    """Of the five-minute rates of an hour. Measured: the maximum gives saving away, the p95 harms more requests."""
    load_small_sample: float = 0.2
    """The planned load is raised by this / sqrt(days): after one day as much as Compute Optimizer's headroom."""
    days_for_hours: int = 3
    """Days before an hour-of-day profile is believed: two can agree by chance."""
    growth_days: int = 30
    """Days of a memory leak that a card has to hold: a deployment ends it, and a month is long without one."""
    # memory
    prealloc_ratio: float = 1.03
    """p99 over p5 below which memory is flat, and with `prealloc_share` taken by a server, not by a model."""
    prealloc_share: float = 0.8
    """Serving frameworks take 80 to 90 % of a card by default (vLLM: gpu_memory_utilization 0.9)."""
    static_ratio: float = 1.1
    """p99 over p5 below which the need is that of a model without growth."""
    memory_margin: float = 0.03
    """Over the largest memory seen, and the next one / sqrt(days): 15 % after a day, as Kubernetes' VPA and KRR."""
    memory_margin_small_sample: float = 0.12
    """The part that shrinks with the days."""
    memory_bump_after_kill: float = 0.2
    """More room after an out-of-memory kill, as Kubernetes' VPA adds."""
    host_memory_margin: float = 1.15
    """Over the largest host memory seen: the margin of VPA and KRR."""
    vcpu_margin: float = 1.2
    """Over the p99 of the CPU: Compute Optimizer's default headroom."""
    # speed
    slowdown_bound: float = 1.25
    """Bound of slowdown over phi before anything was learnt: 98.9 % of 1,131 measured moves stayed below."""
    slowdown_mid: float = 0.71
    """Median of the same moves."""
    slowdown_hopeful: float = 0.33
    """5 % of the same moves were better."""
    slowdown_faster: float = 1.05
    """Bound for a GPU that is faster in both FLOPS and bandwidth: 95 % of such moves were no slower."""
    measured_error: float = 0.08
    """Of a slowdown that a test of two hours measured (decision 32)."""
    served_error: float = 0.03
    """Error of a slowdown that production requests on the type showed: they are far more than a test's."""
    other_type_spread: float = 0.25
    """Spread given to a ratio learnt on another type of the same endpoint: the bound over phi again."""
    shrinkage: int = 20
    """Outcomes at which the account's own slowdowns weigh as much as the prior (empirical Bayes)."""
    # latency
    rho_many: float = 0.85
    """Load above which a fleet has a high risk of capacity: behind the least busy of several, waiting rises steeply."""
    rho_one: float = 0.6
    """That load for one instance, where nothing levels it: a request waits about as long as it is served."""
    objective_factor: float = 1.1
    """Without a declared objective, *as today*: max(this x p95, p99) of the look-back. Callers hardly see a tenth."""
    objective_most: float = 1.25
    """Upper end of *as today*, x p95: where few requests are very slow, the p99 says little about the others."""
    # candidates
    count_factor: int = 2
    """Times today's instances that are tried at most: a type that takes more is hardly ever cheaper."""
    count_spare: int = 2
    """Instances beyond `count_factor` times today's, so that one large one may become four small ones."""
    excess_share: float = 0.003
    """Requests over the objective, beyond today's, that a choice may cause: less than `error_share`."""
    late_budget: float = 0.002
    """That share for all our changes together: less than one choice may cause, so that such a choice is noticed."""
    late_a_week: float = 2.0
    """Requests a week that may be late behind a declared objective where these shares of them are fewer: the roll-back
    alarms hear the third."""
    late_most: float = 0.05
    """Share of the requests that are late in all, up to which they do: an objective for the p95 lets as many pass."""
    replay_requests: int = 5000
    """Requests that one run of the replay serves at most: 0.3 % of them are fifteen, plus or minus four by chance."""
    cold_share: float = 0.005
    """Requests that may meet a cold start when an endpoint sleeps: one in two hundred, as for errors."""
    async_from_s: float = 10.0
    """p95 from which asynchronous calls are named: below, polling costs callers more than the queue gives."""
    cpu_class_share: float = 0.01
    """GPU utilisation maximum below which no GPU is needed: three seconds of work in five minutes."""
    nap_days: int = 14
    """Days of history before sleeping is dared where nobody said that cold starts are fine: each weekday twice."""
    idle_days: int = 14
    """Silent days that make an endpoint idle, as Compute Optimizer and CleanCloud count them."""
    stopped_hours: float = 72.0
    """Silence after which the traffic counts as stopped, when no gap before was a quarter as long: a long weekend."""
    # objective and risk
    risk_steps: tuple[float, float, float, float] = (0.005, 0.02, 0.05, 0.20)
    """Chances of harm at which the performance risk becomes 1, 2, 3, 4. Five levels, as Compute Optimizer's."""
    provision_minutes: float = 30.0
    """Overlap of both fleets during a change of type: provisioning, baking, draining take 20 to 45."""
    # shadow tests
    tests_per_month: int = 4
    """A setting. Shadow tests of one endpoint; 0 switches them off. One a week: each is two deployments."""
    test_tells: float = 0.5
    """What a test has to tell, 0..1, for its type to wait for it: sparse requests rarely come while it runs."""
    untested_chance: float = 0.9
    """Where none may run or would tell: the chance of being fast enough from which a type is taken untested.

    Its change is the test: canary and roll-back alarms bring the old type back, for one in ten at most. The middle of
    what is likely sizes the fleet.
    """
    untested_requests: int = 200
    """Requests that must have been seen before: as many as for a day's worth of evidence."""
    test_chance: float = 0.10
    """Chance of success below which no test is asked for: who hears nine times that it was in vain runs no tenth."""
    test_value: float = 5.0
    """Times its cost that a test has to bring on average beyond that cost: a month of saving is a guess, it is not."""
    test_budget_share: float = 0.03
    """What all tests of a month may cost, as a share of what the account's GPU endpoints cost a month."""
    test_hours: float = 2.0
    """Around the busiest hour; the hour before shows the way up to it."""
    test_hours_most: float = 24.0
    """A day has every hour, and a longer test would meet the next change."""
    test_requests: int = 20
    """Requests that a test should see: their mean is known to the `measured_error` if latencies spread by a third."""
    # gate
    minimum_saving_share: float = 0.10
    """Of the endpoint's cost: less is what a bill differs by from month to month."""
    minimum_saving_usd: Decimal = Decimal(50)
    """A setting. US dollars a month: about an hour of the person who is asked."""
    confidence_propose: float = 1.0
    """Days' worth of evidence before anybody is asked: each hour of the day was seen."""
    confidence_apply: float = 3.0
    """Days' worth of evidence before a count is applied: as many as `days_for_hours`."""
    confidence_smaller: float = 7.0
    """Days' worth of evidence before another type is applied: each day of the week was seen."""
    risk_propose: int = 3
    """Performance risk above which nobody is asked: it would fail in one case of five or more."""
    risk_apply: int = 1
    """Performance risk that automatic mode takes: one change in fifty fails at most."""
    payback_days: float = 7.0
    """Days in which the switch has to have paid for itself: the next change may come a week later."""
    cooldown_hours: float = 24.0
    """Between two changes: the change before was seen through a whole day."""
    cooldown_type_hours: float = 72.0
    """After a change of type, before another type: three days, as for hour-of-day profiles."""
    capacity_days: float = 7.0
    """A type that had no capacity so lately comes after those that may have some."""
    blacklist_days: float = 30.0
    """Rest of a type that failed, doubled with every further failure of it: a month of quiet after a failed night."""
    blacklist_demand: float = 0.25
    """So much less demand than at the failure lifts a blacklist entry: days of the same load differ by less."""
    failed_room: float = 0.2
    """How much larger than a fleet that failed under such a load the next one is, as a share: the growth again."""
    lone_instance: Risk = Risk.MEDIUM
    """Availability risk of one instance in place of two or more, which are in two zones."""
    down_with_growth: float = 0.2
    """A smaller configuration must stay feasible with this much more load: Compute Optimizer's default headroom."""
    grown_share: float = 0.01
    """Requests over the objective, beyond those of today, that it may have then: a fifth of what a p95 lets pass."""
    error_share: float = 0.005
    """Failed requests that a guarded change may have: the roll-back alarm's own threshold."""

    def with_dimensions(self, dimensions: frozenset[OptionKind]) -> "Policy":
        """The policy with these dimensions beside type and count open to automatic mode."""
        return replace(self, by_itself=TYPE_AND_COUNT | dimensions)

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


SLOW_FACTOR = 2.0
"""Without an objective: a p95 above this multiple of the usual one is bad, for the proof and the alarms of a change."""


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
    automatic: bool = True
    """Whether automatic mode may begin a change; the policy document can say no."""
    is_live: bool = False
    """Whether a policy document says them, which may be changed while a change waits."""
    objective_p95_s: float | None = None
    """The p95 to keep where no tag says it, seconds, by the policy document; None: as today."""
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
    """Cost of the change's switch, US dollars."""
    room: Room
    """What the day needs to have left."""
    limit: str
    """The whole budget of a day, in words."""
