"""What is known beside one endpoint's own metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rightsizer.model.hardware import Catalogue
from rightsizer.model.history import History
from rightsizer.model.policy import Policy
from rightsizer.model.price import PriceTable


@dataclass(frozen=True, slots=True)
class Given:
    """What the account and the past say, beside the endpoint's own metrics."""

    prices: PriceTable
    catalogue: Catalogue
    quotas: Mapping[str, int]
    history: History
    policy: Policy
    now: datetime
