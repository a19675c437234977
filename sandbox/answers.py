"""Error answers on the wire, in the protocol that the request speaks.

Shapes: the AWS protocol definitions in botocore (`botocore.parsers`): json and rest-json carry ``__type``, query and
ec2 an XML document, rest-xml an ``Error`` element, rpc-v2-cbor a CBOR map with ``__type``.
"""

import json
from collections.abc import Mapping
from xml.sax.saxutils import escape

from sandbox.gate import Fault

type Answer = tuple[int, dict[str, str], bytes]


def error_answer(fault: Fault, service: str, headers: Mapping[str, str | bytes]) -> Answer:
    """Status, headers and body of `fault` for a request with these headers."""
    kind = _lower(headers).get("content-type", "")
    if "cbor" in kind:
        body = b"\xa2" + b"".join(_cbor(text) for text in ("__type", fault.code, "message", fault.message))
        return fault.status, {"content-type": "application/cbor", "smithy-protocol": "rpc-v2-cbor"}, body
    if service == "s3":
        return fault.status, {"content-type": "application/xml"}, _xml("<Error>{}</Error>", fault)
    if service == "ec2":
        document = "<Response><Errors><Error>{}</Error></Errors><RequestID>sandbox</RequestID></Response>"
        return fault.status, {"content-type": "text/xml"}, _xml(document, fault)
    if "form-urlencoded" in kind:
        document = "<ErrorResponse><Error><Type>Sender</Type>{}</Error><RequestId>sandbox</RequestId></ErrorResponse>"
        return fault.status, {"content-type": "text/xml"}, _xml(document, fault)
    body = json.dumps({"__type": fault.code, "message": fault.message, "Message": fault.message}).encode()
    return fault.status, {"content-type": "application/json", "x-amzn-errortype": fault.code}, body


def _xml(document: str, fault: Fault) -> bytes:
    return document.format(f"<Code>{escape(fault.code)}</Code><Message>{escape(fault.message)}</Message>").encode()


def _cbor(text: str) -> bytes:
    raw = text.encode()
    if len(raw) < 24:
        return bytes([0x60 + len(raw)]) + raw
    return (bytes([0x78, len(raw)]) if len(raw) < 256 else b"\x79" + len(raw).to_bytes(2, "big")) + raw


def _lower(headers: Mapping[str, str | bytes]) -> dict[str, str]:
    return {name.lower(): value.decode() if isinstance(value, bytes) else value for name, value in headers.items()}
