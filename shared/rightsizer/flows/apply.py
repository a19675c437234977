"""Carry out approved proposals: begin a change, advance it by its journal, tick, follow events, roll back on request.

Law 4: the intent is in the journal before each write; one invocation at a time holds the lease of a change. Killed at
any point, the next tick looks at AWS and goes on from what it sees. The time that an invocation has left enters as a
value, so that the flow does not know Lambda.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from rightsizer.changes.preflight import cooldown_deferral
from rightsizer.changes.shadow_test_result import change_id_after, passed_test
from rightsizer.changes.stages import (
    change_id_of_next,
    proposal_of_stage,
    proven_stage,
    stages_approved,
    unjudged_reason,
)
from rightsizer.domain.change import Change, ChangeState, Entry, JournalEvent, PassedTest, ProvenStage
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.hours_record import hours_id
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.ownership import named_owner
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.policy import TICK, ChangeLimits
from rightsizer.domain.policy_document import PolicyDocument, effective_limits
from rightsizer.domain.proposal import PATIENCE, Proposal, ProposalState, change_id_of, decider_name
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import ConflictError, InputError, ReadError, UnreadableError
from rightsizer.flows.advance_change import ChangeAdvancer
from rightsizer.flows.begin_change import ChangeStarter
from rightsizer.flows.change_capacity import CapacityChanges
from rightsizer.flows.notify import catch_send_errors, tell_once
from rightsizer.flows.orders import Orders
from rightsizer.flows.read_state import StateReader
from rightsizer.flows.record_change import ChangeRecorder
from rightsizer.ports.changes import Changer, EndedChangeBook, Journal, SavingsLedger
from rightsizer.ports.evaluation import MetricReader, Notifier, QuotaReader, RecommendationStore
from rightsizer.telemetry import Failure, attempt, count

if TYPE_CHECKING:
    from rightsizer.dimensions.dimension import Dimension

LEASE = timedelta(minutes=4)
"""Longer than one invocation may run, shorter than the tick: a killed invocation is taken over by the next tick."""
RESERVE_MS = 45_000
"""With less than this no further change is looked at: one look must end, and what is booked comes after it."""
BOOKS_RESERVE_MS = 30_000
"""With less than this no further saving is booked: the capacity changes come after."""

type TimeLeft = Callable[[], int]
"""Milliseconds until the invocation is ended from outside."""


def unlimited_ms() -> int:
    """A day in milliseconds: the time left for whoever calls a flow outside Lambda."""
    return 86_400_000


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """Change that answers the present approval of a proposal, with what went before it."""

    change: Change | None
    """None where it has no journal yet."""
    change_id: str
    test: PassedTest | None = None
    """The shadow test that went before it."""
    stage: ProvenStage | None = None
    """The stage of the plan that went before it."""

    def waits_since(self, proposal: Proposal) -> datetime:
        """Since when the approval waits for its change: the decision, or the end of what went before it."""
        before = self.stage or self.test
        decided = proposal.decision.at if proposal.decision else proposal.created_at
        return decided if before is None else before.ended_at


@dataclass(frozen=True, slots=True)
class Apply:
    """The flow of the `apply` door."""

    journal: Journal
    changer: Changer
    store: RecommendationStore
    ledger: SavingsLedger
    history: EndedChangeBook
    metrics: MetricReader
    quotas: QuotaReader
    catalogue: Catalogue
    dimensions: Sequence[Dimension]
    limits: ChangeLimits
    notifier: Notifier
    """Gets a notice of what a person should know: an end that is not proof, a change that cannot be read."""
    capacity_changes: CapacityChanges | None = None
    """Small changes outside the endpoints; None where nobody asked for them."""
    policy: PolicyDocument = field(default_factory=PolicyDocument)
    """What differs from `limits` for an endpoint."""
    stopped: Callable[[str], Sequence[StoppedTime]] = lambda _: ()
    """When office hours had an endpoint stopped, by its name."""

    def start(self, proposal_id: str, now: datetime) -> Change:
        """Begin the change of an approved proposal and advance it; the same approval twice is one change.

        A proposal that was refused (nothing was written), asked again and approved again begins a new change.

        Raises InputError when there is no such proposal or it is not approved, ConflictError when another change
        holds the endpoint (the proposal is withdrawn then).
        """
        proposal = self.store.proposal(proposal_id)
        if proposal is None:
            raise InputError(f"starting a change: there is no proposal {proposal_id}")
        answer = self.answer_to_approval(proposal)
        if answer.change is not None:
            return self.advance(answer.change.id, now) or answer.change
        if proposal.state is not ProposalState.APPROVED:
            raise InputError(f"starting a change: proposal {proposal_id} is {proposal.state.value}, not approved")
        if proposal.asked_back_by:
            raise InputError(
                f"starting a change: {decider_name(proposal.asked_back_by)} asked to stop proposal {proposal_id}"
            )
        change = self._create(proposal, answer, now)
        return self.advance(change.id, now) or change

    def change_of_approval(self, proposal: Proposal) -> Change | None:
        """The change that answers the present approval of the proposal, or None where there is none yet.

        After a shadow test that proved well it is the change that follows the test; after a proven stage the next one.
        """
        return self.answer_to_approval(proposal).change

    def stage_hold(self, proposal: Proposal, now: datetime) -> Reason | None:
        """Reason that the next stage of an approved plan does not begin yet; None where it may.

        It waits for an evaluation of what runs now, and for the rest between two changes. No change is made for it
        until then, since a change holds the endpoint: office hours would stop it on none of those nights. An approval
        that waited for `PATIENCE` is held no longer, so that it ends. Raises ReadError where the tags cannot be read.
        """
        answer = self.answer_to_approval(proposal)
        if answer.stage is None or answer.change is not None or now - answer.stage.ended_at > PATIENCE:
            return None
        try:
            newest = self.store.recommendation(proposal.ref.name)
        except UnreadableError as error:
            return Reason(Code.JUDGEMENT_UNKNOWN, f"the newest recommendation cannot be read: {error}")
        unjudged = unjudged_reason(answer.stage, proposal.ref.name, newest)
        if unjudged is not None:
            return unjudged
        option = proposal_of_stage(proposal, answer.stage).recommendation.chosen_option
        if option is None:
            return None
        cooldown = self._limits_for(proposal.ref, proposal.recommendation.owner).cooldown
        rests = cooldown_deferral(option, self.journal.last_change_at(proposal.ref.name), cooldown, now)
        return None if rests is None else Reason(Code.COOLDOWN, rests.sentence)

    def answer_to_approval(self, proposal: Proposal) -> ApprovalAnswer:
        """The change that answers the present approval, or comes next, with what went before it."""
        change_id = change_id_of(proposal)
        change = self.journal.load(change_id)
        if change is not None and is_approved_again(proposal, change):
            change_id = change_id_of(proposal, again=True)
            change = self.journal.load(change_id)
        test = passed_test(change) if change is not None and proposal.is_test_first else None
        if test is not None:
            change_id = change_id_after(test)
            change = self.journal.load(change_id)
        approval_answer = ApprovalAnswer(change, change_id, test)
        while approval_answer.change is not None and (stage := proven_stage(approval_answer.change)) is not None:
            change_id = change_id_of_next(stage)
            approval_answer = ApprovalAnswer(self.journal.load(change_id), change_id, stage=stage)
        return approval_answer

    def _create(self, proposal: Proposal, answer: ApprovalAnswer, now: datetime) -> Change:
        change_id, test, stage = answer.change_id, answer.test, answer.stage
        whole, before = proposal, stage or test
        if stage is not None:
            proposal = proposal_of_stage(proposal, stage)
        recommendation, option = proposal.recommendation, proposal.recommendation.chosen_option
        if option is None:
            raise InputError(f"starting a change: proposal {proposal.id} recommends no option")
        change = Change(
            id=change_id,
            proposal_id=proposal.id,
            ref=proposal.ref,
            owner=recommendation.owner,
            variant=recommendation.variant,
            option=option,
            saving_usd_per_month=option.saving_usd_per_month,
            created_at=now,
            decided_at=before.ended_at if before is not None else proposal.decision.at if proposal.decision else None,
            decided_by=proposal.decision.by if proposal.decision and stage is None else "",
            approval_given_at=proposal.decision.at if proposal.decision and stage is None else None,
            next_due=now,
            outcome="waits for its preflight",
            leads_on=test is None and proposal.is_test_first,
            after=test,
            stages=stages_approved(proposal) if test is not None or not proposal.is_test_first else (),
            stage_before=stage,
        )
        try:
            return self.journal.create(change)
        except ConflictError as error:
            known = self.journal.load(change_id)
            if known is not None:
                return known
            if self.is_asleep(proposal.ref.name):
                raise  # the approval stands: the tick finds it again once the endpoint is back
            self.end_approval(whole, ProposalState.WITHDRAWN, str(error))
            raise

    def end_approval(self, proposal: Proposal, state: ProposalState, why: str) -> None:
        """End an approval of which nothing more begins: in that state, or as proven where a stage of it stands."""
        stage = self.answer_to_approval(proposal).stage
        if stage is not None:
            text = f"{why.removesuffix('.')}; this ends the plan, and stage {stage.number} stands"
            self.store.follow(proposal.id, ProposalState.PROVEN, stage.change_id, text)
        else:
            self.store.follow(proposal.id, state, proposal.change_id if state is ProposalState.REJECTED else "", why)

    def is_asleep(self, endpoint: str) -> bool:
        """Whether the endpoint's office hours hold its lock: it is stopped, or being stopped or started."""
        return self.journal.holder_of(endpoint) == hours_id(endpoint)

    def roll_back(self, proposal: Proposal, now: datetime) -> Change | None:
        """Undo the change of a proposal, or stop it before it begins; asked again it is the same order.

        Of an approval that waits for its change, also after its shadow test, it is that change; where there is none yet
        the proposal is rejected, and None returned.

        Raises InputError when there is nothing to undo, ConflictError when another change holds the endpoint.
        """
        waits = proposal.state is ProposalState.APPROVED
        change = self.change_of_approval(proposal) if waits else self.journal.load(proposal.change_id)
        if change is not None and change.asked_back_by:
            return change
        if change is None and waits:
            text = f"{decider_name(proposal.asked_back_by)} stopped it before it began; nothing was changed"
            self.end_approval(proposal, ProposalState.REJECTED, text)
            catch_send_errors(self.notifier)(f"{proposal.ref.name}: stopped before it began", text)
            return None
        change_id = change.id if change is not None else proposal.change_id
        Orders(self.journal, self.changer.endpoint).request_rollback(change_id, proposal.asked_back_by, now)
        return self.advance(change_id, now)

    def tick(self, now: datetime, left: TimeLeft = unlimited_ms) -> tuple[Change, ...]:
        """Advance every change that is due.

        One that fails does not stop the others, and is told once a day.

        `left` says how many milliseconds there are. Those for which no time is left come first at the next tick, since
        the ones that were looked at are due later; `ChangesLate` counts them.
        """
        done, failed = [], 0
        due = self.journal.due(now)
        for number, change_id in enumerate(due):
            if left() < RESERVE_MS:
                count(ChangesLate=len(due) - number)
                break
            change = attempt("advancing a change", change_id, partial(self.advance, change_id, now))
            if isinstance(change, Failure):
                failed += 1
                stuck = Occurrence(f"stuck#{change_id}#{now:%Y-%m-%d}", now, "change-stuck", change_id, str(change))
                tell_once(self.ledger, self.notifier, stuck, f"change {change_id} could not be advanced")
            elif change is not None:
                done.append(change)
        count(ChangesStuck=failed)
        return tuple(done)

    def advance_endpoint(self, endpoint: str, now: datetime) -> Change | None:
        """An event says that the endpoint moved: look at its open change now. None when it has none."""
        change_id = self.journal.holder_of(endpoint)
        return self.advance(change_id, now) if change_id else None

    def advance(self, change_id: str, now: datetime) -> Change | None:
        """Advance one change as far as possible now; None for a missing or busy change."""
        try:
            change = self.journal.load(change_id)
        except UnreadableError as error:
            self.journal.park(change_id, str(error), now, catch_send_errors(self.notifier))
            return None
        if change is None or change.is_closed or change.is_resting(now):
            return change
        if change.lease_until is not None and now < change.lease_until:
            return None
        try:
            change = self.journal.save(replace(change, lease_until=now + LEASE, next_due=now + LEASE))
        except ConflictError:
            return None  # somebody else took it a moment ago
        outcome = attempt("advancing a change", change_id, partial(self._advance_leased, change, now))
        if not isinstance(outcome, Failure):
            return outcome
        if isinstance(outcome.error, ConflictError):
            return None  # our lease was over; whoever saved goes on
        return self._note_unreadable(change_id, outcome, now)

    def _advance_leased(self, change: Change, now: datetime) -> Change:
        return self._change_advancer(self.limits_of(change)).advance_change(change, now)

    def limits_of(self, change: Change) -> ChangeLimits:
        """The limits of the change by the policy document, with the endpoint's tags as they are now.

        Raises ReadError where its tags, which say its environment and owner, cannot be read before it begins. One that
        began goes on as in production.
        """
        return self._limits_for(change.ref, change.owner, began=change.before is not None)

    def _limits_for(self, ref: EndpointRef, owner: str, *, began: bool = False) -> ChangeLimits:
        if not self.policy:
            return self.limits
        tags: Mapping[str, str] = {}
        if self.policy.asks_for_subject:
            try:
                tags = self.changer.tags(ref)
                owner = named_owner(tags)
            except ReadError:
                if not began:
                    raise
        subject = self.policy.subject(ref.name, tags, owner)
        return effective_limits(self.limits, self.policy, subject)

    def _note_unreadable(self, change_id: str, error: Failure, now: datetime) -> Change | None:
        """Record that the look failed; retry later, and notify at the third failure and every twelfth after it."""
        change = self.journal.load(change_id)
        if change is None:
            return None
        looks = change.looks + 1
        if looks % 12 == 3:
            catch_send_errors(self.notifier)(f"change {change_id} of {change.ref.name} cannot be looked at", str(error))
        wait = TICK * min(looks, 12)
        note = Entry(now, JournalEvent.LOOK, "failed", str(error)[:500])
        return self.journal.save(
            replace(
                change,
                next_due=now + wait,
                lease_until=None,
                looks=looks,
                outcome=note.detail,
                journal=(*change.journal, note),
            )
        )

    def _change_advancer(self, limits: ChangeLimits) -> ChangeAdvancer:
        tell = catch_send_errors(self.notifier)
        starter = ChangeStarter(
            self.journal, self.changer, self.store, self.metrics, self.quotas, self.dimensions, tell
        )
        reader = StateReader(self.changer, self.metrics, limits)
        recorder = ChangeRecorder(self.store, self.ledger, self.history, tell, self.catalogue)
        return ChangeAdvancer(
            self.journal, self.changer, self.store, self.quotas, self.catalogue, limits, starter, reader, recorder
        )


def is_approved_again(proposal: Proposal, change: Change) -> bool:
    """Whether somebody approved the proposal after its first change was refused, or after its shadow test was over.

    Such a proposal is withdrawn (of a test that passed, since what follows it was refused) and may be asked again under
    the same id. Nothing of it is in force, so that the later approval is a change of its own.
    """
    if proposal.decision is None:
        return False
    if change.is_closed and change.plan.kind is PlanKind.SHADOW_TEST:
        return proposal.decision.at > change.journal[-1].at
    return change.state is ChangeState.REFUSED and proposal.decision.at > change.created_at
