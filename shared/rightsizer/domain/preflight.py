"""Inputs of preflight: what was approved, and what AWS shows right before the first write.

CreateEndpointConfig with an ExecutionRoleArn needs iam:PassRole on exactly that role (SageMaker API permissions; IAM,
`iam:PassedToService`). No role of the stack holds it: the operator gives it, role by role.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote

from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.history import PastChange
from rightsizer.domain.live_state import AlarmSight, ConfigSight, EndpointSight, ImageSight
from rightsizer.domain.option import Option
from rightsizer.domain.policy import ChangeLimits, Switch
from rightsizer.domain.proposal import Proposal

ACTION = "iam:PassRole"
SERVICE = "sagemaker.amazonaws.com"
ASSUMED = re.compile(r":assumed-role/([^/\s]+)/")


@dataclass(frozen=True, slots=True)
class RolePass:
    """Answer of IAM about passing one execution role."""

    role: str
    """ARN of the execution role."""
    by: str
    """Name of our own role; empty when it is not known."""
    allowed: bool | None
    """None: nobody could ask."""

    @property
    def command(self) -> str:
        """The AWS CLI line that allows it."""
        return pass_role_command(self.by, self.role)


def pass_role_command(by: str, role: str) -> str:
    """The line by which an operator lets the role named `by` pass `role` to SageMaker, and nothing else."""
    statement = {
        "Effect": "Allow",
        "Action": ACTION,
        "Resource": role,
        "Condition": {"StringEquals": {"iam:PassedToService": SERVICE}},
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    name = f"rightsizer-pass-{role.rpartition('/')[2]}"[:128]
    ours = quote(by) if by else "ROLE_OF_THE_APPLY_FUNCTION"
    return f"aws iam put-role-policy --role-name {ours} --policy-name {quote(name)} --policy-document {quote(document)}"


def role_of_caller(text: str) -> str:
    """Role name in an ARN of STS or in AWS's text of a refusal; empty when there is none."""
    found = ASSUMED.search(text)
    return found.group(1) if found else ""


@dataclass(frozen=True, slots=True)
class PreflightInput:
    """One look before a change. Never cached."""

    proposal: Proposal
    option: Option
    endpoint: EndpointSight
    config: ConfigSight | None
    """None: the configuration does not exist any more."""
    tags: Mapping[str, str]
    limits: ChangeLimits
    scaling: tuple[ScalableTarget, ...]
    customer_alarms: tuple[Mapping[str, object], ...] = ()
    quota: int | None = None
    """Applied quota of the target type; None is unknown."""
    most: int = 0
    """Instances of the target type that autoscaling could ask for once re-targeted; 0 without autoscaling."""
    quotas: Mapping[str, int] = field(default_factory=dict)
    """Applied quotas of all types; one that is absent is unknown."""
    deploys: bool = False
    """Whether a new configuration is deployed, so that an old and a new fleet overlap."""
    applies: bool = False
    """Whether the program carries such an option out on an endpoint of that kind."""
    sold: bool | None = None
    """Whether the target type is offered where the endpoint's subnets are; None when it could not be asked."""
    incident_alarms: tuple[AlarmSight, ...] = ()
    switch: Switch = field(default_factory=Switch)
    last_change_at: datetime | None = None
    models: tuple[str, ...] = ()
    copies: Mapping[str, int] = field(default_factory=dict)
    """Copies of the components that the option is about."""
    components: Mapping[str, ComponentSight] = field(default_factory=dict)
    """Those of which the option changes the placement; one that does not exist is left out."""
    registry: Mapping[str, ImageSight] = field(default_factory=dict)
    """By name of each image with a tag, what it means today; empty where nothing is deployed."""
    passes: RolePass | None = None
    """Whether our role may pass the configuration's execution role; None where there is none, or none is needed."""
    unrestorable: tuple[str, ...] = ()
    """IAM actions that giving autoscaling back needs, and that our role is denied; () also where nobody knows."""
    marketplace: bool = False
    blind: str = ""
    """Why the execution role cannot see the roll-back alarms; empty when it can, or nobody could ask."""
    read_at: datetime | None = None
    """When all this was read."""
    past: tuple[PastChange, ...] = ()
    """How our changes of the endpoint ended, as they were recorded, oldest first; read where room is brought back."""
    after_test: bool = False
    """Whether its shadow test went before by the same approval, so that the change itself begins."""

    @property
    def is_shadow_test(self) -> bool:
        """Whether a shadow test of the option begins, and not the option itself."""
        return self.proposal.runs_test and self.deploys and not self.after_test


@dataclass(frozen=True, slots=True)
class Deferral:
    """Not now: the change starts when the time has come."""

    until: datetime
    sentence: str
