"""The policy that `scan` and `explain` obey: the deployed stack's, or a document that was named on the command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from rightsizer.aws.account import stack_of
from rightsizer.aws.policy_parameter import fetch_policy
from rightsizer.aws.session import Session
from rightsizer.bootstrap.policy import StackPolicy, policy_of_parameters, policy_with
from rightsizer.domain.environment import Environment
from rightsizer.domain.policy import Policy
from rightsizer.domain.policy_document import PolicyDocument, Section, Subject, effective_limits
from rightsizer.domain.policy_key import MINIMUM_SAVING
from rightsizer.domain.recommendation import Recommendation
from rightsizer.errors import InputError, ReadError, SettingsError
from rightsizer.terminal.policy_file import read_file
from rightsizer.terminal.policy_page import DEFAULT_SOURCE, PolicyRow, policy_rows

PARAMETER = "ssm:"
"""What a name of a document begins with that is no file."""
DEFAULTS_HOLD = "the defaults"
"""Where nothing is deployed and no document was named."""


@dataclass(frozen=True, slots=True)
class SurveyPolicy:
    """Policy that a survey obeys, and where it was said."""

    known: StackPolicy = field(default_factory=StackPolicy)
    source: str = DEFAULTS_HOLD
    """For people: the stack and its document, or the document of the command line."""
    unread: str = ""
    """Why the stack's policy could not be read; empty where it was, or where nothing is deployed."""
    table: str = ""
    """The stack's table, which says what its office hours stopped; empty where no stack was found."""
    look_back: int | None = None
    minimum_saving: Decimal | None = None
    """What the command line says; it comes before the document. None where it says nothing."""

    @property
    def policy(self) -> Policy:
        """The thresholds for the whole account."""
        policy = self.known.account_policy
        days = policy.lookback_days if self.look_back is None else self.look_back
        usd = policy.minimum_saving_usd if self.minimum_saving is None else self.minimum_saving
        return replace(policy, lookback_days=days, minimum_saving_usd=usd)

    @property
    def document(self) -> PolicyDocument:
        """The document without what the command line says in its place."""
        said = {"lookback_days": self.look_back, MINIMUM_SAVING: self.minimum_saving}
        given = frozenset(key for key, value in said.items() if value is not None)
        return _without(self.known.document, given) if given else self.known.document

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that could not be understood or read, a sentence each."""
        return (*((self.unread,) if self.unread else ()), *self.known.misread)

    def rows(self, recommendation: Recommendation) -> Sequence[PolicyRow]:
        """Each value that was said for the endpoint of a recommendation; none where only the defaults hold."""
        return [row for row in policy_rows(self.known, subject_of(recommendation)) if row.source != DEFAULT_SOURCE]

    def hold_reasons(self, recommendation: Recommendation) -> Sequence[str]:
        """Why no change of the endpoint would begin whatever the window says: limits that cannot be understood."""
        limits = effective_limits(self.known.settings.limits, self.known.document, subject_of(recommendation))
        return limits.misread


def subject_of(recommendation: Recommendation) -> Subject:
    """The endpoint of a recommendation, as values are asked for."""
    said = recommendation.environment.environment if recommendation.environment is not None else Environment.PRODUCTION
    return Subject(Environment(said), recommendation.owner)


def survey_policy(
    session: Session, stack: str, named: str, look_back: int | None, minimum_saving: Decimal | None
) -> SurveyPolicy:
    """The policy of a survey. `named`: a file, ``-``, or ``ssm:`` and a parameter's name; else the stack's own.

    Raises InputError, ReadError where the named document cannot be read. Where the stack's cannot, the defaults hold
    and `unread` says why.
    """
    stack_policy, source, table, unread = _of_stack(session, stack)
    above = "" if source == DEFAULTS_HOLD else f", in place of that of {source}"
    if named.startswith(PARAMETER):
        name = named.removeprefix(PARAMETER)
        policy = fetch_policy(session.client("ssm"), name)
        if policy is None:
            raise InputError(f"reading the policy document: there is no SSM parameter {name} in {session.region}")
        stack_policy, source = policy_with(stack_policy, policy.text), f"the policy document {name}{above}"
    elif named:
        stack_policy, source = policy_with(stack_policy, read_file(named)), f"the policy document {named}{above}"
    return SurveyPolicy(stack_policy, source, unread, table, look_back, minimum_saving)


def _of_stack(session: Session, stack: str) -> tuple[StackPolicy, str, str, str]:
    """The stack's policy, where it was said, the stack's table, and why nothing could be read."""
    try:
        deployed = stack_of(session, stack)
    except ReadError as error:
        return StackPolicy(), DEFAULTS_HOLD, "", f"the defaults hold, for the policy of the stack was not read: {error}"
    except SettingsError:  # nothing of that name is deployed, or it is another program's
        return StackPolicy(), DEFAULTS_HOLD, "", ""
    stack_policy = policy_of_parameters(session, deployed.parameters)
    also = f" with its policy document {stack_policy.name}" if stack_policy.name else ""
    return stack_policy, f"the stack {stack}{also}", deployed.table, ""


def _without(document: PolicyDocument, keys: frozenset[str]) -> PolicyDocument:
    def less(section: Section) -> Section:
        values = {key: value for key, value in section.values.items() if key not in keys}
        broken = {key: value for key, value in section.broken.items() if key not in keys}
        return replace(section, values=values, broken=broken)

    environments: Mapping[Environment, Section] = {name: less(each) for name, each in document.environments.items()}
    owners = {name: replace(owner, section=less(owner.section)) for name, owner in document.owners.items()}
    return replace(document, defaults=less(document.defaults), environments=environments, owners=owners)
