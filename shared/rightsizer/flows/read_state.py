"""Look at AWS for one decision: only what the change needs now, and nothing from memory."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rightsizer.changes import clone, proof
from rightsizer.changes import deletion as farewell
from rightsizer.changes import shadow_test_result as trial_end
from rightsizer.changes.measurement import counted
from rightsizer.domain.change import Change, ChangeState, Course
from rightsizer.domain.live_state import EndpointSight, Gone, Sight, Verdict
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.policy import ChangeLimits
from rightsizer.ports.changes import Changer
from rightsizer.ports.evaluation import MetricReader, MetricRequest

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
class Looking:
    """Makes the sight that `rules.advance` decides on."""

    changer: Changer
    metrics: MetricReader
    limits: ChangeLimits

    def look(self, change: Change, now: datetime) -> Sight:
        """Everything that matters for the next move. Raises ReadError when something could not be seen."""
        endpoint = self.changer.endpoint(change.ref.name)
        if isinstance(endpoint, Gone):
            return Sight(endpoint, alarms=self.changer.alarms(_alarm_names(change)))
        steps = _steps(change)
        same, other, tagged = self._configs(change)
        components = tuple(s.subject for s in steps if s.kind is StepKind.SET_COPIES)
        placed = tuple(dict.fromkeys(s.component for s in steps if s.kind is StepKind.UPDATE_COMPONENT))
        needs_scaling = any(s.kind in SCALING for s in steps)
        names = _alarm_names(change)
        return Sight(
            endpoint,
            configs=same,
            configs_differ=other,
            tagged=tagged,
            scaling=self.changer.scaling(change.ref.name, [v.name for v in endpoint.variants], components)
            if needs_scaling
            else None,
            alarms=self.changer.alarms(names) if names else None,
            copies=self.changer.copies(components) if components else {},
            components=self.changer.components(placed) if placed else {},
            verdict=self._verdict(change, endpoint, now),
        )

    def _configs(self, change: Change) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """Which planned configurations exist as planned, which names have other content, and which have our tag."""
        same: set[str] = set()
        other: set[str] = set()
        tagged: set[str] = set()
        for step in _configurations(change):
            seen = self.changer.config(step.subject)
            if seen is not None and step.kind is StepKind.CREATE_CONFIG:
                equal = clone.content_hash(seen.body) == clone.content_hash(step.params)
                (same if equal else other).add(step.subject)
            if seen is not None and clone.CHANGE_TAG in seen.tags:
                tagged.add(step.subject)
        return frozenset(same), frozenset(other), frozenset(tagged)

    def _verdict(self, change: Change, endpoint: EndpointSight, now: datetime) -> Verdict | None:
        """What the served requests say, while the change is watched."""
        if change.state is not ChangeState.APPLIED or change.turned_at is None or change.course is not Course.FORWARD:
            return None
        since = change.turned_at.astimezone(UTC)
        start = since - timedelta(seconds=since.timestamp() % proof.PERIOD_S)
        names = [v.name for v in change.plan.after]
        shadows = [change.plan.shadow] if change.plan.shadow else []
        signals = proof.signals(endpoint.asynchronous)
        signals = (*signals, trial_end.MODEL_ERRORS) if shadows else signals
        requests = [MetricRequest(change.ref.name, name, signals) for name in (*names, *shadows)]
        windows = list(self.metrics.read(requests, start, now, proof.PERIOD_S))
        if change.plan.kind == "delete":
            return farewell.judge(change, windows, now)
        if shadows:
            return trial_end.judge(change, windows[:-1], windows[-1], now)
        return proof.judge(counted(change, endpoint, now), windows, now, self.limits)  # with the hours of this look


def _configurations(change: Change) -> tuple[Step, ...]:
    """The configurations that the next move may need: all before the turn, the one to return to on the way back."""
    made = (s for s in change.plan.prepare if s.kind in (StepKind.CREATE_CONFIG, StepKind.TAG_CONFIG))
    if change.course is Course.BACK:
        return tuple(s for s in made if s.subject == change.plan.back_config)
    return tuple(made) if change.course is Course.FORWARD and change.turned_at is None else ()


def _steps(change: Change) -> tuple[Step, ...]:
    plan = change.plan
    single = tuple(s for s in (plan.turn, plan.back) if s is not None)
    return (*plan.prepare, *plan.clear, *single, *plan.settle, *plan.restore, *plan.tidy)


def _alarm_names(change: Change) -> tuple[str, ...]:
    """Alarms of the plan, and those that its return met, which may be put again."""
    met = change.met.alarms if change.met is not None else ()
    planned = (s.subject for s in _steps(change) if s.kind is StepKind.PUT_ALARM)
    return tuple(sorted({*change.plan.alarms, *planned, *(str(a["AlarmName"]) for a in met)}))
