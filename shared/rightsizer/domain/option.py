"""One way to serve the demand: its cost, its risk, and the effort of carrying it out.

Who makes an option says what it takes: whether the model starts again, and whether what was there can come back. The
words are Cost Optimization Hub's: restart needed, rollback possible. What differs between kinds stands in `dimensions`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Literal

from rightsizer.domain.checks import not_empty
from rightsizer.domain.endpoint import EndpointKind, PolicyChange
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Reason, count
from rightsizer.domain.schedule import HOURS, WEEKDAYS, DayCounts, span_text
from rightsizer.domain.slowdown import Promise
from rightsizer.errors import InputError


@dataclass(frozen=True, slots=True)
class LatencyObjective:
    """The latency that must hold, seconds, and the share of failed requests (0..1) that may be, None: not declared."""

    p95_s: float
    declared: bool
    source: str
    error_share: float | None = None
    overhead_s: float = 0.0
    """Seconds of what was promised that pass around the model (OverheadLatency); 0 where that is little."""


class OptionKind(StrEnum):
    """The dimension in which an option differs from today."""

    INSTANCE_TYPE = "instance-type"
    INSTANCE_COUNT = "instance-count"
    TYPE_AND_COUNT = "type-and-count"
    AUTOSCALING = "autoscaling"
    SCHEDULE = "schedule"
    ROUTING = "routing"
    INSTANCE_POOLS = "instance-pools"
    SCALE_TO_ZERO = "scale-to-zero"
    ASYNC = "asynchronous"
    SERVERLESS = "serverless"
    PACKING = "packing"
    DELETE = "delete"
    REMOVE_VARIANT = "remove-variant"
    OTHER_ARCHITECTURE = "other-architecture"
    FEWER_GPUS = "fewer-gpus"
    COPIES = "component-copies"
    SCALE_IN = "scale-in-policy"
    PLACEMENT = "component-placement"


class Risk(IntEnum):
    """How likely harm is, on the five levels of Compute Optimizer's performance risk."""

    VERY_LOW = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    VERY_HIGH = 4


MOST_RISK_TAKEN = Risk.MEDIUM
"""Another option than the recommended one is not taken above this performance risk; evaluations recommend none."""


class RiskResource(StrEnum):
    """Resource that may suffer from an option."""

    GPU_MEMORY = "gpu-memory"
    HOST_MEMORY = "host-memory"
    VCPU = "vcpu"
    LATENCY = "latency"
    CAPACITY = "capacity"
    AVAILABILITY = "availability"
    COMPILATION = "compilation"


class Effort(StrEnum):
    """Implementation effort, Cost Optimization Hub's words."""

    VERY_LOW = "VeryLow"
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    VERY_HIGH = "VeryHigh"


ORDERED = frozenset({OptionKind.SCALE_IN, OptionKind.PLACEMENT})
"""Options that a person asks for and no evaluation proposes: their saving is unknown, so none is promised or booked."""


CHANGEABLE = frozenset({EndpointKind.REAL_TIME, EndpointKind.ASYNC, EndpointKind.MULTI_VARIANT})
"""Kinds of endpoint that an approval may change in place; automatic mode: the plain kind, and the sleep of queues."""


@dataclass(frozen=True, slots=True)
class ScaleIn:
    """How managed instance scaling gives instances back (SageMaker, ManagedInstanceScaling.ScaleInPolicy).

    Raises InputError outside AWS's limits. What is None stays as it is, or is AWS's default.
    """

    variant: str
    strategy: Literal["IDLE_RELEASE", "CONSOLIDATION"]
    """IDLE_RELEASE gives back empty instances only; CONSOLIDATION moves copies together to empty some."""
    maximum_step: int | None = None
    """Instances that go at a time, 1 to 100; AWS's default is 1."""
    cooldown_minutes: int | None = None
    """5 to 1440; AWS's default is 20."""

    def __post_init__(self) -> None:
        not_empty("ScaleIn.variant", self.variant)
        limits = (("maximum_step", self.maximum_step, 1, 100), ("cooldown_minutes", self.cooldown_minutes, 5, 1440))
        for name, value, least, most in limits:
            if value is not None and not least <= value <= most:
                raise InputError(f"ScaleIn.{name} must be {least} to {most}, got {value}")

    @property
    def policy(self) -> dict[str, str | int]:
        """The members of ScaleInPolicy that are asked for."""
        asked = {"MaximumStepSize": self.maximum_step, "CooldownInMinutes": self.cooldown_minutes}
        return {"Strategy": self.strategy, **{k: v for k, v in asked.items() if v is not None}}


@dataclass(frozen=True, slots=True)
class VariantTarget:
    """Type and count that another variant of the endpoint gets in the same change."""

    name: str
    instance_type: str
    instance_count: int
    usd_per_hour: Decimal
    """Price of one instance, US dollars."""


