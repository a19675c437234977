"""What is stored of an endpoint with office hours: what it was before it was stopped, and every step since.

The record is written before the first write to AWS, and holds everything that brings the endpoint back. One lock with
`apply`: while a record is not `RUNNING` and not handed over, it holds the endpoint's lock by its own id.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from rightsizer.domain.change import Entry
from rightsizer.domain.checks import aware, not_empty
from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
from rightsizer.domain.office_hours import HoursLimits, StoppedTime
from rightsizer.domain.plan import ACTIONS, Step, StepKind, VariantCount, command, with_policy_places
from rightsizer.domain.reason import Code, Reason

ID_PREFIX = "hours-"
"""Begins the id by which a record holds the lock of its endpoint."""
KEPT_STARTS = 10
KEPT_TIMES = 400
"""Stopped times that a record keeps: more than a year of nights."""
KEPT_ENTRIES = 200
KEPT_UNTOLD = 20
UNTOLD_CHARS = 60_000
"""Of all messages that wait together; the newest one waits whatever it has. A row holds 400 KB (DynamoDB)."""
BEGINS = "begins"
"""The journal's line with which a stop or a start begins."""
UNDONE_BY = {
    StepKind.CREATE_ENDPOINT: StepKind.DELETE_ENDPOINT,
    StepKind.DELETE_ENDPOINT: StepKind.CREATE_ENDPOINT,
    StepKind.SILENCE_ALARMS: StepKind.SOUND_ALARMS,
    StepKind.SOUND_ALARMS: StepKind.SILENCE_ALARMS,
}
CONFIG_OUTPUT = frozenset({"EndpointConfigName", "EndpointConfigArn", "CreationTime"})


class HoursState(StrEnum):
    """Where an endpoint with office hours stands; the values are stored."""

    RUNNING = "running"
    """The endpoint runs as before, and no stop or start is under way."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    """The endpoint is deleted, and everything that brings it back is stored."""
    STARTING = "starting"
    HANDED_OVER = "handed-over"
    """A person was told, with the commands; nothing is done by itself any more."""


HOLDS_LOCK = frozenset({HoursState.STOPPING, HoursState.STOPPED, HoursState.STARTING})
"""States in which no change of `apply` may begin."""


@dataclass(frozen=True, slots=True)
class ModelBefore:
    """A model as CreateModel takes it, and the files that it names."""

    name: str
    body: Mapping[str, Any]
    data: str = ""
    """Digest of keys and ETags of its files; empty where they are not known, or loaded on demand."""
    written_at: datetime | None = None
    """When the newest of its files was written."""
    missing: tuple[str, ...] = ()
    """Addresses at which there is no file."""


@dataclass(frozen=True, slots=True)
class EndpointBefore:
    """Everything that an endpoint was right before it is stopped, enough to bring it back."""

    taken_at: datetime
    config_name: str
    config_body: Mapping[str, Any]
    """As DescribeEndpointConfig shows it, so that it can be made again where somebody deletes it."""
    config_tags: Mapping[str, str]
    modified_at: datetime
    created_at: datetime
    tags: Mapping[str, str]
    variants: tuple[VariantCount, ...]
    """Live counts and weights; the type as the configuration names it, empty for instance pools."""
    images: tuple[tuple[str, str], ...] = ()
    """(as specified, as resolved) of each container that ran."""
    scaling: tuple[ScalableTarget, ...] = ()
    """Scalable targets with policies, scheduled actions and suspensions."""
    alarms: tuple[Mapping[str, Any], ...] = ()
    """Bodies of the alarms that name the endpoint or start its policies, in the API's own form."""
    deployed_config: str = ""
    """Configuration that served at the stop, where that was the fallback; empty: `config_name`."""
    fallback_config: str = ""
    """Configuration of another type that its owner named for mornings without capacity; empty: none."""
    fallback_body: Mapping[str, Any] = field(default_factory=dict)
    """That configuration as DescribeEndpointConfig shows it."""
    models: tuple[ModelBefore, ...] = ()
    """The models that its configuration names."""
    deployment: Mapping[str, Any] = field(default_factory=dict)
    """The deployment configuration of its last update, kept for people.

    It is not given to CreateEndpoint: the alarms that it names may be gone, or be in alarm since nothing serves.
    """

    def __post_init__(self) -> None:
        not_empty("EndpointBefore.config_name", self.config_name)
        aware("EndpointBefore.modified_at", self.modified_at)

    @property
    def live_config(self) -> str:
        """The configuration that it ran when it was stopped."""
        return self.deployed_config or self.config_name

    @property
    def silenced(self) -> tuple[str, ...]:
        """Names of the alarms whose actions were on, and are switched off while it is stopped."""
        return tuple(sorted(str(a["AlarmName"]) for a in self.alarms if a.get("ActionsEnabled", True)))

    @property
    def wired(self) -> tuple[Mapping[str, Any], ...]:
        """The alarms that start a policy of the endpoint: deleting the policy takes it out of them."""
        arns = {str(p.get("PolicyARN")) for t in self.scaling for p in t.policies}
        return tuple(a for a in self.alarms if arns & {arn for kind in ACTIONS for arn in a.get(kind, ())})


