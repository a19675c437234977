"""How many instances of a type the account may run for endpoints (port `QuotaReader`)."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import reading
from rightsizer.aws.session import Session

if TYPE_CHECKING:
    from types_boto3_service_quotas import ServiceQuotasClient

FOR_A_DECISION = timedelta(hours=1)
"""How long quotas are kept where options are weighed."""
BEFORE_A_WRITE = timedelta(minutes=1)
"""How long they are kept where a fleet is about to be started: for the steps of one look, not for the next one."""
ENDPOINT_USAGE = re.compile(r"^(ml\.\S+) for endpoint usage$")
"""Quotas are found by name: codes are not documented (Service Quotas console)."""


class EndpointQuotas:
    """Reads the applied quotas, then the defaults of what has no applied value, and keeps them for `keep`.

    A warm function lives for hours, and a quota is raised while somebody waits for it.
    """

    def __init__(self, session: Session, clock: Callable[[], datetime], keep: timedelta) -> None:
        self._client: ServiceQuotasClient = session.client("service-quotas")
        self._clock, self._keep = clock, keep
        self._known: dict[str, int] = {}
        self._read_at: datetime | None = None

    def endpoint_quotas(self) -> Mapping[str, int]:
        """Applied quota by instance type; a type that is absent is unknown, not zero."""
        now = self._clock()
        if self._read_at is None or now - self._read_at >= self._keep:
            defaults = dict(self._read("list_aws_default_service_quotas", "ListAWSDefaultServiceQuotas"))
            self._known = defaults | dict(self._read("list_service_quotas", "ListServiceQuotas"))
            self._read_at = now
        return self._known

    def _read(self, operation: Any, action: str) -> Iterator[tuple[str, int]]:
        with reading(f"servicequotas:{action}", "reading how many instances endpoints may use"):
            pages: Any = self._client.get_paginator(operation).paginate(
                ServiceCode="sagemaker", PaginationConfig={"PageSize": 100}
            )
            for page in pages:
                for quota in page["Quotas"]:
                    name = ENDPOINT_USAGE.match(quota.get("QuotaName", ""))
                    if name and quota.get("Value") is not None:
                        yield name[1], int(quota["Value"])
