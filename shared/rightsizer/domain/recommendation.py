"""Recommendation for one endpoint: finding, options, choice, reasons, picture, and endpoints on one card."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from rightsizer.domain.checks import aware
from rightsizer.domain.demand import Peak
from rightsizer.domain.endpoint import EndpointKind, EndpointRef, Mode
from rightsizer.domain.environment import EnvironmentReading
from rightsizer.domain.option import Excluded, Option
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Reason


@dataclass(frozen=True, slots=True)
class Needs:
    """Needs of one endpoint on one GPU, for a card that several endpoints share."""

    accelerator: str
    """Model of the card that it runs on."""
    usable_gib: float
    """GiB that this card offers."""
    gpu_memory_gib: float
    """With margin."""
    busy: tuple[float, ...]
    """Planned share of the card at work, 24 values by hour of the day UTC."""
    host_memory_gib: float
    vcpu: float
    type_memory_gib: float
    """Memory of one host of the instance type that runs, GiB."""
    type_vcpu: int
    framework: str


@dataclass(frozen=True, slots=True)
class Pack:
    """Endpoints of one owner that would fit on one instance, as a proposal for that owner."""

    owner: str
    endpoints: tuple[str, ...]
    instance_type: str
    price: Price
    now_usd: Decimal
    """US dollars per month of all of them today."""
    usd_per_month: Decimal
    saving_usd_per_month: Decimal
    """Against today."""
    beyond_usd_per_month: Decimal
    """More than the options of each endpoint would save by themselves."""
    gpu_memory_gib: float
    usable_gib: float
    peak_load: float
    """Share of the card at work in the busiest planned hour, 0..1."""
    headroom: float
    """Times that all loads may grow before the card is too busy."""
    way: str
    client_change: str
    not_checked: tuple[str, ...]


class Finding(StrEnum):
    """Compute Optimizer's words."""

    IDLE = "Idle"
    OVER_PROVISIONED = "OverProvisioned"
    UNDER_PROVISIONED = "UnderProvisioned"
    OPTIMIZED = "Optimized"
    NOT_ENOUGH_DATA = "NotEnoughData"


WASTEFUL = frozenset({Finding.IDLE, Finding.OVER_PROVISIONED})
"""Findings that say that less would do."""


class Gate(StrEnum):
    """Permitted next step with the chosen option."""

    SILENT = "silent"
    PROPOSE = "propose"
    TEST = "test"
    APPLY = "apply"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Window, data quality and figures behind a recommendation."""

    start: datetime
    end: datetime
    days: float
    valid_share: float
    """0..1 of the periods with utilisation datapoints."""
    requests: int
    rung: str
    """Rung of the signal ladder: L0 configuration only ... L5 own history."""
    figures: Mapping[str, str] = field(default_factory=dict)
    """Name and figure with its unit, for people: percentiles, demand, memory class."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The look-back run again on the chosen option."""

    days: int
    hours_above_80: float
    hours_above_100: float
    worst_p95_s: float | None
    """The largest p95 of an hour with at least 20 requests; None where no hour had so many."""
    memory_margin_gib: float | None
    """GiB of one GPU beyond the need with its margin; None where the need is not known."""
    requests_over_objective: int
    """Replayed requests whose latency was over the objective."""
    hourly_load: tuple[float | None, ...] = ()
    """Predicted load per hour, 0..1 of the option's capacity, oldest first; None where the requests are unknown."""
    requests: int = 0
    """Requests that were replayed: all, or those of the heaviest five minutes where the days had many."""
    over_objective_today: int = 0
    """Of the same requests on the fleet that they were measured on."""
    objective_s: float | None = None
    """The p95 that counted as the objective, seconds."""


