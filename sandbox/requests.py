"""What a signed HTTP request asks for: service, operation and parameters, named as boto3 names them.

The service is in the signature's scope (Signature Version 4), the operation in a header, a form member or the path, by
the protocol (Smithy, "AWS protocols"). moto's own parsers read the parameters by botocore's shapes.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote

from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.utils import get_service_model

from sandbox.plain import plain

type Environ = dict[str, Any]

_SIGNING_NAMES = {
    "monitoring": "cloudwatch", "tagging": "resourcegroupstaggingapi", "servicequotas": "service-quotas",
}  # fmt: skip
_INVOCATION = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")
"""The path of Lambda's Invoke (Lambda API reference)."""
_OF_S3: Mapping[tuple[str, bool], str] = {
    ("PUT", True): "PutObject",
    ("GET", True): "GetObject",
    ("HEAD", True): "HeadObject",
    ("DELETE", True): "DeleteObject",
    ("PUT", False): "CreateBucket",
    ("HEAD", False): "HeadBucket",
}
"""(method, whether the path has a key) to the operation of a request without a sub-resource (S3 API reference)."""


def described(environ: Environ) -> tuple[str, str, dict[str, Any]]:
    """(service, operation, parameters) of a request; what cannot be read is named by its method and path."""
    scope = re.search(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request", environ.get("HTTP_AUTHORIZATION", ""))
    service = scope[1] if scope else "unsigned"
    service = _SIGNING_NAMES.get(service, service)
    if service == "s3":
        return service, *_of_s3(environ)
    if environ["PATH_INFO"] == "/api/v1/query_range":
        query = parse_qs(environ.get("QUERY_STRING", ""))
        return service, "QueryMetrics", {key.capitalize(): values[0] for key, values in query.items()}
    if invoked := _INVOCATION.fullmatch(environ["PATH_INFO"]):
        kind = environ.get("HTTP_X_AMZ_INVOCATION_TYPE", "RequestResponse")
        return service, "Invoke", {"FunctionName": unquote(invoked[1]), "InvocationType": kind}
    request = Request(environ)
    operation = _operation(service, request)
    if operation is None:
        return service, f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}", {}
    return service, operation, _parameters(service, operation, request)


def _operation(service: str, request: Request) -> str | None:
    if target := request.headers.get("X-Amz-Target"):
        return str(target).rpartition(".")[2]
    if match := re.search(r"/operation/([^/?]+)", request.path):
        return match[1]
    if action := request.values.get("Action"):
        return str(action)
    name = request.path.strip("/")  # such as POST /DescribeSavingsPlans
    return name if service != "unsigned" and name in get_service_model(service).operation_names else None


def _parameters(service: str, operation: str, request: Request) -> dict[str, Any]:
    model = get_service_model(service)
    protocol = determine_request_protocol(model, request.content_type)
    if protocol not in PROTOCOL_PARSERS:  # CBOR, which moto cannot read: it refuses the request itself
        return {}
    parser = PROTOCOL_PARSERS[protocol](model.operation_model(operation))
    given = {
        "method": request.method,
        "values": request.values,
        "headers": request.headers,
        "body": request.get_data(),
        "url_path": request.path,
        "url_params": {},
    }
    read: dict[str, Any] = plain(parser.parse(given))
    return read


def _of_s3(environ: Environ) -> tuple[str, dict[str, Any]]:
    """Path-style requests: /bucket/key. A sub-resource in the query makes it another operation, left unnamed."""
    method, query = environ["REQUEST_METHOD"], parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    bucket, _, key = unquote(environ["PATH_INFO"]).lstrip("/").partition("/")
    params = {"Bucket": bucket} | ({"Key": key} if key else {})
    if method == "GET" and not key and query.get("list-type") == ["2"]:
        return "ListObjectsV2", params | {"Prefix": query.get("prefix", [""])[0]}
    named = _OF_S3.get((method, bool(key))) if set(query) <= {"x-id"} else None
    return named or f"{method} {environ['PATH_INFO']}", params
