"""Write into docs/advise.md how far advice is from published figures: ``python -m scripts.advise_deviation``.

Tables of throughput and memory replace what stands between the two marks of the page. With ``--check`` nothing is
written, and the exit code is 1 where the page differs.
"""

import csv
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rightsizer import catalog
from rightsizer.advice.capacity import network_latency, network_rate
from rightsizer.advice.memory import (
    GIB,
    Method,
    Precision,
    Sharding,
    TrainingModel,
    kv_bytes_per_token,
    training_memory,
    weights_gib,
)
from rightsizer.advice.models import Architecture, architectures, networks
from rightsizer.advice.throughput import Interval, RequestLoad, Serving, peak_flops, throughput
from rightsizer.catalog import catalogue
from rightsizer.domain.hardware import Accelerator
from scripts.page_part import DOCS, PagePart

PART = PagePart(DOCS / "advise.md", "deviation")
PUBLISHED = Path(__file__).parent / "published"
"""Tables of published figures, each row with its page."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """One published figure beside the one that is computed."""

    name: str
    what: str
    published: float
    computed: Interval
    held_out: bool
    url: str
    source: str

    @property
    def error(self) -> float:
        """Computed over published, less one."""
        return self.computed.middle / self.published - 1

    @property
    def is_inside(self) -> bool:
        """Whether the interval holds the published figure."""
        return self.computed.low <= self.published <= self.computed.high


def median_error(rows: Iterable[Deviation]) -> float:
    """Median of the absolute errors."""
    return statistics.median(abs(row.error) for row in rows)


def share_inside(rows: Sequence[Deviation]) -> float:
    """Share of the published figures that their interval holds."""
    return sum(row.is_inside for row in rows) / len(rows)


def throughput_deviations(accelerators: Mapping[str, Accelerator]) -> tuple[Deviation, ...]:
    """Each benchmark beside the model of throughput."""
    return tuple(_benchmarks(accelerators))


def network_deviations(accelerators: Mapping[str, Accelerator]) -> tuple[Deviation, ...]:
    """Published images a second of vision networks beside the estimate from their operations."""
    return tuple(_network_benchmarks(accelerators))


def memory_deviations() -> tuple[Deviation, ...]:
    """Weights of every known model in 16 bits, and the published figures of KV cache and training."""
    return (*_weights(), *_figures())


def _benchmarks(accelerators: Mapping[str, Accelerator]) -> Iterator[Deviation]:
    for row in _rows("benchmarks.csv"):
        shape, chip = architectures()[row["model"]], accelerators[row["accelerator"]]
        precision, cache = Precision(row["precision"]), Precision(row["kv_precision"])
        serving = Serving(shape, chip, int(row["accelerators"]), precision, cache)
        load = RequestLoad(float(row["concurrency"]), float(row["tokens_in"]), float(row["tokens_out"]))
        computed = throughput(serving, load)
        tokens = computed.tokens_per_second if computed else Interval(0, 0, 0)
        what = f"{row['model']} {precision.value}, {row['accelerators']} x {row['accelerator']}, {row['engine']}"
        what += f", {row['concurrency']} at once, {row['tokens_in']} in, {row['tokens_out']} out"
        published = float(row["tokens_per_second"])
        yield Deviation(row["id"], what, published, tokens, row["held_out"] == "yes", row["url"], row["source"])


def _network_benchmarks(accelerators: Mapping[str, Accelerator]) -> Iterator[Deviation]:
    for row in _rows("network_benchmarks.csv"):
        operations = networks()[row["network"]].gflop or 0.0
        one = network_rate(peak_flops(accelerators[row["runs_on"]], Precision(row["precision"])), operations * 1e9)
        alone = int(row["batch"]) == 1
        what = f"{row['runs_on']}, {row['engine']}, batches of {row['batch']}"
        computed = network_latency(one).inverse() if alone else one
        yield Deviation(row["id"], what, float(row["items_per_second"]), computed, False, row["url"], row["network"])


def _weights() -> Iterator[Deviation]:
    for shape in architectures().values():
        published = weights_gib(shape.published_parameters, Precision.BF16)
        exact = weights_gib(shape.parameters, Precision.BF16)
        yield Deviation(shape.name, "weights in 16 bits", published, _exact(exact), False, shape.url, "config.json")


def _figures() -> Iterator[Deviation]:
    for row in _rows("memory_figures.csv"):
        shape = architectures().get(row["model"])
        gib = _kv(row, shape) if row["kind"] == "kv-cache" and shape else _training(row, shape)
        published = float(row["published_gib"])
        yield Deviation(row["id"], row["kind"], published, _exact(gib), False, row["url"], row["source"])


def _kv(row: Mapping[str, str], shape: Architecture) -> float:
    return float(row["tokens"]) * kv_bytes_per_token(shape, Precision(row["precision"])) / GIB


def _training(row: Mapping[str, str], shape: Architecture | None) -> float:
    parameters = shape.parameters if shape else float(row["parameters"])
    model = TrainingModel(parameters, Method(row["kind"]), Precision(row["precision"]), shape)
    memory = training_memory(model, Sharding(int(row["stage"]), int(row["devices"])))
    return memory.total_gib if row["measured"] == "yes" else memory.states_gib


def _exact(value: float) -> Interval:
    return Interval(value, value, value)


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (PUBLISHED / name).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


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
