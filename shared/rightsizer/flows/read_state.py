"""Read AWS and the newest recommendation for one decision: what the change needs now, nothing from memory.

Image tags are compared once more right before a deployment, and a component's before its roll: hours may have passed.
Forward it stops: nobody asked for other code. On the rollback it tells and goes on: users suffer from what runs now, or
somebody asked, and there is nothing else to go back to; who deploys the old code by its digest can do so after it.

The newest recommendation is held against what was approved before each write that leads towards it.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from rightsizer.changes import clone, deletion, preflight, proof, shadow_test_result
from rightsizer.changes.measurement import add_instance_hours
from rightsizer.changes.overruled import is_independent_of_recommendation
from rightsizer.changes.reconcile import may_be_updating, may_have_changed_autoscaling
from rightsizer.changes.stages import NewestRecommendation, action_in_place, proposal_of_stage, refusal_by_newest
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent
from rightsizer.domain.endpoint import has_digest
from rightsizer.domain.live_state import MOVING, EndpointSight, Gone, LiveState, ProofVerdict
from rightsizer.domain.message import SafeTell
from rightsizer.domain.next_action import Do, NextAction, Steer, Wait
from rightsizer.domain.plan import PlanKind, Step, StepKind
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.errors import PermissionMissingError, UnreadableError
from rightsizer.ports.changes import Changer
from rightsizer.ports.evaluation import MetricReader, MetricRequest, RecommendationStore
from rightsizer.telemetry import count

SCALING = frozenset(
    {
        StepKind.REGISTER_TARGET,
        StepKind.DEREGISTER_TARGET,
        StepKind.PUT_POLICY,
        StepKind.DELETE_POLICY,
        StepKind.PUT_SCHEDULED,
    }
)


@dataclass(frozen=True, slots=True)
class StateReader:
    """Makes the sight that `changes.reconcile` decides on."""

    changer: Changer
    metrics: MetricReader
    limits: ChangeLimits

    def read_state(self, change: Change, now: datetime) -> LiveState:
        """Everything that matters for the next move. Raises ReadError when something could not be seen."""
        endpoint = self.changer.endpoint(change.ref.name)
        if isinstance(endpoint, Gone):
            return LiveState(endpoint, alarms=self.changer.alarms(_alarm_names(change)))
        steps = _steps(change)
        same, other, tagged = self._configs(change)
        copied = tuple(s.subject for s in steps if s.kind is StepKind.SET_COPIES)
        scaled = tuple(dict.fromkeys((*copied, *_scaled_components(change))))
        placed = tuple(dict.fromkeys(s.component for s in steps if s.kind is StepKind.UPDATE_COMPONENT))
        needs_scaling = any(s.kind in SCALING for s in steps)
        names = _alarm_names(change)
        shown = tuple(dict.fromkeys((*placed, *copied)))
        components = self.changer.components(shown) if shown else {}
        return LiveState(
            endpoint,
            configs=same,
            configs_differ=other,
            tagged=tagged,
            scaling=self.changer.scaling(change.ref.name, [v.name for v in endpoint.variants], scaled)
            if needs_scaling
            else None,
            alarms=self.changer.alarms(names) if names else None,
            copies={n: MOVING if sight.is_moving else sight.current for n, sight in components.items() if n in copied},
            components=components,
            verdict=self._verdict(change, endpoint, now),
        )

    def _configs(self, change: Change) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """Which planned configurations exist as planned, which names have other content, and which have our tag."""
        same: set[str] = set()
        other: set[str] = set()
        tagged: set[str] = set()
        for step in _configurations(change):
            config = self.changer.config(step.subject)
            if config is not None and step.kind is StepKind.CREATE_CONFIG:
                equal = clone.content_hash(config.body) == clone.content_hash(step.params)
                (same if equal else other).add(step.subject)
            if config is not None and clone.CHANGE_TAG in config.tags:
                tagged.add(step.subject)
        return frozenset(same), frozenset(other), frozenset(tagged)

    def _verdict(self, change: Change, endpoint: EndpointSight, now: datetime) -> ProofVerdict | None:
        """What the served requests say, while the change is watched."""
        if change.state is not ChangeState.APPLIED or change.turned_at is None or change.course is not Course.FORWARD:
            return None
        since = change.turned_at.astimezone(UTC)
        start = since - timedelta(seconds=since.timestamp() % proof.PERIOD_S)
        names = [v.name for v in change.plan.after]
        shadows = [change.plan.shadow] if change.plan.shadow else []
        signals = proof.watched_metrics(endpoint.asynchronous)
        signals = (*signals, shadow_test_result.MODEL_ERRORS) if shadows else signals
        requests = [MetricRequest(change.ref.name, name, signals) for name in (*names, *shadows)]
        parts = _scaled_components(change) if proof.sleeps(change) else ()
        requests += [MetricRequest(change.ref.name, part, proof.OF_COMPONENT, of_component=True) for part in parts]
        requests += copied_component_requests(change)
        windows = list(self.metrics.read(requests, start, now, proof.PERIOD_S))
        if change.plan.kind is PlanKind.DELETE:
            return deletion.deletion_verdict(change, windows, now)
        if shadows:
            return shadow_test_result.shadow_test_verdict(change, windows[:-1], windows[-1], now)
        return proof.proof_verdict(
            add_instance_hours(change, endpoint, now), windows, now, self.limits
        )  # with the hours of this look


def copied_component_requests(change: Change) -> list[MetricRequest]:
    """Service of each component that gets another number of copies: that of the endpoint would hide it."""
    names = [name for name, _ in change.option.target.all_copies]
    return [MetricRequest(change.ref.name, name, proof.SIGNALS, of_component=True) for name in names]


def _scaled_components(change: Change) -> tuple[str, ...]:
    """Inference components whose autoscaling the change writes."""
    rows = (s.subject.partition("/") for s in _steps(change) if s.kind is StepKind.REGISTER_TARGET)
    return tuple(dict.fromkeys(name for kind, _, name in rows if kind == "inference-component"))


def _configurations(change: Change) -> tuple[Step, ...]:
    """The configurations that the next move may need: all before the turn, the one to return to during the rollback."""
    steps = (s for s in change.plan.prepare if s.kind in (StepKind.CREATE_CONFIG, StepKind.TAG_CONFIG))
    if change.course is Course.BACK:
        return tuple(s for s in steps if s.subject == change.plan.back_config)
    return tuple(steps) if change.course is Course.FORWARD and change.turned_at is None else ()


def _steps(change: Change) -> tuple[Step, ...]:
    plan = change.plan
    single = tuple(s for s in (plan.turn, plan.back) if s is not None)
    return (*plan.prepare, *plan.clear, *single, *plan.settle, *plan.restore, *plan.tidy)


def _alarm_names(change: Change) -> tuple[str, ...]:
    """Alarms of the plan, and those that its return met, which may be put again."""
    met = change.met.alarms if change.met is not None else ()
    planned = (s.subject for s in _steps(change) if s.kind is StepKind.PUT_ALARM)
    return tuple(sorted({*change.plan.alarms, *planned, *(str(a["AlarmName"]) for a in met)}))


@dataclass(frozen=True, slots=True)
class ImageComparison:
    """Asks the registry only for images by tag, and only before UpdateEndpoint and UpdateInferenceComponent."""

    changer: Changer
    store: RecommendationStore
    tell: SafeTell

    def check_before_step(self, change: Change, step: Step, live: LiveState, now: datetime) -> Change | Steer:
        """The change to go on with, or the move in place of the step where it would bring other code."""
        endpoint = live.endpoint
        if isinstance(endpoint, Gone):
            return change
        parts, names = _images_resolved_again(step, live, endpoint)
        back = change.course is not Course.FORWARD
        if not names or (back and _is_difference_told(change, step.component)):
            return change
        by_itself = not back and self.is_by_policy(change)
        found = preflight.image_difference(endpoint, self.changer.images(change.ref, names), by_itself, parts)
        if found is None:
            return change
        if not back:
            return _stop_action(change, found)
        return self._tell_difference(change, step.component, found, now)

    def is_by_policy(self, change: Change) -> bool:
        proposal = self.store.proposal(change.proposal_id)
        return proposal is not None and proposal.decision is not None and proposal.decision.is_automatic

    def _tell_difference(self, change: Change, component: str, reason: Reason, now: datetime) -> Change:
        about = f"component {component}: " if component else ""
        text = f"the rollback is deployed all the same, since what runs now has to go: {about}{reason.sentence}"
        self.tell(f"{change.ref.name}: its rollback does not bring the image that ran before", text)
        note = Entry(now, JournalEvent.IMAGES, "noted", text[:500], component)
        return replace(change, journal=(*change.journal, note))


def _is_difference_told(change: Change, component: str) -> bool:
    """Whether people were told that the rollback of the component, or else of the endpoint, brings another image."""
    return any(entry.step == JournalEvent.IMAGES and entry.component == component for entry in change.journal)


def _images_resolved_again(
    step: Step, live_state: LiveState, endpoint: EndpointSight
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The images of the component that the step rolls, and the names by tag of all images that it resolves again."""
    if step.kind is StepKind.UPDATE_ENDPOINT:
        return (), preflight.tagged_images(endpoint)
    live = live_state.components.get(step.component)
    if step.kind is not StepKind.UPDATE_COMPONENT or live is None:
        return (), ()
    parts = tuple(pair for pair in live.images if not has_digest(pair[0]))
    return parts, tuple(dict.fromkeys(name for name, _ in parts))


