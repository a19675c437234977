"""Labelled endpoints of tests/cases/asked: filled into simulated accounts, asked through `scan --json`, and scored.

    PYTHONPATH=shared:. .venv/bin/python -m tests.asked [NAME ...]

prints what was asked, what is wrong and what would be harmful. The words of a label are in tests/cases/README.md.
"""

import contextlib
import io
import json
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rightsizer import bootstrap
from rightsizer.terminal.run import run
from sandbox.account import Sandbox
from sandbox.sagemaker.enhanced import gpus_of
from sandbox.template import QUICK
from sandbox.traffic import hardware

FOLDER = Path(__file__).parent / "cases" / "asked"
NOW = datetime(2026, 11, 19, 15, 7, 23, tzinfo=UTC)
PERIOD = 300
IMAGES = {
    "pytorch": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference@sha256:" + "c1" * 32,
    "vllm": "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference-vllm@sha256:" + "d2" * 32,
}
STEP = {"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}
OF_SERVERLESS = "ml.m5.xlarge"
"""A host as large as the largest memory of a serverless endpoint needs: its metrics show no more of it."""
SHARES_OF_MEDIAN = {"p50": 1.0, "p90": 1.2, "p95": 1.3, "p99": 1.43}
"""Percentiles of the latency as shares of the median: one model with requests of much the same size."""

type Words = Mapping[str, Any]
type Numbers = np.ndarray[Any, np.dtype[np.float64]]


def accounts(folder: Path = FOLDER) -> Iterator[tuple[Words, list[Words]]]:
    """Each account with its endpoints; files that say nothing of an account share the first one."""
    shared: list[Words] = []
    for path in sorted(folder.glob("*.yaml")):
        found = yaml.load(path.read_text(), QUICK)
        if isinstance(found, list):
            shared += found
        else:
            yield found["account"], found["endpoints"]
    yield {}, shared


def asked(account: Words, endpoints: Sequence[Words]) -> dict[str, dict[str, Any]]:
    """What `scan --json` says of each endpoint of an account that has them all, by name."""
    with Sandbox(now=NOW, region=account.get("region", "us-east-1")) as box:
        bootstrap.set_clock(lambda: box.clock.now)
        for kind, most in account.get("quota", {}).items():
            box.set_quota(kind, most)
        if "plan_usd_per_hour" in account:
            box.world.plans.buy(account["plan_usd_per_hour"])
        for number, one in enumerate(endpoints):
            fill(box, one, one.get("seed", number))
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            run(["scan", "--json"])
        bootstrap.reset()
    found = json.loads(said.getvalue())
    return {one["endpoint"]: one for one in found["endpoints"]} | {
        one["endpoint"]: {"finding": "NotEnoughData", "gate": "silent", "recommended": None, **one}
        for one in found["unobserved"]
    }


def fill(box: Sandbox, one: Words, seed: int) -> None:
    """An endpoint with its tags, its autoscaling and its past."""
    kind = one.get("type", "none")
    setup: dict[str, Any] = {key: one[key] for key in ("asynchronous", "serverless", "pools", "model") if key in one}
    extra: dict[str, Any] = {}
    if one.get("gpus", {}).get("each"):
        extra["MetricsConfig"] = {"EnableEnhancedMetrics": True, "EnableDetailedObservability": False}
    if "shadow" in one:
        extra["ShadowProductionVariants"] = [_variant(f"{one['name']}-model", "shadow", one["shadow"])]
    variant: dict[str, Any] = {"InitialVariantWeight": one.get("weight", 1.0), **one.get("variant", {})}
    if one.get("routing") != "none" and "serverless" not in one and "asynchronous" not in one:
        variant["RoutingConfig"] = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    parts = one.get("components")
    if parts:
        low, high = parts["managed"]
        variant["ManagedInstanceScaling"] = {"Status": "ENABLED", "MinInstanceCount": low, "MaxInstanceCount": high}
    days = float(one.get("days", 14))
    setup["observability"] = "kv_cache" in one
    box.add_endpoint(
        one["name"], None if kind == "none" else kind, one.get("count", 1), image=IMAGES[one.get("image", "pytorch")],
        tags=one.get("tags", {}), created=NOW - timedelta(days=60 if days >= 14 else days), variant_extra=variant,
        config_extra=extra, inference_components=bool(parts),
        more_variants=[_variant(f"{one['name']}-model", "B", **_hardware(one["beside"]))] if "beside" in one else (),
        **setup,
    )  # fmt: skip
    for part in parts["each"] if parts else ():
        needs = {"NumberOfAcceleratorDevicesRequired": part["gpus"], "MinMemoryRequiredInMb": 4096}
        box.add_component(part["name"], one["name"], copies=part["copies"], needs=needs)
        box.use_component(part["name"], part["gpu"], part.get("at_once", 0.4), part["requests"])
    _autoscale(box, one)
    _deploy(box, one)
    if "kv_cache" in one:
        values = [one["kv_cache"] / 100] * (14 * 288)
        box.world.telemetry.put(
            "vllm:kv_cache_usage_perc", one["name"], "AllTraffic", NOW - timedelta(days=14), PERIOD, values
        )
    if one.get("omit") != "all":
        past = Past(one, seed)
        past.write(box)
        if "beside" in one:
            other = {"load": {"rpm": one["beside"]["rpm"]}, **one["beside"]}
            Past({**{key: value for key, value in one.items() if key != "beside"}, **other}, seed + 500).write(box, "B")


def _deploy(box: Sandbox, one: Words) -> None:
    """Deployments of the owner: one that is under way, and one that gave the endpoint the type it has now."""
    endpoint = box.world.fleet.endpoint(one["name"])
    endpoint.status = one.get("status", "InService")
    if "resized" in one:
        before, hours = one["resized"], 24 * one["resized"]["days_ago"]
        endpoint.modified = NOW - timedelta(hours=hours)
        box.world.fleet.configs[endpoint.config_name].created = endpoint.modified
        Past({**one, **before, "gap": [hours, -1]}, 700).write(box)


def _hardware(beside: Words) -> dict[str, Any]:
    return {"kind": beside["type"], "count": beside.get("count", 1), "weight": beside.get("weight", 1.0)}


def _variant(model: str, name: str, kind: str, count: int = 1, weight: float = 1.0) -> dict[str, Any]:
    return {
        "VariantName": name, "ModelName": model, "InstanceType": kind, "InitialInstanceCount": count,
        "InitialVariantWeight": weight,
    }  # fmt: skip


def _autoscale(box: Sandbox, one: Words) -> None:
    if "autoscale" not in one:
        return
    given = one["autoscale"]
    steps = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": [STEP]}
    stepped = {"PolicyName": "steps", "PolicyType": "StepScaling", "StepScalingPolicyConfiguration": steps}
    cron = {"ScheduledActionName": "morning", "Schedule": "cron(0 7 * * ? *)",
            "ScalableTargetAction": {"MinCapacity": given["minimum"], "MaxCapacity": given["maximum"]}}  # fmt: skip
    box.autoscale(
        one["name"], given["minimum"], given["maximum"], invocations_per_instance=given.get("target"),
        policies=[stepped] if given.get("step") else (), scheduled=[cron] if given.get("scheduled") else (),
    )  # fmt: skip
    if given.get("suspended"):
        box.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="sagemaker", ResourceId=f"endpoint/{one['name']}/variant/AllTraffic",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            SuspendedState={"DynamicScalingInSuspended": True},
        )  # fmt: skip