@dataclass(frozen=True, slots=True)
class Target:
    """The configuration that an option leads to. Fields that are None stay as they are."""

    instance_type: str
    instance_count: int
    hourly_counts: tuple[int, ...] | None = None
    """24 counts, one per hour of the day UTC, carried out as scheduled actions; with `day_counts` the most of each."""
    minimum: int | None = None
    """Autoscaling bounds."""
    maximum: int | None = None
    routing: str | None = None
    pools: tuple[str, ...] = ()
    """Instance pools in order of priority."""
    target_value: float | None = None
    """Target value of the target-tracking policy: of the owner's, or with `metric` of the one that is added."""
    per_instance: float | None = None
    """What one instance serves of what one of today's does; the owner's scaling follows it. None: by the counts."""
    copies: tuple[tuple[str, int], ...] = ()
    """(Inference component, copies that it shall have)."""
    idle_minutes: int | None = None
    """Minutes without a request after which all instances leave."""
    scale_in: ScaleIn | None = field(default=None, repr=False)
    """Not in the text of a target, from which the ids of proposals are made: those that exist keep theirs."""
    placement: tuple[tuple[str, Literal["SPREAD", "BINPACK"]], ...] = field(default=(), repr=False)
    """(Inference component, how its copies are placed). Not in the text of a target either."""
    metric: str | None = field(default=None, repr=False)
    """Predefined metric of the target-tracking policy that is added; None where none is. Not in the text either."""
    others: tuple[VariantTarget, ...] = field(default=(), repr=False)
    """Other variants that the same deployment changes; those that are not named stay. Not in the text either."""
    day_counts: tuple[DayCounts, ...] = field(default=(), repr=False)
    """Counts of each class of days where days of the week differ; () where all are alike. Not in the text either."""
    least_copies: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    """(Inference component, minimum of its autoscaling). Not in the text either."""

    @property
    def all_copies(self) -> tuple[tuple[str, int], ...]:
        """Components with other copies, or with another minimum of them."""
        return (*self.copies, *self.least_copies)

    def counts_on(self, weekday: int) -> tuple[int, ...]:
        """24 counts of a day of the week (Monday is 0); without a schedule the one count."""
        own = next((counts.counts for counts in self.day_counts if weekday in counts.weekdays), None)
        return own or self.hourly_counts or (self.instance_count,) * HOURS

    @property
    def week_counts(self) -> tuple[int, ...]:
        """168 counts from Monday 00:00 UTC."""
        return tuple(count for day in range(len(WEEKDAYS)) for count in self.counts_on(day))

    @property
    def mean_count(self) -> float:
        """Instances on average over the hours of the week."""
        counts = self.week_counts if self.day_counts else self.counts_on(0)
        return sum(counts) / len(counts)


def changed_types(target: Target) -> tuple[str, ...]:
    """Instance types that a target asks for: its own or its pools, and those of other variants."""
    own = target.pools or (target.instance_type,)
    return tuple(dict.fromkeys((*own, *(one.instance_type for one in target.others))))


def fleet(target: Target) -> str:
    """The fleet in words, such as ``2 × ml.g5.xlarge``, ``1 to 4 × ml.g5.xlarge by the hour`` or ``serverless``."""
    number = f"{target.minimum} to {target.maximum}" if target.metric else span_text(target.week_counts)
    by_hour = " by the hour" if len(set(target.week_counts)) > 1 and not target.metric else ""
    return f"{number} × {target.instance_type}{by_hour}" if target.instance_type else "serverless"


NEVER = 1e6
"""Days of payback of what never pays back."""


def payback_days(once_usd: Decimal, saving: Decimal) -> float:
    """Days until a monthly saving has paid `once_usd`; a million where it never does."""
    days = float(once_usd / saving * 30) if saving > 0 else float("inf")
    return round(days, 2) if days < NEVER else NEVER


@dataclass(frozen=True, slots=True)
class Money:
    """Cost of an option in US dollars: a month, its saving, the one-time switch, and days until repaid."""

    usd_per_month: Decimal
    saving: Decimal
    switch_usd: Decimal
    payback_days: float


