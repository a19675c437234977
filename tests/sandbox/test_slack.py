"""Slack's side: messages are kept, clicks carry a signature that the documented rule accepts."""

import base64
import hashlib
import hmac
import json
import urllib.request
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from sandbox.slack import SECRET, TOKEN, Workspace, listening

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
BUTTON = {
    "type": "button",
    "action_id": "approve",
    "value": "p-1",
    "text": {"type": "plain_text", "text": "Approve"},
}
BLOCKS: list[dict[str, Any]] = [
    {"type": "section", "text": {"type": "mrkdwn", "text": "*chat* costs less"}},
    {"type": "actions", "elements": [BUTTON]},
]


def call(url: str, method: str, body: Any, token: str = TOKEN) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/{method}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_a_posted_message_is_kept_and_an_update_replaces_it() -> None:
    workspace = Workspace()
    with listening(workspace) as url:
        posted = call(url, "chat.postMessage", {"channel": workspace.channel, "text": "hello", "blocks": BLOCKS})
        assert posted["ok"]
        call(url, "chat.update", {"channel": workspace.channel, "ts": posted["ts"], "text": "done", "blocks": []})
        assert call(url, "chat.postMessage", {"channel": "C0OTHER", "text": "x"})["error"] == "channel_not_found"
        assert (
            call(url, "chat.postMessage", {"channel": workspace.channel, "text": "x"}, "bad")["error"] == "invalid_auth"
        )
    (message,) = workspace.messages
    assert (message.text, message.versions) == ("done", 2)


def test_a_click_is_signed_over_the_raw_body() -> None:
    workspace = Workspace()
    workspace.call("chat.postMessage", f"Bearer {TOKEN}", {"channel": workspace.channel, "text": "t", "blocks": BLOCKS})
    assert "*chat* costs less" in workspace.messages[0].plain()
    event = workspace.click(workspace.messages[0], "Approve", "U0ADA", NOW)
    body = base64.b64decode(event["body"]).decode()
    stamp = event["headers"]["x-slack-request-timestamp"]
    digest = hmac.new(SECRET.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    assert event["headers"]["x-slack-signature"] == f"v0={digest}"
    payload = json.loads(parse_qs(body)["payload"][0])
    assert payload["user"]["id"] == "U0ADA"
    assert payload["actions"][0]["value"] == "p-1"
