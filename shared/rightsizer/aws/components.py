"""Inference components as they stand. SageMaker sends no event about them, so they are asked."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rightsizer.aws.errors import reading
from rightsizer.model.sight import MOVING

if TYPE_CHECKING:
    from types_boto3_sagemaker import SageMakerClient


def copies(sagemaker: "SageMakerClient", names: Sequence[str]) -> Mapping[str, int]:
    """Copies of each component that run now; `MOVING` while it is being changed. Raises ReadError."""
    found = {}
    with reading("sagemaker:DescribeInferenceComponent", "looking at inference components"):
        for name in names:
            answer = sagemaker.describe_inference_component(InferenceComponentName=name)
            settled = answer["InferenceComponentStatus"] in ("InService", "Failed")
            found[name] = answer.get("RuntimeConfig", {}).get("CurrentCopyCount", 0) if settled else MOVING
    return found
