"""The flows of the doors that change, apply and hours, and what a person at a terminal may order of a stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rightsizer.bootstrap import (
    bill_ports,
    build_per_policy,
    catalogue,
    deciders,
    hours_zone,
    now,
    policy_document,
    price_sources,
    reading_ports,
    session,
    settings,
    store,
    table,
)
from rightsizer.bootstrap.channels import notifier
from rightsizer.domain.policy_document import Subject, effective_approvers
from rightsizer.domain.proposal import USUAL_SNOOZE
from rightsizer.errors import NotApproverError, ReadError, SettingsError
from rightsizer.settings import require_settings

if TYPE_CHECKING:
    from rightsizer.aws.account import Deployed
    from rightsizer.aws.capacity_changes import CapacityChangeTable
    from rightsizer.aws.journal import TableJournal
    from rightsizer.aws.recommendations import Recommendations
    from rightsizer.aws.session import Session
    from rightsizer.aws.table import Table
    from rightsizer.bootstrap.policy import StackPolicy
    from rightsizer.domain.capacity_change import CapacityChange
    from rightsizer.domain.live_state import EndpointSight, Gone
    from rightsizer.domain.policy import ChangeLimits
    from rightsizer.domain.proposal import Proposal, ProposalState
    from rightsizer.flows.apply import Apply
    from rightsizer.flows.change_capacity import CapacityChanges
    from rightsizer.flows.hours import HoursKeeper
    from rightsizer.flows.orders import ComponentOrders, Orders
    from rightsizer.flows.report import ReportSources
    from rightsizer.flows.wake import WakeOrders
    from rightsizer.ports.changes import HoursBook


@build_per_policy
def apply() -> Apply:
    """The flow of the apply door."""
    from rightsizer.aws.account import BEFORE_A_WRITE, EndpointQuotas
    from rightsizer.aws.changes import AwsChanger
    from rightsizer.aws.hours import HoursTable
    from rightsizer.aws.journal import TableJournal
    from rightsizer.aws.ledger import HistoryTable, SavingsTable
    from rightsizer.aws.metrics import CloudWatchMetrics
    from rightsizer.dimensions import DIMENSIONS
    from rightsizer.flows.apply import Apply

    known, client = settings(), session().client
    require_settings(known, "table")
    return Apply(
        journal=TableJournal(client("dynamodb"), known.table),
        changer=AwsChanger(
            client("sagemaker"),
            client("application-autoscaling"),
            client("cloudwatch"),
            client("ec2"),
            client("iam"),
            client("ecr"),
            client("sts"),
        ),
        store=store(),
        ledger=SavingsTable(table()),
        history=HistoryTable(table()),
        metrics=CloudWatchMetrics(session()),
        quotas=EndpointQuotas(session(), now, BEFORE_A_WRITE),
        catalogue=catalogue(),
        dimensions=DIMENSIONS,
        limits=known.limits,
        notifier=notifier(),
        capacity_changes=_capacity_changes(),
        policy=policy_document(),
        stopped=HoursTable(table()).stopped_times,
    )


@build_per_policy
def hours() -> HoursKeeper:
    """The flow of the hours door."""
    from rightsizer.aws.account import BEFORE_A_WRITE, EndpointQuotas
    from rightsizer.aws.changes import AwsChanger
    from rightsizer.aws.hours import AwsHoursAccount, HoursTable
    from rightsizer.aws.journal import TableJournal
    from rightsizer.aws.ledger import SavingsTable
    from rightsizer.aws.metrics import CloudWatchMetrics
    from rightsizer.flows.hours import HoursKeeper
    from rightsizer.flows.read_hours import HoursPorts

    known, client = settings(), session().client
    require_settings(known, "table")
    sagemaker, autoscaling, cloudwatch = (client(s) for s in ("sagemaker", "application-autoscaling", "cloudwatch"))
    tagging, s3 = client("resourcegroupstaggingapi"), client("s3")
    return HoursKeeper(
        HoursPorts(
            book=HoursTable(table()),
            account=AwsHoursAccount(sagemaker, autoscaling, cloudwatch, tagging, s3),
            changer=AwsChanger(
                sagemaker, autoscaling, cloudwatch, client("ec2"), client("iam"), client("ecr"), client("sts")
            ),
            journal=TableJournal(client("dynamodb"), known.table),
            store=store(),
            metrics=CloudWatchMetrics(session()),
            quotas=EndpointQuotas(session(), now, BEFORE_A_WRITE),
            ledger=SavingsTable(table()),
            notifier=notifier(),
            limits=account_limits(),
        )
    )


def account_limits() -> ChangeLimits:
    """The limits as they hold where an endpoint's environment and owner say nothing else."""
    from rightsizer.domain.policy_document import Subject, effective_limits

    return effective_limits(settings().limits, policy_document(), Subject())


