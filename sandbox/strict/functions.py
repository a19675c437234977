"""Lambda and EventBridge Scheduler, as they are asked about a deployed stack."""

import json
from collections.abc import Mapping

from sandbox.strict import Check, Key, Params, moto, shape

LAMBDA, SCHEDULER, MISSING = "lambda", "scheduler", "ResourceNotFoundException"
LARGEST_PAYLOAD = 6 * 1024 * 1024
LONGEST_NAME = 64


def _payload(p: Params) -> bytes:
    given = p.get("Payload") or b""
    return given.encode() if isinstance(given, str) else bytes(given)


def _no_json(p: Params) -> bool:
    try:
        json.loads(_payload(p) or b"null")
    except ValueError:
        return True
    return False


def _long_name(p: Params) -> bool:
    name = p["FunctionName"]
    return ":" not in name and len(name) > LONGEST_NAME


_NAME = Check("name", "a bare name of more than 64 characters", "ValidationException", _long_name)

CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (LAMBDA, "Invoke"): (
        shape(LAMBDA, "a name of more than 256 characters, another type of invocation"),
        _NAME,
        Check(
            "payload",
            "a synchronous payload of more than 6 MB",
            "RequestTooLargeException",
            lambda p: len(_payload(p)) > LARGEST_PAYLOAD,
            source="Lambda quotas",
        ),
        Check("content", "a payload that is no JSON", "InvalidRequestContentException", _no_json),
        moto("unknown", "a function that does not exist", MISSING),
    ),
    (LAMBDA, "GetFunctionConfiguration"): (
        shape(LAMBDA, "a name of more than 256 characters"),
        _NAME,
        moto("unknown", "a function that does not exist", MISSING),
    ),
    (LAMBDA, "GetEventSourceMapping"): (
        shape(LAMBDA, "an id of other than 36 characters"),
        moto("unknown", "a mapping that does not exist", MISSING),
    ),
    (SCHEDULER, "GetSchedule"): (
        shape(SCHEDULER, "a name of more than 64 characters, or with a space"),
        moto("unknown", "a schedule that does not exist", MISSING),
    ),
}
