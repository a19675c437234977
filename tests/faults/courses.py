"""What happens to a change from outside: how deployments end, what is refused, what others do meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from botocore.exceptions import ReadTimeoutError

from rightsizer.aws import decisions
from rightsizer.aws.changes import AwsChanger
from rightsizer.aws.table import Table
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.option import OptionKind
from rightsizer.flows.orders import Orders
from sandbox.sagemaker.deployment import Ending
from tests.changing.scenarios import BY_TAG, Scenario
from tests.changing.world import NAME, World, others, steady
from tests.faults.laws import snapshot

type Meddle = Callable[[World], bool]
"""Called before every delivery; returns True once it has done its deed."""
QUOTA = (
    "The account-level service limit 'ml.g5.xlarge for endpoint usage' is 2 Instances, with current utilization of 2 "
    "Instances and a request delta of 1 Instances."
)


def _seen(w: World) -> Change:
    """The change as it stands, read by nobody: a death after this read would be the death of the test."""
    with w.box.gate.unrecorded():
        return w.change


@dataclass(frozen=True)
class Course:
    """One ending."""

    name: str
    prepare: Callable[[World], None] = lambda w: None
    meddle: Meddle | None = None
    components: bool = False
    """Makes sense only where components are rolled."""
    deploys: bool = False
    """Makes sense only where a configuration is deployed."""
    tags: bool = False
    """Makes sense only where images are named by a tag."""
    turns: bool = False
    """Makes sense only where one write changes counts or configuration."""
    afterwards: Callable[[World], Callable[[], object]] | None = None
    """Called once when the change is over; what it returns is delivered as an invocation until it is answered."""
    patient: bool = False
    """The deed is for the probation, so that hours may pass until it is time."""

    def suits(self, scenario: Scenario) -> bool:
        """Whether the ending can come about in this scenario."""
        rolls = scenario.option.kind is OptionKind.PLACEMENT or not self.components
        return (
            rolls
            and ("image" in scenario.endpoint or not self.tags)
            and (scenario.deploys or not self.deploys)
            and (scenario.turns or not self.turns)
        )


def scripted(ending: Ending) -> Course:
    return Course(ending.value.replace("_", " "), lambda w: w.box.script_deployment(NAME, ending), deploys=True)


def rolled(ending: Ending) -> Course:
    """The roll of the second component ends so, the first one's succeeds."""
    name = f"component {ending.value.replace('_', ' ')}"
    return Course(name, lambda w: w.box.script_component("large", ending), components=True)


def refused(name: str, operation: str, code: str, text: str, times: float) -> Course:
    return Course(name, lambda w: w.box.gate.fail("sagemaker", operation, code, text, times=times))


def _deleted(w: World) -> bool:
    if w.box.status(NAME) != "Updating":
        return False
    w.box.remove_endpoint(NAME)
    return True


def _deleted_later(w: World) -> bool:
    """In the middle of the probation, with autoscaling given back."""
    if _seen(w).turned_at is None:
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
        kept = {
            k: body[k]
            for k in ("ProductionVariants", "MetricsConfig", "AsyncInferenceConfig", "ExecutionRoleArn")
            if k in body
        }
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
    w.box.gate.fail("sagemaker", "DescribeEndpoint", "AccessDeniedException", "not authorized", times=8)
    return True


def _frozen(w: World) -> bool:
    if not w.box.calls.of("cloudwatch", "PutMetricAlarm"):
        return False
    with w.box.gate.unrecorded():
        Orders(w.journal).freeze("U1", w.now)
        Orders(w.journal).request_rollback(_seen(w).id, "U1", w.now)
    return True


def _asked_back(w: World) -> bool:
    if _seen(w).turned_at is None:
        return False
    with w.box.gate.unrecorded():
        Orders(w.journal).request_rollback(_seen(w).id, "U1", w.now)
    return True


