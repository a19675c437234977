"""Requests that sentences of the documentation forbid and no shape does; `wrong` has the others."""

from typing import Any

from tests.sandbox.strictness.accepted import KEY, TRACKING, VARIANT
from tests.sandbox.strictness.wrong import METRICS, WRONG, Change, component, custom, steps, variant
from tests.sandbox.strictness.wrong_policies import FINE_POLICIES, MORE_POLICIES, POLICIES
from tests.sandbox.strictness.wrong_slack import GONE

type Wrong = dict[tuple[str, str], dict[str, Change]]

_SERVERLESS = {"MemorySizeInMB": 1024, "MaxConcurrency": 1}
_TRACKING = "TargetTrackingScalingPolicyConfiguration"
_OF_COPIES = "SageMakerInferenceComponentInvocationsPerCopy"
VPC = {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}
_LOW, _HIGH = {"MetricIntervalUpperBound": 0.0}, {"MetricIntervalLowerBound": 0.0}
_BARE: Change = METRICS | {
    "Metrics": GONE,
    "EvaluationPeriods": GONE,
    "Threshold": GONE,
    "ComparisonOperator": GONE,
    "EvaluationCriteria": {"PromQLCriteria": {"Query": "up"}},
}


def explainer(baseline: Change, text: bool = False, **inference: Any) -> Change:
    """A configuration with an explainer of this baseline."""
    shap: Change = {"ShapBaselineConfig": baseline}
    if text:
        shap["TextConfig"] = {"Language": "en", "Granularity": "token"}
    made = {"ShapConfig": shap} | ({"InferenceConfig": inference} if inference else {})
    return {"ExplainerConfig": {"ClarifyExplainerConfig": made}}


def _adjusted(*rows: Change) -> Change:
    return steps(*({"ScalingAdjustment": 1} | row for row in rows))


def _scraped(seconds: int) -> Change:
    row = {"MetricsEndpointPath": "/metrics", "MetricPublishFrequencyInSeconds": seconds}
    return {"Specification": {"Container": {"ContainerMetricsConfig": {"MetricsEndpoints": [row]}}}}


_SETS: Change = {
    "empty set": {"ExpressionAttributeValues": {":v": {"M": {"tags": {"SS": []}}}}, "UpdateExpression": "SET doc = :v"},
    "doubled": {"ExpressionAttributeValues": {":v": {"NS": ["1", "1"]}}, "UpdateExpression": "SET doc = :v"},
    "empty key": {"Key": KEY | {"sk": {"S": ""}}},
}
_UPDATE: Change = {"TableName": "ledger", "Key": KEY, "UpdateExpression": "SET doc = :v"}

_TEXTS: Wrong = {
    ("autoscaling", "UpdateAutoScalingGroup"): POLICIES,
    ("dynamodb", "UpdateItem"): _SETS,
    ("dynamodb", "Query"): {"filtered": {"FilterExpression": "sk = :sk"}},
    ("lambda", "Invoke"): {"name": {"FunctionName": "f" * 65}},
    ("lambda", "GetFunctionConfiguration"): {"name": {"FunctionName": "f" * 65}},
    ("dynamodb", "PutItem"): {"doubled": {"Item": KEY | {"tags": {"L": [{"BS": [b"a", b"a"]}]}}}},
    ("dynamodb", "TransactWriteItems"): {
        "doubled": {"TransactItems": [{"Update": _UPDATE | {"ExpressionAttributeValues": {":v": {"SS": ["a", "a"]}}}}]},
        "empty key": {"TransactItems": [{"Delete": {"TableName": "ledger", "Key": KEY | {"sk": {"S": ""}}}}]},
    },
    ("application-autoscaling", "PutScalingPolicy"): {
        "ranges": _adjusted({"MetricIntervalUpperBound": -1.0}, {"MetricIntervalLowerBound": 1.0}),
        "adjustment": steps({"ScalingAdjustment": 1} | _HIGH, AdjustmentType=None),
        "fits": {_TRACKING: TRACKING | {"PredefinedMetricSpecification": {"PredefinedMetricType": _OF_COPIES}}},
        "cooldown": {_TRACKING: TRACKING | {"ScaleOutCooldown": -1}},
    },
    ("cloudwatch", "PutMetricAlarm"): {
        "metric period": METRICS
        | {"Metrics": [{"Id": "q0", "MetricStat": {"Metric": {"MetricName": "m"}, "Period": 90, "Stat": "Sum"}}]},
        "scaling": {
            "ComparisonOperator": "GreaterThanUpperThreshold",
            "ThresholdMetricId": "ad1",
            "Threshold": GONE,
            "AlarmActions": ["arn:aws:autoscaling:eu-west-1:111122223333:scalingPolicy:x"],
        },
        "payload": {"AlarmDescription": "x" * 125_000},
        "criteria": _BARE | {"EvaluationInterval": 60, "DatapointsToAlarm": 1},
        "interval": _BARE,
        "wall clock": {"EvaluationWindow": {"WallClockWindow": {}}, "Period": 120},
        "propagated": {
            "ActionConfiguration": {
                "AlarmTagsPropagation": {"Enabled": True, "IncludedTagKeys": ["a"], "ExcludedTagKeys": ["b"]}
            }
        },
    },
    ("sagemaker", "CreateEndpoint"): {"shape": {"EndpointName": "new_one"}},
    ("sagemaker", "DeleteEndpoint"): {"shape": {"EndpointName": "chat_7b"}},
    ("sagemaker", "ListMonitoringSchedules"): {"shape": {"MaxResults": 101}},
    ("sagemaker", "DescribeTrainingPlan"): {"shape": {"TrainingPlanName": "plan_1"}},
    ("cloudwatch", "DisableAlarmActions"): {"shape": {"AlarmNames": [f"a{n}" for n in range(101)]}},
    ("cloudwatch", "EnableAlarmActions"): {"shape": {"AlarmNames": [f"a{n}" for n in range(101)]}},
    ("sagemaker", "CreateEndpointConfig"): {
        "prefix needs": variant(
            RoutingConfig={"RoutingStrategy": "PREFIX_AWARE", "PrefixAwareRoutingConfig": {"PrefixLength": 1024}}
        ),
        "baseline": explainer({"ShapBaseline": "0,0", "ShapBaselineUri": "s3://baselines/b.csv"}),
        "baseline kind": explainer({"ShapBaseline": "0,0", "MimeType": "text/plain"}),
        "feature types": explainer({"ShapBaseline": "0,0"}, text=True, FeatureTypes=["numerical"]),
        "serverless with": {
            "ProductionVariants": [
                {"VariantName": "v", "ModelName": "chat-model", "ServerlessConfig": _SERVERLESS},
            ],
            "VpcConfig": VPC,
        },
        "shadow with": {
            "ShadowProductionVariants": [
                VARIANT | {"VariantName": "s", "InstanceType": "ml.inf1.xlarge"}
            ]
        },
    },
    ("sagemaker", "UpdateEndpointWeightsAndCapacities"): {
        "provisioned": {
            "DesiredWeightsAndCapacities": [
                {
                    "VariantName": "AllTraffic",
                    "ServerlessUpdateConfig": {"MaxConcurrency": 1, "ProvisionedConcurrency": 2},
                }
            ]
        },
    },
    ("sagemaker", "UpdateInferenceComponent"): {
        "frequency": _scraped(45),
        "adapter": {
            "Specification": {
                "BaseInferenceComponentName": "base",
                "ComputeResourceRequirements": {"MinMemoryRequiredInMb": 1024},
            }
        },
    },
}  # fmt: skip

