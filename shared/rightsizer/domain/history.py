"""What past changes and shadow tests measured, as input of the next recommendation."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from rightsizer.domain.checks import not_empty
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.option import Option
from rightsizer.domain.schedule import DayCounts

TEACHES_DAYS = 180
"""How far back changes of other endpoints teach something, and are held against their promises."""
SERVED_BADLY = frozenset({"alarm", "performance", "errors", "memory", "health-check"})
"""Failures by which a new fleet was too slow, failed requests, or did not start or fit."""


class PastEnd(StrEnum):
    """How a past change or test ended; the values are stored."""

    PROVEN = "proven"
    APPLIED = "applied"
    """The change stands, but too few requests came to prove it."""
    ROLLED_BACK = "rolled-back"
    """The new fleet served, and the old one serves again."""
    UPDATE_FAILED = "update-failed"
    """The new fleet never served."""
    HANDED_OVER = "handed-over"
    """A person had to help; which fleet serves is not known."""
    TESTED = "tested"
    """A shadow test ended: what serves did not change."""
    RUNNING = "running"
    """The change has not ended yet."""


WITHOUT_ARRIVAL = frozenset({PastEnd.TESTED, PastEnd.UPDATE_FAILED})
"""Ends of what never served."""
WENT_BACK = frozenset({PastEnd.ROLLED_BACK, PastEnd.UPDATE_FAILED})
"""Ends after which the old fleet serves."""


@dataclass(frozen=True, slots=True)
class PastVariant:
    """Type and count of another variant of the same change, before and after."""

    name: str
    from_type: str
    to_type: str
    from_count: int
    to_count: int


@dataclass(frozen=True, slots=True)
class PastChange:
    """One change or test of the endpoint, as it ended."""

    at: datetime
    from_type: str
    to_type: str
    from_count: int
    to_count: int
    ended: PastEnd
    failure: str = ""
    """Class of the failure: capacity, health-check, alarm, memory, errors, timeout, quota, unknown; empty when none."""
    promised_slowdown: float | None = None
    """GPU seconds of a request on the new type over the old one, as the decision took them to be."""
    realised_slowdown: float | None = None
    """That ratio as it was measured; None where too few requests were."""
    demand: float | None = None
    """GPU seconds per second at the time, to notice that the demand has changed since."""
    framework: str = ""
    mean_instances: float | None = None
    """Instances on average, where hourly counts were set or target tracking was added."""
    latency_ratio: float | None = None
    """Mean latency on the new type over the old one for the same requests, where a test measured it."""
    from_routing: str = ""
    """Routing before the change; empty when it is not known."""
    memory_gib: float | None = None
    """Largest GPU memory seen on the new type, GiB per GPU."""

    usd: Decimal = Decimal(0)
    """What a test cost."""
    models: tuple[str, ...] = ()
    """Names of the models that the changed variant served; () where that was not recorded."""
    promised_bound: float | None = None
    """What `realised_slowdown` was to stay within; None where no bound was recorded."""
    stated_risk: int | None = None
    """Performance risk that was stated, 0 to 4; None of rollbacks, tests and orders of a person, or not recorded."""
    back_for: str = ""
    """Class of the failure for which the rollback began; `failure` may be that of the rollback itself. Empty where none
    began, and where that was not recorded."""
    configured_at: datetime | None = None
    """Of a shadow test: when the configuration was deployed that ran before it and again after it; None elsewhere."""
    restores: bool = False
    """Whether it brought back, while users suffered, what earlier changes had taken; no where that was not recorded."""
    variant: str = ""
    """Variant that all this is about; empty where that was not recorded: the only one, or the first."""
    others: tuple[PastVariant, ...] = ()
    """Other variants that the same change moved."""
    day_counts: tuple[DayCounts, ...] = ()
    """Counts of each class of days that it set, where days of the week differ; else ()."""

    late_share: float | None = None
    """Share of late requests that a person accepted with it, 0..1; None where none was told."""
    grows: bool = False
    """Whether the change gave what the load needed beyond the owner's fleet; the owner's is the larger one since."""
    tracked: bool = False
    """Whether it added target tracking: `to_count` is the minimum of that, and `mean_instances` what ran."""

    from_minimum: int | None = None
    """Minimum of autoscaling before the change; None where the variant had none, and where that was not recorded."""
    approved_by: str = ""
    """The person who approved it, as `Decision.by`; empty of automatic mode, and where that was not recorded."""
    approved_at: datetime | None = None
    """When that was."""
    to_config: str = ""
    """Name of the configuration that the endpoint ran after it; empty where that was not recorded."""
    wake_s: float | None = None
    """Longest that a request waited, or failed, for a start from no instance; None where none was measured."""

    def instances_against(self, *, tracked: bool) -> float:
        """Instances by which another fleet is compared with it: of two tracked ones the minimum, else the mean."""
        return self.to_count if tracked and self.tracked else self.mean_instances or self.to_count

    def of_variant(self, name: str, *, is_first: bool) -> "PastChange | None":
        """The change as it was to one variant; None where it left that one alone.

        What was promised and measured is of `variant`, and says nothing about the others.
        """
        if self.variant == name or (not self.variant and is_first):
            return self
        mine = next((past_variant for past_variant in self.others if past_variant.name == name), None)
        if mine is None:
            return None
        return PastChange(
            self.at,
            mine.from_type,
            mine.to_type,
            mine.from_count,
            mine.to_count,
            self.ended,
            failure=self.failure,
            back_for=self.back_for,
            restores=self.restores,
            variant=name,
            late_share=self.late_share,
            grows=self.grows,
        )

    def is_outgrown(self, demand: float | None, share: float) -> bool:
        """Whether it failed under so much more demand (by that share) that it says nothing about `demand`, now.

        More demand than then lifts nothing: what did not carry less does not carry more.
        """
        return bool(self.demand and demand is not None and demand < self.demand * (1 - share))

    def is_of_another_model(self, model: str) -> bool:
        """Whether it was made with another version of the model; no where one of them is not known."""
        return bool(self.models and model and model not in self.models)

    @property
    def was_deployed(self) -> bool:
        """Whether the new fleet served, or may have, even if it went back later; never true of a shadow test."""
        return self.ended not in WITHOUT_ARRIVAL

    @property
    def is_in_force(self) -> bool:
        """Whether the endpoint runs what the change made, or may: one that is running or was handed over counts."""
        return self.was_deployed and self.ended is not PastEnd.ROLLED_BACK

    @property
    def has_failed_start(self) -> bool:
        """Whether the model did not start or did not fit on the new type, whatever the load was."""
        return self.is_refuted and self.failure in ("health-check", "memory")

    @property
    def is_refuted(self) -> bool:
        """Whether the outcome speaks against the new type itself; a lack of capacity or quota does not."""
        if self.ended is PastEnd.TESTED:
            return self.failure in ("memory", "health-check", "errors")
        return self.ended in WENT_BACK and self.failure not in ("capacity", "quota")

    @property
    def has_fallen_short(self) -> bool:
        """Whether a change went back for how the new fleet served; not for want of capacity, or on request.

        One that was to go back and was handed over did too: its users met the new fleet for longer, not for less.
        """
        why = self.back_for or self.failure
        return self.ended in WENT_BACK | {PastEnd.HANDED_OVER} and why in SERVED_BADLY

    @property
    def is_silent(self) -> bool:
        """Whether it says nothing about the new type, neither for nor against: nobody saw whether it serves."""
        unseen = self.ended is PastEnd.TESTED and self.latency_ratio is None and self.realised_slowdown is None
        return not self.is_refuted and (unseen or self.ended in WENT_BACK | {PastEnd.HANDED_OVER})

    @property
    def was_without_capacity(self) -> bool:
        """Whether there was no capacity for the new type, so that the endpoint never ran it."""
        return self.ended is PastEnd.UPDATE_FAILED and self.failure == "capacity"


@dataclass(frozen=True, slots=True)
class EndedChange:
    """A past change with the endpoint that it was of, and its id."""

    endpoint: str
    change_id: str
    past: PastChange

    def __post_init__(self) -> None:
        not_empty("Remembered.endpoint", self.endpoint)
        not_empty("Remembered.change_id", self.change_id)


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """Option that waits for an answer or for its change, and the endpoint's state when it was asked."""

    option: Option
    fingerprint: str