def _capacity_changes() -> CapacityChanges:
    from rightsizer.aws.capacity_changes import CapacityChangeCalls
    from rightsizer.aws.capacity_changes import CapacityChangeTable as Book
    from rightsizer.aws.journal import TableJournal
    from rightsizer.aws.ledger import SavingsTable
    from rightsizer.flows.change_capacity import CapacityChanges

    client = session().client
    calls = CapacityChangeCalls(client("autoscaling"), client("sagemaker"))
    journal = TableJournal(client("dynamodb"), settings().table)
    ledger, known, limits = SavingsTable(table()), settings(), account_limits()
    return CapacityChanges(
        Book(table()),
        calls,
        calls,
        journal.switch,
        ledger,
        notifier(),
        limits.approvers,
        known.dry_run,
        limits.automatic,
    )


@dataclass(frozen=True, slots=True)
class Desk:
    """Proposals, changes and orders of one deployed stack."""

    store: Recommendations
    journal: TableJournal
    orders: Orders
    capacity_changes: CapacityChangeTable
    table: Table
    decider: str
    component_orders: ComponentOrders
    hours: HoursBook
    """Records of endpoints with office hours."""
    stack: Callable[[], Deployed | str]
    """The stack, or why no stack can be asked for its list and its settings."""

    policy: Callable[[], StackPolicy | str]
    """The policy of that stack as it is in force, or why no stack can be asked for it."""

    def require_approver(self, doing: str, *, of_account: bool = False) -> str:
        """Let nobody give an order whom the stack's lists do not let decide: NotApproverError.

        `of_account`: the order is about everything, so that the list of `defaults` counts; else each of the lists, and
        the order asks again for what it is about. Returns why no stack could be asked for its lists, empty where one
        was. IAM alone decides here then; `apply` holds who approved against its own lists anyway.
        """
        lists = self._lists()
        if isinstance(lists, str):
            return lists
        try:
            if of_account:
                deciders.require_of_list(effective_approvers(*lists, Subject()), self.decider, approves=False)
            else:
                deciders.require_any_list(self.decider, lists)
        except NotApproverError as error:
            raise NotApproverError(f"{doing}: {error}") from None
        return ""

    def require_decider(self, proposal_id: str, *, approves: bool = False) -> None:
        """Let nobody decide on a proposal whom its own list does not let: NotApproverError.

        Where the lists cannot be asked the warning of `require_approver` was shown, and `apply` asks them.
        """
        lists = self._lists()
        if not isinstance(lists, str):
            deciders.require_decider(self.table, proposal_id, self.decider, lists, approves=approves)

    def require_waker(self, endpoint: str) -> None:
        """Let nobody wake an endpoint whom its own list does not let: NotApproverError."""
        lists, record = self._lists(), self.hours.load(endpoint)
        if isinstance(lists, str) or record is None or not lists[1]:
            return
        tags = record.before.tags if record.before is not None else {}
        subject = lists[1].subject(endpoint, tags, record.owner)
        deciders.require_of_list(effective_approvers(*lists, subject), self.decider, approves=False)

    def _lists(self) -> deciders.Lists | str:
        """The lists of approvers of the stack, or why no stack can be asked for them."""
        known = self.policy()
        return known if isinstance(known, str) else known.unread or (known.approvers, known.document)

    def decide(
        self,
        proposal_id: str,
        state: ProposalState,
        comment: str = "",
        *,
        test_first: bool = False,
        snooze_days: int = USUAL_SNOOZE,
    ) -> dict[str, Any]:
        """Record a decision by the same conditional write as a click in Slack; returns the proposal's document.

        `test_first`: of an approval, that the shadow test runs before the change. `snooze_days`: of a snooze, one of
        `SNOOZE_DAYS`. NotApproverError where the endpoint's own list does not let the caller decide.
        """
        from rightsizer.aws import decisions
        from rightsizer.domain.proposal import Decision, ProposalState

        at = now()
        self.require_decider(proposal_id, approves=state is ProposalState.APPROVED)
        decision = Decision(state, self.decider, at, comment, test_first, snooze_days)
        return decisions.decide(self.table, proposal_id, decision, at)

    def proposals(self) -> Sequence[Proposal]:
        """Every proposal that is stored and can be read."""
        return tuple(self.store.proposals((), []))

    def wake_orders(self) -> WakeOrders:
        """Orders to wake endpoints, within the limits of the stack; the default ones where no stack can be asked."""
        from rightsizer.domain.office_hours import HoursLimits
        from rightsizer.flows.wake import WakeOrders

        known = self.policy()
        if isinstance(known, str):
            return WakeOrders(self.hours, HoursLimits(), self.journal.switch)
        may_stop = known.parameters.get("MayStop", "nothing") == "tagged"
        return WakeOrders(self.hours, known.account_limits.hours, self.journal.switch, may_stop)

    def request_capacity_rollback(self, capacity_change_id: str) -> CapacityChange | None:
        """Record that the old policy of a group is wanted back; None where the id is not a capacity change's.

        NotApproverError where the list of `defaults` does not let the caller decide.
        """
        from rightsizer.flows.change_capacity import request_rollback

        if self.capacity_changes.load(capacity_change_id) is None:
            return None
        self.require_decider(capacity_change_id)
        return request_rollback(self.capacity_changes, capacity_change_id, self.decider, now())


