"""For each operation a request that no check at the gate refuses; refused requests differ from it in one place."""

from datetime import UTC, datetime
from typing import Any

type Request = dict[str, Any]

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
TARGET = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/chat/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
ARN = "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/chat"
ROLE = "arn:aws:iam::111122223333:role/apply"
METRIC = {"Namespace": "AWS/SageMaker", "MetricName": "Invocations"}
STAT = {"Metric": METRIC, "Period": 60, "Stat": "Sum"}
QUERY = {"Id": "q0", "MetricStat": STAT}
PREDEFINED = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
TRACKING = {"TargetValue": 100.0, "PredefinedMetricSpecification": PREDEFINED}
KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
PUT = {"Put": {"TableName": "ledger", "Item": KEY}}
VARIANT = {"VariantName": "v", "ModelName": "chat-model", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "hello"}}
BUTTON = {"type": "button", "text": {"type": "plain_text", "text": "Approve"}, "action_id": "approve", "value": "x"}
MODAL = {"type": "modal", "title": {"type": "plain_text", "text": "Details"}, "blocks": [SECTION]}
MESSAGE = {"channel": "C0123456789", "text": "hello", "blocks": [SECTION]}
SPECIFICATION = {"ComputeResourceRequirements": {"MinMemoryRequiredInMb": 1024}}