@dataclass(frozen=True, slots=True)
class History:
    """Past changes of one endpoint, and of the account it belongs to."""

    endpoint: tuple[PastChange, ...] = ()
    """Changes of the endpoint, oldest first."""
    account: tuple[PastChange, ...] = ()
    """Of other endpoints; what they teach is shared by framework."""
    tests_this_month: int = 0
    """Shadow tests of this endpoint, in this month."""
    tests_usd_this_month: Decimal = Decimal(0)
    """What shadow tests of the account cost in this month."""
    gpu_usd_per_month: Decimal | None = None
    """What the account's judged endpoints cost a month, as the last full sweep added it up; None when not known."""
    stopped: tuple[StoppedTime, ...] = ()
    """Times in which office hours had it stopped, oldest first."""
    asked: OpenQuestion | None = None
    """What is pending, or approved and not begun; None where nothing is."""

    def of_variant(self, name: str, *, is_first: bool) -> "History":
        """The history with those changes of the endpoint that moved one of its variants."""
        mine = (past.of_variant(name, is_first=is_first) for past in self.endpoint)
        return replace(self, endpoint=tuple(past for past in mine if past is not None))


def minimum_before_changes(history: Iterable[PastChange]) -> int | None:
    """The minimum of the owner before our changes in force; None without one, so that none took it.

    Where a change did not record it, the instances that ran before it stand in.
    """
    stand = (past for past in history if past.is_in_force)
    return max((past.from_count if past.from_minimum is None else past.from_minimum for past in stand), default=None)
