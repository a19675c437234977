"""Puts the sandbox's services behind moto's front, through moto's registries only.

moto resolves each request by ``moto.<service>.urls.url_paths``; a service that moto lacks is found by
``moto.backend_index.backend_url_patterns`` and ``moto.__path__``. Nothing of moto is replaced while `install` has not
been called, and `install` changes only these registries and botocore's list of built-in handlers (as moto itself does).
"""

import importlib
import json
import re
import threading
from dataclasses import replace
from datetime import datetime
from email.utils import format_datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from unittest.mock import patch

import moto
from botocore import handlers
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto import backend_index
from moto.core.botocore_stubber import MockRawResponse
from moto.core.responses import ActionResult

from sandbox import direct, front, models, shapes, strict
from sandbox.answers import error_answer
from sandbox.clock import Clock
from sandbox.cloudwatch.promql import Telemetry
from sandbox.gate import Call, Gate
from sandbox.plain import plain
from sandbox.refusals import NotSimulated

if TYPE_CHECKING:
    from collections.abc import Callable


class World(Protocol):
    """What the bridge needs of the account behind it."""

    gate: Gate
    clock: Clock
    telemetry: Telemetry

    def api(self, service: str) -> object:
        """The simulated service, with one method per operation, or None-like when it has none."""
        ...


REFUSED = "https://refused.invalid/"
"""An address that moto does not answer for; nothing is sent to it, since the answer is there already."""

_whole_way: Any = vars(BaseClient)["_make_api_call"]
_current: list[World] = []
_request = threading.local()

_EVENT_NAMES = {
    "application-auto-scaling": "application-autoscaling",
    "auto-scaling": "autoscaling",
    "resource-groups-tagging-api": "resourcegroupstaggingapi",
    "cost-explorer": "ce",
    "secrets-manager": "secretsmanager",
    "eventbridge": "events",
    "cloudwatch-promql": "cloudwatch",
}
_NEW_SERVICES = ("pricing", "savingsplans")


class _Every(frozenset[str]):
    """All operations: the sandbox answers what its service has a method for, moto the rest."""

    def __contains__(self, operation: object) -> bool:
        return True


# moto module -> (botocore service, operations of moto that are true enough to keep)
_OURS: dict[str, tuple[str, frozenset[str]]] = {
    "sagemaker": (
        "sagemaker",
        frozenset({"CreateTrainingJob", "DescribeTrainingJob", "ListTrainingJobs", "DescribeProcessingJob",
                   "ListProcessingJobs", "CreateCluster", "DescribeCluster",
                   "ListClusters", "DescribeClusterNode", "ListClusterNodes", "DeleteCluster"}),
    ),
    "cloudwatch": ("cloudwatch", frozenset()),
    "applicationautoscaling": ("application-autoscaling", frozenset()),
    "resourcegroupstaggingapi": ("resourcegroupstaggingapi", frozenset()),
    "servicequotas": ("service-quotas", frozenset()),
    "ce": ("ce", frozenset()),
    "autoscaling": ("autoscaling", _Every()),
    "ec2": ("ec2", _Every()),
    "iam": ("iam", _Every()),
    "sts": ("sts", _Every()),
    "ecr": ("ecr", _Every()),
    "cloudformation": ("cloudformation", _Every()),
}  # fmt: skip


def enter(world: World) -> None:
    """Make `world` the account that answers. One at a time: AWS has one address too."""
    if _current:
        raise RuntimeError("a sandbox is already running in this process; leave it first")
    _current.append(world)


def leave(world: World) -> None:
    """Take `world` off the line."""
    _current.remove(world)


def current() -> World | None:
    """The account that answers, if any."""
    return _current[-1] if _current else None


