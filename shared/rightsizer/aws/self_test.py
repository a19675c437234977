"""The self-test of a deployed function: what its own role, settings, bucket and Slack answer to it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from rightsizer.aws.reads import READS, Scene, attempt
from rightsizer.errors import ReadError
from rightsizer.model.self_test import Check, Outcome

ENDPOINTS = (
    "sagemaker:ListEndpoints",
    "tag:GetResources",
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
TABLE = ("dynamodb:GetItem", "dynamodb:Query")
DOORS: Mapping[str, tuple[str, ...]] = {
    "sweep": (*ENDPOINTS, *GROUPS, "sagemaker:ListTrainingJobs", *TABLE),
    "evaluate": (
        *ENDPOINTS,
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeModel",
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
        "ce:GetSavingsPlansUtilization",
        *TABLE,
    ),
    "propose": TABLE,
    "respond": ("dynamodb:GetItem",),
    "apply": (
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeInferenceComponent",
        "sagemaker:DescribeModel",
        "sagemaker:ListTags",
        "sagemaker:DescribeTrainingJob",
        *SCALING,
        "application-autoscaling:ListTagsForResource",
        "cloudwatch:DescribeAlarms",
        "cloudwatch:GetMetricData",
        "cloudwatch:ListTagsForResource",
        *QUOTAS,
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeSubnets",
        "autoscaling:DescribeAutoScalingGroups",
        "iam:SimulatePrincipalPolicy",
        "ecr:BatchGetImage",
        "dynamodb:DescribeTable",
        *TABLE,
    ),
    "interruption": (
        "autoscaling:DescribeAutoScalingInstances",
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeLifecycleHooks",
        "ec2:DescribeInstances",
        *TABLE,
    ),
    "report": (*TABLE, "cloudwatch:GetMetricData"),
}
"""The read permissions of each door's role (template.yaml; a test holds both together). Slack's secret is apart."""
SECRET = "secretsmanager:GetSecretValue"  # noqa: S105 (the name of a permission)
IN_SLACK = frozenset({"propose", "respond", "apply", "interruption", "report"})
"""The doors whose roles read Slack's secret; every function's environment names it."""
BUCKET: Mapping[str, str] = {"evaluate": "digests", "propose": "pages", "report": "reports"}
"""The prefix of the bucket that a door writes and reads."""
MARKER = "self-test"
SKEW_S = 60.0
"""Seconds between our clock and AWS's from which signatures and windows are in doubt."""
REDEPLOY = "deploy the template of this release again (make build, sam deploy): the function's role lacks it"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a function is made of."""

    door: str
    scene: Scene
    build: Callable[[], object]
    """Makes the flow of the door with all its clients, as its first event does."""
    bucket: str = ""
    slack: Callable[[], tuple[Check, ...]] | None = None
    """Asks Slack who we are and whether the channel can be posted to; None where the door does not post."""


def checks(parts: Parts) -> Iterator[Check]:
    """Each check of one function, one after the other; none stops the next."""
    yield attempt("build", "making the settings and clients as its first event does", parts.build, REDEPLOY)
    scene = parts.scene
    for action in DOORS[parts.door]:
        read = READS[action]
        yield attempt(action, read.purpose, _bound(read.call, scene), REDEPLOY)
    if scene.secret and parts.door in IN_SLACK:
        remedy = "allow the role to read the secret; a secret under a key of your own needs kms:Decrypt on that key too"
        yield attempt(SECRET, READS[SECRET].purpose, _bound(READS[SECRET].call, scene), remedy)
    if parts.bucket and parts.door in BUCKET:
        yield _marker(scene, parts.bucket, BUCKET[parts.door])
    yield _clock(scene)
    if parts.slack is not None:
        yield from parts.slack()


def _bound(call: Callable[[Scene], Any], scene: Scene) -> Callable[[], Any]:
    return lambda: call(scene)


def _marker(scene: Scene, bucket: str, prefix: str) -> Check:
    """Write an object below the prefix and read it again."""
    s3, key, body = scene.session.client("s3"), f"{prefix}/{MARKER}", scene.now.isoformat().encode()

    def write_and_read() -> None:
        s3.put_object(Bucket=bucket, Key=key, Body=body)
        read = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        if read != body:
            raise ReadError(f"{key} was written as {body!r} and read as {read!r}")

    return attempt("s3:PutObject and s3:GetObject", f"writing and reading {prefix}/", write_and_read, REDEPLOY)


def _clock(scene: Scene) -> Check:
    """How far our clock is from the one in AWS's answers."""
    action, purpose, found = "clock", "signing requests, change windows and expiry", list[float]()

    def ask() -> None:
        answer = scene.session.client("sts").get_caller_identity()
        header = answer["ResponseMetadata"]["HTTPHeaders"].get("date", "")
        if header:
            found.append(abs((parsedate_to_datetime(header).astimezone(UTC) - scene.now).total_seconds()))

    made = attempt(action, purpose, ask, REDEPLOY)
    if made.outcome is not Outcome.OK or not found:
        return made if found or not made.ok else Check(action, purpose, Outcome.NOT_CHECKED, "the answer had no date")
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
    made = attempt(action, purpose, lambda: found.append(role_of(session)), "run it again; this needs no permission")
    if not found:
        return made
    account, role = found[0]
    return Scene(session, account, now, table, secret, role)
