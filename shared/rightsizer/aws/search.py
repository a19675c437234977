"""SageMaker's Search: what DescribeEndpoint and DescribeModel say, by the hundred and from an index.

How late the index is, AWS does not document. So a record of an endpoint is believed only with the creation and
modification time and the status of a listing, and a record of a model only where it is older than the configuration
that names it. Whatever the index leaves out, tells otherwise, or refuses to tell, is described one by one: a failure
costs the calls that Search would have spared. No change is carried out by what Search said: preflight describes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import batched
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.domain.trigger import ListedEndpoint
from rightsizer.telemetry import Failure, attempt

if TYPE_CHECKING:
    from types_boto3_sagemaker import SageMakerClient

RECORDS = 100
"""Records in one answer (API limit)."""
FEWEST = 5
"""With fewer names than this nothing is searched: to describe them costs as few calls, and is exact."""
VALUE_LENGTH = 1024
"""Characters in the value of one filter (API limit); names are listed in it with commas between."""
type ApiAnswer = Mapping[str, Any]


class SearchReader:
    """Finds endpoints and models by name, a hundred with one request."""

    def __init__(self, client: "SageMakerClient") -> None:
        self._client = client

    def endpoints(self, listed: Collection[ListedEndpoint]) -> Mapping[str, ApiAnswer]:
        """Settled endpoints among these, as DescribeEndpoint would answer; others are left out."""
        known = {one.name: one for one in listed}
        records = self._records("Endpoint", "EndpointName", list(known))
        return {
            name: record
            for record in records
            if (name := record.get("EndpointName", "")) in known and _is_as_listed(record, known[name])
        }

    def models(self, named: Mapping[str, datetime]) -> Mapping[str, ApiAnswer]:
        """Models by name, as DescribeModel would answer, that are not younger than the time beside the name."""
        records = (record.get("Model") or {} for record in self._records("Model", "Model.ModelName", list(named)))
        return {
            name: model
            for model in records
            if (name := model.get("ModelName", "")) in named
            and (model.get("PrimaryContainer") or model.get("Containers"))
            and (made := model.get("CreationTime")) is not None
            and made <= named[name]
        }

    def _records(self, resource: str, property_name: str, names: Sequence[str]) -> list[ApiAnswer]:
        """What the index has of these; empty where it cannot be asked, which the log says."""
        if len(names) < FEWEST:
            return []
        ask = partial(self._search, resource, property_name, names)
        found = attempt("searching", f"{len(names)} of {resource}", ask)
        return [] if isinstance(found, Failure) else found

    def _search(self, resource: str, property_name: str, names: Sequence[str]) -> list[ApiAnswer]:
        found: list[ApiAnswer] = []
        for page in batched(names, RECORDS):
            filters = [{"Name": property_name, "Operator": "In", "Value": value} for value in _values(page)]
            asked: dict[str, Any] = {
                "Resource": resource,
                "SearchExpression": {"Filters": filters, "Operator": "Or"},
                "MaxResults": RECORDS,
            }
            with translate_read_errors("sagemaker:Search", f"searching {len(page)} of {resource}"):
                pages: Any = self._client.get_paginator("search").paginate(**asked)
                found.extend(record.get(resource) or {} for answer in pages for record in answer["Results"])
        return found


def is_settled(described: ApiAnswer) -> bool:
    """Whether an endpoint is in service, with the instances asked for and none that AWS manages."""
    variants: Sequence[ApiAnswer] = described.get("ProductionVariants") or ()
    whole = not described.get("ShadowProductionVariants") and not described.get("PendingDeploymentSummary")
    in_service = described.get("EndpointStatus") == "InService"
    return in_service and whole and bool(variants) and all(_is_steady(variant) for variant in variants)


def _is_steady(variant: ApiAnswer) -> bool:
    counts = variant.get("CurrentInstanceCount"), variant.get("DesiredInstanceCount")
    return counts[0] is not None and counts[0] == counts[1] and not variant.get("ManagedInstanceScaling")


def _is_as_listed(record: ApiAnswer, listed: ListedEndpoint) -> bool:
    times = (record.get("CreationTime"), record.get("LastModifiedTime"))
    return times == (listed.created_at, listed.modified_at) and is_settled(record) and "EndpointConfigName" in record


def _values(names: Sequence[str]) -> Iterator[str]:
    """The names with commas between, in as many values as the limit of one asks for."""
    value = ""
    for name in names:
        longer = f"{value},{name}" if value else name
        if len(longer) > VALUE_LENGTH:
            yield value
            value = name
        else:
            value = longer
    yield value
