"""How far the arithmetic of memory and the model of throughput are from published figures."""

import csv
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

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
from rightsizer.advice.speed import network_latency, network_rate
from rightsizer.advice.throughput import Interval, RequestLoad, Serving, peak_flops, throughput
from rightsizer.domain.hardware import Accelerator


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
    return tuple(_networks(accelerators))


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


def _networks(accelerators: Mapping[str, Accelerator]) -> Iterator[Deviation]:
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
    with resources.files(__package__).joinpath(name).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)