@cache
def install() -> None:
    """Register the sandbox's services with moto. Call it before the first client, mock or server."""
    models.share()
    front.install()
    for module, (service, kept) in _OURS.items():
        urls = importlib.import_module(f"moto.{module}.urls")
        base = _dispatcher_class(urls.url_paths)
        root = "{0}/$" if "{0}/$" in urls.url_paths else "{0}/"
        urls.url_paths[root] = response_class(base, service, kept).dispatch
        if module == "cloudwatch":  # rpc-v2-cbor posts to a path of its own
            urls.url_paths["{0}/api/v1/query_range$"] = _query_range
            urls.url_paths["{0}/service/(?P<service>[^/]+)/operation/(?P<operation>[^/]+)$"] = urls.url_paths["{0}/$"]
    for module, service in (("awslambda", "lambda"), ("scheduler", "scheduler")):
        paths = importlib.import_module(f"moto.{module}.urls").url_paths
        paths.update({pattern: _by_path(service, dispatch) for pattern, dispatch in paths.items()})
    moto.__path__.append(str(Path(__file__).with_name("newservices")))
    for service in _NEW_SERVICES:
        pattern = re.compile(rf"https?://(api\.)?{service}(\.(.+))?\.amazonaws\.com")
        backend_index.backend_url_patterns.append((service, pattern))
    handlers.BUILTIN_HANDLERS.insert(0, ("before-send", _before_send))
    handlers.BUILTIN_HANDLERS.append(("before-parameter-build", _remember_params))
    handlers.BUILTIN_HANDLERS.append(("response-received", _after_response))
    patch.object(BaseClient, "_make_api_call", _make_api_call).start()


def _dispatcher_class(url_paths: dict[str, Any]) -> Any:
    dispatch: Callable[..., Any] = next(iter(url_paths.values()))
    return dispatch.__self__  # type: ignore[attr-defined]


def response_class(base: Any, service: str, kept: frozenset[str]) -> Any:
    """A Response of moto whose operations are the methods of the sandbox's service of the same name."""

    class Response(base):  # type: ignore[misc]
        def call_action(self) -> Any:
            name = _operation_name(self)
            world = current()
            if world is None:
                raise NotSimulated(f"{service}:{name}: no sandbox is running")
            handler = getattr(world.api(service), name, None)
            if handler is None:
                if name in kept:
                    return super().call_action()
                raise NotSimulated(f"{service}:{name} is not simulated (docs/sandbox.md lists what is)")
            return self._answer(name, handler)

        def _answer(self, name: str, handler: Any) -> Any:
            self.automated_parameter_parsing = True
            self.parse_parameters(self.normalized_request)
            params = plain(self.params)
            try:
                answer = _handled(service, name, handler, params)
                if name == "GetMetricData" and "json" in str(self.headers.get("content-type", "")).lower():
                    return _points(answer)
                result = _Answer(answer)
            except moto.core.exceptions.ServiceException as refusal:
                result = ActionResult(refusal)
            return self._finish(result)

        def _finish(self, result: Any) -> Any:
            status, headers, body = self.serialized(result)
            headers["status"] = str(status)
            headers.update(_dated())
            return status, headers, body

    Response.boto3_service_name = service
    return Response


def _handled(service: str, name: str, handler: Any, params: dict[str, Any]) -> Any:
    """What the service answers; it is not asked again for what it has refused on the short way."""
    if refused := direct.refusal():
        raise refused
    if strict.on(name, "shape"):
        shapes.check(service, name, params, strict.shape_code(service))
    return handler(params) or {}


class _Answer(ActionResult):  # type: ignore[misc]
    """What a simulated service answers: a dictionary with the names of botocore's shapes, and no others."""

    def execute_result(self, context: Any) -> Any:
        """The answer in the service's protocol."""
        return super().execute_result(replace(context, serializer_class=_by_name(context.serializer_class)))


@cache
def _by_name(serializer: Any) -> Any:
    """The serialiser without the search for a member's value under other names, which is half of its time."""
    return type(serializer.__name__, (serializer,), {"get_value": lambda self, row, name, shape: row.get(name)})


def _dated() -> dict[str, str]:
    """The time of the account as a header, by which a client knows how far its own clock is off."""
    world = current()
    return {} if world is None else {"date": _http_date(world.clock.now)}


@lru_cache(8)
def _http_date(now: datetime) -> str:
    return format_datetime(now, usegmt=True)


