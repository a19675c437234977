"""For each check at the gate, and each shape, what is changed in the accepted request so that AWS refuses it."""

from typing import Any

from tests.sandbox.strictness.accepted import (
    KEY,
    METRIC,
    NOW,
    PREDEFINED,
    PUT,
    QUERY,
    ROLE,
    STAT,
    TRACKING,
    VARIANT,
)
from tests.sandbox.strictness.wrong_batches import BATCHES
from tests.sandbox.strictness.wrong_functions import LISTED, OF_A_STACK
from tests.sandbox.strictness.wrong_slack import GONE, OF_SLACK

type Change = dict[str, Any]
_TRACKING = "TargetTrackingScalingPolicyConfiguration"
_STEPS = "StepScalingPolicyConfiguration"
_LOWER, _UPPER = "MetricIntervalLowerBound", "MetricIntervalUpperBound"
_STEP = {"ScalingAdjustment": 1, _LOWER: 0.0}
_SPACE = {"ServiceNamespace": "fleet"}
_DIMENSION = {"ScalableDimension": "sagemaker:variant:DesiredInstanceCount"}
METRICS: Change = {name: GONE for name in ("Namespace", "MetricName", "Statistic", "Period")} | {"Metrics": [QUERY]}
_ODD = {"Name": "EndpointName", "Value": "ü"}
_TWO = {"Key": "k", "Value": "v"}
_LARGE: Change = {"sk": {"S": "b"}, "doc": {"S": "x" * 399_000}}
_BIG: Change = {"pk": {"S": "a"}, "sk": {"S": "b"}, "doc": {"S": "x" * 410_000}}


def custom(**specification: Any) -> Change:
    """Target tracking by a customized metric."""
    return {_TRACKING: {"TargetValue": 1.0, "CustomizedMetricSpecification": specification}}


def steps(*rows: Change, **of: Any) -> Change:
    """Step scaling; `of` is other than its kind of adjustment."""
    whole = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": [*rows]} | of
    return {_TRACKING: GONE, "PolicyType": "StepScaling", _STEPS: {k: v for k, v in whole.items() if v is not None}}


def queries(*rows: Change) -> Change:
    """Queries of GetMetricData."""
    return {"MetricDataQueries": list(rows)}


def variant(**members: Any) -> Change:
    """A configuration whose variant has these members too."""
    return {"ProductionVariants": [VARIANT | members]}


def component(**needs: Any) -> Change:
    """A component that needs this."""
    return {"Specification": {"ComputeResourceRequirements": {"MinMemoryRequiredInMb": 1024, **needs}}}


def put(**members: Any) -> Change:
    """A transaction of one put with these members too."""
    return {"TransactItems": [{"Put": PUT["Put"] | members}]}


