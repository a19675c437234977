"""Traffic: what an endpoint answers from now on, minute by minute, and the metrics that follow from it.

Names, units and dimensions: developer guide, monitoring-cloudwatch. During and after a deployment with guardrails the
invocation metrics carry EndpointConfigName as well, in a series of their own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from sandbox.clock import next_minute
from sandbox.cloudwatch.store import Sample
from sandbox.sagemaker.enhanced import enhanced, gpus_of
from sandbox.scaling.sleeping import Queue
from sandbox.scaling.tracking import alarm_shape, tracking_policies

if TYPE_CHECKING:
    from sandbox.sagemaker.fleet import Fleet
    from sandbox.sagemaker.nouns import Endpoint, Variant

INVOCATIONS = "AWS/SageMaker"
INSTANCES = "/aws/sagemaker/Endpoints"
OF_COMPONENTS = "/aws/sagemaker/InferenceComponents"
CONCURRENT = "ConcurrentRequestsPerModel"
MEAN_LATENCY = 1.1
"""Mean model latency over its median."""


@dataclass(frozen=True, slots=True)
class Served:
    """What one fleet did in one minute, if all traffic had gone to it."""

    requests: int
    latency_ms: float = 50.0
    """Median model latency; the 95th percentile is twice, the maximum four times as much."""
    errors_5xx: int = 0
    model_errors: int = 0
    gpu: float | None = None
    """GPUUtilization summed over the GPUs of an instance (0 to 100 x GPUs); None publishes none."""
    gpu_memory: float | None = None
    each_gpu: tuple[float, ...] = ()
    """Share of `gpu` and of `gpu_memory` that each GPU of an instance has; published with enhanced metrics only."""
    cpu: float = 20.0
    memory: float = 30.0


type LoadModel = Callable[[datetime, str, int], Served]


class LoadDriver:
    """Writes the metrics of every endpoint that has a load model, as the minutes pass."""

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet
        self._models: dict[str, LoadModel] = {}
        self.queues: dict[str, Queue] = {}
        """What waits for each asynchronous endpoint."""
        self.by_config = True
        """Whether metrics are published under the configuration's name too; the guide does not say when it begins."""

    def set(self, endpoint: str, model: LoadModel | None) -> None:
        """Drive the endpoint by `model`, or no longer."""
        if model is None:
            self._models.pop(endpoint, None)
        else:
            self._models[endpoint] = model

    def next_due(self, now: datetime) -> datetime | None:
        """Every full minute, while any endpoint is driven."""
        return next_minute(now) if self._models else None

    def happen(self, now: datetime) -> None:
        """Publish the minute that has just ended."""
        if now.second or now.microsecond:
            return
        minute = now - timedelta(minutes=1)
        for name, model in self._models.items():
            endpoint = self._fleet.endpoints.get(name)
            if endpoint is not None and endpoint.status not in {"Creating", "Failed", "Deleting"}:
                self._minute(endpoint, model, minute)

    def _minute(self, endpoint: "Endpoint", model: LoadModel, minute: datetime) -> None:
        deployment = endpoint.deployment
        share = deployment.phase.share if deployment else 0.0
        weights = sum(variant.weight for variant in endpoint.variants.values()) or 1.0
        for variant in endpoint.variants.values():
            part = variant.weight / weights
            self._fleet_minute(endpoint, variant, model, minute, part * (1 - share), endpoint.config_name)
        for variant in endpoint.shadows.values():  # copies of the requests, by its weight over the production variant's
            self._fleet_minute(
                endpoint, variant, model, minute, min(1.0, variant.weight / weights), endpoint.config_name
            )
        if deployment and share > 0:
            for variant in deployment.variants.values():
                self._fleet_minute(
                    endpoint, variant, model, minute, share / len(deployment.variants), deployment.config_name
                )

    def _requests(self, config: str, served: Served, part: float, count: int) -> list[tuple[str, Sample]]:
        return _queued(served, part) if self._is_queued(config) else _invocations(served, part, count)

    def _is_queued(self, config: str) -> bool:
        known = self._fleet.configs.get(config)
        return known is not None and bool(known.request.get("AsyncInferenceConfig"))

    def _queue_minute(self, endpoint: "Endpoint", variant: "Variant", served: Served, minute: datetime) -> Served:
        """What leaves the queue in a minute; all of it while an instance runs."""
        queue = self.queues.setdefault(endpoint.name, Queue())
        done = queue.arrive(served.requests, minute, awake=variant.count > 0)
        at_once = done * served.latency_ms * MEAN_LATENCY / 60_000  # Little's law; AWS counts what is processed too
        held, most = queue.backlog + at_once, float(queue.backlog + math.ceil(at_once))
        rows = {
            "HasBacklogWithoutCapacity": Sample.even(float(queue.backlog > 0)),
            "ApproximateAgeOfOldestRequest": Sample.even(queue.age_s(minute)),
            "ApproximateBacklogSize": Sample(held, float(queue.backlog), most, 1),
        }
        if variant.count:  # [assumed]: what no instance divides is not published
            each = Sample(held / variant.count, queue.backlog / variant.count, most / variant.count, 1)
            rows["ApproximateBacklogSizePerInstance"] = each
        for metric, sample in rows.items():
            self._fleet.world.metrics.add(INVOCATIONS, metric, {"EndpointName": endpoint.name}, minute, sample)
        return replace(served, requests=done)

    def _components_minute(self, endpoint: "Endpoint", variant: "Variant", served: Served, minute: datetime) -> Served:
        """What the copies of the components serve; calls of one without a copy fail, which is counted for it alone."""
        mine = [c for c in self._fleet.world.components.known.values() if c.endpoint == endpoint.name]
        mine = [c for c in mine if c.variant == variant.name]
        done = served.requests
        for component in mine:
            calls, queue = served.requests / len(mine), self.queues.setdefault(component.name, Queue())
            queue.arrive(round(calls), minute, awake=True)
            awake = component.copies > 0 and variant.count > 0
            done -= 0 if awake else round(calls)
            metric = "Invocations" if awake else "NoCapacityInvocationFailures"
            own, sample = {"InferenceComponentName": component.name}, Sample.counted(calls, max(calls, 1))
            if awake or calls:
                self._fleet.world.metrics.add(INVOCATIONS, metric, own, minute, sample)
        return replace(served, requests=max(0, done))

    def _fleet_minute(
        self, endpoint: "Endpoint", variant: "Variant", model: LoadModel, minute: datetime, part: float, config: str
    ) -> None:
        kind, count = variant.instance_type, max(1, variant.count)
        if kind is None or part <= 0:
            return
        served = model(minute, kind, count)
        plain = {"EndpointName": endpoint.name, "VariantName": variant.name}
        if self._is_queued(config):
            served = self._queue_minute(endpoint, variant, served, minute)
        elif not variant.spec.get("ModelName"):
            served = self._components_minute(endpoint, variant, served, minute)
        if not variant.count and not variant.desired_count:
            return  # no instance: nothing is served, and nothing is utilised
        own = plain | {"EndpointConfigName": config}
        guarded = self.by_config and (endpoint.last_deployment_config or endpoint.deployment)
        for dimensions in (plain, own) if guarded else (plain,):
            for metric, sample in self._requests(config, served, part, count):
                self._fleet.world.metrics.add(INVOCATIONS, metric, dimensions, minute, sample)
            if self._is_concurrency_followed(endpoint, variant):
                self._concurrency(dimensions, served, part / count, minute)
        self._utilisation(endpoint, plain, served, count, minute, config)

    def _is_concurrency_followed(self, endpoint: "Endpoint", variant: "Variant") -> bool:
        """Whether a policy follows concurrent requests; AWS publishes them always, six times as often as the rest."""
        resource = f"endpoint/{endpoint.name}/variant/{variant.name}"
        mine = (t for t in self._fleet.world.scaling.targets.values() if t.identity[0] == resource)
        return any(alarm_shape(p, "High")["MetricName"] == CONCURRENT for t in mine for p in tracking_policies(t))

    def _concurrency(self, dimensions: dict[str, str], served: Served, part: float, minute: datetime) -> None:
        """Requests that one instance serves at once, every ten seconds, by Little's law. [assumed]: evenly spread."""
        at_once = served.requests * part * served.latency_ms * MEAN_LATENCY / 60_000
        for second in range(0, 60, 10):
            at, sample = minute + timedelta(seconds=second), Sample.even(at_once)
            self._fleet.world.metrics.add(INVOCATIONS, CONCURRENT, dimensions, at, sample)

    def _utilisation(
        self, endpoint: "Endpoint", plain: dict[str, str], served: Served, count: int, minute: datetime, config: str
    ) -> None:
        for metric, value in (
            ("GPUUtilization", served.gpu),
            ("GPUMemoryUtilization", served.gpu_memory),
            ("CPUUtilization", served.cpu),
            ("MemoryUtilization", served.memory),
            ("DiskUtilization", 20.0),
        ):
            if value is not None:
                self._fleet.world.metrics.add(INSTANCES, metric, plain, minute, Sample.even(value, count))
        if enhanced(self._fleet, config):
            for gpu, beside in gpus_of(endpoint.name, count, len(served.each_gpu)):
                for metric, value in (("GPUUtilization", served.gpu), ("GPUMemoryUtilization", served.gpu_memory)):
                    sample = Sample.even((value or 0.0) * served.each_gpu[gpu])
                    self._fleet.world.metrics.add(INSTANCES, metric, plain | beside, minute, sample)


