"""The endpoints of the account and what happens to them as time passes."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandbox.clock import next_minute
from sandbox.refusals import invalid
from sandbox.sagemaker import checks, events
from sandbox.sagemaker.deployment import REASONS, Deployment, Ending, Phase, Scaling, Timing, alarm_names, plan
from sandbox.sagemaker.load import LoadDriver
from sandbox.sagemaker.nouns import Endpoint, Record, Variant, variant_of
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.world import World


class Fleet:
    """Models, configurations and endpoints."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.models: dict[str, Record] = {}
        self.configs: dict[str, Record] = {}
        self.endpoints: dict[str, Endpoint] = {}
        self.timing = Timing()
        self.scripts: dict[str, list[Ending]] = {}
        self.monitors: dict[str, str] = {}
        """The endpoint that each Model Monitor schedule watches."""
        self.plans: dict[str, tuple[datetime, datetime]] = {}
        """When each training plan, which reserves instances for endpoints, begins and ends."""
        self.scarce: set[str] = set()
        """Instance types of which AWS has none at the moment: a creation with one of them fails."""
        self.image_generation: Counter[str] = Counter()
        """How often a moving image tag has been pointed at another digest."""
        self.takes_metrics_config = True
        """Whether this Region knows MetricsConfig."""
        self.index_lag = timedelta(0)
        """How long what was made or modified is not found by Search."""
        self.load = LoadDriver(self)
        self.ran: dict[str, list[tuple[datetime, Mapping[str, int]]]] = {}
        """What each endpoint has run: (since when, instances by type), for the bill."""

    # what exists

    def arns(self, kind: str) -> list[str]:
        """ARNs of one resource kind, in the order of their creation."""
        known: Mapping[str, Record | Endpoint] = {
            "model": self.models,
            "endpoint-config": self.configs,
            "endpoint": self.endpoints,
        }[kind]  # type: ignore[assignment]
        return [record.arn for record in known.values()]

    def arn(self, kind: str, name: str) -> str:
        """The ARN of a model, configuration or endpoint."""
        return self.world.arn("sagemaker", f"{kind}/{name.lower()}")

    def endpoint(self, name: str, operation: str = "DescribeEndpoint") -> Endpoint:
        """The endpoint, or the refusal that SageMaker answers `operation` with."""
        if name not in self.endpoints and on(operation, "unknown"):
            raise invalid(f'Could not find endpoint "{self.arn("endpoint", name)}".')
        return self.endpoints[name]

    def config(self, name: str, check: str = "unknown", operation: str = "UpdateEndpoint") -> Record:
        """The configuration, or the refusal, which `check` of the operation or of DescribeEndpointConfig makes."""
        operation = "DescribeEndpointConfig" if check == "unknown" else operation
        if name not in self.configs and on(operation, check):
            raise invalid(f'Could not find endpoint configuration "{self.arn("endpoint-config", name)}".')
        return self.configs[name]

    def in_use(self) -> Counter[str]:
        """Instances by type that count towards the quotas, green fleets included."""
        used: Counter[str] = Counter()
        for endpoint in self.endpoints.values():
            fleets = [*endpoint.variants.values(), *endpoint.shadows.values()]
            for variant in fleets:
                if variant.instance_type:
                    used[variant.instance_type] += max(variant.count, variant.desired_count)
            if endpoint.deployment:
                used.update(_green(endpoint.deployment))
        return used

    def check_quota(self, wanted: Mapping[str, int], operation: str = "UpdateEndpoint") -> None:
        """Refuse instances beyond the quota."""
        used = self.in_use()
        for kind, delta in wanted.items():
            checks.quota(kind, self.world.quotas.endpoint_limit(kind), used[kind], delta, operation)

    def fleets_of(self, config: Mapping[str, Any]) -> tuple[dict[str, Variant], dict[str, Variant]]:
        """Production and shadow variants as a configuration starts them."""
        made = []
        for key in ("ProductionVariants", "ShadowProductionVariants"):
            variants = {spec["VariantName"]: variant_of(spec) for spec in config.get(key) or []}
            for variant in variants.values():
                variant.images = self._images(variant)
            made.append(variants)
        return made[0], made[1]

    def _images(self, variant: Variant) -> list[dict[str, Any]]:
        model = self.models.get(variant.spec.get("ModelName", ""))
        if model is None:
            return []
        containers = model.request.get("Containers") or [model.request.get("PrimaryContainer") or {}]
        return [self.resolved(container["Image"]) for container in containers if container.get("Image")]

    def resolved(self, image: str) -> dict[str, Any]:
        """What an image would be deployed as now."""
        repository = image.partition("@")[0].rsplit(":", 1)[0]
        digest = hashlib.sha256(f"{image}#{self.image_generation[image]}".encode()).hexdigest()
        resolved = image if "@sha256:" in image else f"{repository}@sha256:{digest}"
        return {"SpecifiedImage": image, "ResolvedImage": resolved, "ResolutionTime": self.world.clock.now}

    # what begins

    def deploy(self, endpoint: Endpoint, deployment: Deployment) -> None:
        """Start an update that was accepted."""
        endpoint.deployment = deployment
        self._enter(endpoint, "Updating")

    def prepare(
        self, endpoint: Endpoint, config_name: str, variants: dict[str, Variant], request: Mapping[str, Any]
    ) -> Deployment:
        """The deployment of `variants`, with the ending that was scripted for it."""
        now, scripts = self.world.clock.now, self.scripts.get(endpoint.name, [])
        ending = scripts.pop(0) if scripts else None
        count = max((variant.desired_count for variant in variants.values()), default=1)
        policy = request.get("BlueGreenUpdatePolicy") or request.get("RollingUpdatePolicy") or {}
        limit = timedelta(seconds=policy.get("MaximumExecutionTimeoutInSeconds", 28800))
        phases = plan(request, max(count, 1), self.timing)
        phases[0] = Phase("Creating", _creation(ending, phases[0].lasts, limit, self.timing), 0.0)
        shadows = self.fleets_of(self.config(config_name).request)[1]
        alarms = alarm_names(request)
        return Deployment(config_name, now, variants, shadows, phases, alarms, ending, request, now + limit)

    def scale(self, endpoint: Endpoint, lasts: timedelta) -> None:
        """Start a change of counts or weights that was accepted."""
        scripts = self.scripts.get(endpoint.name, [])
        ending = scripts.pop(0) if scripts else Ending.SUCCESS
        failed = REASONS[Ending.CAPACITY] if ending is Ending.CAPACITY else None
        endpoint.scaling = Scaling(self.world.clock.now + lasts, failed)
        self._enter(endpoint, "Updating")

    def system_update(self, endpoint: Endpoint) -> None:
        """AWS maintains the endpoint: SystemUpdating for a while, with variants and weights unchanged."""
        endpoint.until = self.world.clock.now + self.timing.system_update
        self._enter(endpoint, "SystemUpdating")

    def begin_delete(self, endpoint: Endpoint) -> None:
        """Start to delete the endpoint."""
        endpoint.until = self.world.clock.now + timedelta(minutes=1)
        self._enter(endpoint, "Deleting")

    def remove(self, endpoint: Endpoint) -> None:
        """The endpoint is gone; its scalable targets go with it."""
        del self.endpoints[endpoint.name]
        self.ran.setdefault(endpoint.name, []).append((self.world.clock.now, {}))
        self.world.tags.forget(endpoint.arn)
        self.world.scaling.endpoint_deleted(endpoint.name)

    # what happens by itself

    def next_due(self, now: datetime) -> datetime | None:
        """When the next endpoint moves on."""
        return min((due for endpoint in self.endpoints.values() for due in _dues(endpoint, now)), default=None)

    def happen(self, now: datetime) -> None:
        """Let endpoints move on."""
        for endpoint in list(self.endpoints.values()):
            if endpoint.deployment:
                self._progress(endpoint, now)
            elif endpoint.scaling and now >= endpoint.scaling.ends:
                self._scaled(endpoint, now)
            elif endpoint.until and now >= endpoint.until:
                self._settle(endpoint)

    def _settle(self, endpoint: Endpoint) -> None:
        endpoint.until = None
        if endpoint.status == "Deleting":
            self.remove(endpoint)
            return
        kinds = {variant.instance_type for variant in endpoint.variants.values()}
        if endpoint.status == "Creating" and kinds & self.scarce:
            endpoint.failure_reason = REASONS[Ending.CAPACITY].format_map({"variant": next(iter(endpoint.variants))})
            self._enter(endpoint, "Failed")
            return
        self._enter(endpoint, "InService")

    def _scaled(self, endpoint: Endpoint, now: datetime) -> None:
        scaling, endpoint.scaling = endpoint.scaling, None
        for variant in endpoint.variants.values():
            if scaling and scaling.fails_with:
                variant.desired_count, variant.desired_weight = variant.count, variant.weight
            variant.count, variant.weight = variant.desired_count, variant.desired_weight
        endpoint.failure_reason = scaling.fails_with if scaling else None
        if endpoint.failure_reason:  # DescribeEndpoint: RollingBack is the status of a failed scaling
            endpoint.until = now + self.timing.roll_back
            self._enter(endpoint, "RollingBack")
            return
        self._enter(endpoint, "InService")

    def _progress(self, endpoint: Endpoint, now: datetime) -> None:
        deployment = endpoint.deployment
        while deployment is not None and endpoint.deployment is deployment and self._moved(endpoint, deployment, now):
            pass

    def _moved(self, endpoint: Endpoint, deployment: Deployment, now: datetime) -> bool:
        """Make the next move of a deployment that is due at `now`; False when none is."""
        fired = self.world.alarms.firing(deployment.alarms) if deployment.serving else ()
        scripted = deployment.serving and deployment.ending is Ending.ALARM and deployment.alarms
        if fired or scripted:
            self._roll_back(endpoint, Ending.ALARM, now, alarms=", ".join(fired or deployment.alarms))
        elif deployment.reason is None and deployment.deadline and now >= deployment.deadline:
            limit = (deployment.deadline - deployment.started).total_seconds()
            self._roll_back(endpoint, Ending.TIMEOUT, now, timeout=int(limit))
        elif now < deployment.leaves:
            return False
        elif deployment.phase.name == "RollingBack":
            self._rolled_back(endpoint, deployment)
        elif deployment.ending in _ENDS_IN_CREATION and deployment.at == 0:
            self._fail_in_creation(endpoint, deployment, now)
        elif deployment.at + 1 < len(deployment.phases):
            deployment.entered, deployment.at = deployment.leaves, deployment.at + 1
            events.deployment_changed(self.world, endpoint)
        else:
            self._finish(endpoint, deployment)
        return True

    def _fail_in_creation(self, endpoint: Endpoint, deployment: Deployment, now: datetime) -> None:
        assert deployment.ending is not None
        if deployment.ending is Ending.FAILED:
            endpoint.deployment, endpoint.failure_reason = None, REASONS[Ending.FAILED]
            self._enter(endpoint, "Failed")
            return
        self._roll_back(endpoint, deployment.ending, now, variant=next(iter(deployment.variants)))

    def _roll_back(self, endpoint: Endpoint, why: Ending, now: datetime, **facts: Any) -> None:
        deployment = endpoint.deployment
        assert deployment is not None
        if self._no_room_to_return(endpoint, deployment):
            deployment.ending = why = Ending.UPDATE_ROLLBACK_FAILED
        deployment.reason = REASONS[why].format_map({"variant": "", "alarms": "", "timeout": ""} | facts)[:1024]
        deployment.phases.append(Phase("RollingBack", self.timing.roll_back, 0.0))
        deployment.at, deployment.entered = len(deployment.phases) - 1, now
        events.deployment_changed(self.world, endpoint)

    def _no_room_to_return(self, endpoint: Endpoint, deployment: Deployment) -> bool:
        """Whether the quota refuses the whole old fleet at once beside the instances that were replaced already.

        RollingUpdatePolicy.RollbackMaximumBatchSize: absent means 100 % of the capacity at once. In batches the room
        of the deployment's own batch is enough.
        """
        rolling = deployment.request.get("RollingUpdatePolicy")
        if not rolling or _returns_in_batches(rolling, deployment):
            return False
        used, share = self.in_use(), deployment.phase.share
        own = {variant.instance_type for variant in endpoint.variants.values()}
        for variant in deployment.variants.values():
            kind = variant.instance_type
            if kind and kind in own:
                replaced = round(share * variant.desired_count)
                more = replaced - checks.size(rolling["MaximumBatchSize"], variant.desired_count)
                if used[kind] + more > self.world.quotas.endpoint_limit(kind):
                    return True
        return False

    def _rolled_back(self, endpoint: Endpoint, deployment: Deployment) -> None:
        """InService, the old configuration, a reason: what a failed update looks like when it is over.

        Source: aws-controllers-k8s/sagemaker-controller, pkg/resource/endpoint/hooks.go.
        """
        endpoint.deployment, endpoint.failure_reason = None, deployment.reason
        endpoint.last_deployment_config = deployment.request or None
        broken = deployment.ending is Ending.UPDATE_ROLLBACK_FAILED
        self._enter(endpoint, "UpdateRollbackFailed" if broken else "InService")

    def _finish(self, endpoint: Endpoint, deployment: Deployment) -> None:
        for variant in (*deployment.variants.values(), *deployment.shadows.values()):
            variant.count, variant.weight = variant.desired_count, variant.desired_weight
        endpoint.variants, endpoint.shadows = deployment.variants, deployment.shadows
        endpoint.config_name, endpoint.deployment, endpoint.failure_reason = deployment.config_name, None, None
        endpoint.last_deployment_config = deployment.request or None
        if deployment.ending is Ending.SYSTEM_UPDATING:
            self.system_update(endpoint)
            return
        self._enter(endpoint, "InService")

    def note(self, endpoint: Endpoint, since: datetime) -> None:
        """Remember what the endpoint runs from now on: both fleets while a deployment goes on."""
        runs: Counter[str] = Counter()
        for variant in (*endpoint.variants.values(), *endpoint.shadows.values()):
            if variant.instance_type:
                runs[variant.instance_type] += max(variant.count, variant.desired_count)
        if endpoint.deployment:
            runs.update(_green(endpoint.deployment))
        self.ran.setdefault(endpoint.name, []).append((since, dict(runs)))

    def _enter(self, endpoint: Endpoint, status: str) -> None:
        endpoint.status, endpoint.modified = status, self.world.clock.now
        self.note(endpoint, endpoint.modified)
        events.endpoint_changed(self.world, endpoint)
        if endpoint.deployment:
            events.deployment_changed(self.world, endpoint)


