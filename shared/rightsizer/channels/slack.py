"""Posting to Slack by chat.postMessage and chat.update, over urllib3, which botocore brings anyway.

Source: Slack API documentation, "chat.postMessage" (thread_ts), "chat.update", "users.lookupByEmail" (scope
users:read.email), "Working with files" (getUploadURLExternal, the upload, completeUploadExternal; scope files:write),
and "Rate limits" (429 with Retry-After).
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3

from rightsizer.domain.message import Message, ProposalMessage
from rightsizer.domain.proposal import MessageRef
from rightsizer.domain.self_test import Check, Outcome
from rightsizer.errors import RightsizerError, ThrottledError, WriteRefusedError
from rightsizer.render.messages import slack_blocks, slack_line, thread_line

SLACK = "https://slack.com/api"
SLACK_ID = re.compile("[UWS][A-Z0-9]{6,20}")
"""A member (U, W) or a user group (S)."""
E_MAIL = re.compile(r"[A-Za-z0-9._%+=-]{1,64}@[A-Za-z0-9.-]{1,190}\.[A-Za-z]{2,24}")
TIMEOUT = urllib3.Timeout(connect=3, read=7)
LONGEST_WAIT_S = 10
"""A longer Retry-After is left to the retry of the stream: a function is not paid for sleeping."""


class Slack:
    """One channel of one workspace (port `Notifier`). `token` is asked for each call, so that a rotated one counts."""

    def __init__(
        self, token: Callable[[], str], channel: str, sleep: Callable[[float], None], endpoint: str = SLACK
    ) -> None:
        self._token = token
        self._channel = channel
        self._sleep = sleep
        self._endpoint = endpoint.rstrip("/")
        self._pool = urllib3.PoolManager(timeout=TIMEOUT, retries=False)

    def post(self, message: Message) -> MessageRef:
        """Post the message; its line is what notifications and screen readers say."""
        body: dict[str, Any] = {"channel": self._channel, "text": slack_line(message), "blocks": slack_blocks(message)}
        thread = message.thread if isinstance(message, ProposalMessage) else ""
        body |= {"unfurl_links": False} | ({"thread_ts": thread} if thread else {})
        answer = self._call("chat.postMessage", body)
        return MessageRef("", str(answer.get("channel", self._channel)), str(answer.get("ts", "")), "", thread=thread)

    def reply(self, ref: MessageRef, message: ProposalMessage) -> None:
        """Say in the thread of a message, or of the digest that it stands in, where its proposal stands."""
        body = {"channel": ref.channel, "thread_ts": ref.thread or ref.ts, "text": thread_line(message)}
        self._call("chat.postMessage", body | {"unfurl_links": False})

    def person(self, owner: str) -> str:
        """The Slack id of the person or group that the owner's tag names; empty where it names nobody of Slack.

        WriteRefusedError `missing_scope` where the app may not look up an e-mail.
        """
        name = owner.strip()
        if SLACK_ID.fullmatch(name):
            return name
        if not E_MAIL.fullmatch(name):
            return ""
        try:
            found = self._ask("users.lookupByEmail", {"email": name}).get("user")
        except WriteRefusedError as error:
            if error.code == "users_not_found":
                return ""
            raise
        named = str(found.get("id", "")) if isinstance(found, dict) and not found.get("deleted") else ""
        return named if SLACK_ID.fullmatch(named) else ""

    def upload(self, name: str, title: str, picture: bytes) -> str:
        """Upload a picture that no channel shows yet; the id of its file. A message shows it by that id."""
        asked = {"filename": name, "length": str(len(picture)), "alt_txt": title[:1000]}
        place = self._ask("files.getUploadURLExternal", asked)
        identity, address = str(place.get("file_id", "")), str(place.get("upload_url", ""))
        doing = "uploading a picture to Slack"
        if not self._is_slacks(address) or not identity:
            raise WriteRefusedError(doing, "bad_address", "Slack named no address of its own to upload to")
        try:
            answer = self._pool.request("POST", address, body=picture, headers={"Content-Type": "image/png"})
        except urllib3.exceptions.HTTPError as error:
            raise ThrottledError(f"{doing}: no answer ({type(error).__name__})") from None
        if answer.status != 200:
            raise WriteRefusedError(doing, f"HTTP {answer.status}", "the picture was not taken")
        files = json.dumps([{"id": identity, "title": title[:250]}])
        self._ask("files.completeUploadExternal", {"files": files})
        return identity

    def _is_slacks(self, address: str) -> bool:
        """Whether the address is Slack's, or that of the simulated one which stands in for it."""
        here, there = urlsplit(self._endpoint), urlsplit(address)
        if (there.scheme, there.netloc) == (here.scheme, here.netloc):
            return True
        return there.scheme == "https" and (there.hostname or "").endswith((".slack.com", ".slack-gov.com"))

    def update(self, ref: MessageRef, message: Message) -> None:
        """Replace a message that was posted; WriteRefusedError `message_not_found` where somebody deleted it."""
        body = {"channel": ref.channel, "ts": ref.ts, "text": slack_line(message), "blocks": slack_blocks(message)}
        self._call("chat.update", body)

    def checks(self) -> tuple[Check, ...]:
        """Whether the token is good, and whether the app is in the channel. Nothing is posted.

        Source: Slack API documentation, "auth.test" (no scope) and "conversations.info" (channels:read, groups:read).
        """
        token, channel = "Slack auth.test", "Slack conversations.info"
        remedy = "store the current bot token in the secret (docs/slack.md)"
        try:
            who = self._ask("auth.test", {})
        except RightsizerError as error:
            failed = Check(token, "posting in Slack", Outcome.FAILED, str(error), remedy)
            return failed, Check(
                channel, "posting in the channel", Outcome.NOT_CHECKED, "Slack did not accept the token"
            )
        check = Check(
            token, "posting in Slack", Outcome.OK, f"{who.get('user', 'the app')} in {who.get('team', 'Slack')}"
        )
        return check, self._channel_check(channel)

    def _channel_check(self, action: str) -> Check:
        purpose, invite = f"posting in the channel {self._channel}", REMEDIES["not_in_channel"]
        try:
            found = self._ask("conversations.info", {"channel": self._channel}).get("channel")
        except WriteRefusedError as error:
            scopes = "give the app the scopes channels:read and groups:read, and install it again, to have it checked"
            if error.code == "missing_scope":
                return Check(action, purpose, Outcome.NOT_CHECKED, str(error), scopes)
            return Check(action, purpose, Outcome.FAILED, str(error), REMEDIES.get(error.code, invite))
        except RightsizerError as error:
            return Check(action, purpose, Outcome.NOT_CHECKED, str(error), "run it again")
        if isinstance(found, dict) and found.get("is_member"):
            return Check(action, purpose, Outcome.OK, f"the app is in #{found.get('name', self._channel)}")
        return Check(action, purpose, Outcome.FAILED, "the app is not in the channel", invite)

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _call(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        doing = f"calling Slack's {method} for the channel {body['channel']}"
        return self._post_and_read(doing, method, json.dumps(body), "application/json; charset=utf-8")

    def _ask(self, method: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        """A method that only reads; those take their arguments as a form."""
        form = "application/x-www-form-urlencoded"
        return self._post_and_read(f"calling Slack's {method}", method, urlencode(arguments), form)

    def _post_and_read(self, doing: str, method: str, body: str, content: str) -> dict[str, Any]:
        for last in (False, True):
            answer = self._send(method, body, content, doing)
            if answer.status != 429:
                break
            wait = _seconds(answer.headers.get("Retry-After", ""))
            if last or wait > LONGEST_WAIT_S:
                raise ThrottledError(f"{doing}: Slack asks to wait {wait:.0f} s; it is tried again later")
            self._sleep(wait)
        if answer.status >= 500:
            raise ThrottledError(f"{doing}: Slack answers {answer.status}; it is tried again later")
        try:
            found = json.loads(answer.data)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("ok") is not True:
            code = str(found.get("error", "")) if isinstance(found, dict) else f"HTTP {answer.status}"
            if code in PASSING:
                raise ThrottledError(f"{doing}: Slack answers {code}; it is tried again later")
            raise WriteRefusedError(doing, code, REMEDIES.get(code, "see Slack's documentation of this error"))
        return found

    def _send(self, method: str, body: str, content: str, doing: str) -> urllib3.BaseHTTPResponse:
        headers = {"Authorization": f"Bearer {self._token()}", "Content-Type": content}
        try:
            return self._pool.request("POST", f"{self._endpoint}/{method}", body=body, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise ThrottledError(f"{doing}: no answer ({type(error).__name__}); it is tried again later") from None


PASSING = frozenset({"fatal_error", "internal_error", "ratelimited", "request_timeout", "service_unavailable"})
"""Errors of Slack's own that pass. Source: Slack API documentation, "chat.postMessage", errors."""
REMEDIES = {
    "not_in_channel": "invite the app to the channel, by /invite @rightsizer in it (docs/slack.md)",
    "channel_not_found": "check the stack's parameter SlackChannel, and invite the app if the channel is private",
    "is_archived": "unarchive the channel, or name another in the stack's parameter SlackChannel",
    "account_inactive": "the app was removed: install it again and store its new bot token",
    "invalid_auth": "store the current bot token in the secret",
    "not_authed": "store the bot token in the secret",
    "token_revoked": "install the app again and store its new bot token",
    "missing_scope": "give the app the scopes of docs/slack-app-manifest.yaml and install it again",
    "message_not_found": "the message was deleted; a new one is posted",
}


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 1.0
