"""A blueprint as a CloudFormation template: endpoint, autoscaling, alarms, guardrail and tags. Text, no library."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rightsizer.advice.blueprint import BACKLOG, BAKE_S, ERRORS, VARIANT, Blueprint

ENDPOINT_NAME = {"Ref": "EndpointName"}


def cloudformation(made: Blueprint) -> str:
    """The template as YAML. Parameters are what advice cannot know, such as the name of the model."""
    document = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"Endpoint advised by rightsizer. {made.comment}"[:1024],
        "Parameters": dict(_parameters(made)),
        "Resources": dict(_resources(made)),
        "Outputs": {"Endpoint": {"Value": {"Fn::GetAtt": ["Endpoint", "EndpointName"]}}},
    }
    return "\n".join(_yaml(document, 0)) + "\n"


def _parameters(made: Blueprint) -> Iterator[tuple[str, Any]]:
    yield "EndpointName", {"Type": "String", "Default": "advised"}
    yield "ModelName", {"Type": "String", "Description": "Name of the SageMaker model, created before."}
    if made.is_asynchronous:
        yield "OutputPath", {"Type": "String", "Description": "s3://bucket/prefix for answers."}
    elif not made.is_serverless:
        rate = made.requests_per_minute
        default = {} if rate is None else {"Default": round(rate, 1)}
        text = "Requests a minute for one instance; measure it, 70 % of what an instance bears."
        yield "RequestsPerInstance", {"Type": "Number", **default, "Description": text}


def _resources(made: Blueprint) -> Iterator[tuple[str, Any]]:
    yield "Configuration", _resource("AWS::SageMaker::EndpointConfig", _configuration(made))
    yield "Endpoint", _resource("AWS::SageMaker::Endpoint", _endpoint(made))
    yield from _alarms(made)
    if not made.is_serverless:
        yield from _scaling(made)


def _resource(kind: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def _configuration(made: Blueprint) -> dict[str, Any]:
    variant: dict[str, Any] = {"VariantName": VARIANT, "ModelName": {"Ref": "ModelName"}, "InitialVariantWeight": 1}
    if made.is_serverless:
        variant["ServerlessConfig"] = {"MemorySizeInMB": made.memory_mb, "MaxConcurrency": 10}
    else:
        variant |= {"InstanceType": made.instance_type, "InitialInstanceCount": made.count}
    found: dict[str, Any] = {"ProductionVariants": [variant]}
    if made.is_asynchronous:
        found["AsyncInferenceConfig"] = {"OutputConfig": {"S3OutputPath": {"Ref": "OutputPath"}}}
    return found


def _endpoint(made: Blueprint) -> dict[str, Any]:
    routing: dict[str, Any] = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": BAKE_S}
    if made.has_canary:
        routing = {**routing, "Type": "CANARY", "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1}}
    names = [name for name, _ in _alarms(made)]
    found: dict[str, Any] = {
        "EndpointName": ENDPOINT_NAME,
        "EndpointConfigName": {"Fn::GetAtt": ["Configuration", "EndpointConfigName"]},
        "DeploymentConfig": {
            "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing, "TerminationWaitInSeconds": BAKE_S},
            "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": {"Ref": name}} for name in names]},
        },
        "Tags": [{"Key": key, "Value": value} for key, value in made.tags.items()],
    }
    return found if made.is_serverless else {**found, "RetainAllVariantProperties": True}


def _alarms(made: Blueprint) -> Iterator[tuple[str, Any]]:
    """The alarms that roll an update back."""
    yield "ErrorAlarm", _alarm("Invocation5XXErrors", {"Statistic": "Sum"}, ERRORS)
    if made.p95_ms is not None:
        yield "LatencyAlarm", _alarm("ModelLatency", {"ExtendedStatistic": "p95"}, round(made.p95_ms * 1000))


def _alarm(metric: str, statistic: Mapping[str, str], threshold: int) -> dict[str, Any]:
    """An alarm of the endpoint's variant; latency is in microseconds."""
    variant = {"Name": "VariantName", "Value": VARIANT}
    return _resource(
        "AWS::CloudWatch::Alarm",
        {
            "Namespace": "AWS/SageMaker",
            "MetricName": metric,
            "Dimensions": [{"Name": "EndpointName", "Value": ENDPOINT_NAME}, variant],
            **statistic,
            "Period": 60,
            "EvaluationPeriods": 3,
            "DatapointsToAlarm": 2,
            "Threshold": threshold,
            "ComparisonOperator": "GreaterThanThreshold",
            "TreatMissingData": "notBreaching",
        },
    )