_ENDS_IN_CREATION = frozenset(
    {Ending.CAPACITY, Ending.HEALTH_CHECK, Ending.INTERNAL, Ending.UPDATE_ROLLBACK_FAILED, Ending.FAILED}
)


def _creation(ending: Ending | None, lasts: timedelta, limit: timedelta, timing: Timing) -> timedelta:
    match ending:
        case Ending.CAPACITY:
            return timing.capacity_gives_up
        case Ending.HEALTH_CHECK:
            return timing.health_check_gives_up
        case Ending.TIMEOUT:
            return limit + timedelta(minutes=1)
        case _:
            return lasts


def _green(deployment: Deployment) -> Counter[str]:
    wanted = _fleet(deployment)
    if rolling := deployment.request.get("RollingUpdatePolicy"):
        return Counter({kind: checks.size(rolling["MaximumBatchSize"], count) for kind, count in wanted.items()})
    return wanted


def green_fleet(deployment: Deployment) -> Counter[str]:
    """Instances by type for which the deployment needs quota: the whole fleet, or one batch when rolling.

    A rolling deployment that rolls back at once (RollingUpdatePolicy.RollbackMaximumBatchSize absent, or the whole
    capacity) needs the whole fleet as well.
    """
    rolling = deployment.request.get("RollingUpdatePolicy")
    if rolling and not _returns_in_batches(rolling, deployment):
        return _fleet(deployment)
    return _green(deployment)


def _returns_in_batches(rolling: Mapping[str, Any], deployment: Deployment) -> bool:
    back: Mapping[str, Any] = rolling.get("RollbackMaximumBatchSize") or {}
    counts = [variant.desired_count for variant in deployment.variants.values()]
    return bool(back) and all(checks.size(back, count) < count for count in counts)


def _fleet(deployment: Deployment) -> Counter[str]:
    wanted: Counter[str] = Counter()
    for variant in (*deployment.variants.values(), *deployment.shadows.values()):
        if variant.instance_type:
            wanted[variant.instance_type] += variant.desired_count
    return wanted


def _dues(endpoint: Endpoint, now: datetime) -> Iterator[datetime]:
    if deployment := endpoint.deployment:
        yield deployment.leaves
        if deployment.deadline and deployment.reason is None:
            yield deployment.deadline
        if deployment.serving and deployment.alarms:
            yield next_minute(now)
    elif endpoint.scaling:
        yield endpoint.scaling.ends
    elif endpoint.until:
        yield endpoint.until
