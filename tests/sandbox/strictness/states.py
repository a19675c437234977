"""For each check that needs the account's state, and each refusal of moto, how the account comes to refuse.

A request that needs nothing of the account but its emptiness is a change of the accepted one. The others are made by a
function, which adds what the request is about.
"""

from sandbox.account import Sandbox
from tests.sandbox.strictness.accepted import KEY, PUT
from tests.sandbox.strictness.situations import (
    BATCH,
    MIG,
    TOKEN,
    VARIANT_NAME,
    WEIGHTS,
    Change,
    Given,
    above_quota,
    all_at_once,
    asked_out,
    burstable,
    busy,
    composites,
    deleted_secret,
    endpoint,
    failed,
    guarded_to_others,
    insights,
    large_update,
    many_tags,
    more_than_quota,
    name,
    new,
    no_pool,
    of_component,
    of_four,
    of_model,
    of_two_variants,
    other_layouts,
    outside_group,
    partitioned,
    promql,
    rolling,
    routing,
    same_config,
    scaled,
    scheduled_often,
    serverless,
    tagged,
    target,
    to_serverless,
    too_many,
    transaction,
    two_variants_rolling,
    update,
    variants,
    weights,
    written_item,
    written_object,
)
from tests.sandbox.strictness.wrong_slack import IMAGE


def asleep(box: Sandbox) -> Change:
    """An update that would keep no instance, to a configuration that has one at least."""
    managed = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 2}
    box.add_endpoint("asleep", inference_components=True, variant_extra={"ManagedInstanceScaling": managed})
    (variant,) = box.world.fleet.endpoint("asleep").variants.values()
    variant.count = variant.desired_count = 0
    request = dict(box.world.fleet.config("asleep-config").request)
    box.client("sagemaker").create_endpoint_config(
        EndpointConfigName="awake",
        ProductionVariants=request["ProductionVariants"],
        ExecutionRoleArn=request["ExecutionRoleArn"],
    )
    return {"EndpointName": "asleep", "EndpointConfigName": "awake", "RetainAllVariantProperties": True}


def watched(box: Sandbox) -> Change:
    """An endpoint that a schedule of Model Monitor watches."""
    found = endpoint(box)
    box.world.fleet.monitors[name("drift")] = found
    return {"EndpointName": found}


def existing_parameter(box: Sandbox) -> Change:
    """A parameter that exists, without leave to write over it."""
    made = f"/{name('parameter')}"
    box.client("ssm").put_parameter(Name=made, Value="{}", Type="String")
    return {"Name": made, "Value": "{}", "Type": "String", "Overwrite": False}


_NO_TABLE: Change = {"TableName": "nowhere"}
_SERVICE: Change = {"ServiceCode": "s3"}
_SCALING: Change = {
    "PolicyName": "p",
    "PolicyType": "TargetTrackingScaling",
    "TargetTrackingScalingPolicyConfiguration": {
        "TargetValue": 1.0,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
    },
}
_SCHEDULED: Change = {"ScheduledActionName": "s", "Schedule": "rate(1 day)", "ScalableTargetAction": {"MinCapacity": 1}}
_OTHER: Change = {"ScalableDimension": "ecs:service:DesiredCount"}
_BOUNDS: Change = {"MinCapacity": 1, "MaxCapacity": 2}

