"""What an errand sees and writes: the policy of an Auto Scaling group, the warm pool of a training job.

Sources: EC2 Auto Scaling API reference, UpdateAutoScalingGroup; SageMaker API reference, UpdateTrainingJob.
"""

from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import DENIED, THROTTLED, code_of, reading, text_of, translate
from rightsizer.aws.group_facts import mode_of, sendable
from rightsizer.domain.capacity_change import GroupSight, PoolSeen
from rightsizer.domain.ownership import owner_of
from rightsizer.domain.plan import Step, StepKind
from rightsizer.errors import ReadError, RightsizerError, VanishedError, WriteRefusedError

if TYPE_CHECKING:
    from types_boto3_autoscaling import AutoScalingClient
    from types_boto3_sagemaker import SageMakerClient

BUSY = frozenset({"ScalingActivityInProgress", "ResourceContention", "ResourceInUse", "ConflictException"})
"""Refusals that end by themselves."""


class ErrandCalls:
    """Keeps the promises of `ports_spot.ErrandReader` and `ErrandWriter`."""

    def __init__(self, autoscaling: "AutoScalingClient", sagemaker: "SageMakerClient") -> None:
        self._autoscaling, self._sagemaker = autoscaling, sagemaker

    def group(self, name: str) -> GroupSight:
        """Policy, mode and owner of the group as they are now."""
        with reading("autoscaling:DescribeAutoScalingGroups", f"reading the group {name}"):
            rows = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
        if not rows:
            raise VanishedError(f"reading the group {name}: it no longer exists")
        row: Any = rows[0]
        tags = {tag["Key"]: tag.get("Value", "") for tag in row.get("Tags", [])}
        policy = row.get("MixedInstancesPolicy") or {}
        return GroupSight(mode_of(tags, name), owner_of(tags), sendable(policy))

    def pool(self, job: str) -> PoolSeen:
        """Warm pool and mode of the job as they are now."""
        with reading("sagemaker:DescribeTrainingJob", f"reading the training job {job}"):
            found = self._sagemaker.describe_training_job(TrainingJobName=job)
        with reading("sagemaker:ListTags", f"reading the tags of {job}"):
            listed = self._sagemaker.list_tags(ResourceArn=found["TrainingJobArn"])["Tags"]
        tags = {tag["Key"]: tag["Value"] for tag in listed}
        return PoolSeen(mode_of(tags, job), str(found.get("WarmPoolStatus", {}).get("Status", "")))

    def perform(self, step: Step) -> None:
        """Make one write; WriteRefusedError, PermissionMissingError or ThrottledError when AWS does not."""
        try:
            match step.kind:
                case StepKind.UPDATE_GROUP:
                    self._autoscaling.update_auto_scaling_group(**step.params)
                case StepKind.RELEASE_POOL:
                    self._sagemaker.update_training_job(**step.params)
                case _:
                    raise WriteRefusedError(step.key, "NotAnErrand", f"{step.kind} is no write of an errand")
        except (ClientError, BotoCoreError) as error:
            raise _refused(error, step) from error


def _refused(error: ClientError | BotoCoreError, step: Step) -> RightsizerError:
    """A write that did not happen, or of which nobody knows whether it did: the next look tells."""
    if not isinstance(error, ClientError):
        return ReadError(f"{step.key}: {error}")
    if code_of(error) in DENIED | THROTTLED:
        return translate(error, step.kind.value, step.key)
    if code_of(error) in BUSY or code_of(error).startswith(("Internal", "ServiceUnavailable")):
        return ReadError(f"{step.key}: {code_of(error)}: {text_of(error)}")
    return WriteRefusedError(step.key, code_of(error), text_of(error))
