"""A proposal: what a person is asked to decide, its states, and the ids that follow from it."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from rightsizer.domain.approvers import caller_name
from rightsizer.domain.checks import aware, not_empty
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.reason import one_line
from rightsizer.domain.recommendation import Gate, Recommendation

PATIENCE = timedelta(days=7)
"""How long an approval is good for. What it has not changed by then is closed as expired, and told."""
SILENCE = timedelta(days=90)
"""How long a rejected proposal is not asked again, while the demand is what it was."""
DEMAND_MOVED = 0.25
"""Share by which the requests a day must differ from those at the rejection for the question to come back sooner."""
SNOOZE_DAYS = (7, 30, 90)
"""Days for which a proposal can be put aside."""
USUAL_SNOOZE = 30


class ProposalState(StrEnum):
    """Where a proposal stands. Only PENDING can be decided on; each transition is a conditional write."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    SNOOZED = "snoozed"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    APPLYING = "applying"
    APPLIED = "applied"
    """The change stands and is over, but it served too few requests to call it proven."""
    PROVEN = "proven"
    ROLLED_BACK = "rolled-back"
    HANDED_OVER = "handed-over"


UNDOABLE = frozenset({ProposalState.APPLYING, ProposalState.APPLIED, ProposalState.PROVEN})
"""States of a proposal whose change can be taken back."""
STOPPABLE = UNDOABLE | {ProposalState.APPROVED}
"""States in which a person's order stops what follows: nothing begins any more, or the change goes back."""


class DecisionSource(StrEnum):
    """Where a decision came from."""

    POLICY = "policy"
    """Automatic mode: the tag of the endpoint's owner, and no person."""
    SLACK = "slack"
    CLI = "cli"
    OTHER = ""
    """No source that this release knows."""


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """The decider: a source, and the person there."""

    source: DecisionSource
    person: str = ""
    """The Slack user id or the caller's ARN; empty for automatic mode."""

    @classmethod
    def read(cls, text: str) -> "DecidedBy":
        """The decider behind a stored text. What follows the colon of an unknown source is the person."""
        name, colon, person = text.partition(":")
        if text == DecisionSource.POLICY:
            return cls(DecisionSource.POLICY)
        if colon and name in (DecisionSource.SLACK, DecisionSource.CLI):
            return cls(DecisionSource(name), person)
        return cls(DecisionSource.OTHER, person or text)

    @property
    def text(self) -> str:
        """The text that is stored, such as ``slack:U123``."""
        return ":".join(part for part in (self.source.value, self.person) if part)


def decider_name(by: str) -> str:
    """A decider for people: the automatic mode, a Slack id, or an AWS identity as `caller_name` has it."""
    decider = DecidedBy.read(by)
    if decider.source is DecisionSource.POLICY:
        return "policy (automatic mode)"
    is_caller = decider.source is DecisionSource.CLI
    return one_line(caller_name(decider.person) if is_caller else decider.person or by) or "somebody"


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision on a proposal: decider, state, time and comment."""

    state: ProposalState
    by: str
    """``slack:U123``, ``cli:arn:aws:iam::...``, ``policy`` for automatic mode."""
    at: datetime
    comment: str = ""
    test_first: bool = False
    """Of an approval: whether the shadow test runs first, and the change follows where the test proves well."""
    snooze_days: int = USUAL_SNOOZE
    """Of a snooze: days after which it is asked again."""
    revision: int | None = None
    """Revision of the proposal that the person saw; None where the person named none, as at a terminal."""

    @property
    def decider(self) -> DecidedBy:
        """The decider, by source and person."""
        return DecidedBy.read(self.by)

    @property
    def is_automatic(self) -> bool:
        """Whether automatic mode decided, and no person."""
        return self.decider.source is DecisionSource.POLICY


@dataclass(frozen=True, slots=True)
class EnablingStep:
    """The reason why a proposal cannot be approved, and the step that changes that."""

    why: str
    """One sentence."""
    lines: str = ""
    """A command or a diff to copy; empty where there is none."""

    @classmethod
    def of_enable(cls, enable: str) -> "EnablingStep":
        """Read the stored form: the sentence on the first line, and below it the lines to copy."""
        why, _, lines = enable.partition("\n")
        return cls(why, lines)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A recommendation that waits for a decision, and later carries it."""

    id: str
    """Opaque; the same recommendation of the same endpoint has the same id, so it is asked once."""
    recommendation: Recommendation
    created_at: datetime
    expires_at: datetime
    state: ProposalState
    approvable: bool
    """False when the role may not change the endpoint; `enable` then says how to allow it."""
    enable: str = ""
    """Why it may not, and the tag command or the owning stack's property that would: the stored `enabling_step`."""
    decision: Decision | None = None
    change_id: str = ""
    outcome: str = ""
    """One sentence about how the change stands, for the message that follows it."""
    asked_back_by: str = ""
    """Who asked for the rollback of its change; empty while nobody did."""
    ordered_by: str = ""
    """Who ordered it, or took another of its options, as `Decision.by`; empty where an evaluation proposed it whole."""
    asked_back_at: datetime | None = None
    """When that was asked; None also where an earlier release recorded it."""
    revision: int = 0
    """How often a person took another of its options. An answer in Slack names the revision that was seen."""
    measured_usd_per_month: Decimal | None = None
    """What its change saved, at the hours that ran, as US dollars a month; None until the change has ended."""

    def __post_init__(self) -> None:
        not_empty("Proposal.id", self.id)
        aware("Proposal.created_at", self.created_at)
        aware("Proposal.expires_at", self.expires_at)

    @property
    def ref(self) -> EndpointRef:
        """The endpoint it is about."""
        return self.recommendation.ref

    @property
    def enabling_step(self) -> EnablingStep:
        """The reason why it cannot be approved, and the step that changes that."""
        return EnablingStep.of_enable(self.enable or "ask whoever runs rightsizer")

    @property
    def is_test_first(self) -> bool:
        """Whether somebody decided that the shadow test runs, and that the change follows it."""
        return self.decision is not None and self.decision.test_first

    @property
    def runs_test(self) -> bool:
        """Whether an approval begins a shadow test: as decided, or as a recommendation of the gate TEST says."""
        return self.is_test_first or self.recommendation.gate is Gate.TEST

    @property
    def may_skip_test(self) -> bool:
        """Whether a plain approval makes the change itself: there is no test, or a person may go without it."""
        option = self.recommendation.chosen_option
        return self.recommendation.gate is not Gate.TEST and not (option is not None and option.test_needed)


