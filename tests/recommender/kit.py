"""Endpoints, metrics and prices for the tests of the decision, as small as they can be."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.endpoint import Endpoint, EndpointKind, EndpointRef, Mode, Objective, Variant
from rightsizer.domain.hardware import Accelerator, Catalogue, InstanceType
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Commitment, Price, PriceTable
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import EndpointUsage, MetricStatistic, MetricWindow, NoMetrics, Series, VariantUsage
from rightsizer.recommender import recommend
from rightsizer.recommender.context import AccountInputs

NOW = datetime(2026, 11, 20, tzinfo=UTC)
CHIPS = {
    "g4dn": Accelerator("T4", "NVIDIA", 65, 320, 16, 14.6, (7, 5)),
    "g5": Accelerator("A10G", "NVIDIA", 70, 600, 22.352, 22.0, (8, 6)),
    "g6": Accelerator("L4", "NVIDIA", 121, 300, 22.352, 22.0, (8, 9)),
    "g6e": Accelerator("L40S", "NVIDIA", 362, 864, 44.7, 44.5, (8, 9)),
    "p5": Accelerator("H100", "NVIDIA", 989, 3350, 80, 79.0, (9, 0)),
}
TYPES = {
    "ml.g4dn.xlarge": (4, 16, 1, "0.7364"),
    "ml.g4dn.2xlarge": (8, 32, 1, "0.94"),
    "ml.g5.xlarge": (4, 16, 1, "1.408"),
    "ml.g5.2xlarge": (8, 32, 1, "1.515"),
    "ml.g5.12xlarge": (48, 192, 4, "7.09"),
    "ml.g6.xlarge": (4, 16, 1, "1.1267"),
    "ml.g6.2xlarge": (8, 32, 1, "1.222"),
    "ml.g6e.xlarge": (4, 32, 1, "2.327"),
    "ml.g6e.2xlarge": (8, 64, 1, "2.803"),
    "ml.p5.4xlarge": (16, 256, 1, "7.0"),
}
CHIPS |= {
    "p3": Accelerator("V100", "NVIDIA", 125, 900, 16, 15.8, (7, 0)),
    "p4d": Accelerator("A100", "NVIDIA", 312, 1555, 40, 39.5, (8, 0)),
    "inf2": Accelerator("Inferentia2", "AWS", 190, 880.5, 32, 31.5, None),
    "trn1": Accelerator("Trainium1", "AWS", 190, 880.5, 32, 31.5, None),
}
OTHERS = {
    "ml.inf2.xlarge": (4, 16, 1, "0.99"),
    "ml.inf2.8xlarge": (32, 128, 1, "2.36"),
    "ml.trn1.2xlarge": (8, 32, 1, "1.55"),
    "ml.t3.2xlarge": (8, 32, 0, "0.399"),
    "ml.m5.2xlarge": (8, 32, 0, "0.461"),
    "ml.m5.4xlarge": (16, 64, 0, "0.922"),
    "ml.m8g.2xlarge": (8, 32, 0, "0.431"),
    "ml.m8g.4xlarge": (16, 64, 0, "0.862"),
}
"""Types with other chips, and without any."""
EIGHT = {
    "ml.p4d.24xlarge": (96, 1152, 8, "25.25"),
    "ml.g6.48xlarge": (192, 768, 8, "16.69"),
}
"""Types with eight GPUs."""


def catalogue(more: Mapping[str, tuple[int, int, int, str]] | None = None) -> Catalogue:
    """Ten GPU types, and `more`."""
    return Catalogue(
        {
            name: InstanceType(
                name, vcpu, memory, "arm64" if ".m8g." in name else "x86_64", CHIPS.get(name.split(".")[1]), chips
            )
            for name, (vcpu, memory, chips, _) in (TYPES | dict(more or {})).items()
        }
    )


def prices(without: Sequence[str] = (), commitment: Commitment | None = None) -> PriceTable:
    """Prices of all types."""
    known = {
        name: Price(name, "us-east-1", Decimal(row[3]), "snapshot", "direct-hosting", "2026-09")
        for name, row in (TYPES | OTHERS | EIGHT).items()
        if name not in without
    }
    return PriceTable("us-east-1", known, commitment or Commitment(Decimal(0), known=True))


def endpoint(
    instance_type: str = "ml.g6e.xlarge",
    count: int = 1,
    mode: Mode = Mode.AUTO,
    p95_s: float | None = 60.0,
    kind: EndpointKind = EndpointKind.REAL_TIME,
    framework: str = "pytorch",
    routing: str = "LEAST_OUTSTANDING_REQUESTS",
) -> Endpoint:
    """A plain endpoint that has run for 60 days, whose requests may be served twice."""
    then = NOW - timedelta(days=60)
    return Endpoint(
        ref=EndpointRef("111122223333", "us-east-1", "chat"),
        status="InService",
        config_name="chat-1",
        created_at=then,
        modified_at=then,
        kind=kind,
        kinds=(kind,),
        variants=(Variant("AllTraffic", "chat", instance_type, count, count, 1.0, (), routing),),
        tags={"rightsizer:shadow-ok": "true"},
        mode=mode,
        mode_declared=True,
        objective=Objective(p95_s),
        owner="ml-team",
        owned_by="",
        framework=framework,
    )


def window(
    values: Mapping[tuple[str, str], Callable[[int], float] | float], days: int = 14, period_s: int = 300
) -> MetricWindow:
    """A window of `days` up to NOW; each signal is a number or a function of the period's index."""
    start = NOW - timedelta(days=days)
    size = days * 86400 // period_s
    series = {
        MetricStatistic(*key): Series(
            start,
            period_s,
            array("d", map(value, range(size)) if callable(value) else [float(value)] * size),
        )
        for key, value in values.items()
    }
    return MetricWindow("chat", "AllTraffic", start, NOW, period_s, series)


