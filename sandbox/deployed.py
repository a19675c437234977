"""The deployed stack as AWS's control planes show it: CloudFormation's resources, Lambda, Scheduler.

Sources: CloudFormation ListStackResources and DescribeStacks; Lambda Invoke, GetFunctionConfiguration and
GetEventSourceMapping; EventBridge Scheduler GetSchedule. What a test disables or takes away is shown as such.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from sandbox.refusals import AwsRefusal

if TYPE_CHECKING:
    from sandbox.wiring import Stack

type Answer = tuple[int, dict[str, str], bytes]


class ControlPlanes:
    """What the account says about one deployed stack."""

    def __init__(self, stack: "Stack") -> None:
        self._stack = stack
        self.disabled: set[str] = set()
        """Schedules and event source mappings that somebody switched off, by their names in the template."""

    # CloudFormation

    def DescribeStacks(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """The stack with its parameters and outputs."""
        self._known(p.get("StackName", self._stack.name))
        parameters = self._stack.template.parameters
        outputs = self._stack.template.outputs()
        box, name = self._stack.box, self._stack.name
        row = {
            "StackId": f"arn:aws:cloudformation:{box.region}:{box.account}:stack/{name}/{_uuid(name, 'stack')}",
            "StackName": self._stack.name,
            "StackStatus": "CREATE_COMPLETE",
            "EnableTerminationProtection": self._stack.is_protected,
            "CreationTime": self._stack.box.clock.now,
            "Parameters": [{"ParameterKey": k, "ParameterValue": str(v)} for k, v in parameters.items()],
            "Tags": {},  # what moto makes a list of
            "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()],
        }
        return {"Stacks": [row]}

    def DeleteStack(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """The stack is gone; what its template retains stays. A stack that does not exist is no error."""
        if p["StackName"] == self._stack.name:
            if self._stack.is_protected:
                text = f"Stack [{self._stack.name}] cannot be deleted while TerminationProtection is enabled"
                raise AwsRefusal("ValidationError", text)
            self._stack.delete()
        return {}

    def UpdateTerminationProtection(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """Whether DeleteStack is refused."""
        self._known(p["StackName"])
        self._stack.is_protected = bool(p["EnableTerminationProtection"])
        return {"StackId": self.DescribeStacks(p)["Stacks"][0]["StackId"]}

    def DescribeStackResource(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """One resource by its logical id."""
        self._known(p["StackName"])
        for row in self._resources():
            if row["LogicalResourceId"] == p["LogicalResourceId"]:
                return {"StackResourceDetail": row}
        text = f"Resource {p['LogicalResourceId']} does not exist for stack {self._stack.name}"
        raise AwsRefusal("ValidationError", text)

    def ListStackResources(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """Every resource, on one page."""
        self._known(p["StackName"])
        return {"StackResourceSummaries": list(self._resources())}

    def _known(self, name: str) -> None:
        if name != self._stack.name or self._stack.deleted:
            raise AwsRefusal("ValidationError", f"Stack with id {name} does not exist")

    def _resources(self) -> Iterator[dict[str, Any]]:
        parts, name = self._stack.parts, self._stack.name
        for logical, function in parts.functions.items():
            yield self._row(logical, "AWS::Lambda::Function", function.name)
            yield self._row(f"{logical}Role", "AWS::IAM::Role", f"{name}-{logical}Role")
        for logical, url in parts.queues.items():
            yield self._row(logical, "AWS::SQS::Queue", url)
        for logical in self._stack.template.resources("AWS::SNS::Topic"):
            yield self._row(logical, "AWS::SNS::Topic", parts.names[logical])
        for kind in ("AWS::DynamoDB::Table", "AWS::S3::Bucket"):
            for logical in self._stack.template.resources(kind):
                yield self._row(logical, kind, parts.names[logical])
        for schedule in parts.schedules:
            logical = schedule.name.replace(".", "")
            yield self._row(logical, "AWS::Scheduler::Schedule", f"{name}-{logical}")
        for logical in self._stack.template.resources("AWS::Lambda::EventSourceMapping"):
            yield self._row(logical, "AWS::Lambda::EventSourceMapping", _uuid(name, logical))

    def _row(self, logical: str, kind: str, physical: str) -> dict[str, Any]:
        return {
            "LogicalResourceId": logical,
            "PhysicalResourceId": physical,
            "ResourceType": kind,
            "LastUpdatedTimestamp": self._stack.box.clock.now,
            "ResourceStatus": "CREATE_COMPLETE",
        }

    # Lambda and Scheduler, whose operations are paths

    def http(self, method: str, url: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer | None:
        """The answer to a request by its path; None for what this stack is not asked."""
        path = [unquote(part) for part in urlsplit(url).path.strip("/").split("/")]
        match (method, path):
            case ("POST", [_, "functions", name, "invocations"]):
                lowered = {key.lower(): str(value) for key, value in (headers or {}).items()}
                return self._invoke(name.rpartition(":")[2], body, lowered.get("x-amz-invocation-type", ""))
            case ("GET", [_, "functions", name, "configuration"]):
                function = next((f for f in self._stack.parts.functions.items() if f[1].name == name), None)
                if function is None:
                    return _missing(f"Function not found: {name}")
                role = f"arn:aws:iam::{self._stack.box.account}:role/{self._stack.name}-{function[0]}Role"
                return _json({"FunctionName": name, "Role": role})
            case ("GET", [_, "event-source-mappings", uuid]):
                return self._state(uuid, "Enabled", "Disabled")
            case ("GET", ["schedules", name]):
                return self._state(name, "ENABLED", "DISABLED")
        return None

    def _state(self, name: str, on: str, off: str) -> Answer:
        known = {row["PhysicalResourceId"]: row["LogicalResourceId"] for row in self._resources()}
        if name not in known:
            return _missing(f"{name} does not exist")
        return _json({"Name": name, "UUID": name, "State": off if known[name] in self.disabled else on})

    def _invoke(self, name: str, body: bytes, kind: str) -> Answer:
        """A synchronous invocation, whose error is an answer with X-Amz-Function-Error; an `Event` runs later."""
        logical, function = next(
            (f for f in self._stack.parts.functions.items() if name in (f[1].name, f[0])), ("", None)
        )
        if function is None:
            return _missing(f"Function not found: {name}")
        if kind == "Event":
            self._stack.start(logical, json.loads(body or b"null"))
            return 202, {}, b""
        try:
            answer = self._stack.invoke(function.door, json.loads(body or b"null"))
        except Exception as error:
            failed = json.dumps({"errorMessage": str(error), "errorType": type(error).__name__})
            return 200, {"x-amz-function-error": "Unhandled", "content-type": "application/json"}, failed.encode()
        return 200, {"content-type": "application/json"}, json.dumps(answer, default=str).encode()


def _uuid(stack: str, logical: str) -> str:
    """The id of an event source mapping, the same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{stack}/{logical}"))


def _json(value: Any) -> Answer:
    return 200, {"content-type": "application/json"}, json.dumps(value).encode()


def _missing(text: str) -> Answer:
    headers = {"content-type": "application/json", "x-amzn-errortype": "ResourceNotFoundException"}
    return 404, headers, json.dumps({"Message": text}).encode()