def may_ask_again(rejected: Proposal, recommendation: Recommendation, now: datetime) -> bool:
    """Whether a rejected proposal may be asked again: its silence is over, or the demand has moved.

    Demand is requests a day. Where either is not known the silence goes on.
    """
    if rejected.decision is None or now - rejected.decision.at >= SILENCE:
        return True
    before, after = _requests_per_day(rejected.recommendation), _requests_per_day(recommendation)
    if before is None or after is None:
        return False
    return abs(after - before) >= DEMAND_MOVED * before if before > 0 else after > 0


def _requests_per_day(recommendation: Recommendation) -> float | None:
    evidence = recommendation.evidence
    return evidence.requests / evidence.days if evidence is not None and evidence.days > 0 else None


@dataclass(frozen=True, slots=True)
class MessageRef:
    """Where a proposal was posted, so that the message can follow it."""

    proposal_id: str
    channel: str
    ts: str
    shown: str
    """The state that the message shows now; the same state is not posted twice."""
    version: int = 0
    """Version of the row that it shows; 0 where an earlier release posted it. An older row is not told."""
    owner: str = ""
    """Slack id of the owner whom the message mentions; empty where nobody is mentioned."""
    thread: str = ""
    """Time of the digest in whose thread the message stands; empty where it stands by itself."""
    picture: str = ""
    """Id of the file with the picture of its two weeks; empty until one is uploaded."""
    event_due: bool = False
    """Whether EventBridge refused the event of what the message shows, so that it is still to be sent."""


_REVISION = "|revision "


def shown_state(state: str, outcome: str, asked_back_by: str = "", revision: int = 0) -> str:
    """Key of the contents that a message shows, to avoid posting them twice: state, then `|`."""
    back = f"|{asked_back_by}" if asked_back_by else ""
    return f"{state}|{outcome}{back}" + (f"{_REVISION}{revision}" if revision else "")


def shown_revision(shown: str) -> int:
    """The revision in a key of `shown_state`."""
    number = shown.rpartition(_REVISION)[2] if _REVISION in shown else ""
    return int(number) if number.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class ProposalMoved:
    """One record of the table's stream: a proposal that was written, decided on, or moved by its change."""

    sequence: str
    """What Lambda wants back when the record fails."""
    proposal: Proposal | None
    """None when the record is no proposal, or is malformed."""
    before: ProposalState | None = None
    """The state before; None when the proposal is new."""
    problem: str = ""
    """Why the record is malformed; empty when it is not."""
    id: str = ""
    """The proposal or capacity change of a malformed record, as its key says; empty where the key does not say it
    either.
    """
    version: int = 0
    """Version of the row; 0 where it has none."""


def change_id_of(proposal: Proposal, *, again: bool = False) -> str:
    """Id of the change for an approved proposal. Deliveries of one approval share one id.

    With `again`, a later approval of the same proposal gets an id of its own.
    """
    return _change_id(
        f"{proposal.id}@{proposal.decision.at.isoformat()}" if again and proposal.decision else proposal.id
    )


def id_after_stage(change_id: str) -> str:
    """Id of the change that follows one in a plan of stages."""
    return _change_id(f"{change_id}#stage")


def id_after_test(test_id: str) -> str:
    """Id of the change that follows a shadow test."""
    return _change_id(f"{test_id}#tested")


def stage_change_ids(proposal: Proposal) -> tuple[str, ...]:
    """Ids of the changes of its plan, one for each stage; () where its change is none of them.

    The first one is named by the proposal, its approval, or the shadow test before it.
    """
    begun = [change_id_of(proposal), change_id_of(proposal, again=True)]
    for first in (*begun, *map(id_after_test, begun)):
        chain = [first]
        for _ in proposal.recommendation.stages:
            chain.append(id_after_stage(chain[-1]))
        if proposal.change_id in chain:
            return tuple(chain)
    return ()


def _change_id(text: str) -> str:
    return "c-" + hashlib.sha256(text.encode()).hexdigest()[:16]
