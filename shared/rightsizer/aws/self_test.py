"""The self-test of a deployed function: answers of its own role, settings, bucket and Slack."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import ClientError

from rightsizer.aws.errors import code_of
from rightsizer.aws.read_checks import DELETED, READS, Scene, attempt, read_manifest
from rightsizer.domain.checks import newer_than_known
from rightsizer.domain.plan import terminal_command
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.self_test import Check, Outcome
from rightsizer.errors import ReadError, VanishedError

ALARMS = (
    "cloudwatch:DescribeAlarms",
    "cloudwatch:DescribeAlarmContributors",
)
GROUPS = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeLifecycleHooks",
    "ec2:DescribeLaunchTemplateVersions",
)
SCALING = (
    "application-autoscaling:DescribeScalableTargets",
    "application-autoscaling:DescribeScalingPolicies",
    "application-autoscaling:DescribeScheduledActions",
)
QUOTAS = ("servicequotas:ListServiceQuotas", "servicequotas:ListAWSDefaultServiceQuotas")
BILL = (
    "sagemaker:ListEndpoints",
    "sagemaker:DescribeEndpoint",
    "sagemaker:DescribeEndpointConfig",
    "sagemaker:ListEndpointConfigs",
    "sagemaker:ListModels",
    "sagemaker:ListInferenceComponents",
    "sagemaker:DescribeInferenceComponent",
    "sagemaker:ListTrainingJobs",
    "sagemaker:DescribeTrainingJob",
    "sagemaker:ListProcessingJobs",
    "sagemaker:DescribeProcessingJob",
    "cloudwatch:ListMetrics",
    "savingsplans:DescribeSavingsPlansOfferingRates",
    "savingsplans:DescribeSavingsPlans",
)
"""What the rest of the bill is read with."""
TABLE = ("dynamodb:GetItem", "dynamodb:Query")
DOORS: Mapping[str, tuple[str, ...]] = {
    "sweep": (
        "sagemaker:ListEndpoints",
        *ALARMS,
        *GROUPS,
        "sagemaker:ListTrainingJobs",
        *TABLE,
        "dynamodb:BatchGetItem",
    ),
    "evaluate": (
        *ALARMS,
        "tag:GetResources",
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeModel",
        "sagemaker:Search",
        "sagemaker:ListInferenceComponents",
        "sagemaker:DescribeInferenceComponent",
        "sagemaker:DescribeTrainingJob",
        "sagemaker:ListTrainingJobs",
        "sagemaker:DescribeCluster",
        "sagemaker:ListTags",
        "cloudwatch:GetMetricData",
        "cloudwatch:ListMetrics",
        *SCALING,
        "ec2:DescribeSpotPriceHistory",
        "ec2:GetSpotPlacementScores",
        *GROUPS,
        "pricing:GetProducts",
        *QUOTAS,
        "savingsplans:DescribeSavingsPlans",
        *TABLE,
        "dynamodb:BatchGetItem",
    ),
    "propose": ("dynamodb:GetItem",),
    "respond": ("dynamodb:GetItem",),
    "picture": ("dynamodb:GetItem", "cloudwatch:GetMetricData"),
    "apply": (
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeInferenceComponent",
        "sagemaker:ListInferenceComponents",
        "sagemaker:DescribeModel",
        "sagemaker:ListTags",
        "sagemaker:DescribeTrainingJob",
        *SCALING,
        "application-autoscaling:ListTagsForResource",
        "cloudwatch:DescribeAlarms",
        "cloudwatch:GetMetricData",
        *QUOTAS,
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeSubnets",
        "autoscaling:DescribeAutoScalingGroups",
        "iam:SimulatePrincipalPolicy",
        "ecr:BatchGetImage",
        "dynamodb:DescribeTable",
        *TABLE,
    ),
    "hours": (
        "tag:GetResources",
        "sagemaker:ListEndpoints",
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeModel",
        "sagemaker:ListInferenceComponents",
        "sagemaker:ListMonitoringSchedules",
        "sagemaker:DescribeTrainingPlan",
        "sagemaker:ListTags",
        *SCALING,
        "application-autoscaling:ListTagsForResource",
        "cloudwatch:DescribeAlarms",
        "cloudwatch:GetMetricData",
        *QUOTAS,
        "iam:SimulatePrincipalPolicy",
        "ecr:BatchGetImage",
        *TABLE,
    ),
    "interruption": (
        "autoscaling:DescribeAutoScalingInstances",
        "ec2:DescribeInstances",
        "dynamodb:GetItem",
    ),
    "report": (
        "dynamodb:Query",
        "dynamodb:BatchGetItem",
        "cloudwatch:GetMetricData",
        "tag:GetResources",
        "sagemaker:ListTags",
        *BILL,
    ),
}
"""The read permissions of each door's role (template.yaml; a test holds both together). Slack's secret is apart."""
SECRET = "secretsmanager:GetSecretValue"  # noqa: S105 (the name of a permission)
POLICY = "ssm:GetParameter"
"""Every door reads the policy document, in a stack that has one."""
COSTS, BILLED = "ce:GetCostAndUsage", "report"
"""The permission of the one door that reads the bill, where the parameter Bill names Cost Explorer."""
IN_SLACK = frozenset({"propose", "respond", "report", "picture"})
"""The doors whose roles read Slack's secret; every function's environment names it."""
BUCKET: Mapping[str, str] = {"evaluate": "digests", "propose": "pages", "report": "reports"}
"""The prefix of the bucket that a door writes and reads."""
MARKER = "self-test"
ACTS_ON: Mapping[str, tuple[str, ...]] = {"apply": (f"PROPOSAL#{ProposalState.PENDING}", "HISTORY")}
"""Kinds of documents (partitions of GSI1) whose newest one a door must be able to follow."""
SKEW_S = 60.0
"""Seconds between our clock and AWS's from which signatures and windows are in doubt."""
RECREATE = "create the secret again and give the stack its ARN by SlackSecretArn (docs/slack.md)"
REDEPLOY = "deploy the template of this release again (make build, sam deploy): the function's role lacks it"


