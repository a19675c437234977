"""The stack under test, at its widest and with its defaults."""

from sandbox.stack import ROOT, Stack, listed, source, stack

__all__ = ["BY_DEFAULT", "DOORS", "EVERYTHING", "ROOT", "Stack", "listed", "source", "stack"]

DOORS = ("sweep", "evaluate", "propose", "respond", "picture", "apply", "hours", "interruption", "report")
BY_DEFAULT = tuple(door for door in DOORS if door != "hours")
"""The functions of a stack without office hours."""
EVERYTHING = {
    "MayChange": "tagged-and-untagged",
    "MayStop": "tagged",
    "WakePrincipals": "arn:aws:iam::111122223333:role/nightly-job",
    "EditUserAlarms": "true",
    "Extras": "both",
    "UserAlarmPrefix": "endpoints-",
    "AlarmTopicArn": "arn:aws:sns:eu-west-1:111122223333:alarms",
    "SlackSecretArn": "arn:aws:secretsmanager:eu-west-1:111122223333:secret:slack-AbCdEf",
    "SlackChannel": "C0123456789",
    "Approvers": "U1,U2,role/ml-*",
    "PolicyParameter": "/rightsizer/policy",
    "Bill": "cost-explorer",
}
"""Parameters that switch everything on: the widest permissions that the template can give."""
