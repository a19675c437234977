"""Walk one change as far as it goes now: look, decide, write, and follow what came of it.

Law 4: the intent is in the journal before each write. The next move follows from what AWS shows, never from memory.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer.autoscaling.scheduled_actions import as_due
from rightsizer.changes import rollback_size
from rightsizer.changes.failure import again, without_metrics
from rightsizer.changes.measurement import measured
from rightsizer.changes.reconcile import advance
from rightsizer.changes.rollback import as_met, takes_autoscaling, with_autoscaling
from rightsizer.domain.change import (
    Change,
    ChangeState,
    Course,
    Do,
    Entry,
    FailureClass,
    Finish,
    JournalEvent,
    Replan,
    Steer,
    Wait,
)
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import Sight
from rightsizer.domain.option import Option
from rightsizer.domain.plan import PlanKind, Step, StepKind
from rightsizer.domain.policy import ChangeLimits, Switch
from rightsizer.domain.proposal import ProposalState
from rightsizer.errors import RightsizerError
from rightsizer.flows import notify, read_state
from rightsizer.flows.begin_change import Beginning
from rightsizer.flows.read_state import Comparing, Looking
from rightsizer.flows.record_change import Following
from rightsizer.flows.roll_back import Returning
from rightsizer.ports.changes import Changer, Journal
from rightsizer.ports.evaluation import RecommendationStore

BUDGET = 40
"""Moves of one invocation."""
LOOK_AGAIN = timedelta(minutes=5)
TURNING = frozenset({StepKind.UPDATE_ENDPOINT, StepKind.SET_CAPACITY, StepKind.SET_COPIES, StepKind.UPDATE_COMPONENT})
"""The writes after which the endpoint serves differently; LastModifiedTime is noted right before them."""


@dataclass(frozen=True, slots=True)
class Walking:
    """The moves of one invocation that holds the lease of a change."""

    journal: Journal
    changer: Changer
    store: RecommendationStore
    catalogue: Catalogue
    limits: ChangeLimits
    beginning: Beginning
    looking: Looking
    following: Following
    returning: Returning

    def walk(self, change: Change, now: datetime) -> Change:
        """Begin the change where it has no plan yet, and make move after move until it waits or is over."""
        if change.before is None:
            change = self._begun(change, now)
            if change.closed or change.before is None:
                return change
        for _ in range(BUDGET):
            sight = replace(self.looking.look(change, now), hold=self.beginning.hold(change, now, self.limits))
            change = self.returning.grown(measured(change, sight, now), sight, now)
            if takes_autoscaling(change, sight):
                change = with_autoscaling(change, sight, self.returning.step_alarms(sight), now)
            change = notify.over(change, sight, now, self.following.tell)
            view = as_met(as_due(change, now), now)
            due = rollback_size.in_place(view.change, sight)
            move = advance(due, sight, now, self._switch())
            change, move = read_state.heard(self.store, change, move, now, self.following.tell)
            match move:
                case Do():
                    change = self._compared(change, move.step, sight, now, view.said.get(move.step.command, ""))
                case Steer():
                    change = self._steer(change, move, now, sight)
                case Wait():
                    return self._wait(change, move, now)
                case Replan():
                    change = self._replan(change, move, now)
                case Finish():
                    return self._finish(change, due, move, sight, now)
        return self._wait(change, Wait(now + LOOK_AGAIN, "this invocation has made all the moves it may"), now)

    def _begun(self, change: Change, now: datetime) -> Change:
        """The change with its plan; closed where it was refused, and without a plan where it waits."""
        change = self.beginning.begin(change, now, self.catalogue, self.limits)
        if change.closed:
            return self.journal.save(self.following.follow(change, now))
        if change.before is not None:
            self.following.follow(change, now)
        return change

    def _switch(self) -> Switch:
        """The freeze switch, read for each move, since one invocation may make many.

        A stack that was told to change nothing makes no forward step either; what goes back goes on (decision 20).
        """
        switch = self.journal.switch()
        return replace(switch, frozen=True, by="MayChange=nothing or read-only") if self.limits.dry_run else switch

    def _compared(self, change: Change, step: Step, sight: Sight, now: datetime, said: str) -> Change:
        """The step is done, unless it would deploy other code than what runs."""
        met = Comparing(self.changer, self.store, self.following.tell).before(change, step, sight, now)
        if isinstance(met, Steer):
            return self._steer(change, met, now, sight)
        return self._do(_noted(met, said, now), step, sight, now)

    def _do(self, change: Change, step: Step, sight: Sight, now: datetime) -> Change:
        """Intent to the journal, then the write, then what came of it."""
        mark = change.turn_mark
        if step.kind in TURNING and sight.endpoint.kind == "endpoint":
            mark = sight.endpoint.modified_at
        state = ChangeState.RETURNING if change.course is Course.BACK else change.state
        state = ChangeState.RUNNING if state is ChangeState.PLANNED else state
        intended = Entry(now, step.key, "intended", step.kind.value)
        change = self.journal.save(
            replace(change, state=state, turn_mark=mark, looks=0, journal=(*change.journal, intended))
        )
        try:
            self.changer.perform(step)
        except RightsizerError as error:
            change, said = without_metrics(change, step, error)
            result = Entry(now, step.key, "failed", said or Following.meaning(error))
        else:
            result = Entry(now, step.key, "done")
        change = self.journal.save(replace(change, journal=(*change.journal, result)))
        if result.status == "done":
            return change
        told = notify.refused(change, step, sight, result, self.following.tell)
        return change if told is change else self.journal.save(told)

    def _replan(self, change: Change, move: Replan, now: datetime) -> Change:
        """Nothing serves differently yet. What was made for the plan before is made again, or stays and is listed."""
        made = self.beginning.again(change, now, self.catalogue, self.limits)
        if not isinstance(made, Change):
            reason = replace(made[0], sentence=f"{move.reason.sentence}; {'; '.join(r.sentence for r in made)}")
            return self._steer(change, Steer(reason, Course.CLOSE, ChangeState.REFUSED, FailureClass.OUTSIDE), now)
        note = Entry(now, JournalEvent.MOVED, "noted", move.reason.sentence[:500])
        return self.journal.save(replace(made, looks=0, journal=(*change.journal, note, made.journal[-1])))

    def _steer(self, change: Change, move: Steer, now: datetime, sight: Sight | None = None) -> Change:
        steered = self.following.steered(change, move, now)
        handed = steered.ending is ChangeState.HANDED_OVER and change.plan.kind is not PlanKind.DELETE
        if handed and change.ending is not ChangeState.HANDED_OVER:
            self.following.warn(steered, sight)
        self.following.book(change, steered, now)  # first: it may be repeated, and a crash in between is made good
        return self.journal.save(steered)

    def _wait(self, change: Change, move: Wait, now: datetime) -> Change:
        until = max(move.until, now + timedelta(minutes=1))
        return self.journal.save(
            replace(change, next_due=until, lease_until=None, looks=change.looks + 1, outcome=move.why)
        )

    def _finish(self, change: Change, due: Change, move: Finish, sight: Sight, now: datetime) -> Change:
        """Books and messages first: they may be repeated, the closed change is not looked at again.

        What differs is told by the autoscaling that is `due` now; the plan stays as it was made.
        """
        options = ranking(self.store, change)
        planned = again(change, move.state, now, options)
        if planned is not None:
            self.following.lacked(change, planned, now)
            self.store.follow(change.proposal_id, ProposalState.APPLYING, change.id, planned.outcome)
            return self.journal.save(planned)
        closed = replace(self.following.finished(due, move, sight, now), plan=change.plan)
        return self.journal.save(self.following.follow(closed, now))


def _noted(change: Change, said: str, now: datetime) -> Change:
    """The change with a line about a scheduled action that is made good, once."""
    if not said or any(entry.step == JournalEvent.SCHEDULE and entry.detail == said for entry in change.journal):
        return change
    return replace(change, journal=(*change.journal, Entry(now, JournalEvent.SCHEDULE, "noted", said)))


def ranking(store: RecommendationStore, change: Change) -> tuple[Option, ...]:
    """The options of the change's proposal, where automatic mode decided on it and capacity lacked; else ()."""
    if change.failure is not FailureClass.CAPACITY:
        return ()
    proposal = store.proposal(change.proposal_id)
    if proposal is None or proposal.decision is None or not proposal.decision.is_automatic:
        return ()
    return proposal.recommendation.options
