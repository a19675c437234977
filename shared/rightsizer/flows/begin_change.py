"""Begin a change: read the preflight inputs, check them, plan, take the locks; nothing is written to AWS yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rightsizer.changes import failure, plan, preflight, proof, start_limits
from rightsizer.changes.approval import approver_refusal
from rightsizer.changes.baseline import HABIT_SIGNALS, habit_start, slowness_before, usual_overhead_s
from rightsizer.changes.overruled import closing_reasons
from rightsizer.changes.reconcile import approval_age_reason
from rightsizer.changes.shadow_test_result import asker_of_test
from rightsizer.changes.stages import LOOK_AGAIN, proposal_of_stage, refusal_by_newest, with_covered_fleet
from rightsizer.changes.start_limits import budget_share
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import ScalableTarget, has_digest
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import MOVING, AlarmSight, ConfigSight, EndpointSight, Gone, Hold, ImageSight
from rightsizer.domain.message import SafeTell
from rightsizer.domain.option import ORDERED, OptionKind
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import Deferral, PreflightInput, RolePass
from rightsizer.domain.proposal import Proposal, ProposalState, decider_name
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.tags import declared_p95_s
from rightsizer.domain.usage import OVERHEAD
from rightsizer.errors import BudgetUnreadableError, ConflictError, ReadError
from rightsizer.flows import read_state
from rightsizer.flows.read_state import copied_component_requests
from rightsizer.ports.changes import Changer, Journal
from rightsizer.ports.evaluation import MetricReader, MetricRequest, QuotaReader, RecommendationStore
from rightsizer.recommender.dimension import find
from rightsizer.recommender.latency import seconds_for_model

if TYPE_CHECKING:
    from rightsizer.dimensions.dimension import Dimension

BASELINE = timedelta(days=2)
BUSY_AGAIN = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class ChangeStarter:
    """Brings a PLANNED change to its plan, or refuses it, or lets it wait."""

    journal: Journal
    changer: Changer
    store: RecommendationStore
    metrics: MetricReader
    quotas: QuotaReader
    dimensions: Sequence[Dimension]
    tell: SafeTell

    def begin(self, change: Change, now: datetime, catalogue: Catalogue, limits: ChangeLimits) -> Change:
        """The change with its plan (`before` is set), closed as refused, or waiting.

        It is saved unless it is closed: the proposal follows first, so that a crash in between is made good. Raises
        ReadError where something could not be seen now: that is tried again, until the approval is too old.
        """
        found = self.store.proposal(change.proposal_id)
        by = change.asked_back_by or (found.asked_back_by if found is not None else "")
        if by:
            reason = Reason(Code.WITHDRAWN, f"{decider_name(by)} stopped it before it began; nothing was changed")
            return self._refuse(replace(change, asked_back_by=by), (reason,), now)
        proposal = self._approved_proposal(change, found, limits, now)
        if isinstance(proposal, Reason):
            return self._refuse(change, (proposal,), now)
        endpoint = self.changer.endpoint(change.ref.name)
        if isinstance(endpoint, Gone):
            reason = Reason(Code.VANISHED, f"endpoint {change.ref.name} does not exist any more")
            return self._refuse(change, (reason,), now)
        newest = read_state.read_newest(self.store, change)
        change = with_covered_fleet(change, proposal, newest, catalogue, now)
        inputs = self._preflight_input(change, proposal, endpoint, limits, now)
        against = refusal_by_newest(change, proposal, newest)
        refused = (*preflight.preflight_refusals(inputs), *closing_reasons(against))
        other = failure.retry_chosen_type(change, proposal.recommendation.chosen_option, refused, now)
        deferred = preflight.preflight_deferral(inputs, now, start_limits.next_open(limits.window, now))
        if refused:
            return self._save_waiting(other) if other is not None else self._refuse(change, refused, now)
        if deferred is not None and limits.is_live:
            return self._wait_hourly(change, deferred, now)
        if deferred is not None:
            return self._defer(change, deferred.until, deferred.sentence, now)
        if against is not None:
            told = read_state.tell_of_wait(change, against, now, self.tell)
            return self._defer(told, now + LOOK_AGAIN, against.sentence, now)
        change = self._with_baseline(change, inputs, now)
        return self._plan_and_lock(change, inputs, catalogue, now)

    def _plan_and_lock(self, change: Change, inputs: PreflightInput, catalogue: Catalogue, now: datetime) -> Change:
        """The change with its plan and its locks; refused, or waiting for its peak or for a lock."""
        limits, decision = inputs.limits, inputs.proposal.decision
        planned = plan.make_plan(change, inputs, catalogue, limits, self._dimension(change))
        if not isinstance(planned, plan.PlannedChange):
            return self._refuse(change, planned, now)
        planned = replace(planned, notes=(*planned.notes, *preflight.unchecked_sentences(inputs)))
        later = plan.peak_deferral(change, planned.plan, limits, now)
        if later is not None:
            return self._wait_for_peak(change, later, now)
        if change.leads_on and limits.approvers.four_eyes and decision is not None:
            entry = Entry(now, JournalEvent.ASK_TEST, "noted", decision.by)
            change = replace(change, journal=(*change.journal, entry))
        ready = replace(planned.apply_to(change, now), models=tuple(sorted({*change.models, *inputs.models})))
        return self._take_locks(change, ready, now, limits)

    def _take_locks(self, change: Change, ready: Change, now: datetime, limits: ChangeLimits) -> Change:
        """The planned change with its locks and its part of the day's budget, or waiting for them."""
        day = f"{now:%Y-%m-%d}"
        try:
            share = budget_share(day, ready.once_usd, limits, restores=ready.option.restores)
            return self.journal.begin(ready, share)
        except ConflictError as error:
            current = self.journal.load(change.id)
            if current is None or current.version != change.version:
                raise
            if isinstance(error, BudgetUnreadableError):
                self.journal.tell_budget(day, str(error), now, self.tell)
            return self._defer(change, now + BUSY_AGAIN, str(error), now)

    def _approved_proposal(
        self, change: Change, proposal: Proposal | None, limits: ChangeLimits, now: datetime
    ) -> Proposal | Reason:
        """The proposal, where somebody who may decide approved it lately, or why it does not count."""
        late = approval_age_reason(change, now)
        if late is not None:
            return late
        if proposal is None:
            return Reason(Code.WITHDRAWN, f"proposal {change.proposal_id} does not exist any more")
        is_automatic = proposal.decision is not None and proposal.decision.is_automatic
        if limits.approvers.unreadable and not is_automatic:
            raise ReadError(f"asking who may decide: {limits.approvers.unreadable}")
        by = proposal.decision.by if proposal.decision else ""
        asked_by = self._asked_by(change, proposal) if limits.approvers.four_eyes else ()
        not_theirs = approver_refusal(by, limits.approvers, approves=True, asked_by=asked_by)
        return not_theirs if not_theirs is not None else proposal_of_stage(proposal, change.stage_before)

    def _asked_by(self, change: Change, proposal: Proposal) -> tuple[str, ...]:
        """Who asked for what the change does: for its order, or for the shadow test that it follows.

        The proposal of the test may be the change's own, asked again and decided by somebody else since.
        """
        test = change.after.change_id if change.after is not None else self.journal.last_change(change.ref.name)
        known = self.journal.load(test) if test else None
        if known is None or known.id == change.id or known.plan.kind is not PlanKind.SHADOW_TEST:
            return (proposal.ordered_by,)
        noted = asker_of_test(known)
        tested = self.store.proposal(known.proposal_id)
        decided = tested.decision.by if tested is not None and tested.is_test_first and tested.decision else ""
        return proposal.ordered_by, noted or decided

    def plan_again(
        self, change: Change, now: datetime, catalogue: Catalogue, limits: ChangeLimits
    ) -> Change | tuple[Reason, ...]:
        """The change with a plan on the present state, or why there is none; nothing is saved.

        Locks, budget and baseline are those of the first plan. Raises ReadError when something could not be seen.
        """
        proposal = self.store.proposal(change.proposal_id)
        endpoint = self.changer.endpoint(change.ref.name)
        if proposal is None or isinstance(endpoint, Gone):
            return (Reason(Code.VANISHED, f"endpoint {change.ref.name} or its proposal does not exist any more"),)
        proposal = proposal_of_stage(proposal, change.stage_before)
        newest = read_state.read_newest(self.store, change)
        inputs = self._preflight_input(change, proposal, endpoint, limits, now)
        against = refusal_by_newest(change, proposal, newest)
        refused = (*preflight.preflight_refusals(inputs), *closing_reasons(against))
        planned = refused or plan.make_plan(change, inputs, catalogue, limits, self._dimension(change))
        return planned.apply_to(change, now) if isinstance(planned, plan.PlannedChange) else planned

    def start_hold(self, change: Change, now: datetime, limits: ChangeLimits) -> Hold | None:
        """Why the first write that changes what serves must wait, or None; asked until the update has arrived."""
        begun = change.turned_at is not None or change.course is not Course.FORWARD
        if begun or change.option.restores or change.plan.kind is PlanKind.DELETE:
            return None
        return preflight.start_hold(
            self._incident_alarms(limits), now, start_limits.next_open(limits.window, now), limits.misread
        )

    def _preflight_input(
        self, change: Change, proposal: Proposal, endpoint: EndpointSight, limits: ChangeLimits, now: datetime
    ) -> PreflightInput:
        """Everything that preflight and the plan look at, as it is now. Raises ReadError."""
        name, target, dimension = change.ref.name, change.option.target, self._dimension(change)
        config = self.changer.config(endpoint.config_name)
        sleeping = self._sleeping_components(change)
        copied = [component for component, _ in target.all_copies]
        components = [*copied, *sleeping]
        scaling = self.changer.scaling(name, [v.name for v in endpoint.variants], components)
        arns = [p["PolicyARN"] for t in scaling for p in t.policies if p.get("PolicyType") == "StepScaling"]
        quotas = self.quotas.endpoint_quotas()
        models = {
            v["ModelName"] for v in (config.body.get("ProductionVariants", []) if config else []) if v.get("ModelName")
        }
        placed = self._components([*(component for component, _ in target.placement), *components])
        tags, watched = self.changer.tags(change.ref), self._alarm_visibility(change, sorted(models), config)
        inputs = PreflightInput(
            proposal=proposal,
            option=change.option,
            endpoint=endpoint,
            config=config,
            tags=tags,
            limits=limits,
            scaling=scaling,
            customer_alarms=self.changer.alarms_with_actions(arns) if arns else (),
            quota=quotas.get(target.instance_type),
            quotas=quotas,
            deploys=self._deploys(change),
            applies=proposal.recommendation.kind in dimension.applies_to,
            sold=self._is_sold(change, config),
            incident_alarms=self._incident_alarms(limits),
            switch=self.journal.switch(),
            last_change_at=self._last_change_at(change),
            read_at=now,
            past=self.store.history(name).endpoint if change.option.restores else (),
            after_test=change.after is not None,
            models=tuple(sorted(models)),
            copies={n: MOVING if placed[n].is_moving else placed[n].current for n in copied if n in placed},
            components=placed,
            passes=self._role_pass(change, config),
            unrestorable=self._denied_restore_actions(change, proposal, scaling),
            registry=self._registry_images(change, endpoint, placed),
            blind=preflight.alarm_visibility_problem(watched, tags, change.ref.arn) if watched is not None else "",
        )
        inputs = dimension.with_live_counts(inputs)
        return replace(inputs, most=plan.largest_new_count(change, inputs))

    def _is_sold(self, change: Change, config: ConfigSight | None) -> bool | None:
        """Whether every type that is asked for is offered in the zones of the subnets; None where that is not known."""
        target, subnets = change.option.target, config.subnets if config else ()
        kinds = dict.fromkeys((target.instance_type, *(one.instance_type for one in target.others)))
        found = [self.changer.is_sold(kind, subnets) for kind in kinds]
        return False if False in found else None if None in found else True

    def _last_change_at(self, change: Change) -> datetime | None:
        """When the endpoint's last change ended; None where that was the shadow test that this change follows."""
        name, test = change.ref.name, change.after
        if test is not None and self.journal.last_change(name) == test.change_id:
            return None  # the test left nothing behind whose effect would have to be seen first
        return self.journal.last_change_at(name)

    def _dimension(self, change: Change) -> Dimension:
        return find(self.dimensions, change.option.kind)

    def _deploys(self, change: Change) -> bool:
        """Whether a new configuration is deployed."""
        return self._dimension(change).is_deployed(change.option)

    def _role_pass(self, change: Change, config: ConfigSight | None) -> RolePass | None:
        """Whether we may hand over the execution role that a new configuration would name; None where none is."""
        role = config.role if config else ""
        return self.changer.role_pass(role) if role and self._deploys(change) else None

    def _denied_restore_actions(
        self, change: Change, proposal: Proposal, scaling: tuple[ScalableTarget, ...]
    ) -> tuple[str, ...]:
        """What IAM denies us of giving autoscaling back; asked where the change takes it away."""
        taken = self._deploys(change) and change.option.kind not in ORDERED
        taken = taken and (not proposal.runs_test or change.after is not None)
        return self.changer.denied_restore_actions(change.ref, scaling) if taken and scaling else ()

    def _sleeping_components(self, change: Change) -> Sequence[str]:
        """Every component of an endpoint whose instances are to leave; none of other changes."""
        sleeps = change.option.kind is OptionKind.SCALE_TO_ZERO and self._deploys(change)
        return self.changer.component_names(change.ref.name) if sleeps else ()

    def _components(self, names: list[str]) -> Mapping[str, ComponentSight]:
        """The components that the option changes, with their tags; one that does not exist is left out."""
        found = self.changer.components(names) if names else {}
        return {name: replace(sight, tags=self.changer.tags_of(sight.arn)) for name, sight in found.items()}

    def _registry_images(
        self, change: Change, endpoint: EndpointSight, placed: Mapping[str, ComponentSight]
    ) -> Mapping[str, ImageSight]:
        """What the images' tags mean today; a change that starts nothing anew resolves none."""
        rolled = placed.values() if change.option.target.placement else ()
        parts = [name for seen in rolled for name, _ in seen.images if not has_digest(name)]
        names = (*(preflight.tagged_images(endpoint) if self._deploys(change) else ()), *dict.fromkeys(parts))
        found = self.changer.images(change.ref, names) if names else {}
        late = next((sight for sight in found.values() if sight.passing), None)
        if late is not None:
            raise ReadError(f"reading what the tag of {late.name} means: {late.problem}")
        return found

    def _incident_alarms(self, limits: ChangeLimits) -> tuple[AlarmSight, ...]:
        """The configured alarms as they are now; one that is not found is there, as missing."""
        names = limits.incident_alarms
        found = self.changer.alarms(names) if names else {}
        return tuple(found.get(name, AlarmSight(name, preflight.MISSING, {})) for name in names)

    def _alarm_visibility(
        self, change: Change, models: list[str], config: ConfigSight | None
    ) -> Mapping[str, bool | None] | None:
        """Whether roll-back alarms on these models would be seen; None for a change that starts nothing anew."""
        if not (self._dimension(change).is_watched(change.option.kind) or self._deploys(change)):
            return None
        role = config.role if config else ""
        return self.changer.alarm_visibility(models, (role,) if role else ())

    def _with_baseline(self, change: Change, inputs: PreflightInput, now: datetime) -> Change:
        """What was usual, so that alarms and proof compare with this endpoint and not with a constant."""
        names = [v.name for v in inputs.endpoint.variants]
        end = now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0)
        copies, signals = copied_component_requests(change), proof.watched_metrics(inputs.endpoint.asynchronous)
        requests = [*(MetricRequest(change.ref.name, name, (*signals, OVERHEAD)) for name in names), *copies]
        windows = list(self.metrics.read(requests, end - BASELINE, end, proof.PERIOD_S))
        tagged, usual = declared_p95_s(inputs.tags), proof.baseline(windows)
        objective = inputs.limits.objective_p95_s if tagged is None else tagged
        if objective is not None:  # alarms and proof read the model's latency alone
            queued, slowest_s = inputs.endpoint.asynchronous, usual.get("p95_s", 0.0)
            objective = seconds_for_model(objective, usual_overhead_s(windows), queued, slowest_s)
        made_at = inputs.config.created_at if inputs.config is not None else None
        by_hand = None if inputs.scaling else inputs.endpoint.modified_at  # autoscaling modifies it day by day
        if (start := habit_start(end, made_at, by_hand, inputs.last_change_at)) < end - BASELINE:
            of_habit = [replace(one, signals=HABIT_SIGNALS) for one in requests]
            windows = list(self.metrics.read(of_habit, start, end, proof.PERIOD_S))
        slow = slowness_before(windows, usual, objective)
        return replace(change, baseline={**usual, **slow}, objective_p95_s=objective)

    def _refuse(self, change: Change, reasons: tuple[Reason, ...], now: datetime) -> Change:
        """Closed; a further try that cannot begin ends as the try before it: with what ran before."""
        sentence = "; ".join(r.sentence for r in reasons)
        if change.tries:
            sentence = f"try {change.tries + 1}, after a want of capacity, could not begin: {sentence}"
        note = Entry(now, JournalEvent.PREFLIGHT, "failed", sentence)
        return replace(
            change,
            state=ChangeState.ROLLED_BACK if change.tries else ChangeState.REFUSED,
            next_due=None,
            lease_until=None,
            failure=FailureClass.CAPACITY if change.tries else change.failure,
            reason=reasons[0],
            outcome=sentence,
            journal=(*change.journal, note),
        )

    def _defer(self, change: Change, until: datetime, sentence: str, now: datetime) -> Change:
        note = Entry(now, JournalEvent.WAIT, "noted", sentence)
        until = min(until, change.expires_at)
        return self._save_waiting(
            replace(change, next_due=until, lease_until=None, outcome=sentence, journal=(*change.journal, note))
        )

    def _wait_for_peak(self, change: Change, later: Deferral, now: datetime) -> Change:
        """Waits, and looks each hour whether users suffer: what brings room back is not opened beside it."""
        newest = read_state.recommendation_with_more_capacity(self.store, change.ref.name)
        if newest is not None:
            text = f"the shadow test gives way to what brings room back: {newest.reason.sentence}"
            return self._refuse(change, (Reason(Code.WITHDRAWN, text),), now)
        return self._wait_hourly(change, later, now)

    def _wait_hourly(self, change: Change, later: Deferral, now: datetime) -> Change:
        """Waits, and looks each hour whether it may begin by then; the same reason is noted once."""
        until = min(later.until, now + LOOK_AGAIN)
        if later.sentence == change.outcome:
            return self._save_waiting(replace(change, next_due=until, lease_until=None))
        return self._defer(change, until, later.sentence, now)

    def _save_waiting(self, change: Change) -> Change:
        """Saved; where an earlier try was made, its proposal says why the next one waits, before that."""
        if change.tries:
            self.store.follow(change.proposal_id, ProposalState.APPLYING, change.id, change.outcome)
        return self.journal.save(change)
