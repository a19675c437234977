"""The published figures: complete, cited, and five benchmarks that the model of throughput is never fitted to."""

import csv
from pathlib import Path

import rightsizer
from scripts.advise_deviation import PUBLISHED

MODELS = Path(rightsizer.__file__).parent / "advice" / "models.csv"
HELD_OUT = {
    "nim-70b-2xh100-c25",
    "vllm-7b-a10g",
    "vllm-8b-l4-offline",
    "trt-mistral-a100-2048-2048",
    "trt-70b-h200-2048-2048",
}
"""Chosen before the model of throughput was written. Nothing may be fitted to them."""


def rows(name: str) -> list[dict[str, str]]:
    with (MODELS if name == MODELS.name else PUBLISHED / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_at_least_15_benchmarks_and_25_models_are_cited() -> None:
    benchmarks, models = rows("benchmarks.csv"), rows("models.csv")
    assert len(benchmarks) >= 15
    assert len(models) >= 25
    assert all(row["url"].startswith("https://") and row["source"] for row in benchmarks)
    assert all(row["url"].startswith("https://") for row in [*models, *rows("memory_figures.csv")])


def test_the_five_benchmarks_that_are_held_out_stay_the_same() -> None:
    assert {row["id"] for row in rows("benchmarks.csv") if row["held_out"] == "yes"} == HELD_OUT


def test_every_benchmark_says_what_ran_where() -> None:
    known = {row["name"] for row in rows("models.csv")}
    for row in rows("benchmarks.csv"):
        assert row["model"] in known
        figures = ("accelerators", "concurrency", "tokens_in", "tokens_out", "tokens_per_second")
        assert all(float(row[figure]) > 0 for figure in figures), row["id"]
