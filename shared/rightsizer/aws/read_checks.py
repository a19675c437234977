"""One harmless request for each read permission of the program: how `doctor` and the self-test of a function try it.

A request names what does not exist, or asks for one row. AWS answers "not found" only to those who may ask, so that
answer proves the permission (Service Authorization Reference: a request is authorised before it is carried out).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from rightsizer.aws.detailed_metrics import SECONDS, UTILISATION, query_of
from rightsizer.aws.errors import code_of, translate_read_errors
from rightsizer.aws.session import Session
from rightsizer.domain.self_test import Check, Outcome
from rightsizer.errors import (
    InputError,
    PermissionMissingError,
    ReadError,
    RightsizerError,
    ThrottledError,
    VanishedError,
)

NOBODY = "rightsizer-doctor-no-such-name"
"""A name of nothing."""
NOBODY_ID = "i-00000000000000000"
NOT_THERE = frozenset(
    {
        "DataUnavailableException",
        "InvalidLaunchTemplateName.NotFoundException",
        "ObjectNotFoundException",
        "RepositoryNotFoundException",
        "NoSuchKey",
    }
)
"""Error codes that say that nothing is there, beside those which every service has."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the requests are made."""

    session: Session
    account: str
    now: datetime
    table: str = ""
    secret: str = ""
    role: str = ""
    """ARN of the role that asks; empty at a terminal."""
    policy_parameter: str = ""
    """Name of the SSM parameter with the policy document; empty in a stack without one."""
    bill: str = ""
    """``cost-explorer``, or the address of the bill's export in S3; empty in a stack that reads no bill."""

    row: str = f"PROPOSAL#{NOBODY}"
    """Key of a partition of which the role may read a row; there need not be one."""

    def arn(self, service: str, resource: str) -> str:
        """ARN of something of this account and Region."""
        return f"arn:{self.session.partition}:{service}:{self.session.region}:{self.account}:{resource}"


@dataclass(frozen=True, slots=True)
class Read:
    """A permission that the program reads with."""

    purpose: str
    call: Callable[[Scene], Any]


DELETED = "it was deleted, and no deployment makes it again: restore it, or uninstall and deploy anew (docs/upgrade.md)"


def attempt(action: str, purpose: str, call: Callable[[], Any], remedy: str, *, must_exist: str = "") -> Check:
    """Make the request; what it came to, whatever it raised.

    `remedy` is what to do about a missing permission, `must_exist` what to do where the thing is gone; without it the
    request names what nobody has, and "not found" proves the permission.
    """
    try:
        with translate_read_errors(action, purpose):
            try:
                call()
            except ClientError as error:
                if code_of(error) not in NOT_THERE:
                    raise
    except VanishedError as error:
        if must_exist:
            return Check(action, purpose, Outcome.FAILED, str(error), must_exist)
        return Check(action, purpose, Outcome.OK)
    except PermissionMissingError as error:
        return Check(action, purpose, Outcome.FAILED, str(error), remedy)
    except ThrottledError as error:
        return Check(action, purpose, Outcome.NOT_CHECKED, str(error), "run it again in a few minutes")
    except RightsizerError as error:
        return Check(action, purpose, Outcome.FAILED, str(error), "the message names the cause; then run it again")
    except Exception as error:  # whatever else a request raises is what this test is there to find
        detail = f"the request raised {type(error).__name__}: {error}"[:500]
        return Check(action, purpose, Outcome.FAILED, detail, "this is a fault of rightsizer: report it with this line")
    return Check(action, purpose, Outcome.OK)


def _client(service: str, region: str | None = None) -> Callable[[Scene], Any]:
    return lambda scene: scene.session.client(service, region)


_SAGEMAKER, _SCALING, _CLOUDWATCH = _client("sagemaker"), _client("application-autoscaling"), _client("cloudwatch")
_GROUPS, _EC2, _DYNAMODB = _client("autoscaling"), _client("ec2"), _client("dynamodb")
_QUOTAS = _client("service-quotas")


def _hour(scene: Scene) -> tuple[datetime, datetime]:
    end = scene.now.replace(minute=0, second=0, microsecond=0)
    return end - timedelta(hours=1), end


