"""Tags of SageMaker resources, and the Resource Groups Tagging API over them.

API references: SageMaker AddTags, ListTags, DeleteTags; Resource Groups Tagging API GetResources (page of 100 at most).
"""

import re
from typing import TYPE_CHECKING, Any

from sandbox.paging import page
from sandbox.refusals import AwsRefusal, NotSimulated, invalid
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.world import World


JOB = re.compile(r":(training|processing)-job/")
"""In the ARN of a job that is simulated."""


class Tags:
    """Tags by ARN."""

    def __init__(self) -> None:
        self._tags: dict[str, dict[str, str]] = {}

    def of(self, arn: str) -> dict[str, str]:
        """The tags of a resource."""
        return self._tags.get(arn, {})

    def put(self, arn: str, tags: dict[str, str]) -> None:
        """Set tags without asking, as AWS does with ``aws:`` tags."""
        self._tags.setdefault(arn, {}).update(tags)

    def add(self, arn: str, tags: list[dict[str, str]], operation: str = "AddTags") -> None:
        """Set tags on behalf of a caller, who may not use the ``aws:`` prefix nor have more than 50."""
        given = {tag["Key"]: tag["Value"] for tag in tags}
        if any(key.lower().startswith("aws:") for key in given) and on(operation, "aws tags"):
            raise invalid("Tag keys must not begin with the reserved prefix aws:")  # [assumed] text
        if len(self.of(arn) | given) > 50 and on(operation, "many"):
            raise AwsRefusal("ResourceLimitExceeded", "A resource can have at most 50 tags.")  # [assumed] text
        self.put(arn, given)

    def remove(self, arn: str, keys: list[str]) -> None:
        """Take tags off."""
        for key in keys:
            self._tags.get(arn, {}).pop(key, None)

    def forget(self, arn: str) -> None:
        """The resource is gone."""
        self._tags.pop(arn, None)

    def listed(self, arn: str) -> list[dict[str, str]]:
        """The tags in API form."""
        return [{"Key": key, "Value": value} for key, value in self.of(arn).items()]


class Tagging:
    """GetResources for SageMaker's resource types; anything else is not simulated."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def GetResources(self, p: dict[str, Any]) -> dict[str, Any]:
        """Tagged resources of these types, or with these ARNs."""
        arns = self._arns(p)
        for wanted in p.get("TagFilters", []):
            arns = [arn for arn in arns if _matches(self._world.tags.of(arn), wanted)]
        size = p.get("ResourcesPerPage") or 100
        shown, token = page(arns, p.get("PaginationToken"), size, "PaginationTokenExpiredException", "GetResources")
        rows = [{"ResourceARN": arn, "Tags": self._world.tags.listed(arn)} for arn in shown]
        return {"ResourceTagMappingList": rows, "PaginationToken": token or ""}

    def _arns(self, p: dict[str, Any]) -> list[str]:
        fleet = self._world.fleet
        if asked := p.get("ResourceARNList"):
            known = {*fleet.arns("endpoint"), *fleet.arns("endpoint-config"), *fleet.arns("model")}
            return [arn for arn in asked if (arn in known or JOB.search(arn)) and self._world.tags.of(arn)]
        arns: list[str] = []
        for kind in p.get("ResourceTypeFilters") or ["*"]:
            if kind not in {"sagemaker:endpoint", "sagemaker:endpoint-config", "sagemaker:model"}:
                raise NotSimulated(
                    f"GetResources for {kind}: only endpoint, endpoint-config and model of sagemaker are"
                )
            arns += fleet.arns(kind.partition(":")[2])
        return [arn for arn in arns if self._world.tags.of(arn)]


def _matches(tags: dict[str, str], wanted: dict[str, Any]) -> bool:
    values = wanted.get("Values") or []
    return wanted["Key"] in tags and (not values or tags[wanted["Key"]] in values)
