"""Answering one click: a message that only the person who clicked sees. Over urllib3, which botocore brings anyway.

Source: Slack API documentation, "Handling user interaction" (a `response_url` takes five messages within 30 minutes;
the HTTP answer to a block action carries no message).
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import urllib3

from rightsizer.errors import InputError, ThrottledError, WriteRefusedError

SLACKS_OWN = ("https://hooks.slack.com", "https://hooks.slack-gov.com")
_PATH = re.compile(r"/[A-Za-z0-9/_.~%-]{1,500}")
"""No query, no second host, no user name: what Slack sends has none, and nothing else is posted to."""
PATIENCE = timedelta(seconds=2.7)
"""Slack shows a warning triangle three seconds after the click; the rest is for the answer to travel."""
LEAST_S, MOST_S = 0.4, 1.5


class ResponseUrls:
    """Posts to the `response_url` of a click, once: an answer that is lost is not worth a second wait."""

    def __init__(self, clock: Callable[[], datetime], endpoint: str) -> None:
        """`endpoint`: the Web API of Slack; where it is not Slack's own (a simulated one), its host is answered too."""
        parts = urlsplit(endpoint)
        is_slacks = (parts.hostname or "").endswith(("slack.com", "slack-gov.com"))
        self._hosts = SLACKS_OWN if is_slacks else (*SLACKS_OWN, f"{parts.scheme}://{parts.netloc}")
        self._clock = clock
        self._pool = urllib3.PoolManager(retries=False)

    def post(self, url: str, body: Mapping[str, Any], sent_at: datetime | None) -> None:
        """Post the answer to a click that Slack sent at that time, and give up before Slack does.

        InputError when the address is not one of Slack's, ThrottledError when no answer came, WriteRefusedError.
        """
        doing = "answering a click by its response_url"
        if not any(url.startswith(f"{host}/") and _PATH.fullmatch(url[len(host) :]) for host in self._hosts):
            raise InputError(f"{doing}: {url[:60]!r} is no address of Slack's")
        timeout = urllib3.Timeout(total=seconds_left(self._clock(), sent_at, MOST_S))
        headers = {"Content-Type": "application/json; charset=utf-8"}
        try:
            answer = self._pool.request(
                "POST", url, body=json.dumps(body), headers=headers, timeout=timeout, redirect=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise ThrottledError(f"{doing}: no answer ({type(error).__name__})") from None
        if answer.status != 200:
            raise WriteRefusedError(doing, f"HTTP {answer.status}", answer.data[:200].decode(errors="replace"))

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()


def seconds_left(now: datetime, sent_at: datetime | None, most: float) -> float:
    """Seconds that remain of Slack's three; the second in which Slack signed began up to a second before."""
    if sent_at is None:
        return LEAST_S
    return min(max((PATIENCE - (now - sent_at)).total_seconds(), LEAST_S), most)
