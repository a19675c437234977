"""A blueprint as Terraform: endpoint, autoscaling, alarms, guardrail and tags. Text, no library."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rightsizer.advice.blueprint import BACKLOG, BAKE_S, ERRORS, NO_MEMORY, NO_TYPE, VARIANT, Blueprint


class Reference(str):
    """An expression of Terraform, written as it is."""

    __slots__ = ()


class ArgumentMap(dict[str, Any]):
    """A map that is the value of an argument, and no block."""


type Arguments = Mapping[str, Any]
"""Arguments by name. A mapping is a nested block, and a list of mappings is the block several times."""

ENDPOINT_NAME = Reference("var.endpoint_name")


def terraform(blueprint: Blueprint) -> str:
    """The configuration in HCL, as ``terraform fmt`` would write it."""
    blocks = [*_variables(blueprint), *_resources(blueprint)]
    text = "\n\n".join("\n".join([f"{head} {{", *_body(body, 1), "}"]) for head, body in blocks)
    return f"# Endpoint advised by rightsizer. {blueprint.comment}\n\n{text}\n"


def _variables(blueprint: Blueprint) -> Iterator[tuple[str, Arguments]]:
    text = Reference("string")
    yield 'variable "endpoint_name"', {"type": text, "default": "advised"}
    yield 'variable "model_name"', {"type": text, "description": "Name of the SageMaker model, created before."}
    if blueprint.is_serverless and not blueprint.memory_mb:
        yield 'variable "memory_size_in_mb"', {"type": Reference("number"), "description": NO_MEMORY}
    elif not blueprint.is_serverless and not blueprint.instance_type:
        yield 'variable "instance_type"', {"type": text, "description": NO_TYPE}
    if blueprint.hours:
        said = "Of the hours below, such as Europe/Berlin."
        yield 'variable "time_zone"', {"type": text, "default": "UTC", "description": said}
        for name, default in zip(("start", "stop"), blueprint.hours, strict=True):
            said = f"When the endpoint {name}s."
            yield f'variable "{name}s"', {"type": text, "default": default, "description": said}
    elif blueprint.is_asynchronous:
        yield 'variable "output_path"', {"type": text, "description": "s3://bucket/prefix for answers."}
    elif not blueprint.is_serverless:
        said = "Requests a minute for one instance; measure it, 70 % of what an instance bears."
        rate = blueprint.requests_per_minute
        known = {} if rate is None else {"default": round(rate, 1)}
        yield 'variable "requests_per_instance"', {"type": Reference("number"), "description": said, **known}


def _resources(blueprint: Blueprint) -> Iterator[tuple[str, Arguments]]:
    yield 'resource "aws_sagemaker_endpoint_configuration" "advised"', _configuration(blueprint)
    if blueprint.hours:
        yield from _schedule(blueprint)
        return
    yield 'resource "aws_sagemaker_endpoint" "advised"', _endpoint(blueprint)
    for name, alarm in _alarms(blueprint):
        yield f'resource "aws_cloudwatch_metric_alarm" "{name}"', alarm
    if not blueprint.is_serverless:
        yield from _scaling(blueprint)


def _configuration(blueprint: Blueprint) -> Arguments:
    variant: dict[str, Any] = {"variant_name": VARIANT, "model_name": Reference("var.model_name")}
    if blueprint.is_serverless:
        memory = blueprint.memory_mb or Reference("var.memory_size_in_mb")
        variant["serverless_config"] = {"memory_size_in_mb": memory, "max_concurrency": 10}
    else:
        kind = blueprint.instance_type or Reference("var.instance_type")
        variant |= {"instance_type": kind, "initial_instance_count": blueprint.count}
    found: dict[str, Any] = {"name_prefix": Reference('"${var.endpoint_name}-"'), "production_variants": variant}
    if blueprint.is_asynchronous:
        found["async_inference_config"] = {"output_config": {"s3_output_path": Reference("var.output_path")}}
    return {**found, "lifecycle": {"create_before_destroy": True}}


def _endpoint(blueprint: Blueprint) -> Arguments:
    routing: dict[str, Any] = {"type": "ALL_AT_ONCE", "wait_interval_in_seconds": BAKE_S}
    if blueprint.has_canary:
        routing = {**routing, "type": "CANARY", "canary_size": {"type": "INSTANCE_COUNT", "value": 1}}
    alarms = [
        {"alarm_name": Reference(f"aws_cloudwatch_metric_alarm.{name}.alarm_name")} for name, _ in _alarms(blueprint)
    ]
    return {
        "name": ENDPOINT_NAME,
        "endpoint_config_name": Reference("aws_sagemaker_endpoint_configuration.advised.name"),
        "tags": ArgumentMap(blueprint.tags),
        "deployment_config": {
            "blue_green_update_policy": {
                "termination_wait_in_seconds": BAKE_S,
                "traffic_routing_configuration": routing,
            },
            "auto_rollback_configuration": {"alarms": alarms},
        },
    }


def _schedule(blueprint: Blueprint) -> Iterator[tuple[str, Arguments]]:
    """A role and two schedules that create and delete the endpoint (rule P7): it is no resource, so nothing drifts."""
    name, config = "${var.endpoint_name}", "${aws_sagemaker_endpoint_configuration.advised.name}"
    version: dict[str, Any] = {"Version": "2012-10-17"}
    trust = {"Effect": "Allow", "Principal": {"Service": "scheduler.amazonaws.com"}, "Action": "sts:AssumeRole"}
    arns = ["arn:*:sagemaker:*:*:endpoint/${lower(var.endpoint_name)}", "arn:*:sagemaker:*:*:endpoint-config/*"]
    allowed = [
        {"Effect": "Allow", "Action": ["sagemaker:CreateEndpoint", "sagemaker:AddTags"], "Resource": arns},
        {"Effect": "Allow", "Action": "sagemaker:DeleteEndpoint", "Resource": arns[:1]},
    ]
    role = {"name_prefix": "advised-hours-", "assume_role_policy": json.dumps({**version, "Statement": [trust]})}
    yield 'resource "aws_iam_role" "hours"', role
    policy = {"role": Reference("aws_iam_role.hours.id"), "policy": json.dumps({**version, "Statement": allowed})}
    yield 'resource "aws_iam_role_policy" "hours"', policy
    tags = [{"Key": key, "Value": value} for key, value in blueprint.tags.items()]
    start = {"EndpointName": name, "EndpointConfigName": config, "Tags": tags}
    yield 'resource "aws_scheduler_schedule" "start"', _call("starts", "createEndpoint", start)
    yield 'resource "aws_scheduler_schedule" "stop"', _call("stops", "deleteEndpoint", {"EndpointName": name})


def _call(when: str, operation: str, given: Mapping[str, Any]) -> Arguments:
    """A schedule that calls one operation of SageMaker."""
    target = {
        "arn": f"arn:aws:scheduler:::aws-sdk:sagemaker:{operation}",
        "role_arn": Reference("aws_iam_role.hours.arn"),
        "input": json.dumps(given),
    }
    return {
        "schedule_expression": Reference(f"var.{when}"),
        "schedule_expression_timezone": Reference("var.time_zone"),
        "flexible_time_window": {"mode": "OFF"},
        "target": target,
    }


def _alarms(blueprint: Blueprint) -> Iterator[tuple[str, Arguments]]:
    """The alarms that roll an update back."""
    yield "errors", _alarm("errors", "Invocation5XXErrors", {"statistic": "Sum"}, ERRORS)
    if blueprint.p95_ms is not None:
        yield (
            "latency",
            _alarm("latency", "ModelLatency", {"extended_statistic": "p95"}, round(blueprint.p95_ms * 1000)),
        )


def _alarm(name: str, metric: str, statistic: Mapping[str, str], threshold: int) -> Arguments:
    """An alarm of the endpoint's variant; latency is in microseconds."""
    return {
        "alarm_name": Reference(f'"${{var.endpoint_name}}-{name}"'),
        "namespace": "AWS/SageMaker",
        "metric_name": metric,
        "dimensions": ArgumentMap(EndpointName=ENDPOINT_NAME, VariantName=VARIANT),
        **statistic,
        "period": 60,
        "evaluation_periods": 3,
        "datapoints_to_alarm": 2,
        "threshold": threshold,
        "comparison_operator": "GreaterThanThreshold",
        "treat_missing_data": "notBreaching",
    }


