"""What SageMaker's Search says of endpoints and models by the hundred, remembered beyond a process."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from itertools import batched
from typing import TYPE_CHECKING, Any, ClassVar

from rightsizer import wire
from rightsizer.aws.configuration import ConfiguredVariant, EndpointConfiguration
from rightsizer.aws.documents import Batches, noun_of
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.models import ModelFacts
from rightsizer.aws.table import Item, Row, Table, epoch, readable_rows, text, whole_number
from rightsizer.domain.endpoint import Endpoint, EndpointKind, EndpointRef
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


KEPT_DAYS = 30
"""The longest that a mistake of the memory may last."""
DESCRIBED = "DESCRIBED"
OF_AN_ENDPOINT = ("EndpointArn", "EndpointName", "EndpointConfigName", "EndpointStatus", "AsyncInferenceConfig")
"""Fields of DescribeEndpoint that decisions use; the times are fields of their own."""
OF_A_VARIANT = (
    "VariantName",
    "CurrentInstanceCount",
    "DesiredInstanceCount",
    "CurrentWeight",
    "DesiredWeight",
    "RoutingConfig",
)
OF_AN_IMAGE = ("SpecifiedImage", "ResolvedImage")
ROW_FORMAT = 1
"""Raised where a field is read from AWS's answers in another way under its old name."""


@dataclass(frozen=True, slots=True)
class KnownEndpoint:
    """An endpoint in service with its configuration and models, as they were described."""

    ref: EndpointRef
    created_at: datetime
    modified_at: datetime
    described: Mapping[str, Any]
    configuration: EndpointConfiguration
    models: Mapping[str, ModelFacts]
    scaled: bool
    """Whether a policy may move its instances: then the endpoint itself is described each time."""

    @property
    def answer(self) -> Mapping[str, Any]:
        """The fields of DescribeEndpoint that are used, as it would give them."""
        times = {"CreationTime": self.created_at, "LastModifiedTime": self.modified_at}
        return {**self.described, **times}

    def is_of(self, created_at: datetime, modified_at: datetime) -> bool:
        """Whether these are the times of the same endpoint, unmodified."""
        return (self.created_at, self.modified_at) == (created_at, modified_at)


def known_endpoint(
    endpoint: Endpoint,
    described: Mapping[str, Any],
    configuration: EndpointConfiguration,
    models: Mapping[str, ModelFacts],
) -> KnownEndpoint | None:
    """The endpoint to remember, or None where it is not settled or not known as a whole."""
    variants: Sequence[Mapping[str, Any]] = described.get("ProductionVariants") or ()
    named = {variant.model_name for variant in configuration.variants}
    if not is_settled(described) or endpoint.configuration_replaced or endpoint.notes or named != set(models):
        return None
    kept = {name: described[name] for name in OF_AN_ENDPOINT if name in described}
    kept["AsyncInferenceConfig"] = bool(described.get("AsyncInferenceConfig"))
    kept["ProductionVariants"] = [_of_variant(variant) for variant in variants]
    scaled = bool(endpoint.scaling)
    return KnownEndpoint(
        endpoint.ref, endpoint.created_at, endpoint.modified_at, kept, configuration, dict(models), scaled
    )


def _of_variant(variant: Mapping[str, Any]) -> dict[str, Any]:
    images = [
        {name: image[name] for name in OF_AN_IMAGE if name in image} for image in variant.get("DeployedImages", ())
    ]
    return {name: variant[name] for name in OF_A_VARIANT if name in variant} | {"DeployedImages": images}


@cache
def row_format(
    nouns: tuple[type, ...] = (KnownEndpoint, EndpointConfiguration, ConfiguredVariant, ModelFacts),
) -> str:
    """Names what a row holds; another text in a release that keeps other fields, or knows other kinds.

    A row without a field of today would say that the fact is absent, for as long as it is kept.
    """
    kept = [*([field.name for field in fields(noun)] for noun in nouns), OF_AN_ENDPOINT, OF_A_VARIANT, OF_AN_IMAGE]
    names = ";".join(",".join(sorted(part)) for part in (*kept, [kind.value for kind in EndpointKind]))
    return f"{ROW_FORMAT}-{sha256(names.encode()).hexdigest()[:12]}"


class EndpointMemory:
    """Remembers endpoints in the table, under their names."""

    tells_state: ClassVar[bool] = True
    """What is loaded says how an endpoint stood, and holds while its times are those of a listing."""

    def __init__(self, table: Table, clock: Callable[[], datetime]) -> None:
        self._batches = Batches(table)
        self._clock = clock

    def load_known(self, names: Collection[str]) -> Mapping[str, KnownEndpoint]:
        """The remembered ones of these endpoints, by name."""
        keys = [(f"ENDPOINT#{name}", DESCRIBED) for name in names]
        rows = attempt("recalling endpoints", f"{len(keys)}", partial(self._batches.read, keys))
        if isinstance(rows, Failure):
            return {}
        return {one.ref.name: one for one in readable_rows(rows.values(), self._known) if one is not None}

    def _known(self, row: Row) -> KnownEndpoint | None:
        """None for a row of another format, and for one whose time is over; DynamoDB removes it some days later."""
        if "format" not in row or text(row, "format") != row_format():
            return None
        return noun_of(KnownEndpoint, row) if whole_number(row, "expires") > epoch(self._clock()) else None

    def keep(self, known_endpoints: Sequence[KnownEndpoint]) -> None:
        """Remember these endpoints of different names."""
        now = self._clock()
        rows: list[Item] = [
            {
                "pk": f"ENDPOINT#{one.ref.name}",
                "sk": DESCRIBED,
                "format": row_format(),
                "expires": epoch(now, KEPT_DAYS),
                "doc": wire.dump_stored(one),
            }
            for one in known_endpoints
        ]
        attempt("remembering endpoints", f"{len(rows)}", partial(self._batches.write, rows))
