"""The traffic of a labelled endpoint of tests/cases/asked: five-minute metrics with the noise of a seed."""

from array import array
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from sandbox.account import Sandbox
from sandbox.sagemaker.enhanced import gpus_of
from sandbox.traffic import hardware

NOW = datetime(2026, 11, 19, 15, 7, 23, tzinfo=UTC)
PERIOD = 300
OF_SERVERLESS = "ml.m5.xlarge"
"""A host as large as the largest memory of a serverless endpoint needs: its metrics show no more of it."""
SHARES_OF_MEDIAN = {"p50": 1.0, "p90": 1.2, "p95": 1.3, "p99": 1.43}
"""Percentiles of the latency as shares of the median: one model with requests of much the same size."""

type Words = Mapping[str, Any]
type Numbers = np.ndarray[Any, np.dtype[np.float64]]


class Past:
    """Five-minute metrics of one variant: what its load does to its type, with the noise of a seed."""

    def __init__(self, one: Words, seed: int) -> None:
        self.one, self.load, self.memory = one, one.get("load", {}), one.get("memory", {})
        days = float(self.load.get("days_written", one.get("days", 15)))
        size = int(days * 288)
        self.end = datetime.fromtimestamp(NOW.timestamp() // PERIOD * PERIOD, UTC)
        self.start = self.end - timedelta(seconds=PERIOD * size)
        stamps = self.start.timestamp() + PERIOD * np.arange(size)
        self.age = np.arange(size)[::-1] / 288
        if "clock_change" in self.load:  # what follows a local clock comes so many hours later since
            ago, hours = self.load["clock_change"]
            stamps = stamps - np.where(self.age < ago, hours * 3600, 0)
        self.hour = stamps % 86400 / 3600
        self.weekday = (stamps // 86400 + 3).astype(int) % 7
        self.dice = np.random.default_rng(seed)
        kind = one.get("type", "none")
        self.hardware = hardware().types[one.get("pools", [OF_SERVERLESS])[0] if kind == "none" else kind]
        self.used = one.get("gpus", {}).get("used", 1)
        self.requests = self._requests()
        self.count = self._counts()

    def _requests(self) -> Numbers:
        """Requests in each five minutes."""
        load, size = self.load, len(self.hour)
        mean = np.full(size, 5.0 * load.get("rpm", 60))
        on = np.ones(size, bool)
        if "hours" in load:
            on &= (self.hour >= load["hours"][0]) & (self.hour < load["hours"][1])
        if "weekdays" in load:
            on &= np.isin(self.weekday, load["weekdays"])
        if "burst" in load:
            every, minutes = load["burst"]
            on &= (self.hour % every) * 60 < minutes
        mean = np.where(on, mean, mean * load.get("quiet", 0.0))
        mean *= 1 + load.get("wave", 0.0) * np.sin(self.hour / 24 * 2 * np.pi)
        mean *= (1 + load.get("daily_growth", 0.0)) ** (14 - self.age)
        if "campaign" in load:
            ago, hours, factor = load["campaign"]
            mean *= np.where((self.age <= ago) & (self.age > ago - hours / 24), factor, 1)
        if "spike_day" in load:
            ago, factor = load["spike_day"]
            mean *= np.where((self.age >= ago) & (self.age < ago + 1), factor, 1)
        mean *= self.age >= load.get("stops_days_ago", 0)
        if "lumpy" in load:
            wide = load["lumpy"]
            mean *= np.exp(wide * self.dice.standard_normal(size) - wide**2 / 2)
        if "daily_calls" in load:
            mean = np.where((self.hour >= 9) & (self.hour < 17), load["daily_calls"] / 96, 0.0)
        made: Numbers = self.dice.poisson(mean).astype(float)
        return made

    def _counts(self) -> Numbers:
        """Instances that ran."""
        given, size = self.one.get("autoscale", {}), len(self.requests)
        if not given.get("follows"):
            return np.full(size, float(self.one.get("count", 1)))
        late = np.convolve(self.requests / 5, np.ones(4) / 4)[:size]
        ran: Numbers = np.clip(np.ceil(late / given["target"]), given["minimum"], given["maximum"])
        return ran

    def write(self, box: Sandbox, variant: str = "AllTraffic") -> None:
        """Write all metrics that the label does not leave out."""
        request, omit = self.one.get("request", {}), self.one.get("omit", ())
        gpu_s, host_s = request.get("gpu_ms", 20) / 1000, request.get("host_ms", 10) / 1000
        at_once = request.get("at_once", 1)
        offered = self.requests * gpu_s / (self.count * PERIOD)
        if "slower" in request:
            ago, factor = request["slower"]
            own = np.where(self.age <= ago, factor, 1.0)
            offered, gpu_s = offered * own, gpu_s * own
        busy = np.minimum(1, offered / at_once)
        noise = 1 + 0.01 * self.dice.standard_normal(len(busy))
        waits = busy**2 / (2 * np.maximum(0.05, 1 - busy))
        median = (gpu_s + host_s) * (1 + (0 if self.one.get("asynchronous") else waits)) * noise
        if at_once > 1:  # served in one batch: the GPU works while there is any
            busy = 1 - np.exp(-offered)
        gpu = 100 * self.used * np.maximum(busy, self.load.get("background_gpu", 0) / 100 * noise)
        cores = self.requests * request.get("cores", 1) * (gpu_s + host_s) / (self.count * PERIOD)
        memory = self._memory()
        host = 100 * self.memory.get("host_gib", 7) / self.hardware.memory_gib
        columns = {
            "GPUUtilization": gpu,
            "GPUMemoryUtilization": memory,
            "CPUUtilization": np.minimum(100 * self.hardware.vcpu, 100 * cores + 3) * noise,
            "MemoryUtilization": np.minimum(99.5, host * noise),
        }
        for metric, values in columns.items():
            if metric in omit or (self.hardware.accelerator is None and metric.startswith("GPU")):
                continue
            peak = values
            if metric == "GPUUtilization":  # a GPU is busy for 100 % of a minute at most
                peak = np.minimum(1.15 * values, 100.0 * self.hardware.accelerator_count)
            seen = np.where(self.age < 4, np.minimum(self.count, self.one.get("seen", 99)), self.count)
            self._put(box, variant, metric, values, 5 * seen, maximum=peak)
            if self.one.get("gpus", {}).get("each") and metric.startswith("GPU"):
                self._each_gpu(box, variant, metric, values)
        self._calls(box, variant, median)

    def _memory(self) -> Numbers:
        """GPU memory of an instance, in per cent of one card."""
        card = self.hardware.accelerator
        since = 14 - self.age
        if "restart_days" in self.memory:
            since = since % self.memory["restart_days"]
        held = self.memory.get("gib", 6.0) + self.memory.get("leak_gib_per_day", 0.0) * since
        if "spike_gib" in self.memory:
            held = np.where((self.hour >= 3) & (self.hour < 3.09), self.memory["spike_gib"], held)
        if "once" in self.memory:
            ago, gib = self.memory["once"]
            held = np.where((self.age >= ago) & (self.age < ago + 1 / 48), gib, held)
        moves = 1 - self.memory.get("swing", 0.03) * self.dice.random(len(self.hour))
        share = held / (card.memory_gib if card else 1.0) * moves
        if "prealloc" in self.memory:
            share = np.full(len(self.hour), self.memory["prealloc"])
        shown: Numbers = 100 * self.used * np.minimum(1, share)
        return shown

    def _calls(self, box: Sandbox, variant: str, median: Numbers) -> None:
        omit, micros = self.one.get("omit", ()), median * 1e6
        if self.one.get("asynchronous"):
            low, high = self.load.get("backlog", [0, 0])
            backlog = np.linspace(low, high, len(median)) if high else np.maximum(0.0, self.requests - 6)
            self._put(box, None, "ApproximateBacklogSize", backlog, 1.0, maximum=backlog)
            self._put(box, variant, "InvocationsProcessed", self.requests, 1.0)
            self._put(box, None, "ApproximateAgeOfOldestRequest", np.full(len(median), 20.0), 1.0)
            if "expired_per_day" in self.load:
                lost = self.dice.poisson(self.load["expired_per_day"] / 288, len(median)).astype(float)
                self._put(box, variant, "ExpiredRequests", lost, 1.0)
        elif "Invocations" not in omit:
            self._put(box, variant, "Invocations", self.requests, 1.0)
            ago, hours, percent = self.load.get("outage", (0, 0, 0))
            out = (self.age >= ago) & (self.age < ago + hours / 24)
            failing = np.where(out, percent, self.load.get("errors_percent", 0))
            failed = self.dice.poisson(self.requests * failing / 100).astype(float)
            self._put(box, variant, "Invocation5XXErrors", failed, 1.0)
            full = self.requests > 0.5 * self.requests.max()
            turned_away = self.load.get("refused_percent", 0) + self.load.get("refused_when_busy_percent", 0) * full
            refused = self.dice.poisson(self.requests * turned_away / 100).astype(float)
            self._put(box, variant, "Invocation4XXErrors", refused, 1.0)
        if "ModelLatency" in omit or not self.requests.any():
            return
        wide = self.one.get("request", {}).get("spread", 1.0)
        served = np.where(self.requests > 0, micros * (1 + 0.05 * wide), np.nan)
        shares = {key: micros * (1 + (factor - 1) * wide) for key, factor in SHARES_OF_MEDIAN.items()}
        self._put(box, variant, "ModelLatency", served, self.requests, percentiles=shares)
        around = self.one.get("request", {}).get("overhead_ms")
        if around:
            self._put(box, variant, "OverheadLatency", served * 0 + around * 1000, self.requests)

    def _each_gpu(self, box: Sandbox, variant: str, metric: str, values: Numbers) -> None:
        for gpu, beside in gpus_of(self.one["name"], int(self.count[0]), self.hardware.accelerator_count):
            own = values / self.used if gpu < self.used else values * 0
            self._put(box, variant, metric, own, 5.0, dimensions=beside)

    def _put(self, box: Sandbox, variant: str | None, metric: str, values: Numbers, samples: Any, **more: Any) -> None:
        """One metric, with the gaps of the label."""
        lost = np.zeros(len(values), bool)
        if "gap" in self.one:
            lost |= (self.age * 24 <= self.one["gap"][0]) & (self.age * 24 > self.one["gap"][1])
        if "resized" in self.one and "days_ago" not in self.one:
            lost |= self.age > self.one["resized"]["days_ago"]
        if "gap_each_day" in self.one:
            lost |= (self.hour >= self.one["gap_each_day"][0]) & (self.hour < self.one["gap_each_day"][1])
        kept = array("d", np.where(lost, np.nan, values))
        counts = samples if isinstance(samples, float) else array("d", samples)
        more = {
            key: value if key in ("dimensions", "percentiles") else array("d", value) for key, value in more.items()
        }
        if "percentiles" in more:
            more["percentiles"] = {key: array("d", value) for key, value in more["percentiles"].items()}
        box.put_series(self.one["name"], variant, metric, self.start, PERIOD, kept, samples=counts, **more)
