"""The raw answer against the service model: fields that this botocore does not know.

botocore drops unknown members of an answer without a word. A configuration that is cloned from such an answer would
lose what the newer API put there (law 5), so the raw JSON is compared with the shape before anything is believed.
"""

import json
from collections.abc import Iterator
from typing import Any

UNKNOWN = "RightsizerUnknownFields"
"""Key under which `watch` leaves the paths in the parsed answer."""


def watch(client: Any, operation: str) -> None:
    """Let every answer of the operation carry the paths of its unknown fields under `UNKNOWN`."""
    client.meta.events.register(
        f"after-call.{client.meta.service_model.service_id.hyphenize()}.{operation}",
        _mark,
        unique_id=f"rightsizer-raw-{operation}",
    )


def unknown_paths(shape: Any, value: Any, path: str = "") -> Iterator[str]:
    """Paths of the keys in `value` that the botocore shape has no member for."""
    if value is None:
        return
    if shape.type_name == "structure" and isinstance(value, dict):
        members = {member.serialization.get("name", name): member for name, member in shape.members.items()}
        for key, inner in value.items():
            here = f"{path}.{key}" if path else str(key)
            if key in members:
                yield from unknown_paths(members[key], inner, here)
            else:
                yield here
    elif shape.type_name == "list" and isinstance(value, list):
        for number, inner in enumerate(value):
            yield from unknown_paths(shape.member, inner, f"{path}[{number}]")
    elif shape.type_name == "map" and isinstance(value, dict):
        for key, inner in value.items():
            yield from unknown_paths(shape.value, inner, f"{path}.{key}")


def _mark(http_response: Any, parsed: dict[str, Any], model: Any, **_: Any) -> None:
    if http_response.status_code >= 300:
        return
    try:
        body = json.loads(http_response.content)
    except ValueError:
        parsed[UNKNOWN] = ("(the raw answer is not JSON)",)
        return
    parsed[UNKNOWN] = tuple(unknown_paths(model.output_shape, body))
