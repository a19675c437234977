"""Serverless inference in figures: its limits, what requests cost, and where it is as dear as an instance.

Whoever weighs it takes the figures from here. Sources: SageMaker guide, serverless-endpoints (1 to 6 GB in whole GB,
60 s a request, 200 requests at once, no GPU; billed by the GB-second of requests); AWS Lambda guide, configuration of
memory (one vCPU for 1,769 MB), which serverless inference runs on.
"""

import math
from decimal import Decimal

SERVERLESS_GB = 6
"""The most memory of a serverless endpoint, GB."""
SERVERLESS_REQUEST_S = 60.0
"""The longest request that serverless inference answers, seconds."""
SERVERLESS_AT_ONCE = 200
"""The most requests at once."""
MB_PER_VCPU = 1769


def whole_gigabytes(need: float) -> int | None:
    """The smallest memory of a serverless endpoint that holds `need` GB; None where none does."""
    size = max(1, math.ceil(need))
    return size if size <= SERVERLESS_GB else None


def serverless_usd[Number: (float, Decimal)](usd_per_gb_second: Number, gigabytes: int, seconds: Number) -> Number:
    """US dollars for so many seconds of requests."""
    return usd_per_gb_second * gigabytes * seconds


def break_even_requests(usd_per_month: float, usd_per_request: float) -> float:
    """Requests a month at which serverless costs as much as `usd_per_month`."""
    return usd_per_month / usd_per_request


def vcpus_of(gigabytes: int) -> float:
    """vCPUs that come with the memory; assumed to be Lambda's, since SageMaker publishes none."""
    return gigabytes * 1024 / MB_PER_VCPU