@dataclass(frozen=True, slots=True)
class Option:
    """One way to serve the demand, priced and rated."""

    kind: OptionKind
    target: Target
    price: Price
    usd_per_month: Decimal
    saving_usd_per_month: Decimal
    """Net of commitments; the storage of instances is not in it; negative for a dearer option."""
    switch_usd: Decimal
    """One-off of the change: overlap of both fleets and expected roll-backs."""
    payback_days: float
    """Days of the saving that pay for the change, and for the shadow test where one comes first."""
    risks: Mapping[RiskResource, Risk]
    risk: Risk
    """The worst of `risks`, availability included: what automatic mode may apply follows it."""
    confidence: float
    """Days' worth of evidence: the lesser of days with requests and of hours with data."""
    effort: Effort
    restart_needed: bool
    """Whether the model starts again for it, on other instances or as other copies."""
    rollback_possible: bool
    """Whether what was there before can be brought back, by the program or by its owner."""
    in_place: bool
    """Whether the program could carry it out on the same endpoint."""
    client_change: str
    """What callers must change; empty when nothing."""
    p95_s: float | None
    """Predicted p95 latency, seconds: today's times what the replay on its own counts makes of it, waiting included.

    None without latency data.
    """
    notes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    """Evidence for people: name and figure with its unit."""
    not_checked: tuple[str, ...] = ()
    restores: bool = False
    """Brings back what was good while users suffer: it waits for nobody, and latency alone never undoes it."""
    by_itself: bool = False
    """Of an option behind the chosen one: automatic mode may apply it where the chosen type has no capacity."""
    mean_instances: float | None = None
    """Instances on average that `usd_per_month` pays for, autoscaling included; None: as the target counts."""
    promise: Promise | None = None
    """Promised effect; None where none was computed: what a person ordered, a restore, a deletion."""
    test_usd: Decimal = Decimal(0)
    """One-off of the shadow test that is proposed before it, of which the change may never follow; else zero."""
    test_hours: float | None = None
    """Hours of a shadow test of it; None where none was reckoned."""
    test_tells: str = ""
    """What that test finds out, as the end of "it tells"; empty where none is proposed."""
    untested_risk: Risk | None = None
    """Risk of the change without that test, while `risk` counts on it; None where none is proposed."""
    test_needed: bool = False
    """Whether nobody may approve it without that test: its risk is above what people are asked about."""
    policy_changes: tuple[PolicyChange, ...] = ()
    """Of another type: what becomes of each scaling policy of the owner."""
    late_share: float | None = None
    """Share of the requests that would be late, 0..1, where they are more than automatic mode may cost; else None."""
    growth_usd: Decimal | None = None
    """Of growth, which ends a shortage: US dollars a month that it adds to what its owner gave the endpoint, growth of
    before included. None of every other option."""

    @property
    def grows(self) -> bool:
        """Whether it ends a shortage; what it costs is no saving, and latency as it was does not undo it."""
        return self.growth_usd is not None

    @property
    def leaves_one_zone(self) -> bool:
        """Whether one instance serves, in one Availability Zone, where two or more were in two."""
        return RiskResource.AVAILABILITY in self.risks and len(self.risks) > 1

    @property
    def performance_risk(self) -> Risk:
        """Risk without availability, as Compute Optimizer's; a deletion, say, on which only that is rated, has it."""
        return max((r for name, r in self.risks.items() if name is not RiskResource.AVAILABILITY), default=self.risk)

    @property
    def adds_only(self) -> bool:
        """Whether it gives back room or adds to what runs, and replaces nothing: slowness is no reason to undo it."""
        return self.restores or (self.grows and not self.restart_needed)


def payback_text(option: Option) -> str:
    """When the saving has repaid the switch and the test, for people; hours below a day."""
    if option.grows:
        return "nothing pays it back: it ends a shortage"
    if not option.switch_usd + option.test_usd:
        return "nothing to pay back"
    if option.payback_days >= NEVER:
        return "never paid back"
    hours = 24 * option.payback_days
    if hours >= 24:
        return f"paid back in {option.payback_days:.1f} days"
    return f"paid back in {count(round(hours), 'hour') if hours >= 1 else 'less than an hour'}"


@dataclass(frozen=True, slots=True)
class Excluded:
    """A candidate that was ruled out, and by what."""

    instance_type: str
    reason: Reason
    dimension: OptionKind | None = None
    """What was ruled out where it is no plain change of type; None for a type that could not serve."""
    kind: Literal["excluded"] = "excluded"

    @property
    def title(self) -> str:
        """The candidate as people name it: the type, and the dimension where there is one."""
        return f"{self.dimension.value} ({self.instance_type})" if self.dimension else self.instance_type


class WayBack(StrEnum):
    """Who restores the state before an option."""

    PROGRAM = "rightsizer"
    """The journal of the change runs back: by itself where it goes wrong, or when somebody asks."""
    OWNER = "owner"
    """What was there still exists, and its owner deploys it or calls it again."""
    NONE = "created-anew"
    """What was there is gone: its owner creates it anew from what was kept."""


def new_option(
    kind: OptionKind,
    target: Target,
    price: Price,
    money: Money,
    confidence: float,
    risks: Mapping[RiskResource, Risk],
    effort: Effort,
    *,
    in_place: bool,
    restarts: bool,
    keeps: bool = True,
    client_change: str = "",
    p95_s: float | None = None,
    notes: tuple[str, ...] = (),
    facts: Mapping[str, str] | None = None,
    not_checked: tuple[str, ...] = (),
    restores: bool = False,
) -> Option:
    """An option with its money spread out and the worst of its risks as its risk.

    `restarts`: the model starts again for it. `keeps`: what was there before still exists, so that it can come back.
    """
    return Option(
        kind=kind,
        target=target,
        price=price,
        usd_per_month=money.usd_per_month,
        saving_usd_per_month=money.saving,
        switch_usd=money.switch_usd,
        payback_days=money.payback_days,
        risks=risks,
        risk=max(risks.values(), default=Risk.VERY_LOW),
        confidence=round(confidence, 4),
        effort=effort,
        restart_needed=restarts,
        rollback_possible=keeps,
        in_place=in_place,
        client_change=client_change,
        p95_s=p95_s,
        notes=notes,
        facts=facts or {},
        not_checked=not_checked,
        restores=restores,
    )