@dataclass(frozen=True, slots=True)
class SelfTestParts:
    """Everything that the self-test of one function needs."""

    door: str
    scene: Scene
    build: Callable[[], object]
    """Makes the flow of the door with all its clients, as its first event does."""
    bucket: str = ""
    slack: Callable[[], tuple[Check, ...]] | None = None
    """Asks Slack who we are and whether the channel can be posted to; None where the door does not post."""


def checks(parts: SelfTestParts) -> Iterator[Check]:
    """Each check of one function, one after the other; none stops the next."""
    yield attempt("build", "making the settings and clients as its first event does", parts.build, REDEPLOY)
    scene = parts.scene
    for action in DOORS[parts.door]:
        read = READS[action]
        gone = DELETED if action in TABLE else ""
        yield attempt(action, read.purpose, _bind_scene(read.call, scene), REDEPLOY, must_exist=gone)
    if scene.secret and parts.door in IN_SLACK:
        remedy = "allow the role to read the secret; a secret under a key of your own needs kms:Decrypt on that key too"
        yield attempt(
            SECRET, READS[SECRET].purpose, _bind_scene(READS[SECRET].call, scene), remedy, must_exist=RECREATE
        )
    if scene.policy_parameter:
        read = READS[POLICY]
        stores = terminal_command("policy put FILE", scene.session.region)
        remedy = f"store the document again, or take PolicyParameter from the stack:\n  {stores}"
        yield attempt(POLICY, read.purpose, _bind_scene(read.call, scene), REDEPLOY, must_exist=remedy)
    if scene.bill and parts.door == BILLED:
        yield _bill_check(scene)
    if parts.bucket and parts.door in BUCKET:
        yield _marker(scene, parts.bucket, BUCKET[parts.door])
    if parts.door in ACTS_ON:
        yield _schema(scene, ACTS_ON[parts.door])
    yield _clock(scene)
    if parts.slack is not None:
        yield from parts.slack()


def _bind_scene(call: Callable[[Scene], Any], scene: Scene) -> Callable[[], Any]:
    return lambda: call(scene)


def _bill_check(scene: Scene) -> Check:
    """The one read of the bill that the stack's parameter Bill names."""
    if scene.bill.startswith("s3://"):
        remedy = (
            "name the export by the parameter Bill (docs/bill.md); a key or bucket of another account must let the role"
        )
        what = ("s3:GetObject", "comparing with the bill: the manifest of its export")
        return attempt(*what, _bind_scene(read_manifest, scene), remedy, must_exist=remedy)
    read = READS[COSTS]
    return attempt(COSTS, read.purpose, _bind_scene(read.call, scene), REDEPLOY)


