"""Service Quotas of SageMaker endpoints: one row for each instance type, ``ml.X for endpoint usage``.

API reference: Service Quotas ListServiceQuotas, GetServiceQuota, ListAWSDefaultServiceQuotas (page of 100 at most).
"""

import hashlib
from functools import cache
from typing import Any

from sandbox.paging import page
from sandbox.refusals import AwsRefusal
from sandbox.shapes import enum
from sandbox.strict import on


class Quotas:
    """Applied quotas; `DEFAULT` where none was set. Accounts differ widely, so a test that cares sets its own."""

    DEFAULT = 100

    def __init__(self) -> None:
        self._applied: dict[str, int] = {}
        self.unlisted: set[str] = set()
        """Types whose applied value ListServiceQuotas does not show, as happens in real accounts."""

    def set(self, instance_type: str, value: int) -> None:
        """Set the applied quota of a type."""
        self._applied[instance_type] = value

    def endpoint_limit(self, instance_type: str) -> int:
        """How many instances of the type endpoints may use."""
        return self._applied.get(instance_type, self.DEFAULT)

    def ListServiceQuotas(self, p: dict[str, Any]) -> dict[str, Any]:
        """Applied quotas."""
        rows = [self._row(kind) for kind in self._types(p) if kind not in self.unlisted]
        return _paged(rows, p, "ListServiceQuotas")

    def ListAWSDefaultServiceQuotas(self, p: dict[str, Any]) -> dict[str, Any]:
        """Default quotas."""
        operation = "ListAWSDefaultServiceQuotas"
        rows = [self._row(kind) | {"Value": float(self.DEFAULT)} for kind in self._types(p, operation)]
        return _paged(rows, p, operation)

    def GetServiceQuota(self, p: dict[str, Any]) -> dict[str, Any]:
        """One applied quota by its code."""
        for kind in self._types(p):
            if _code(kind) == p["QuotaCode"]:
                return {"Quota": self._row(kind)}
        raise AwsRefusal("NoSuchResourceException", f"The quota {p['QuotaCode']} does not exist")

    def _types(self, p: dict[str, Any], operation: str = "ListServiceQuotas") -> list[str]:
        if p["ServiceCode"] != "sagemaker" and on(operation, "service"):
            raise AwsRefusal("NoSuchResourceException", f"The sandbox has no quotas of {p['ServiceCode']}")
        return sorted(enum("sagemaker", "ProductionVariantInstanceType"))

    def _row(self, kind: str) -> dict[str, Any]:
        return {
            "ServiceCode": "sagemaker",
            "ServiceName": "Amazon SageMaker",
            "QuotaCode": _code(kind),
            "QuotaName": f"{kind} for endpoint usage",
            "Value": float(self.endpoint_limit(kind)),
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }


@cache
def _code(kind: str) -> str:
    """A code of the right form. The real codes differ; find quotas by name (reference of ListServiceQuotas)."""
    return "L-" + hashlib.sha256(kind.encode()).hexdigest()[:8].upper()


def _paged(rows: list[dict[str, Any]], p: dict[str, Any], operation: str) -> dict[str, Any]:
    code = "InvalidPaginationTokenException"
    shown, token = page(rows, p.get("NextToken"), p.get("MaxResults") or 100, code, operation)
    return {"Quotas": shown, "NextToken": token} if token else {"Quotas": shown}
