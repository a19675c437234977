"""SageMaker Savings Plans of the account: what is committed already, and how much of it is used."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import reading
from rightsizer.aws.session import Session
from rightsizer.domain.price import Commitment

if TYPE_CHECKING:
    from types_boto3_ce import CostExplorerClient
    from types_boto3_savingsplans import SavingsPlansClient


class SavingsPlans:
    """Asks for active SageMaker plans (free); only with one, Cost Explorer for their use (0.01 USD a request)."""

    def __init__(self, session: Session, clock: Callable[[], datetime]) -> None:
        self._plans: SavingsPlansClient = session.client("savingsplans", "us-east-1")
        self._explorer: CostExplorerClient = session.client("ce", "us-east-1")
        self._clock = clock

    def __call__(self) -> Commitment:
        """The commitment of the account over the last seven whole days; ReadError when it cannot be asked.

        An account without plans of its own may be covered by those of its organisation's payer account, which
        DescribeSavingsPlans does not show: the commitment is then unknown, not zero.
        """
        plans = self._active()
        if not plans:
            return Commitment(Decimal(0), 0.0, known=False)
        committed = sum((Decimal(plan["commitment"]) for plan in plans), Decimal(0))
        return Commitment(committed, self._utilisation([plan["savingsPlanArn"] for plan in plans]), known=True)

    def _active(self) -> list[Any]:
        found: list[Any] = []
        token: dict[str, Any] = {}
        while True:
            with reading("savingsplans:DescribeSavingsPlans", "asking for SageMaker Savings Plans"):
                page: Any = self._plans.describe_savings_plans(states=["active"], **token)
            found += [plan for plan in page["savingsPlans"] if plan["savingsPlanType"] == "SageMaker"]
            if not page.get("nextToken"):
                return found
            token = {"nextToken": page["nextToken"]}

    def _utilisation(self, arns: list[str]) -> float:
        """0..1. Filtered by the plans' ARNs: Cost Explorer spells plan types otherwise than DescribeSavingsPlans does,
        and a value that it does not know matches nothing, without an error."""
        end = self._clock().date() - timedelta(days=1)  # API text: the end must be before the current date
        with reading("ce:GetSavingsPlansUtilization", "asking how much of the Savings Plans is used"):
            answer = self._explorer.get_savings_plans_utilization(
                TimePeriod={"Start": str(end - timedelta(days=7)), "End": str(end)},
                Filter={"Dimensions": {"Key": "SAVINGS_PLAN_ARN", "Values": arns}},
            )
        return min(float(answer["Total"]["Utilization"]["UtilizationPercentage"]) / 100, 1.0)