@dataclass(frozen=True, slots=True)
class VariantFinding:
    """Finding on one of several production variants, as it was judged by its own metrics."""

    name: str
    instance_type: str
    """Empty where it has no type of its own."""
    instance_count: int
    weight: float
    usd_per_month: Decimal | None
    """Cost of the variant; None where the price of its instances is not known."""
    finding: Finding
    reason: Reason
    gate: Gate
    requests: int | None = None
    """Of the look-back; None where they were not read."""
    options: tuple[Option, ...] = ()
    """Its own, best first, whether or not the endpoint's change takes them."""


@dataclass(frozen=True, slots=True)
class ComponentDay:
    """One day of an inference component in UTC, by its own metrics.

    The first and the last are parts of a day.
    """

    day: date
    requests: float | None
    """Requests of the day; None where no utilisation was published on it: unknown, not zero."""
    gpu: float | None = None
    """Mean share of the accelerators that it reserved, 0..1; None where that was not published."""


@dataclass(frozen=True, slots=True)
class ComponentFinding:
    """Finding on one inference component, as it was judged by its own metrics."""

    name: str
    copies: int | None
    """That run now; None where it could not be read."""
    finding: Finding
    reason: Reason
    needed: int | None = None
    """Copies that carry its peak with room to grow; None where that is not known."""
    usd_per_month: Decimal | None = None
    """Its part of the endpoint's price, by what its copies reserve; None where that is not known."""
    base: str = ""
    """The component that it is an adapter of: it reserves nothing of its own."""
    days: float = 0.0
    """Days of data."""
    figures: Mapping[str, str] = field(default_factory=dict)
    """Name and figure with its unit, for people."""
    advice: str = ""
    """What the component's owner can do and rightsizer does not, with the command; empty where there is nothing."""
    withheld: str = ""
    """Why its tags let nobody approve other copies of it, with the command that allows it; empty where they do."""
    minimum: int | None = None
    """Copies below which its autoscaling does not go, where `needed` is another minimum; None for fixed copies."""
    by_day: tuple[ComponentDay, ...] = ()
    """Days of the look-back, oldest first."""


