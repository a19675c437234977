"""Tags of endpoints in bulk, and what ours mean. A nonsense tag is a reason, never a crash."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import reading
from rightsizer.model.observation import ERROR_TAG, Mode, Objective, allowed_errors
from rightsizer.model.reason import Code, Reason

if TYPE_CHECKING:
    from types_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient

PAGE = 100
"""ARNs in one GetResources request (API limit)."""
OWNER_TAGS = ("rightsizer:owner", "owner", "Owner", "team", "Team")
STACK_TAGS = (
    ("aws:cloudformation:stack-name", "CloudFormation stack"),
    ("aws:servicecatalog:provisionedProductArn", "Service Catalog product"),
)
MANAGER_TAGS = frozenset({"managed-by", "managed_by", "managedby", "provisioner", "iac"})
MANAGERS = ("terraform", "opentofu", "pulumi", "cdk", "cloudformation", "crossplane", "ack")


class TagReader:
    """Reads tags of many resources with the tagging API."""

    def __init__(self, client: "ResourceGroupsTaggingAPIClient") -> None:
        self._client = client

    def read(self, arns: Sequence[str]) -> dict[str, dict[str, str]]:
        """Tags by lower-case ARN; resources that never had a tag are absent."""
        found: dict[str, dict[str, str]] = {}
        for start in range(0, len(arns), PAGE):
            for resource in self._pages(arns[start : start + PAGE]):
                found[resource["ResourceARN"].lower()] = {tag["Key"]: tag["Value"] for tag in resource["Tags"]}
        return found

    def _pages(self, arns: Sequence[str]) -> Iterator[Any]:
        """One request: GetResources takes no page beside ResourceARNList, not even an empty token (API reference)."""
        with reading("tag:GetResources", "reading the tags of endpoints"):
            page = self._client.get_resources(ResourceARNList=list(arns))
        yield from page["ResourceTagMappingList"]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the tags of an endpoint say."""

    mode: Mode
    mode_declared: bool
    objective: Objective
    owner: str
    owned_by: str
    bad: tuple[Reason, ...]


def wishes(tags: Mapping[str, str]) -> Wishes:
    """Read our tags. What cannot be understood is left out and named; a nonsense mode counts as ``report``."""
    bad: list[Reason] = []
    declared = tags.get("rightsizer:mode", "").strip().lower()
    modes = {mode.value: mode for mode in Mode}
    if declared and declared not in modes:
        bad.append(_bad("rightsizer:mode", tags, "one of off, report, propose, auto; it counts as report"))
    p95_ms = _number(tags, "rightsizer:p95-ms", lambda v: 0 < v <= 3_600_000, "milliseconds between 0 and 3600000", bad)
    errors = allowed_errors(tags)
    if ERROR_TAG in tags and errors is None:
        bad.append(_bad(ERROR_TAG, tags, "a percentage from 0 to 100"))
    least = _number(
        tags, "rightsizer:min-instances", lambda v: v == int(v) and 1 <= v <= 1000, "a whole number from 1 to 1000", bad
    )
    return Wishes(
        mode=modes.get(declared, Mode.REPORT if declared else Mode.PROPOSE),
        mode_declared="rightsizer:mode" in tags,
        objective=Objective(
            p95_s=None if p95_ms is None else p95_ms / 1000,
            error_share=errors,
            min_instances=None if least is None else int(least),
        ),
        owner=next((tags[key].strip() for key in OWNER_TAGS if tags.get(key, "").strip()), ""),
        owned_by=_owned_by(tags),
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
        bad.append(_bad(key, tags, wanted))
        return None
    return value


def _bad(key: str, tags: Mapping[str, str], wanted: str) -> Reason:
    return Reason(Code.BAD_TAG, f"the tag {key} is {tags[key]!r}; it should be {wanted}")


def _owned_by(tags: Mapping[str, str]) -> str:
    for key, owner in STACK_TAGS:
        if tags.get(key):
            return f"{owner} {tags[key]}"
    for key, value in tags.items():
        plain = key.lower()
        if plain in MANAGERS and value.lower() not in ("false", "no", "0"):
            return plain.capitalize()
        if plain in MANAGER_TAGS and (manager := next((m for m in MANAGERS if m in value.lower()), "")):
            return manager.capitalize()
    return ""
