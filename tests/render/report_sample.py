"""A report with something in each part of it, for tests and pictures that show one."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from rightsizer.domain.bill import ReconciledRow, Reconciliation
from rightsizer.domain.history import PastEnd
from rightsizer.domain.outcome import LedgerEntry, Occurrence, RiskLevel, SpeedOutcome, SpeedSummary, TrackRecord
from rightsizer.domain.price import CENT
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.domain.report import CostLine, Report, RunningCost, SinceLast
from rightsizer.reporting.totals import Records, make_report
from tests.samples import NOW, option, proposal, recommendation

END = NOW.replace(hour=0, minute=0) - timedelta(days=NOW.weekday())
START = END - timedelta(days=7)
OWNERS = ("search", "risk", "media", "")


def endpoints() -> list[Recommendation]:
    """Fourteen endpoints of four owners, of every finding."""
    made = []
    for number in range(14):
        usd = Decimal(9000 - 550 * number)
        saving = (usd * Decimal("0.6")).quantize(Decimal("0.01"))
        one = recommendation(
            f"endpoint-with-a-rather-long-name-{number}",
            owner=OWNERS[number % 4],
            usd_per_month=usd,
            evaluated_at=END - timedelta(hours=6),
            options=(option(saving_usd_per_month=saving, usd_per_month=usd - saving),),
            finding=Finding.IDLE if number == 5 else Finding.OVER_PROVISIONED,
        )
        assert one.evidence is not None
        made.append(replace(one, evidence=replace(one.evidence, start=END - timedelta(days=11), end=END)))
    short = Reason(Code.UNDER_PROVISIONED, "p95 is 0.65 s, above the objective of 0.60 s")
    grown = option(saving_usd_per_month=Decimal(-822), growth_usd=Decimal(822))
    made[12] = replace(made[12], finding=Finding.UNDER_PROVISIONED, reason=short, options=(grown,))
    made[13] = replace(made[13], finding=Finding.OPTIMIZED, options=(), usd_per_month=None, price=None, replay=None)
    return made


def sample_report() -> Report:
    """A week in which one change was proven, one went back, and six proposals wait."""
    found = endpoints()
    yes = Decision(ProposalState.APPROVED, "slack:U1", START + timedelta(days=1))
    states = (ProposalState.PROVEN, ProposalState.ROLLED_BACK, *[ProposalState.PENDING] * 6)
    asked = [
        proposal(
            f"p-{number}",
            recommendation=found[number],
            created_at=START + timedelta(hours=number),
            state=state,
            decision=yes if number < 2 else None,
            change_id=f"c-{number}" if number < 2 else "",
        )
        for number, state in enumerate(states)
    ]
    name = found[0].ref.name
    turned = START + timedelta(days=3)
    booked = [
        LedgerEntry(
            f"l{day}", name, "c-0", "search", turned + timedelta(days=day), "realised", Decimal(110), 24, True, ""
        )
        for day in (1, 2, 3)
    ]
    promised = LedgerEntry("e", name, "c-0", "search", turned, "estimated", Decimal(3345), 730, False, "")
    happened = [Occurrence("o", turned, "spot-interruption", "i-0123456789abcdef0", "its replacement started at once")]
    ended = {"c-0": turned, "c-1": turned}
    records = Records(
        "111122223333", "eu-west-1", found, asked, [promised, *booked], happened, ended=ended, returned={"c-1"}
    )
    made = make_report(records, START, END, END + timedelta(hours=7))
    before = replace(made.totals, spend=made.totals.spend + 400, proven=Decimal(0))
    since = SinceLast(
        START - timedelta(days=7), START, before, ("new-endpoint",), ("old-endpoint",), ((name, Decimal(-400)),)
    )
    cost = RunningCost((CostLine("functions", Decimal("0.12"), "310 invocations"),), "Estimate from list prices.")
    return replace(
        made, track_record=_record(), since_last=since, running_cost=cost, reconciliation=_reconciliation(made)
    )


def _reconciliation(made: Report) -> Reconciliation:
    """The bill of five days, a little above the table; the first endpoint has a change in force."""
    rows = []
    for number, row in enumerate(made.money.rows[:6]):
        spent = ((row.spend or Decimal(0)) * 5 / 30).quantize(CENT)
        billed = (spent * Decimal("1.012")).quantize(CENT)
        would = spent + (Decimal(550) if number == 0 else 0)
        rows.append(
            ReconciledRow(
                name=row.endpoint,
                endpoints=1,
                days=5,
                hours=Decimal(120),
                spent=spent,
                billed=billed,
                paid=(billed * Decimal("0.9")).quantize(CENT),
                would_have_cost=would,
                reconciled=would - billed if number == 0 else Decimal(0),
                promised=Decimal(580) if number == 0 else None,
            )
        )
    notes = ("5 of 7 days are compared: the bill does not have the others whole.",)
    aside = (("credit", Decimal("-40.00")), ("tax", Decimal("70.00")))
    return Reconciliation(
        source="CUR 2.0", days=5, rows=tuple(rows), unmatched=Decimal("12.40"), aside=aside, notes=notes
    )


def _record() -> TrackRecord:
    speed = SpeedSummary("vllm", 2, 1.1, 1.2, 2, 0)
    outcome = SpeedOutcome("chat", "c-1", START, "a", "b", "vllm", PastEnd.PROVEN, 1.2, 1.4, 1.1, 0.9, False, 1.0)
    level = RiskLevel(1, 0.005, 0.02, 14, 0, 0.0, 0.2)
    return TrackRecord(START, END, 2, (outcome,), speed, (speed,), (speed,), 14, (level,), 0.1, 0.2)
