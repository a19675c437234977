"""A change of an endpoint as a journal of small steps, each written beforehand, and its next action."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from rightsizer.domain.checks import aware, not_empty
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.option import Option
from rightsizer.domain.plan import AutoscalingBeforeRollback, Before, Plan, PlanKind, Step
from rightsizer.domain.proposal import PATIENCE
from rightsizer.domain.reason import Reason


class ChangeState(StrEnum):
    """Where a change stands as a whole; what reports and messages show."""

    PLANNED = "planned"
    RUNNING = "running"
    APPLIED = "applied"
    """The endpoint runs what was asked, but has not served enough requests to call it proven."""
    PROVEN = "proven"
    RETURNING = "returning"
    """The rollback is being walked."""
    ROLLED_BACK = "rolled-back"
    HANDED_OVER = "handed-over"
    REFUSED = "refused"
    """Preflight said no; nothing was written to AWS."""


CLOSED = frozenset({ChangeState.PROVEN, ChangeState.ROLLED_BACK, ChangeState.HANDED_OVER, ChangeState.REFUSED})
"""States in which nothing is left to do by itself."""


class Course(StrEnum):
    """Direction in which a change is carried out."""

    FORWARD = "forward"
    """Towards the new configuration, and then watching it."""
    BACK = "back"
    """Towards the old configuration, because the new one proved bad or somebody asked."""
    CLOSE = "close"
    """Towards the end: autoscaling goes back, temporary resources go away, and nothing that serves is changed."""


class FailureClass(StrEnum):
    """Why a change did not stand (SageMaker FailureReason texts and refusals)."""

    NONE = ""
    CAPACITY = "capacity"
    HEALTH_CHECK = "health-check"
    ALARM = "alarm"
    MEMORY = "memory"
    TIMEOUT = "timeout"
    QUOTA = "quota"
    PERMISSION = "permission"
    PERFORMANCE = "performance"
    OUTSIDE = "outside"
    """Somebody else changed or deleted the endpoint."""
    ASKED = "asked"
    """A person asked for the rollback."""
    ERRORS = "errors"
    """The shadow of a test failed requests that production answered."""
    UNKNOWN = "unknown"


class StepResult(StrEnum):
    """Result of a write to AWS."""

    DONE = "done"
    REFUSED = "refused"
    """AWS said no, and would say it again."""
    RETRY = "retry"
    """AWS did not do it, for a reason that passes or that a person takes away."""
    UNANSWERED = "unanswered"
    """The answer was lost, or there was none: AWS may have done it."""


class JournalEvent(StrEnum):
    """Name of a journal line that is a decision or a note, not a write.

    The values are stored.
    """

    PLAN = "plan"
    PREFLIGHT = "preflight"
    WAIT = "wait"
    LOOK = "look"
    """AWS could not be read."""
    MOVED = "moved"
    """What the plan stands on changed, so that it is planned again."""
    STEER = "steer"
    """The change takes another course, or passes a milestone."""
    APPLIED = "applied"
    """Autoscaling was given back whole on the new configuration."""
    FINISH = "finish"
    """An end, at which nothing of the owner's is missing."""
    LEFT = "left"
    """What of ours stays."""
    AGAIN = "again"
    """A further try is planned."""
    ASK_BACK = "ask-back"
    ASK_TEST = "ask-test"
    """Who asked for the shadow test, where somebody else has to approve what follows."""
    WAY_BACK = "way-back"
    """What the rollback deploys, where it is not what was stored."""
    OWNER_EDITS = "owner-edits"
    """What the owner edited of the autoscaling since it was given back."""
    MET = "met"
    """Since when the return knows what it met."""
    SCHEDULE = "schedule"
    """A scheduled action that is made good."""
    IMAGES = "images"
    """The rollback brings other code."""
    JUDGEMENT = "judgement"
    """People were told that the change waits for a recommendation."""
    INCIDENT = "incident"
    """A message that a resource is left without its autoscaling; the resource is the detail."""
    INCIDENT_OVER = "incident-over"
    TURN_BACK = "turn back"
    """The old policy of a capacity change is to come back."""
    END = "end"
    """The end of a capacity change."""


PREFIXES = {
    StepResult.UNANSWERED: "again:unanswered",
    StepResult.RETRY: "again",
    StepResult.REFUSED: "refused",
}
"""How the stored detail of a write that failed begins, in every release. It is read in this order."""


def failure_detail(result: StepResult, failure: FailureClass, text: str) -> str:
    """The detail of a write that failed, as it is stored: at most 500 characters."""
    if result is StepResult.UNANSWERED:
        return f"{PREFIXES[result]}:{text}"[:500]
    return f"{PREFIXES[result]}:{failure.value or FailureClass.UNKNOWN.value}:{text}"[:500]