def _scaling(blueprint: Blueprint) -> Iterator[tuple[str, Arguments]]:
    resource = Reference(f'"endpoint/${{aws_sagemaker_endpoint.advised.name}}/variant/{VARIANT}"')
    yield (
        'resource "aws_appautoscaling_target" "advised"',
        {
            "service_namespace": "sagemaker",
            "scalable_dimension": "sagemaker:variant:DesiredInstanceCount",
            "resource_id": resource,
            "min_capacity": blueprint.least,
            "max_capacity": blueprint.most,
        },
    )
    metric = {"predefined_metric_type": "SageMakerVariantInvocationsPerInstance"}
    followed: dict[str, Any] = {
        "target_value": Reference("var.requests_per_instance"),
        "predefined_metric_specification": metric,
    }
    if blueprint.is_asynchronous:
        backlog = _backlog(
            "ApproximateBacklogSizePerInstance", {"dimensions": {"name": "EndpointName", "value": ENDPOINT_NAME}}
        )
        followed = {"target_value": BACKLOG, "customized_metric_specification": backlog}
    settings = {"scale_in_cooldown": 600, "scale_out_cooldown": 60, **followed}
    yield _policy("load", "TargetTrackingScaling", {"target_tracking_scaling_policy_configuration": settings})
    if blueprint.is_asynchronous:
        yield from _wake()


