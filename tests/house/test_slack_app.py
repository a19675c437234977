"""The app manifest that an operator pastes holds what the program's calls need, and nothing more."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
METHOD = re.compile(r'"((?:chat|conversations|files|users|views|auth|reactions|pins)\.[a-zA-Z.]+)"')
SCOPES = {
    "chat.postMessage": {"chat:write"},
    "chat.update": {"chat:write"},
    "views.open": set[str](),
    "views.update": set[str](),
    "users.lookupByEmail": {"users:read", "users:read.email"},
    "files.getUploadURLExternal": {"files:write"},
    "files.completeUploadExternal": {"files:write"},
    "auth.test": set(),
    "conversations.info": {"channels:read", "groups:read"},
}
"""Bot scopes by method (Slack API documentation, the page of each method)."""


def manifest() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "slack-app-manifest.yaml").read_text())
    return found


def called() -> set[str]:
    return {m for path in (ROOT / "shared").rglob("*.py") for m in METHOD.findall(path.read_text())}


def test_the_manifest_asks_for_the_scopes_of_the_methods_that_are_called_and_no_others() -> None:
    assert "chat.postMessage" in called()
    needed = {scope for method in called() for scope in SCOPES[method]}
    assert set(manifest()["oauth_config"]["scopes"]["bot"]) == needed


def test_the_app_gets_clicks_by_its_request_url_and_keeps_its_token() -> None:
    settings = manifest()["settings"]
    assert settings["interactivity"]["is_enabled"] is True
    assert settings["interactivity"]["request_url"].startswith("https://")
    assert not settings["socket_mode_enabled"]
    assert not settings["token_rotation_enabled"]


def test_the_page_and_the_readme_say_to_invite_the_app() -> None:
    assert "/invite @rightsizer" in (ROOT / "docs" / "slack.md").read_text()
    assert "invite the app to the channel" in (ROOT / "README.md").read_text()
