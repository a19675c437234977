"""The writes of each function, asked of IAM's simulation: nothing is written to try them.

Source: IAM SimulatePrincipalPolicy. The simulation judges a role's own policies with the tags and keys that are given
here; policies of the organisation or of a resource can still refuse the real request.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rightsizer.aws.deployment import FUNCTION, Resource
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session
from rightsizer.domain.self_test import Check, Outcome, Tested
from rightsizer.errors import RightsizerError

OPTED_IN = {"aws:ResourceTag/rightsizer:mode": "auto"}
OF_A_CHANGE = {"aws:RequestTag/rightsizer:change": "c"}
LEFT_BY_A_CHANGE = {"aws:ResourceTag/rightsizer:change": "c"}

HAS_HOURS = {"aws:ResourceTag/rightsizer:hours": "mon-fri 08:00-19:00 UTC"}
GIVEN_HOURS = {"aws:RequestTag/rightsizer:hours": "mon-fri 08:00-19:00 UTC"}


@dataclass(frozen=True, slots=True)
class Write:
    """A write permission, and a request of the kind that the program makes."""

    resource: str
    """Resource part of the ARN, after the account, with `{stack}` for the stack's name.

    For a resource of the stack its logical id, with `$` before it.
    """
    service: str = ""
    """Service part of the ARN; empty for a resource of the stack."""
    context: Mapping[str, str] = field(default_factory=dict)
    is_forward: bool = False
    """Whether only a new change makes it, so that MayChange=nothing takes it away though the action stays."""


@dataclass(frozen=True, slots=True)
class StackAccess:
    """A deployed stack, and the credentials that ask about it."""

    session: Session
    name: str
    resources: tuple[Resource, ...]
    account: str


def _item(key: str) -> Write:
    """An item of the table with that partition key."""
    return Write("$Table", context={"dynamodb:LeadingKeys": key})


ENDPOINT = Write("endpoint/any", "sagemaker", OPTED_IN)
TARGET = Write(
    "scalable-target/any", "application-autoscaling", {"application-autoscaling:service-namespace": "sagemaker"}
)
GROUP = Write("autoScalingGroup:any:autoScalingGroupName/any", "autoscaling", OPTED_IN)
COMPONENT = Write("inference-component/any", "sagemaker", OPTED_IN)
TRACKING_ALARM = Write("alarm:TargetTracking-endpoint/any", "cloudwatch")
TABLE, TOPIC, QUEUE = Write("$Table"), Write("$Topic"), Write("$EvaluationQueue")
EVENT = Write("event-bus/default", "events", {"events:source": "rightsizer"})
PAGE = Write("$Bucket")
WAKE = _item("WAKE#e")
"""Only a stack that stops endpoints lets `respond` leave an order to wake one."""
WRITES: Mapping[str, Mapping[str, tuple[Write, ...]]] = {
    "sweep": {
        "dynamodb:PutItem": tuple(_item(key) for key in ("GROUP#g", "ACCOUNT", "PROPOSAL#p", "REPORT#r")),
        "events:PutEvents": (EVENT,),
        "sqs:SendMessage": (QUEUE,),
    },
    "evaluate": {
        "dynamodb:PutItem": tuple(
            _item(key) for key in ("ENDPOINT#e", "PROPOSAL#p", "EXPIRY#p", "OCCURRENCE#o", "SCORE#s")
        ),
        "dynamodb:BatchWriteItem": (_item("ENDPOINT#e"),),
        "sqs:SendMessage": (QUEUE,),
    },
    "propose": {
        "dynamodb:PutItem": (_item("MESSAGE#p"), _item("PARKED#p")),
        "sns:Publish": (TOPIC,),
        "lambda:InvokeFunction": (Write("$Picture"),),
        "events:PutEvents": (EVENT,),
    },
    "respond": {
        "dynamodb:PutItem": (_item("PROPOSAL#p"), WAKE),
        "s3:GetObject": (PAGE,),  # for signed links: reading a page that is not there proves nothing
    },
    "picture": {"dynamodb:PutItem": (_item("MESSAGE#picture#p"),)},
    "apply": {
        "dynamodb:PutItem": (TABLE,),
        "dynamodb:UpdateItem": (TABLE,),
        "dynamodb:DeleteItem": (TABLE,),
        "sns:Publish": (TOPIC,),
        "sagemaker:UpdateEndpoint": (ENDPOINT, Write("endpoint-config/any", "sagemaker", LEFT_BY_A_CHANGE)),
        "sagemaker:UpdateEndpointWeightsAndCapacities": (ENDPOINT,),
        "sagemaker:CreateEndpointConfig": (Write("endpoint-config/any", "sagemaker", OF_A_CHANGE),),
        "sagemaker:AddTags": (Write("endpoint-config/any", "sagemaker", OF_A_CHANGE),),
        "sagemaker:UpdateInferenceComponent": (COMPONENT,),
        "sagemaker:UpdateInferenceComponentRuntimeConfig": (COMPONENT,),
        "sagemaker:UpdateTrainingJob": (Write("training-job/any", "sagemaker", OPTED_IN),),
        "application-autoscaling:RegisterScalableTarget": (TARGET,),
        "application-autoscaling:DeregisterScalableTarget": (TARGET,),
        "application-autoscaling:PutScalingPolicy": (TARGET,),
        "application-autoscaling:DeleteScalingPolicy": (TARGET,),
        "application-autoscaling:PutScheduledAction": (TARGET,),
        "cloudwatch:PutMetricAlarm": (
            TRACKING_ALARM,
            Write("alarm:{stack}-c-any", "cloudwatch", OF_A_CHANGE, is_forward=True),
            Write("alarm:{stack}-wake-any", "cloudwatch", OF_A_CHANGE, is_forward=True),
        ),
        "cloudwatch:DeleteAlarms": (
            TRACKING_ALARM,
            Write("alarm:{stack}-c-any", "cloudwatch", LEFT_BY_A_CHANGE),
            Write("alarm:{stack}-wake-any", "cloudwatch", LEFT_BY_A_CHANGE),
        ),
        "autoscaling:UpdateAutoScalingGroup": (GROUP,),
    },
    "hours": {
        "dynamodb:PutItem": tuple(
            _item(key) for key in ("HOURS#e", "LOCK#ENDPOINT#e", "OCCURRENCE#o", "PARKED#p", "ASLEEP#e")
        ),
        "dynamodb:DeleteItem": (_item("LOCK#ENDPOINT#e"), _item("WAKE#e")),
        "sns:Publish": (TOPIC,),
        "sagemaker:DeleteEndpoint": (Write("endpoint/any", "sagemaker", HAS_HOURS),),
        "sagemaker:CreateEndpoint": (
            Write("endpoint/any", "sagemaker", GIVEN_HOURS),
            Write("endpoint-config/any", "sagemaker"),
        ),
        "sagemaker:AddTags": (
            Write("endpoint/any", "sagemaker", GIVEN_HOURS | {"sagemaker:TaggingAction": "CreateEndpoint"}),
        ),
        "sagemaker:UpdateEndpointWeightsAndCapacities": (Write("endpoint/any", "sagemaker", HAS_HOURS),),
        "application-autoscaling:RegisterScalableTarget": (TARGET,),
        "application-autoscaling:DeregisterScalableTarget": (TARGET,),
        "application-autoscaling:PutScalingPolicy": (TARGET,),
        "application-autoscaling:PutScheduledAction": (TARGET,),
        "cloudwatch:PutMetricAlarm": (TRACKING_ALARM,),
        "cloudwatch:DeleteAlarms": (TRACKING_ALARM,),
        "cloudwatch:DisableAlarmActions": (Write("alarm:any", "cloudwatch"),),
        "cloudwatch:EnableAlarmActions": (Write("alarm:any", "cloudwatch"),),
    },
    "interruption": {
        "dynamodb:PutItem": tuple(_item(key) for key in ("SPOT#i", "ONCE#o", "POOL#p", "OCCURRENCE#o")),
        "sqs:SendMessage": (QUEUE,),
        "sns:Publish": (TOPIC,),
        "autoscaling:DetachInstances": (GROUP,),
        "autoscaling:TerminateInstanceInAutoScalingGroup": (GROUP,),
    },
    "report": {"dynamodb:PutItem": (_item("REPORT#r"),), "sns:Publish": (TOPIC,), "events:PutEvents": (EVENT,)},
}
"""By door and IAM action (template.yaml; a test holds both together)."""
ON_WHAT_SERVES = frozenset({"sagemaker", "application-autoscaling", "cloudwatch", "autoscaling"})
"""Services in which a stack that is told to change nothing holds no write, or only those below."""
GIVING_BACK = frozenset(
    {
        "sagemaker:UpdateEndpoint",
        "sagemaker:UpdateEndpointWeightsAndCapacities",
        "sagemaker:UpdateInferenceComponent",
        "sagemaker:UpdateInferenceComponentRuntimeConfig",
        *(action for action in WRITES["apply"] if action.startswith("application-autoscaling:")),
        "cloudwatch:PutMetricAlarm",
        "cloudwatch:DeleteAlarms",
        "autoscaling:UpdateAutoScalingGroup",
    }
)
"""What takes back a change that is open: MayChange=nothing keeps it."""


STOPPING = frozenset({"sagemaker:DeleteEndpoint", "cloudwatch:DisableAlarmActions"})
"""Writes by which `hours` stops an endpoint; the others bring it back."""


def writes_of_door(door: str, may_change: str) -> Mapping[str, tuple[Write, ...]]:
    """The writes that a door's role holds under this MayChange (template.yaml).

    `hours` loses only what stops endpoints, since one may be asleep.
    """
    if door == "hours":
        taken = STOPPING if may_change in ("read-only", "nothing") else frozenset[str]()
        return {action: writes for action, writes in WRITES[door].items() if action not in taken}
    kept = {"read-only": frozenset[str](), "nothing": GIVING_BACK}.get(may_change)
    if kept is None:
        return WRITES.get(door, {})
    return {
        action: tuple(write for write in writes if not write.is_forward)
        for action, writes in WRITES.get(door, {}).items()
        if action in kept or action.partition(":")[0] not in ON_WHAT_SERVES
    }


def simulate_writes(stack: StackAccess, may_change: str) -> Iterator[Tested]:
    """Answers of IAM about the writes of each function.

    `may_change`: the stack's parameter MayChange.
    """
    functions = [r for r in stack.resources if r.kind == FUNCTION]
    may_stop = any(function.logical_id.lower() == "hours" for function in functions)
    for function in functions:
        door = function.logical_id.lower()
        wanted = writes_of_door(door, may_change)
        if not may_stop and door == "respond":
            wanted = {action: tuple(write for write in writes if write != WAKE) for action, writes in wanted.items()}
        yield Tested(door, tuple(_check_role(stack, function, wanted)))


def _check_role(stack: StackAccess, function: Resource, wanted: Mapping[str, tuple[Write, ...]]) -> Iterator[Check]:
    try:
        with translate_read_errors("lambda:GetFunctionConfiguration", f"knowing the role of {function.name}"):
            client = stack.session.client("lambda")
            role = client.get_function_configuration(FunctionName=function.name)["Role"]
    except RightsizerError as error:
        yield from _unasked_checks(wanted, error, "lambda:GetFunctionConfiguration")
        return
    for write, actions in _actions_by_write(wanted):
        yield from _check_write(stack, role, write, actions)


def _actions_by_write(wanted: Mapping[str, tuple[Write, ...]]) -> Iterator[tuple[Write, list[str]]]:
    """What is done to each resource in the same circumstances: IAM answers it in one request."""
    each = [(action, write) for action, writes in wanted.items() for write in writes]
    for number, (_, write) in enumerate(each):
        if write not in (before for _, before in each[:number]):
            yield write, [action for action, other in each if other == write]


def _check_write(stack: StackAccess, role: str, write: Write, actions: list[str]) -> Iterator[Check]:
    arn = _arn(stack, role, write)
    if not arn:
        yield from (_foreign_resource_check(action, write) for action in actions)
        return
    try:
        allowed = _allowed_actions(stack.session, role, actions, arn, write.context)
    except RightsizerError as error:
        yield from _unasked_checks(actions, error, "iam:SimulatePrincipalPolicy")
        return
    purpose = f"acting on {arn.rpartition(':')[2]}"
    remedy = "deploy the template of this release again, and look for a permissions boundary on the role"
    for action in actions:
        if action in allowed:
            yield Check(action, purpose, Outcome.OK, "as IAM's simulation says")
        else:
            yield Check(action, purpose, Outcome.FAILED, f"IAM's simulation denies it to {role}", remedy)


def _unasked_checks(wanted: Iterable[str], error: RightsizerError, action: str) -> Iterator[Check]:
    remedy = f"allow {action} to these credentials, and run it again"
    yield from (Check(name, "writing", Outcome.NOT_CHECKED, str(error), remedy) for name in wanted)


def _foreign_resource_check(action: str, write: Write) -> Check:
    """A resource that the stack uses and did not make: an adopted table or bucket."""
    name = write.resource[1:]
    remedy = f"none is needed where {name} was adopted; else look at the events of the stack"
    return Check(action, "acting on " + name, Outcome.NOT_CHECKED, f"the stack has no resource {name}", remedy)


def _arn(stack: StackAccess, role: str, write: Write) -> str:
    """What is acted on; empty where the stack did not make it."""
    partition, where = role.split(":")[1], f"{stack.session.region}:{stack.account}"
    if not write.resource.startswith("$"):
        return f"arn:{partition}:{write.service}:{where}:{write.resource.format(stack=stack.name)}"
    name = next((r.name for r in stack.resources if r.logical_id == write.resource[1:]), "")
    match write.resource if name else "":
        case "$Bucket":
            return f"arn:{partition}:s3:::{name}/pages/any.html"
        case "$Table":
            return f"arn:{partition}:dynamodb:{where}:table/{name}"
        case "$Picture":
            return f"arn:{partition}:lambda:{where}:function:{name}"
        case "$EvaluationQueue":
            return f"arn:{partition}:sqs:{where}:{name.rpartition('/')[2]}"
        case _:
            return name


def _allowed_actions(
    session: Session, role: str, actions: list[str], arn: str, context: Mapping[str, str]
) -> frozenset[str]:
    entries: list[Any] = [
        {
            "ContextKeyName": key,
            "ContextKeyType": "stringList" if "LeadingKeys" in key else "string",
            "ContextKeyValues": [value],
        }
        for key, value in context.items()
    ]
    with translate_read_errors("iam:SimulatePrincipalPolicy", f"asking what {role} may write"):
        answer = session.client("iam").simulate_principal_policy(
            PolicySourceArn=role, ActionNames=actions, ResourceArns=[arn], ContextEntries=entries
        )
    return frozenset(row["EvalActionName"] for row in answer["EvaluationResults"] if row["EvalDecision"] == "allowed")
