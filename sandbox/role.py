"""An IAM role over the account: its statements decide on each write, as AWS would with tags and request context.

Which resources and keys a request is checked with: Service Authorization Reference of SageMaker, Application Auto
Scaling, CloudWatch and KMS. Reads are not limited here, since the template gives them on everything.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sandbox.gate import Call, Fault
from sandbox.policies import Ask, allowed
from sandbox.world import World

GUARDED = frozenset({"sagemaker", "application-autoscaling", "cloudwatch"})
"""Services in which a write touches what serves."""


class Role:
    """Refuses what no statement allows."""

    def __init__(
        self,
        world: World,
        statements: Iterable[Mapping[str, Any]],
        others: Callable[[Call], Iterable[Ask]] | None = None,
    ) -> None:
        self._world = world
        self._statements = tuple(statements)
        self._others = others
        """What any other request asks for; without it only writes to what serves are judged."""

    def refusal(self, call: Call) -> Fault | None:
        """AccessDenied with the action that is missing, or None when the role may."""
        denied = next((ask for ask in self.asks(call) if not self.allows(ask)), None)
        if denied is None:
            return None
        text = (
            f"User: arn:aws:sts::{self._world.account}:assumed-role/apply/session is not authorized to perform: "
            f"{denied.action} on resource: {denied.resource} because no identity-based policy allows the action"
        )
        return Fault("AccessDeniedException", text)

    def asks(self, call: Call) -> Iterable[Ask]:
        """What a request needs of the role; nothing for a request that is not judged."""
        if call.writes and call.service in GUARDED:
            return self._asks(call)
        return self._others(call) if self._others is not None else ()

    def allows(self, ask: Ask) -> bool:
        """Whether a statement allows one action on one resource; an operator may have put policies on the role."""
        return allowed((*self._statements, *self._world.iam.given(self._world.sts.name)), ask)

    def _asks(self, call: Call) -> Iterator[Ask]:
        p, action = call.params, f"{call.service}:{call.operation}"
        match call.service:
            case "application-autoscaling":
                target = self._world.arn("application-autoscaling", "scalable-target/x")
                yield Ask(action, target, {"application-autoscaling:service-namespace": p["ServiceNamespace"]})
                if tags := p.get(
                    "Tags"
                ):  # the service authorization reference gives TagResource no key of the namespace
                    sent = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
                    yield Ask("application-autoscaling:TagResource", target, sent)
            case "cloudwatch":
                yield from self._alarms(action, p)
            case _:
                yield from self._sagemaker(action, p)

    def _alarms(self, action: str, p: Mapping[str, Any]) -> Iterator[Ask]:
        sent = _request_tags(p)
        for name in p.get("AlarmNames") or [p["AlarmName"]]:
            arn = self._world.arn("cloudwatch", f"alarm:{name}")
            yield Ask(action, arn, sent | self._resource_tags(arn))
            if sent:
                yield Ask("cloudwatch:TagResource", arn, sent | self._resource_tags(arn))

    def _sagemaker(self, action: str, p: Mapping[str, Any]) -> Iterator[Ask]:
        sent = _request_tags(p)
        for arn in self._resources(p):
            yield Ask(action, arn, sent | self._resource_tags(arn))
            used = action == "sagemaker:CreateEndpoint" and ":endpoint-config/" in arn  # tags go on what is created
            if sent and action != "sagemaker:AddTags" and not used:
                created = {"sagemaker:TaggingAction": action.partition(":")[2]}
                yield Ask("sagemaker:AddTags", arn, sent | created | self._resource_tags(arn))
        if action == "sagemaker:DeleteEndpoint" and self._world.scaling.registered(p["EndpointName"]):
            # awslabs/stable-diffusion-aws-extension#161: the caller has to be allowed to deregister
            target = self._world.arn("application-autoscaling", "scalable-target/x")
            sagemaker = {"application-autoscaling:service-namespace": "sagemaker"}
            yield Ask("application-autoscaling:DeregisterScalableTarget", target, sagemaker)
        if key := p.get("KmsKeyId"):
            arn = key if key.startswith("arn:") else self._world.arn("kms", f"key/{key}")
            via = {"kms:ViaService": f"sagemaker.{self._world.region}.amazonaws.com"}
            yield Ask("kms:CreateGrant", arn, via | {"kms:GrantIsForAWSResource": "true"})
        if role := p.get("ExecutionRoleArn"):
            yield Ask("iam:PassRole", role, {"iam:PassedToService": "sagemaker.amazonaws.com"})

    def _resources(self, p: Mapping[str, Any]) -> Iterator[str]:
        if arn := p.get("ResourceArn"):
            yield arn
        for kind, member in _KINDS.items():
            if name := p.get(member):
                yield self._world.fleet.arn(kind, name)

    def _resource_tags(self, arn: str) -> dict[str, str]:
        return {f"aws:ResourceTag/{key}": value for key, value in self._world.tags.of(arn).items()}


_KINDS = {
    "endpoint": "EndpointName",
    "endpoint-config": "EndpointConfigName",
    "inference-component": "InferenceComponentName",
    "training-job": "TrainingJobName",
}


def _request_tags(p: Mapping[str, Any]) -> dict[str, str]:
    return {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in p.get("Tags") or []}
