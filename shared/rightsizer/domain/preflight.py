"""Inputs of preflight: what was approved, what AWS shows before the first write, and the approved way back."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from shlex import quote

from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.live_state import AlarmSight, ConfigSight, EndpointSight, ImageSight
from rightsizer.domain.option import Option, Target
from rightsizer.domain.policy import ChangeLimits, Switch
from rightsizer.domain.proposal import DecidedBy, DecisionSource, Proposal

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
    """Components whose copies or placement the option changes, by name; without those that do not exist."""
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


WAY_BACK = timedelta(days=14)
"""How long an approval permits the way back: two whole weeks show each weekday twice, which is also the look-back."""


@dataclass(frozen=True, slots=True)
class RunningFleet:
    """The fleet of an endpoint with one variant and without autoscaling, as it runs."""

    instance_type: str
    count: int
    config_name: str


def approved_change(
    history: Sequence[PastChange], runs: RunningFleet, target: Target, now: datetime
) -> PastChange | None:
    """The change of which the approval permits `target` now; None where a person has to be asked.

    `history` is what was recorded of the endpoint's changes, oldest first.
    """
    last = next((past for past in reversed(history) if past.ended is not PastEnd.TESTED), None)
    if last is None or last.ended not in (PastEnd.PROVEN, PastEnd.APPLIED) or last.approved_at is None:
        return None
    if not is_person(last.approved_by) or not timedelta(0) <= now - last.approved_at <= WAY_BACK:
        return None
    if last.restores or last.grows or last.others or last.day_counts or last.from_minimum is not None:
        return None
    running_fleet = RunningFleet(last.to_type, last.to_count, last.to_config)
    is_constant = last.mean_instances is None or last.mean_instances == last.to_count
    exact = running_fleet == runs and is_constant and bool(last.to_config)
    return last if exact and target == Target(last.from_type, last.from_count) else None


def is_person(by: str) -> bool:
    """Whether a person decided, whom a channel or AWS named."""
    decider = DecidedBy.read(by)
    return decider.source in (DecisionSource.SLACK, DecisionSource.CLI) and bool(decider.person)
