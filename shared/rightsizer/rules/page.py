"""Which object keeps the digests of an endpoint."""

import zlib

ENDPOINTS = 256
"""Endpoints of a page at most, on average: about seven megabytes of digests of a fortnight."""


def page_of(endpoint: str, fleet: int) -> str:
    """The page of an endpoint in a fleet of so many, by its name alone.

    The number of pages is a power of two, so that it changes seldom; when it does, every endpoint is read in full once.
    """
    pages = 1
    while pages * ENDPOINTS < fleet:
        pages *= 2
    return f"{pages}/{zlib.crc32(endpoint.encode()) % pages:04}"
