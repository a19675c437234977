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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode

from sandbox.strict import judge, on

USES, LASTS = 5, timedelta(minutes=30)
SECRET, TOKEN, CHANNEL = "8f742231b10e8888abcd99yyyzzz85a5", "xoxb-sandbox", "C0123456789"


@dataclass(slots=True)
class Message:
    """A message of the channel."""

    channel: str
    ts: str
    text: str
    blocks: list[dict[str, Any]]
    versions: int = 1

    def buttons(self) -> dict[str, dict[str, Any]]:
        """The buttons by the text on them."""
        return {
            element["text"]["text"]: element
            for block in self.blocks
            if block["type"] == "actions"
            for element in block["elements"]
            if element["type"] == "button"
        }

    def plain(self) -> str:
        """Everything that a person reads."""
        return "\n".join([self.text, *_texts(self.blocks)])


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if node.get("type") in {"mrkdwn", "plain_text"}:
            yield str(node["text"])
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for item in node:
            yield from _texts(item)


@dataclass(slots=True)
class Reply:
    """Where one click may be answered, and what was posted there: only the person who clicked sees it."""

    user: str
    made_at: datetime
    said: list[dict[str, Any]] = field(default_factory=list)

    def plain(self) -> str:
        """Everything that the person reads."""
        return "\n".join(part for one in self.said for part in [str(one["text"]), *_texts(one.get("blocks") or [])])

    def links(self) -> list[str]:
        """The addresses that the buttons of the answers open."""
        blocks = [block for one in self.said for block in one.get("blocks") or []]
        return [str(e["url"]) for block in blocks for e in block.get("elements", []) if "url" in e]


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
    scopes: frozenset[str] = frozenset({"chat:write", "channels:read", "groups:read"})
    """What the app may do."""

    def secret(self) -> str:
        """What the Secrets Manager secret holds."""
        return json.dumps({"signing_secret": self.signing_secret, "bot_token": self.bot_token})

    def call(self, method: str, token: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Answer a Web API call; errors are HTTP 200 with ``ok`` false, as Slack's are."""
        if self.refusals:
            return self.refusals.pop(0)
        if token != f"Bearer {self.bot_token}" and on(method, "token"):
            return 200, {"ok": False, "error": "invalid_auth"}
        if method in ("auth.test", "conversations.info"):
            return 200, self._told(method, body)
        if body.get("channel") != self.channel and on(method, "channel"):
            return 200, {"ok": False, "error": "channel_not_found"}
        if not self.members:
            return 200, {"ok": False, "error": "not_in_channel"}
        if refused := judge("slack", method, body):
            return 200, {"ok": False, "error": refused[0]}
        match method:
            case "chat.postMessage":
                return 200, self._post(body)
            case "chat.update":
                return 200, self._update(body)
        return 200, {"ok": False, "error": "unknown_method"}

    def _told(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Who the token belongs to, or what the app may know of a channel."""
        if method == "auth.test":
            return {"ok": True, "team": "sandbox", "user": "rightsizer", "team_id": "T0SANDBOX"}
        if "channels:read" not in self.scopes and on(method, "scope"):
            return {"ok": False, "error": "missing_scope", "needed": "channels:read"}
        if body.get("channel") != self.channel and on(method, "channel"):
            return {"ok": False, "error": "channel_not_found"}
        return {"ok": True, "channel": {"id": self.channel, "name": "ml-costs", "is_member": self.members}}

    def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        ts = f"{1767373400 + len(self.messages)}.000100"
        self.messages.append(Message(self.channel, ts, str(body.get("text", "")), list(body.get("blocks") or [])))
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
        element = message.buttons()[button]
        self.answers.append(Reply(user, now))
        action = {
            key: value for key, value in element.items() if key in {"action_id", "block_id", "value", "type", "text"}
        }
        payload = {
            "type": "block_actions",
            "user": {"id": user, "username": user.lower(), "team_id": "T0SANDBOX"},
            "api_app_id": "A0SANDBOX",
            "team": {"id": "T0SANDBOX", "domain": "sandbox"},
            "channel": {"id": message.channel, "name": "ml-costs"},
            "container": {"type": "message", "message_ts": message.ts, "channel_id": message.channel},
            "message": {"type": "message", "ts": message.ts, "text": message.text},
            "trigger_id": f"{int(now.timestamp())}.1.sandbox",
            "response_url": f"{self.hooks}/actions/T0SANDBOX/{len(self.answers)}/sandbox",
            "actions": [action | {"action_ts": f"{now.timestamp():.6f}"}],
        } | changes
        return self.request(payload, now)

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
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    workspace.hooks = f"http://127.0.0.1:{server.server_port}"
    try:
        yield f"{workspace.hooks}/api"
    finally:
        workspace.hooks = "https://hooks.slack.com"
        server.shutdown()
        server.server_close()
        thread.join()