def steady(
    per_slot: float = 6.0,
    latency_s: float = 0.5,
    gpu: float = 1.0,
    memory: float = 20.0,
    host: float = 20.0,
    cpu: float = 40.0,
    swing: float = 0.2,
) -> dict[tuple[str, str], Callable[[int], float] | float]:
    """Signals of a steady service; `memory` swings by `swing` of itself."""
    return {
        ("Invocations", "Sum"): per_slot,
        ("ModelLatency", "Average"): latency_s * 1e6,
        ("ModelLatency", "p50"): latency_s * 1e6,
        ("ModelLatency", "p95"): 1.3 * latency_s * 1e6,
        ("ModelLatency", "p99"): 1.4 * latency_s * 1e6,
        ("GPUUtilization", "Average"): gpu,
        ("GPUMemoryUtilization", "Average"): lambda i: memory * (1 - swing * (i % 2)),
        ("GPUMemoryUtilization", "Maximum"): memory,
        ("MemoryUtilization", "Average"): host,
        ("CPUUtilization", "Average"): cpu,
    }


def judge(
    endpoint: Endpoint,
    metrics: Sequence[MetricWindow | NoMetrics],
    prices: PriceTable,
    catalogue: Catalogue,
    quotas: Mapping[str, int],
    history: History,
    policy: Policy,
    now: datetime,
) -> Recommendation:
    """The recommendation with every registered dimension."""
    inputs = AccountInputs(prices, catalogue, quotas, history, policy, now)
    found = [usage for view in endpoint.views if (usage := _usage_of(view, metrics, inputs)) is not None]
    if endpoint.other_variants:
        return recommend.recommend(endpoint, EndpointUsage(endpoint.ref.name, tuple(found)), inputs, DIMENSIONS)
    return recommend.recommend(endpoint, next(iter(found), None), inputs, DIMENSIONS)


def _usage_of(
    view: Endpoint, metrics: Sequence[MetricWindow | NoMetrics], inputs: AccountInputs
) -> VariantUsage | NoMetrics | None:
    """Usage of the first variant of the view, as `UsageReader` gives it; None without windows or a known type."""
    name = view.variants[0].name if view.variants else ""
    mine = [m for m in metrics if m.variant in ("", name)]
    windows = [m for m in mine if isinstance(m, MetricWindow)]
    unread = next((m for m in mine if isinstance(m, NoMetrics)), None)
    if unread is not None and not windows:
        return unread
    hardware = inputs.catalogue.find(view.variants[0].instance_type) if view.variants else None
    if hardware is None or not windows:
        return None
    return recommend.add_daily_usage(view, windows, hardware, inputs.history, inputs.policy)


def judge_digests(
    endpoint: Endpoint,
    usage: VariantUsage | None,
    prices: PriceTable,
    catalogue: Catalogue,
    quotas: Mapping[str, int],
    history: History,
    policy: Policy,
    now: datetime,
) -> Recommendation:
    """The recommendation with every registered dimension, of days that are folded."""
    return recommend.recommend(
        endpoint, usage, AccountInputs(prices, catalogue, quotas, history, policy, now), DIMENSIONS
    )
