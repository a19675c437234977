"""Advance one change as far as possible now: read, decide, write, and record the result.

Law 4: the intent is in the journal before each write. The next move follows from what AWS shows, never from memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from rightsizer.autoscaling.scheduled_actions import change_due_now
from rightsizer.changes import rollback, rollback_size
from rightsizer.changes.ending import finish_change, handover_text, steer_change
from rightsizer.changes.failure import drop_metrics_config, error_detail, next_try
from rightsizer.changes.measurement import add_measurements
from rightsizer.changes.reconcile import next_action
from rightsizer.changes.reconcile.drift import owners_figures
from rightsizer.changes.rollback import change_with_recorded_autoscaling, is_taking_autoscaling, with_autoscaling
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import Gone, LiveState
from rightsizer.domain.next_action import Do, Finish, Replan, Steer, Wait
from rightsizer.domain.option import Option
from rightsizer.domain.plan import PlanKind, Step, StepKind
from rightsizer.domain.policy import TICK, ChangeLimits, Switch
from rightsizer.domain.proposal import ProposalState
from rightsizer.errors import RightsizerError
from rightsizer.flows import read_state
from rightsizer.flows.begin_change import ChangeStarter
from rightsizer.flows.read_state import ImageComparison, StateReader
from rightsizer.flows.record_change import (
    ChangeRecorder,
    tell_of_missing_autoscaling,
    tell_of_restored_autoscaling,
)
from rightsizer.ports.changes import Changer, Journal
from rightsizer.ports.evaluation import QuotaReader, RecommendationStore
from rightsizer.telemetry import logger

BUDGET = 40
"""Moves of one invocation."""
TURNING = frozenset({StepKind.UPDATE_ENDPOINT, StepKind.SET_CAPACITY, StepKind.SET_COPIES, StepKind.UPDATE_COMPONENT})
"""The writes after which the endpoint serves differently; LastModifiedTime is noted right before them."""


@dataclass(frozen=True, slots=True)
class ChangeAdvancer:
    """The moves of one invocation that holds the lease of a change."""

    journal: Journal
    changer: Changer
    store: RecommendationStore
    quotas: QuotaReader
    catalogue: Catalogue
    limits: ChangeLimits
    starter: ChangeStarter
    reader: StateReader
    recorder: ChangeRecorder

    def advance_change(self, change: Change, now: datetime) -> Change:
        """Begin the change where it has no plan yet, and make move after move until it waits or is over."""
        if change.before is None:
            change = self._begun(change, now)
            if change.is_closed or change.before is None:
                return change
        for _ in range(BUDGET):
            switch, live = self._switch(), self._gather(change, now)
            change = tell_of_restored_autoscaling(change, live, now, self.recorder.tell)
            change = self._enlarge_rollback(add_measurements(change, live, now), live, now)
            if is_taking_autoscaling(change, live):
                change = with_autoscaling(change, live, self._step_alarms(live), now)
            view = change_with_recorded_autoscaling(change_due_now(change, now), now)
            due = rollback_size.raise_in_place(view.change, live)
            move = next_action(due, live, now, switch)
            change, move = read_state.check_recommendation(self.store, change, move, now, self.recorder.tell)
            match move:
                case Do():
                    change = self._compare_images(change, move.step, live, now, view.said.get(move.step.text, ""))
                case Steer():
                    change = self._steer(change, move, now, live)
                case Wait():
                    return self._wait(change, move, now)
                case Replan():
                    change = self._replan(change, move, now)
                case Finish():
                    return self._finish(change, due, move, live, now)
        return self._wait(change, Wait(now + TICK, "this invocation has made all the moves it may"), now)

    def _begun(self, change: Change, now: datetime) -> Change:
        """The change with its plan; closed where it was refused, and without a plan where it waits."""
        change = self.starter.begin(change, now, self.catalogue, self.limits)
        if change.is_closed:
            return self.journal.save(self.recorder.publish(change, now))
        if change.before is not None:
            self.recorder.publish(change, now)
        return change

    def _gather(self, change: Change, now: datetime) -> LiveState:
        """What AWS shows now, with what holds the first write. Raises ReadError."""
        hold = self.starter.start_hold(change, now, self.limits)
        return replace(self.reader.read_state(change, now), hold=hold)

    def _enlarge_rollback(self, change: Change, live: LiveState, now: datetime) -> Change:
        """The change with a rollback large enough for the present fleet; unchanged where it is.

        Raises ReadError when the old configuration could not be read.
        """
        decided, endpoint = rollback.settled_change(change, live, now), live.endpoint
        if decided is not None or isinstance(endpoint, Gone):
            return decided or change
        change = rollback.keep_owner_edits(change, live, now)
        quotas = self._known_quotas() if rollback.is_quota_needed(change, endpoint, now) else {}
        change = rollback.limit_batches(change, endpoint, quotas)
        wanted = rollback.needed_counts(change, endpoint, quotas, now)
        if not wanted or change.before is None:
            return change
        source = self.changer.config(change.before.config_name) if change.plan.new_config else None
        given = rollback.RollbackInput(quotas, self.catalogue, source)
        return rollback.enlarge(change, endpoint, wanted, given, now)

    def _known_quotas(self) -> Mapping[str, int]:
        """Quotas by instance type; none where they cannot be read now, since a rollback must not wait for them."""
        try:
            return self.quotas.endpoint_quotas()
        except RightsizerError as error:
            logger.warning("the quotas are not known for a rollback", extra={"why": str(error)})
            return {}

    def _step_alarms(self, live: LiveState) -> tuple[Mapping[str, Any], ...]:
        """The alarms that start the step policies which the endpoint has now. Raises ReadError."""
        policies = [policy for target in live.scaling or () for policy in target.policies]
        arns = [policy["PolicyARN"] for policy in policies if policy.get("PolicyType") == "StepScaling"]
        return tuple(self.changer.alarms_with_actions(arns)) if arns else ()

    def _switch(self) -> Switch:
        """The freeze switch, read for each move, since one invocation may make many.

        A stack that was told to change nothing makes no forward step either; what goes back goes on (decision 20).
        """
        switch = self.journal.switch()
        return replace(switch, frozen=True, by="MayChange=nothing or read-only") if self.limits.dry_run else switch

    def _compare_images(self, change: Change, step: Step, live: LiveState, now: datetime, text: str) -> Change:
        """The step is done, unless it would deploy other code than what runs."""
        met = ImageComparison(self.changer, self.store, self.recorder.tell).check_before_step(change, step, live, now)
        if isinstance(met, Steer):
            return self._steer(change, met, now, live)
        return self._do_step(_note_schedule(met, text, now), step, live, now)

    def _do_step(self, change: Change, step: Step, live: LiveState, now: datetime) -> Change:
        """Intent to the journal, then the write, then what came of it."""
        mark = change.turn_mark
        if step.kind in TURNING and live.endpoint.kind == "endpoint":
            mark = live.endpoint.modified_at
        state = ChangeState.RETURNING if change.course is Course.BACK else change.state
        state = ChangeState.RUNNING if state is ChangeState.PLANNED else state
        intended = Entry(now, step.key, "intended", step.kind.value)
        change = self.journal.save(
            replace(change, state=state, turn_mark=mark, looks=0, journal=(*change.journal, intended))
        )
        try:
            self.changer.perform(step)
        except RightsizerError as error:
            change, text = drop_metrics_config(change, step, error)
            result = Entry(now, step.key, "failed", text or error_detail(error))
        else:
            result = Entry(now, step.key, "done")
        change = self.journal.save(replace(change, journal=(*change.journal, result)))
        if result.status == "done":
            return change
        told = tell_of_missing_autoscaling(change, step, live, result, self.recorder.tell)
        return change if told is change else self.journal.save(told)

    def _replan(self, change: Change, move: Replan, now: datetime) -> Change:
        """Make the plan again, before anything serves differently. What the plan before made stays and is listed."""
        made = self.starter.plan_again(change, now, self.catalogue, self.limits)
        if not isinstance(made, Change):
            reason = replace(made[0], sentence=f"{move.reason.sentence}; {'; '.join(r.sentence for r in made)}")
            return self._steer(change, Steer(reason, Course.CLOSE, ChangeState.REFUSED, FailureClass.OUTSIDE), now)
        note = Entry(now, JournalEvent.MOVED, "noted", move.reason.sentence[:500])
        return self.journal.save(replace(made, looks=0, journal=(*change.journal, note, made.journal[-1])))

    def _steer(self, change: Change, move: Steer, now: datetime, live: LiveState | None = None) -> Change:
        steered = steer_change(change, move, now)
        handed = steered.ending is ChangeState.HANDED_OVER and change.plan.kind is not PlanKind.DELETE
        if handed and change.ending is not ChangeState.HANDED_OVER:
            text = handover_text(steered, live)
            self.recorder.warn_of_handover(steered, text)
        # booked before it is saved: it may be repeated, and a crash in between is made good
        self.recorder.book_savings(change, steered, now)
        return self.journal.save(steered)

    def _wait(self, change: Change, move: Wait, now: datetime) -> Change:
        until = max(move.until, now + timedelta(minutes=1))
        return self.journal.save(
            replace(change, next_due=until, lease_until=None, looks=change.looks + 1, outcome=move.why)
        )

    def _finish(self, change: Change, due: Change, move: Finish, live: LiveState, now: datetime) -> Change:
        """Books and messages first: they may be repeated, the closed change is not looked at again.

        What differs is told by the autoscaling that is `due` now; the plan stays as it was made.
        """
        options = ranked_options(self.store, change)
        planned = next_try(change, move.state, now, options)
        if planned is not None:
            self.recorder.remember_no_capacity(change, planned, now)
            self.store.follow(change.proposal_id, ProposalState.APPLYING, change.id, planned.outcome)
            return self.journal.save(planned)
        closed = replace(finish_change(due, move, live, now, owners_figures(change, live)), plan=change.plan)
        return self.journal.save(self.recorder.publish(closed, now))


def _note_schedule(change: Change, text: str, now: datetime) -> Change:
    """The change with a line about a scheduled action that is made good, once."""
    if not text or any(entry.step == JournalEvent.SCHEDULE and entry.detail == text for entry in change.journal):
        return change
    return replace(change, journal=(*change.journal, Entry(now, JournalEvent.SCHEDULE, "noted", text)))


def ranked_options(store: RecommendationStore, change: Change) -> tuple[Option, ...]:
    """The options of the change's proposal, where automatic mode decided on it and capacity lacked; else ()."""
    if change.failure is not FailureClass.CAPACITY:
        return ()
    proposal = store.proposal(change.proposal_id)
    if proposal is None or proposal.decision is None or not proposal.decision.is_automatic:
        return ()
    return proposal.recommendation.options
