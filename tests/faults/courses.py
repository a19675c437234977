"""What happens to a change from outside: how deployments end, what is refused, what others do meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass

from rightsizer.flows.orders import Orders
from sandbox.sagemaker.deployment import Ending
from tests.changing.world import NAME, World

type Meddle = Callable[[World], bool]
"""Called before every delivery; returns True once it has done its deed."""
QUOTA = (
    "The account-level service limit 'ml.g5.xlarge for endpoint usage' is 2 Instances, with current utilization of 2 "
    "Instances and a request delta of 1 Instances."
)


@dataclass(frozen=True)
class Course:
    """One ending."""

    name: str
    prepare: Callable[[World], None] = lambda w: None
    meddle: Meddle | None = None
    deploys: bool = False
    """Makes sense only where a configuration is deployed."""


def scripted(ending: Ending) -> Course:
    return Course(ending.value.replace("_", " "), lambda w: w.box.script_deployment(NAME, ending), deploys=True)


def refused(name: str, operation: str, code: str, text: str, times: float) -> Course:
    return Course(name, lambda w: w.box.fail("sagemaker", operation, code, text, times=times))


def _scaled(w: World) -> bool:
    """A person scales by hand after the plan, before anything was deployed."""
    if w.change.before is None or w.box.status(NAME) != "InService" or w.box.calls.of("sagemaker", "UpdateEndpoint"):
        return False
    first = w.change.before.variants[0]
    w.scale(first.count + 1, first.name)
    w.moved[first.name] = first.count + 1
    return True


def _deleted(w: World) -> bool:
    if w.box.status(NAME) != "Updating":
        return False
    w.box.remove_endpoint(NAME)
    return True


def _deleted_later(w: World) -> bool:
    """In the middle of the probation, with autoscaling given back."""
    if w.change.turned_at is None:
        return False
    w.box.remove_endpoint(NAME)
    return True


def _redeployed(w: World) -> bool:
    """Somebody deploys a configuration of theirs once ours is there."""
    if w.box.status(NAME) != "InService" or w.box.config_name(NAME) == f"{NAME}-config":
        return False
    sagemaker = w.box.client("sagemaker")
    with w.box.gate.unrecorded():
        body = sagemaker.describe_endpoint_config(EndpointConfigName=w.box.config_name(NAME))
        kept = {k: body[k] for k in ("ProductionVariants", "MetricsConfig")}
        sagemaker.create_endpoint_config(EndpointConfigName="theirs", **kept)
        sagemaker.update_endpoint(EndpointName=NAME, EndpointConfigName="theirs")
    return True


def _denied(w: World) -> bool:
    if w.box.status(NAME) != "Updating":
        return False
    w.box.deny(
        "application-autoscaling:Register*", "application-autoscaling:Put*", "cloudwatch:Delete*", "cloudwatch:Put*"
    )
    return True


def _blinded(w: World) -> bool:
    """A read is refused for some hours, and then is allowed again."""
    if w.box.status(NAME) != "Updating":
        return False
    w.box.fail("sagemaker", "DescribeEndpoint", "AccessDeniedException", "not authorized", times=8)
    return True


def _frozen(w: World) -> bool:
    if not w.box.calls.of("cloudwatch", "PutMetricAlarm"):
        return False
    with w.box.gate.unrecorded():
        Orders(w.journal).freeze("U1", w.now)
        Orders(w.journal).ask_back(w.change.id, "U1", w.now)
    return True


def _asked_back(w: World) -> bool:
    if w.change.turned_at is None:
        return False
    with w.box.gate.unrecorded():
        Orders(w.journal).ask_back(w.change.id, "U1", w.now)
    return True


def _grown(w: World) -> bool:
    """The load grew since the plan, the fleet with it, and then somebody asks for the way back."""
    if w.change.turned_at is None or w.box.status(NAME) != "InService":
        return False
    first = w.change.plan.after[0]
    if not w.grown:
        w.grown[first.name] = max(first.count, w.change.before.variants[0].count if w.change.before else 0) + 2
        w.scale(w.grown[first.name], first.name)
        return False
    with w.box.gate.unrecorded():
        Orders(w.journal).ask_back(w.change.id, "U1", w.now)
    return True


def _maintained(w: World) -> bool:
    """AWS's own maintenance begins while the change is watched."""
    if w.change.turned_at is None or w.box.status(NAME) != "InService":
        return False
    w.box.world.fleet.system_update(w.box.world.fleet.endpoint(NAME))
    return True


COURSES: tuple[Course, ...] = (
    Course("success"),
    scripted(Ending.ALARM),
    scripted(Ending.CAPACITY),
    scripted(Ending.HEALTH_CHECK),
    scripted(Ending.TIMEOUT),
    scripted(Ending.INTERNAL),
    scripted(Ending.UPDATE_ROLLBACK_FAILED),
    scripted(Ending.FAILED),
    scripted(Ending.SYSTEM_UPDATING),
    refused("quota", "Update*", "ResourceLimitExceeded", QUOTA, 1),
    refused("throttling storm", "*", "ThrottlingException", "Rate exceeded", 12),
    Course("permission to update lost", lambda w: w.box.deny("sagemaker:Update*")),
    Course("permission lost midway", meddle=_denied),
    Course("sight lost midway", meddle=_blinded),
    Course("deleted by somebody", meddle=_deleted),
    Course("deleted while watched", meddle=_deleted_later),
    Course("redeployed by somebody", meddle=_redeployed, deploys=True),
    Course("scaled by somebody before the turn", meddle=_scaled, deploys=True),
    Course("maintained by AWS", meddle=_maintained),
    Course("asked back after the fleet grew", meddle=_grown, deploys=True),
    Course("asked back", meddle=_asked_back),
    Course("asked back while frozen", meddle=_frozen),
)
