"""Findings on an account that are no option of one endpoint, as warm pools and orphan models, and their facts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from rightsizer.domain.checks import aware, money, not_empty, not_negative
from rightsizer.domain.reason import Reason


class AccountFindingCode(StrEnum):
    """Kind of an account finding. Scripts match on it."""

    WARM_POOLS = "training-warm-pools"
    TRAINING_RUNS = "training-runs"
    BATCH_TRANSFORM = "batch-transform"
    SERVERLESS = "serverless-or-real-time"
    SAVINGS_PLAN = "savings-plan"
    OFFICE_HOURS = "office-hours"
    ORPHAN_CONFIGURATIONS = "orphan-endpoint-configurations"
    ORPHAN_MODELS = "orphan-models"


LEAST_USD = Decimal(5)
"""US dollars a month below which an account finding is not worth a line; an assumption."""
ADVICE_ONLY = "advice only: rightsizer carries none of it out"
"""What is said of every account finding, since no change of the program does one."""


@dataclass(frozen=True, slots=True)
class FindingItem:
    """One thing that a finding is about."""

    name: str
    detail: str
    """Its figures, for people."""
    created_at: datetime | None = None
    last_used: str = ""
    """When it was last used, as far as AWS shows it; empty where nobody can tell."""
    usd_per_month: Decimal | None = None
    owner: str = ""
    """Person or team that its tags name; empty when nobody is."""
    next_step: str = ""
    """What the owner can do, in one clause, such as ``use ml.c5.xlarge``; empty where the finding's advice says it."""

    def __post_init__(self) -> None:
        not_empty("FindingItem.name", self.name)
        if self.created_at is not None:
            aware("FindingItem.created_at", self.created_at)


@dataclass(frozen=True, slots=True)
class AccountFinding:
    """Money that no option of an endpoint saves, and what its owner can do. The program never does it."""

    code: AccountFindingCode
    what: str
    """What was found, in one sentence with its figures."""
    usd_per_month: Decimal | None
    """US dollars a month that following the advice saves; 0 where nothing is billed, None where it is not known."""
    advice: str
    endpoint: str = ""
    """The endpoint that it is about; empty for the account. Its saving is then instead of its options, not on top."""
    owner: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Name and figure with its unit, for people."""
    items: tuple[FindingItem, ...] = ()
    not_checked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        not_empty("AccountFinding.what", self.what)
        not_empty("AccountFinding.advice", self.advice)
        if self.usd_per_month is not None:
            money("AccountFinding.usd_per_month", self.usd_per_month)


@dataclass(frozen=True, slots=True)
class StoredResource:
    """An endpoint configuration or a model, as its List operation shows it."""

    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ServedResources:
    """Names of the configurations and models that endpoints use; a deployment under way counts."""

    configurations: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()

    def joined(self, other: "ServedResources") -> "ServedResources":
        """The names of both."""
        return ServedResources(self.configurations | other.configurations, self.models | other.models)


@dataclass(frozen=True, slots=True)
class WarmPoolUse:
    """Warm pools that the runs of one training work kept, in a window."""

    work: str
    """Name that its jobs share."""
    kept: int
    """Pools that waited for another run."""
    reused: int
    """Pools that another run took over."""
    unused_s: float
    """Billed seconds of the other ones, of one instance."""
    instance_type: str
    instance_count: int
    """Of the newest run."""
    owner: str = ""
    """Person or team that the tags of the newest run name; empty when nobody is."""
    is_opted_out: bool = False
    """Whether the tag `rightsizer:mode` of the newest run says off: nothing is proposed then."""
    tags_unread: Reason | None = None
    """Why the tags of the newest run could not be read; owner and mode are then not known."""

    def __post_init__(self) -> None:
        not_empty("WarmPoolUse.work", self.work)
        not_negative("WarmPoolUse.unused_s", self.unused_s)


@dataclass(frozen=True, slots=True)
class EndpointTraffic:
    """Requests and work of an endpoint without accelerators, in a window of `days`."""

    endpoint: str
    days: float
    requests: float
    busy_s: float
    """Seconds of all requests together, as the model took them."""
    peak_concurrency: float
    """Requests in service at once on average over the busiest hour."""
    memory_share: float | None
    """Highest share of the memory of an instance or of a serverless endpoint, 0..1; None where not published."""
    seen_days: float = 0.0
    """Hours of the window in which that memory was published, in days: it ran then, called or not."""

    @property
    def monthly_seconds(self) -> float:
        """Seconds of requests in a month."""
        return self.busy_s * 730 / 24 / self.days

    @property
    def seconds_per_request(self) -> float:
        """Mean seconds of a request; 0 without one."""
        return self.busy_s / self.requests if self.requests else 0.0


@dataclass(frozen=True, slots=True)
class ServerlessSize:
    """Memory and provisioned concurrency of a serverless endpoint."""

    gigabytes: int
    provisioned: int = 0
    """Provisioned concurrency, which is billed while it waits."""


def waits_for_nobody(reused: int, kept: int) -> bool:
    """Whether fewer than half of the warm pools were taken over by another run."""
    return kept > 0 and reused < kept / 2
