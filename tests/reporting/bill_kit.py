"""Courses of endpoints with changes in the middle of hours: what ran, what would have run, and the table of both."""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

from rightsizer.aws.bill_sources import BillFiles, Opened
from rightsizer.domain.bill import BillWindow, Reconciliation
from rightsizer.domain.option import Target
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import Report
from rightsizer.flows.bill import reconcile_with_bill
from rightsizer.reporting.totals import Records, make_report
from sandbox.charges import CUR_HEADS, FOCUS_HEADS, Charge, Payer, Plan, Ran, charges, cur_rows, focus_rows, written
from tests.samples import option, price, proposal, recommendation

ACCOUNT, REGION = "111122223333", "eu-west-1"
START = datetime(2026, 1, 5, tzinfo=UTC)
END, NOW = START + timedelta(days=7), START + timedelta(days=9)
HOUR = timedelta(hours=1)
USD = {"ml.g5.12xlarge": 7.09, "ml.g5.xlarge": 1.41, "ml.g6.xlarge": 1.13}


@dataclass(frozen=True)
class Course:
    """One endpoint: large until its change, small since; the change was before, in or never in the window."""

    name: str
    changed: datetime | None
    old: str = "ml.g5.12xlarge"
    new: str = "ml.g5.xlarge"

    def ran(self) -> Iterator[Ran]:
        """The instances that really ran."""
        turned = self.changed or END + timedelta(days=2)
        yield Ran(self.name, self.old, START - timedelta(days=2), turned)
        yield Ran(self.name, self.new, turned, END + timedelta(days=2))

    def true_cost(self, start: datetime, end: datetime) -> float:
        """Its cost at public prices, to the second."""
        spans = ((max(one.start, start), min(one.end, end), one.instance_type) for one in self.ran())
        return sum(max(0.0, (until - since) / HOUR) * USD[kind] for since, until, kind in spans)

    def seen(self) -> Recommendation:
        """Its latest recommendation, made after the window: of what runs then."""
        kind = self.new if self.changed else self.old
        monthly = Decimal(str(USD[kind])) * 730
        made = recommendation(
            self.name, instance_type=kind, price=price(kind, str(USD[kind])), usd_per_month=monthly,
            evaluated_at=END + timedelta(hours=2), options=(),
        )  # fmt: skip
        assert made.evidence is not None
        return replace(made, evidence=replace(made.evidence, start=START - timedelta(days=9), end=END))

    def asked(self) -> Iterator[Proposal]:
        """The approved proposal behind the change."""
        if self.changed is not None:
            moved = option(target=Target(self.new, 1))
            found = recommendation(self.name, instance_type=self.old, options=(moved,))
            yes = Decision(ProposalState.APPROVED, "slack:U1", self.changed - HOUR)
            yield proposal(
                f"p-{self.name}", recommendation=found, decision=yes, state=ProposalState.PROVEN,
                created_at=self.changed - 2 * HOUR, change_id=f"c-{self.name}",
            )  # fmt: skip

    def booked(self, promised: float = 1.0) -> Iterator[LedgerEntry]:
        """The ledger: the promise, and the saving in parts of a day from the change on."""
        if self.changed is None:
            return
        rate = Decimal(str(USD[self.old])) - Decimal(str(USD[self.new]))
        month = rate * 730 * Decimal(str(promised))
        yield LedgerEntry(
            f"e-{self.name}", self.name, f"c-{self.name}", "", self.changed, "estimated", month, 730, True, ""
        )
        at = self.changed
        while at < END:
            until = min(at + 24 * HOUR, END - timedelta(microseconds=1))
            hours = (until - at) / HOUR
            usd = rate * Decimal(str(hours))
            yield LedgerEntry(
                f"r-{self.name}{at}", self.name, f"c-{self.name}", "", until, "realised", usd, hours, True, ""
            )
            at += 24 * HOUR


def records(courses: Iterable[Course], promised: float = 1.0) -> Records:
    every = list(courses)
    return Records(
        ACCOUNT,
        REGION,
        [one.seen() for one in every],
        [asked for one in every for asked in one.asked()],
        [entry for one in every for entry in one.booked(promised)],
        [],
    )


def bill_of(courses: Iterable[Course], plan: Plan | None = None, until: datetime = END + 24 * HOUR) -> list[Charge]:
    """The bill, with what is in every bill beside: credit, tax, refund, other Regions, accounts and services."""
    payer = Payer(ACCOUNT, REGION, "EU", USD.__getitem__, plan, {one.name: {"app": one.name} for one in courses})
    ran = [one for course in courses for one in course.ran()]
    found = list(charges(ran, payer, START - 24 * HOUR, until))
    month = (START.replace(day=1), START.replace(month=2, day=1))
    host = ("AmazonSageMaker", "EU-Host:ml.g5.xlarge", f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:endpoint/zzz")
    far = ("AmazonSageMaker", "USE1-Host:ml.g5.xlarge", f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/chat-0")
    one_hour = (START + 30 * HOUR, START + 31 * HOUR)
    return [
        *found,
        Charge("Credit", *one_hour, ACCOUNT, REGION, *host, listed=-40.0),
        Charge("Refund", *one_hour, ACCOUNT, REGION, *host, listed=-3.0),
        Charge("Tax", *month, ACCOUNT, REGION, listed=310.0),
        Charge("Usage", *one_hour, ACCOUNT, "us-east-1", *far, hours=500, listed=9000.0, effective=9000.0),
        Charge("Usage", *one_hour, "999988887777", REGION, *host, hours=500, listed=9000.0, effective=9000.0),
        Charge("Usage", *one_hour, ACCOUNT, REGION, "AmazonEC2", "EU-BoxUsage:g5.xlarge", "i-1", 1, 1.2, 1.2),
        Charge("Usage", *one_hour, ACCOUNT, REGION, "AmazonSageMaker", "EU-Train:ml.g5.xlarge", "", 9, 12.0, 12.0),
    ]


def as_cur(found: Iterable[Charge], *, packed: bool = False, currency: str = "USD") -> bytes:
    return written(CUR_HEADS, cur_rows(found, currency), packed=packed)


def as_focus(found: Iterable[Charge], *, packed: bool = False, currency: str = "USD") -> bytes:
    return written(FOCUS_HEADS, focus_rows(found, currency), packed=packed)


def reader(*bodies: bytes) -> BillFiles:
    """What reads these files."""

    def opened(_: BillWindow) -> Iterator[Opened]:
        for number, body in enumerate(bodies):
            yield f"bill-{number}.csv", io.BufferedReader(io.BytesIO(body))

    return BillFiles(opened, 600.0)


def compared(kept: Records, *bodies: bytes, now: datetime = NOW) -> Reconciliation:
    return reconcile_with_bill(lambda: reader(*bodies), kept, START, END, now)


def report_of(kept: Records, found: Reconciliation) -> Report:
    return replace(make_report(kept, START, END, NOW), reconciliation=found)


@st.composite
def courses(draw: st.DrawFn) -> list[Course]:
    """Up to five endpoints on shared types; changes fall on any second."""
    seconds = st.none() | st.integers(-20 * 3600, 6 * 24 * 3600)
    made = []
    for number in range(draw(st.integers(1, 5))):
        at = draw(seconds)
        new = draw(st.sampled_from(("ml.g5.xlarge", "ml.g6.xlarge")))
        changed = None if at is None else START + timedelta(seconds=at)
        made.append(Course(f"chat-{number}", changed, new=new))
    return made


plans = st.none() | st.floats(0.5, 30.0).map(lambda usd: Plan(round(usd, 2)))
