"""A simulated account with one endpoint and the apply flow on its real adapters, for tests of changing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from rightsizer import catalog
from rightsizer.aws.account import BEFORE_A_WRITE, EndpointQuotas
from rightsizer.aws.changes import AwsChanger
from rightsizer.aws.journal import TableJournal
from rightsizer.aws.ledger import HistoryTable, SavingsTable
from rightsizer.aws.metrics import CloudWatchMetrics
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.session import Session
from rightsizer.aws.table import Table
from rightsizer.catalog import catalogue
from rightsizer.changes.shadow_test_result import change_id_after, passed_test
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.change import Change
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.proposal import Decision, Proposal, ProposalState, change_id_of
from rightsizer.flows.apply import Apply
from sandbox.account import Sandbox
from sandbox.role import Role
from sandbox.sagemaker.load import LoadModel, Served
from sandbox.stack import stack
from tests import samples
from tests.notifiers import Told
from tests.table import create_table

MONDAY = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
NAME = "chat"
OLD_TYPE, NEW_TYPE = "ml.g5.4xlarge", "ml.g5.xlarge"


@dataclass(frozen=True)
class Frozen:
    """A freeze that somebody ordered in the middle of a change."""

    at: datetime
    hard: bool
    holds: int | None = None
    """So many requests were made before it must hold: at once between two steps, else after a minute."""
    thawed: int | None = None
    """So many requests were made before it was lifted."""
    bare: bool = False
    """Whether the endpoint had no autoscaling when it was lifted."""

    def noticed(self, now: datetime, calls: int) -> "Frozen":
        """The freeze, which holds once a minute has passed."""
        held = self.holds is None and now - self.at >= timedelta(minutes=1)
        return replace(self, holds=calls) if held else self


@dataclass
class World:
    """One endpoint, one approved proposal, and the flow that carries it out."""

    box: Sandbox
    apply: Apply
    store: Recommendations
    ledger: SavingsTable
    journal: TableJournal
    proposal: Proposal
    told: list[tuple[str, str]] = field(default_factory=list)
    grown: tuple[bool, int] | None = None
    """Whether it ran the new configuration when others scaled it, and the count that they left."""
    frozen: Frozen | None = None
    released: Mapping[str, Any] | None = None
    """What a release left that somebody made after the change was over."""
    edited: str = ""
    """A component that its owner edited meanwhile."""
    edit: Mapping[str, Any] = field(default_factory=dict)
    """What it needs since."""
    taken: str = ""
    """A model of which another change holds the lock."""

    @property
    def now(self) -> datetime:
        return self.box.clock.now

    @property
    def change(self) -> Change:
        """The change of the proposal; after a shadow test that led on, the one that follows it."""
        found = self.journal.load(change_id_of(self.proposal))
        assert found is not None
        test = passed_test(found)
        return (self.journal.load(change_id_after(test)) if test is not None else None) or found

    def start(self) -> Change:
        return self.apply.start(self.proposal.id, self.now)

    def run(self, hours: float) -> Change:
        """Ticks, each when the next look is due, until the change is closed or the time is over."""
        end = self.now + timedelta(hours=hours)
        change = self.change
        while self.now < end and not change.is_closed:
            due = change.next_due or end
            self.box.clock.advance(max(min(due, end) - self.now, timedelta(minutes=1)))
            self.apply.tick(self.now)
            change = self.change
        return change

    def shown(self) -> Proposal:
        found = self.store.proposal(self.proposal.id)
        assert found is not None
        return found

    def scale(self, count: int, variant: str = "AllTraffic") -> None:
        """A person or autoscaling sets a count, which takes its time; no request of the program."""
        with self.box.gate.unrecorded():
            judge, self.box.gate.judge = self.box.gate.judge, lambda call: None
            row = {"VariantName": variant, "DesiredInstanceCount": count}
            self.box.client("sagemaker").update_endpoint_weights_and_capacities(
                EndpointName=NAME, DesiredWeightsAndCapacities=[row]
            )
            self.box.gate.judge = judge

    def live(self) -> Any:
        return self.box.client("sagemaker").describe_endpoint(EndpointName=NAME)


def steady(requests: int = 60, p95_ms: float = 200.0, errors: int = 0) -> LoadModel:
    """A load of so many requests a minute, the same on every hardware."""

    def minute(at: datetime, instance_type: str, count: int) -> Served:
        return Served(requests, latency_ms=p95_ms / 2, errors_5xx=errors)

    return minute


def pauses(at: datetime, instance_type: str, count: int) -> Served:
    """A load that comes for the first half hour of every other hour, so that a fleet may sleep in between."""
    return Served(60 if at.minute < 30 and at.hour % 2 else 0, latency_ms=100.0)


@cache
def apply_statements() -> tuple[Mapping[str, Any], ...]:
    """What the template lets the apply function do where tagged endpoints and customers' alarms may be changed."""
    return tuple(stack(MayChange="tagged", EditUserAlarms="true").statements("apply"))