REQUESTS: Wrong = {key: WRONG.get(key, {}) | _TEXTS.get(key, {}) for key in {*WRONG, *_TEXTS}}
"""For each operation and check at the gate, the members in which a refused request differs from the accepted one."""

MORE: list[tuple[tuple[str, str], str, Change]] = [
    (("application-autoscaling", "PutScalingPolicy"), "ranges", _adjusted({})),
    (("application-autoscaling", "PutScalingPolicy"), "ranges", _adjusted(_HIGH, _HIGH)),
    (("application-autoscaling", "PutScalingPolicy"), "ranges", _adjusted(_HIGH | {"MetricIntervalUpperBound": 9.0})),
    (("application-autoscaling", "PutScalingPolicy"), "ids", custom(Metrics=[{"Id": "a-b", "Expression": "1"}])),
    (("cloudwatch", "PutMetricAlarm"), "interval", {"EvaluationInterval": 60}),
    (("sagemaker", "CreateEndpointConfig"), "prefix needs", variant(RoutingConfig={"RoutingStrategy": "PREFIX_AWARE"})),
    (("sagemaker", "CreateEndpointConfig"), "baseline", explainer({})),
    (("sagemaker", "CreateEndpointConfig"), "feature types", explainer({"ShapBaseline": "x"}, FeatureTypes=["text"])),
    (
        ("sagemaker", "CreateEndpointConfig"),
        "key",
        variant(CoreDumpConfig={"DestinationS3Uri": "s3:///d", "KmsKeyId": "k"}),
    ),
    (
        ("sagemaker", "UpdateInferenceComponent"),
        "types",
        {"Specification": GONE, "Specifications": [{"InstanceType": "ml.g5.xlarge"}] * 2},
    ),
]
MORE.append((("dynamodb", "Query"), "filtered", {
    "FilterExpression": "#k = :sk", "ExpressionAttributeNames": {"#k": "pk"}}))  # fmt: skip
MORE += [(("autoscaling", "UpdateAutoScalingGroup"), check, change) for check, change in MORE_POLICIES]
"""Further requests of one check."""

FINE: list[tuple[tuple[str, str], Change]] = [
    (("application-autoscaling", "PutScalingPolicy"), _adjusted({"MetricIntervalUpperBound": -5.0}, {
        "MetricIntervalLowerBound": -5.0, "MetricIntervalUpperBound": 0.0}, _HIGH)),
    (("application-autoscaling", "PutScalingPolicy"), _adjusted(_HIGH)),
    (("application-autoscaling", "PutScalingPolicy"), _adjusted(_LOW)),
    (("cloudwatch", "PutMetricAlarm"), _BARE | {"EvaluationInterval": 60}),
    (("cloudwatch", "PutMetricAlarm"), {"EvaluationWindow": {"WallClockWindow": {}}, "Period": 300}),
    (("sagemaker", "CreateEndpointConfig"), explainer({"ShapBaseline": "x"}, text=True, FeatureTypes=["text"])),
    (("sagemaker", "CreateEndpointConfig"), explainer({"ShapBaselineUri": "s3://b/b"})),
    (("sagemaker", "CreateEndpointConfig"), {
        "VpcConfig": VPC, "EnableNetworkIsolation": True}),
    (("sagemaker", "UpdateInferenceComponent"), component()),
    (("sagemaker", "UpdateInferenceComponent"), _scraped(60)),
]  # fmt: skip
FINE += [(("autoscaling", "UpdateAutoScalingGroup"), change) for change in FINE_POLICIES]
"""Requests beside the border, which AWS takes."""