@dataclass(frozen=True, slots=True)
class Wake:
    """An order to run outside the hours."""

    at: datetime
    until: datetime
    by: str


@dataclass(frozen=True, slots=True)
class LetGo:
    """An order to leave the endpoint out of its hours while its tag stays what it was."""

    at: datetime
    by: str
    hours: str
    """The tag's value at that time; empty until the next look where it ran, so that its tag could change meanwhile."""


@dataclass(frozen=True, slots=True)
class Start:
    """Endpoint that a start of ours brought about, as it was first seen in service."""

    config: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Untold:
    """A message that no channel took yet."""

    key: str
    at: datetime
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class HoursRecord:
    """One endpoint with office hours, from the first look to its end."""

    ref: EndpointRef
    state: HoursState = HoursState.RUNNING
    owner: str = ""
    hours: str = ""
    """The tag's value as it was last read; a stopped endpoint has no tags to read."""
    before: EndpointBefore | None = None
    """None until it was stopped for the first time; kept after a start until the next stop."""
    journal: tuple[Entry, ...] = ()
    """Steps and notes since the last stop began."""
    since: datetime | None = None
    """When it took its present state."""
    serving_at: datetime | None = None
    """When the present start was first seen in service."""
    last_start: Start | None = None
    """The start that was last seen in service; None where somebody else created the endpoint."""
    starts: tuple[float, ...] = ()
    """Seconds from CreateEndpoint to InService of its own last starts."""
    stopped_times: tuple[StoppedTime, ...] = ()
    wakes: tuple[Wake, ...] = ()
    let_go: LetGo | None = None
    reason: Reason | None = None
    """Why it stands as it does: why it is not stopped, or what the last look waits for."""
    remaining: tuple[str, ...] = ()
    """Commands that bring it back by hand; only when handed over."""
    untold: tuple[Untold, ...] = ()
    """Messages that no channel took; each tick sends them again until one does."""
    is_unshown: bool = False
    """Whether the note of its state for people could not be written; each tick writes it again until it is."""
    had_fallback: bool = False
    """Whether the last creation was from the fallback, so that its own configuration has the next turn."""
    next_due: datetime | None = None
    lease_until: datetime | None = None
    version: int = 0
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """What a newer program stored with it and this one does not know."""

    @property
    def id(self) -> str:
        """The id by which it holds the lock of its endpoint."""
        return hours_id(self.ref.name)

    @property
    def holds_lock(self) -> bool:
        """Whether it holds the endpoint's lock, so that no change begins."""
        return self.state in HOLDS_LOCK

    @property
    def is_let_go(self) -> bool:
        """Whether somebody took it out of its hours, and its tag says the same since."""
        return self.let_go is not None and self.let_go.hours in ("", self.hours)

    def is_anew(self, created_at: datetime | None) -> bool:
        """Whether an endpoint created then is newer than the present state: once handed over, what its owner wants."""
        return self.since is not None and created_at is not None and created_at > self.since

    def wake_at(self, now: datetime) -> Wake | None:
        """The order to be awake that holds at `now`; None where none does."""
        return next((w for w in reversed(self.wakes) if w.at <= now < w.until), None)

    @property
    def present(self) -> tuple[Entry, ...]:
        """Lines of the journal since the present stop or start began."""
        at = next((n for n in range(len(self.journal) - 1, -1, -1) if self.journal[n].step == BEGINS), -1)
        return self.journal[at + 1 :]

    def last_entry(self, step: Step) -> Entry | None:
        """The newest line about the step in the present stop or start."""
        return next((e for e in reversed(self.present) if e.step == step.key), None)

    def was_done(self, step: Step) -> bool:
        """Whether AWS took the step since this stop or start began, and nothing of ours undid it since."""
        pair = {step.key, Step(UNDONE_BY[step.kind], step.subject).key} if step.kind in UNDONE_BY else {step.key}
        newest = next((e for e in reversed(self.present) if e.step in pair and e.status == "done"), None)
        return newest is not None and newest.step == step.key

    def may_be_done(self, step: Step) -> bool:
        """Whether AWS may have done the step since this stop or start began.

        It was done, it was not answered, or nobody lived to see the answer.
        """
        is_open = False
        for entry in (e for e in self.present if e.step == step.key):
            if is_open and entry.status == "intended":
                return True
            is_open = entry.status == "intended"
            if not is_open and not entry.was_rejected:
                return True
        return is_open

    def rejections(self, step: Step) -> int:
        """How often AWS rejected the step in the present stop or start since it was last done."""
        count = 0
        for entry in self.present:
            if entry.step == step.key:
                count = 0 if entry.status == "done" else count + (entry.status == "failed")
        return count

    def with_untold(self, message: Untold) -> "HoursRecord":
        """The record with a message that is still to be sent; the same key once, the oldest ones go."""
        if any(untold.key == message.key for untold in self.untold):
            return self
        waiting = (*self.untold, message)[-KEPT_UNTOLD:]
        while len(waiting) > 1 and sum(len(each.text) for each in waiting) > UNTOLD_CHARS:
            waiting = waiting[1:]
        return replace(self, untold=waiting)

    def with_stop_begun(self, before: EndpointBefore, now: datetime) -> "HoursRecord":
        """The record at the beginning of a stop: everything stored, and nothing left of the last one."""
        return replace(
            self,
            state=HoursState.STOPPING,
            before=before,
            journal=(Entry(now, BEGINS, "noted", "stop"),),
            since=now,
            serving_at=None,
            remaining=(),
            reason=None,
        )

    def with_entry(self, entry: Entry) -> "HoursRecord":
        """The record with one more line; the oldest ones go."""
        return replace(self, journal=(*self.journal, entry)[-KEPT_ENTRIES:])

    def with_intent(self, step: Step, now: datetime) -> "HoursRecord":
        """The record with the line before the write of a step, and of a creation whose turn it was."""
        record = self.with_entry(intent_of(step, now))
        if step.kind is not StepKind.CREATE_ENDPOINT or self.before is None:
            return record
        return replace(record, had_fallback=step.params["EndpointConfigName"] == self.before.fallback_config)


