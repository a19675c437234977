"""Triggers: events that reached a door, reduced to their meaning for the program."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from rightsizer.domain.checks import aware, not_empty
from rightsizer.domain.reason import Reason


class EvaluationReason(StrEnum):
    """Why endpoints are evaluated."""

    FULL_SWEEP = "full-sweep"
    LIGHT_SWEEP = "light-sweep"
    ALARM = "alarm"
    CONTRIBUTOR = "contributor"
    """A contributor of an alarm that is grouped by endpoint."""
    EVENT = "event"
    """SageMaker said that the endpoint is in service."""
    OTHER = "other"
    """A word of another release, read from the queue."""


class LookReason(StrEnum):
    """Why groups or jobs are looked at; the values travel in messages of the queue."""

    INTERRUPTION = "interruption"
    """Capacity of the group was interrupted, or a launch failed for another cause than a lack in every pool."""
    NO_CAPACITY = "no-capacity"
    """A launch failed, and every pool of the group is marked as short of capacity."""
    SWEEP = "sweep"
    OTHER = "other"
    """A word of another release, read from the queue."""


class SweepKind(StrEnum):
    """How much a sweep looks at: `LIGHT` only new, changed or alarmed endpoints, `FULL` all."""

    LIGHT = "light"
    FULL = "full"

    @property
    def reason(self) -> EvaluationReason:
        """Reason for which the endpoints of such a sweep are evaluated."""
        return EvaluationReason.FULL_SWEEP if self is SweepKind.FULL else EvaluationReason.LIGHT_SWEEP


@dataclass(frozen=True, slots=True)
class SweepDue:
    """The schedule fired."""

    sweep: SweepKind
    scheduled_at: datetime
    kind: Literal["sweep-due"] = "sweep-due"


@dataclass(frozen=True, slots=True)
class ReportDue:
    """A report is due."""

    period: Literal["weekly", "monthly"]
    scheduled_at: datetime
    kind: Literal["report-due"] = "report-due"


@dataclass(frozen=True, slots=True)
class TickDue:
    """Open changes are due for a look, whether or not an event arrived."""

    scheduled_at: datetime
    kind: Literal["tick-due"] = "tick-due"


@dataclass(frozen=True, slots=True)
class ListedEndpoint:
    """An endpoint in service as ListEndpoints showed it; another endpoint of its name has another creation time."""

    name: str
    created_at: datetime
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class LookAt:
    """Look at these endpoints now: an alarm fired, or a sweep sent a page of them."""

    endpoints: tuple[str, ...]
    because: EvaluationReason
    alarm: str
    """Name of the alarm; empty for a sweep."""
    at: datetime
    key: str
    """Idempotency key: the same event delivered twice has the same key."""
    fleet: int = 0
    """Endpoints of the account when a full sweep sent this page; 0 when that is not known."""
    listed: tuple[ListedEndpoint, ...] = ()
    """Endpoints of the page that a sweep saw in service, at `at` or later."""
    kind: Literal["look-at"] = "look-at"

    def __post_init__(self) -> None:
        aware("LookAt.at", self.at)


@dataclass(frozen=True, slots=True)
class LookAtAlarm:
    """An alarm that names no endpoint fired (composite, query): ask CloudWatch which endpoints it means."""

    alarm: str
    at: datetime
    key: str
    kind: Literal["look-at-alarm"] = "look-at-alarm"


@dataclass(frozen=True, slots=True)
class LookBeyond:
    """Look at things beside the endpoints: Auto Scaling groups after an interruption, training jobs that go on."""

    subject: Literal["group", "training-job"]
    names: tuple[str, ...]
    because: LookReason
    at: datetime
    key: str
    kind: Literal["look-beyond"] = "look-beyond"

    def __post_init__(self) -> None:
        aware("LookBeyond.at", self.at)


@dataclass(frozen=True, slots=True)
class WakeAsked:
    """Somebody who may put events on the stack's bus wants an endpoint that sleeps by its hours to serve."""

    endpoint: str
    minutes: int
    account: str
    """That put the event, as AWS says it."""
    at: datetime
    key: str
    """Id of the event: the same event delivered twice has the same."""
    kind: Literal["wake-asked"] = "wake-asked"

    def __post_init__(self) -> None:
        aware("WakeAsked.at", self.at)


@dataclass(frozen=True, slots=True)
class EndpointMoved:
    """SageMaker says that an endpoint or its deployment changed state. A hint only: always describe again."""

    endpoint: str
    status: str
    """As the API spells it: ``InService``, ``Updating``."""
    config_name: str
    at: datetime
    deployment: bool
    """True for the deployment event, false for the endpoint event."""
    key: str
    kind: Literal["endpoint-moved"] = "endpoint-moved"


