"""A click in Slack, verified before anything in it is believed.

Only the standard library: this is on the path of `respond`, which must answer within three seconds of a cold start.
Source: Slack API documentation, "Verifying requests from Slack" and "Handling user interaction".
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

from rightsizer.model.trigger import Click, Interaction, NotClicked, NotVerified, Verb

WINDOW_S = 300
"""Slack's own advice: a request older than five minutes may be a replay."""
LARGEST_BODY = 256 * 1024
ACTION_PREFIX = "rightsizer_"
VERBS: Mapping[str, Verb] = {
    "approve": "approve",
    "reject": "reject",
    "snooze": "snooze",
    "details": "details",
    "rollback": "rollback",
}


def interaction(event: object, secret: str, now: datetime) -> Interaction:
    """What a Function URL event from Slack says. Never raises on what the event holds."""
    if not isinstance(event, Mapping):
        return NotVerified(400, "the event is no request of a Function URL")
    body = _body(event)
    if isinstance(body, NotVerified):
        return body
    headers = event.get("headers")
    refused = verify(headers if isinstance(headers, Mapping) else {}, body, secret, now)
    return refused if refused else _click(body)


def verify(headers: Mapping[str, Any], body: bytes, secret: str, now: datetime) -> NotVerified | None:
    """None when the raw body carries Slack's signature of the last five minutes, else why not."""
    lowered = {str(name).lower(): str(value) for name, value in headers.items()}
    timestamp = lowered.get("x-slack-request-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        return NotVerified(401, f"the request timestamp is {timestamp[:40]!r}, not a number of seconds")
    age = now.timestamp() - int(timestamp)
    if abs(age) > WINDOW_S:
        return NotVerified(401, f"the request was signed {age:.0f} s ago; at most {WINDOW_S} s are accepted")
    if not secret:
        return NotVerified(500, "there is no signing secret; store it in the secret that SlackSecret names")
    expected = "v0=" + hmac.new(secret.encode(), b"v0:%b:%b" % (timestamp.encode(), body), hashlib.sha256).hexdigest()
    given = lowered.get("x-slack-signature", "").encode(errors="replace")
    if not hmac.compare_digest(expected.encode(), given):
        return NotVerified(401, "the signature does not fit the body; is the signing secret the one of this Slack app?")
    return None


def _body(event: Mapping[str, Any]) -> bytes | NotVerified:
    """The raw bytes that Slack signed: Function URLs deliver forms in base64."""
    body = event.get("body")
    if not isinstance(body, str) or not body:
        return NotVerified(400, "the request has no body")
    if len(body) > LARGEST_BODY:
        return NotVerified(413, f"the body has {len(body)} characters; at most {LARGEST_BODY} are read")
    if not event.get("isBase64Encoded"):
        return body.encode(errors="surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return NotVerified(400, "the body claims to be base64 and is not")


def _click(body: bytes) -> Click | NotClicked:
    try:
        fields = parse_qs(body.decode(), max_num_fields=10)
        payload = json.loads(fields["payload"][0])
    except (UnicodeDecodeError, KeyError, ValueError, RecursionError):
        return NotClicked("the form has no payload field with JSON")
    kind = _at(payload, "type")
    if kind != "block_actions":
        return NotClicked(f"an interaction of type {kind[:40]!r} asks nothing of us")
    action = payload.get("actions")
    first = action[0] if isinstance(action, list) and action else {}
    name = _at(first, "action_id")
    verb = VERBS.get(name.removeprefix(ACTION_PREFIX)) if name.startswith(ACTION_PREFIX) else None
    if verb is None:
        return NotClicked(f"the action {name[:80]!r} is not one of ours")
    proposal, user = _at(first, "value"), _at(payload, "user", "id")
    if not proposal or not user:
        return NotClicked(f"the action {name} carries no proposal or no user")
    return Click(
        verb, proposal, user, _at(payload, "team", "id"), _at(payload, "channel", "id"), _at(payload, "trigger_id")
    )


def _at(value: Any, *path: str) -> str:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