def _stop_action(change: Change, reason: Reason) -> Steer:
    """End of a change that deployed nothing: refused, or rolled back where autoscaling or a component was touched."""
    touched = may_have_changed_autoscaling(change)
    text = f"{reason.sentence}; seen right before the deployment, after the preflight, and it was not made"
    if touched:
        what = "what was changed before goes back" if change.plan.turn is None else "autoscaling goes back as it was"
        text += f"; {what}"
    ending = ChangeState.ROLLED_BACK if touched else ChangeState.REFUSED
    return Steer(Reason(Code.MOVING_TAG, text), Course.CLOSE, ending, FailureClass.OUTSIDE)


def read_newest(store: RecommendationStore, change: Change) -> NewestRecommendation:
    """The newest recommendation of the endpoint, and how old the table is where that counts. Raises ReadError."""
    free = is_independent_of_recommendation(change.option)
    try:
        recommendation = store.recommendation(change.ref.name)
    except UnreadableError as error:
        count(RowsUnreadable=int(not free))
        return NewestRecommendation(None, str(error))
    return NewestRecommendation(recommendation, table_made=None if free else store.created_at())


def check_recommendation(
    store: RecommendationStore, change: Change, move: NextAction, now: datetime, tell: SafeTell
) -> tuple[Change, NextAction]:
    """The change and its move, where the newest recommendation allows it; else the end of the change, or a wait.

    Asked before each write until the first that serves differently: between two of them a window, an alarm or a freeze
    may have kept the change waiting for days. While autoscaling is taken away nothing waits for the permission to read
    it. A read that failed otherwise is tried again (ReadError).
    """
    if not isinstance(move, Do) or change.course is not Course.FORWARD or change.turned_at is not None:
        return change, move
    try:
        found = None if _has_begun_steps(change, now) else _reason_against(store, change)
    except PermissionMissingError as error:
        if not may_have_changed_autoscaling(change):
            raise
        text = f"the newest recommendation of {change.ref.name} may not be read: {error}"
        found = Reason(Code.JUDGEMENT_UNKNOWN, text)
    action = action_in_place(change, move, found, now)
    if found is not None and found.code is Code.JUDGEMENT_UNKNOWN and isinstance(action, Wait):
        change = tell_of_wait(change, found, now, tell)
    return change, action


