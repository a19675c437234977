"""What AWS refuses, operation by operation: one table for each service, judged before a request reaches its service.

    fault = judge("resourcegroupstaggingapi", "GetResources", params)

A check that needs the request alone has a predicate here and runs at the gate, so that services that moto answers are
strict too. A check that needs the account's state runs in the service, which asks `on` whether it counts. What moto
refuses by itself is listed without a predicate. Limits, patterns and enums of botocore's shapes are one check of each
operation, "shape".

Sources: the API reference page of the operation unless a check names another; botocore carries the same text. AWS
publishes almost no wording: texts are [assumed] unless `text` is given. Match on codes only.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sandbox import shapes
from sandbox.refusals import AwsRefusal

type Params = Mapping[str, Any]
type Key = tuple[str, str]
"""(service as boto3 calls it, operation)."""


class By(StrEnum):
    """Who refuses."""

    RULE = "rule"
    """The predicate of the check, at the gate."""
    STATE = "state"
    """The simulated service, which knows the account."""
    MOTO = "moto"
    """moto, of itself."""
    SHAPE = "shape"
    """botocore's shape of the request."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that AWS refuses. `id` is unique within its operation; `says` completes "AWS refuses ..."."""

    id: str
    says: str
    code: str
    broken: Callable[[Params], object] | None = None
    by: By = By.RULE
    source: str = ""
    text: str = ""

    @property
    def message(self) -> str:
        """The text of the refusal."""
        return self.text or f"Not allowed: {self.says}."


SHAPE_CODES: Mapping[str, str] = {
    "autoscaling": "ValidationError",
    "cloudformation": "ValidationError",
    "cloudwatch": "ValidationError",
    "ec2": "InvalidParameterValue",
    "ecr": "InvalidParameterException",
    "iam": "ValidationError",
    "pricing": "InvalidParameterException",
    "resourcegroupstaggingapi": "InvalidParameterException",
    "s3": "InvalidArgument",
    "service-quotas": "IllegalArgumentException",
    "sns": "InvalidParameter",
    "sqs": "InvalidParameterValue",
}
"""The code of a request whose shape is wrong; ValidationException where none is named."""
SHAPED_AT_THE_GATE = frozenset(
    {
        "autoscaling",
        "cloudformation",
        "dynamodb",
        "ec2",
        "ecr",
        "events",
        "iam",
        "lambda",
        "s3",
        "scheduler",
        "secretsmanager",
        "sns",
        "sqs",
        "ssm",
    }
)
"""Services whose answers are moto's, in part or whole; the others check shapes where they parse the request."""

_off: set[tuple[str, str]] = set()


def shape_code(service: str) -> str:
    """The code of a refusal by shape."""
    return SHAPE_CODES.get(service, "ValidationException")


def shape(service: str, says: str) -> Check:
    """The check of a request against botocore's shape, which `says` sums up."""
    return Check("shape", says, shape_code(service), by=By.SHAPE)


def state(id: str, says: str, code: str = "ValidationException", *, source: str = "") -> Check:
    """A check that the simulated service makes."""
    return Check(id, says, code, by=By.STATE, source=source)


def moto(id: str, says: str, code: str) -> Check:
    """A refusal that moto makes of itself."""
    return Check(id, says, code, by=By.MOTO)


def on(operation: str, check: str) -> bool:
    """Whether the check of the operation counts; tests take one out to see that its refusal comes from it."""
    return (operation, check) not in _off


@contextmanager
def without(operation: str, check: str) -> Iterator[None]:
    """Take one check out for a while."""
    _off.add((operation, check))
    try:
        yield
    finally:
        _off.discard((operation, check))


def judge(service: str, operation: str, params: Params) -> tuple[str, str] | None:
    """(code, message) of the first check at the gate that refuses the request, or None."""
    from sandbox.strict.tables import CHECKS

    found = CHECKS.get((service, operation))
    if found is None:
        return None
    if service in SHAPED_AT_THE_GATE and on(operation, "shape"):
        try:
            shapes.check(service, operation, dict(params), shape_code(service))
        except AwsRefusal as refusal:
            return refusal.code, refusal.message
    for check in found:
        if check.broken is not None and on(operation, check.id) and check.broken(params):
            return check.code, check.message
    return None