def _metric_data(scene: Scene) -> Any:
    metric = {
        "Namespace": "AWS/SageMaker",
        "MetricName": "Invocations",
        "Dimensions": [{"Name": "EndpointName", "Value": NOBODY}],
    }
    query = {"Id": "q0", "MetricStat": {"Metric": metric, "Period": 300, "Stat": "Sum"}}
    start, end = _hour(scene)
    return _CLOUDWATCH(scene).get_metric_data(MetricDataQueries=[query], StartTime=start, EndTime=end)


def promql(scene: Scene) -> Any:
    """One PromQL query; CloudWatch asks for GetMetricData and ListMetrics for it."""
    start, end = _hour(scene)
    return scene.session.client("cloudwatch-promql", seconds=SECONDS).query_metrics(
        Query=query_of(NOBODY, "AllTraffic", 300), Start=int(start.timestamp()), End=int(end.timestamp()), Step=300
    )


def _prices(scene: Scene) -> Any:
    filters = [
        {"Type": "TERM_MATCH", "Field": "regionCode", "Value": scene.session.region},
        {"Type": "TERM_MATCH", "Field": "component", "Value": "Hosting"},
    ]
    return scene.session.pricing().get_products(
        ServiceCode="AmazonSageMaker", FormatVersion="aws_v1", Filters=filters, MaxResults=1
    )


def _one_day_of_bill(scene: Scene) -> Any:
    day = scene.now - timedelta(days=2)
    return scene.session.client("ce", "us-east-1").get_cost_and_usage(
        TimePeriod={"Start": f"{day:%Y-%m-%d}", "End": f"{day + timedelta(days=1):%Y-%m-%d}"},
        Granularity="DAILY",
        Metrics=["UnblendedCost"],
        Filter={"Dimensions": {"Key": "SERVICE", "Values": ["Amazon SageMaker"]}},
    )


def read_manifest(scene: Scene) -> None:
    """Read the manifest of the bill's export, of the month of yesterday.

    VanishedError where there is none that can be used.
    """
    from rightsizer.aws.bill_sources import ExportInS3
    from rightsizer.domain.bill import BillWindow

    day = scene.now - timedelta(days=1)
    window = BillWindow(scene.account, scene.session.region, day, day)
    try:
        ExportInS3(scene.session.client("s3"), scene.bill).listed_files(window)
    except (PermissionMissingError, ThrottledError):
        raise
    except (InputError, ReadError) as error:
        raise VanishedError(str(error)) from error


def _spot_prices(scene: Scene) -> Any:
    return _EC2(scene).describe_spot_price_history(
        InstanceTypes=["g5.xlarge"], ProductDescriptions=["Linux/UNIX"], StartTime=scene.now, MaxResults=1
    )


def _scores(scene: Scene) -> Any:
    return _EC2(scene).get_spot_placement_scores(
        InstanceTypes=["g4dn.xlarge", "g5.xlarge", "g6.xlarge"],
        TargetCapacity=1,
        SingleAvailabilityZone=True,
        RegionNames=[scene.session.region],
    )


def _simulation(scene: Scene) -> Any:
    return scene.session.client("iam").simulate_principal_policy(
        PolicySourceArn=scene.role, ActionNames=["sagemaker:DescribeEndpoint"]
    )


def _index(scene: Scene) -> Any:
    return _DYNAMODB(scene).query(
        TableName=scene.table,
        IndexName="GSI1",
        KeyConditionExpression="gsi1pk = :kind",
        ExpressionAttributeValues={":kind": {"S": NOBODY}},
        Limit=1,
    )


def _target(scene: Scene, operation: str) -> Any:
    return getattr(_SCALING(scene), operation)(ServiceNamespace="sagemaker", MaxResults=1)