def tell_of_wait(change: Change, why: Reason, now: datetime, tell: SafeTell) -> Change:
    """The change with the line of the message that it waits for a recommendation; told once."""
    known = any(entry.step == JournalEvent.JUDGEMENT for entry in change.journal)
    if change.after is not None or change.stage_before is not None:
        return change  # the end of its test, or of the stage before it, said so
    if known or not tell(f"{change.ref.name}: approved, and waits for a new recommendation", why.sentence):
        return change
    return replace(change, journal=(*change.journal, Entry(now, JournalEvent.JUDGEMENT, "noted", why.sentence)))


def recommendation_with_more_capacity(store: RecommendationStore, endpoint: str) -> Recommendation | None:
    """The newest recommendation, where it brings room back for users who suffer; None where it cannot be read."""
    try:
        newest = store.recommendation(endpoint)
    except UnreadableError:
        return None
    return newest if newest is not None and newest.chosen_option is not None and newest.chosen_option.restores else None


def _reason_against(store: RecommendationStore, change: Change) -> Reason | None:
    """Why the newest recommendation stands against the change; None where it does not, or the proposal is gone."""
    try:
        proposal = store.proposal(change.proposal_id)
    except UnreadableError:
        return refusal_by_newest(change, None, read_newest(store, change))  # the change itself holds what was approved
    if proposal is None:
        return None
    return refusal_by_newest(change, proposal_of_stage(proposal, change.stage_before), read_newest(store, change))


def _has_begun_steps(change: Change, now: datetime) -> bool:
    """Whether a plan without an update of the endpoint was begun: AWS made one of its steps, or may have."""
    return change.plan.turn is None and may_be_updating(change, now)
