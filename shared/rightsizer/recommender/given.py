"""What is known beside one endpoint's own metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import PriceTable


@dataclass(frozen=True, slots=True)
class Given:
    """What the account and the past say, beside the endpoint's own metrics."""

    prices: PriceTable
    catalogue: Catalogue
    quotas: Mapping[str, int]
    history: History
    policy: Policy
    now: datetime
