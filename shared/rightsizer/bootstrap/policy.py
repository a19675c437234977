"""The policy of a deployed stack at a terminal: its parameters, and the policy document that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rightsizer.domain.approvers import Approvers
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.policy_document import PolicyDocument, Subject, effective_limits, effective_policy
from rightsizer.errors import ReadError
from rightsizer.policy_reader import lost_document, read_policy
from rightsizer.settings import Settings, from_environment

if TYPE_CHECKING:
    from rightsizer.aws.account import Deployed
    from rightsizer.aws.policy_parameter import StoredPolicy
    from rightsizer.aws.session import Session


@dataclass(frozen=True, slots=True)
class StackPolicy:
    """Everything that a stack was told about who decides and how far changes go; the defaults where it was not."""

    settings: Settings = field(default_factory=Settings)
    """What its parameters `Limits` and `Approvers` say, and what of them cannot be understood."""
    document: PolicyDocument = field(default_factory=PolicyDocument)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The parameters of the stack."""
    stored: StoredPolicy | None = None
    """The document's text; None where the stack has none."""
    unread: str = ""
    """Why the document could not be asked for here, so that nobody knows what it says; empty where it could."""

    @property
    def name(self) -> str:
        """Name of the SSM parameter with the document; empty where the stack has none."""
        return self.parameters.get("PolicyParameter", "")

    @property
    def approvers(self) -> Approvers:
        """The stack's own list."""
        return self.settings.limits.approvers

    @property
    def account_limits(self) -> ChangeLimits:
        """The limits as they hold where an endpoint's environment and owner say nothing else."""
        return effective_limits(self.settings.limits, self.document, Subject())

    @property
    def account_policy(self) -> Policy:
        """The thresholds as they hold where an endpoint's environment and owner say nothing else."""
        from rightsizer.bootstrap.evaluation import policy_of

        return effective_policy(policy_of(self.settings), self.document, Subject())

    @property
    def account_settings(self) -> Settings:
        """The stack's settings with what the document says for every endpoint."""
        policy = self.account_policy
        return replace(
            self.settings,
            limits=self.account_limits,
            lookback_days=policy.lookback_days,
            minimum_saving_usd=policy.minimum_saving_usd,
            tests_per_month=policy.tests_per_month,
        )

    @property
    def misread(self) -> tuple[str, ...]:
        """Sentences about what could not be understood."""
        return (*self.settings.misread, *self.document.problems, *((self.unread,) if self.unread else ()))


def policy_of_stack(account: Session, deployed: Deployed) -> StackPolicy:
    """The policy of the stack as it is in force."""
    return policy_of_parameters(account, deployed.parameters, deployed.approvers.home)


def policy_of_parameters(account: Session, parameters: Mapping[str, str], home: str = "") -> StackPolicy:
    """The policy that the parameters of a stack in `home` (``aws:111122223333``) mean."""
    from rightsizer.aws.policy_parameter import fetch_policy

    given = dict(parameters)
    settings = from_environment(_environment(given, home))
    name = given.get("PolicyParameter", "")
    if not name:
        return StackPolicy(settings, PolicyDocument(), given)
    try:
        policy = fetch_policy(account.client("ssm"), name)
    except ReadError as error:
        return StackPolicy(settings, PolicyDocument(), given, unread=str(error))
    if policy is None:
        return StackPolicy(settings, lost_document(f"policy document: the parameter {name} does not exist"), given)
    return StackPolicy(settings, read_policy(policy.text), given, policy)


def policy_with(stack_policy: StackPolicy, text: str) -> StackPolicy:
    """The policy as it would be with this document."""
    return StackPolicy(stack_policy.settings, read_policy(text), stack_policy.parameters)


def _environment(given: Mapping[str, Any], home: str) -> dict[str, str]:
    """The variables that the template makes of these parameters."""
    return {
        "RIGHTSIZER_LIMITS": str(given.get("Limits", "{}")),
        "RIGHTSIZER_APPROVERS": str(given.get("Approvers", "")),
        "RIGHTSIZER_ACCOUNT": home,
    }
