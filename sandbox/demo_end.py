"""How the demo ends: what it came to in one sentence, what happened in its order, and which files to open."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from rightsizer.domain.outcome import Occurrence
from rightsizer.render.sentences import count
from sandbox.demo_table import ASKED, BY_TAG, Row

WORDS = {
    "change-proven": "proven",
    "change-rolled-back": "went back",
    "spot-interruption": "Spot",
    "capacity-option": "advice",
}
"""Kinds of occurrences in a word; the others keep their name."""


def headline(report: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """What is paid, what is saved already, and what waits for a person: by the report; office hours by the rows."""
    totals, waits = report["totals"], report["money"]["waits"]
    nights = sum((row.saving for row in rows if row.happened.startswith(BY_TAG)), Decimal(0))
    answers = count(sum(one["proposals"] for one in waits), "answer")
    short = sum(row.happened == ASKED and row.saving <= 0 for row in rows)
    return (
        f"You pay {_usd(totals['spend'])} a month for {count(totals['endpoints'], 'endpoint')}. "
        f"{_usd(totals['proven'])} a month is proven saved, and office hours save ${nights:,.0f}. "
        f"{_usd(totals['waiting'])} a month waits for {answers} in Slack"
        f"{f'; {short} more must be answered, for want of capacity' if short else ''}."
    )


def _usd(text: str) -> str:
    return f"${Decimal(text):,.0f}"


def story(found: Iterable[Occurrence]) -> Iterator[str]:
    """What happened, a line each, in its order."""
    for one in found:
        yield f"{one.at:%a %H:%M}  {WORDS.get(one.kind, one.kind):9}  {one.text}"


def files(written: Sequence[Path]) -> Iterator[str]:
    """The files, those for a browser first, each on a line of its own behind what it is."""
    pages = [path for path in written if path.suffix == ".html"]
    report, slack = ([p for p in pages if (p.stem == "slack") is is_slack] for is_slack in (False, True))
    data = [path for path in written if path not in pages]
    for title, some in (
        ("Open the weekly report:", report),
        ("Open what people saw in Slack:", slack),
        ("Data:", data),
    ):
        yield title
        yield from (f"  {path}" for path in some)
