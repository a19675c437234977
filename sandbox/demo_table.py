"""The table that the demo prints and the README shows: what was found, what happened, what it is worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from rightsizer.domain.option import Option
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.recommendation import Recommendation
from rightsizer.ports.evaluation import RecommendationStore

HEAD = ("endpoint", "runs on", "finding", "recommended", "saves, USD a month", "what happened")
NAMED = 9
"""Endpoints with a line of their own; the others are counted by finding."""
BEGIN = "<!-- demo table: written by `make demo`, compared by a test -->"
END = "<!-- end of the demo table -->"
LEFT, ASKED = "left alone", "asked in Slack"
IN_ALL, OF = "in all", "of"


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


def rows(store: RecommendationStore) -> list[Row]:
    """One row an endpoint: those that were changed or asked about first, the dearest first."""
    asked: dict[str, Proposal] = {}
    for proposal in sorted(store.proposals(), key=lambda one: one.created_at):
        if not (asked.get(proposal.ref.name) and not proposal.change_id and asked[proposal.ref.name].change_id):
            asked[proposal.ref.name] = proposal
    found = [_row(one, asked.get(one.ref.name)) for one in store.recommendations()]
    return sorted(found, key=lambda row: (row.happened == LEFT, row.happened == ASKED, -row.saving, row.endpoint))


def _row(now: Recommendation, proposal: Proposal | None) -> Row:
    shown = proposal.recommendation if proposal else now
    option = shown.chosen_option
    return Row(
        endpoint=shown.ref.name,
        runs_on=f"{shown.instance_count} x {shown.instance_type}" if shown.instance_type else str(shown.kind),
        finding=shown.finding,
        recommended=_target(option) if option and proposal else "",
        saving=option.saving_usd_per_month if option and proposal and not _undone(proposal) else Decimal(0),
        happened=_happened(proposal),
        why=shown.reason.sentence,
        cost=now.usd_per_month,
    )


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
    known = [row.cost for row in found if row.cost is not None]
    unknown = f"; the price of {len(found) - len(known)} is not known" if len(known) < len(found) else ""
    return f"{OF} {sum(known):,.0f} that they cost{unknown}"


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
