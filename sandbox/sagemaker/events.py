"""The events that SageMaker sends to EventBridge.

Shapes: developer guide, automating-sagemaker-with-eventbridge: statuses in UPPER_SNAKE, epoch milliseconds, tags as a
map. SageMaker may send an event more than once; the wiring doubles them.
"""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.sagemaker.nouns import Endpoint, Variant
    from sandbox.world import World


def upper_snake(status: str) -> str:
    """``UpdateRollbackFailed`` as ``UPDATE_ROLLBACK_FAILED``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", status).upper()


def millis(moment: datetime) -> int:
    """Epoch milliseconds."""
    return int(moment.timestamp() * 1000)


def endpoint_changed(world: "World", endpoint: "Endpoint") -> None:
    """Send ``SageMaker Endpoint State Change``."""
    variants = [
        {"VariantName": v.name, "DesiredWeight": v.desired_weight, "DesiredInstanceCount": float(v.desired_count)}
        for v in endpoint.variants.values()
    ]
    detail = _common(world, endpoint) | {"ProductionVariants": variants}
    if endpoint.failure_reason:
        detail["FailureReason"] = endpoint.failure_reason
    world.emit("aws.sagemaker", "SageMaker Endpoint State Change", [endpoint.arn], detail)


def deployment_changed(world: "World", endpoint: "Endpoint") -> None:
    """Send ``SageMaker Endpoint Deployment State Change``."""
    deployment = endpoint.deployment
    if deployment is None:
        return
    detail = _common(world, endpoint) | {
        "ProductionVariants": [_live(variant) for variant in endpoint.variants.values()],
        "PendingDeploymentSummary": {
            "EndpointConfigName": deployment.config_name,
            "StartTime": millis(deployment.started),
            "ProductionVariants": [
                _live(variant)
                | {
                    "VariantStatus": [
                        {
                            "Status": "Deleting" if deployment.phase.name == "RollingBack" else deployment.phase.name,
                            "StatusMessage": deployment.phase.message,
                            "StartTime": millis(deployment.entered),
                        }
                    ]
                }
                for variant in deployment.variants.values()
            ],
        },
    }
    world.emit("aws.sagemaker", "SageMaker Endpoint Deployment State Change", [endpoint.arn], detail)


def _common(world: "World", endpoint: "Endpoint") -> dict[str, Any]:
    return {
        "EndpointName": endpoint.name,
        "EndpointArn": endpoint.arn,
        "EndpointConfigName": endpoint.config_name,
        "EndpointStatus": upper_snake(endpoint.status),
        "CreationTime": millis(endpoint.created),
        "LastModifiedTime": millis(endpoint.modified),
        "Tags": dict(world.tags.of(endpoint.arn)),
    }


def _live(variant: "Variant") -> dict[str, Any]:
    return {
        "VariantName": variant.name,
        "CurrentWeight": variant.weight,
        "DesiredWeight": variant.desired_weight,
        "CurrentInstanceCount": variant.count,
        "DesiredInstanceCount": variant.desired_count,
    }