ACCEPTED: dict[tuple[str, str], Request] = {
    ("application-autoscaling", "RegisterScalableTarget"): {**TARGET, "MinCapacity": 1, "MaxCapacity": 2},
    ("application-autoscaling", "DeregisterScalableTarget"): TARGET,
    ("application-autoscaling", "PutScalingPolicy"): {
        **TARGET,
        "PolicyName": "p",
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": TRACKING,
    },
    ("application-autoscaling", "DeleteScalingPolicy"): {**TARGET, "PolicyName": "p"},
    ("application-autoscaling", "PutScheduledAction"): {
        **TARGET,
        "ScheduledActionName": "s",
        "Schedule": "rate(1 day)",
        "ScalableTargetAction": {"MinCapacity": 1, "MaxCapacity": 2},
    },
    ("application-autoscaling", "DescribeScalableTargets"): {"ServiceNamespace": "sagemaker"},
    ("application-autoscaling", "DescribeScalingPolicies"): {"ServiceNamespace": "sagemaker"},
    ("application-autoscaling", "DescribeScheduledActions"): {"ServiceNamespace": "sagemaker"},
    ("application-autoscaling", "ListTagsForResource"): {
        "ResourceARN": "arn:aws:application-autoscaling:eu-west-1:111122223333:scalable-target/x"
    },
    ("autoscaling", "DescribeAutoScalingGroups"): {},
    ("autoscaling", "DescribeAutoScalingInstances"): {"InstanceIds": ["i-1"]},
    ("autoscaling", "DescribeLifecycleHooks"): {"AutoScalingGroupName": "gpu"},
    ("autoscaling", "DetachInstances"): {
        "InstanceIds": ["i-1"],
        "AutoScalingGroupName": "gpu",
        "ShouldDecrementDesiredCapacity": False,
    },
    ("autoscaling", "TerminateInstanceInAutoScalingGroup"): {
        "InstanceId": "i-1",
        "ShouldDecrementDesiredCapacity": False,
    },
    ("autoscaling", "UpdateAutoScalingGroup"): {"AutoScalingGroupName": "gpu", "DesiredCapacity": 4},
    ("ec2", "DescribeInstances"): {"InstanceIds": ["i-0123456789abcdef0"]},
    ("ec2", "DescribeLaunchTemplateVersions"): {"LaunchTemplateName": "gpu", "Versions": ["$Default"]},
    ("ec2", "DescribeInstanceTypeOfferings"): {"Filters": [{"Name": "instance-type", "Values": ["g5.xlarge"]}]},
    ("ec2", "DescribeSubnets"): {"SubnetIds": ["subnet-1"]},
    ("ec2", "DescribeSpotPriceHistory"): {"InstanceTypes": ["g5.xlarge"]},
    ("ec2", "GetSpotPlacementScores"): {"InstanceTypes": ["g5.xlarge"], "TargetCapacity": 1},
    ("ce", "GetCostAndUsage"): {
        "TimePeriod": {"Start": "2026-10-20", "End": "2026-10-31"},
        "Granularity": "DAILY",
        "Metrics": ["UnblendedCost"],
    },
    ("pricing", "GetProducts"): {"ServiceCode": "AmazonSageMaker", "FormatVersion": "aws_v1"},
    ("savingsplans", "DescribeSavingsPlans"): {"states": ["active"]},
    ("savingsplans", "DescribeSavingsPlansOfferingRates"): {"filters": [{"name": "region", "values": ["eu-west-1"]}]},
    ("service-quotas", "ListServiceQuotas"): {"ServiceCode": "sagemaker"},
    ("service-quotas", "ListAWSDefaultServiceQuotas"): {"ServiceCode": "sagemaker"},
    ("cloudwatch", "GetMetricData"): {
        "MetricDataQueries": [QUERY],
        "StartTime": NOW.replace(hour=1),
        "EndTime": NOW,
    },
    ("cloudwatch", "ListMetrics"): {"Namespace": "AWS/SageMaker"},
    ("cloudwatch", "DescribeAlarms"): {"AlarmNames": ["a"]},
    ("cloudwatch", "DescribeAlarmContributors"): {"AlarmName": "a"},
    ("cloudwatch", "PutMetricAlarm"): {
        "AlarmName": "a",
        **METRIC,
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1.0,
        "ComparisonOperator": "GreaterThanThreshold",
    },
    ("cloudwatch", "DeleteAlarms"): {"AlarmNames": ["a"]},
    ("cloudwatch", "DisableAlarmActions"): {"AlarmNames": ["a"]},
    ("cloudwatch", "EnableAlarmActions"): {"AlarmNames": ["a"]},
    ("cloudwatch", "QueryMetrics"): {"query": 'max_over_time({"m"}[60s])', "start": "0", "end": "600", "step": "60"},
    ("dynamodb", "GetItem"): {"TableName": "ledger", "Key": KEY},
    ("dynamodb", "BatchGetItem"): {"RequestItems": {"ledger": {"Keys": [KEY]}}},
    ("dynamodb", "BatchWriteItem"): {"RequestItems": {"ledger": [{"PutRequest": {"Item": KEY}}]}},
    ("dynamodb", "PutItem"): {"TableName": "ledger", "Item": KEY},
    ("dynamodb", "UpdateItem"): {"TableName": "ledger", "Key": KEY},
    ("dynamodb", "DescribeTable"): {"TableName": "ledger"},
    ("dynamodb", "DescribeTimeToLive"): {"TableName": "ledger"},
    ("dynamodb", "DescribeContinuousBackups"): {"TableName": "ledger"},
    ("dynamodb", "Query"): {
        "TableName": "ledger",
        "KeyConditionExpression": "pk = :pk AND begins_with(sk, :sk)",
        "ExpressionAttributeValues": {":pk": {"S": "a"}, ":sk": {"S": "b"}},
    },
    ("dynamodb", "TransactWriteItems"): {"TransactItems": [PUT]},
    ("resourcegroupstaggingapi", "GetResources"): {"ResourceARNList": [ARN]},
    ("iam", "SimulatePrincipalPolicy"): {"PolicySourceArn": ROLE, "ActionNames": ["iam:PassRole"]},
    ("sts", "GetCallerIdentity"): {},
    ("cloudformation", "DescribeStacks"): {"StackName": "rightsizer"},
    ("cloudformation", "DescribeStackResource"): {"StackName": "rightsizer", "LogicalResourceId": "Table"},
    ("cloudformation", "ListStackResources"): {"StackName": "rightsizer"},
    ("lambda", "Invoke"): {"FunctionName": "sweep", "Payload": b"{}"},
    ("lambda", "GetFunctionConfiguration"): {"FunctionName": "sweep"},
    ("lambda", "GetEventSourceMapping"): {"UUID": "14e0db71-5d35-4eb5-b481-8945cf9d10c2"},
    ("scheduler", "GetSchedule"): {"Name": "sweep"},
    ("secretsmanager", "GetSecretValue"): {"SecretId": "slack"},
    ("ssm", "GetParameter"): {"Name": "/rightsizer/policy"},
    ("ssm", "PutParameter"): {"Name": "/rightsizer/policy", "Value": "{}", "Type": "String"},
    ("sns", "Publish"): {"TopicArn": "arn:aws:sns:eu-west-1:111122223333:t", "Message": "m", "Subject": "s"},
    ("sns", "ListSubscriptionsByTopic"): {"TopicArn": "arn:aws:sns:eu-west-1:111122223333:t"},
    ("sqs", "GetQueueAttributes"): {
        "QueueUrl": "https://sqs.eu-west-1.amazonaws.com/111122223333/q",
        "AttributeNames": ["ApproximateNumberOfMessages"],
    },
    ("sqs", "SendMessageBatch"): {
        "QueueUrl": "https://sqs.eu-west-1.amazonaws.com/111122223333/q",
        "Entries": [{"Id": "0", "MessageBody": "m"}],
    },
    ("sqs", "SendMessage"): {"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/111122223333/q", "MessageBody": "m"},
    ("events", "PutEvents"): {"Entries": [{"Source": "s", "DetailType": "d", "Detail": "{}"}]},
    ("slack", "chat.postMessage"): MESSAGE,
    ("slack", "chat.update"): {**MESSAGE, "ts": "1767373400.000100"},
    ("slack", "auth.test"): {},
    ("slack", "conversations.info"): {"channel": "C0123456789"},
    ("slack", "response_url"): {"text": "hello"},
    ("slack", "views.open"): {"trigger_id": "1.2.a", "view": MODAL},
    ("slack", "views.update"): {"view_id": "V00000001", "view": MODAL},
    ("slack", "users.lookupByEmail"): {"email": "ada@example.com"},
    ("slack", "files.getUploadURLExternal"): {"filename": "two-weeks.png", "length": "3", "alt_txt": "two weeks"},
    ("slack", "files.completeUploadExternal"): {"files": '[{"id": "F000000001", "title": "two weeks"}]'},
    ("s3", "PutObject"): {"Bucket": "reports", "Key": "k", "Body": b"x"},
    ("s3", "GetObject"): {"Bucket": "reports", "Key": "k"},
    ("s3", "ListObjectsV2"): {"Bucket": "reports"},
    ("ecr", "BatchGetImage"): {"repositoryName": "models/chat", "imageIds": [{"imageTag": "1"}]},
    ("sagemaker", "CreateEndpointConfig"): {"EndpointConfigName": "new", "ProductionVariants": [VARIANT]},
    ("sagemaker", "AddTags"): {"ResourceArn": ARN, "Tags": [{"Key": "k", "Value": "v"}]},
    ("sagemaker", "UpdateEndpoint"): {"EndpointName": "chat", "EndpointConfigName": "new"},
    ("sagemaker", "UpdateEndpointWeightsAndCapacities"): {
        "EndpointName": "chat",
        "DesiredWeightsAndCapacities": [{"VariantName": "AllTraffic", "DesiredInstanceCount": 1}],
    },
    ("sagemaker", "UpdateInferenceComponent"): {"InferenceComponentName": "small", "Specification": SPECIFICATION},
    ("sagemaker", "UpdateInferenceComponentRuntimeConfig"): {
        "InferenceComponentName": "small",
        "DesiredRuntimeConfig": {"CopyCount": 1},
    },
    ("sagemaker", "DescribeEndpoint"): {"EndpointName": "chat"},
    ("sagemaker", "DescribeEndpointConfig"): {"EndpointConfigName": "new"},
    ("sagemaker", "DescribeModel"): {"ModelName": "chat-model"},
    ("sagemaker", "ListTags"): {"ResourceArn": ARN},
    ("sagemaker", "ListEndpoints"): {},
    ("sagemaker", "ListEndpointConfigs"): {},
    ("sagemaker", "ListModels"): {},
    ("sagemaker", "Search"): {"Resource": "Endpoint"},
    ("sagemaker", "ListInferenceComponents"): {},
    ("sagemaker", "CreateEndpoint"): {"EndpointName": "new", "EndpointConfigName": "chat-config"},
    ("sagemaker", "DeleteEndpoint"): {"EndpointName": "chat"},
    ("sagemaker", "ListMonitoringSchedules"): {"EndpointName": "chat"},
    ("sagemaker", "DescribeInferenceComponent"): {"InferenceComponentName": "small"},
    ("sagemaker", "DescribeTrainingJob"): {"TrainingJobName": "job"},
    ("sagemaker", "ListTrainingJobs"): {},
    ("sagemaker", "DescribeProcessingJob"): {"ProcessingJobName": "job"},
    ("sagemaker", "ListProcessingJobs"): {},
    ("sagemaker", "UpdateTrainingJob"): {"TrainingJobName": "job"},
    ("sagemaker", "DescribeCluster"): {"ClusterName": "cluster"},
    ("sagemaker", "DescribeTrainingPlan"): {"TrainingPlanName": "plan"},
}
