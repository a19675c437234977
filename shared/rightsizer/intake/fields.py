"""What every shape at the edge shares: tolerant of new fields, strict about the ones we use."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from rightsizer.domain.reason import one_line
from rightsizer.domain.trigger import Trigger
from rightsizer.errors import InputError
from rightsizer.telemetry import count, logger

FIRST, LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""No event was sent before, and times after it leave no room to add days to them."""
MOST_NAMES = 25
"""Endpoints, groups or jobs of one message; the sweep sends no more (`flows.sweep.PAGE`)."""
LONGEST_FIELD = 60
"""Characters of a key that somebody else chose, where an error names it."""
MILLISECONDS_ABOVE = 1e11
"""Epoch numbers above this are milliseconds: as seconds it would be the year 5138."""

type Parser = Callable[[Mapping[str, Any]], Trigger]
"""Reads a whole document. InputError when a field that is needed is missing or wrong."""
type Parsers = Mapping[tuple[str, str], Parser]
"""What one file of `intake` reads from the bus, by the (source, detail-type) of the event."""


class EventModel(BaseModel):
    """A documented shape. Unknown fields are ignored: AWS adds some every year."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


def _moment(value: object) -> object:
    """SageMaker sends times as number, float or string of epoch milliseconds; CloudWatch as ISO 8601 with +0000."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a time is expected")
    try:
        moment = _read(value).astimezone(UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"no such time ({error})") from None
    if not FIRST <= moment < LAST:
        raise ValueError(f"a time from {FIRST:%Y} to {LAST.year - 1} is expected, not one in {moment.year}")
    return moment


def _read(value: float | str) -> datetime:
    if isinstance(value, str) and not value.strip().replace(".", "", 1).isdecimal():
        parsed = datetime.fromisoformat(value[:LONGEST_FIELD])
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    epoch = float(value)
    return datetime.fromtimestamp(epoch / 1000 if abs(epoch) > MILLISECONDS_ABOVE else epoch, UTC)


Moment = Annotated[datetime, BeforeValidator(_moment)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
SageMakerName = Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$")]
"""The name of an endpoint, a training job or a cluster (SageMaker API reference, CreateEndpoint, CreateTrainingJob)."""
GroupName = Annotated[str, StringConstraints(min_length=1, max_length=255)]
"""The name of an Auto Scaling group (EC2 Auto Scaling API reference, CreateAutoScalingGroup)."""
Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A string that AWS also sends as null."""


class Envelope[Detail](EventModel):
    """The EventBridge envelope (EventBridge User Guide, "Event structure")."""

    id: Name
    source: Name
    detail_type: Name = Field(alias="detail-type")
    account: Text = ""
    time: Moment
    region: Text = ""
    resources: tuple[str, ...] = ()
    detail: Detail


def read_model[T: EventModel](shape: type[T], value: object, what: str) -> T:
    """`value` as the shape; InputError names the first field that is wrong, the cause and how many more there are."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        path = ".".join(one_line(str(part), LONGEST_FIELD) for part in first["loc"][:12]) or "the event"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise InputError(f"reading a {what}: {path}: {one_line(first['msg'], 300)}{more}") from None


def require_mapping(value: object, what: str) -> Mapping[str, Any]:
    """`value` itself, if it is a JSON object."""
    if not isinstance(value, Mapping):
        raise InputError(f"reading {what}: a JSON object is expected, not {type(value).__name__}")
    return value


def records_with_ids(records: list[Any], what: str, *path: str) -> list[tuple[str, dict[str, Any]]]:
    """The records of a batch with their ids, which stand at `path`; InputError when none of them has one.

    A failure is reported by the id alone, and an unknown id fails the whole batch (Lambda Developer Guide, "Handling
    errors for an SQS event source"). So a record without one is logged and passed over.
    """
    found = []
    for index, record in enumerate(records):
        identity: Any = record
        for key in path:
            identity = identity.get(key) if isinstance(identity, dict) else None
        if isinstance(identity, str) and identity:
            found.append((identity, record))
        else:
            logger.error("a record without an id is passed over", extra={"of": what, "record": index})
            count(RecordsWithoutId=1)
    if records and not found:
        raise InputError(f"reading {what}: no record has a text as its {'.'.join(path)}")
    return found