def _tag_moved(w: World) -> bool:
    """The owner pushes another image under the tag after the preflight."""
    if not w.box.calls.of("cloudwatch", "PutMetricAlarm"):
        return False
    w.box.move_image_tag(BY_TAG)
    return True


def _tag_moved_and_asked_back(w: World) -> bool:
    if _seen(w).turned_at is not None:
        w.box.move_image_tag(BY_TAG)
    return _asked_back(w)


def _maintained(w: World) -> bool:
    """AWS's own maintenance begins while the change is watched."""
    if _seen(w).turned_at is None or w.box.status(NAME) != "InService":
        return False
    w.box.world.fleet.system_update(w.box.world.fleet.endpoint(NAME))
    return True


def grow(w: World, more: int = 2) -> bool:
    """Autoscaling or the owner asks for more instances, where AWS lets them."""
    if w.box.status(NAME) != "InService":
        return False
    name = next(iter(w.box.counts(NAME)))
    count = w.box.counts(NAME)[name] + more
    w.box.world.fleet.scripts.setdefault(NAME, []).insert(0, Ending.SUCCESS)  # what is scripted is for deployments
    w.scale(count, name)
    w.grown = (_seen(w).turned_at is not None and _seen(w).returned_at is None, count)
    return True


def _grown_before(w: World) -> bool:
    """Between the plan and the turn."""
    return not w.box.calls.of("sagemaker", "UpdateEndpoint*") and grow(w)


def _grown_later(w: World) -> bool:
    """In the probation, with autoscaling given back."""
    return _seen(w).state is ChangeState.APPLIED and grow(w)


def _grown_and_asked_back(w: World) -> bool:
    if w.grown is None:
        _grown_later(w)
        return False
    return w.box.status(NAME) == "InService" and _asked_back(w)


def _grown_and_failing(w: World) -> bool:
    if w.grown is None:
        _grown_later(w)
        return False
    return _failing_late(w)


def _failing_late(w: World) -> bool:
    """Requests fail from the middle of the probation on."""
    since = _seen(w).turned_at
    if since is None or w.now - since < 0.45 * w.apply.limits.probation or _seen(w).state is not ChangeState.APPLIED:
        return False
    w.box.load(NAME, steady(errors=30))
    return True


def _unanswered(w: World) -> None:
    """The answer of the first update is lost, and its deployment is rolled back by an alarm."""
    w.box.script_deployment(NAME, Ending.ALARM)
    changer = w.apply.changer
    assert isinstance(changer, AwsChanger)
    lossy: Any = _Lossy(changer.sagemaker)
    w.apply = replace(w.apply, changer=replace(changer, sagemaker=lossy))


