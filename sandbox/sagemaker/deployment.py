"""How an update of an endpoint goes on in time, and how it ends.

Order of phases and of endings: developer guide, deployment-guardrails*; PendingDeploymentSummary and VariantStatus from
the API reference of DescribeEndpoint. How long AWS takes is not documented; `Timing` holds the sandbox's choice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sandbox.sagemaker.checks import size
from sandbox.sagemaker.nouns import Variant


class Ending(StrEnum):
    """How a deployment is told to end. Without a script it succeeds, unless one of its alarms fires."""

    SUCCESS = "success"
    ALARM = "alarm"
    CAPACITY = "capacity"
    HEALTH_CHECK = "health_check"
    TIMEOUT = "timeout"
    INTERNAL = "internal"
    UPDATE_ROLLBACK_FAILED = "update_rollback_failed"
    FAILED = "failed"
    SYSTEM_UPDATING = "system_updating"


REASONS: Mapping[Ending, str] = {
    # public text, see reference of DescribeEndpoint failure reasons in many issues
    Ending.CAPACITY: (
        "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error. Please retry "
        "using a different ML instance type or after some time. Consider configuring InstancePools in your "
        "EndpointConfig with multiple instance types for priority-based fallback to improve capacity availability."
    ),
    Ending.HEALTH_CHECK: (
        "The primary container for production variant {variant} did not pass the ping health check. Please check "
        "CloudWatch logs for this endpoint."
    ),
    Ending.INTERNAL: "Request to service failed. If failure persists after retry, contact customer support.",
    # texts not published: [assumed]
    Ending.ALARM: "One or more of the specified alarms went into ALARM during the deployment: {alarms}.",
    Ending.TIMEOUT: "The deployment did not finish within MaximumExecutionTimeoutInSeconds ({timeout}).",
    Ending.UPDATE_ROLLBACK_FAILED: "The rolling deployment failed, and rolling it back failed as well.",
    Ending.FAILED: "The endpoint could not be updated.",
}


@dataclass(frozen=True, slots=True)
class Timing:
    """How long things take in this account."""

    create: timedelta = timedelta(minutes=5)
    provision: timedelta = timedelta(minutes=6)
    finish: timedelta = timedelta(minutes=1)
    roll_back: timedelta = timedelta(minutes=3)
    scale: timedelta = timedelta(minutes=4)
    capacity_gives_up: timedelta = timedelta(minutes=15)
    health_check_gives_up: timedelta = timedelta(minutes=24)
    system_update: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a deployment."""

    name: str
    """A VariantStatus: Creating, ActivatingTraffic, Baking, Deleting; or RollingBack, which only we know."""
    lasts: timedelta
    share: float
    """Share of the traffic that the new fleet serves."""
    message: str = ""


@dataclass(slots=True)
class Deployment:
    """An update under way."""

    config_name: str
    started: datetime
    variants: dict[str, Variant]
    shadows: dict[str, Variant]
    phases: list[Phase]
    alarms: tuple[str, ...]
    ending: Ending | None
    request: Mapping[str, Any]
    deadline: datetime | None = None
    at: int = 0
    entered: datetime = field(init=False)
    reason: str | None = None
    """Set once it rolls back."""
    instances: int | None = None

    def __post_init__(self) -> None:
        self.entered = self.started

    @property
    def phase(self) -> Phase:
        """The phase that it is in."""
        return self.phases[self.at]

    @property
    def leaves(self) -> datetime:
        """When the phase ends by itself."""
        return self.entered + self.phase.lasts

    @property
    def serving(self) -> bool:
        """Whether the new fleet has traffic, so that alarms are watched."""
        return self.phase.name in {"ActivatingTraffic", "Baking"} and self.reason is None


@dataclass(slots=True)
class Scaling:
    """A change of counts or weights under way (UpdateEndpointWeightsAndCapacities, auto scaling)."""

    ends: datetime
    fails_with: str | None = None


def alarm_names(request: Mapping[str, Any]) -> tuple[str, ...]:
    """The alarms of AutoRollbackConfiguration."""
    return tuple(alarm["AlarmName"] for alarm in (request.get("AutoRollbackConfiguration") or {}).get("Alarms", []))


def plan(request: Mapping[str, Any], count: int, timing: Timing) -> list[Phase]:
    """The phases of a deployment of `count` instances under this DeploymentConfig (empty: all at once, no baking)."""
    if rolling := request.get("RollingUpdatePolicy"):
        return _rolling(rolling, count, timing)
    policy = request.get("BlueGreenUpdatePolicy") or {}
    routing = policy.get("TrafficRoutingConfiguration") or {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0}
    wait, bake = timedelta(seconds=routing["WaitIntervalInSeconds"]), policy.get("TerminationWaitInSeconds", 0)
    baking = f"Baking for {wait.seconds} seconds (WaitIntervalInSeconds)"
    phases = [Phase("Creating", timing.provision, 0.0)]
    if routing["Type"] == "CANARY":
        canary = size(routing["CanarySize"], count)
        text = f"{baking} with traffic enabled on canary capacity of {canary} instance(s)."
        phases.append(Phase("Baking", wait, canary / max(1, count), text))
    if routing["Type"] == "LINEAR":
        step = size(routing["LinearStepSize"], count)
        for done in range(step, count, step):
            text = f"{baking} with traffic enabled on {done} instance(s)."
            phases.append(Phase("Baking", wait, done / count, text))
    phases.append(Phase("ActivatingTraffic", timedelta(0), 1.0))
    if bake:
        text = f"Baking for {bake} seconds (TerminationWaitInSeconds) with traffic enabled on the full capacity."
        phases.append(Phase("Baking", timedelta(seconds=bake), 1.0, text))
    return [*phases, Phase("Deleting", timing.finish, 1.0)]


def _rolling(policy: Mapping[str, Any], count: int, timing: Timing) -> list[Phase]:
    batch, wait = size(policy["MaximumBatchSize"], count), timedelta(seconds=policy["WaitIntervalInSeconds"])
    phases: list[Phase] = []
    for done in range(0, count, batch):
        phases.append(Phase("Creating", timing.provision, done / count))
        share = min(count, done + batch) / count
        phases.append(Phase("Baking", wait, share, f"Baking for {wait.seconds} seconds (WaitIntervalInSeconds)."))
    return [*phases, Phase("Deleting", timing.finish, 1.0)]
