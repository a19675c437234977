"""A blueprint as a CloudFormation template: endpoint, autoscaling, alarms, guardrail and tags. Text, no library."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rightsizer.advice.blueprint import BACKLOG, BAKE_S, ERRORS, NO_MEMORY, NO_TYPE, VARIANT, Blueprint

ENDPOINT_NAME = {"Ref": "EndpointName"}


def cloudformation(blueprint: Blueprint) -> str:
    """The template as YAML. Parameters are what advice cannot know, such as the name of the model."""
    document = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"Endpoint advised by rightsizer. {blueprint.comment}"[:1024],
        "Parameters": dict(_parameters(blueprint)),
        "Resources": dict(_resources(blueprint)),
        "Outputs": {
            "Endpoint": {"Value": ENDPOINT_NAME if blueprint.hours else {"Fn::GetAtt": ["Endpoint", "EndpointName"]}}
        },
    }
    return "\n".join(_yaml(document, 0)) + "\n"


def _parameters(blueprint: Blueprint) -> Iterator[tuple[str, Any]]:
    small: dict[str, str] = (
        {"AllowedPattern": "[a-z0-9](-*[a-z0-9]){0,62}"} if blueprint.hours else {}
    )  # ARNs have small letters
    yield "EndpointName", {"Type": "String", "Default": "advised", **small}
    yield "ModelName", {"Type": "String", "Description": "Name of the SageMaker model, created before."}
    if blueprint.is_serverless and not blueprint.memory_mb:
        yield "MemorySizeInMB", {"Type": "Number", "Description": NO_MEMORY}
    elif not blueprint.is_serverless and not blueprint.instance_type:
        yield "InstanceType", {"Type": "String", "Description": NO_TYPE}
    if blueprint.hours:
        yield (
            "TimeZone",
            {"Type": "String", "Default": "UTC", "Description": "Of the hours below, such as Europe/Berlin."},
        )
        for name, default in zip(("Start", "Stop"), blueprint.hours, strict=True):
            yield (
                f"{name}s",
                {"Type": "String", "Default": default, "Description": f"When the endpoint {name.lower()}s."},
            )
    elif blueprint.is_asynchronous:
        yield "OutputPath", {"Type": "String", "Description": "s3://bucket/prefix for answers."}
    elif not blueprint.is_serverless:
        rate = blueprint.requests_per_minute
        known = {} if rate is None else {"Default": round(rate, 1)}
        text = "Requests a minute for one instance; measure it, 70 % of what an instance bears."
        yield "RequestsPerInstance", {"Type": "Number", **known, "Description": text}


def _resources(blueprint: Blueprint) -> Iterator[tuple[str, Any]]:
    yield "Configuration", _resource("AWS::SageMaker::EndpointConfig", _configuration(blueprint))
    if blueprint.hours:
        yield from _schedule(blueprint)
        return
    yield "Endpoint", _resource("AWS::SageMaker::Endpoint", _endpoint(blueprint))
    yield from _alarms(blueprint)
    if not blueprint.is_serverless:
        yield from _scaling(blueprint)


def _resource(kind: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def _configuration(blueprint: Blueprint) -> dict[str, Any]:
    variant: dict[str, Any] = {"VariantName": VARIANT, "ModelName": {"Ref": "ModelName"}, "InitialVariantWeight": 1}
    if blueprint.is_serverless:
        memory = blueprint.memory_mb or {"Ref": "MemorySizeInMB"}
        variant["ServerlessConfig"] = {"MemorySizeInMB": memory, "MaxConcurrency": 10}
    else:
        kind = blueprint.instance_type or {"Ref": "InstanceType"}
        variant |= {"InstanceType": kind, "InitialInstanceCount": blueprint.count}
    found: dict[str, Any] = {"ProductionVariants": [variant]}
    if blueprint.is_asynchronous:
        found["AsyncInferenceConfig"] = {"OutputConfig": {"S3OutputPath": {"Ref": "OutputPath"}}}
    return found


def _endpoint(blueprint: Blueprint) -> dict[str, Any]:
    routing: dict[str, Any] = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": BAKE_S}
    if blueprint.has_canary:
        routing = {**routing, "Type": "CANARY", "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1}}
    names = [name for name, _ in _alarms(blueprint)]
    found: dict[str, Any] = {
        "EndpointName": ENDPOINT_NAME,
        "EndpointConfigName": {"Fn::GetAtt": ["Configuration", "EndpointConfigName"]},
        "DeploymentConfig": {
            "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing, "TerminationWaitInSeconds": BAKE_S},
            "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": {"Ref": name}} for name in names]},
        },
        "Tags": [{"Key": key, "Value": value} for key, value in blueprint.tags.items()],
    }
    return found if blueprint.is_serverless else {**found, "RetainAllVariantProperties": True}


def _schedule(blueprint: Blueprint) -> Iterator[tuple[str, Any]]:
    """A role and two schedules that create and delete the endpoint (rule P7): it is no resource, so nothing drifts."""
    name, config = "${EndpointName}", "${Configuration.EndpointConfigName}"
    arns = [
        {"Fn::Sub": f"arn:${{AWS::Partition}}:sagemaker:${{AWS::Region}}:${{AWS::AccountId}}:{kind}"}
        for kind in (f"endpoint/{name}", "endpoint-config/*")
    ]
    allowed = [
        {"Effect": "Allow", "Action": ["sagemaker:CreateEndpoint", "sagemaker:AddTags"], "Resource": arns},
        {"Effect": "Allow", "Action": "sagemaker:DeleteEndpoint", "Resource": arns[:1]},
    ]
    trust = {"Effect": "Allow", "Principal": {"Service": "scheduler.amazonaws.com"}, "Action": "sts:AssumeRole"}
    version: dict[str, Any] = {"Version": "2012-10-17"}
    yield (
        "ScheduleRole",
        _resource(
            "AWS::IAM::Role",
            {
                "AssumeRolePolicyDocument": {**version, "Statement": [trust]},
                "Policies": [{"PolicyName": "hours", "PolicyDocument": {**version, "Statement": allowed}}],
            },
        ),
    )
    tags = [{"Key": key, "Value": value} for key, value in blueprint.tags.items()]
    start = json.dumps({"EndpointName": name, "EndpointConfigName": config, "Tags": tags})
    yield "StartSchedule", _resource("AWS::Scheduler::Schedule", _call("Starts", "createEndpoint", start))
    stop = json.dumps({"EndpointName": name})
    yield "StopSchedule", _resource("AWS::Scheduler::Schedule", _call("Stops", "deleteEndpoint", stop))


def _call(when: str, operation: str, given: str) -> dict[str, Any]:
    """A schedule that calls one operation of SageMaker."""
    target = {
        "Arn": {"Fn::Sub": f"arn:${{AWS::Partition}}:scheduler:::aws-sdk:sagemaker:{operation}"},
        "RoleArn": {"Fn::GetAtt": ["ScheduleRole", "Arn"]},
        "Input": {"Fn::Sub": given},
    }
    return {
        "ScheduleExpression": {"Ref": when},
        "ScheduleExpressionTimezone": {"Ref": "TimeZone"},
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": target,
    }


def _alarms(blueprint: Blueprint) -> Iterator[tuple[str, Any]]:
    """The alarms that roll an update back."""
    yield "ErrorAlarm", _alarm("Invocation5XXErrors", {"Statistic": "Sum"}, ERRORS)
    if blueprint.p95_ms is not None:
        yield "LatencyAlarm", _alarm("ModelLatency", {"ExtendedStatistic": "p95"}, round(blueprint.p95_ms * 1000))


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


def _scaling(blueprint: Blueprint) -> Iterator[tuple[str, Any]]:
    target = {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "ResourceId": {"Fn::Sub": f"endpoint/${{Endpoint.EndpointName}}/variant/{VARIANT}"},
        "MinCapacity": blueprint.least,
        "MaxCapacity": blueprint.most,
    }
    yield "ScalingTarget", _resource("AWS::ApplicationAutoScaling::ScalableTarget", target)
    followed: dict[str, Any] = {
        "TargetValue": {"Ref": "RequestsPerInstance"},
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
    }
    if blueprint.is_asynchronous:
        followed = {
            "TargetValue": BACKLOG,
            "CustomizedMetricSpecification": _backlog("ApproximateBacklogSizePerInstance"),
        }
    yield (
        "ScalingPolicy",
        _policy("TargetTrackingScaling", {**followed, "ScaleInCooldown": 600, "ScaleOutCooldown": 60}),
    )
    if blueprint.is_asynchronous:
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