@dataclass(frozen=True, slots=True)
class ComponentPacking:
    """Instances that the copies of all components need, as what they reserve packs; bounds of what AWS may do."""

    instances: int
    """That run now."""
    least: int
    """No placement needs fewer."""
    most: int
    """First-fit decreasing needs so many."""
    unreserved_usd_per_month: Decimal | None
    """Part of the price that no copy reserves; None where the price is not known."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommendation of one endpoint. Silence too has a reason (law 7)."""

    ref: EndpointRef
    variant: str
    kind: EndpointKind
    mode: Mode
    owner: str
    fingerprint: str
    """Of the observation it was made from; a change is refused when it no longer matches."""
    evaluated_at: datetime
    instance_type: str
    instance_count: int
    price: Price | None
    usd_per_month: Decimal | None
    finding: Finding
    reason: Reason
    gate: Gate
    gate_reason: Reason
    options: tuple[Option, ...]
    """Ranked; the first is the chosen one. Empty when there is none."""
    evidence: Evidence | None
    replay: Replay | None = None
    excluded: tuple[Excluded, ...] = ()
    not_checked: tuple[str, ...] = ()
    hourly_requests: tuple[float | None, ...] = ()
    """Requests per hour over the look-back, oldest first, for the small picture; None where an hour is unknown."""
    peak: Peak | None = None
    """When a shadow test sees most; None where no hour stands out, and in what was stored before decision 37."""
    notes: tuple[Reason, ...] = ()
    needs: Needs | None = None
    """What the endpoint would ask of a GPU that it shares; None where it cannot share one."""
    beside: tuple[str, ...] = ()
    """Other production variants, each with its count and type; evidence and replay are of `variant` alone."""
    owned_by: str = ""
    """The stack or tool in whose source a change is made, and undone; empty where there is none."""
    environment: EnvironmentReading | None = None
    """What the tags say of the endpoint's environment, and what that changed; None where nothing was recommended."""
    variants: tuple[VariantFinding, ...] = ()
    """Every production variant where there are several; empty in what was stored before they were judged."""
    stages: tuple[Option, ...] = ()
    """What follows the chosen option by the same approval, in order: each once the one before is proven, and by the
    evidence of that time. The saving of each is what it adds; its cost is that of the endpoint after it."""
    components: tuple[ComponentFinding, ...] = ()
    """Every inference component; empty for other kinds, and where they could not be listed (then a note says so)."""
    packing: ComponentPacking | None = None
    """Copies packed onto instances; None where a component or its instance type is not known."""

    def __post_init__(self) -> None:
        aware("Recommendation.evaluated_at", self.evaluated_at)

    @property
    def chosen_option(self) -> Option | None:
        """The option that is recommended."""
        return self.options[0] if self.options else None

    def of_variant(self, name: str) -> "Recommendation":
        """The recommendation with type, count and options of one variant; the same where that one is not listed."""
        mine = next((finding for finding in self.variants if finding.name == name), None)
        if mine is None or name == self.variant:
            return self
        return replace(
            self,
            variant=name,
            instance_type=mine.instance_type,
            instance_count=mine.instance_count,
            options=mine.options,
            excluded=(),
        )

    @property
    def is_short(self) -> bool:
        """Whether users suffer from too little capacity: it stands before every saving."""
        return self.finding is Finding.UNDER_PROVISIONED

    @property
    def grows(self) -> bool:
        """Whether growth is recommended."""
        return self.chosen_option is not None and self.chosen_option.grows

    @property
    def offers_test(self) -> bool:
        """Whether a shadow test of the chosen option is offered before it; of those stored earlier the gate tells."""
        return self.gate is Gate.TEST or (self.chosen_option is not None and self.chosen_option.test_usd > 0)

    @property
    def saving_usd_per_month(self) -> Decimal:
        """Estimated monthly savings of the chosen option; 0 when there is none."""
        return self.options[0].saving_usd_per_month if self.options else Decimal(0)

    @property
    def approval_usd_per_month(self) -> Decimal:
        """Estimated monthly savings of everything that one approval covers, US dollars; negative for growth.

        The chosen option and the stages behind it, as the table of money adds them.
        """
        first = self.saving_usd_per_month.quantize(Decimal("0.01"))
        return first if first <= 0 else sum(self.stage_savings, first)

    @property
    def stage_savings(self) -> tuple[Decimal, ...]:
        """Savings that the stages behind the chosen option add, US dollars a month in whole cents; never negative."""
        return tuple(max(option.saving_usd_per_month, Decimal(0)).quantize(Decimal("0.01")) for option in self.stages)

    @property
    def open_questions(self) -> tuple[str, ...]:
        """Facts that neither the recommendation nor the chosen option rests on, each once."""
        return tuple(
            dict.fromkeys((*self.not_checked, *(self.chosen_option.not_checked if self.chosen_option else ())))
        )

    @property
    def identified_usd_per_month(self) -> Decimal:
        """Saving of all stages that reports count as possible, US dollars a month in whole cents.

        Never negative, and 0 where the owner's tag says off or where nothing was found to be too much.
        """
        if self.mode is Mode.OFF or self.finding not in WASTEFUL:
            return Decimal(0)
        return max(self.approval_usd_per_month, Decimal(0))


@dataclass(frozen=True, slots=True)
class WeekSignals:
    """Hourly values of the two weeks, oldest first; None where an hour has no data."""

    start: datetime
    gpu_percent: tuple[float | None, ...]
    """Of all GPUs of an instance, 0..100."""
    gpu_gib: tuple[float | None, ...]
    """Of one GPU."""
    p95_s: tuple[float | None, ...]
    then_percent: tuple[float | None, ...] = ()
    """Load of the same hours replayed on the candidate; 100 is all that it can carry."""
    then_gib: float | None = None
    """GiB that one GPU of the candidate has for a model."""
