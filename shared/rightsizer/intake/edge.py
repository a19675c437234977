"""What every shape at the edge shares: tolerant of new fields, strict about the ones we use."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from rightsizer.errors import InputError

MILLISECONDS_ABOVE = 1e11
"""Epoch numbers above this are milliseconds: as seconds it would be the year 5138."""


class Shape(BaseModel):
    """A documented shape. Unknown fields are ignored: AWS adds some every year."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


def _moment(value: object) -> object:
    """SageMaker sends times as number, float or string of epoch milliseconds; CloudWatch as ISO 8601 with +0000."""
    if isinstance(value, bool) or value is None:
        raise ValueError("a time is expected")
    if isinstance(value, str) and not value.strip().replace(".", "", 1).isdecimal():
        parsed = datetime.fromisoformat(value)
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    if not isinstance(value, int | float | str):
        raise ValueError("a time is expected")
    try:
        epoch = float(value)
        return datetime.fromtimestamp(epoch / 1000 if abs(epoch) > MILLISECONDS_ABOVE else epoch, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"no such time ({error})") from None


Moment = Annotated[datetime, BeforeValidator(_moment)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A string that AWS also sends as null."""


class Envelope[Detail](Shape):
    """The EventBridge envelope (EventBridge User Guide, "Event structure")."""

    id: Name
    source: Name
    detail_type: Name = Field(alias="detail-type")
    account: Text = ""
    time: Moment
    region: Text = ""
    resources: tuple[str, ...] = ()
    detail: Detail


def read[T: Shape](shape: type[T], value: object, what: str) -> T:
    """`value` as the shape; InputError names the first field that is wrong, the cause and how many more there are."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        path = ".".join(str(part) for part in first["loc"]) or "the event"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise InputError(f"reading a {what}: {path}: {first['msg']}{more}") from None


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """`value` itself, if it is a JSON object."""
    if not isinstance(value, Mapping):
        raise InputError(f"reading {what}: a JSON object is expected, not {type(value).__name__}")
    return value
