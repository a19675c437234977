"""The writes of each function, asked of IAM's simulation: nothing is written to try them.

Source: IAM SimulatePrincipalPolicy. The simulation judges a role's own policies with the tags and keys that are given
here; policies of the organisation or of a resource can still refuse the real request.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rightsizer.aws.deployment import FUNCTION, Resource
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session
from rightsizer.domain.self_test import Check, Outcome, Tested
from rightsizer.errors import RightsizerError

OPTED_IN = {"aws:ResourceTag/rightsizer:mode": "auto"}
OF_A_CHANGE = {"aws:RequestTag/rightsizer:change": "c"}


@dataclass(frozen=True, slots=True)
class Write:
    """A write permission, and a request of the kind that the program makes."""

    resource: str
    """Resource part of the ARN, after the account; or the logical id of a resource of the stack, with `$` before it."""
    service: str = ""
    """Service part of the ARN; empty for a resource of the stack."""
    context: Mapping[str, str] = field(default_factory=dict)


ENDPOINT = Write("endpoint/any", "sagemaker", OPTED_IN)
TARGET = Write(
    "scalable-target/any", "application-autoscaling", {"application-autoscaling:service-namespace": "sagemaker"}
)
GROUP = Write("autoScalingGroup:any:autoScalingGroupName/any", "autoscaling", OPTED_IN)
COMPONENT = Write("inference-component/any", "sagemaker", OPTED_IN)
TABLE, TOPIC, QUEUE = Write("$Table"), Write("$Topic"), Write("$EvaluationQueue")
PAGE = Write("$Bucket")
WRITES: Mapping[str, Mapping[str, Write]] = {
    "sweep": {"dynamodb:PutItem": TABLE, "sqs:SendMessage": QUEUE},
    "evaluate": {"dynamodb:PutItem": TABLE, "sqs:SendMessage": QUEUE},
    "propose": {
        "dynamodb:PutItem": Write("$Table", context={"dynamodb:LeadingKeys": "MESSAGE#p"}),
        "sns:Publish": TOPIC,
        "events:PutEvents": Write("event-bus/default", "events", {"events:source": "rightsizer"}),
    },
    "respond": {
        "dynamodb:PutItem": Write("$Table", context={"dynamodb:LeadingKeys": "PROPOSAL#p"}),
        "s3:GetObject": PAGE,  # for signed links: reading a page that is not there proves nothing
    },
    "apply": {
        "dynamodb:PutItem": TABLE,
        "dynamodb:UpdateItem": TABLE,
        "dynamodb:DeleteItem": TABLE,
        "sns:Publish": TOPIC,
        "sagemaker:UpdateEndpoint": ENDPOINT,
        "sagemaker:UpdateEndpointWeightsAndCapacities": ENDPOINT,
        "sagemaker:CreateEndpointConfig": Write("endpoint-config/any", "sagemaker", OF_A_CHANGE),
        "sagemaker:AddTags": Write("endpoint-config/any", "sagemaker", OF_A_CHANGE),
        "sagemaker:UpdateInferenceComponent": COMPONENT,
        "sagemaker:UpdateInferenceComponentRuntimeConfig": COMPONENT,
        "sagemaker:UpdateTrainingJob": Write("training-job/any", "sagemaker", OPTED_IN),
        "application-autoscaling:RegisterScalableTarget": TARGET,
        "application-autoscaling:DeregisterScalableTarget": TARGET,
        "application-autoscaling:PutScalingPolicy": TARGET,
        "application-autoscaling:DeleteScalingPolicy": TARGET,
        "application-autoscaling:PutScheduledAction": TARGET,
        "cloudwatch:PutMetricAlarm": Write("alarm:TargetTracking-endpoint/any", "cloudwatch"),
        "cloudwatch:DeleteAlarms": Write("alarm:TargetTracking-endpoint/any", "cloudwatch"),
        "autoscaling:UpdateAutoScalingGroup": GROUP,
    },
    "interruption": {
        "dynamodb:PutItem": Write("$Table", context={"dynamodb:LeadingKeys": "SPOT#i"}),
        "sqs:SendMessage": QUEUE,
        "sns:Publish": TOPIC,
        "autoscaling:DetachInstances": GROUP,
        "autoscaling:TerminateInstanceInAutoScalingGroup": GROUP,
    },
    "report": {"sns:Publish": TOPIC},
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


def writes_of_door(door: str, may_change: str) -> Mapping[str, Write]:
    """The writes that a door's role holds under this MayChange (template.yaml)."""
    kept = {"read-only": frozenset[str](), "nothing": GIVING_BACK}.get(may_change)
    return {
        action: write
        for action, write in WRITES.get(door, {}).items()
        if kept is None or action in kept or action.partition(":")[0] not in ON_WHAT_SERVES
    }


