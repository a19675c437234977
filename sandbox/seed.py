"""A believable account: 30 endpoints of many kinds with a fortnight of metrics, all of our own making.

`seed(box)` fills a sandbox and returns the workloads behind the endpoints, so that a caller can let time go on
(`drive`). Each line says what the endpoint is there to show.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sandbox.account import Sandbox
from sandbox.traces import Relative, shapes
from sandbox.traffic import (
    DAYS,
    Shape,
    Workload,
    around_the_clock,
    bursts,
    month_end,
    nothing,
    office_hours,
    write_past,
)

OWNERS = {
    "team-search": ("search-rerank", "autoscaled-feed"),
    "team-documents": ("doc-layout", "month-end-invoices", "nightly-translate", "legacy-ocr"),
    "team-assistant": ("chat-small", "chat-13b", "chat-70b", "poc-summariser"),
    "team-media": ("speech-to-text", "caption-batches", "live-moderation", "async-video"),
    "team-risk": ("checkout-risk", "tabular-cpu"),
}
"""Who owns what; the others name nobody, as in every account."""
AUTO, PROPOSE = {"rightsizer:mode": "auto"}, {"rightsizer:mode": "propose"}
PYTORCH = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-inference@sha256:" + "c1" * 32
VLLM = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference-vllm@sha256:" + "d2" * 32
TRITON = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tritonserver@sha256:" + "e3" * 32


@dataclass(frozen=True, slots=True)
class Resident:
    """One endpoint of the account: how it is set up, and what it serves."""

    name: str
    work: Workload
    count: int = 1
    tags: Mapping[str, str] = field(default_factory=dict)
    image: str = PYTORCH
    days: float = DAYS
    gap: tuple[float, float] | None = None
    without: frozenset[str] = frozenset()
    setup: Mapping[str, Any] = field(default_factory=dict)
    autoscale: tuple[int, int] | None = None


def work(home: str, seed: int, **how: Any) -> Workload:
    """A workload on its home type; office hours unless told otherwise."""
    how.setdefault("shape", office_hours(60))
    return Workload(home=home, seed=seed, **how)


def residents() -> list[Resident]:
    """The endpoints, the three protagonists of the demo first."""
    return [*_protagonists(), *_oversized(), *_left_alone(), *_other_kinds()]


def _protagonists() -> list[Resident]:
    tags = AUTO | {"rightsizer:owner": "team-search"}
    return [
        # opted in, plainly too big, and changed well
        Resident(
            "search-embeddings",
            work("ml.g5.8xlarge", 1, shape=office_hours(220), gpu_s=0.02, host_s=0.008, gpu_memory_gib=7.5),
            count=2,
            tags=tags | {"rightsizer:p95-ms": "250", "rightsizer:min-instances": "1"},
        ),
        # opted in, looks the same, but its requests need more cores than any metric tells: the alarm brings it back
        Resident(
            "image-tagging",
            work(
                "ml.g5.8xlarge", 2, shape=around_the_clock(1300, 0.2), gpu_s=0.03, host_s=0.02, gpu_memory_gib=9.0,
                starves_below_vcpu=16,
            ),
            count=4,
            tags=AUTO | {"rightsizer:p95-ms": "250", "rightsizer:owner": "team-media"},
        ),
        # a person must decide
        Resident(
            "product-ranking",
            work("ml.g5.12xlarge", 3, shape=office_hours(300, night=0.1), gpu_s=0.015, gpu_memory_gib=5.0),
            tags=PROPOSE | {"rightsizer:p95-ms": "400", "rightsizer:owner": "team-shop"},
            image=TRITON,
        ),
    ]  # fmt: skip


def _oversized() -> list[Resident]:
    return [
        Resident("fraud-scores", work("ml.g5.4xlarge", 4, shape=around_the_clock(90), gpu_s=0.01), count=4,
                 tags=PROPOSE | {"rightsizer:p95-ms": "200", "owner": "team-risk"}),
        Resident("doc-layout", work("ml.g6e.4xlarge", 5, gpu_s=0.2, gpu_memory_gib=9.0), count=2,
                 tags=PROPOSE | {"rightsizer:p95-ms": "3000"}),
        Resident("speech-to-text", work("ml.g5.16xlarge", 6, gpu_s=0.3, gpu_memory_gib=10), tags=PROPOSE),
        Resident("caption-batches", work("ml.g5.2xlarge", 7, shape=bursts(40), gpu_s=0.3), count=3, tags=PROPOSE),
        Resident("month-end-invoices", work("ml.g5.4xlarge", 8, shape=month_end(6), gpu_s=0.4), count=2,
                 tags=PROPOSE),
        Resident("nightly-translate", work("ml.g6.12xlarge", 9, shape=bursts(40, 12, 50), gpu_s=0.5, gpus_used=4),
                 tags=PROPOSE),
        Resident("search-rerank", work("ml.g6.2xlarge", 10, shape=office_hours(90), gpu_s=0.03, gpu_memory_gib=4),
                 count=6, tags=PROPOSE | {"rightsizer:p95-ms": "500"}),
        Resident("untagged-vision", work("ml.g5.8xlarge", 11, gpu_s=0.04)),
    ]  # fmt: skip


def _left_alone() -> list[Resident]:
    return [
        # right as they are
        Resident("checkout-risk", work("ml.g5.xlarge", 12, shape=around_the_clock(500), gpu_s=0.05), tags=PROPOSE),
        Resident("chat-small", work("ml.g6.xlarge", 13, shape=around_the_clock(160), gpu_s=0.14), tags=PROPOSE),
        # too small for its load
        Resident("live-moderation", work("ml.g4dn.xlarge", 14, shape=around_the_clock(700), gpu_s=0.08),
                 tags=PROPOSE | {"rightsizer:p95-ms": "300"}),
        # pre-allocated memory says nothing about the need
        Resident("chat-70b", work("ml.p4d.24xlarge", 15, shape=office_hours(40), gpu_s=2.0, gpus_used=8,
                                  preallocates=True, host_memory_gib=300), image=VLLM, tags=PROPOSE),
        Resident("chat-13b", work("ml.g6e.2xlarge", 16, shape=office_hours(25), gpu_s=0.8, preallocates=True),
                 image=VLLM, tags=PROPOSE),
        # idle: utilisation is published, nobody calls
        Resident("poc-summariser", work("ml.g5.2xlarge", 17, shape=nothing()), tags=PROPOSE),
        Resident("demo-diffusion", work("ml.g6e.xlarge", 18, shape=nothing()), count=1),
        # unknown is not idle
        Resident("legacy-ocr", work("ml.g4dn.2xlarge", 19),
                 without=frozenset({"GPUUtilization", "GPUMemoryUtilization"})),
        Resident("brand-new", work("ml.g5.4xlarge", 20), days=1.5, tags=PROPOSE),
        Resident("metric-gap", work("ml.g5.2xlarge", 21, shape=around_the_clock(40)), gap=(54.0, 48.0), tags=PROPOSE),
        # what owners said
        Resident("hands-off", work("ml.g5.12xlarge", 22), tags={"rightsizer:mode": "off"}),
        Resident("report-only", work("ml.g5.4xlarge", 23), tags={"rightsizer:mode": "report"}),
        Resident("odd-tags", work("ml.g5.2xlarge", 24),
                 tags={"rightsizer:mode": "yolo", "rightsizer:p95-ms": "fast please"}),
        Resident("stack-owned", work("ml.g5.8xlarge", 25), tags={"aws:cloudformation:stack-name": "ml-platform"}),
    ]  # fmt: skip


def _other_kinds() -> list[Resident]:
    no_calls = frozenset({"Invocations"})
    other = work("ml.g5.xlarge", 29)
    return [
        Resident("autoscaled-feed", work("ml.g5.2xlarge", 26, shape=office_hours(400), gpu_s=0.04), count=3,
                 tags=PROPOSE, autoscale=(3, 8)),
        Resident("async-video", work("ml.g5.4xlarge", 27, shape=bursts(3, 8, 30), gpu_s=8.0), without=no_calls,
                 tags=PROPOSE, setup={"asynchronous": True}),
        Resident("ab-test", work("ml.g5.2xlarge", 28), tags=PROPOSE,
                 setup={"more_variants": [{"VariantName": "B", "InstanceType": "ml.g5.2xlarge",
                                           "InitialInstanceCount": 1}]}),
        Resident("tiny-serverless", replace(other, shape=office_hours(2)), without=frozenset({"*"}),
                 setup={"instance_type": None, "serverless": {"MemorySizeInMB": 4096, "MaxConcurrency": 5}}),
        Resident("tabular-cpu", replace(other, home="ml.g5.xlarge", seed=30), without=frozenset({"*"}),
                 setup={"instance_type": "ml.m5.xlarge"}),
    ]  # fmt: skip


def seed(box: Sandbox, traces: Path | None = None) -> dict[str, Workload]:
    """Fill the account; returns the workload of each endpoint that serves on instances.

    With `traces`, the load of each endpoint that serves anybody follows a real serving container's day.
    """
    works: dict[str, Workload] = {}
    for one in _traced(residents(), traces) if traces else residents():
        setup: dict[str, Any] = {"instance_type": one.work.home, "count": one.count} | dict(one.setup)
        created = box.clock.now - timedelta(days=max(one.days, 1) if one.days < DAYS else 60)
        teams = [team for team, names in OWNERS.items() if one.name in names]
        tags = dict(one.tags) | ({"rightsizer:owner": teams[0]} if teams else {})
        box.add_endpoint(one.name, image=one.image, tags=tags, created=created, **setup)
        if one.autoscale:
            box.autoscale(one.name, *one.autoscale)
        if "*" in one.without:
            continue
        write_past(box, one.name, one.work, one.count, days=one.days, gap=one.gap, without=one.without)
        if "Invocations" in one.without:
            write_backlog(box, one.name, one.work)
        works[one.name] = one.work
    return works


def _traced(account: list[Resident], traces: Path) -> list[Resident]:
    """The same endpoints under loads that were measured: requests keep their mean, and take the trace's shape."""
    found = shapes(traces, len(account))
    return [
        replace(one, work=replace(one.work, shape=_follow(one.work.shape, shape)))
        for one, shape in zip(account, found, strict=True)
    ]


def _follow(own: Shape, measured: Relative) -> Shape:
    """The measured shape, scaled to the mean of our own over a week."""
    hours = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(hours=hour) for hour in range(168)]
    scale = sum(own(at) for at in hours) / max(1e-9, sum(measured(at) for at in hours))
    return lambda at: scale * measured(at)


def write_backlog(box: Sandbox, endpoint: str, served: Workload) -> None:
    """What an asynchronous endpoint publishes in place of Invocations: its backlog and what it processed."""
    start = box.clock.now - timedelta(days=DAYS)
    start -= timedelta(seconds=start.timestamp() % 300)
    calls = [float(served.requests(start + timedelta(minutes=5 * i), 5)) for i in range(DAYS * 288)]
    box.put_series(endpoint, None, "ApproximateBacklogSize", start, 300, [max(0.0, c - 6) for c in calls])
    box.put_series(endpoint, "AllTraffic", "InvocationsProcessed", start, 300, calls)


def drive(box: Sandbox, works: Mapping[str, Workload], *names: str) -> None:
    """Let these endpoints go on serving as the clock advances, and so feed metrics and alarms."""
    for name in names:
        box.load(name, works[name].served)
