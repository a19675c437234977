"""A click in Slack, verified before anything in it is believed.

Only the standard library: this is on the path of `respond`, which must answer within three seconds of a cold start.
Source: Slack API documentation, "Verifying requests from Slack" and "Handling user interaction".
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from urllib.parse import parse_qs

from rightsizer.domain.approvers import SlackKeys
from rightsizer.domain.trigger import (
    REASON_FORM,
    ButtonAsk,
    Click,
    DecisionAsked,
    Interaction,
    NotClicked,
    NotVerified,
    OptionTaken,
    PageAsked,
    RollbackAsked,
    UnknownButton,
    WakePressed,
)

WINDOW_S = 300
"""Slack's own advice: a request older than five minutes may be a replay."""
LARGEST_BODY = 256 * 1024
ACTION_PREFIX = "rightsizer_"
TAKE = re.compile(r"rightsizer_take_[0-9]{1,2}")
OPENS_PAGE = "rightsizer_open"
"""Slack sends the press of a button with a link too; the browser answers it."""
VALUE = re.compile(r"(?P<id>[^~]{1,200})(?:~(?P<revision>[0-9]{1,4})(?:~(?P<number>[0-9]{1,4}))?)?")
"""What a button carries: the id, the revision that the message shows, and a number of days or of an option."""
LONGEST_REASON = 600
SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")


class SecretReader(Protocol):
    """The keys of our Slack app."""

    def keys(self) -> SlackKeys:
        """The keys as they are known; RightsizerError when they cannot be read."""
        ...

    def renew(self) -> SlackKeys | None:
        """The keys read anew after one did not fit; None where the known ones hold."""
        ...


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """Claim of a request, before any key is known."""

    timestamp: str
    signature: str
    body: bytes

    def is_signed_by(self, keys: SlackKeys) -> bool:
        """Whether the signature is that of these keys over the raw body."""
        base = b"v0:%b:%b" % (self.timestamp.encode(), self.body)
        expected = "v0=" + hmac.new(keys.signing_secret.encode(), base, hashlib.sha256).hexdigest()
        return hmac.compare_digest(expected, self.signature)


def parse_interaction(event: object, secret: SecretReader, now: datetime) -> Interaction:
    """Click that a Function URL event from Slack carries.

    What is plainly no click of now costs no reading of the secret.

    Raises only what reading the secret raises, whatever the event holds.
    """
    if not isinstance(event, Mapping):
        return NotVerified(400, "the event is no request of a Function URL")
    body = _body(event)
    if isinstance(body, NotVerified):
        return body
    headers = event.get("headers")
    verified = verify_signature(headers if isinstance(headers, Mapping) else {}, body, secret, now)
    if isinstance(verified, NotVerified):
        return verified
    signed, keys = verified
    return _click(body, keys, datetime.fromtimestamp(int(signed.timestamp), UTC))


def verify_signature(
    headers: Mapping[str, Any], body: bytes, secret: SecretReader, now: datetime
) -> tuple[SignedRequest, SlackKeys] | NotVerified:
    """The claim of a request and the keys that it was signed with, else why nobody may believe it.

    Keys that do not fit are read anew once, since the secret may have been rotated. Raises what reading them raises.
    """
    signed = signed_request(headers, body, now)
    if isinstance(signed, NotVerified):
        return signed
    keys: SlackKeys | None = secret.keys()
    if keys and not signed.is_signed_by(keys):
        keys = secret.renew()
    if keys is None or not signed.is_signed_by(keys):
        return NotVerified(401, "the signature does not fit the body; is the signing secret the one of this Slack app?")
    return signed, keys


