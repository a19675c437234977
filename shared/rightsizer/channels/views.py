"""Modals of Slack, opened and changed within three seconds of a click. Over urllib3, which botocore brings anyway.

On the path of `respond`. The details of a proposal were made by `propose`, which stored them as a view.
Source: Slack API documentation, "views.open" (a trigger opens one view within three seconds), "views.update", "View
object" (private_metadata 3,000 characters).
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import urllib3

from rightsizer.channels.response_url import seconds_left
from rightsizer.domain.trigger import Click, DecisionAsked
from rightsizer.errors import InputError, ReadError, ThrottledError, WriteRefusedError
from rightsizer.render import blocks

MOST_S = 2.0
LONGEST_KEPT = 2900


class Views:
    """Opens modals for whoever clicked. `token` is asked for each call, so that a rotated one counts."""

    def __init__(self, token: Callable[[], str], clock: Callable[[], datetime], endpoint: str) -> None:
        self._token, self._clock = token, clock
        self._endpoint = endpoint.rstrip("/")
        self._pool = urllib3.PoolManager(retries=False)

    def open_reason_form(self, click: Click, decision_asked: DecisionAsked) -> None:
        """Open the form that asks why. WriteRefusedError or ThrottledError where Slack did not open it."""
        value = f"{decision_asked.proposal_id}~{decision_asked.revision}"
        self._open(click, blocks.reason_form(_kept(click, value)))

    def show_details(self, click: Click, stored: bytes, page_link: str) -> None:
        """Open stored details, with a button to the whole page where its link is short enough.

        ReadError where they are no view.
        """
        try:
            view = json.loads(stored)
        except ValueError:
            view = None
        if not isinstance(view, dict) or not isinstance(view.get("blocks"), list):
            raise ReadError("opening the details of a proposal: what is stored is no view")
        if page_link and len(page_link) <= blocks.SHORT_LINK:
            opened = blocks.link_button("Open the whole page", page_link, "rightsizer_open")
            view["blocks"] = [*view["blocks"][: blocks.VIEW_BLOCKS - 1], {"type": "actions", "elements": [opened]}]
        self._open(click, view | {"private_metadata": _kept(click, "")})

    def say(self, click: Click, text: str) -> dict[str, Any]:
        """Say something in the modal; of a form that was sent returns the answer that shows it, else empty."""
        view = blocks.said_view(text)
        if click.is_form:
            return {"response_action": "update", "view": view}
        self._call("views.update", {"view_id": click.view_id, "view": view}, click)
        return {}

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _open(self, click: Click, view: Mapping[str, Any]) -> None:
        if not click.trigger_id:
            raise InputError("opening a modal: the click carries no trigger")
        self._call("views.open", {"trigger_id": click.trigger_id, "view": view}, click)

    def _call(self, method: str, body: Mapping[str, Any], click: Click) -> None:
        doing = f"calling Slack's {method}"
        token = self._token()
        if not token:
            raise WriteRefusedError(doing, "not_authed", "store the bot token in the secret")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json; charset=utf-8"}
        address, timeout = (
            f"{self._endpoint}/{method}",
            urllib3.Timeout(total=seconds_left(self._clock(), click.sent_at, MOST_S)),
        )
        try:
            answer = self._pool.request("POST", address, body=json.dumps(body), headers=headers, timeout=timeout)
        except urllib3.exceptions.HTTPError as error:
            raise ThrottledError(f"{doing}: no answer ({type(error).__name__})") from None
        try:
            found = json.loads(answer.data)
        except ValueError:
            found = {}
        if answer.status != 200 or not isinstance(found, dict) or found.get("ok") is not True:
            code = str(found.get("error", "")) if isinstance(found, dict) else ""
            raise WriteRefusedError(doing, code or f"HTTP {answer.status}", "the button may be pressed again")


def _kept(click: Click, value: str) -> str:
    """What comes back with the next click in the modal: the proposal, and where the person is answered."""
    kept = json.dumps({"value": value, "response_url": click.response_url}, separators=(",", ":"))
    return kept if len(kept) <= LONGEST_KEPT else json.dumps({"value": value}, separators=(",", ":"))
