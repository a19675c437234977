"""The one question about IAM that the program asks: what a role's policies would allow (SimulatePrincipalPolicy)."""

from typing import Any


class Iam:
    """Roles allow everything, but for those that are told to be blind."""

    def __init__(self) -> None:
        self.blind: set[str] = set()
        """ARNs of roles that may not describe alarms."""

    def SimulatePrincipalPolicy(self, p: dict[str, Any]) -> dict[str, Any]:
        """The decision on each action, on all resources."""
        denied = p["PolicySourceArn"] in self.blind
        rows = [
            {
                "EvalActionName": action,
                "EvalResourceName": "*",
                "EvalDecision": "implicitDeny" if denied and action == "cloudwatch:DescribeAlarms" else "allowed",
            }
            for action in p["ActionNames"]
        ]
        return {"EvaluationResults": rows, "IsTruncated": False}