STATES: dict[tuple[str, str], dict[str, Change | Given]] = {
    ("application-autoscaling", "RegisterScalableTarget"): {
        "dimension": target(**_BOUNDS, **_OTHER),
        "resource": {"ResourceId": "endpoint/nobody/variant/v"},
        "kind": target(**_BOUNDS, ScalableDimension="sagemaker:variant:DesiredProvisionedConcurrency"),
        "burstable": target(burstable, **_BOUNDS),
        "first bounds": target(MinCapacity=1),
        "least": target(MinCapacity=0, MaxCapacity=1),
        "turned": target(MinCapacity=2, MaxCapacity=1),
        "tags again": target(scaled, Tags={"k": "v"}),
        "aws tags": target(**_BOUNDS, Tags={"aws:k": "v"}),
    },
    ("application-autoscaling", "DeregisterScalableTarget"): {
        "dimension": target(scaled, **_OTHER),
        "no target": target(),
    },
    ("application-autoscaling", "PutScalingPolicy"): {
        "dimension": target(scaled, **_SCALING, **_OTHER),
        "no target": target(**_SCALING),
        "type": target(scaled, PolicyName="p", PolicyType="PredictiveScaling"),
        "configuration": target(scaled, PolicyName="p", PolicyType="StepScaling"),
        "one metric": target(scaled, **_SCALING),
    },
    ("application-autoscaling", "DeleteScalingPolicy"): {
        "dimension": target(scaled, PolicyName="p", **_OTHER),
        "no target": target(PolicyName="p"),
        "no policy": target(scaled, PolicyName="p"),
    },
    ("application-autoscaling", "PutScheduledAction"): {
        "dimension": target(scaled, **_SCHEDULED, **_OTHER),
        "no target": target(**_SCHEDULED),
        "new": target(scaled, ScheduledActionName="s", Schedule="rate(1 day)"),
        "schedule": target(scaled, **_SCHEDULED | {"Schedule": "every day"}),
        "cron": target(scaled, **_SCHEDULED | {"Schedule": "cron(0 24 ? * MON *)"}),
        "days": target(scaled, **_SCHEDULED | {"Schedule": "cron(0 8 * * MON-FRI *)"}),
        "many": target(scheduled_often, **_SCHEDULED),
    },
    ("application-autoscaling", "DescribeScalableTargets"): {"token": TOKEN},
    ("application-autoscaling", "DescribeScalingPolicies"): {"token": TOKEN},
    ("application-autoscaling", "DescribeScheduledActions"): {"token": TOKEN},
    ("application-autoscaling", "ListTagsForResource"): {"unknown": {}},
    ("autoscaling", "DescribeLifecycleHooks"): {"group": {}},
    ("autoscaling", "DetachInstances"): {"group": {}, "member": outside_group},
    ("autoscaling", "TerminateInstanceInAutoScalingGroup"): {"member": {"InstanceId": "i-none"}},
    ("autoscaling", "UpdateAutoScalingGroup"): {"group": {}, "desired": too_many},
    ("ec2", "DescribeInstances"): {"unknown": {}},
    ("ec2", "DescribeSubnets"): {"unknown": {}},
    ("ec2", "GetSpotPlacementScores"): {"limit": asked_out},
    ("pricing", "GetProducts"): {
        "field": {"Filters": [{"Type": "TERM_MATCH", "Field": "RegionCode", "Value": "eu-west-1"}]},
        "token": TOKEN,
    },
    ("savingsplans", "DescribeSavingsPlans"): {"token": {"nextToken": "bm9uZQ=="}},
    ("savingsplans", "DescribeSavingsPlansOfferingRates"): {"token": {"nextToken": "bm9uZQ=="}},
    ("service-quotas", "ListServiceQuotas"): {"service": _SERVICE, "token": TOKEN},
    ("service-quotas", "ListAWSDefaultServiceQuotas"): {"service": _SERVICE, "token": TOKEN},
    ("cloudwatch", "GetMetricData"): {
        "turned": lambda box: {"StartTime": box.clock.now, "EndTime": box.clock.now, "MetricDataQueries": []},
        "token": TOKEN,
    },
    ("cloudwatch", "ListMetrics"): {"token": TOKEN},
    ("cloudwatch", "DescribeAlarms"): {"token": TOKEN},
    ("cloudwatch", "DescribeAlarmContributors"): {
        "unknown": {"AlarmName": "nobody"},
        "token": lambda box: {"AlarmName": composites(box)["AlarmNames"][0]} | TOKEN,
    },
    ("cloudwatch", "PutMetricAlarm"): {"insights span": insights},
    ("cloudwatch", "DeleteAlarms"): {"composites": composites, "unknown": {"AlarmNames": ["nobody"]}},
    ("cloudwatch", "QueryMetrics"): {
        "range": promql(end="604801"),
        "parse": promql(query="max_over_time({m.x}[60s])"),
        "name": promql(query='max_over_time({"a"="b"}[60s])'),
        "step": promql(step="0"),
    },
    ("dynamodb", "GetItem"): {"key": {"Key": {"pk": {"S": "a"}}}, "table": _NO_TABLE},
    ("dynamodb", "PutItem"): {"key": {"Item": {"pk": {"S": "a"}}}, "condition": written_item, "table": _NO_TABLE},
    ("dynamodb", "Query"): {
        "partition": {
            "KeyConditionExpression": "begins_with(sk, :sk)",
            "ExpressionAttributeValues": {":sk": {"S": "b"}},
        },
        "table": _NO_TABLE,
    },
    ("dynamodb", "UpdateItem"): {
        "size": large_update,
        "of the key": {"UpdateExpression": "SET sk = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}},
        "condition": {"Key": KEY | {"sk": {"S": "none"}}, "ConditionExpression": "attribute_exists(pk)"},
        "table": _NO_TABLE,
    },
    ("dynamodb", "DescribeTable"): {"table": _NO_TABLE},
    ("dynamodb", "DescribeTimeToLive"): {"table": _NO_TABLE},
    ("dynamodb", "DescribeContinuousBackups"): {"table": _NO_TABLE},
    ("dynamodb", "TransactWriteItems"): {
        "condition": transaction,
        "table": {"TransactItems": [{"Put": PUT["Put"] | _NO_TABLE | {"Item": KEY}}]},
    },
    ("resourcegroupstaggingapi", "GetResources"): {
        "token": lambda box: {"ResourceTypeFilters": ["sagemaker:endpoint"], "PaginationToken": "bm9uZQ=="}
    },
    ("cloudformation", "DescribeStacks"): {"unknown": {}},
    ("cloudformation", "DescribeStackResource"): {"unknown": {}},
    ("cloudformation", "ListStackResources"): {"unknown": {}},
    ("lambda", "Invoke"): {"unknown": {}},
    ("lambda", "GetFunctionConfiguration"): {"unknown": {}},
    ("lambda", "GetEventSourceMapping"): {"unknown": {}},
    ("scheduler", "GetSchedule"): {"unknown": {}},
    ("secretsmanager", "GetSecretValue"): {"unknown": {}, "deleted": deleted_secret},
    ("ssm", "GetParameter"): {"unknown": {"Name": "/none"}},
    ("ssm", "PutParameter"): {"exists": existing_parameter},
    ("sns", "Publish"): {"topic": {}},
    ("events", "PutEvents"): {
        "entry": {"Entries": [{"Source": "s", "DetailType": "d"}]},
        "detail": {"Entries": [{"Source": "s", "DetailType": "d", "Detail": "not JSON"}]},
    },
    ("sns", "ListSubscriptionsByTopic"): {"topic": {}},
    ("sqs", "GetQueueAttributes"): {"queue": {}},
    ("sqs", "SendMessage"): {"queue": {}},
    ("slack", "auth.test"): {"token": {"token": "Bearer other"}},
    ("slack", "conversations.info"): {
        "token": {"token": "Bearer other"},
        "scope": {"scopes": frozenset({"chat:write"})},
        "channel": {"channel": "C1"},
    },
    ("slack", "response_url"): {"unknown": {"number": "none"}, "late": {"minutes": 31}, "used": {"used": 5}},
    ("slack", "chat.postMessage"): {
        "token": {"token": "Bearer other"},
        "channel": {"channel": "C1"},
        "file": {"blocks": [IMAGE]},
        "thread": {"thread_ts": "1.1"},
    },
    ("slack", "views.open"): {
        "token": {"token": "Bearer other"},
        "expired": {"pressed": 4},
        "used": {"pressed": 1, "opened": True},
    },
    ("slack", "views.update"): {"token": {"token": "Bearer other"}, "gone": {"view_id": "V9"}},
    ("slack", "users.lookupByEmail"): {
        "token": {"token": "Bearer other"},
        "scope": {"scopes": frozenset({"chat:write"})},
        "unknown": {"email": "nobody@example.com"},
    },
    ("slack", "files.getUploadURLExternal"): {
        "token": {"token": "Bearer other"},
        "scope": {"scopes": frozenset({"chat:write"})},
    },
    ("slack", "files.completeUploadExternal"): {
        "token": {"token": "Bearer other"},
        "scope": {"scopes": frozenset({"chat:write"})},
        "unknown": {"files": '[{"id": "F999999999"}]'},
    },
    ("slack", "chat.update"): {
        "token": {"token": "Bearer other"},
        "channel": {"channel": "C1"},
        "message": {"ts": "1.1"},
        "file": {"blocks": [IMAGE]},
    },
    ("s3", "PutObject"): {"condition": written_object, "bucket": {"Bucket": "nowhere"}},
    ("s3", "GetObject"): {"unknown": {"Key": "nothing"}, "bucket": {"Bucket": "nowhere"}},
    ("s3", "ListObjectsV2"): {"bucket": {"Bucket": "nowhere"}},
    ("ecr", "BatchGetImage"): {"repository": {}},
    ("sagemaker", "CreateEndpointConfig"): {
        "exists": lambda box: new()(box) | {"EndpointConfigName": f"{endpoint(box)}-config"},
        "variants": variants(9, 2),
        "shadows": variants(2, 1),
        "names": variants(2, same=True),
        "role": new(ModelName=None),
        "model": new(ModelName="nothing"),
        "shadow containers": of_model(
            True, PrimaryContainer={"Image": "i", "ModelDataUrl": "s3://m/", "Mode": "MultiModel"}
        ),
        "serverless containers": of_model(VpcConfig={"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}),
        "capacity": new(ServerlessConfig={"MemorySizeInMB": 1024, "MaxConcurrency": 1}, InitialInstanceCount=None),
        "serverless count": new(InstanceType=None, ServerlessConfig={"MemorySizeInMB": 1024, "MaxConcurrency": 1}),
        "memory": new(
            InstanceType=None, InitialInstanceCount=None, ServerlessConfig={"MemorySizeInMB": 1500, "MaxConcurrency": 1}
        ),
        "count": new(InitialInstanceCount=None),
        "priorities": new(
            InstanceType=None,
            InstancePools=[{"InstanceType": kind, "Priority": 1} for kind in ("ml.g5.xlarge", "ml.g6.xlarge")],
        ),
        "managed": new(ManagedInstanceScaling={"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 2}),
        "volume": new(VolumeSizeInGB=30),
        "ami": new(InferenceAmiVersion="al2-ami-sagemaker-inference-neuron-2"),
        "layouts": new(AcceleratorPartitionLayouts=[MIG, MIG]),
        "aws tags": lambda box: new()(box) | {"Tags": [{"Key": "aws:k", "Value": "v"}]},
    },
    ("sagemaker", "AddTags"): {
        "unknown": {"ResourceArn": "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/nobody"},
        "aws tags": tagged("aws:k"),
        "many": many_tags,
    },
    ("sagemaker", "UpdateEndpoint"): {
        "unknown": {"EndpointName": "nobody"},
        "busy": update(busy),
        "failed": update(failed),
        "no config": update(EndpointConfigName="nothing"),
        "same": same_config,
        "async": update(lambda box: endpoint(box, asynchronous=True)),
        "serverless": to_serverless,
        "layouts": other_layouts,
        "scalable": update(scaled),
        "retain": update(RetainDeploymentConfig=True, DeploymentConfig=all_at_once()),
        "capture": update(
            RetainAllVariantProperties=True,
            ExcludeRetainedVariantProperties=[{"VariantPropertyType": "DataCaptureConfig"}],
        ),
        "exclude": update(ExcludeRetainedVariantProperties=[{"VariantPropertyType": "DesiredWeight"}]),
        "least": asleep,
        "policy": update(of_four, DeploymentConfig=all_at_once() | rolling()),
        "guarded variants": guarded_to_others,
        "routing": update(of_four, DeploymentConfig=routing("CANARY")),
        "share": update(of_four, DeploymentConfig=routing("CANARY", CanarySize=BATCH | {"Value": 3})),
        "roll-back batch": update(of_four, DeploymentConfig=rolling(RollbackMaximumBatchSize=BATCH | {"Value": 5})),
        "time-out": update(of_four, DeploymentConfig=all_at_once(MaximumExecutionTimeoutInSeconds=600)),
        "rolling": two_variants_rolling,
        "quota": above_quota,
    },
    ("sagemaker", WEIGHTS): {
        "unknown": {"EndpointName": "nobody"},
        "busy": weights(busy),
        "failed": weights(failed),
        "several": weights(
            of_two_variants,
            *({"VariantName": each, "DesiredInstanceCount": 1} for each in (VARIANT_NAME, "other")),
        ),
        "variant": weights(endpoint, {"VariantName": "nothing", "DesiredWeight": 1.0}),
        "serverless": weights(serverless),
        "zero": weights(endpoint, {"VariantName": VARIANT_NAME, "DesiredInstanceCount": 0}),
        "quota": more_than_quota,
    },
    ("sagemaker", "UpdateInferenceComponent"): {
        "unknown": {"InferenceComponentName": "nobody"},
        "busy": of_component(True, RuntimeConfig={"CopyCount": 2}),
        "profile": partitioned,
        "both": of_component(Specification={"ModelName": "m"}, Specifications=[{"ModelName": "m"}]),
        "share": of_component(DeploymentConfig=rolling(MaximumBatchSize={"Type": "COPY_COUNT", "Value": 3})),
    },
    ("sagemaker", "UpdateInferenceComponentRuntimeConfig"): {
        "unknown": {"InferenceComponentName": "nobody"},
        "busy": of_component(True, DesiredRuntimeConfig={"CopyCount": 2}),
    },
    ("sagemaker", "DescribeEndpoint"): {"unknown": {"EndpointName": "nobody"}},
    ("sagemaker", "DescribeEndpointConfig"): {"unknown": {"EndpointConfigName": "nothing"}},
    ("sagemaker", "DescribeModel"): {"unknown": {"ModelName": "nothing"}},
    ("sagemaker", "ListTags"): {
        "unknown": {"ResourceArn": "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/nobody"},
        "token": lambda box: {"ResourceArn": tagged()(box)["ResourceArn"]} | TOKEN,
    },
    ("sagemaker", "ListEndpoints"): {"token": TOKEN},
    ("sagemaker", "ListEndpointConfigs"): {"token": TOKEN},
    ("sagemaker", "ListModels"): {"token": TOKEN},
    ("sagemaker", "Search"): {
        "property": {"SearchExpression": {"Filters": [{"Name": "Colour", "Value": "red"}]}},
        "token": TOKEN,
    },
    ("sagemaker", "ListInferenceComponents"): {"token": TOKEN},
    ("sagemaker", "CreateEndpoint"): {
        "exists": {"EndpointName": "chat"},
        "no config": {"EndpointConfigName": "nothing"},
        "aws tags": {"Tags": [{"Key": "aws:k", "Value": "v"}]},
        "quota": lambda box: above_quota(box) | {"EndpointName": name()},
    },
    ("sagemaker", "DeleteEndpoint"): {
        "unknown": {"EndpointName": "nobody"},
        "busy": lambda box: {"EndpointName": busy(box)},
        "monitored": watched,
    },
    ("sagemaker", "ListMonitoringSchedules"): {"token": TOKEN},
    ("sagemaker", "DescribeInferenceComponent"): {"unknown": {"InferenceComponentName": "nobody"}},
    ("sagemaker", "DescribeTrainingJob"): {"unknown": {}},
    ("sagemaker", "ListTrainingJobs"): {"token": TOKEN},
    ("sagemaker", "DescribeProcessingJob"): {"unknown": {}},
    ("sagemaker", "ListProcessingJobs"): {"token": TOKEN},
    ("sagemaker", "UpdateTrainingJob"): {"unknown": {}, "pool": no_pool},
    ("sagemaker", "DescribeCluster"): {"unknown": {}},
    ("sagemaker", "DescribeTrainingPlan"): {"unknown": {"TrainingPlanName": "nothing"}},
}  # fmt: skip