class Past:
    """Five-minute metrics of one variant: what its load does to its type, with the noise of a seed."""

    def __init__(self, one: Words, seed: int) -> None:
        self.one, self.load, self.memory = one, one.get("load", {}), one.get("memory", {})
        days = float(self.load.get("days_written", one.get("days", 15)))
        size = int(days * 288)
        self.end = datetime.fromtimestamp(NOW.timestamp() // PERIOD * PERIOD, UTC)
        self.start = self.end - timedelta(seconds=PERIOD * size)
        stamps = self.start.timestamp() + PERIOD * np.arange(size)
        self.hour = stamps % 86400 / 3600
        self.weekday = (stamps // 86400 + 3).astype(int) % 7
        self.age = np.arange(size)[::-1] / 288
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
            peak = values * 1.15 if metric == "GPUUtilization" else values
            self._put(box, variant, metric, values, 5 * self.count, maximum=peak)
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
            failed = self.dice.poisson(self.requests * self.load.get("errors_percent", 0) / 100).astype(float)
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


def _words(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


def said(answer: Words) -> dict[str, Any]:
    """What a label may ask for, of one endpoint of `scan --json`."""
    chosen = answer.get("recommended") or {}
    target = chosen.get("target") or {}
    hours = [count for counts in (chosen.get("hourly_counts") or {}).values() for count in counts]
    least = [n for n in (target.get("minimum"), target.get("instance_count"), *hours) if n is not None]
    return {
        "finding": answer["finding"],
        "gate": answer["gate"],
        "kind": chosen.get("kind", "none"),
        "to": chosen.get("instance_type") or "none",
        "count": target.get("instance_count"),
        "lowest": min(least, default=None),
        "saves": float(chosen.get("saving_usd_per_month") or 0),
    }


def holds(word: str, wanted: Any, found: Words, answer: Words) -> bool:
    """Whether one word of a label, or of a harm, is true of the answer."""
    if word in ("count", "lowest", "saves"):
        return found[word] is not None and wanted[0] <= found[word] <= wanted[1]
    if word == "said":
        return all(text in json.dumps(answer, ensure_ascii=False) for text in wanted)
    if word == "to":
        return any(fnmatch(found["to"], pattern) for pattern in _words(wanted))
    return found[word] in _words(wanted)


def wrong(one: Words, answers: Mapping[str, Words]) -> list[str]:
    """What of the right answer is not so."""
    answer = answers[one["name"]]
    found = said(answer)
    lacking = [
        f"{word} is {found.get(word, 'not said')}, not {wanted}"
        for word, wanted in one["right"].items()
        if word != "same_as" and not holds(word, wanted, found, answer)
    ]
    if "same_as" in one["right"]:
        other = said(answers[one["right"]["same_as"]])
        lacking += [f"{w} is {found[w]}, its twin's {other[w]}" for w in found if w != "saves" and found[w] != other[w]]
    return lacking


def harmful(one: Words, answers: Mapping[str, Words]) -> list[Words]:
    """Which of the harms that the label names are so."""
    answer = answers[one["name"]]
    found = said(answer)
    return [harm for harm in one["harm"] if all(holds(w, wanted, found, answer) for w, wanted in harm.items())]


def tell(line: str) -> None:
    """One line on standard output."""
    sys.stdout.write(line + "\n")


def main(names: Sequence[str]) -> None:
    """Ask all labelled endpoints, or those that are named, and print the score."""
    right = asked_so_far = 0
    for account, endpoints in accounts():
        chosen = [one for one in endpoints if not names or one["name"] in names]
        if not chosen:
            continue
        answers = asked(account, chosen)
        for one in chosen:
            lacking, harms = wrong(one, answers), harmful(one, answers)
            asked_so_far += 1
            right += not lacking
            if lacking or harms or names:
                found, answer = said(answers[one["name"]]), answers[one["name"]]
                tell(f"{'HARMFUL ' if harms else ''}{one['name']}: {'; '.join(lacking) or 'right'}\n    {found}")
                tell(f"    {answer['reason']['sentence']} | {(answer.get('gate_reason') or {}).get('sentence')}")
    tell(f"{right} of {asked_so_far} right")


if __name__ == "__main__":
    main(sys.argv[1:])