def _marker(scene: Scene, bucket: str, prefix: str) -> Check:
    """Write an object below the prefix and read it again."""
    s3, key, body = scene.session.client("s3"), f"{prefix}/{MARKER}", scene.now.isoformat().encode()

    def write_and_read() -> None:
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=body)
        except ClientError as error:
            if code_of(error) == "NoSuchBucket":
                raise VanishedError(f"writing {key}: the bucket {bucket} no longer exists") from error
            raise
        read = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        if read != body:
            raise ReadError(f"{key} was written as {body!r} and read as {read!r}")

    purpose = f"writing and reading {prefix}/"
    return attempt("s3:PutObject and s3:GetObject", purpose, write_and_read, REDEPLOY, must_exist=DELETED)


def _schema(scene: Scene, kinds: tuple[str, ...]) -> Check:
    """Whether the newest document of each kind was written by a release that this one can follow."""
    action, purpose, newer = "schema", f"following the newest documents of {' and '.join(kinds)}", list[str]()

    def ask() -> None:
        for kind in kinds:
            rows = scene.session.client("dynamodb").query(
                TableName=scene.table,
                IndexName="GSI1",
                KeyConditionExpression="gsi1pk = :kind",
                ExpressionAttributeValues={":kind": {"S": kind}},
                ScanIndexForward=False,
                Limit=1,
            )["Items"]
            newer.extend(filter(None, (newer_than_known(_document(row)) for row in rows)))

    check = attempt(action, purpose, ask, REDEPLOY, must_exist=DELETED)
    if check.outcome is Outcome.OK and newer:
        remedy = "deploy the release that wrote it, or a later one: this one leaves such rows alone (docs/upgrade.md)"
        return Check(action, purpose, Outcome.FAILED, newer[0], remedy)
    return check


def _document(row: Mapping[str, Any]) -> object:
    """The document of a row; one that cannot be read has no number: it is parked and told elsewhere."""
    try:
        found: object = json.loads(row["doc"]["S"])
    except (KeyError, ValueError):
        return None
    return found


def _clock(scene: Scene) -> Check:
    """How far our clock is from the one in AWS's answers."""
    action, purpose, found = "clock", "signing requests, change windows and expiry", list[float]()

    def ask() -> None:
        answer = scene.session.client("sts").get_caller_identity()
        header = answer["ResponseMetadata"]["HTTPHeaders"].get("date", "")
        if header:
            found.append(abs((parsedate_to_datetime(header).astimezone(UTC) - scene.now).total_seconds()))

    check = attempt(action, purpose, ask, REDEPLOY)
    if check.outcome is not Outcome.OK or not found:
        return (
            check if found or not check.is_ok else Check(action, purpose, Outcome.NOT_CHECKED, "the answer had no date")
        )
    detail = f"{found[0]:.0f} s from AWS's clock"
    if found[0] > SKEW_S:
        return Check(action, purpose, Outcome.FAILED, detail, "report it to AWS Support: Lambda keeps the time itself")
    return Check(action, purpose, Outcome.OK, detail)


def role_of(session: Any) -> tuple[str, str]:
    """Account, and the ARN of the role that asks (an assumed role's session names the role without its path)."""
    arn = str(session.client("sts").get_caller_identity()["Arn"])
    _, partition, _, _, account, resource = arn.split(":", 5)
    kind, _, rest = resource.partition("/")
    name = rest.partition("/")[0] if kind == "assumed-role" else rest
    return account, f"arn:{partition}:iam::{account}:role/{name}"


def scene_of(session: Any, now: datetime, table: str, secret: str) -> Scene | Check:
    """Where a function asks, or the failed check where STS does not say who asks."""
    found = list[tuple[str, str]]()
    action, purpose = "sts:GetCallerIdentity", "knowing the account and the role"
    check = attempt(action, purpose, lambda: found.append(role_of(session)), "run it again; this needs no permission")
    if not found:
        return check
    account, role = found[0]
    return Scene(session, account, now, table, secret, role)