def _query_range(request: Any, full_url: str, headers: Any) -> tuple[int, dict[str, str], str]:
    """CloudWatch's Prometheus-compatible API, which has a path instead of an operation."""
    world = current()
    if world is None:
        raise NotSimulated("cloudwatch:QueryMetrics: no sandbox is running")
    return world.telemetry.answer(full_url)


def _by_path(service: str, dispatch: Any) -> Any:
    """A service whose operations are paths: a stack that is deployed answers what it knows, moto the rest."""

    def answer(request: Any, full_url: str, headers: Any) -> Any:
        world = current()
        known = getattr(world.api(service), "http", None) if world is not None else None
        body = getattr(request, "body", None) or getattr(request, "data", b"") or b""
        found = known(request.method, full_url, body, headers) if known is not None else None
        return found if found is not None else dispatch(request, full_url, headers)

    return answer


def _points(answer: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """GetMetricData in one go: moto's serialiser takes its time for each of a hundred thousand datapoints."""
    body = json.dumps({key: value for key, value in answer.items() if value is not None}, default=datetime.timestamp)
    return 200, {"content-type": "application/x-amz-json-1.0", "status": "200"}, body.encode()


def _operation_name(response: Any) -> str:
    match = re.search(r"/operation/([^/?]+)", response.path)
    return match.group(1) if match else str(response._get_action())


def service_of_event(event_name: str) -> tuple[str, str]:
    """(boto3 service name, operation) of a botocore event such as ``before-send.sagemaker.CreateEndpoint``."""
    _, service, operation = event_name.split(".", 2)
    return _EVENT_NAMES.get(service, service), operation


def _remember_params(params: dict[str, Any], **_: Any) -> None:
    _request.params = dict(params)


def _make_api_call(client: Any, operation: str, params: dict[str, Any]) -> Any:
    """A request of a client: on the short way where there is one, else as botocore makes it."""
    found = _short_way(client, operation, params)
    return _whole_way(client, operation, params) if found is None else found


def _short_way(client: Any, operation: str, params: dict[str, Any]) -> Any:
    world, about = current(), client.meta
    if world is None or "amazonaws.com" not in about.endpoint_url:  # a server on loopback has its own gate
        return None
    service = about.service_model.service_name
    if not direct.takes(world, service, operation, about.region_name):
        return None
    model = about.service_model.operation_model(operation)
    name, asked = f"{about.service_model.service_id.hyphenize()}.{operation}", {"model": model, "context": {}}
    about.events.emit(f"before-parameter-build.{name}", params=params, **asked)
    validator: Any = getattr(client._serializer, "_param_validator", None)  # none with parameter_validation=False
    shape = model.input_shape if validator is not None else None
    if shape is not None and not direct.is_valid(shape, params) and validator.validate(params, shape).has_errors():
        return None
    found = direct.answer(world, service, model, dict(params), about.region_name, _dated())
    if found is None:
        return None
    http, parsed = found
    about.events.emit(f"after-call.{name}", http_response=http, parsed=parsed, **asked)
    if http.status_code >= 300:
        raise ClientError(parsed, operation)
    return parsed


def _before_send(event_name: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
    world = current()
    _request.call = None
    if world is None or "amazonaws.com" not in request.url:  # a server on loopback has its own gate
        return None
    service, operation = service_of_event(event_name)
    call, fault = direct.arrived() or world.gate.arrive(service, operation, getattr(_request, "params", {}))
    _request.call = call
    if fault is None:
        return None
    status, headers, body = error_answer(fault, service, dict(request.headers.items()))
    request.url = REFUSED  # botocore asks every listener, so moto would act on a request that was refused
    return AWSResponse(request.url, status, headers, MockRawResponse(body))  # type: ignore[arg-type]


def _after_response(parsed_response: Any = None, exception: BaseException | None = None, **_: Any) -> None:
    call: Call | None = getattr(_request, "call", None)
    world = current()
    if call is None or world is None:
        return
    _request.call = None
    error = (parsed_response or {}).get("Error", {}).get("Code") or (type(exception).__name__ if exception else None)
    world.gate.leave(call, error)