class _Lossy:
    """A client that loses the answer of its first update."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def update_endpoint(self, **params: Any) -> Any:
        answer = self._client.update_endpoint(**params)
        if not self._lost:
            self._lost = True
            raise ReadTimeoutError(endpoint_url="https://api.sagemaker")
        return answer


def _refused_retry(w: World) -> bool:
    """Before the further try the endpoint is opted out, and another change takes the lock of its model."""
    if not _seen(w).tries:
        return False
    with others(w):
        for model in _seen(w).models[:1]:  # components have their own, their configuration names none
            w.taken = model
            key = {"pk": {"S": f"LOCK#MODEL#{w.taken}"}, "sk": {"S": "LOCK"}}
            w.box.client("dynamodb").put_item(TableName="t", Item=key | {"change": {"S": "c-other"}})
        w.box.world.tags.put(w.box.world.fleet.arn("endpoint", NAME), {"rightsizer:mode": "off"})
    return True


def _release(w: World) -> None:
    """The owner deploys after the change was over, with bounds of their own."""
    sagemaker, scaling = w.box.client("sagemaker"), w.box.client("application-autoscaling")
    with others(w):
        body = sagemaker.describe_endpoint_config(EndpointConfigName=w.box.config_name(NAME))
        keys = ("ProductionVariants", "MetricsConfig", "AsyncInferenceConfig", "ExecutionRoleArn")
        kept: Any = {k: body[k] for k in keys if k in body}
        sagemaker.create_endpoint_config(EndpointConfigName="theirs", **kept)
        sagemaker.update_endpoint(EndpointName=NAME, EndpointConfigName="theirs", RetainAllVariantProperties=True)
        w.box.clock.advance(timedelta(minutes=45))
        for target in scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]:
            who: Any = {k: target[k] for k in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
            scaling.register_scalable_target(**who, MinCapacity=1, MaxCapacity=40)
        w.released = snapshot(w)


def _late_button(w: World) -> Callable[[], object]:
    """After a release somebody presses the button of the old message."""
    _release(w)
    with w.box.gate.unrecorded():
        if _seen(w).state is not ChangeState.PROVEN:
            return lambda: None
        decisions.request_rollback(Table(w.box.client("dynamodb"), "t"), w.proposal.id, "slack:U1", w.now)
        proposal = w.shown()
    return lambda: w.apply.roll_back(proposal, w.now)


def _late_order(w: World) -> Callable[[], object]:
    """An order was recorded by somebody who did not look, and the release came before it was carried out."""
    _release(w)
    with w.box.gate.unrecorded():
        if _seen(w).state is ChangeState.PROVEN:
            Orders(w.journal).request_rollback(_seen(w).id, "U1", w.now)
    return lambda: w.apply.tick(w.now)


def _component_deleted(w: World) -> bool:
    """Somebody deletes a component while the other one is rolled."""
    if w.box.world.components.known["small"].status != "Updating":
        return False
    with others(w):
        w.box.client("sagemaker").delete_inference_component(InferenceComponentName="large")
    return True


def _component_edited(w: World) -> bool:
    """Its owner gives a component more memory while it is watched, and then somebody asks for the way back."""
    if _seen(w).turned_at is None:
        return False
    known = w.box.world.components.known["small"]
    needs = {**known.specification["ComputeResourceRequirements"], "MinMemoryRequiredInMb": 2048}
    known.specification = {**known.specification, "ComputeResourceRequirements": needs}
    w.edited, w.edit = "small", needs
    return _asked_back(w)


COURSES: tuple[Course, ...] = (
    Course("success"),
    rolled(Ending.ALARM),
    rolled(Ending.CAPACITY),
    rolled(Ending.TIMEOUT),
    rolled(Ending.FAILED),
    Course("component deleted by somebody", meddle=_component_deleted, components=True),
    Course("component edited, then asked back", meddle=_component_edited, components=True),
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
    Course("maintained by AWS", meddle=_maintained),
    Course("asked back", meddle=_asked_back),
    Course("image pushed meanwhile", meddle=_tag_moved, tags=True),
    Course("image pushed, then asked back", meddle=_tag_moved_and_asked_back, tags=True),
    Course("asked back while frozen", meddle=_frozen),
    Course("failing late", meddle=_failing_late, patient=True, deploys=True),
    Course("scaled before the turn", meddle=_grown_before, deploys=True),
    Course(
        "scaled before the turn, then an alarm",
        lambda w: w.box.script_deployment(NAME, Ending.ALARM),
        _grown_before,
        deploys=True,
    ),
    Course("scaled while watched", meddle=_grown_later, turns=True),
    Course("scaled while watched, then asked back", meddle=_grown_and_asked_back, turns=True),
    Course("scaled while watched, then failing late", meddle=_grown_and_failing, patient=True, deploys=True),
    Course("answer lost, then an alarm", _unanswered, deploys=True),
    Course(
        "a further try refused",
        lambda w: w.box.script_deployment(NAME, Ending.CAPACITY),
        _refused_retry,
        deploys=True,
    ),
    Course("released, then the button", afterwards=_late_button, deploys=True),
    Course("released, then an order under way", afterwards=_late_order, deploys=True),
)