def _queued(served: Served, part: float) -> list[tuple[str, Sample]]:
    """An asynchronous endpoint counts what left its queue, and publishes no Invocations or OverheadLatency.

    Source: developer guide, async-inference-monitor, with its spelling. [assumed]: failures are counted there alone.
    """
    requests, failures = round(served.requests * part), round((served.errors_5xx + served.model_errors) * part)
    latency = [row for row in _invocations(served, part, 1) if row[0] == "ModelLatency"]
    return [
        ("InvocationsProcesssed", Sample.counted(requests, max(requests, 1))),
        ("InvocationFailures", Sample.counted(failures, max(requests, 1))),
        *latency,
    ]


@lru_cache(maxsize=64)
def _invocations(served: Served, part: float, count: int) -> list[tuple[str, Sample]]:
    """What a minute publishes; most minutes are like the one before."""
    requests = round(served.requests * part)
    if not requests:
        return [("Invocations", Sample.counted(0, 1)), ("InvocationsPerInstance", Sample.counted(0, 1))]
    micros = served.latency_ms * 1000
    latency = Sample(
        total=micros * MEAN_LATENCY * requests, low=micros * 0.5, high=micros * 4, count=requests,
        quantiles={50.0: micros, 90.0: micros * 1.6, 95.0: micros * 2, 99.0: micros * 3},
    )  # fmt: skip
    return [
        ("Invocations", Sample.counted(requests, requests)),
        ("InvocationsPerInstance", Sample.counted(requests / count, requests)),
        ("Invocation5XXErrors", Sample.counted(round(served.errors_5xx * part), requests)),
        ("Invocation4XXErrors", Sample.counted(0, requests)),
        ("InvocationModelErrors", Sample.counted(round(served.model_errors * part), requests)),
        ("ModelLatency", latency),
        ("OverheadLatency", Sample(3000.0 * requests, 1500.0, 12000.0, requests)),
    ]