def an_option(**changes: Any) -> Option:
    made = samples.option(kind=OptionKind.INSTANCE_TYPE, target=Target(NEW_TYPE, 1))
    return replace(made, **changes)


@contextmanager
def world(
    option: Option | None = None,
    *,
    limits: ChangeLimits | None = None,
    load: Any = None,
    kind: EndpointKind = EndpointKind.REAL_TIME,
    by: str = "slack:U1",
    seed: Any = None,
    proposed: Mapping[str, Any] | None = None,
    judged: Mapping[str, Any] | None = None,
    **endpoint: Any,
) -> Iterator[World]:
    """An account with the endpoint `chat` and an approved proposal for it."""
    with Sandbox(now=MONDAY) as box:
        settings: dict[str, Any] = {
            "instance_type": OLD_TYPE,
            "count": 1,
            "tags": {"rightsizer:mode": "propose"},
        } | endpoint
        box.add_endpoint(NAME, **settings)
        if seed is not None:
            with box.gate.unrecorded():
                seed(box)
        sleeps = option is not None and option.kind is OptionKind.SCALE_TO_ZERO
        box.load(NAME, load or (pauses if sleeps else steady()))
        box.gate.judge = Role(box.world, apply_statements()).refusal
        table = box.client("dynamodb")
        create_table(table)
        store = Recommendations(Table(table, "t"), lambda: box.clock.now)
        ledger = SavingsTable(Table(table, "t"))
        session = Session(region=box.region, attempts=1)
        journal = TableJournal(table, "t")
        told: list[tuple[str, str]] = []
        apply = Apply(
            journal=journal,
            changer=changer(session),
            store=store,
            ledger=ledger,
            history=HistoryTable(Table(table, "t")),
            metrics=CloudWatchMetrics(session, workers=1),
            quotas=EndpointQuotas(session, lambda: box.clock.now, BEFORE_A_WRITE),
            catalogue=catalogue(catalog.instances(), catalog.accelerators()),
            dimensions=DIMENSIONS,
            limits=samples.with_approver(limits or ChangeLimits(probation=timedelta(hours=2), rewire_alarms=True), by),
            notifier=Told(lambda subject, text: told.append((subject, text))),
        )
        proposal = replace(_approved(box, option or an_option(), kind, by, judged or {}), **(proposed or {}))
        store.save(proposal.recommendation, proposal)
        yield World(box, apply, store, ledger, journal, proposal, told)


def changer(session: Session) -> AwsChanger:
    return AwsChanger(
        session.client("sagemaker"),
        session.client("application-autoscaling"),
        session.client("cloudwatch"),
        session.client("ec2"),
        session.client("iam"),
        session.client("ecr"),
        session.client("sts"),
    )


def _approved(box: Sandbox, option: Option, kind: EndpointKind, by: str, judged: Mapping[str, Any]) -> Proposal:
    live = box.client("sagemaker").describe_endpoint(EndpointName=NAME)
    counts = ",".join(f"{v['VariantName']}={v['DesiredInstanceCount']}" for v in live["ProductionVariants"])
    fingerprint = f"{live['EndpointConfigName']}|{live['LastModifiedTime'].isoformat()}|{counts}"
    made = samples.recommendation(
        NAME,
        **{"evaluated_at": box.clock.now, "fingerprint": fingerprint, "options": (option,), "kind": kind, **judged},
    )
    decision = Decision(ProposalState.APPROVED, by, box.clock.now)
    return samples.proposal(
        recommendation=made,
        created_at=box.clock.now,
        expires_at=box.clock.now + timedelta(days=14),
        state=ProposalState.APPROVED,
        decision=decision,
    )


@contextmanager
def others(w: World) -> Iterator[None]:
    """What people do with permissions of their own."""
    with w.box.gate.unrecorded():
        judge, w.box.gate.judge = w.box.gate.judge, lambda call: None
        yield
        w.box.gate.judge = judge
