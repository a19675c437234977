"""The flow of the door that changes, and of the orders that people give it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightsizer.bootstrap import catalogue, notifier, now, once, session, settings, store, table
from rightsizer.settings import require

if TYPE_CHECKING:
    from rightsizer.flows.apply import Apply
    from rightsizer.flows.change_capacity import Errands


@once
def apply() -> Apply:
    """The flow of the apply door."""
    from rightsizer.aws.account import BEFORE_A_WRITE, EndpointQuotas
    from rightsizer.aws.changes import AwsChanger
    from rightsizer.aws.journal import TableJournal
    from rightsizer.aws.ledger import HistoryBook, SavingsBook
    from rightsizer.aws.metrics import CloudWatchMetrics
    from rightsizer.flows.apply import Apply

    known, client = settings(), session().client
    require(known, "table")
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
        ledger=SavingsBook(table()),
        history=HistoryBook(table()),
        metrics=CloudWatchMetrics(session()),
        quotas=EndpointQuotas(session(), now, BEFORE_A_WRITE),
        catalogue=catalogue(),
        limits=known.limits,
        tell=notifier().publish,
        errands=_errands(),
    )


def _errands() -> Errands:
    from rightsizer.aws.capacity_changes import ErrandCalls
    from rightsizer.aws.capacity_changes import Errands as Book
    from rightsizer.aws.journal import TableJournal
    from rightsizer.aws.ledger import SavingsBook
    from rightsizer.flows.change_capacity import Errands

    client = session().client
    calls = ErrandCalls(client("autoscaling"), client("sagemaker"))
    journal = TableJournal(client("dynamodb"), settings().table)
    ledger, approvers = SavingsBook(table()), settings().limits.approvers
    return Errands(Book(table()), calls, calls, journal.switch, ledger, notifier().publish, approvers)