def desk(account: Session, stack: str, table_name: str) -> Desk:
    """The desk of a stack; SettingsError when none is deployed. `table_name` names its table and skips the search."""
    from rightsizer.aws import decisions
    from rightsizer.aws.account import decider_of, stack_of
    from rightsizer.aws.capacity_changes import CapacityChangeTable
    from rightsizer.aws.components import components_of_endpoint
    from rightsizer.aws.hours import HoursTable
    from rightsizer.aws.journal import TableJournal
    from rightsizer.aws.recommendations import Recommendations
    from rightsizer.aws.table import Table
    from rightsizer.flows.orders import ComponentOrders, Orders

    known = None if table_name else stack_of(account, stack)
    name = known.table if known else table_name
    client = account.client("dynamodb")
    journal, table = TableJournal(client, name), Table(client, name)
    stop = partial(decisions.request_rollback, table)
    orders = Orders(journal, lambda endpoint: _look(account, endpoint), stop)
    store, reading = Recommendations(table, now), reading_ports(account)
    sagemaker = account.client("sagemaker")
    deployed = partial(_stack_of_table, account, stack, name) if known is None else lambda: known
    asking = ComponentOrders(
        reading.fleet, reading.prices, store, lambda endpoint: components_of_endpoint(sagemaker, endpoint)
    )
    capacity_changes, hours_book = CapacityChangeTable(table), HoursTable(table)
    found = cache(deployed)
    policy = cache(lambda: _stack_policy(account, found()))
    who = decider_of(account)
    return Desk(store, journal, orders, capacity_changes, table, who, asking, hours_book, found, policy)


def _stack_policy(account: Session, stack: Deployed | str) -> StackPolicy | str:
    """The policy of the stack, or why no stack can be asked for it."""
    from rightsizer.bootstrap.policy import policy_of_stack

    return stack if isinstance(stack, str) else policy_of_stack(account, stack)


def _stack_of_table(account: Session, stack: str, table_name: str) -> Deployed | str:
    """The stack that a named table belongs to, or why no stack can be asked."""
    from rightsizer.aws.account import stack_of

    try:
        deployed = stack_of(account, stack)
    except (ReadError, SettingsError) as error:
        return str(error)
    if deployed.table != table_name:
        return f"the table of the stack {stack} is {deployed.table}, not {table_name}"
    return deployed


def report_sources(account: Session, stack: str, table_name: str) -> ReportSources:
    """Sources of a stack's report at a terminal; SettingsError when none is deployed.

    What the stack itself costs is not known there: its functions are named in their own settings alone. Nor is the
    smallest saving that counts where `table_name` names the table and skips the search: the default stands for it.
    """
    from rightsizer.aws.account import LambdaUse, stack_of
    from rightsizer.aws.hours import HoursTable
    from rightsizer.aws.ledger import HistoryTable, SavingsTable
    from rightsizer.aws.prices import OrderedPrices, SavingsPlans
    from rightsizer.aws.recommendations import Recommendations
    from rightsizer.aws.table import Table
    from rightsizer.bootstrap.policy import StackPolicy, policy_of_stack
    from rightsizer.domain.report import Stack
    from rightsizer.flows.report import ReportSources

    deployed = None if table_name else stack_of(account, stack)
    table = Table(account.client("dynamodb"), deployed.table if deployed else table_name)
    stack_policy = policy_of_stack(account, deployed) if deployed else StackPolicy()
    prices = OrderedPrices(price_sources(None), now, SavingsPlans(account))
    return ReportSources(
        account=account.account(),
        region=account.region,
        store=Recommendations(table, now),
        ledger=SavingsTable(table),
        past=HistoryTable(table),
        own=LambdaUse(account.client("cloudwatch"), {}),
        stack=Stack(),
        policy=stack_policy.account_policy,
        misread=stack_policy.misread,
        bill=bill_ports(account, prices, HoursTable(table), hours_zone(stack_policy.account_limits)),
    )


def _look(account: Session, endpoint: str) -> EndpointSight | Gone:
    from rightsizer.aws.changes import AwsChanger

    services = ("sagemaker", "application-autoscaling", "cloudwatch", "ec2", "iam", "ecr", "sts")
    return AwsChanger(*(account.client(service) for service in services)).endpoint(endpoint)
