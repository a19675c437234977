"""Which object keeps the digests of an endpoint."""

import zlib

ENDPOINTS, DAYS = 256, 14
"""Endpoints of a page at most, on average, and days of each: about eight megabytes of digests, 500 in memory."""


def page_of(endpoint: str, fleet: int, days: int = DAYS) -> str:
    """The page of an endpoint in a fleet of so many, by its name alone; `days` of look-back are kept of each.

    The number of pages is a power of two, so that it changes seldom; when it does, every endpoint is read in full once.
    """
    pages = 1
    while pages * ENDPOINTS * DAYS < fleet * days:
        pages *= 2
    return f"{pages}/{zlib.crc32(endpoint.encode()) % pages:04}"