def _scaling(made: Blueprint) -> Iterator[tuple[str, Any]]:
    target = {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "ResourceId": {"Fn::Sub": f"endpoint/${{Endpoint.EndpointName}}/variant/{VARIANT}"},
        "MinCapacity": made.least,
        "MaxCapacity": made.most,
    }
    yield "ScalingTarget", _resource("AWS::ApplicationAutoScaling::ScalableTarget", target)
    followed: dict[str, Any] = {
        "TargetValue": {"Ref": "RequestsPerInstance"},
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
    }
    if made.is_asynchronous:
        followed = {
            "TargetValue": BACKLOG,
            "CustomizedMetricSpecification": _backlog("ApproximateBacklogSizePerInstance"),
        }
    yield (
        "ScalingPolicy",
        _policy("TargetTrackingScaling", {**followed, "ScaleInCooldown": 600, "ScaleOutCooldown": 60}),
    )
    if made.is_asynchronous:
        yield from _wake()


def _policy(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    name = f"{kind}PolicyConfiguration"
    properties = {
        "PolicyName": {"Fn::Sub": f"${{EndpointName}}-{kind}"},
        "PolicyType": kind,
        "ScalingTargetId": {"Ref": "ScalingTarget"},
        name: settings,
    }
    return _resource("AWS::ApplicationAutoScaling::ScalingPolicy", properties)


def _backlog(metric: str) -> dict[str, Any]:
    dimensions = [{"Name": "EndpointName", "Value": ENDPOINT_NAME}]
    return {"Namespace": "AWS/SageMaker", "MetricName": metric, "Dimensions": dimensions, "Statistic": "Average"}


def _wake() -> Iterator[tuple[str, Any]]:
    """The second policy, which starts the first instance (rule H4)."""
    steps = [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}]
    settings = {"AdjustmentType": "ChangeInCapacity", "Cooldown": BAKE_S, "StepAdjustments": steps}
    yield "WakePolicy", _policy("StepScaling", {**settings, "MetricAggregationType": "Average"})
    alarm = {
        **_backlog("HasBacklogWithoutCapacity"),
        "Period": 60,
        "EvaluationPeriods": 2,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "missing",
        "AlarmActions": [{"Ref": "WakePolicy"}],
    }
    yield "WakeAlarm", _resource("AWS::CloudWatch::Alarm", alarm)


def _yaml(value: Any, depth: int) -> Iterator[str]:
    """Mappings and sequences as block YAML; every scalar as JSON, which YAML reads as the same value."""
    pad = "  " * depth
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if _is_short(inner):
                yield f"{pad}{key}: {_flow(inner)}"
            else:
                yield f"{pad}{key}:"
                yield from _yaml(inner, depth + 1)
    else:
        for inner in value:
            lines = [f"{pad}  {_flow(inner)}"] if _is_short(inner) else list(_yaml(inner, depth + 1))
            yield f"{pad}- {lines[0].lstrip()}"
            yield from lines[1:]


def _is_short(value: Any) -> bool:
    """Whether the value stands on one line: a scalar, or a reference to another resource."""
    if isinstance(value, Mapping):
        return len(value) == 1 and next(iter(value)) in ("Ref", "Fn::Sub", "Fn::GetAtt")
    return isinstance(value, str) or not isinstance(value, Sequence)


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        ((key, inner),) = value.items()
        return f"{{{json.dumps(key)}: {json.dumps(inner)}}}" if key.startswith("Fn::") else f"{{{key}: {inner}}}"
    return json.dumps(value, ensure_ascii=False)