def intent_of(step: Step, now: datetime) -> Entry:
    """The journal's line before a step."""
    return Entry(now, step.key, "intended", step.kind.value)


def ended_times(times: tuple[StoppedTime, ...], at: datetime) -> tuple[StoppedTime, ...]:
    """Stopped times with the last one ended, where it still lasts."""
    if not times or times[-1].end is not None:
        return times
    return (*times[:-1], replace(times[-1], end=max(at, times[-1].start)))


def night_of(record: HoursRecord, now: datetime) -> StoppedTime:
    """Stopped time that begins now, with what ran before it."""
    before = record.before
    if before is None:
        return StoppedTime(now)
    known = not before.deployed_config and all(v.instance_type for v in before.variants)
    ran = tuple((v.instance_type, v.count) for v in before.variants) if known else ()
    return StoppedTime(now, was_modified_at=before.modified_at, ran=ran)


def continued_times(times: tuple[StoppedTime, ...], modified_at: datetime) -> tuple[StoppedTime, ...]:
    """Stopped times, the last of which tells by which modification time the endpoint is known now."""
    if not times:
        return times
    return (*times[:-1], replace(times[-1], modified_at=modified_at))


def hours_id(endpoint: str) -> str:
    """The id by which office hours hold the lock of an endpoint, while it is stopped or on its way."""
    return f"{ID_PREFIX}{endpoint}"


