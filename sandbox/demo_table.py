"""The table that the demo prints and the README shows: what was found, what happened, what it is worth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.office_hours import HOURS_TAG
from rightsizer.domain.option import Option, fleet
from rightsizer.domain.price import HOURS_PER_MONTH, Price
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.recommendation import Recommendation
from rightsizer.ports.evaluation import RecommendationStore
from rightsizer.recommender.pricing import monthly_cost
from rightsizer.recommender.usage_days import running_hours

HEAD = ("endpoint", "runs on", "finding", "recommended", "saves, USD a month", "what happened")
NAMED = 10
"""Endpoints with a line of their own; the others are counted by finding."""
BEGIN = "<!-- demo table: written by `make demo`, compared by a test -->"
END = "<!-- end of the demo table -->"
LEFT, ASKED = "left alone", "asked in Slack"
IN_ALL, OF = "in all", "of"
BY_TAG = "by its tag"
IN_FORCE = ("changed ", BY_TAG)
"""How the last column of the table begins where a saving is there already."""


@dataclass(frozen=True, slots=True)
class Row:
    """One endpoint."""

    endpoint: str
    runs_on: str
    finding: str
    recommended: str
    saving: Decimal
    happened: str
    why: str
    cost: Decimal | None
    """US dollars a month today; None where the price is not known."""


def rows(store: RecommendationStore, resting: Sequence[HoursRecord] = (), now: datetime | None = None) -> list[Row]:
    """One row an endpoint: those that were changed or asked about first, the dearest first.

    `resting`: records of endpoints with office hours, which a tag of their owner had stopped by `now`.
    """
    asked: dict[str, Proposal] = {}
    for proposal in sorted(store.proposals(), key=lambda one: one.created_at):
        if not (asked.get(proposal.ref.name) and not proposal.change_id and asked[proposal.ref.name].change_id):
            asked[proposal.ref.name] = proposal
    nights = {record.ref.name: record for record in resting if record.stopped_times}
    found = []
    for one in store.recommendations():
        row, night = _row(one, asked.get(one.ref.name)), nights.get(one.ref.name)
        found.append(
            row if night is None or now is None or one.price is None else _went_home(row, night, one.price, now)
        )
    return sorted(found, key=lambda row: (row.happened == LEFT, row.happened == ASKED, -row.saving, row.endpoint))


def _row(now: Recommendation, proposal: Proposal | None) -> Row:
    shown = proposal.recommendation if proposal else now
    option = shown.chosen_option
    return Row(
        endpoint=shown.ref.name,
        runs_on=f"{shown.instance_count} x {shown.instance_type}" if shown.instance_type else str(shown.kind),
        finding=shown.finding,
        recommended=recommended(shown) if proposal else "",
        saving=shown.approval_usd_per_month if option and proposal and not _undone(proposal) else Decimal(0),
        happened=_happened(proposal),
        why=shown.reason.sentence,
        cost=now.usd_per_month,
    )


def _went_home(row: Row, record: HoursRecord, price: Price, now: datetime) -> Row:
    """The row of an endpoint that its office hours stopped and started: what a month of its hours saves."""
    last = record.stopped_times[-1]
    zone = ZoneInfo(record.hours.rpartition(" ")[2])
    back = f", back {last.end.astimezone(zone):%a %H:%M}" if last.end is not None else ""
    hours = running_hours({HOURS_TAG: record.hours}, record.stopped_times, now)
    count = sum(each for _, each in last.ran)
    always = monthly_cost(replace(price, hours_per_month=HOURS_PER_MONTH), count)
    return replace(
        row,
        recommended=record.hours,
        saving=always - monthly_cost(replace(price, hours_per_month=hours), count),
        happened=f"{BY_TAG}: went home {last.start.astimezone(zone):%a %H:%M}{back}",
    )


def recommended(found: Recommendation) -> str:
    """The recommended option and the later stages that its approval covers; they are in what is saved."""
    option = found.chosen_option
    if option is None:
        return "more than it has; no option is known" if found.is_short else ""
    later = (
        fleet(stage.target).replace("×", "x") if stage.target.metric else "fewer by the hour" for stage in found.stages
    )
    return ", then ".join((_target(option), *later))


def _target(option: Option) -> str:
    count = option.target.instance_count
    return f"{count} x {option.target.instance_type}" if count else "delete, by its owner"


def _undone(proposal: Proposal) -> bool:
    return proposal.state is ProposalState.ROLLED_BACK


def _happened(proposal: Proposal | None) -> str:
    if proposal is None:
        return LEFT
    if proposal.decision is None:
        return ASKED if proposal.state is ProposalState.PENDING else str(proposal.state)
    by = "by itself" if proposal.decision.is_automatic else "after approval in Slack"
    match proposal.state:
        case ProposalState.PROVEN:
            return f"changed {by}, proven"
        case ProposalState.ROLLED_BACK:
            return f"changed {by}, its alarm fired, rolled back"
        case _:
            return f"{by}: {proposal.state}"


def table(found: Sequence[Row]) -> str:
    """The rows as GitHub's Markdown, which reads well on a terminal too."""
    shown = [row for row in found if row.happened != LEFT][:NAMED]
    rest = [row for row in found if row not in shown]
    lines = [_line(HEAD), _line(["---"] * 4 + ["---:", "---"])]
    lines += [_one(row) for row in shown]
    for finding in sorted({row.finding for row in rest}):
        some = [row for row in rest if row.finding == finding]
        if len(some) == 1:
            lines.append(_one(some[0]))
            continue
        lines.append(_line([f"{len(some)} more", "", finding, "", f"{sum(r.saving for r in some):,.0f}", _word(some)]))
    saved = sum(row.saving for row in found)
    return "\n".join([*lines, _line([f"{len(found)} {IN_ALL}", "", "", "", f"{saved:,.0f}", _cost(found)])])


def _cost(found: Sequence[Row]) -> str:
    """Cost without the savings in force, which are out of what is paid by now."""
    known = [row.cost for row in found if row.cost is not None]
    unknown = f"; the price of {len(found) - len(known)} is not known" if len(known) < len(found) else ""
    saved = [row.saving for row in found if row.happened.startswith(IN_FORCE)]
    return f"{OF} {sum(known + saved):,.0f} that they would cost{unknown}"


def _one(row: Row) -> str:
    happened = f"{LEFT}, with its reason" if row.happened == LEFT else row.happened
    return _line([row.endpoint, row.runs_on, row.finding, row.recommended, f"{row.saving:,.0f}", happened])


def _word(some: Sequence[Row]) -> str:
    left = sum(row.happened == LEFT for row in some)
    if left == len(some):
        return "left alone, each with its reason"
    return ASKED if not left else f"{len(some) - left} asked in Slack, {left} left alone"


def reasons(found: Sequence[Row]) -> str:
    """Why each of the others is left alone, a line each."""
    left = [row for row in found if row.happened == LEFT]
    width = max((len(row.endpoint) for row in left), default=0)
    return "\n".join(f"{row.endpoint:{width}}  {row.finding:16}  {row.why}" for row in left)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def inserted(page: str, lines: str) -> str:
    """The page with the table between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page has no lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{lines}\n{END}{after}"
