"""Reads from AWS before `changes.rollback` decides on the rollback."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rightsizer.changes import rollback
from rightsizer.domain.change import Change
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import Gone, LiveState
from rightsizer.errors import RightsizerError
from rightsizer.ports.changes import Changer
from rightsizer.ports.evaluation import QuotaReader
from rightsizer.telemetry import logger


@dataclass(frozen=True, slots=True)
class RollbackPlanner:
    """Chooses what the rollback deploys, until its update is sent."""

    changer: Changer
    quotas: QuotaReader
    catalogue: Catalogue

    def enlarge_rollback(self, change: Change, live: LiveState, now: datetime) -> Change:
        """The change with a rollback large enough for the present fleet; unchanged where it is.

        Raises ReadError when the old configuration could not be read.
        """
        decided, endpoint = rollback.settled_change(change, live, now), live.endpoint
        if decided is not None or isinstance(endpoint, Gone):
            return decided or change
        change = rollback.keep_owner_edits(change, live, now)
        quotas = self._quotas() if rollback.is_quota_needed(change, endpoint, now) else {}
        change = rollback.limit_batches(change, endpoint, quotas)
        wanted = rollback.needed_counts(change, endpoint, quotas, now)
        if not wanted or change.before is None:
            return change
        source = self.changer.config(change.before.config_name) if change.plan.new_config else None
        given = rollback.RollbackInput(quotas, self.catalogue, source)
        return rollback.enlarge(change, endpoint, wanted, given, now)

    def _quotas(self) -> Mapping[str, int]:
        """By type; unknown where they cannot be read now, since a return must not wait for them."""
        try:
            return self.quotas.endpoint_quotas()
        except RightsizerError as error:
            logger.warning("the quotas are not known for a rollback", extra={"why": str(error)})
            return {}

    def step_alarms(self, live: LiveState) -> tuple[Mapping[str, Any], ...]:
        """The alarms that start the step policies which the endpoint has now. Raises ReadError."""
        policies = [policy for target in live.scaling or () for policy in target.policies]
        arns = [policy["PolicyARN"] for policy in policies if policy.get("PolicyType") == "StepScaling"]
        return tuple(self.changer.alarms_with_actions(arns)) if arns else ()