_OF_A_TABLE = ("Table", "TimeToLive", "ContinuousBackups")
_CONDITIONS: dict[str, Change] = {
    "reserved": {"ConditionExpression": "state = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}},
    "functions": {"ConditionExpression": "Attribute_Exists(pk)"},
    "unused": {"ConditionExpression": "attribute_exists(pk)", "ExpressionAttributeValues": {":v": {"S": "x"}}},
    "undefined": {"ConditionExpression": "pk = :v"},
}
WRONG: dict[tuple[str, str], dict[str, Change]] = {
    **BATCHES,
    **OF_SLACK,
    ("application-autoscaling", "RegisterScalableTarget"): {"shape": _SPACE, "negative": {"MinCapacity": -1}},
    ("application-autoscaling", "DeregisterScalableTarget"): {"shape": _SPACE},
    ("application-autoscaling", "PutScalingPolicy"): {
        "shape": _SPACE,
        "metric": {_TRACKING: {"TargetValue": 1.0}},
        "custom": custom(MetricName="m"),
        "query": custom(Metrics=[{"Id": "a"}]),
        "ids": custom(Metrics=[{"Id": "A", "Expression": "1"}]),
        "results": custom(Metrics=[{"Id": "a", "Expression": "1"}, {"Id": "b", "Expression": "1"}]),
        "predefined": {_TRACKING: TRACKING | {"PredefinedMetricSpecification": {
            "PredefinedMetricType": "ECSServiceAverageCPUUtilization"}}},
        "label": {_TRACKING: TRACKING | {"PredefinedMetricSpecification": PREDEFINED | {"ResourceLabel": "x"}}},
        "value": {_TRACKING: TRACKING | {"TargetValue": 1e109}},
        "steps": steps(),
        "many steps": steps(*(_STEP | {_LOWER: float(n), _UPPER: n + 1.0} for n in range(20)), _STEP | {_LOWER: 20.0}),
        "step bounds": steps(_STEP | {_UPPER: 0.0}),
        "exact": steps(_STEP | {"ScalingAdjustment": -1}, AdjustmentType="ExactCapacity"),
    },
    ("application-autoscaling", "DeleteScalingPolicy"): {"shape": _SPACE},
    ("application-autoscaling", "PutScheduledAction"): {
        "shape": _SPACE,
        "zone": {"Timezone": "europe/berlin"},
        "window": {"StartTime": NOW, "EndTime": NOW},
        "turned": {"ScalableTargetAction": {"MinCapacity": 2, "MaxCapacity": 1}},
    },
    ("application-autoscaling", "DescribeScalableTargets"): {
        "shape": {"ResourceIds": [f"endpoint/{n}/variant/v" for n in range(51)]},
        "alone": _DIMENSION,
        "page": {"MaxResults": 51},
    },
    ("application-autoscaling", "DescribeScalingPolicies"): {
        "shape": {"PolicyNames": [str(n) for n in range(51)]},
        "alone": _DIMENSION,
        "page": {"MaxResults": 11},
    },
    ("application-autoscaling", "DescribeScheduledActions"): {
        "shape": {"ScheduledActionNames": [str(n) for n in range(51)]},
        "alone": _DIMENSION,
        "page": {"MaxResults": 0},
    },
    ("application-autoscaling", "ListTagsForResource"): {"shape": {"ResourceARN": "endpoint/chat"}},
    ("autoscaling", "DescribeAutoScalingGroups"): {
        "shape": {"AutoScalingGroupNames": [""]},
        "names": {"AutoScalingGroupNames": [str(n) for n in range(51)]},
        "page": {"MaxRecords": 101},
        "filter": {"Filters": [{"Name": "name", "Values": ["x"]}]},
    },
    ("autoscaling", "DescribeAutoScalingInstances"): {
        "shape": {"InstanceIds": ["i-0123456789abcdef01"]},
        "ids": {"InstanceIds": [f"i-{n}" for n in range(51)]},
        "page": {"MaxRecords": 51},
    },
    ("autoscaling", "DescribeLifecycleHooks"): {"shape": {"LifecycleHookNames": [f"h{n}" for n in range(51)]}},
    ("autoscaling", "DetachInstances"): {
        "shape": {"AutoScalingGroupName": ""},
        "ids": {"InstanceIds": [f"i-{n}" for n in range(21)]},
    },
    ("autoscaling", "TerminateInstanceInAutoScalingGroup"): {
        "shape": {"InstanceId": "i-0123456789abcdef01"},
        "one": {"InstanceIds": ["i-2"], "AutoScalingGroupName": "gpu"},
        "group name": {"InstanceId": GONE, "InstanceIds": ["i-2"]},
    },
    ("autoscaling", "UpdateAutoScalingGroup"): {
        "shape": {"AutoScalingGroupName": ""},
        "launch": {"LaunchConfigurationName": "l", "MixedInstancesPolicy": {}},
        "launch template": {"LaunchTemplate": {"LaunchTemplateName": "gpu"}, "MixedInstancesPolicy": {}},
        "turned": {"MinSize": 2, "MaxSize": 1},
    },
    ("ec2", "DescribeInstances"): {
        "page": {"MaxResults": 5},
        "size": {"InstanceIds": GONE, "MaxResults": 4},
        "malformed": {"InstanceIds": ["chat"]},
    },
    ("ec2", "DescribeLaunchTemplateVersions"): {
        "shape": {"LaunchTemplateName": "a"},
        "both": {"LaunchTemplateId": "lt-1"},
        "numbers": {"LaunchTemplateName": GONE, "Versions": ["1"]},
        "size": {"MaxResults": 201},
    },
    ("ec2", "DescribeInstanceTypeOfferings"): {
        "shape": {"LocationType": "zone"},
        "filter": {"Filters": [{"Name": "InstanceType", "Values": ["g5.xlarge"]}]},
    },
    ("ec2", "DescribeSubnets"): {"shape": {"MaxResults": 4}},
    ("ec2", "DescribeSpotPriceHistory"): {
        "zone": {"AvailabilityZone": "eu-west-1a", "AvailabilityZoneId": "euw1-az1"},
        "turned": {"StartTime": NOW, "EndTime": NOW.replace(hour=1)},
    },
    ("ec2", "GetSpotPlacementScores"): {
        "shape": {"RegionNames": [f"r-{n}" for n in range(11)]},
        "types": {"InstanceTypes": GONE},
    },
    ("ce", "GetCostAndUsage"): {
        "shape": {"TimePeriod": {"Start": "yesterday", "End": "zoday"}},
        "turned": {"TimePeriod": {"Start": "2026-10-20", "End": "2026-10-20"}},
        "roots": {"Filter": {"And": [], "Dimensions": {"Key": "REGION", "Values": ["eu-west-1"]}}},
        "metrics": {"Metrics": ["Cost"]},
        "groups": {"GroupBy": [{"Type": "DIMENSION", "Key": key} for key in ("SERVICE", "USAGE_TYPE", "AZ")]},
        "grouped": {"GroupBy": [{"Type": "DIMENSION", "Key": "RESOURCE_ID"}]},
    },
    ("pricing", "GetProducts"): {"shape": {"MaxResults": 101}, "format": {"FormatVersion": "aws_v2"}},
    **{("savingsplans", f"DescribeSavingsPlans{of}"): {"shape": {"maxResults": 1001}} for of in ("", "OfferingRates")},
    ("service-quotas", "ListServiceQuotas"): {"shape": {"MaxResults": 101}},
    ("service-quotas", "ListAWSDefaultServiceQuotas"): {"shape": {"MaxResults": 101}},
    ("cloudwatch", "GetMetricData"): {
        "shape": queries(QUERY | {"MetricStat": STAT | {"Metric": METRIC | {"Namespace": ":x"}}}),
        "queries": queries(*({**QUERY, "Id": f"q{n}"} for n in range(501))),
        "ids": queries(QUERY, QUERY),
        "one": queries({"Id": "q"}),
        "period": queries(QUERY | {"MetricStat": STAT | {"Period": 90}}),
        "dimensions": queries(QUERY | {"MetricStat": STAT | {"Metric": METRIC | {"Dimensions": [_ODD]}}}),
        "insights": queries(*({"Id": f"q{n}", "Expression": "SELECT AVG(x) FROM y"} for n in range(2))),
        "points": {"MaxDatapoints": 100_801},
    },
    ("cloudwatch", "ListMetrics"): {
        "shape": {"RecentlyActive": "PT1H"},
        "dimensions": {"Dimensions": [{"Name": ":EndpointName"}]},
    },
    ("cloudwatch", "DescribeAlarms"): {
        "shape": {"MaxRecords": 101},
        "prefix": {"AlarmNamePrefix": "a"},
        "children": {"AlarmNames": GONE, "ChildrenOfAlarmName": "both", "StateValue": "ALARM"},
        "parents": {"ParentsOfAlarmName": "busy"},
    },
    ("cloudwatch", "DescribeAlarmContributors"): {"shape": {"AlarmName": ""}},
    ("cloudwatch", "PutMetricAlarm"): {
        "shape": {"AlarmName": "x" * 256},
        "name": {"AlarmName": "a\nb"},
        "mixed": {"Metrics": [QUERY]},
        "none": {"MetricName": GONE, "Statistic": GONE},
        "statistic": {"ExtendedStatistic": "p99"},
        "extended": {"Statistic": GONE, "ExtendedStatistic": "P99"},
        "missing": {"TreatMissingData": "NotBreaching"},
        "low count": {"EvaluateLowSampleCountPercentile": "never"},
        "bare": {"EvaluationPeriods": GONE},
        "threshold": {"Threshold": GONE},
        "anomaly": {"ComparisonOperator": "GreaterThanUpperThreshold"},
        "period": {"Period": 90},
        "span": {"Period": 300, "EvaluationPeriods": 300},
        "m of n": {"DatapointsToAlarm": 2},
        "ids": METRICS | {"Metrics": [QUERY | {"Id": "Q"}]},
        "one": METRICS | {"Metrics": [{"Id": "q"}]},
        "results": METRICS | {"Metrics": [QUERY, QUERY | {"Id": "q1"}]},
        "dimensions": {"Dimensions": [{"Name": "EndpointName", "Value": " "}]},
        "actions": {"AlarmActions": ["pager"]},
        "tags": {"Tags": [_TWO, _TWO]},
    },
    ("dynamodb", "PutItem"): {
        "shape": {"TableName": ""},
        "values": {"ReturnValues": "ALL_NEW"},
        **_CONDITIONS,
        "size": {"Item": _BIG},
        "empty set": {"Item": KEY | {"tags": {"SS": []}}},
    },
    ("dynamodb", "UpdateItem"): {"shape": {"TableName": ""}, **_CONDITIONS},
    **{("dynamodb", f"Describe{what}"): {"shape": {"TableName": ""}} for what in _OF_A_TABLE},
    ("dynamodb", "Query"): {
        "shape": {"Limit": 0},
        "no key": {"KeyConditionExpression": GONE, "ExpressionAttributeValues": GONE},
        "reserved": {"FilterExpression": "attribute_exists(state)"},
        "functions": {"FilterExpression": "starts_with(doc, :sk)"},
        "unused": {"ExpressionAttributeNames": {"#s": "state"}},
        "undefined": {"FilterExpression": "#s = :pk"},
        "select": {"Select": "ALL_PROJECTED_ATTRIBUTES"},
        "projection": {"Select": "COUNT", "ProjectionExpression": "doc"},
        "consistent": {"IndexName": "GSI1", "ConsistentRead": True},
    },
    ("dynamodb", "TransactWriteItems"): {
        "shape": {"ClientRequestToken": "x" * 37},
        "one action": {"TransactItems": [PUT | {"Delete": {"TableName": "ledger", "Key": KEY | {"sk": {"S": "c"}}}}]},
        "same item": {"TransactItems": [PUT, {"Delete": {"TableName": "ledger", "Key": KEY}}]},
        "total": {
            "TransactItems": [{"Put": PUT["Put"] | {"Item": _LARGE | {"pk": {"S": str(n)}}}} for n in range(11)]
        },
        "size": put(Item=_BIG),
        "empty set": put(Item=KEY | {"tags": {"SS": []}}),
        **{check: put(**condition) for check, condition in _CONDITIONS.items()},
    },
    ("resourcegroupstaggingapi", "GetResources"): {
        "shape": {"ResourceARNList": ["arn"] * 101},
        "types": {"ResourceTypeFilters": ["sagemaker:endpoint"]},
        "filters": {"TagFilters": [{"Key": "team"}]},
        "pages": {"PaginationToken": ""},
        "page": {"ResourceARNList": GONE, "ResourcesPerPage": 101},
        "tags": {"ResourceARNList": GONE, "TagsPerPage": 99},
        "many types": {"ResourceARNList": GONE, "ResourceTypeFilters": ["sagemaker:endpoint"] * 101},
        "compliant": {"ExcludeCompliantResources": True},
    },
    ("iam", "SimulatePrincipalPolicy"): {
        "shape": {"PolicySourceArn": "arn:aws:iam::1"},
        "source": {"PolicySourceArn": "arn:aws:sts::111122223333:assumed-role/apply/session"},
        "action": {"ActionNames": ["PassRole"]},
        "caller": {"CallerArn": "arn:aws:sts::111122223333:assumed-role/apply/session"},
        "resource policy": {"PolicySourceArn": ROLE, "ResourcePolicy": "{}"},
    },
    **OF_A_STACK,
    ("secretsmanager", "GetSecretValue"): {"shape": {"VersionId": "1"}},
    ("ssm", "GetParameter"): {"shape": {"Name": ""}},
    ("ssm", "PutParameter"): {"shape": {"Description": "x" * 1025}, "size": {"Value": "x" * 4097}},
    ("sns", "Publish"): {
        "place": {"PhoneNumber": "+100"},
        "empty": {"Message": ""},
        "size": {"Message": "x" * 262_145},
        "subject": {"Subject": "two\nlines"},
        "structure": {"MessageStructure": "json", "Message": '{"email": "x"}'},
        "fifo": {"MessageDeduplicationId": "1"},
    },
    ("sqs", "SendMessage"): {
        "empty": {"MessageBody": ""},
        "size": {"MessageBody": "x" * 1_048_577},
        "characters": {"MessageBody": "a\x00b"},
        "delay": {"DelaySeconds": 901},
        "attributes": {"MessageAttributes": {str(n): {"DataType": "String", "StringValue": "x"} for n in range(11)}},
    },
    ("events", "PutEvents"): {
        "shape": {"Entries": [{"Source": "s", "DetailType": "d", "Detail": "{}"}] * 11},
        "size": {"Entries": [{"Source": "s", "DetailType": "d", "Detail": '{"x":"' + "x" * 1_048_570 + '"}'}]},
        "kind": {"Entries": [{"Source": "s", "DetailType": "d" * 129, "Detail": "{}"}]},
        "source": {"Entries": [{"Source": "aws.sagemaker", "DetailType": "d", "Detail": "{}"}]},
    },
    ("s3", "PutObject"): {
        "shape": {"StorageClass": "CHEAP"},
        "key": {"Key": "x" * 1025},
        "metadata": {"Metadata": {"k": "x" * 2048}},
        "none match": {"IfNoneMatch": '"etag"'},
        "both": {"IfMatch": '"etag"', "IfNoneMatch": "*"},
    },
    ("s3", "GetObject"): {
        "shape": {"ChecksumMode": "DISABLED"},
        "key": {"Key": "x" * 1025},
        "ranges": {"Range": "bytes=0-1,3-4"},
        "part": {"Range": "bytes=0-1", "PartNumber": 1},
    },
    ("s3", "ListObjectsV2"): {"shape": {"EncodingType": "base64"}, "keys": {"MaxKeys": -1}},
    ("ecr", "BatchGetImage"): {
        "shape": {"repositoryName": "Models/Chat"},
        "ids": {"imageIds": [{}]},
        "media": {"acceptedMediaTypes": ["application/json"]},
    },
    ("sagemaker", "CreateEndpointConfig"): {
        "shape": variant(InstanceType="ml.g9.xlarge"),
        "tags": {"Tags": [_TWO, _TWO]},
        "cross region": {
            "AsyncInferenceConfig": {"OutputConfig": {"S3OutputPath": "s3://out/"}},
            "CrossRegionTrafficConfig": {
                "MaxInvocationsPerSecondPerInstance": 1,
                "MaxCrossRegionPercentPerEndpoint": 1,
            },
        },
        "prefix": variant(RoutingConfig={"RoutingStrategy": "RANDOM", "PrefixAwareRoutingConfig": {}}),
        "frequency": {"MetricsConfig": {"MetricPublishFrequencyInSeconds": 45}},
        "key": {"KmsKeyId": "our-key"},
        "managed bounds": variant(ManagedInstanceScaling={"MinInstanceCount": 2, "MaxInstanceCount": 1}),
        "provisioned": variant(
            ServerlessConfig={"MemorySizeInMB": 1024, "MaxConcurrency": 1, "ProvisionedConcurrency": 2}
        ),
    },
    ("sagemaker", "AddTags"): {"shape": {"Tags": [{"Key": "k" * 129, "Value": "v"}]}, "tags": {"Tags": [_TWO, _TWO]}},
    ("sagemaker", "UpdateEndpoint"): {
        "shape": {"EndpointName": "chat_1"},
        "excluded twice": {"ExcludeRetainedVariantProperties": [{"VariantPropertyType": "DesiredWeight"}] * 2},
    },
    ("sagemaker", "UpdateEndpointWeightsAndCapacities"): {
        "shape": {"DesiredWeightsAndCapacities": [{"VariantName": "AllTraffic", "DesiredWeight": -1.0}]}
    },
    ("sagemaker", "UpdateInferenceComponent"): {
        "shape": component(MinMemoryRequiredInMb=127),
        "types": {"Specification": GONE, "Specifications": [{"InstanceType": "ml.g5.xlarge"}, {}]},
        "partition": component(AcceleratorPartitionType="mig-1g.10gb", NumberOfAcceleratorDevicesRequired=2),
        "memory": component(MaxMemoryRequiredInMb=512),
        "archive": {"Specification": {"Container": {"ArtifactUrl": "s3://models/m.zip"}}},
        "environment": {"Specification": {"Container": {"Environment": {f"k{n}": "v" for n in range(17)}}}},
    },
    ("sagemaker", "UpdateInferenceComponentRuntimeConfig"): {"shape": {"DesiredRuntimeConfig": {"CopyCount": -1}}},
    ("sagemaker", "DescribeEndpoint"): {"shape": {"EndpointName": "chat-"}},
    ("sagemaker", "DescribeEndpointConfig"): {"shape": {"EndpointConfigName": "new_1"}},
    ("sagemaker", "Search"): {
        "shape": {"MaxResults": 101},
        "order": {"SearchExpression": {"Filters": [{"Name": "EndpointName", "Operator": "LessThan", "Value": "m"}]}},
    },
    ("sagemaker", "DescribeModel"): {"shape": {"ModelName": "chat_model"}},
    ("sagemaker", "ListTags"): {"shape": {"MaxResults": 49}},
    ("sagemaker", "ListEndpoints"): {"shape": {"StatusEquals": "inservice"}},
    **{("sagemaker", f"List{name}"): {"shape": {"MaxResults": 101}} for name in LISTED},
    ("sagemaker", "DescribeInferenceComponent"): {"shape": {"InferenceComponentName": "small_1"}},
    ("sagemaker", "DescribeTrainingJob"): {"shape": {"TrainingJobName": "job_1"}},
    ("sagemaker", "ListTrainingJobs"): {"shape": {"NameContains": "job_1"}},
    ("sagemaker", "DescribeProcessingJob"): {"shape": {"ProcessingJobName": "job_1"}},
    ("sagemaker", "ListProcessingJobs"): {"shape": {"MaxResults": 101}},
    ("sagemaker", "UpdateTrainingJob"): {"shape": {"TrainingJobName": "job_1"}},
    ("sagemaker", "DescribeCluster"): {"shape": {"ClusterName": "cluster_1"}},
}  # fmt: skip
