"""A change from its approval to its end, in memory: journal, books and the account are Python objects.

The decisions are those of the apply flow: preflight, plan, next action, proof, way back. A course takes milliseconds
here, so that a rule about a journal and what AWS shows is tested here. The simulated account (`tests/changing`) holds
what only AWS can refuse, forget or keep apart.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, cast

from rightsizer import catalog
from rightsizer.catalog import catalogue
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.change import Change
from rightsizer.domain.endpoint import EndpointKind, ScalableTarget
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.history import History, PastChange
from rightsizer.domain.message import Message, Notice
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.outcome import LedgerEntry, Occurrence, UnreadRow
from rightsizer.domain.plan import PlanKind, StepKind
from rightsizer.domain.policy import BudgetShare, ChangeLimits, Switch
from rightsizer.domain.proposal import UNDOABLE, Decision, MessageRef, Proposal, ProposalState, change_id_of
from rightsizer.domain.recommendation import Recommendation
from rightsizer.errors import ConflictError, RightsizerError, UnreadableError
from rightsizer.flows.apply import Apply
from rightsizer.flows.orders import Orders
from tests import samples
from tests.changes.account import BODY, MONDAY, NAME, NEW_TYPE, OLD, WHO, Account, Load

LIMITS = ChangeLimits(probation=timedelta(hours=2), rewire_alarms=True)
TRACKING = {
    **WHO,
    "PolicyName": "track",
    "PolicyType": "TargetTrackingScaling",
    "PolicyARN": "arn:aws:autoscaling:eu-west-1:111122223333:scalingPolicy:0:track",
    "TargetTrackingScalingPolicyConfiguration": {
        "TargetValue": 100.0,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
    },
}
NIGHT = {
    **WHO,
    "ScheduledActionName": "night",
    "Schedule": "cron(0 22 * * ? *)",
    "Timezone": "Europe/Berlin",
    "ScalableTargetAction": {"MinCapacity": 1, "MaxCapacity": 2},
}


def autoscaled(low: int = 1, high: int = 4, *scheduled: Mapping[str, Any]) -> ScalableTarget:
    """Target tracking between two bounds."""
    return ScalableTarget(
        str(WHO["ResourceId"]), str(WHO["ScalableDimension"]), low, high, policies=(TRACKING,), scheduled=scheduled
    )


SAVING = samples.option().saving_usd_per_month


def an_option(**changes: Any) -> Option:
    made = samples.option(kind=OptionKind.INSTANCE_TYPE, target=Target(NEW_TYPE, 1))
    return replace(made, **changes)


class Proposals(dict[str, Proposal]):
    """The proposals by id; called, those in such a state, as the store names them."""

    def __call__(
        self, states: tuple[ProposalState, ...], unread: list[UnreadRow] | None = None
    ) -> tuple[Proposal, ...]:
        return tuple(one for one in self.values() if one.state in states)


@dataclass
class Kept:
    """Journal, store, ledger and past of one account, with the conditions that DynamoDB would put on a write."""

    account: Account
    changes: dict[str, Change] = field(default_factory=dict)
    locks: dict[str, str] = field(default_factory=dict)
    last: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    lasting: dict[str, str] = field(default_factory=dict)
    budgets: dict[str, tuple[int, Decimal]] = field(default_factory=dict)
    frozen: Switch = field(default_factory=Switch)
    proposals: Proposals = field(default_factory=Proposals)
    newest: Recommendation | None = None
    unreadable: bool = False
    """Whether a newer release wrote the newest judgement."""
    made: datetime = MONDAY - timedelta(days=90)
    booked_entries: dict[str, LedgerEntry] = field(default_factory=dict)
    noted: dict[str, Occurrence] = field(default_factory=dict)
    past: dict[str, PastChange] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    """Proposals whose order to go back, or to stop, was taken."""

    def load(self, change_id: str) -> Change | None:
        return self.changes.get(change_id)

    def create(self, change: Change) -> Change:
        if change.id in self.changes:
            raise ConflictError(f"starting change {change.id}: the change exists")
        self._lock(f"ENDPOINT {change.ref.name}", change.id)
        return self._put(replace(change, version=0))

    def begin(self, change: Change, share: BudgetShare) -> Change:
        count, spent = self.budgets.get(share.day, (0, Decimal(0)))
        if not share.room.has(count, Decimal(spent)):
            raise ConflictError(f"the budget of {share.day} ({share.limit}) is spent")
        for model in change.models:
            self._lock(f"MODEL {model}", change.id)
        self.budgets[share.day] = (count + 1, Decimal(spent) + share.usd)
        return self._put(change)

    def save(self, change: Change) -> Change:
        stored = self._put(change)
        if stored.is_closed:
            if any(entry.status == "intended" for entry in stored.journal):
                if stored.plan.kind is not PlanKind.SHADOW_TEST:
                    self.lasting[stored.ref.name] = stored.id
                self.last[stored.ref.name] = (stored.id, stored.journal[-1].at)
            self.locks = {name: held for name, held in self.locks.items() if held != stored.id}
        return stored

    def reopen(self, change: Change) -> Change:
        self._lock(f"ENDPOINT {change.ref.name}", change.id)
        return self._put(change)

    def save_booking(self, change: Change) -> Change:
        return self._put(change)

    def _put(self, change: Change) -> Change:
        known = self.changes.get(change.id)
        if known is not None and known.version != change.version:
            raise ConflictError(f"saving change {change.id}: somebody saved it in between")
        self.changes[change.id] = replace(change, version=change.version + 1)
        return self.changes[change.id]

    def _lock(self, name: str, change_id: str) -> None:
        if self.locks.setdefault(name, change_id) != change_id:
            raise ConflictError(f"{name} is held by another change")

    def due(self, now: datetime) -> tuple[str, ...]:
        rows = [(c.next_due, c.id) for c in self.changes.values() if not c.is_closed and c.next_due is not None]
        return tuple(name for due, name in sorted(rows) if due <= now)

    def open_changes(self, unread: list[UnreadRow] | None = None) -> Iterator[Change]:
        return (change for change in self.changes.values() if not change.is_closed)

    def holder_of(self, endpoint: str) -> str:
        return self.locks.get(f"ENDPOINT {endpoint}", "")

    def last_change(self, endpoint: str) -> str:
        return self.last[endpoint][0] if endpoint in self.last else ""

    def last_lasting_change(self, endpoint: str) -> str:
        return self.lasting.get(endpoint, "")

    def last_change_at(self, endpoint: str) -> datetime | None:
        return self.last[endpoint][1] if endpoint in self.last else None

    def switch(self) -> Switch:
        return self.frozen

    def set_switch(self, switch: Switch) -> None:
        self.frozen = switch

    def recommendation(self, endpoint: str) -> Recommendation | None:
        if self.unreadable:
            raise UnreadableError("schema 99 is newer than this release")
        return self.newest

    def judge(self, found: Recommendation) -> None:
        """A newer evaluation is stored."""
        self.newest, self.unreadable = found, False

    def created_at(self) -> datetime:
        return self.made

    def proposal(self, proposal_id: str) -> Proposal | None:
        return self.proposals.get(proposal_id)

    def follow(
        self, proposal_id: str, state: ProposalState, change_id: str, outcome: str, *, measured: Decimal | None = None
    ) -> None:
        found = self.proposals[proposal_id]
        made = replace(found, state=state, change_id=change_id, outcome=outcome)
        if state is ProposalState.PROVEN and proposal_id in self.settled:
            made = replace(made, asked_back_by="", asked_back_at=None)
        self.proposals[proposal_id] = made if measured is None else replace(made, measured_usd_per_month=measured)

    def rollback_request(self, proposal_id: str) -> Proposal | None:
        found = self.proposals[proposal_id]
        return found if found.asked_back_by and proposal_id not in self.settled else None

    def rollback_requests(
        self, *, everything: bool = False, unread: list[UnreadRow] | None = None
    ) -> Iterator[Proposal]:
        return (p for p in tuple(self.proposals.values()) if self.rollback_request(p.id) is not None)

    def settle_rollback_request(self, proposal_id: str, *, is_over: bool = False) -> None:
        self.settled.add(proposal_id)
        if is_over and self.proposals[proposal_id].state in UNDOABLE:
            self.proposals[proposal_id] = replace(self.proposals[proposal_id], asked_back_by="", asked_back_at=None)

    def book(self, entry: LedgerEntry) -> None:
        self.booked_entries[entry.id] = entry

    def entries(self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None) -> Iterator[LedgerEntry]:
        return (entry for entry in self.booked_entries.values() if start <= entry.at < end)

    def note(self, occurrence: Occurrence) -> bool:
        return self.noted.setdefault(occurrence.key, occurrence) is occurrence

    def is_noted(self, key: str) -> bool:
        return key in self.noted

    def record(self, endpoint: str, change_id: str, past: PastChange) -> None:
        self.past[change_id] = past

    def history(self, endpoint: str) -> History:
        return History(endpoint=tuple(sorted(self.past.values(), key=lambda one: one.at)))


@dataclass
class World:
    """One endpoint, one approved proposal, and the flow that carries it out."""

    account: Account
    kept: Kept
    apply: Apply
    proposal: Proposal
    told: list[tuple[str, str]]

    @property
    def now(self) -> datetime:
        return self.account.now

    @property
    def change(self) -> Change:
        return self.kept.changes[change_id_of(self.proposal)]

    def start(self) -> Change:
        return self.apply.start(self.proposal.id, self.now)

    def advance(self, by: timedelta) -> None:
        """Time passes, and nobody looks."""
        self.account.advance_to(self.now + by)

    def run(self, hours: float) -> Change:
        """Ticks, each when the next look is due, until the change is closed or the time is over."""
        end = self.now + timedelta(hours=hours)
        change = self.change
        while self.now < end and not change.is_closed:
            due = change.next_due or end
            self.advance(max(min(due, end) - self.now, timedelta(minutes=1)))
            self.apply.tick(self.now)
            change = self.change
        return change

    def until(self, reached: Callable[[Change], object], hours: float = 12) -> Change:
        """Ticks of every minute until the change is there; it has to come there."""
        for _ in range(int(hours * 60)):
            if reached(self.change):
                return self.change
            self.advance(timedelta(minutes=1))
            self.apply.tick(self.now)
        raise AssertionError(f"not reached: {self.change.outcome}")

    def upto(self, kind: StepKind) -> Change:
        """Ticks until the journal has begun a write of this kind."""
        return self.until(lambda change: any(entry.detail == kind.value for entry in change.journal))

    def ask_back(self, by: str = "U1") -> None:
        Orders(cast("Any", self.kept)).request_rollback(self.change.id, by, self.now)

    def freeze(self, *, hard: bool = False) -> None:
        self.kept.set_switch(Switch(True, hard, "U1", self.now))

    def thaw(self) -> None:
        self.kept.set_switch(Switch())

    def limit(self, **changes: Any) -> None:
        """The stack is deployed again with other settings."""
        self.apply = replace(self.apply, limits=replace(self.apply.limits, **changes))

    def shown(self) -> Proposal:
        return self.kept.proposals[self.proposal.id]

    def past(self) -> tuple[PastChange, ...]:
        return self.kept.history(NAME).endpoint

    def judged(self, *counts: int, **changes: Any) -> None:
        """A newer evaluation of the endpoint, that saves less with each instance; what is approved stays approved."""
        options = tuple(an_option(target=Target(NEW_TYPE, n), saving_usd_per_month=SAVING / n) for n in counts)
        fields: dict[str, Any] = {"evaluated_at": self.now + timedelta(seconds=1), "options": options} | changes
        self.kept.judge(replace(self.proposal.recommendation, **fields))

    def refuse(self, kind: StepKind, error: RightsizerError, times: int = 10**6) -> None:
        """AWS does not make so many writes of a kind."""
        left = [times]

        def refuses(step: Any) -> RightsizerError | None:
            if step.kind is not kind or left[0] <= 0:
                return None
            left[0] -= 1
            return error

        self.account.refuses = refuses

    def heal(self) -> None:
        self.account.refuses = lambda step: None


@cache
def known_types() -> Catalogue:
    return catalogue(catalog.instances(), catalog.accelerators())


def _approved(made: Recommendation, by: str) -> Proposal:
    return samples.proposal(
        recommendation=made,
        created_at=MONDAY,
        expires_at=MONDAY + timedelta(days=14),
        state=ProposalState.APPROVED,
        decision=Decision(ProposalState.APPROVED, by, MONDAY),
    )


@dataclass(frozen=True, slots=True)
class Told:
    """A channel that keeps the notices, subject and body."""

    notices: list[tuple[str, str]]

    def post(self, message: Message) -> None:
        assert isinstance(message, Notice), "a change tells by notices; proposals are told by their stream"
        self.notices.append((message.subject, message.body))

    def update(self, ref: MessageRef, message: Message) -> None:
        raise AssertionError(f"a change updates no message, {ref} was asked for {message}")


def world(
    option: Option | None = None,
    *,
    limits: ChangeLimits | None = None,
    scaling: ScalableTarget | None = None,
    count: int = 1,
    load: Load | None = None,
    by: str = "slack:U1",
    tags: Mapping[str, str] | None = None,
    kind: EndpointKind = EndpointKind.REAL_TIME,
    proposed: Mapping[str, Any] | None = None,
    **judged: Any,
) -> World:
    """The endpoint `chat` and an approved proposal for it; `judged` are fields of its recommendation."""
    variant = {**BODY["ProductionVariants"][0], "InitialInstanceCount": count}
    account = Account(configs={OLD: {**BODY, "ProductionVariants": [variant]}})
    if tags is not None:
        account.endpoint_tags = dict(tags)
    if scaling is not None:
        account.targets[scaling.resource_id] = scaling
    if load is not None:
        account.load = lambda at, name, kind: load
    fields: dict[str, Any] = {
        "evaluated_at": MONDAY,
        "fingerprint": f"{OLD}|{account.modified.isoformat()}|AllTraffic={count}",
        "options": (option or an_option(),),
        "kind": kind,
    }
    made = samples.recommendation(NAME, **(fields | judged))
    proposal = replace(_approved(made, by), **(proposed or {}))
    kept = Kept(account, proposals=Proposals({proposal.id: proposal}), newest=made)
    books, told = cast("Any", kept), Told([])
    apply = Apply(
        journal=books,
        changer=account,
        store=books,
        ledger=books,
        history=books,
        metrics=account,
        quotas=account,
        catalogue=known_types(),
        dimensions=DIMENSIONS,
        limits=samples.with_approver(limits or LIMITS, by),
        notifier=told,
    )
    return World(account, kept, apply, proposal, told.notices)
