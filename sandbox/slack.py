"""Slack's side: takes the messages of the bot, shows them, and presses their buttons with a real signature.

What a person sees after a click is what was posted to the click's `response_url` (`Workspace.answers`), and a warning
triangle where the HTTP answer was not 200 (`Workspace.acknowledge`); the body of that answer is shown to nobody.

Sources: Slack API documentation, "chat.postMessage", "chat.update", "Verifying requests from Slack", "Handling user
interaction" (a `response_url` takes five messages within 30 minutes); bolt-js issue 132 (a block action takes no
message in the HTTP answer); Lambda developer guide, "Function URLs" (payload format 2.0: lower-case headers, base64
body).
"""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode

from sandbox.slack_parts import File, Modal, buttons_of
from sandbox.slack_parts import Message as Message
from sandbox.slack_parts import Reply as Reply
from sandbox.strict import judge, on

OTHERS = {
    "auth.test": "_told",
    "conversations.info": "_told",
    "users.lookupByEmail": "_person",
    "views.open": "_view",
    "views.update": "_view",
    "files.getUploadURLExternal": "_file",
    "files.completeUploadExternal": "_file",
}
"""Methods that post nothing, and what answers them."""
USES, LASTS = 5, timedelta(minutes=30)
SECRET, TOKEN, CHANNEL = "8f742231b10e8888abcd99yyyzzz85a5", "xoxb-sandbox", "C0123456789"


TRIGGER_LASTS = timedelta(seconds=3)


