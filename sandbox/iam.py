"""What the program asks IAM and STS: what a role's policies would allow, and who asks.

Sources: IAM SimulatePrincipalPolicy, PutRolePolicy; STS GetCallerIdentity.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sandbox.policies import Ask, allowed

if TYPE_CHECKING:
    from sandbox.world import World


class Iam:
    """A deployed stack's roles allow what their statements say.

    Any other role allows everything, but for those that are told to be blind; iam:PassRole must be given.
    """

    def __init__(self) -> None:
        self.blind: set[str] = set()
        """ARNs of roles that may not describe alarms."""
        self.forbidden: set[str] = set()
        """Actions that nobody may take, as a boundary or an organisation's policy says."""
        self.roles: dict[str, list[Mapping[str, Any]]] = {}
        """Statements of the roles of a deployed stack, by the role's name: the simulation judges by them."""
        self._given: dict[str, dict[str, list[Mapping[str, Any]]]] = {}

    def given(self, role: str) -> list[Mapping[str, Any]]:
        """Statements of the policies that were put on a role by its name."""
        return [one for policy in self._given.get(role, {}).values() for one in policy]

    def PutRolePolicy(self, p: dict[str, Any]) -> dict[str, Any]:
        """Add an inline policy to a role, or replace the one of that name."""
        statements = json.loads(p["PolicyDocument"])["Statement"]
        self._given.setdefault(p["RoleName"], {})[p["PolicyName"]] = statements
        return {}

    def SimulatePrincipalPolicy(self, p: dict[str, Any]) -> dict[str, Any]:
        """The decision on each action and resource."""
        context = {e["ContextKeyName"]: e["ContextKeyValues"][0] for e in p.get("ContextEntries", [])}
        rows = [
            {"EvalActionName": action, "EvalResourceName": resource, "EvalDecision": self._decision(p, ask)}
            for action in p["ActionNames"]
            for resource in p.get("ResourceArns", ["*"])
            for ask in [Ask(action, resource, context)]
        ]
        return {"EvaluationResults": rows, "IsTruncated": False}

    def _decision(self, p: Mapping[str, Any], ask: Ask) -> str:
        source = p["PolicySourceArn"]
        if ask.action in self.forbidden:
            return "explicitDeny"
        name = source.rpartition("/")[2]
        if name in self.roles:
            return "allowed" if allowed((*self.roles[name], *self.given(name)), ask) else "implicitDeny"
        if ask.action == "iam:PassRole":
            return "allowed" if allowed(self.given(name), ask) else "implicitDeny"
        denied = source in self.blind and ask.action == "cloudwatch:DescribeAlarms"
        return "implicitDeny" if denied else "allowed"


class Sts:
    """Says who asks."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.name = "apply"
        """Name of the role that is assumed."""
        self.arn = ""
        """Who else asks; empty: a session of that role."""

    def GetCallerIdentity(self, p: dict[str, Any]) -> dict[str, Any]:
        """The account, and the session of the assumed role."""
        arn = self.arn or f"arn:aws:sts::{self._world.account}:assumed-role/{self.name}/session"
        return {"Account": self._world.account, "UserId": f"AROAEXAMPLE:{self.name}", "Arn": arn}