@dataclass(frozen=True, slots=True)
class SpotInterruption:
    """EC2 takes an instance back. The zone comes from the event's odd ARN; the account is not in it."""

    instance_id: str
    action: str
    """``terminate``, ``stop`` or ``hibernate``."""
    zone: str
    at: datetime
    key: str
    kind: Literal["spot-interruption"] = "spot-interruption"

    def __post_init__(self) -> None:
        not_empty("SpotInterruption.instance_id", self.instance_id)


@dataclass(frozen=True, slots=True)
class RebalanceRecommended:
    """EC2 sees an elevated risk of interruption. Recorded and counted, not acted on."""

    instance_id: str
    at: datetime
    key: str
    kind: Literal["rebalance-recommended"] = "rebalance-recommended"


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """An Auto Scaling group could not launch an instance."""

    group: str
    zone: str
    message: str
    at: datetime
    key: str
    kind: Literal["launch-failed"] = "launch-failed"


@dataclass(frozen=True, slots=True)
class InstanceMoved:
    """An EC2 instance changed state."""

    instance_id: str
    state: str
    at: datetime
    key: str
    kind: Literal["instance-moved"] = "instance-moved"


@dataclass(frozen=True, slots=True)
class JobMoved:
    """A training job, or a HyperPod cluster or node, changed state."""

    resource: Literal["training-job", "hyperpod-cluster", "hyperpod-node"]
    name: str
    status: str
    detail: str
    at: datetime
    key: str
    kind: Literal["job-moved"] = "job-moved"


@dataclass(frozen=True, slots=True)
class NoTrigger:
    """An event that asks nothing of us, and why. Not an error."""

    reason: Reason
    kind: Literal["no-trigger"] = "no-trigger"


type Trigger = (
    SweepDue
    | ReportDue
    | TickDue
    | LookAt
    | LookAtAlarm
    | LookBeyond
    | EndpointMoved
    | SpotInterruption
    | RebalanceRecommended
    | LaunchFailed
    | InstanceMoved
    | JobMoved
    | WakeAsked
    | NoTrigger
)


@dataclass(frozen=True, slots=True)
class Received:
    """One message of a batch, with what it means or why it cannot be understood."""

    message_id: str
    trigger: Trigger | None
    problem: str = ""
    """Why the message is malformed, naming field and cause; empty when `trigger` is set."""


REASON_FORM = "rightsizer_why"
"""Callback of the form that asks why a proposal is rejected."""


@dataclass(frozen=True, slots=True)
class DecisionAsked:
    """A decision on a proposal."""

    verb: Literal["approve", "test", "reject", "snooze"]
    proposal_id: str
    revision: int = 0
    """Revision of the proposal that the message showed."""
    days: int = 0
    """Of a snooze; 0 where none were chosen."""
    comment: str = ""
    """What the person wrote into the form."""


@dataclass(frozen=True, slots=True)
class OptionTaken:
    """Another option of a proposal, by its place, is to be the recommended one."""

    proposal_id: str
    revision: int
    place: int


@dataclass(frozen=True, slots=True)
class RollbackAsked:
    """The change of a proposal is to be undone, or not to begin."""

    proposal_id: str


@dataclass(frozen=True, slots=True)
class WakePressed:
    """An endpoint that its office hours stopped is to serve for a while."""

    endpoint: str
    stay: timedelta


@dataclass(frozen=True, slots=True)
class PageAsked:
    """A page that anybody in the channel may read: details by a proposal's id, or a report by its name."""

    page: Literal["details", "report"]
    name: str


@dataclass(frozen=True, slots=True)
class UnknownButton:
    """A button or form that this release does not have, or that lost what it is about."""

    action: str


type ButtonAsk = DecisionAsked | OptionTaken | RollbackAsked | WakePressed | PageAsked | UnknownButton


@dataclass(frozen=True, slots=True)
class Click:
    """A verified click on a button of ours. The signature proves Slack, not that the person may decide."""

    asked: ButtonAsk
    user: str
    """Slack user id, such as ``U0123``."""
    team: str
    channel: str
    trigger_id: str
    """Opens one modal within three seconds; empty when Slack sent none."""
    response_url: str = field(default="", repr=False)
    """Takes answers that only `user` sees: at most five, within 30 minutes. Whoever knows it may post there."""
    sent_at: datetime | None = None
    """When Slack signed the request, to the second; Slack waits three seconds for the answer."""
    view_id: str = ""
    """The modal in which it was pressed; empty in a message."""
    is_form: bool = False
    """Whether a form was sent with it."""


@dataclass(frozen=True, slots=True)
class NotClicked:
    """Verified, but nothing for us to do; Slack still wants its 200."""

    sentence: str


@dataclass(frozen=True, slots=True)
class NotVerified:
    """Not proven to come from Slack just now. The sentence is for our log, not for the caller."""

    status: int
    sentence: str


type Interaction = Click | NotClicked | NotVerified
