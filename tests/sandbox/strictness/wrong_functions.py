"""Refused requests about a deployed stack, its functions and schedules; see `wrong`."""

from typing import Any

LISTED = ("EndpointConfigs", "Models", "InferenceComponents")
OF_A_STACK: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("cloudformation", "ListStackResources"): {"shape": {"NextToken": "x" * 1025}},
    ("lambda", "Invoke"): {
        "shape": {"InvocationType": "Later"},
        "payload": {"Payload": b'"' + b"x" * (6 * 1024 * 1024) + b'"'},
        "content": {"Payload": b"no JSON"},
    },
    ("lambda", "GetFunctionConfiguration"): {"shape": {"FunctionName": "x" * 257}},
    ("lambda", "GetEventSourceMapping"): {"shape": {"UUID": "1"}},
    ("scheduler", "GetSchedule"): {"shape": {"Name": "x" * 65}},
}