READS: Mapping[str, Read] = {
    "sagemaker:ListMonitoringSchedules": Read(
        "looking for monitors of an endpoint", lambda s: _SAGEMAKER(s).list_monitoring_schedules(EndpointName=NOBODY)
    ),
    "sagemaker:DescribeTrainingPlan": Read(
        "knowing when reserved capacity ends", lambda s: _SAGEMAKER(s).describe_training_plan(TrainingPlanName=NOBODY)
    ),
    "sagemaker:ListEndpoints": Read("finding the endpoints", lambda s: _SAGEMAKER(s).list_endpoints(MaxResults=1)),
    "sagemaker:DescribeEndpoint": Read(
        "knowing what runs", lambda s: _SAGEMAKER(s).describe_endpoint(EndpointName=NOBODY)
    ),
    "sagemaker:DescribeEndpointConfig": Read(
        "knowing instance types", lambda s: _SAGEMAKER(s).describe_endpoint_config(EndpointConfigName=NOBODY)
    ),
    "sagemaker:DescribeModel": Read(
        "telling multi-model endpoints and pipelines apart", lambda s: _SAGEMAKER(s).describe_model(ModelName=NOBODY)
    ),
    "sagemaker:Search": Read(
        "reading endpoints and models by the hundred", lambda s: _SAGEMAKER(s).search(Resource="Endpoint", MaxResults=1)
    ),
    "sagemaker:ListEndpointConfigs": Read(
        "finding configurations that no endpoint uses", lambda s: _SAGEMAKER(s).list_endpoint_configs(MaxResults=1)
    ),
    "sagemaker:ListModels": Read(
        "finding models that no endpoint serves", lambda s: _SAGEMAKER(s).list_models(MaxResults=1)
    ),
    "sagemaker:ListInferenceComponents": Read(
        "knowing the components of an endpoint and their models",
        lambda s: _SAGEMAKER(s).list_inference_components(MaxResults=1),
    ),
    "sagemaker:DescribeInferenceComponent": Read(
        "knowing what inference components need",
        lambda s: _SAGEMAKER(s).describe_inference_component(InferenceComponentName=NOBODY),
    ),
    "sagemaker:ListTrainingJobs": Read(
        "finding training jobs", lambda s: _SAGEMAKER(s).list_training_jobs(MaxResults=1)
    ),
    "sagemaker:DescribeTrainingJob": Read(
        "knowing what a training job asked for", lambda s: _SAGEMAKER(s).describe_training_job(TrainingJobName=NOBODY)
    ),
    "sagemaker:ListProcessingJobs": Read(
        "finding processing jobs", lambda s: _SAGEMAKER(s).list_processing_jobs(MaxResults=1)
    ),
    "sagemaker:DescribeProcessingJob": Read(
        "knowing what a processing job asked for",
        lambda s: _SAGEMAKER(s).describe_processing_job(ProcessingJobName=NOBODY),
    ),
    "sagemaker:DescribeCluster": Read(
        "knowing HyperPod clusters", lambda s: _SAGEMAKER(s).describe_cluster(ClusterName=NOBODY)
    ),
    "tag:GetResources": Read(
        "reading rightsizer:mode and owners",
        lambda s: s.session.client("resourcegroupstaggingapi").get_resources(
            ResourceARNList=[s.arn("sagemaker", f"endpoint/{NOBODY}")]
        ),
    ),
    "sagemaker:ListTags": Read(
        "reading tags one by one where that fails",
        lambda s: _SAGEMAKER(s).list_tags(ResourceArn=s.arn("sagemaker", f"endpoint/{NOBODY}")),
    ),
    "application-autoscaling:DescribeScalableTargets": Read(
        "knowing which endpoints scale by themselves", lambda s: _target(s, "describe_scalable_targets")
    ),
    "application-autoscaling:DescribeScalingPolicies": Read(
        "knowing how they scale", lambda s: _target(s, "describe_scaling_policies")
    ),
    "application-autoscaling:DescribeScheduledActions": Read(
        "knowing when they scale", lambda s: _target(s, "describe_scheduled_actions")
    ),
    "application-autoscaling:ListTagsForResource": Read(
        "keeping the tags of autoscaling",
        lambda s: _SCALING(s).list_tags_for_resource(
            ResourceARN=s.arn("application-autoscaling", "scalable-target/0000000000000000000000000000000000000000")
        ),
    ),
    "cloudwatch:GetMetricData": Read("knowing how endpoints are used", _metric_data),
    "cloudwatch:ListMetrics": Read(
        "counting the GPUs that work, of several in an instance with enhanced metrics",
        lambda s: _CLOUDWATCH(s).list_metrics(Namespace=UTILISATION, RecentlyActive="PT3H"),
    ),
    "cloudwatch:DescribeAlarms": Read(
        "seeing alarms", lambda s: _CLOUDWATCH(s).describe_alarms(AlarmNames=[NOBODY], MaxRecords=1)
    ),
    "cloudwatch:DescribeAlarmContributors": Read(
        "knowing which endpoints an alarm is about",
        lambda s: _CLOUDWATCH(s).describe_alarm_contributors(AlarmName=NOBODY),
    ),
    "pricing:GetProducts": Read("pricing instance hours (else the dated snapshot prices them)", _prices),
    "servicequotas:ListServiceQuotas": Read(
        "knowing what the account may start",
        lambda s: _QUOTAS(s).list_service_quotas(ServiceCode="sagemaker", MaxResults=1),
    ),
    "servicequotas:ListAWSDefaultServiceQuotas": Read(
        "knowing the quotas that were never changed",
        lambda s: _QUOTAS(s).list_aws_default_service_quotas(ServiceCode="sagemaker", MaxResults=1),
    ),
    "savingsplans:DescribeSavingsPlans": Read(
        "knowing what is committed already",
        lambda s: s.session.client("savingsplans", "us-east-1").describe_savings_plans(states=["active"]),
    ),
    "savingsplans:DescribeSavingsPlansOfferingRates": Read(
        "knowing what a commitment would save",
        lambda s: s.session.client("savingsplans", "us-east-1").describe_savings_plans_offering_rates(
            savingsPlanTypes=["SageMaker"], filters=[{"name": "region", "values": [s.session.region]}], maxResults=1
        ),
    ),
    "ce:GetCostAndUsage": Read("comparing with the bill (AWS bills USD 0.01)", _one_day_of_bill),
    "ec2:DescribeSpotPriceHistory": Read("pricing Spot capacity", _spot_prices),
    "ec2:GetSpotPlacementScores": Read("knowing where Spot capacity is likely", _scores),
    "ec2:DescribeInstances": Read(
        "knowing an interrupted instance",
        lambda s: _EC2(s).describe_instances(Filters=[{"Name": "instance-id", "Values": [NOBODY_ID]}], MaxResults=5),
    ),
    "ec2:DescribeInstanceTypeOfferings": Read(
        "knowing which zones sell a type", lambda s: _EC2(s).describe_instance_type_offerings(MaxResults=5)
    ),
    "ec2:DescribeSubnets": Read("knowing the zones of subnets", lambda s: _EC2(s).describe_subnets(MaxResults=5)),
    "ec2:DescribeLaunchTemplateVersions": Read(
        "knowing how a group launches",
        lambda s: _EC2(s).describe_launch_template_versions(LaunchTemplateName=NOBODY),
    ),
    "autoscaling:DescribeAutoScalingGroups": Read(
        "finding Auto Scaling groups", lambda s: _GROUPS(s).describe_auto_scaling_groups(MaxRecords=1)
    ),
    "autoscaling:DescribeAutoScalingInstances": Read(
        "finding the group of an instance",
        lambda s: _GROUPS(s).describe_auto_scaling_instances(InstanceIds=[NOBODY_ID]),
    ),
    "autoscaling:DescribeLifecycleHooks": Read(
        "knowing how a group gives instances back",
        lambda s: _GROUPS(s).describe_lifecycle_hooks(AutoScalingGroupName=NOBODY),
    ),
    "ecr:BatchGetImage": Read(
        "comparing image tags",
        lambda s: s.session.client("ecr").batch_get_image(repositoryName=NOBODY, imageIds=[{"imageTag": "none"}]),
    ),
    "iam:SimulatePrincipalPolicy": Read("asking what the role may do", _simulation),
    "dynamodb:DescribeTable": Read(
        "knowing when the table was made, or restored", lambda s: _DYNAMODB(s).describe_table(TableName=s.table)
    ),
    "dynamodb:GetItem": Read(
        "reading the table",
        lambda s: _DYNAMODB(s).get_item(TableName=s.table, Key={"pk": {"S": s.row}, "sk": {"S": "PROPOSAL"}}),
    ),
    "dynamodb:BatchGetItem": Read(
        "reading rows of endpoints together",
        lambda s: _DYNAMODB(s).batch_get_item(
            RequestItems={s.table: {"Keys": [{"pk": {"S": f"ENDPOINT#{NOBODY}"}, "sk": {"S": "EVALUATED"}}]}}
        ),
    ),
    "dynamodb:Query": Read("reading the table's index", _index),
    "ssm:GetParameter": Read(
        "reading the policy document", lambda s: s.session.client("ssm").get_parameter(Name=s.policy_parameter)
    ),
    "secretsmanager:GetSecretValue": Read(
        "signing and posting in Slack", lambda s: s.session.client("secretsmanager").get_secret_value(SecretId=s.secret)
    ),
}
"""By IAM action."""