def read_failure(detail: str) -> tuple[StepResult | None, FailureClass, str]:
    """Result, failure class and answer of AWS from the stored detail of a failed write.

    A detail without one of the prefixes has no result and no class, and is the answer as a whole. Where no class
    follows the prefix, as in capacity changes, the class is UNKNOWN.
    """
    result = next((one for one, prefix in PREFIXES.items() if f"{detail}:".startswith(f"{prefix}:")), None)
    if result is None:
        return None, FailureClass.NONE, detail
    rest = detail.removeprefix(PREFIXES[result]).removeprefix(":")
    name, colon, text = rest.partition(":")
    if result is not StepResult.UNANSWERED and colon and name in set(FailureClass):
        return result, FailureClass(name), text or detail
    return result, FailureClass.UNKNOWN, rest or detail


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal."""

    at: datetime
    step: str
    """`Step.key`, or a `JournalEvent`."""
    status: Literal["intended", "done", "failed", "noted"]
    detail: str = ""
    """Words for people. Of a write that failed it is the stored form of `result`, `failure` and `answer`."""
    component: str = ""
    """The inference component that a note is about; empty where it is about the endpoint."""

    @property
    def result(self) -> StepResult | None:
        """Result of the write; None for an intent, a decision, or a failure that was no write."""
        if self.status == "done":
            return StepResult.DONE
        return read_failure(self.detail)[0] if self.status == "failed" else None

    @property
    def failure(self) -> FailureClass:
        """The class of a write that failed; NONE of everything else."""
        return read_failure(self.detail)[1] if self.status == "failed" else FailureClass.NONE

    @property
    def answer(self) -> str:
        """Answer of AWS to a write that failed; the detail for every other line."""
        return read_failure(self.detail)[2] if self.status == "failed" else self.detail

    @property
    def was_rejected(self) -> bool:
        """Whether the write failed, and AWS is known not to have done it."""
        return self.status == "failed" and self.result is not StepResult.UNANSWERED


@dataclass(frozen=True, slots=True)
class PassedTest:
    """The shadow test that went before a change, by the same approval."""

    change_id: str
    """Id of the test, which is a change of its own."""
    ended_at: datetime
    result: str
    """What it measured, in one sentence."""
    p95_s: float | None = None
    """p95 latency of before at the speed that the shadow showed, waiting included, seconds; None where not known."""


@dataclass(frozen=True, slots=True)
class ProvenStage:
    """The stage of a plan that was proven before another one, by the same approval."""

    number: int
    """1 is the change that the plan begins with."""
    change_id: str
    ended_at: datetime
    config_name: str
    """What it left the endpoint with."""
    counts: str
    """Variants and their counts then: ``AllTraffic=2``."""
    measured_usd_per_month: Decimal | None = None
    """What it and the stages before it save by measurement, US dollars a month; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change from its first intent to its end."""

    id: str
    proposal_id: str
    ref: EndpointRef
    owner: str
    variant: str
    option: Option
    saving_usd_per_month: Decimal
    created_at: datetime
    decided_at: datetime | None = None
    """When it was approved; None for a change of an earlier release, whose creation counts instead."""
    decided_by: str = ""
    """Who approved it, as `Decision.by`; empty of a later stage, and for a change of an earlier release."""
    approval_given_at: datetime | None = None
    """When that person or automatic mode approved it. `decided_at` is later after a shadow test: when that ended."""
    before: Before | None = None
    """None until preflight has passed."""
    met: AutoscalingBeforeRollback | None = None
    """Autoscaling as the last return found it; None until one takes it away."""
    plan: Plan = field(default_factory=Plan)
    state: ChangeState = ChangeState.PLANNED
    course: Course = Course.FORWARD
    ending: ChangeState | None = None
    """The end that course CLOSE leads to."""
    journal: tuple[Entry, ...] = ()
    next_due: datetime | None = None
    """When the tick looks again; None once closed."""
    not_before: datetime | None = None
    """No try begins earlier, whatever event or click asks: the back-off after a want of capacity. None: at once."""
    version: int = 0
    lease_until: datetime | None = None
    """Until then one invocation acts on it alone."""
    turn_mark: datetime | None = None
    """LastModifiedTime of the endpoint right before the last turn or return was asked for."""
    turned_at: datetime | None = None
    """When the turn was first seen to have arrived (law 2)."""
    returned_at: datetime | None = None
    failure: FailureClass = FailureClass.NONE
    back_for: FailureClass = FailureClass.NONE
    """Why the rollback began. `failure` becomes another where that way fails too."""
    reason: Reason | None = None
    """Why it ended, or is ending, as it does."""
    outcome: str = ""
    """How it stands, in one sentence."""
    remaining: tuple[str, ...] = ()
    """Command lines that a person has to run; only when handed over."""
    looks: int = 0
    """Looks since the last step; drives the back-off."""
    booked_until: datetime | None = None
    """Realised saving is in the ledger up to here."""
    booked_usd: Decimal = Decimal(0)
    """The realised saving that is in the ledger."""
    saves: bool = True
    """False once it was seen that the endpoint no longer runs what the change made: nothing more is booked."""
    instance_hours: float = 0.0
    """Instance hours of the changed variant since the turn, as the looks saw them."""
    fallback_hours: float = 0.0
    """Those of them that ran on another pool than the first, which saves nothing."""
    unseen_hours: float = 0.0
    """Those of them of which AWS did not show the pool; they are booked as saving nothing, and as unproven."""
    asleep_hours: float = 0.0
    """Hours since the turn in which office hours had the endpoint stopped."""
    counted_until: datetime | None = None
    tries: int = 0
    """Earlier tries that ended for want of capacity."""
    measured: Mapping[str, float] = field(default_factory=dict)
    """Since the turn: ``mean_s``, ``p95_s``, ``gpu_memory_percent`` (0 to 100 x GPUs), ``gpu_s`` over ``gpu_requests``;
    of a shadow test `changes.shadow_test_result` says what."""
    models: tuple[str, ...] = ()
    asked_back_by: str = ""
    """Who asked for the rollback."""
    objective_p95_s: float | None = None
    baseline: Mapping[str, float] = field(default_factory=dict)
    """Before the change: ``peak_hour_requests`` (also by variant: ``peak_hour_requests/name``), ``error_share``,
    ``errors_per_minute``, ``p95_s``, ``mean_s``, ``gpu_s`` over ``gpu_requests``, and what `changes.baseline` says."""
    leads_on: bool = False
    """Of a shadow test: whether the change itself follows by the same approval, where the test proves well."""
    after: PassedTest | None = None
    """The shadow test that the change follows; None where it follows none."""
    stages: tuple[Option, ...] = ()
    """What follows it by the same approval, once it is proven (`Recommendation.stages`)."""
    stage_before: ProvenStage | None = None
    """Of a later stage: the one before it; None of the first one, and of a change without stages."""
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """What a newer program stored with it and this one does not know; it is stored again, and nothing else."""

    def __post_init__(self) -> None:
        not_empty("Change.id", self.id)
        aware("Change.created_at", self.created_at)

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to do by itself."""
        return self.state in CLOSED or (self.state is ChangeState.APPLIED and self.next_due is None)

    @property
    def approved_at(self) -> datetime:
        """When it was approved, or was made where that is not known."""
        return self.decided_at or self.created_at

    @property
    def expires_at(self) -> datetime:
        """When its approval is too old for the endpoint's own update, where that was not made yet."""
        return self.approved_at + PATIENCE

    def is_resting(self, now: datetime) -> bool:
        """Whether its next try is still too early. Who asks for the rollback is not kept waiting."""
        begun, early = self.before is not None, self.not_before is not None and now < self.not_before
        return early and not begun and not self.asked_back_by

    @property
    def once_usd(self) -> Decimal:
        """One-time cost of the plan, US dollars: a shadow test alone, else the overlap of both fleets.

        A test that was proposed before options had `test_usd` has its price in `switch_usd`.
        """
        if self.plan.kind is PlanKind.SHADOW_TEST and self.option.test_usd:
            return self.option.test_usd
        return self.option.switch_usd

    @property
    def has_scaled_out(self) -> bool:
        """Whether the changed variant ran more instances since the turn, on average, than when it was planned."""
        old = next((v.count for v in (self.before.variants if self.before else ()) if v.name == self.variant), 0)
        if not old or self.turned_at is None or self.counted_until is None or self.counted_until <= self.turned_at:
            return False
        hours = (self.counted_until - self.turned_at).total_seconds() / 3600
        return self.instance_hours > 1.05 * old * hours

    @property
    def off_target_share(self) -> float:
        """Share of instance hours since the update that may not have run on the first pool, 0 to 1."""
        return (self.fallback_hours + self.unseen_hours) / self.instance_hours if self.instance_hours > 0 else 0.0

    @property
    def is_still_saving(self) -> bool:
        """Whether it is closed, stands, and its saving is still to be booked day by day."""
        stands = self.state in (ChangeState.PROVEN, ChangeState.APPLIED) and self.is_closed
        return stands and self.saves and self.plan.kind is PlanKind.CHANGE and self.booked_until is not None

    def leaves_to_person(self, step: Step) -> bool:
        """Whether the step is one of the lines that are left; rows of earlier releases name no Region in them."""
        return step.command(self.ref.region) in self.remaining or step.text in self.remaining

    def attempts(self, step: Step) -> int:
        """How often the step was begun since it was last done."""
        count = 0
        for entry in self.journal:
            if entry.step == step.key:
                count = 0 if entry.status == "done" else count + (entry.status == "intended")
        return count

    def last_entry(self, step: Step, *statuses: str) -> Entry | None:
        """The newest journal line of this step with one of these statuses."""
        return next((e for e in reversed(self.journal) if e.step == step.key and e.status in statuses), None)
