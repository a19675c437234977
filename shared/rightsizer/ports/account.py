"""Ports to what an account holds and pays beside its endpoints, to rightsizer's own use, and to AWS's bill."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from rightsizer.domain.account_finding import (
    EndpointTraffic,
    ServedResources,
    ServerlessSize,
    StoredResource,
    WarmPoolUse,
)
from rightsizer.domain.bill import BilledCharge, BillNature, BillWindow
from rightsizer.domain.job import TrainingRun
from rightsizer.domain.reason import Reason
from rightsizer.domain.report import FunctionUse


class AccountReader(Protocol):
    """Knows what the account holds and pays beside its endpoints."""

    def configurations(self) -> tuple[StoredResource, ...]:
        """Every endpoint configuration."""
        ...

    def models(self) -> tuple[StoredResource, ...]:
        """Every model."""
        ...

    def endpoint_names(self) -> tuple[str, ...]:
        """Every endpoint."""
        ...

    def served_by(self, endpoints: Sequence[str]) -> ServedResources:
        """Configurations and models of these endpoints; two calls for each endpoint."""
        ...

    def endpoint_tags(self, arns: Sequence[str]) -> Mapping[str, Mapping[str, str] | Reason]:
        """Tags of each of these endpoints by its ARN, or why they could not be read."""
        ...

    def component_models(self) -> frozenset[str]:
        """Models that inference components name. ReadError where there are too many components to describe."""
        ...

    def configurations_seen_lately(self) -> frozenset[str]:
        """Configurations that published metrics of their own within the last two weeks."""
        ...

    def serverless_sizes(self, endpoints: Sequence[str]) -> Mapping[str, ServerlessSize]:
        """Memory and provisioned concurrency of these serverless endpoints; one call each."""
        ...

    def traffic(
        self, variants: Sequence[tuple[str, str]], since: datetime, now: datetime
    ) -> Mapping[str, EndpointTraffic]:
        """Requests, their seconds and the memory of (endpoint, variant) in the window, by endpoint."""
        ...

    def plan_rates(self, instance_types: Collection[str]) -> Mapping[str, Decimal]:
        """US dollars of an hour of these types under a one-year SageMaker Savings Plan without upfront payment."""
        ...

    def training_runs(self, since: datetime, now: datetime, most: int) -> tuple[TrainingRun, ...]:
        """The newest `most` training and as many processing jobs of the window that ended; one call a job."""
        ...

    def warm_pools(self, since: datetime, now: datetime) -> tuple[WarmPoolUse, ...]:
        """Billed seconds of the warm pools of each training work, where any was not taken over."""
        ...


class OwnUse(Protocol):
    """Knows what rightsizer itself used."""

    def function_use(self, start: datetime, end: datetime) -> tuple[FunctionUse, ...]:
        """Use of each function of the stack in the window."""
        ...


class BillReader(Protocol):
    """Reads charges of SageMaker from one bill."""

    def lines(self, scope: BillWindow) -> Iterator[BilledCharge]:
        """The charges, one at a time and of any account and Region; those outside the scope may be left out.

        InputError where the bill is damaged or of another kind, ReadError where it cannot be read.
        """
        ...

    def nature(self) -> BillNature:
        """Format, level and reach of the bill; only after `lines` was read to its end."""
        ...
