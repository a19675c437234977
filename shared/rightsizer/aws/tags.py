"""Tags of endpoints in bulk, and the meaning of ours.

A nonsense tag is a reason, never a crash.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.domain.endpoint import (
    ERROR_TAG,
    MAY_GROW_TAG,
    MAY_GROW_WANTED,
    Mode,
    Objective,
    allowed_errors,
    may_grow_usd,
)
from rightsizer.domain.ownership import named_owner, owner_of
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


@dataclass(frozen=True, slots=True)
class TagWishes:
    """Wishes that the tags of an endpoint state."""

    mode: Mode
    mode_declared: bool
    objective: Objective
    owner: str
    owned_by: str
    bad: tuple[Reason, ...]


def parse_tags(tags: Mapping[str, str]) -> TagWishes:
    """Read our tags. What cannot be understood is left out and named; a nonsense mode counts as ``report``."""
    bad: list[Reason] = []
    declared = tags.get("rightsizer:mode", "").strip().lower()
    modes = {mode.value: mode for mode in Mode}
    if declared and declared not in modes:
        bad.append(_bad_tag_reason("rightsizer:mode", tags, "one of off, report, propose, auto; it counts as report"))
    p95_ms = _number(tags, "rightsizer:p95-ms", lambda v: 0 < v <= 3_600_000, "milliseconds between 0 and 3600000", bad)
    errors = allowed_errors(tags)
    if ERROR_TAG in tags and errors is None:
        bad.append(_bad_tag_reason(ERROR_TAG, tags, "a percentage from 0 to 100"))
    if MAY_GROW_TAG in tags and may_grow_usd(tags) is None:
        bad.append(_bad_tag_reason(MAY_GROW_TAG, tags, f"{MAY_GROW_WANTED}; it allows nothing"))
    least = _number(
        tags, "rightsizer:min-instances", lambda v: v == int(v) and 1 <= v <= 1000, "a whole number from 1 to 1000", bad
    )
    return TagWishes(
        mode=modes.get(declared, Mode.REPORT if declared else Mode.PROPOSE),
        mode_declared="rightsizer:mode" in tags,
        objective=Objective(
            p95_s=None if p95_ms is None else p95_ms / 1000,
            error_share=errors,
            min_instances=None if least is None else int(least),
        ),
        owner=named_owner(tags),
        owned_by=owner_of(tags),
        bad=tuple(bad),
    )


def _number(
    tags: Mapping[str, str], key: str, valid: Callable[[float], bool], wanted: str, bad: list[Reason]
) -> float | None:
    if key not in tags:
        return None
    try:
        value = float(tags[key])
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not valid(value):
        bad.append(_bad_tag_reason(key, tags, wanted))
        return None
    return value


def _bad_tag_reason(key: str, tags: Mapping[str, str], wanted: str) -> Reason:
    return Reason(Code.BAD_TAG, f"the tag {key} is {tags[key]!r}; it should be {wanted}")
