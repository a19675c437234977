"""The README's picture, drawn from the README's own table: `python -m sandbox.demo_picture`.

The table is the demo's, and a test compares both; so the picture shows what the demo found and nothing else.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

from sandbox.demo_table import ASKED, BEGIN, END, IN_ALL

PAGE, PICTURE = Path("README.md"), Path("docs/pictures/savings.svg")
WIDTH, EDGE = 860, 24
BARS, LONGEST = 396, 250
"""Where the bars of single endpoints begin, and how long the largest one is."""
ROW, TOP, BAR = 34, 176, 16
SAVED, WAITS, STAYS = "saved", "waits", "stays"
STYLE = """
svg { --ground: #ffffff; --line: #d0d7de; --text: #1f2328; --soft: #59636e;
  --saved: #1a7f37; --waits: #0969da; --stays: #d0d7de }
@media (prefers-color-scheme: dark) { svg { --ground: #0d1117; --line: #3d444d; --text: #f0f6fc; --soft: #9198a1;
  --saved: #3fb950; --waits: #4493f8; --stays: #3d444d } }
.ground { fill: var(--ground); stroke: var(--line) }
text { fill: var(--text); font: 14px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif }
.title { font-size: 20px; font-weight: 600 }
.strong { font-weight: 600 }
.soft { fill: var(--soft); font-size: 12px }
.saved { fill: var(--saved) }
.waits { fill: var(--waits) }
.stays { fill: var(--stays) }
.number { text-anchor: end }
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a named endpoint, or several that are counted by finding."""

    endpoint: str
    runs_on: str
    recommended: str
    saving: int
    happened: str

    @property
    def kind(self) -> str:
        """Whether its saving was made, or waits for an answer."""
        return WAITS if ASKED in self.happened else SAVED


@dataclass(frozen=True, slots=True)
class Shown:
    """What the picture shows, in US dollars a month."""

    endpoints: int
    left_alone: int
    cost: int
    unpriced: int
    """Endpoints of which the price is not known: they are in no figure."""
    named: tuple[Line, ...]
    others: int
    """Saving of the endpoints that have no line of their own."""

    def sum_of(self, kind: str) -> int:
        """The saving that was made, waits for an answer, or the cost that stays."""
        made = {one: sum(line.saving for line in self.named if line.kind == one) for one in (SAVED, WAITS)}
        made[WAITS] += self.others
        return made[kind] if kind in made else self.cost - sum(made.values())


def read(page: str) -> Shown:
    """The table of a page; ValueError where it has none, or one whose sum is another than that of its lines."""
    table = page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()[2:]
    if not table:
        raise ValueError(f"the page has no table between {BEGIN!r} and {END!r}")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    *lines, last = [Line(one[0], one[1], one[3], _number(one[4]), one[5]) for one in cells]
    others = [line for line in lines if line.endpoint.endswith(" more")]
    shown = Shown(
        endpoints=_number(last.endpoint.removesuffix(IN_ALL)),
        left_alone=sum(_left(line) for line in others),
        cost=_number(last.happened.partition(";")[0]),
        unpriced=_number(last.happened.partition(";")[2]),
        named=tuple(line for line in lines if line not in others),
        others=sum(line.saving for line in others),
    )
    counted = len(shown.named) + sum(_number(line.endpoint) for line in others)
    total = shown.sum_of(SAVED) + shown.sum_of(WAITS)
    if counted != shown.endpoints or abs(total - last.saving) > len(lines):
        raise ValueError(f"the table counts {counted} endpoints and {total}; its last line says otherwise: {last}")
    return shown


def _left(line: Line) -> int:
    some = re.search(r"(\d+) left alone", line.happened)
    return int(some[1]) if some else _number(line.endpoint) * line.happened.startswith("left alone")


def _number(text: str) -> int:
    return int("".join(re.findall(r"\d", text)) or 0)


def picture(shown: Shown) -> str:
    """The table as an SVG that loads nothing, for light and dark pages."""
    rows = [*shown.named, Line(_rest(shown), "", "", shown.others, ASKED)]
    height = TOP + ROW * len(rows) + 48
    what = f"Of {shown.cost:,} US dollars a month, {shown.sum_of(SAVED):,} are saved"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d">',
        '<title id="t">What the demo saves</title>',
        f'<desc id="d">{what}; {shown.sum_of(WAITS):,} more wait for an answer in Slack.</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        *_head(shown),
        *(
            part
            for number, row in enumerate(rows)
            for part in _row(row, TOP + ROW * number, max(r.saving for r in rows))
        ),
        _text(EDGE, height - 20, _foot(shown), "soft"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _foot(shown: Shown) -> str:
    left = f"{shown.left_alone} of the {shown.endpoints} are left alone, each with its reason."
    return f"{left} The price of {shown.unpriced} is not known." if shown.unpriced else left


def _rest(shown: Shown) -> str:
    return f"{shown.endpoints - shown.left_alone - len(shown.named)} more endpoints"


def _head(shown: Shown) -> Iterator[str]:
    """The title, and one bar for all that the endpoints cost."""
    yield _text(
        EDGE, 40, f"The demo's {shown.endpoints} endpoints would cost {shown.cost:,} US dollars a month", "title"
    )
    wide = WIDTH - 2 * EDGE
    ends = [0, shown.sum_of(SAVED), shown.sum_of(SAVED) + shown.sum_of(WAITS), shown.cost]
    words = ("saved", "more wait for an answer in Slack", "stay")
    at = EDGE
    for (start, end), kind, word in zip(pairwise(ends), (SAVED, WAITS, STAYS), words, strict=True):
        x, to = EDGE + wide * start / shown.cost, EDGE + wide * end / shown.cost
        yield _bar(kind, x, 60, to - x, 28)
        yield _bar(kind, at, 106, 12, 12)
        text = f"{end - start:,} {word}"
        yield _text(at + 20, 117, text, "strong")
        at += 52 + 8 * len(text)
    yield _text(EDGE, 156, "Saving by endpoint, US dollars a month", "soft")


def _row(line: Line, y: int, largest: int) -> Iterator[str]:
    yield _text(EDGE, y + 13, line.endpoint, "strong")
    to = f" → {line.recommended}" if line.recommended and line.saving else ""
    if line.runs_on:
        yield _text(EDGE, y + 27, f"{line.runs_on}{to}", "soft")
    long = LONGEST * line.saving / largest
    if line.saving:
        yield _bar(line.kind, BARS, y + 4, long, BAR)
    yield _text(BARS - 12, y + 17, f"{line.saving:,}", "number")
    yield _text(BARS + long + (12 if line.saving else 0), y + 17, line.happened, "soft")


def _bar(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}"/>'


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the picture of a page's table."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.demo_picture", description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, default=PAGE, help="the page with the demo's table")
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture goes")
    given = parser.parse_args(arguments)
    given.out.write_text(picture(read(given.page.read_text())))


if __name__ == "__main__":
    main()