def simulate_writes(
    session: Session, resources: tuple[Resource, ...], account: str, may_change: str
) -> Iterator[Tested]:
    """Answers of IAM about the writes of each function.

    `may_change`: the stack's parameter MayChange.
    """
    for function in (r for r in resources if r.kind == FUNCTION):
        door = function.logical_id.lower()
        wanted = writes_of_door(door, may_change)
        yield Tested(door, tuple(_check_role(session, function, wanted, resources, account)))


def _check_role(
    session: Session, function: Resource, wanted: Mapping[str, Write], resources: tuple[Resource, ...], account: str
) -> Iterator[Check]:
    try:
        with translate_read_errors("lambda:GetFunctionConfiguration", f"knowing the role of {function.name}"):
            role = session.client("lambda").get_function_configuration(FunctionName=function.name)["Role"]
    except RightsizerError as error:
        yield from _unasked_checks(wanted, error, "lambda:GetFunctionConfiguration")
        return
    for action, write in wanted.items():
        try:
            arn = _arn(session, role, write, resources, account)
            if not arn:
                yield _foreign_resource_check(action, write)
                continue
            allowed = _is_allowed(session, role, action, arn, write.context)
        except RightsizerError as error:
            yield from _unasked_checks({action: write}, error, "iam:SimulatePrincipalPolicy")
            continue
        purpose = f"acting on {arn.rpartition(':')[2]}"
        if allowed:
            yield Check(action, purpose, Outcome.OK, "as IAM's simulation says")
        else:
            remedy = "deploy the template of this release again, and look for a permissions boundary on the role"
            yield Check(action, purpose, Outcome.FAILED, f"IAM's simulation denies it to {role}", remedy)


def _unasked_checks(wanted: Mapping[str, Write], error: RightsizerError, action: str) -> Iterator[Check]:
    remedy = f"allow {action} to these credentials, and run it again"
    yield from (Check(name, "writing", Outcome.NOT_CHECKED, str(error), remedy) for name in wanted)


def _foreign_resource_check(action: str, write: Write) -> Check:
    """A resource that the stack uses and did not make: an adopted table or bucket."""
    name = write.resource[1:]
    remedy = f"none is needed where {name} was adopted; else look at the events of the stack"
    return Check(action, "acting on " + name, Outcome.NOT_CHECKED, f"the stack has no resource {name}", remedy)


def _arn(session: Session, role: str, write: Write, resources: tuple[Resource, ...], account: str) -> str:
    """What is acted on; empty where the stack did not make it."""
    partition = role.split(":")[1]
    if not write.resource.startswith("$"):
        return f"arn:{partition}:{write.service}:{session.region}:{account}:{write.resource}"
    name = next((r.name for r in resources if r.logical_id == write.resource[1:]), "")
    match write.resource if name else "":
        case "$Bucket":
            return f"arn:{partition}:s3:::{name}/pages/any.html"
        case "$Table":
            return f"arn:{partition}:dynamodb:{session.region}:{account}:table/{name}"
        case "$EvaluationQueue":
            return f"arn:{partition}:sqs:{session.region}:{account}:{name.rpartition('/')[2]}"
        case _:
            return name


def _is_allowed(session: Session, role: str, action: str, arn: str, context: Mapping[str, str]) -> bool:
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
            PolicySourceArn=role, ActionNames=[action], ResourceArns=[arn], ContextEntries=entries
        )
    return all(row["EvalDecision"] == "allowed" for row in answer["EvaluationResults"])
