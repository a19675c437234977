"""One reading of the account, for `scan` and `explain`, and the policy that it obeys."""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from rightsizer.aws.account import stack_of
from rightsizer.aws.policy_parameter import fetch_policy
from rightsizer.aws.session import Session
from rightsizer.bootstrap.policy import StackPolicy, policy_of_parameters, policy_with
from rightsizer.bootstrap.waking import ENDPOINT
from rightsizer.changes.hours.wake import ASLEEP
from rightsizer.domain.account_finding import ServedResources
from rightsizer.domain.endpoint import Endpoint, Observation, Unobserved
from rightsizer.domain.environment import Environment
from rightsizer.domain.history import History
from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.message import wake_command
from rightsizer.domain.office_hours import FALLBACK_TAG, HOURS_TAG
from rightsizer.domain.plan import terminal_command
from rightsizer.domain.policy import Policy
from rightsizer.domain.policy_document import PolicyDocument, Section, Subject, effective_limits, policy_for_endpoint
from rightsizer.domain.policy_key import MINIMUM_SAVING
from rightsizer.domain.reason import Code, Reason, reason_of
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.trigger import ListedEndpoint
from rightsizer.errors import InputError, ReadError, RightsizerError, SettingsError
from rightsizer.flows.bill import BillPorts, BillScope, RestOfBill, read_rest_of_bill
from rightsizer.flows.evaluate import (
    Evaluated,
    EvaluatePorts,
    ProgressWatcher,
    recommendations,
    with_open_questions,
)
from rightsizer.flows.read_usage import with_stopped_times
from rightsizer.flows.turns import Turns
from rightsizer.ports.evaluation import EndpointSummary, FleetReader
from rightsizer.recommender.pricing import usd_of_variants
from rightsizer.terminal.naming import did_you_mean
from rightsizer.terminal.policy_page import DEFAULT_SOURCE, PolicyRow, policy_rows, read_file

TURN, TOGETHER = 100, 10
"""Endpoints that are described together, and those of them whose metrics are read together, so that the bar moves: as
many as one request for tags takes, and about as many as fill one GetMetricData."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Recommendations of an account: what needs more before the savings, the largest first."""

    region: str
    at: datetime
    minimum_saving: Decimal
    """US dollars per month; smaller savings are shown and identified, and do not count as found."""
    recommendations: tuple[Recommendation, ...]
    unobserved: tuple[Unobserved, ...]
    incomplete: tuple[Reason, ...]
    """What could not be read for the fleet as a whole."""
    served: ServedResources = field(default_factory=ServedResources)
    """Configurations and models that the endpoints use which were looked at."""
    to_describe: tuple[str, ...] = ()
    """Endpoints whose configuration is not known for certain: not looked at, or being deployed."""
    resting: frozenset[str] = frozenset()
    """Endpoints with office hours."""
    asleep: tuple[HoursRecord, ...] = ()
    """Endpoints that do not exist now, since office hours of the stack stopped them; empty where names were asked."""
    rest: RestOfBill = field(default_factory=RestOfBill)
    """What else the account pays for: in no sum, and in no exit code."""
    minimum_savings: Mapping[str, Decimal] = field(default_factory=dict)
    """Smallest saving by endpoint, where the policy document says another one than the account's."""

    @property
    def large_enough(self) -> tuple[Recommendation, ...]:
        """The recommendations whose identified saving reaches the minimum."""
        return tuple(
            recommendation
            for recommendation in self.possible_savings
            if recommendation.identified_usd_per_month
            >= self.minimum_savings.get(recommendation.ref.name, self.minimum_saving)
        )

    @property
    def possible_savings(self) -> tuple[Recommendation, ...]:
        """The recommendations that a report counts as a possible saving, whatever the minimum."""
        return tuple(
            recommendation for recommendation in self.recommendations if recommendation.identified_usd_per_month > 0
        )

    @property
    def spend(self) -> Decimal:
        """US dollars per month of every endpoint that has a price."""
        return sum(
            (
                recommendation.usd_per_month
                for recommendation in self.recommendations
                if recommendation.usd_per_month is not None
            ),
            Decimal(0),
        )

    @property
    def saving(self) -> Decimal:
        """US dollars per month of what was found."""
        return sum((recommendation.identified_usd_per_month for recommendation in self.large_enough), Decimal(0))

    @property
    def identified_saving(self) -> Decimal:
        """US dollars per month that could be saved, as a report of the same recommendations has it."""
        return sum((recommendation.identified_usd_per_month for recommendation in self.possible_savings), Decimal(0))

    @property
    def is_whole(self) -> bool:
        """Whether everything could be read. An endpoint that was deleted meanwhile is no gap."""
        return not self.incomplete and all(unobserved.reason.code is Code.VANISHED for unobserved in self.unobserved)


