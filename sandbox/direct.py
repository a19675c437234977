"""The short way of a request: from the client to the simulated service and back, without the wire between them.

A request that the sandbox's own service takes, or a table, is answered here, as the wire would have brought it: by
botocore's shapes, in UTC, times to the millisecond. botocore checks its parameters as ever, and its handlers see them
and the answer; nothing is written down for the wire, addressed, signed or parsed. What is refused, by the gate or by
the service, goes the whole way, so that errors, retries and their parsing are botocore's own; but for one code, which
botocore makes a plain `ClientError` of.
`tests/sandbox/test_direct.py` compares both ways; the built functions always go the whole one.
"""

import json
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from botocore import xform_name
from botocore.awsrequest import AWSResponse
from botocore.model import OperationModel
from moto.core.botocore_stubber import MockRawResponse
from moto.core.exceptions import HTTPException, ServiceException
from moto.dynamodb.responses import DynamoHandler

from sandbox import shapes, strict

SERVICES = frozenset(
    {
        "application-autoscaling", "cloudwatch", "ecr", "pricing", "resourcegroupstaggingapi", "sagemaker",
        "savingsplans", "service-quotas",
    }
)  # fmt: skip
"""Services of the sandbox that speak JSON."""
INVALID = "ValidationException"
"""What SageMaker refuses with, also what it does not find: an error that has no exception and is never tried again."""
READ_RAW = frozenset({"DescribeEndpointConfig", "DescribeInferenceComponent"})
"""Operations of which the program reads the bytes of the answer (`rightsizer.aws.configuration`): they have some."""
ROWS = frozenset(
    {
        "BatchGetItem", "BatchWriteItem", "CreateTable", "DeleteItem", "DescribeTable", "GetItem", "PutItem", "Query",
        "Scan", "TransactWriteItems", "UpdateItem",
    }
)  # fmt: skip
"""Operations of DynamoDB on a table and its rows, which moto's own table answers: half of all requests."""
_PLAIN = {"string": str, "integer": int, "long": int, "boolean": bool, "timestamp": datetime}
"""The types of Python that botocore always takes for these kinds."""
_local = threading.local()
_whole: list[bool] = []


@contextmanager
def whole_way() -> Iterator[None]:
    """Let every request go the whole way for a while."""
    _whole.append(True)
    try:
        yield
    finally:
        _whole.pop()


def takes(world: Any, service: str, operation: str, region: str) -> bool:
    """Whether the short way leads to an operation."""
    return not _whole and _handler(world, service, operation, region) is not None


def answer(world: Any, service: str, model: OperationModel, sent: dict[str, Any], region: str, date: Any) -> Any:
    """(HTTP response, parsed answer), or None for a request that goes the whole way."""
    handler = _handler(world, service, model.name, region)
    params = _parameters(model, sent)
    if handler is None or params is None:
        return None
    call, fault = world.gate.arrive(service, model.name, sent)
    if fault is not None:
        _local.arrived = call, fault
        return None
    status, error, body = 200, None, b""
    try:
        if service in SERVICES and strict.on(model.name, "shape"):
            shapes.check(service, model.name, params, strict.shape_code(service))
        found = handler(params) or {}
    except (ServiceException, HTTPException) as refused:
        if service not in SERVICES or refused.code != INVALID or _knows(model, INVALID):
            _local.arrived, _local.refusal = (call, None), refused if service in SERVICES else None
            return None
        status, error, parsed = 400, INVALID, {"Error": {"Message": refused.message, "Code": INVALID}}
    else:
        parsed = _received(model.output_shape, found) if model.output_shape is not None else {}
        body = _body(service, model.name, found) if model.name in READ_RAW else body
    headers: Any = {name.lower(): value for name, value in date.items()}
    parsed["ResponseMetadata"] = {"HTTPStatusCode": status, "HTTPHeaders": headers, "RetryAttempts": 0}
    if call is not None:
        world.gate.leave(call, error)
    raw: Any = MockRawResponse(body)
    return AWSResponse(f"https://{service}.{region}", status, headers, raw), parsed


def _knows(model: OperationModel, code: str) -> bool:
    """Whether the service's model has an exception of its own for an error's code."""
    known: list[Any] = list(model.service_model.error_shapes)
    return any(shape.error_code == code for shape in known)


def _body(service: str, operation: str, found: dict[str, Any]) -> bytes:
    """The bytes of an answer: all that the newest model knows, also where the client's own model is older."""
    known = _received(shapes.operation(service, operation).output_shape, found)
    return json.dumps(known, default=datetime.timestamp).encode()


