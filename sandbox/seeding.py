"""Filling the account: endpoints, tags, autoscaling and metrics, without requests and without waiting."""

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sandbox.cloudwatch.store import Block, epoch
from sandbox.sagemaker.load import INSTANCES, INVOCATIONS, OF_COMPONENTS
from sandbox.scaling.api import VARIANT
from sandbox.world import World

UTILISATION = frozenset(
    {
        "GPUUtilization", "GPUMemoryUtilization", "CPUUtilization", "MemoryUtilization", "DiskUtilization",
        "GPUUtilizationNormalized", "GPUMemoryUtilizationNormalized", "CPUUtilizationNormalized", "LoadedModelCount",
        "CPUReservation", "GPUReservation", "MemoryReservation",
    }
)  # fmt: skip
IMAGE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference@sha256:" + "ab" * 32
ROLE = "arn:aws:iam::111122223333:role/model"

type Numbers = Sequence[float] | array[float]

QUIET = {"GPUMemoryUtilizationNormalized": 1.0, "MemoryUtilizationNormalized": 1.0, "ModelLatency": math.nan}
"""What a metric of a component shows while nobody calls, as a share of what it shows else; 0 where it is not named."""


class Seeding:
    """The part of the sandbox that fills it."""

    world: World

    def _do(self, operation: str, service: str = "sagemaker", **params: Any) -> Any:
        return getattr(self.world.api(service), operation)(params)

    def add_endpoint(
        self,
        name: str,
        instance_type: str | None = "ml.g5.xlarge",
        count: int = 1,
        *,
        variant: str = "AllTraffic",
        image: str = IMAGE,
        tags: Mapping[str, str] | None = None,
        created: datetime | None = None,
        asynchronous: bool = False,
        serverless: Mapping[str, int] | None = None,
        pools: Sequence[str] = (),
        model: Mapping[str, Any] | None = None,
        variant_extra: Mapping[str, Any] | None = None,
        config_extra: Mapping[str, Any] | None = None,
        more_variants: Iterable[Mapping[str, Any]] = (),
        inference_components: bool = False,
        observability: bool = False,
    ) -> str:
        """An endpoint that is InService since `created` (30 days ago), with model and configuration ``NAME-config``.

        `more_variants`, `variant_extra` and `config_extra` are members of the API's shapes; `pools` are instance types
        by priority; `tags` may carry the ``aws:`` prefix, as CloudFormation's do. Returns the ARN.
        """
        born = created or self.world.clock.now - timedelta(days=30)
        spec = {
            "VariantName": variant,
            "InitialVariantWeight": 1.0,
            **_hardware(instance_type, count, serverless, pools),
        }
        if not inference_components:
            self._model(f"{name}-model", image, dict(model or {}), born)
            spec["ModelName"] = f"{name}-model"
        spec |= _hardware(instance_type, count, serverless, pools)
        extra: dict[str, Any] = dict(config_extra or {})
        if asynchronous:
            extra.setdefault("AsyncInferenceConfig", {"OutputConfig": {"S3OutputPath": f"s3://out/{name}"}})
        if inference_components:
            extra.setdefault("ExecutionRoleArn", ROLE)
        extra.setdefault("MetricsConfig", {"EnableDetailedObservability": observability})
        others = [{"ModelName": f"{name}-model", "InitialVariantWeight": 1.0, **more} for more in more_variants]
        variants = [spec | dict(variant_extra or {}), *others]
        config = f"{name}-config"
        self._do("CreateEndpointConfig", EndpointConfigName=config, ProductionVariants=variants, **extra)
        self.world.fleet.configs[config].created = born
        return self._endpoint(name, config, dict(tags or {}), born)

    def _endpoint(self, name: str, config: str, tags: dict[str, str], born: datetime) -> str:
        arn = str(self._do("CreateEndpoint", EndpointName=name, EndpointConfigName=config)["EndpointArn"])
        endpoint = self.world.fleet.endpoints[name]
        endpoint.status, endpoint.until, endpoint.created, endpoint.modified = "InService", None, born, born
        self.world.fleet.ran[name] = []
        self.world.fleet.note(endpoint, born)
        self.world.tags.put(arn, tags)
        return arn

    def _model(self, name: str, image: str, request: dict[str, Any], born: datetime) -> None:
        request.setdefault("ExecutionRoleArn", ROLE)
        if "Containers" not in request:
            container = {"Image": image, "ModelDataUrl": f"s3://models/{name}.tar.gz"}
            request["PrimaryContainer"] = container | request.get("PrimaryContainer", {})
        self._do("CreateModel", ModelName=name, **request)
        self.world.fleet.models[name].created = born

    def add_component(
        self,
        name: str,
        endpoint: str,
        *,
        variant: str = "AllTraffic",
        copies: int = 1,
        needs: Mapping[str, float] | None = None,
        base: str = "",
    ) -> None:
        """An inference component that is InService; a copy reserves one CPU core, or `needs`.

        An adapter of `base` reserves nothing.
        """
        needs = needs or {"NumberOfCpuCoresRequired": 1, "MinMemoryRequiredInMb": 1024}
        specification: dict[str, Any] = {"Container": {"Image": IMAGE}, "ComputeResourceRequirements": dict(needs)}
        if base:
            specification = {"Container": {"ArtifactUrl": f"s3://models/{name}"}, "BaseInferenceComponentName": base}
        self._do(
            "CreateInferenceComponent", InferenceComponentName=name, EndpointName=endpoint, VariantName=variant,
            Specification=specification, RuntimeConfig={"CopyCount": copies},
        )  # fmt: skip
        component = self.world.components.known[name]
        component.status, component.until, component.copies = "InService", None, copies
        component.created = component.modified = self.world.clock.now - timedelta(days=30)

    def use_component(
        self,
        name: str,
        gpu: float = 20.0,
        at_once: float = 0.4,
        requests: float = 50.0,
        *,
        days: int = 14,
        hours: range = range(24),
        latency_s: float = 0.3,
        without: frozenset[str] = frozenset(),
    ) -> None:
        """Days of use of a component: percent of what it reserved, requests at once in a copy, and in five minutes.

        Outside `hours` (UTC) nobody calls: its memory stays, what requests use is zero, and no latency is published.
        """
        start, size = self.world.clock.now - timedelta(days=days), days * 288
        start -= timedelta(seconds=start.timestamp() % 300)
        used = {"GPUUtilizationNormalized": gpu, "GPUMemoryUtilizationNormalized": 60.0}
        used |= {"CPUUtilizationNormalized": 10.0, "MemoryUtilizationNormalized": 30.0}
        served = {"Invocations": requests, "ConcurrentRequestsPerCopy": at_once}
        served |= {"ModelLatency": latency_s * 1e6} if requests else {}
        for space, rows in ((OF_COMPONENTS, used), (INVOCATIONS, served)):
            for metric in sorted(set(rows) - without):
                quiet = QUIET.get(metric, 0.0)
                at = [epoch(start) + 300 * step for step in range(size)]
                values = [rows[metric] if second // 3600 % 24 in hours else rows[metric] * quiet for second in at]
                block = Block(epoch(start), 300, array("d", values), 1.0)
                self.world.metrics.put(space, metric, {"InferenceComponentName": name}, block)

    def autoscale(
        self,
        endpoint: str,
        minimum: int,
        maximum: int,
        *,
        variant: str = "AllTraffic",
        invocations_per_instance: float | None = 100.0,
        policies: Iterable[Mapping[str, Any]] = (),
        scheduled: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Register the variant with Application Auto Scaling, with a target-tracking policy unless told otherwise."""
        who = {
            "ServiceNamespace": "sagemaker",
            "ResourceId": f"endpoint/{endpoint}/variant/{variant}",
            "ScalableDimension": VARIANT,
        }
        service = "application-autoscaling"
        self._do("RegisterScalableTarget", service, **who, MinCapacity=minimum, MaxCapacity=maximum)
        if invocations_per_instance is not None:
            metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
            config = {"TargetValue": invocations_per_instance, "PredefinedMetricSpecification": metric}
            self._do(
                "PutScalingPolicy", service, **who, PolicyName=f"{endpoint}-tracking",
                PolicyType="TargetTrackingScaling", TargetTrackingScalingPolicyConfiguration=config,
            )  # fmt: skip
        for policy in policies:
            self._do("PutScalingPolicy", service, **who, **policy)
        for action in scheduled:
            self._do("PutScheduledAction", service, **who, **action)

    def follow_targets(self) -> None:
        """From now on the target-tracking policies of variants scale them, by the metrics that their load publishes."""
        self.world.tracking.follows = True

    def set_quota(self, instance_type: str, instances: int) -> None:
        """Set the endpoint quota of a type; `Quotas.DEFAULT` holds for the others."""
        self.world.quotas.set(instance_type, instances)

    def move_image_tag(self, image: str) -> None:
        """Point a moving tag at another image; the next deployment runs it."""
        self.world.fleet.image_generation[image] += 1

    def put_series(
        self,
        endpoint: str,
        variant: str | None,
        metric: str,
        start: datetime,
        period_s: int,
        values: Numbers,
        *,
        samples: Numbers | float = 1.0,
        minimum: Numbers | None = None,
        maximum: Numbers | None = None,
        percentiles: Mapping[str, Numbers] | None = None,
        namespace: str | None = None,
        dimensions: Mapping[str, str] | None = None,
    ) -> None:
        """A run of periods from `start`: `values` are averages, `samples` how many datapoints each stands for.

        The Sum is average times samples; a counter such as Invocations is seeded as its sum with one sample. NaN means
        no datapoints. `percentiles` (``{"p95": [...]}``) answer pNN where `samples` is above one. The namespace
        follows from the metric; a `variant` of None leaves the VariantName dimension out, as async backlogs do.
        """
        space = namespace or (INSTANCES if metric in UTILISATION else INVOCATIONS)
        own = {"EndpointName": endpoint} | ({"VariantName": variant} if variant else {}) | dict(dimensions or {})
        averages = array("d", values)
        counts: array[float] | float
        if isinstance(samples, int | float):
            each = counts = float(samples)
            totals = averages if each == 1.0 else array("d", (value * each for value in averages))
        else:
            counts = array("d", samples)
            totals = array("d", (value * count for value, count in zip(averages, counts, strict=True)))
        block = Block(
            epoch(start), period_s, totals, counts,
            array("d", minimum) if minimum is not None else None,
            array("d", maximum) if maximum is not None else None,
            {float(name.removeprefix("p")): array("d", row) for name, row in (percentiles or {}).items()},
        )  # fmt: skip
        self.world.metrics.put(space, metric, own, block)


def _hardware(
    instance_type: str | None, count: int, serverless: Mapping[str, int] | None, pools: Sequence[str]
) -> dict[str, Any]:
    """The members of a ProductionVariant that say what it runs on."""
    if serverless:
        return {"ServerlessConfig": dict(serverless)}
    if pools:
        rows = [{"InstanceType": kind, "Priority": at} for at, kind in enumerate(pools, start=1)]
        return {"InstancePools": rows, "InitialInstanceCount": count}
    return {"InstanceType": instance_type, "InitialInstanceCount": count}
