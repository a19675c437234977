"""Tags of endpoints and jobs in bulk. What ours mean is in `domain.tags`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.domain.reason import Code, Reason, reason_of
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

    def read_only_in_bulk(self, arns: Sequence[str]) -> dict[str, Tags | Reason]:
        """Tags by ARN, never asked one by one: for resources of which an account has thousands, such as jobs."""
        found: dict[str, Tags | Reason] = {}
        for start in range(0, len(arns), PAGE):
            chunk = arns[start : start + PAGE]
            try:
                tagged, is_whole = self._tagged(chunk, "jobs")
            except RightsizerError as error:
                found |= dict.fromkeys(chunk, reason_of(error))
                continue
            left_out: Tags | Reason = (
                {} if is_whole else Reason(Code.READ_FAILED, "tag:GetResources left some tags out")
            )
            found |= {arn: tagged.get(arn.lower(), left_out) for arn in chunk}
        return found

    def _chunk(self, arns: Sequence[str]) -> dict[str, Tags | Reason]:
        try:
            tagged, is_whole = self._tagged(arns, "endpoints")
        except RightsizerError as error:
            logger.warning("tags are read one by one", extra={"endpoints": len(arns), "problem": str(error)})
            return {arn: self.list_tags(arn) for arn in arns}
        return {
            arn: tagged.get(arn.lower(), {}) if is_whole or arn.lower() in tagged else self.list_tags(arn)
            for arn in arns
        }

    def _tagged(self, arns: Sequence[str], of: str) -> tuple[Mapping[str, Tags], bool]:
        """Tags by the ARN in small letters, of what has any; and whether the answer is whole."""
        with translate_read_errors("tag:GetResources", f"reading the tags of {of}"):
            answer = self._client.get_resources(ResourceARNList=list(arns))
        rows = answer["ResourceTagMappingList"]
        tagged = {row["ResourceARN"].lower(): {tag["Key"]: tag["Value"] for tag in row["Tags"]} for row in rows}
        return tagged, not answer.get("PaginationToken")

    def list_tags(self, arn: str) -> Tags | Reason:
        """Tags of one endpoint or component by SageMaker's own ListTags; why they could not be read."""
        try:
            with translate_read_errors("sagemaker:ListTags", f"reading the tags of {arn.rpartition('/')[2]}"):
                pages: Any = self._sagemaker.get_paginator("list_tags").paginate(ResourceArn=arn)
                return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
        except RightsizerError as error:
            return reason_of(error)