def _handler(world: Any, service: str, operation: str, region: str) -> Callable[[dict[str, Any]], Any] | None:
    if service in SERVICES:
        found: Callable[[dict[str, Any]], Any] | None = getattr(world.api(service), operation, None)
        return found
    if service != "dynamodb" or operation not in ROWS:
        return None

    def asked(params: dict[str, Any]) -> Any:
        """moto's table, asked as moto's own front asks it."""
        table: Any = DynamoHandler()
        table.current_account, table.region, table.params, table.body = world.account, region, params, params
        return getattr(table, xform_name(operation))().result

    return asked


def _parameters(model: OperationModel, sent: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return dict(_sent(model.input_shape, sent)) if model.input_shape is not None else {}
    except _BytesError:
        return None


class _BytesError(Exception):
    """Bytes go the whole way, on which they are written as text."""


def arrived() -> Any:
    """(row, error) of a request that was at the gate already; None for one that was not."""
    return _local.__dict__.pop("arrived", None)


def refusal() -> ServiceException | None:
    """What the service has refused the request with already."""
    found: ServiceException | None = _local.__dict__.pop("refusal", None)
    return found


def _sent(shape: Any, value: Any) -> Any:
    """A parameter as the service reads it: without absent members, times in whole seconds."""
    match shape.type_name:
        case "structure":
            if _is_text_of_table(shape, value):
                return dict(value)
            known = shape.members
            return {name: _sent(known[name], item) for name, item in value.items() if item is not None}
        case "list":
            return [_sent(shape.member, item) for item in value]
        case "map":
            return {str(name): _sent(shape.value, item) for name, item in value.items()}
        case "timestamp":
            return _moment(value).replace(microsecond=0)
        case "string":
            return str(value)
        case "blob":
            raise _BytesError
    return value


def _received(shape: Any, value: Any) -> Any:
    """An answer as the client reads it, a copy of what the service holds."""
    match shape.type_name:
        case "structure" if _is_text_of_table(shape, value):
            return dict(value)
        case "structure":
            return {name: _received(member, item) for name, member, item in _given(shape, value)}
        case "list":
            return _received_list(shape.member, value)
        case "map":
            return {str(name): _received(shape.value, item) for name, item in value.items()}
        case "timestamp":
            return _instant(value)
        case "integer" | "long":
            return int(value)
        case "float" | "double":
            return float(value)
        case "blob":
            return b64decode(value) if isinstance(value, str) else value
    return str(value) if isinstance(value, str) else value


def _received_list(member: Any, value: Any) -> list[Any]:
    if member.type_name == "double":  # datapoints come by the thousand
        return [float(item) for item in value]
    if member.type_name == "timestamp":
        whole = (type(item) is datetime and item.tzinfo is UTC and not item.microsecond for item in value)
        return list(value) if all(whole) else [_instant(item) for item in value]
    return [_received(member, item) for item in value]


def _given(shape: Any, value: Any) -> list[tuple[str, Any, Any]]:
    """The members of a structure that an answer has, in the order of its model: name, shape and value."""
    known = shape.members
    names = [name for name in value if name in known] if len(value) == 1 else known  # a row's value is one of ten
    return [(name, known[name], item) for name in names if (item := value.get(name)) is not None]


def is_valid(shape: Any, value: Any) -> bool:
    """Whether parameters are of the plain kinds that botocore finds nothing wrong with; else it is to look itself.

    Botocore's own look takes three times as long, and tells what is wrong.
    """
    kind, about = shape.type_name, shape.metadata
    if kind == "structure":
        if _is_text_of_table(shape, value):
            return True
        if type(value) is not dict or about.get("document") or (about.get("union") and len(value) != 1):
            return False
        known = shape.members
        whole = all(name in value for name in about.get("required", ()))
        return whole and all(name in known and is_valid(known[name], item) for name, item in value.items())
    if "min" in about and (not isinstance(value, str | list) or len(value) < about["min"]):
        return False
    if kind == "list":
        return type(value) is list and all(is_valid(shape.member, item) for item in value)
    if kind == "map":
        return type(value) is dict and all(type(key) is str and is_valid(shape.value, value[key]) for key in value)
    plain = _PLAIN.get(kind)
    return type(value) is plain and "jsonvalue" not in shape.serialization


def _is_text_of_table(shape: Any, value: Any) -> bool:
    """Whether it is a text or a number of a table, as nearly all that is asked of DynamoDB and all that it answers."""
    if shape.name != "AttributeValue" or type(value) is not dict or len(value) != 1:
        return False
    ((kind, text),) = value.items()
    return kind in ("S", "N") and type(text) is str


def _instant(value: Any) -> datetime:
    found = _moment(value)
    return found.replace(microsecond=found.microsecond // 1000 * 1000) if found.microsecond else found


def _moment(value: Any) -> datetime:
    if type(value) is datetime and value.tzinfo is UTC:
        return value
    if isinstance(value, float):  # of moto's table, as it writes it on the wire
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, datetime):
        raise TypeError(f"a time of the sandbox is a datetime, not {value!r}")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
