"""The short way of a request: from the client to the simulated service and back, without the wire between them.

A request that the sandbox's own service takes, or a table, is answered here, as the wire would have brought it: by
botocore's shapes, in UTC, times to the millisecond. botocore checks its parameters as ever, and its handlers see them
and the answer; nothing is written down for the wire, addressed, signed or parsed. What is refused, by the gate or by
the service, goes the whole way, so that errors, retries and their parsing are botocore's own.
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
READ_RAW = frozenset({"DescribeEndpointConfig", "DescribeInferenceComponent"})
"""Operations of which the program reads the bytes of the answer (`rightsizer.aws.configuration`): they have some."""
ROWS = frozenset(
    {
        "BatchGetItem", "BatchWriteItem", "CreateTable", "DeleteItem", "DescribeTable", "GetItem", "PutItem", "Query",
        "Scan", "TransactWriteItems", "UpdateItem",
    }
)  # fmt: skip
"""Operations of DynamoDB on a table and its rows, which moto's own table answers: half of all requests."""
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
    try:
        if service in SERVICES and strict.on(model.name, "shape"):
            shapes.check(service, model.name, params, strict.shape_code(service))
        found = handler(params) or {}
    except (ServiceException, HTTPException) as refused:
        _local.arrived, _local.refusal = (call, None), refused if service in SERVICES else None
        return None
    parsed = _received(model.output_shape, found) if model.output_shape is not None else {}
    headers = {name.lower(): value for name, value in date.items()}
    parsed["ResponseMetadata"] = {"HTTPStatusCode": 200, "HTTPHeaders": headers, "RetryAttempts": 0}
    if call is not None:
        world.gate.leave(call, None)
    body = MockRawResponse(_body(service, model.name, found) if model.name in READ_RAW else b"")
    return AWSResponse(f"https://{service}.{region}", 200, headers, body), parsed  # type: ignore[arg-type]


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
        case "structure":
            members = ((name, member, value.get(name)) for name, member in shape.members.items())
            return {name: _received(member, item) for name, member, item in members if item is not None}
        case "list":
            kind = shape.member.type_name
            if kind == "double":  # datapoints come by the thousand
                return [float(item) for item in value]
            if kind == "timestamp":
                whole = (type(item) is datetime and item.tzinfo is UTC and not item.microsecond for item in value)
                return list(value) if all(whole) else [_instant(item) for item in value]
            return [_received(shape.member, item) for item in value]
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
