"""The table that the demo prints and the README shows: what was found, what happened, what it is worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from rightsizer.model.proposal import Proposal
from rightsizer.model.recommendation import Recommendation
from rightsizer.ports import RecommendationStore
from sandbox.functions import Invocation

HEAD = ("endpoint", "runs on", "finding", "recommended", "USD/month", "what happened")
NAMED = 12
"""Endpoints with a line of their own; the others are counted by finding."""


@dataclass(frozen=True, slots=True)
class Row:
    """One endpoint."""

    endpoint: str
    runs_on: str
    finding: str
    recommended: str
    saving: Decimal
    happened: str


def rows(store: RecommendationStore, invocations: Sequence[Invocation]) -> list[Row]:
    """One row an endpoint: those that were changed or asked about first, the dearest first."""
    asked: dict[str, Proposal] = {}
    for proposal in sorted(store.proposals(), key=lambda one: one.created_at):
        if not (asked.get(proposal.ref.name) and not proposal.change_id and asked[proposal.ref.name].change_id):
            asked[proposal.ref.name] = proposal
    found = [_row(one, asked.get(one.ref.name)) for one in store.recommendations()]
    return sorted(found, key=lambda row: (row.happened == "left alone", -row.saving, row.endpoint))


def _row(now: Recommendation, proposal: Proposal | None) -> Row:
    shown = proposal.recommendation if proposal else now
    option = shown.chosen
    return Row(
        endpoint=shown.ref.name,
        runs_on=f"{shown.instance_count} x {shown.instance_type}" if shown.instance_type else str(shown.kind),
        finding=shown.finding,
        recommended=f"{option.target.instance_count} x {option.target.instance_type}" if option and proposal else "",
        saving=option.saving_usd_per_month if option and proposal else Decimal(0),
        happened=_happened(proposal),
    )


def _happened(proposal: Proposal | None) -> str:
    if proposal is None:
        return "left alone"
    by = "" if proposal.decision is None else "by itself, " if proposal.decision.by == "policy" else "approved, "
    return f"{by}{proposal.state}"


def table(found: Sequence[Row]) -> str:
    """The rows as GitHub's Markdown, which reads well on a terminal too."""
    shown = [row for row in found if row.happened != "left alone"][:NAMED]
    rest = [row for row in found if row not in shown]
    lines = [_line(HEAD), _line(["---"] * 4 + ["---:", "---"])]
    for row in shown:
        saving = f"{row.saving:,.0f}"
        lines.append(_line([row.endpoint, row.runs_on, row.finding, row.recommended, saving, row.happened]))
    for finding in sorted({row.finding for row in rest}):
        some = [row for row in rest if row.finding == finding]
        lines.append(_line([f"{len(some)} more", "", finding, "", f"{sum(r.saving for r in some):,.0f}", _word(some)]))
    return "\n".join(lines)


def _word(some: Sequence[Row]) -> str:
    return (
        "left alone, each with its reason"
        if all(r.happened == "left alone" for r in some)
        else "proposed or left alone"
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