def take_wake(record: HoursRecord, wake: Wake, limits: HoursLimits) -> HoursRecord | Reason:
    """The record with the order to be awake, or why it is not taken. A longer stay than the longest is cut."""
    day = [w for w in record.wakes if w.at > wake.at - timedelta(days=1)]
    if len(day) >= limits.wakes_a_day:
        text = f"{record.ref.name} was woken {len(day)} times in 24 hours, and wakes_per_day is {limits.wakes_a_day}"
        return Reason(Code.BUDGET_SPENT, f"{text}; change its tag rightsizer:hours where it is needed longer")
    if wake.until <= wake.at:
        return Reason(Code.BAD_SETTING, f"a wake of {record.ref.name} must end after it begins")
    until = min(wake.until, wake.at + limits.longest_wake)
    kept = (w for w in record.wakes if w in day or w.until > wake.at)
    return replace(record, wakes=(*kept, replace(wake, until=until)), next_due=wake.at)


def config_command(before: EndpointBefore, region: str) -> str:
    """The command that makes the configuration again, where somebody deleted it."""
    body = {k: v for k, v in before.config_body.items() if k not in CONFIG_OUTPUT and v is not None}
    tags = [{"Key": k, "Value": v} for k, v in sorted(before.config_tags.items()) if not k.lower().startswith("aws:")]
    whole = {"EndpointConfigName": before.config_name, **body} | ({"Tags": tags} if tags else {})
    return command("sagemaker", "CreateEndpointConfig", whole, region)


def model_command(model: ModelBefore, region: str) -> str:
    """The command that makes a model again, where somebody deleted it."""
    body = {key: value for key, value in model.body.items() if value is not None}
    return command("sagemaker", "CreateModel", body, region)


def watched_endpoints(alarm: Mapping[str, Any]) -> frozenset[str]:
    """Names of the endpoints that an alarm names as a dimension, also inside a metric expression."""
    stats = (query.get("MetricStat", {}).get("Metric", {}) for query in alarm.get("Metrics", ()))
    found = (d for metric in (alarm, *stats) for d in metric.get("Dimensions", ()) if d["Name"] == "EndpointName")
    return frozenset(str(dimension["Value"]) for dimension in found)


def queries(alarm: Mapping[str, Any], endpoint: str) -> bool:
    """Whether a Metrics Insights query of the alarm names the endpoint; it may see others too."""
    texts = (str(query.get("Expression") or "") for query in alarm.get("Metrics", ()))
    return any("SELECT" in text.upper() and endpoint in re.findall(r"['\"]([^'\"]*)['\"]", text) for text in texts)


def alarm_step(alarm: Mapping[str, Any], before: EndpointBefore) -> Step:
    """The step that puts an alarm with the policies that it starts, named by their places."""
    return Step(StepKind.PUT_ALARM, str(alarm["AlarmName"]), with_policy_places(alarm, before.scaling))
