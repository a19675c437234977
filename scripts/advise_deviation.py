"""Write into docs/advise.md how far advice is from published figures: ``python -m scripts.advise_deviation``.

Tables of throughput and memory replace what stands between the two marks of the page. With ``--check`` nothing is
written, and the exit code is 1 where the page differs.
"""

import sys
from collections.abc import Iterator, Sequence

from rightsizer import catalog
from rightsizer.advice.deviation import (
    Deviation,
    median_error,
    memory_deviations,
    network_deviations,
    share_inside,
    throughput_deviations,
)
from rightsizer.catalog import catalogue
from scripts.page_part import DOCS, PagePart

PART = PagePart(DOCS / "advise.md", "deviation")


def report() -> str:
    """The tables as Markdown."""
    types = catalogue(catalog.instances(), catalog.accelerators())
    chips = {each.accelerator.model: each.accelerator for each in types if each.accelerator}
    parts = (
        _throughput(throughput_deviations(chips)),
        _networks(network_deviations(chips)),
        _memory(memory_deviations()),
    )
    return "\n".join(line for part in parts for line in part)


def _throughput(rows: Sequence[Deviation]) -> Iterator[str]:
    held, fitted = [row for row in rows if row.held_out], [row for row in rows if not row.held_out]
    yield "| benchmarks | number | median error | published figure inside the interval |"
    yield "|---|---|---|---|"
    for name, part in (("held out", held), ("the others", fitted), ("all", rows)):
        yield f"| {name} | {len(part)} | {median_error(part):.0%} | {share_inside(part):.0%} |"
    yield ""
    yield "| benchmark | published tokens/s | computed | interval | error | inside | source |"
    yield "|---|---|---|---|---|---|---|"
    for row in [*held, *fitted]:
        span = f"{row.computed.low:,.0f} to {row.computed.high:,.0f}"
        inside = "yes" if row.is_inside else "**no**"
        name = f"{row.what}{' (held out)' if row.held_out else ''}"
        figures = f"{row.published:,.0f} | {row.computed.middle:,.0f} | {span} | {row.error:+.0%}"
        yield f"| {name} | {figures} | {inside} | [{row.source.split(',')[0]}]({row.url}) |"
    yield ""


def _networks(rows: Sequence[Deviation]) -> Iterator[str]:
    yield "| vision networks on | networks | error of the middle | published figure inside the interval | source |"
    yield "|---|---|---|---|---|"
    for what in dict.fromkeys(row.what for row in rows):
        part = [row for row in rows if row.what == what]
        errors = f"{min(row.error for row in part):+.0%} to {max(row.error for row in part):+.0%}"
        names = ", ".join(row.source for row in part)
        yield f"| {what} | {names} | {errors} | {share_inside(part):.0%} | [published]({part[0].url}) |"
    yield ""


def _memory(rows: Sequence[Deviation]) -> Iterator[str]:
    weights = [row for row in rows if row.what == "weights in 16 bits"]
    figures = [row for row in rows if row.what != "weights in 16 bits"]
    worst = max(weights, key=lambda row: abs(row.error))
    yield "| memory | number | median error | largest error |"
    yield "|---|---|---|---|"
    for name, part in (("weights from the configuration", weights), ("KV cache and training", figures)):
        largest = max(part, key=lambda row: abs(row.error))
        yield f"| {name} | {len(part)} | {median_error(part):.2%} | {largest.error:+.1%} ({largest.name}) |"
    yield ""
    yield f"Weights: {len(weights)} models, none further off than {worst.name} ({worst.error:+.1%}). The other figures:"
    yield ""
    yield "| figure | published GiB | computed GiB | error | source |"
    yield "|---|---|---|---|---|"
    for row in figures:
        cells = f"{row.published:.2f} | {row.computed.middle:.2f} | {row.error:+.1%}"
        yield f"| {row.name} | {cells} | [{row.source}]({row.url}) |"


def main(arguments: Sequence[str]) -> int:
    """Write the page, or compare it; returns the exit code."""
    return PART.write(report(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