def signed_request(headers: Mapping[str, Any], body: bytes, now: datetime) -> SignedRequest | NotVerified:
    """Signed claim of a request in Slack's form of the last five minutes, or why not."""
    lowered = {str(name).lower(): str(value) for name, value in headers.items()}
    timestamp = lowered.get("x-slack-request-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        return NotVerified(401, f"the request timestamp is {timestamp[:40]!r}, not a number of seconds")
    age = now.timestamp() - int(timestamp)
    if abs(age) > WINDOW_S:
        return NotVerified(401, f"the request was signed {age:.0f} s ago; at most {WINDOW_S} s are accepted")
    signature = lowered.get("x-slack-signature", "")
    if not SIGNATURE.fullmatch(signature):
        return NotVerified(401, f"the signature is {signature[:20]!r}, not v0= and 64 hexadecimal digits")
    return SignedRequest(timestamp, signature, body)


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


def _click(body: bytes, keys: SlackKeys, sent_at: datetime) -> Click | NotClicked | NotVerified:
    try:
        fields = parse_qs(body.decode(), max_num_fields=10)
        payload = json.loads(fields["payload"][0])
    except (UnicodeDecodeError, KeyError, ValueError, RecursionError):
        return NotClicked("the form has no payload field with JSON")
    kind = _at(payload, "type")
    if kind not in ("block_actions", "view_submission"):
        return NotClicked(f"an interaction of type {kind[:40]!r} asks nothing of us")
    if foreign := _workspace_problem(payload, keys):
        return NotVerified(403, foreign)
    kept = _kept(_at(payload, "view", "private_metadata"))
    if kind == "view_submission":
        return _submission(payload, kept, sent_at)
    action = payload.get("actions")
    first = action[0] if isinstance(action, list) and action else {}
    name = _at(first, "action_id")
    if not name.startswith(ACTION_PREFIX) or name == OPENS_PAGE:
        return NotClicked(f"the action {name[:80]!r} is not one of ours")
    value = VALUE.fullmatch(_at(first, "value") or _at(first, "selected_option", "value"))
    user = _at(payload, "user", "id")
    if not user:
        return NotClicked(f"the action {name} carries no user")
    return Click(
        _asked(name, value) if value else UnknownButton(name.removeprefix(ACTION_PREFIX)),
        user,
        _at(payload, "team", "id"),
        _at(payload, "channel", "id"),
        _at(payload, "trigger_id"),
        _at(payload, "response_url") or kept.get("response_url", ""),
        sent_at,
        _at(payload, "view", "id"),
    )


def _submission(payload: Any, kept: Mapping[str, str], sent_at: datetime) -> Click | NotClicked:
    """A form that was sent: so far the one that asks why a proposal is rejected.

    One of ours that cannot be read is a click all the same: an empty answer would close it, as if it were recorded.
    """
    callback = _at(payload, "view", "callback_id")
    value, user = VALUE.fullmatch(kept.get("value", "")), _at(payload, "user", "id")
    if not callback.startswith(ACTION_PREFIX) or not user:
        return NotClicked(f"the form {callback[:40]!r} is not one of ours, or carries no user")
    text = _at(payload, "view", "state", "values", "why", "why", "value")[:LONGEST_REASON].strip()
    return Click(
        DecisionAsked("reject", value["id"], int(value["revision"] or 0), comment=text)
        if value and callback == REASON_FORM
        else UnknownButton(callback.removeprefix(ACTION_PREFIX)),
        user,
        _at(payload, "team", "id"),
        "",
        _at(payload, "trigger_id"),
        kept.get("response_url", ""),
        sent_at,
        _at(payload, "view", "id"),
        is_form=True,
    )


def _asked(action: str, value: re.Match[str]) -> ButtonAsk:
    """What a button of ours asks for, by its action and by what it carries."""
    subject, revision, number = value["id"], int(value["revision"] or 0), int(value["number"] or 0)
    if TAKE.fullmatch(action):
        return OptionTaken(subject, revision, number)
    match action.removeprefix(ACTION_PREFIX):
        case "approve" | "test" | "reject" | "snooze" as verb:
            return DecisionAsked(verb, subject, revision, number)
        case "rollback":
            return RollbackAsked(subject)
        case "wake":
            return WakePressed(subject, timedelta(minutes=number))
        case "details" | "report" as page:
            return PageAsked(page, subject)
        case unknown:
            return UnknownButton(unknown)


def _kept(text: str) -> dict[str, str]:
    """What our modal carried along; Slack signs it with the rest, and people do not see it."""
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return {key: one for key, one in found.items() if isinstance(one, str)} if isinstance(found, dict) else {}


def _workspace_problem(payload: Any, keys: SlackKeys) -> str:
    """Why a signed click is not one of our workspace and app; empty when it is. User ids are those of a workspace."""
    for name, ours, theirs in (
        ("team_id", keys.team_id, _at(payload, "team", "id")),
        ("app_id", keys.app_id, _at(payload, "api_app_id")),
    ):
        if ours and ours != theirs:
            return f"the click has the {name} {theirs[:40]!r}, and the Slack secret has {ours[:40]!r}"
    return ""


def _at(value: Any, *path: str) -> str:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
