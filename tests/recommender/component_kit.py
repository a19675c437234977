"""Inference components as an evaluation reads them, for tests."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from rightsizer.domain.component import Component, ComponentSight, ComponentUsage, UnreadComponent
from rightsizer.domain.endpoint import Endpoint, EndpointKind, Objective, ScalableTarget
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import Spread
from rightsizer.recommender.component_copies import with_components
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.recommend import empty_recommendation
from tests.recommender import kit

NOTHING = Reason(Code.NO_DATAPOINTS, "nothing was read of the endpoint itself")
ALLOWED = {"rightsizer:mode": "propose"}


def sight(name: str = "chat", copies: int = 4, gpus: float = 1.0, **given: Any) -> ComponentSight:
    needs = {"NumberOfAcceleratorDevicesRequired": gpus, "MinMemoryRequiredInMb": 1024} | given.pop("needs", {})
    specification: Mapping[str, Any] = given.pop("specification", {"ComputeResourceRequirements": needs})
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:inference-component/{name}"
    since = kit.NOW - timedelta(days=60)
    made = ComponentSight(name, arn, "e", "InService", since, copies, (specification,), tags=ALLOWED, current=copies)
    return replace(made, **given)


def load(gpu: float = 0.2, concurrency: float | None = 0.4, requests: float = 9000.0, **given: Any) -> ComponentUsage:
    busy = Spread(gpu, gpu, gpu, gpu, gpu)
    made = ComponentUsage(
        14.0, 1.0, requests, 5.0, concurrency, 0.0, 0.3, busy, busy, Spread(0.1, 0.1, 0.1, 0.1, 0.1), None
    )
    return replace(made, **given)


def component(
    name: str = "chat",
    copies: int = 4,
    usage: ComponentUsage | Reason | None = None,
    scaling: ScalableTarget | Reason | None = None,
    **given: Any,
) -> Component:
    return Component(sight(name, copies, **given), scaling, usage if usage is not None else load())


def scaled(name: str, minimum: int, maximum: int, *policies: Mapping[str, Any], **given: Any) -> ScalableTarget:
    resource, dimension = f"inference-component/{name}", "sagemaker:inference-component:DesiredCopyCount"
    return replace(ScalableTarget(resource, dimension, minimum, maximum), policies=policies, **given)


def calls_of_a_copy(
    target: float, metric: str = "SageMakerInferenceComponentInvocationsPerCopy", **more: Any
) -> Mapping[str, Any]:
    """Target tracking on what each copy serves."""
    config = {"TargetValue": target, "PredefinedMetricSpecification": {"PredefinedMetricType": metric}, **more}
    kind = {"PolicyName": "calls", "PolicyType": "TargetTrackingScaling"}
    return {**kind, "TargetTrackingScalingPolicyConfiguration": config}


def endpoint(count: int = 4, least: int | None = 1, consolidates: bool = True, **given: Any) -> Endpoint:
    """Managed instance scaling from `least` instances on; None: none is enabled."""
    made = kit.endpoint("ml.g5.xlarge", count, kind=EndpointKind.INFERENCE_COMPONENTS)
    variant = replace(made.variants[0], least_instances=least, consolidates=consolidates)
    return replace(made, variants=(variant,), objective=Objective(), **given)


def judged(
    components: Sequence[Component | UnreadComponent] | Reason | None, of: Endpoint | None = None, **given: Any
) -> Recommendation:
    """The recommendation of an endpoint of which only its components are known."""
    of = of or endpoint()
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, given.get("history", History()), Policy(), kit.NOW)
    read = components if isinstance(components, Reason | None) else tuple(components)
    return with_components(empty_recommendation(of, inputs, NOTHING), of, read, inputs)
