"""DescribeEndpoint's answer. It never shows an instance type of a live variant: only the configuration does, and
PendingDeploymentSummary (API reference of DescribeEndpoint, ProductionVariantSummary)."""

from typing import TYPE_CHECKING, Any

from sandbox.sagemaker.nouns import Endpoint, Params, Variant

if TYPE_CHECKING:
    from sandbox.sagemaker.fleet import Fleet

_FROM_CONFIG = ("AsyncInferenceConfig", "ExplainerConfig", "MetricsConfig")


def described(fleet: "Fleet", endpoint: Endpoint) -> Params:
    """The answer for one endpoint."""
    answer: Params = {
        "EndpointName": endpoint.name,
        "EndpointArn": endpoint.arn,
        "EndpointConfigName": endpoint.config_name,
        "EndpointStatus": endpoint.status,
        "CreationTime": endpoint.created,
        "LastModifiedTime": endpoint.modified,
        "ProductionVariants": [_summary(variant) for variant in endpoint.variants.values()],
    }
    if endpoint.shadows:
        answer["ShadowProductionVariants"] = [_summary(variant) for variant in endpoint.shadows.values()]
    if endpoint.failure_reason:
        answer["FailureReason"] = endpoint.failure_reason
    if endpoint.last_deployment_config:
        answer["LastDeploymentConfig"] = endpoint.last_deployment_config
    config = fleet.configs.get(endpoint.config_name)
    if config:
        answer |= {key: config.request[key] for key in _FROM_CONFIG if config.request.get(key)}
        if capture := config.request.get("DataCaptureConfig"):
            answer["DataCaptureConfig"] = _capture(capture, endpoint)
    if endpoint.deployment:
        answer["PendingDeploymentSummary"] = _pending(endpoint)
    return answer


def _summary(variant: Variant) -> Params:
    row: Params = {"VariantName": variant.name, "DeployedImages": variant.images}
    row |= {"CurrentWeight": variant.weight, "DesiredWeight": variant.desired_weight}
    if variant.serverless:
        row |= {"CurrentServerlessConfig": variant.serverless, "DesiredServerlessConfig": variant.serverless}
    else:
        row |= {"CurrentInstanceCount": variant.count, "DesiredInstanceCount": variant.desired_count}
    if variant.spec.get("InstancePools"):
        row["InstancePools"] = [
            {
                "InstanceType": pool["InstanceType"],
                "CurrentInstanceCount": variant.count if pool["InstanceType"] == variant.instance_type else 0,
            }
            for pool in variant.spec["InstancePools"]
        ]
    for key in ("ManagedInstanceScaling", "RoutingConfig", "AcceleratorPartitionLayouts", "CapacityReservationConfig"):
        if variant.spec.get(key):
            row[key] = variant.spec[key]
    if variant.desired_count != variant.count:
        direction = "out" if variant.desired_count > variant.count else "in"
        text = f"Scaling {direction} desired instance count to {variant.desired_count}."
        row["VariantStatus"] = [{"Status": "Updating", "StatusMessage": text}]
    return row


def _capture(capture: Params, endpoint: Endpoint) -> Params:
    return {
        "EnableCapture": bool(capture.get("EnableCapture")),
        "CaptureStatus": "Started" if endpoint.capture_started and capture.get("EnableCapture") else "Stopped",
        "CurrentSamplingPercentage": capture["InitialSamplingPercentage"],
        "DestinationS3Uri": capture["DestinationS3Uri"],
        "KmsKeyId": capture.get("KmsKeyId", ""),
    }


def _pending(endpoint: Endpoint) -> dict[str, Any]:
    deployment = endpoint.deployment
    assert deployment is not None
    phase = deployment.phase
    status: dict[str, Any] = {
        "Status": "Deleting" if phase.name == "RollingBack" else phase.name,
        "StartTime": deployment.entered,
    }
    if phase.message:
        status["StatusMessage"] = phase.message
    made: dict[str, Any] = {"EndpointConfigName": deployment.config_name, "StartTime": deployment.started}
    for key, variants in (
        ("ProductionVariants", deployment.variants),
        ("ShadowProductionVariants", deployment.shadows),
    ):
        if variants:
            made[key] = [
                {key: value for key, value in _summary(variant).items() if key != "CapacityReservationConfig"}
                | ({"InstanceType": variant.instance_type} if variant.spec.get("InstanceType") else {})
                | {"VariantStatus": [status]}
                for variant in variants.values()
            ]
    return made
