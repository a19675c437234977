"""Finds what answers a request once for each address: moto would try some two hundred patterns for every request."""

import re
from functools import cache
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest
from moto import backend_index, backends
from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.base_backend import BackendDict
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.exceptions import HTTPException
from moto.core.request import normalize_request

_search: Any = vars(BotocoreStubber)["process_request"]


def process(stubber: BotocoreStubber, request: AWSPreparedRequest) -> Any:
    """The answer of moto's front to a request of botocore, or None; an address that it does not know is its own."""
    parts = urlsplit(request.url)
    answers = _answering(f"{parts.scheme}://{parts.netloc}{parts.path}")
    if answers is None:
        return _search(stubber, request)
    normalized = normalize_request(request)
    try:
        return answers(normalized, normalized.raw_url, normalized.headers)
    except HTTPException as error:
        return error.code, error.get_headers(), error.get_body()


@cache
def _answering(url: str) -> Any:
    """The method that answers at an address in the Amazon domain, found as moto finds it."""
    if ".amazonaws.com" not in url:
        return None
    for service, pattern in backend_index.backend_url_patterns:
        if pattern.match(url):
            for path, answers in _backend(service).urls.items():
                if re.match(path, url):
                    return answers
    return None


def _backend(service: str) -> Any:
    """Any backend of the service: all have the same addresses."""
    every: Any = backends.get_backend(service)
    if not isinstance(every, BackendDict):
        return every["global"]
    regions = every[DEFAULT_ACCOUNT_ID]
    return regions["us-east-1" if "us-east-1" in regions else "aws"]


@cache
def install() -> None:
    """Let requests of this process find what answers them this way."""
    patch.object(BotocoreStubber, "process_request", process).start()
