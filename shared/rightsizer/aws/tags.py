"""Tags of endpoints in bulk. What ours mean is in `domain.tags`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.domain.reason import Reason, reason_of
from rightsizer.errors import RightsizerError
from rightsizer.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient
    from types_boto3_sagemaker import SageMakerClient

PAGE = 100
"""ARNs in one GetResources request (API limit)."""


type Tags = Mapping[str, str]


class TagReader:
    """Reads the tags of many endpoints: a hundred with one request, one by one where that request fails.

    GetResources takes no pagination parameter beside ResourceARNList (Resource Groups Tagging API, GetResources), so an
    answer that announces another page is not whole, and the endpoints that it leaves out are asked one by one.
    """

    def __init__(self, client: "ResourceGroupsTaggingAPIClient", sagemaker: "SageMakerClient") -> None:
        self._client, self._sagemaker = client, sagemaker

    def read(self, arns: Sequence[str]) -> dict[str, Tags | Reason]:
        """For each ARN its tags, or why they could not be read. An endpoint without tags has an empty mapping."""
        found: dict[str, Tags | Reason] = {}
        for start in range(0, len(arns), PAGE):
            found |= self._chunk(arns[start : start + PAGE])
        return found

    def _chunk(self, arns: Sequence[str]) -> dict[str, Tags | Reason]:
        try:
            with translate_read_errors("tag:GetResources", "reading the tags of endpoints"):
                answer = self._client.get_resources(ResourceARNList=list(arns))
        except RightsizerError as error:
            logger.warning("tags are read one by one", extra={"endpoints": len(arns), "problem": str(error)})
            return {arn: self.list_tags(arn) for arn in arns}
        rows = answer["ResourceTagMappingList"]
        tagged = {row["ResourceARN"].lower(): {tag["Key"]: tag["Value"] for tag in row["Tags"]} for row in rows}
        whole = not answer.get("PaginationToken")
        return {
            arn: tagged.get(arn.lower(), {}) if whole or arn.lower() in tagged else self.list_tags(arn) for arn in arns
        }

    def list_tags(self, arn: str) -> Tags | Reason:
        """Tags of one endpoint or component by SageMaker's own ListTags; why they could not be read."""
        try:
            with translate_read_errors("sagemaker:ListTags", f"reading the tags of {arn.rpartition('/')[2]}"):
                pages: Any = self._sagemaker.get_paginator("list_tags").paginate(ResourceArn=arn)
                return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
        except RightsizerError as error:
            return reason_of(error)
