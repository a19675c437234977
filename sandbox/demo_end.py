"""How the demo ends: what it came to in one sentence, what happened in its order, and which files to open."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from rightsizer.domain.outcome import Occurrence
from rightsizer.render.sentences import count
from sandbox.demo_table import ASKED, Row

IN_FORCE = ("changed ", "by its tag")
"""How the last column of the table begins where a saving is there already."""
WORDS = {
    "change-proven": "proven",
    "change-rolled-back": "went back",
    "spot-interruption": "Spot",
    "capacity-option": "advice",
}
"""Kinds of occurrences in a word; the others keep their name."""


def headline(rows: Sequence[Row]) -> str:
    """What is paid, what is saved already, and what waits for a person."""
    paid = sum((row.cost for row in rows if row.cost is not None), Decimal(0))
    saved = [row.saving for row in rows if row.happened.startswith(IN_FORCE) and row.saving > 0]
    waits = [row.saving for row in rows if row.happened == ASKED and row.saving > 0]
    return (
        f"{count(len(rows), 'endpoint')} for ${paid:,.0f} a month by now; {count(len(saved), 'change')} in force: "
        f"${sum(saved):,.0f} a month less than before. ${sum(waits):,.0f} a month waits for "
        f"{count(len(waits), 'answer')} in Slack."
    )


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