@dataclass(slots=True)
class Workspace:
    """A Slack workspace with one channel and one app."""

    signing_secret: str = SECRET
    bot_token: str = TOKEN
    channel: str = CHANNEL
    messages: list[Message] = field(default_factory=list)
    refusals: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Answers (status, body) to give to the next calls instead of the right ones."""
    hooks: str = "https://hooks.slack.com"
    """Where clicks are answered: Slack's own host, or this process while it listens."""
    clock: Callable[[], datetime] | None = None
    """The time by which a `response_url` ends; without one it does not end by time."""
    answers: list[Reply] = field(default_factory=list)
    """What may be answered to the clicks, in their order."""
    triangles: int = 0
    """Warning triangles that people saw."""
    members: bool = True
    """Whether the app was invited to the channel."""
    scopes: frozenset[str] = frozenset(
        {"chat:write", "channels:read", "groups:read", "files:write", "users:read", "users:read.email"}
    )
    """What the app may do."""
    members_by_email: dict[str, str] = field(default_factory=dict)
    """Slack ids by e-mail."""
    modals: list[Modal] = field(default_factory=list)
    """Views that are open, in the order in which they were opened."""
    files: list[File] = field(default_factory=list)
    file_wait: int = 1
    """Messages that are refused before an uploaded picture is ready: Slack looks at it first."""
    triggers: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    """Who pressed something, and when, by the trigger that was sent; one that was used is gone."""
    used_triggers: set[str] = field(default_factory=set)

    def secret(self) -> str:
        """What the Secrets Manager secret holds."""
        return json.dumps({"signing_secret": self.signing_secret, "bot_token": self.bot_token})

    def call(self, method: str, token: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Answer a Web API call; errors are HTTP 200 with ``ok`` false, as Slack's are."""
        if self.refusals:
            return self.refusals.pop(0)
        if token != f"Bearer {self.bot_token}" and on(method, "token"):
            return 200, {"ok": False, "error": "invalid_auth"}
        if method in OTHERS:
            refused = judge("slack", method, body)
            return 200, {"ok": False, "error": refused[0]} if refused else getattr(self, OTHERS[method])(method, body)
        return 200, self._say(method, body)

    def _say(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post or change a message."""
        if body.get("channel") != self.channel and on(method, "channel"):
            return {"ok": False, "error": "channel_not_found"}
        if not self.members:
            return {"ok": False, "error": "not_in_channel"}
        if refused := judge("slack", method, body):
            return {"ok": False, "error": refused[0]}
        if self._is_unready(body) and on(method, "file"):
            return {"ok": False, "error": "invalid_blocks"}
        match method:
            case "chat.postMessage":
                return self._post(body)
            case "chat.update":
                return self._update(body)
        return {"ok": False, "error": "unknown_method"}

    def _told(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Who the token belongs to, or what the app may know of a channel."""
        if method == "auth.test":
            return {"ok": True, "team": "sandbox", "user": "rightsizer", "team_id": "T0SANDBOX"}
        if "channels:read" not in self.scopes and on(method, "scope"):
            return {"ok": False, "error": "missing_scope", "needed": "channels:read"}
        if body.get("channel") != self.channel and on(method, "channel"):
            return {"ok": False, "error": "channel_not_found"}
        return {"ok": True, "channel": {"id": self.channel, "name": "ml-costs", "is_member": self.members}}

    def _is_unready(self, body: Mapping[str, Any]) -> bool:
        """Whether the message shows a file that is not there, or that Slack still looks at."""
        ids = [block["slack_file"]["id"] for block in body.get("blocks") or [] if "slack_file" in block]
        for identity in ids:
            file = next((one for one in self.files if one.id == identity and one.is_complete), None)
            if file is None:
                return True
            file.looks += 1
            if file.looks <= self.file_wait:
                return True
        return False

    def _person(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if "users:read.email" not in self.scopes and on(method, "scope"):
            return {"ok": False, "error": "missing_scope", "needed": "users:read.email"}
        found = self.members_by_email.get(str(body.get("email")))
        if found is None and on(method, "unknown"):
            return {"ok": False, "error": "users_not_found"}
        return {"ok": True, "user": {"id": found, "deleted": False}}

    def _view(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Open or change a modal. A trigger opens one, within three seconds."""
        view = dict(body["view"])
        if method == "views.update":
            for modal in self.modals:
                if modal.id == body.get("view_id"):
                    modal.view = view
                    return {"ok": True, "view": {"id": modal.id}}
            return {"ok": False, "error": "not_found"} if on(method, "gone") else {"ok": True}
        trigger = str(body["trigger_id"])
        if trigger in self.used_triggers and on(method, "used"):
            return {"ok": False, "error": "exchanged_trigger_id"}
        user, made_at = self.triggers.get(trigger, ("", None))
        late = made_at is not None and self.clock is not None and self.clock() - made_at > TRIGGER_LASTS
        if late and on(method, "expired"):
            return {"ok": False, "error": "expired_trigger_id"}
        self.used_triggers.add(trigger)
        modal = Modal(f"V{len(self.modals) + 1:08d}", user, view)
        self.modals.append(modal)
        return {"ok": True, "view": {"id": modal.id}}

    def _file(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if "files:write" not in self.scopes and on(method, "scope"):
            return {"ok": False, "error": "missing_scope", "needed": "files:write"}
        if method == "files.getUploadURLExternal":
            file = File(f"F{len(self.files) + 1:09d}", str(body["filename"]), str(body.get("alt_txt", "")))
            self.files.append(file)
            return {"ok": True, "file_id": file.id, "upload_url": f"{self.hooks}/upload/{file.id}"}
        for one in json.loads(str(body["files"])):
            found = next((file for file in self.files if file.id == one["id"] and file.content), None)
            if found is None:
                return {"ok": False, "error": "file_not_found"} if on(method, "unknown") else {"ok": True}
            found.is_complete = True
        return {"ok": True, "files": []}

    def take_upload(self, path: str, content: bytes) -> int:
        """Take the bytes of a file at the address that was given for it; the HTTP status."""
        file = next((one for one in self.files if one.id == path.rpartition("/")[2]), None)
        if file is None or not content:
            return 404
        file.content = content
        return 200

    def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        thread = str(body.get("thread_ts", ""))
        if thread and thread not in {one.ts for one in self.messages} and on("chat.postMessage", "thread"):
            return {"ok": False, "error": "thread_not_found"}
        ts, at = f"{1767373400 + len(self.messages)}.000100", self.clock() if self.clock is not None else None
        made = Message(self.channel, ts, str(body.get("text", "")), list(body.get("blocks") or []), 1, thread, at)
        self.messages.append(made)
        return {"ok": True, "channel": self.channel, "ts": ts}

    def _update(self, body: Mapping[str, Any]) -> dict[str, Any]:
        for message in self.messages:
            if message.ts == body.get("ts"):
                message.text, message.blocks = str(body.get("text", "")), list(body.get("blocks") or [])
                message.versions += 1
                return {"ok": True, "channel": self.channel, "ts": message.ts}
        if on("chat.update", "message"):
            return {"ok": False, "error": "message_not_found"}
        return {"ok": True}

    def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Take a message at a `response_url`. [assumed] status and codes of the refusals, which Slack leaves open."""
        number = path.rpartition("/")[0].rpartition("/")[2]
        known = number.isdecimal() and 0 < int(number) <= len(self.answers)
        if not known and on("response_url", "unknown"):
            return 404, {"ok": False, "error": "invalid_url"}
        reply = self.answers[int(number) - 1]
        if self.clock and self.clock() - reply.made_at > LASTS and on("response_url", "late"):
            return 404, {"ok": False, "error": "expired_url"}
        if len(reply.said) >= USES and on("response_url", "used"):
            return 404, {"ok": False, "error": "used_url"}
        if refused := judge("slack", "response_url", body):
            return 400, {"ok": False, "error": refused[0]}
        reply.said.append(dict(body))
        return 200, {"ok": True}

    def acknowledge(self, answer: Mapping[str, Any]) -> None:
        """What a person sees of the HTTP answer to a click: nothing, or a warning triangle; never its body."""
        self.triangles += answer.get("statusCode") != 200

    def click(self, message: Message, button: str, user: str, now: datetime, **changes: Any) -> dict[str, Any]:
        """The Function URL event of `user` pressing `button`, signed; `changes` go into the payload."""
        self.answers.append(Reply(user, now))
        payload = {
            **self._pressed(message.buttons()[button], user, now),
            "channel": {"id": message.channel, "name": "ml-costs"},
            "container": {"type": "message", "message_ts": message.ts, "channel_id": message.channel},
            "message": {"type": "message", "ts": message.ts, "text": message.text},
            "response_url": f"{self.hooks}/actions/T0SANDBOX/{len(self.answers)}/sandbox",
        } | changes
        return self.request(payload, now)

    def press(self, modal: Modal, button: str, now: datetime, **changes: Any) -> dict[str, Any]:
        """The event of pressing a button of a modal: it carries no `response_url`."""
        payload = self._pressed(buttons_of(modal.view["blocks"])[button], modal.user, now)
        return self.request({**payload, "view": {**modal.view, "id": modal.id}} | changes, now)

    def submit(self, modal: Modal, now: datetime, values: Mapping[str, str], **changes: Any) -> dict[str, Any]:
        """The event of sending a modal's form; `values` are the texts by block and action, which have one name here."""
        state = {name: {name: {"type": "plain_text_input", "value": text}} for name, text in values.items()}
        view = {**modal.view, "id": modal.id, "state": {"values": state}}
        payload = {"type": "view_submission", **self._who(modal.user, now), "view": view} | changes
        return self.request(payload, now)

    def _pressed(self, element: Mapping[str, Any], user: str, now: datetime) -> dict[str, Any]:
        names = {"action_id", "block_id", "value", "type", "text", "selected_option"}
        action = {key: value for key, value in element.items() if key in names}
        done = {"type": "block_actions", **self._who(user, now)}
        return done | {"actions": [action | {"action_ts": f"{now.timestamp():.6f}"}]}

    def _who(self, user: str, now: datetime) -> dict[str, Any]:
        trigger = f"{int(now.timestamp())}.{len(self.triggers) + 1}.sandbox"
        self.triggers[trigger] = (user, now)
        return {
            "user": {"id": user, "username": user.lower(), "team_id": "T0SANDBOX"},
            "api_app_id": "A0SANDBOX",
            "team": {"id": "T0SANDBOX", "domain": "sandbox"},
            "trigger_id": trigger,
        }

    def request(self, payload: Mapping[str, Any], now: datetime) -> dict[str, Any]:
        """An interactivity request as the function receives it."""
        body = urlencode({"payload": json.dumps(payload)})
        stamp = str(int(now.timestamp()))
        base = f"v0:{stamp}:{body}".encode()
        signature = "v0=" + hmac.new(self.signing_secret.encode(), base, hashlib.sha256).hexdigest()
        return {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": "/",
            "rawQueryString": "",
            "headers": {
                "content-type": "application/x-www-form-urlencoded",
                "x-slack-request-timestamp": stamp,
                "x-slack-signature": signature,
                "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            },
            "requestContext": {"http": {"method": "POST", "path": "/", "sourceIp": "203.0.113.7"}},
            "body": base64.b64encode(body.encode()).decode(),
            "isBase64Encoded": True,
        }


@contextmanager
def listening(workspace: Workspace) -> Iterator[str]:
    """Serve the workspace's Web API on loopback; yields the base address, in place of https://slack.com/api."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            sent = self.rfile.read(length)
            if self.path.startswith("/upload/"):
                self.send_response(workspace.take_upload(self.path, sent))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            form = "form-urlencoded" in self.headers.get("Content-Type", "")
            body = dict(parse_qsl(sent.decode())) if form else json.loads(sent or b"{}")
            if self.path.startswith("/actions/"):
                status, answer = workspace.answer(self.path, body)
            else:
                method = self.path.rpartition("/")[2]
                status, answer = workspace.call(method, self.headers.get("Authorization", ""), body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if status == 429:
                self.send_header("Retry-After", str(answer.get("retry_after", 1)))
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    workspace.hooks = f"http://127.0.0.1:{server.server_port}"
    try:
        yield f"{workspace.hooks}/api"
    finally:
        workspace.hooks = "https://hooks.slack.com"
        server.shutdown()
        server.server_close()
        thread.join()
