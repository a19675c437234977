"""Search over endpoints and models: records of an index that the lists are not read from.

Sources: API reference, Search, SearchRecord, Endpoint, ModelDashboardModel, Filter and SearchExpression. A record of an
endpoint lacks what the type Endpoint lacks: AsyncInferenceConfig, ExplainerConfig, MetricsConfig and the summary of a
deployment. How late the index is, is not documented: `Fleet.index_lag` says it here.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sandbox.paging import page
from sandbox.refusals import NotSimulated, invalid
from sandbox.sagemaker.describe import described
from sandbox.sagemaker.nouns import Params
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.sagemaker.fleet import Fleet

OF_AN_ENDPOINT = (
    "EndpointName", "EndpointArn", "EndpointConfigName", "EndpointStatus", "FailureReason", "CreationTime",
    "LastModifiedTime", "ProductionVariants", "ShadowProductionVariants", "DataCaptureConfig",
)  # fmt: skip
TEXTS: Mapping[str, tuple[str, ...]] = {
    "Endpoint": ("EndpointName", "EndpointArn", "EndpointConfigName", "EndpointStatus", "FailureReason"),
    "Model": ("Model.ModelName", "Model.ModelArn"),
}
"""Properties that can be filtered here. A member of a nested type is written with a dot, as for training jobs."""


def searched(fleet: "Fleet", p: Params) -> Params:
    """The page of records that match."""
    resource, expression = p["Resource"], p.get("SearchExpression") or {}
    if resource not in TEXTS or any(expression.get(key) for key in ("NestedFilters", "SubExpressions")):
        raise NotSimulated(f"Search of {resource} with {sorted(expression)}")
    filters = expression.get("Filters") or ()
    if any(one["Name"] not in TEXTS[resource] for one in filters) and on("Search", "property"):
        raise invalid("A filter names a property that the resource does not have.")  # [assumed] text
    every = any if expression.get("Operator") == "Or" else all
    records = _endpoints(fleet) if resource == "Endpoint" else _models(fleet)
    rows = [{resource: record} for record in records if not filters or every(_matches(one, record) for one in filters)]
    shown, token = page(rows, p.get("NextToken"), p.get("MaxResults") or 10, operation="Search")
    return {"Results": shown, "NextToken": token}


def _endpoints(fleet: "Fleet") -> Iterator[dict[str, Any]]:
    indexed = fleet.world.clock.now - fleet.index_lag
    for endpoint in sorted(fleet.endpoints.values(), key=lambda one: (one.modified, one.name), reverse=True):
        if endpoint.modified <= indexed:
            answer = described(fleet, endpoint)
            shown = {key: answer[key] for key in OF_AN_ENDPOINT if key in answer}
            yield shown | {"Tags": fleet.world.tags.listed(endpoint.arn)}


def _models(fleet: "Fleet") -> Iterator[dict[str, Any]]:
    indexed = fleet.world.clock.now - fleet.index_lag
    for record in sorted(fleet.models.values(), key=lambda one: (one.created, one.name), reverse=True):
        if record.created <= indexed:
            made = {"ModelArn": record.arn, "CreationTime": record.created}
            yield {"Model": {**record.request, **made, "Tags": fleet.world.tags.listed(record.arn)}}


def _matches(one: Params, record: Mapping[str, Any]) -> bool:
    value: Any = record
    for part in str(one["Name"]).split("."):
        value = (value or {}).get(part)
    wanted = one.get("Value", "")
    match one.get("Operator", "Equals"):
        case "Equals":
            return bool(value == wanted)
        case "NotEquals":
            return bool(value != wanted)
        case "In":
            return value in wanted.split(",")
        case "Contains":
            return wanted in (value or "")
        case "Exists":
            return value is not None
        case _:
            return value is None
