"""SageMaker Savings Plans of the account: what is committed already, and how much of it is used."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import reading
from rightsizer.aws.session import Session
from rightsizer.model.price import Commitment

if TYPE_CHECKING:
    from types_boto3_ce import CostExplorerClient
    from types_boto3_savingsplans import SavingsPlansClient


class SavingsPlans:
    """Asks for active SageMaker plans (free); only with one, Cost Explorer for their use (0.01 USD a request)."""

    def __init__(self, session: Session, now: datetime) -> None:
        self._plans: SavingsPlansClient = session.client("savingsplans", "us-east-1")
        self._explorer: CostExplorerClient = session.client("ce", "us-east-1")
        self._now = now

    def __call__(self) -> Commitment:
        """The commitment of the account over the last seven whole days; ReadError when it cannot be asked."""
        committed = self._committed()
        if committed == 0:
            return Commitment(Decimal(0), 0.0, known=True)
        return Commitment(committed, self._utilisation(), known=True)

    def _committed(self) -> Decimal:
        total = Decimal(0)
        token: dict[str, Any] = {}
        while True:
            with reading("savingsplans:DescribeSavingsPlans", "asking for SageMaker Savings Plans"):
                page: Any = self._plans.describe_savings_plans(states=["active"], **token)
            plans = [plan for plan in page["savingsPlans"] if plan["savingsPlanType"] == "SageMaker"]
            total += sum((Decimal(plan["commitment"]) for plan in plans), Decimal(0))
            if not page.get("nextToken"):
                return total
            token = {"nextToken": page["nextToken"]}

    def _utilisation(self) -> float:
        end = self._now.date() - timedelta(days=1)  # API text: the end must be before the current date
        with reading("ce:GetSavingsPlansUtilization", "asking how much of the Savings Plans is used"):
            answer = self._explorer.get_savings_plans_utilization(
                TimePeriod={"Start": str(end - timedelta(days=7)), "End": str(end)},
                Filter={"Dimensions": {"Key": "SAVINGS_PLANS_TYPE", "Values": ["SageMaker"]}},
            )
        return min(float(answer["Total"]["Utilization"]["UtilizationPercentage"]) / 100, 1.0)
