"""Each function acts with its own role of the template: a request that the role does not allow is refused as by AWS.

Actions, resources and keys of a request: Service Authorization Reference of each service. What a write to SageMaker,
autoscaling or alarms is checked with stands in `sandbox.role`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sandbox.account import Sandbox
from sandbox.gate import IAM_PREFIX, PERMITTED_BY, Call
from sandbox.policies import Ask
from sandbox.role import Role
from sandbox.spot_groups import AutoScaling, SimGroup
from sandbox.template import Template

FREE = frozenset({"sts"})
"""GetCallerIdentity needs no permission."""
LAUNCHED = (
    "image",
    "instance",
    "key-pair",
    "network-interface",
    "placement-group",
    "security-group",
    "snapshot",
    "subnet",
    "volume",
)
"""What RunInstances is checked with beside the launch template (Service Authorization Reference of EC2).

All that every launch needs, with the key pair, the snapshots and the placement group that a template names. What only
some templates name beside them (a Capacity Reservation, a license configuration) is in none of the simulated ones.
"""
OF_REGION = frozenset({"image", "snapshot"})
"""Resources whose ARN names no account."""
GROUP_WRITES = ("Detach", "Terminate", "Update")


class Roles:
    """The roles of the template's functions, by door. A function without policies is not judged."""

    def __init__(self, box: Sandbox, template: Template) -> None:
        self._box = box
        self._statements: dict[str, list[Mapping[str, Any]]] = {}
        for raw in template.resources("AWS::Serverless::Function").values():
            if "Policies" in raw:
                door = raw["CodeUri"].strip("/").rpartition("/")[2]
                policies = template.resolve(raw["Policies"])
                self._statements[door] = [one for policy in policies for one in policy["Statement"]]

    def statements(self, door: str) -> list[Mapping[str, Any]]:
        """What the role of one door is given."""
        return self._statements.get(door, [])

    def role(self, door: str) -> Role:
        """The role of one door."""
        return Role(self._box.world, self._statements[door], self.asks)

    @contextmanager
    def revoked(self, door: str, action: str) -> Iterator[None]:
        """Without one action of a door's role, as somebody who edits the role leaves it."""
        before = list(self._statements[door])
        lists = ({**one, "Action": [a for a in _listed(one["Action"]) if a != action]} for one in before)
        self._statements[door][:] = [one for one in lists if one["Action"]]
        try:
            yield
        finally:
            self._statements[door][:] = before

    @contextmanager
    def assumed(self, door: str) -> Iterator[None]:
        """Requests inside are made, and judged, as the door."""
        if door not in self._statements:
            yield
            return
        before, self._box.gate.judge = self._box.gate.judge, self.role(door).refusal
        try:
            yield
        finally:
            self._box.gate.judge = before

    def asks(self, call: Call) -> Iterator[Ask]:
        """What a request needs: one action for each resource that it names."""
        params = call.params
        action = f"{IAM_PREFIX.get(call.service, call.service)}:{call.operation}"
        match call.service:
            case "dynamodb":
                yield from self._table(action, params)
            case "s3":
                key = f"/{params['Key']}" if "Key" in params else ""
                asked = "s3:ListBucket" if call.operation == "ListObjectsV2" else action
                yield Ask(asked, f"arn:aws:s3:::{params['Bucket']}{key}", {"aws:ResourceAccount": self._box.account})
            case "sqs" | "sns" | "secretsmanager" | "ecr" | "ssm" | "lambda":
                yield Ask(PERMITTED_BY.get(action, (action,))[0], self._named(call))
            case "events":
                yield from self._events(action, params)
            case "autoscaling" if call.operation.startswith(GROUP_WRITES):
                yield self._group(action, params)
                yield from self._templates(params)
            case service if service not in FREE:
                for one in PERMITTED_BY.get(action, (action,)):
                    yield Ask(one, params.get("PolicySourceArn", "*"))

    def _events(self, action: str, params: Mapping[str, Any]) -> Iterator[Ask]:
        for entry in params["Entries"]:
            bus = self._box.world.arn("events", f"event-bus/{entry.get('EventBusName', 'default')}")
            yield Ask(action, bus, {"events:source": entry["Source"]})

    def _table(self, action: str, params: Mapping[str, Any]) -> Iterator[Ask]:
        """A transaction needs the action of each of its writes."""
        if "TransactItems" in params:
            for write in params["TransactItems"]:
                for kind, one in write.items():
                    yield from self._table(f"dynamodb:{_WRITES[kind]}", one)
            return
        if "RequestItems" in params:
            yield from self._batch(action, params["RequestItems"])
            return
        arn = self._box.world.arn("dynamodb", f"table/{params['TableName']}")
        if index := params.get("IndexName"):
            arn = f"{arn}/index/{index}"
        key = (params.get("Key") or params.get("Item") or {}).get("pk", {}).get("S")
        yield Ask(action, arn, {"dynamodb:LeadingKeys": key} if key else {})

    def _batch(self, action: str, tables: Mapping[str, Any]) -> Iterator[Ask]:
        """A batch needs its own action for each of its keys, and none of those of single items."""
        for name, asked in tables.items():
            items = asked["Keys"] if "Keys" in asked else [each["PutRequest"]["Item"] for each in asked]
            for key in sorted({item["pk"]["S"] for item in items}):
                yield Ask(action, self._box.world.arn("dynamodb", f"table/{name}"), {"dynamodb:LeadingKeys": key})

    def _group(self, action: str, params: Mapping[str, Any]) -> Ask:
        """A write to the group that is named, or that the named instance belongs to."""
        group = self._known_group(params)
        if group is None:
            return Ask(action, self._group_arn(params.get("AutoScalingGroupName", "none")))
        tags = {f"aws:ResourceTag/{key}": value for key, value in group.tags.items()}
        return Ask(action, self._group_arn(group.name), tags)

    def _known_group(self, params: Mapping[str, Any]) -> SimGroup | None:
        known = self._box.world.api("autoscaling")
        for group in known.groups.values() if isinstance(known, AutoScaling) else ():
            named = group.name == params.get("AutoScalingGroupName")
            if named or any(one.id == params.get("InstanceId") for one in group.instances):
                return group
        return None

    def _templates(self, params: Mapping[str, Any]) -> Iterator[Ask]:
        """Who sets a launch template must be allowed to run what it says (Auto Scaling User Guide)."""
        policy = params.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
        rows = [policy, *policy.get("Overrides", [])]
        named = [row["LaunchTemplateSpecification"] for row in rows if "LaunchTemplateSpecification" in row]
        group = self._known_group(params)
        tags = {f"aws:ResourceTag/{key}": value for key, value in (group.template_tags if group else {}).items()}
        for one in named:
            name = one.get("LaunchTemplateId") or one["LaunchTemplateName"]
            template = self._box.world.arn("ec2", f"launch-template/{name}")
            yield Ask("ec2:RunInstances", template, tags)
            for kind in LAUNCHED:
                arn = self._box.world.arn("ec2", f"{kind}/x")
                if kind in OF_REGION:
                    arn = arn.replace(f":{self._box.account}:", "::")
                yield Ask("ec2:RunInstances", arn, {"ec2:LaunchTemplate": template})

    def _named(self, call: Call) -> str:
        """ARN of the one resource that a request of these services names."""
        params = call.params
        match call.service:
            case "sqs":
                return self._box.world.arn("sqs", params["QueueUrl"].rpartition("/")[2])
            case "sns":
                return str(params["TopicArn"])
            case "secretsmanager":
                return str(params["SecretId"])
            case "ssm":
                return self._box.world.arn("ssm", f"parameter{params['Name']}")
            case "lambda":
                return self._box.world.arn("lambda", f"function:{params['FunctionName']}")
        owner = params.get("registryId", self._box.account)
        return f"arn:aws:ecr:{self._box.region}:{owner}:repository/{params['repositoryName']}"

    def _group_arn(self, name: str) -> str:
        return self._box.world.arn("autoscaling", f"autoScalingGroup:sandbox:autoScalingGroupName/{name}")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_WRITES = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
