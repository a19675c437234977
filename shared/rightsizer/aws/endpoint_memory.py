"""What SageMaker said of endpoints, remembered beyond a process: one row an endpoint, read and written in batches.

Neither a configuration nor a model can be changed, and an endpoint is another one, or was modified, where its creation
or modification time is another. So a row holds until then, and a month at most. Endpoints that are on their way, whose
instances are managed by SageMaker, or of which something could not be read, are not remembered. A cache: a row that
cannot be read, one that a release with other fields wrote, and a memory that fails, cost the calls that they would
have spared.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from typing import Any, ClassVar

from rightsizer import wire
from rightsizer.aws.batches import Batches
from rightsizer.aws.configuration import ConfiguredVariant, EndpointConfiguration
from rightsizer.aws.documents import noun_of
from rightsizer.aws.models import ModelFacts
from rightsizer.aws.search import is_settled
from rightsizer.aws.table import Item, Row, Table, epoch, readable_rows, text, whole_number
from rightsizer.domain.endpoint import Endpoint, EndpointKind, EndpointRef
from rightsizer.telemetry import Failure, attempt

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