def _policy(name: str, kind: str, settings: Arguments) -> tuple[str, Arguments]:
    target = "aws_appautoscaling_target.advised"
    return f'resource "aws_appautoscaling_policy" "{name}"', {
        "name": Reference(f'"${{var.endpoint_name}}-{name}"'),
        "policy_type": kind,
        "service_namespace": Reference(f"{target}.service_namespace"),
        "scalable_dimension": Reference(f"{target}.scalable_dimension"),
        "resource_id": Reference(f"{target}.resource_id"),
        **settings,
    }


def _backlog(metric: str, dimensions: Arguments) -> dict[str, Any]:
    return {"namespace": "AWS/SageMaker", "metric_name": metric, "statistic": "Average", **dimensions}


def _wake() -> Iterator[tuple[str, Arguments]]:
    """The second policy, which starts the first instance (rule H4)."""
    step = {"metric_interval_lower_bound": 0, "scaling_adjustment": 1}
    settings = {
        "adjustment_type": "ChangeInCapacity",
        "metric_aggregation_type": "Average",
        "cooldown": BAKE_S,
        "step_adjustment": step,
    }
    yield _policy("wake", "StepScaling", {"step_scaling_policy_configuration": settings})
    yield (
        'resource "aws_cloudwatch_metric_alarm" "wake"',
        {
            "alarm_name": Reference('"${var.endpoint_name}-wake"'),
            **_backlog("HasBacklogWithoutCapacity", {"dimensions": ArgumentMap(EndpointName=ENDPOINT_NAME)}),
            "period": 60,
            "evaluation_periods": 2,
            "threshold": 1,
            "comparison_operator": "GreaterThanOrEqualToThreshold",
            "treat_missing_data": "missing",
            "alarm_actions": Reference("[aws_appautoscaling_policy.wake.arn]"),
        },
    )


def _body(block: Arguments, depth: int) -> Iterator[str]:
    """Arguments first, with their equal signs below each other, then the nested blocks."""
    pad = "  " * depth
    arguments = {name: value for name, value in block.items() if not _is_block(value)}
    yield from _aligned(arguments, depth)
    first = not arguments
    for name, value in block.items():
        if not _is_block(value):
            continue
        for each in value if isinstance(value, list) else [value]:
            yield from [] if first else [""]
            first = False
            yield f"{pad}{name} {{"
            yield from _body(each, depth + 1)
            yield f"{pad}}}"


def _aligned(arguments: Arguments, depth: int) -> Iterator[str]:
    """Arguments as ``terraform fmt`` aligns them: a map of several lines begins a new column."""
    pad, column = "  " * depth, 0
    names = list(arguments)
    for number, name in enumerate(names):
        value = arguments[name]
        if isinstance(value, ArgumentMap):
            column = 0
            yield f"{pad}{name} = {{"
            width = max((len(_key(key)) for key in value), default=0)
            yield from (f"{pad}  {_key(key):<{width}} = {_scalar(each)}" for key, each in value.items())
            yield f"{pad}}}"
            continue
        if not column:
            following = names[number:]
            stop = next(
                (i for i, other in enumerate(following) if isinstance(arguments[other], ArgumentMap)), len(following)
            )
            column = max(len(other) for other in following[:stop])
        yield f"{pad}{name:<{column}} = {_scalar(value)}"


def _is_block(value: Any) -> bool:
    return not isinstance(value, ArgumentMap) and isinstance(value, Mapping | list)


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def _scalar(value: Any) -> str:
    return str(value) if isinstance(value, Reference) else json.dumps(value, ensure_ascii=False)