type Progress = Callable[[int, int], None]
"""Endpoints done and their number."""


def survey(
    ports: EvaluatePorts,
    region: str,
    policy: Policy,
    now: datetime,
    progress: Progress,
    names: Sequence[str] = (),
) -> Survey:
    """Read and judge the account, or the named endpoints. InputError when a named one does not exist."""
    hours, hours_unread = _hours_of(ports, names)
    summaries = _named_endpoints(ports, region, names, hours) if names else list(ports.fleet.list_endpoints())
    ports, memory_unread = _with_memory(ports, [summary.ref.name for summary in summaries])
    ports = replace(ports, history=with_stopped_times(ports.history, hours))
    if not names:
        ports = _with_account_cost(ports, region, summaries)
    incomplete = [] if memory_unread is None else [memory_unread]
    halves = itertools.count(1)  # an endpoint that is described is half done

    def step() -> None:
        progress(next(halves) // 2, len(summaries))

    progress(0, len(summaries))
    watcher = ProgressWatcher(done=step, told=incomplete.append, described=step)
    results = list(recommendations(ports, summaries, policy, now, watcher, Turns(most=TURN, together=TOGETHER)))
    found = [each.recommendation for each in results if isinstance(each, Evaluated)]
    endpoints = [each.endpoint for each in results if isinstance(each, Evaluated)]
    incomplete.extend(each.gate_reason for each in found if each.gate_reason.code is Code.NO_PRICE)
    if hours_unread is not None and any(HOURS_TAG in each.tags for each in endpoints):
        incomplete.append(hours_unread)
    there = {summary.ref.name for summary in summaries}
    minimums = {
        each.ref.name: policy_for_endpoint(each, policy, ports.document).minimum_saving_usd for each in endpoints
    }
    return Survey(
        region=region,
        at=now,
        minimum_saving=policy.minimum_saving_usd,
        recommendations=tuple(sorted(found, key=_survey_order)),
        unobserved=tuple(each for each in results if isinstance(each, Unobserved)),
        incomplete=tuple(dict.fromkeys(incomplete)),
        served=ServedResources(
            frozenset(name for each in endpoints for name in (each.config_name, each.tags.get(FALLBACK_TAG, ""))),
            frozenset(model for each in endpoints for model in each.models),
        ),
        resting=frozenset(each.ref.name for each in endpoints if HOURS_TAG in each.tags),
        asleep=() if names else tuple(hours[name] for name in sorted(_asleep(hours)) if name not in there),
        minimum_savings={name: usd for name, usd in minimums.items() if usd != policy.minimum_saving_usd},
        to_describe=(
            *(each.ref.name for each in results if isinstance(each, Unobserved)),
            *(each.ref.name for each in endpoints if each.deploying),
        ),
    )


def add_rest_of_bill(survey: Survey, ports: BillPorts, *, is_whole: bool) -> Survey:
    """Add the account findings to a survey; of its endpoints alone where it is not of the whole account."""
    scope = BillScope(
        survey.region,
        survey.recommendations,
        survey.served,
        to_describe=survey.to_describe,
        resting=survey.resting,
        is_whole=is_whole,
    )
    return replace(survey, rest=read_rest_of_bill(ports, scope, survey.at))


def _survey_order(recommendation: Recommendation) -> tuple[bool, Decimal, str]:
    return not recommendation.is_short, -recommendation.approval_usd_per_month, recommendation.ref.name


def _hours_of(ports: EvaluatePorts, names: Collection[str]) -> tuple[Mapping[str, HoursRecord], Reason | None]:
    """The records of office hours by endpoint, or why they could not be read."""
    try:
        return ports.hours(names), None
    except RightsizerError as error:
        return {}, reason_of(error)


def _with_memory(ports: EvaluatePorts, names: Sequence[str]) -> tuple[EvaluatePorts, Reason | None]:
    """The ports whose history tells what the stack asked, as its own evaluation reads it; without, where it cannot be.

    What the stack changed is tried at one endpoint: that its table may not be read is no fault of the endpoints.
    """
    try:
        for name in names[:1]:
            ports.history(name)
        return replace(ports, history=with_open_questions(ports.history, ports.questions(names))), None
    except RightsizerError as error:
        why = reason_of(error)
        text = f"{why.sentence}; what the stack changed and asked is not known, and its own answer may be another"
        return replace(ports, history=lambda _: History()), replace(why, sentence=text)


@dataclass(frozen=True, slots=True)
class _DescribedFleet:
    """The fleet with endpoints that were described already, which is not done twice."""

    fleet: FleetReader
    described: Mapping[str, Observation]

    def list_endpoints(self) -> Iterator[EndpointSummary]:
        return self.fleet.list_endpoints()

    def recall(self, listed: Sequence[ListedEndpoint]) -> None:
        self.fleet.recall(listed)

    def find(self, names: Iterable[str]) -> list[EndpointSummary]:
        return self.fleet.find(names)

    def observe(self, summaries: Sequence[EndpointSummary]) -> Iterator[Observation]:
        return (self.described[summary.ref.name] for summary in summaries)


def _with_account_cost(ports: EvaluatePorts, region: str, summaries: Sequence[EndpointSummary]) -> EvaluatePorts:
    """The ports whose history tells what all endpoints cost, where a Savings Plan has to be shared among them.

    A deployed stack has added it up; without one all are described first, so that none bears the plan alone.
    """
    prices = ports.prices.table(region, ports.catalogue.types)
    if not summaries or prices.commitment.usd_per_hour <= 0:
        return ports
    if ports.history(summaries[0].ref.name).gpu_usd_per_month is not None:
        return ports
    described = {each.ref.name: each for each in ports.fleet.observe(summaries)}
    endpoints = (each for each in described.values() if isinstance(each, Endpoint))
    total = sum((usd_of_variants(each.variants, prices) for each in endpoints), Decimal(0))

    def history(name: str) -> History:
        return replace(ports.history(name), gpu_usd_per_month=total)

    return replace(ports, fleet=_DescribedFleet(ports.fleet, described), history=history)


def _asleep(hours: Mapping[str, HoursRecord]) -> Iterable[str]:
    return (name for name, record in hours.items() if record.state in ASLEEP)


def _named_endpoints(
    ports: EvaluatePorts, region: str, names: Iterable[str], hours: Mapping[str, HoursRecord]
) -> list[EndpointSummary]:
    wanted = list(names)
    summaries = ports.fleet.find(filter(ENDPOINT.fullmatch, wanted))
    missing = set(wanted) - {summary.ref.name for summary in summaries}
    if asleep := missing & set(_asleep(hours)):
        name = min(asleep)
        wake = wake_command(name, hours[name].ref.region)
        raise InputError(f"{name} is asleep by its office hours, so there is nothing to read; {wake}")
    if missing:
        typed, meant = ", ".join(sorted(missing)), ""
        if len(missing) == 1:
            meant = did_you_mean(typed, (summary.ref.name for summary in ports.fleet.list_endpoints()))
        listing = terminal_command("scan", region)
        raise InputError(f"no endpoint is named {typed} in {region}{meant}; {listing} lists those of the account")
    return summaries


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
