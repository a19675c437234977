"""The flows of the doors that look: sweep, evaluate, interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from rightsizer.bootstrap import (
    build_once,
    build_per_policy,
    catalogue,
    now,
    policy_document,
    price_sources,
    reading_ports,
    session,
    settings,
    store,
    table,
)
from rightsizer.settings import Settings, require_settings

if TYPE_CHECKING:
    from rightsizer.domain.endpoint import Endpoint, Unobserved
    from rightsizer.domain.policy import Policy
    from rightsizer.domain.recommendation import Recommendation
    from rightsizer.domain.scaling_group import Reaction
    from rightsizer.domain.trigger import EvaluationReason, JobMoved, LookBeyond, Received, SweepKind, Trigger
    from rightsizer.flows.group_options import CapacityPorts, StandInPorts
    from rightsizer.flows.jobs import HyperPodPorts, TrainingPorts
    from rightsizer.flows.sweep import SweepResult
    from rightsizer.ports.spot import LookQueue
    from rightsizer.recommender.proposal import ChangePermission

SWIFT_S = 5.0
"""Seconds for one answer while a Spot instance has two minutes left; a hung connection must not eat them."""


@build_per_policy
def sweep() -> Callable[[Trigger], SweepResult]:
    """The flow of the sweep door."""
    from rightsizer.aws.cloudwatch import CloudWatchAlarms
    from rightsizer.aws.endpoints import SageMakerFleet
    from rightsizer.aws.messaging import SqsPages
    from rightsizer.bootstrap.channels import report_events
    from rightsizer.domain.trigger import SweepDue
    from rightsizer.flows import sweep as flow

    require_settings(settings(), "queue_url")
    queue = SqsPages(session().client("sqs"), settings().queue_url)
    alarm = f"{settings().alarm_prefix}gpu-idle" if settings().grouped_alarm else ""
    fleet, alarms, days = SageMakerFleet(session()), CloudWatchAlarms(session()), _account_policy().lookback_days
    again = report_events().send_again
    ports = flow.SweepPorts(fleet, alarms, store(), queue, alarm, store(), days, store().count_by_state, again)
    beyond = _look_after_sweep(queue)

    def run(trigger: Trigger) -> SweepResult:
        try:
            return flow.sweep(ports, trigger)
        finally:  # groups and jobs are looked at although the endpoints failed
            if isinstance(trigger, SweepDue):
                beyond(trigger.sweep)

    return run


def _look_after_sweep(queue: LookQueue) -> Callable[[SweepKind], object]:
    """What a sweep does beside the endpoints: facts of groups, and what `evaluate` is asked to look at."""
    from rightsizer.aws.capacity_changes import InterruptionTable
    from rightsizer.aws.groups import Groups
    from rightsizer.aws.training import TrainingJobs
    from rightsizer.flows import sweep as flow

    client = session().client
    groups = Groups(client("autoscaling"), client("ec2"), session().region)
    ports = flow.BeyondPorts(groups, TrainingJobs(client("sagemaker")), InterruptionTable(table()), queue)
    return lambda kind: flow.look_beyond(ports, kind, now())


@build_per_policy
def evaluate() -> Callable[[Sequence[Received], datetime, Callable[[], float]], list[str]]:
    """The flow of the evaluate door: batch and seconds left in, ids to deliver again out."""
    from rightsizer.aws.cloudwatch import CloudWatchAlarms
    from rightsizer.aws.hours import HoursTable
    from rightsizer.aws.ledger import SavingsTable
    from rightsizer.aws.messaging import SqsPages
    from rightsizer.aws.s3 import S3DailyUsage
    from rightsizer.flows.evaluate import AskedEndpoints, NotDone, RecommendationSink
    from rightsizer.flows.evaluate import evaluate as flow
    from rightsizer.flows.evaluate_batch import BatchPorts, evaluate_batch
    from rightsizer.flows.read_usage import UsageCache
    from rightsizer.flows.sweep import pages_of, send_pages
    from rightsizer.flows.turns import divide_time

    ports, policy = reading_ports(session(), store().history), _account_policy()
    ports = replace(ports, hours=HoursTable(table()).of_endpoints, document=policy_document())
    keeping = RecommendationSink(store(), _permission(settings()), settings().proposal_days)

    digests = S3DailyUsage(session().client("s3"), settings().bucket) if settings().bucket else None

    queue = SqsPages(session().client("sqs"), settings().queue_url) if settings().queue_url else None
    alarms, ledger, beyond = CloudWatchAlarms(session()), SavingsTable(table()), _looks()

    def later(names: Sequence[str], because: EvaluationReason, at: datetime, fleet: int) -> Sequence[str]:
        return names if queue is None else send_pages(queue, pages_of(names, because, at, "later", fleet)).refused

    def run(received: Sequence[Received], at: datetime, left: Callable[[], float]) -> list[str]:
        turns = divide_time(policy.lookback_days, left)

        def evaluate_names(
            names: Sequence[str], because: EvaluationReason, at: datetime, fleet: int
        ) -> Iterable[Recommendation | Unobserved | NotDone]:
            memory = UsageCache(digests, fleet, policy.lookback_days) if digests and fleet else None
            return flow(replace(ports, memory=memory), keeping, policy, AskedEndpoints(names, because), at, turns)

        return evaluate_batch(
            BatchPorts(evaluate_names, alarms, ledger, beyond, later if queue else None, ports.fleet.recall),
            received,
            at,
        )

    return run


def _looks() -> Callable[[LookBeyond | JobMoved, datetime], None]:
    """Groups, training jobs and HyperPod clusters; built on the first message about one."""

    @build_once
    def flows() -> tuple[CapacityPorts, TrainingPorts, HyperPodPorts, StandInPorts]:
        from rightsizer.aws.capacity_changes import CapacityChangeTable, InterruptionTable
        from rightsizer.aws.detailed_metrics import AgentMetrics
        from rightsizer.aws.ec2 import Ec2SpotMarket
        from rightsizer.aws.groups import Groups
        from rightsizer.aws.ledger import SavingsTable
        from rightsizer.aws.prices import OrderedPrices
        from rightsizer.aws.training import TrainingJobs
        from rightsizer.flows.group_options import CapacityPorts, StandInPorts
        from rightsizer.flows.jobs import HyperPodPorts, TrainingPorts

        client, writes, days = session().client, not settings().dry_run, settings().proposal_days
        capacity_changes, ledger, jobs = (
            CapacityChangeTable(table()),
            SavingsTable(table()),
            TrainingJobs(client("sagemaker")),
        )
        book, market = InterruptionTable(table()), Ec2SpotMarket(client("ec2"), session().region, table(), now)
        groups = Groups(client("autoscaling"), client("ec2"), session().region)
        agent, prices = AgentMetrics(client("cloudwatch")), OrderedPrices(price_sources(None), now)
        return (
            CapacityPorts(book, market, prices, agent, catalogue(), ledger, capacity_changes, writes, days),
            TrainingPorts(jobs, capacity_changes, ledger, catalogue(), writes, days),
            HyperPodPorts(jobs, capacity_changes, ledger, catalogue(), days),
            StandInPorts(groups, book, prices, catalogue(), capacity_changes, writes),
        )

    def look(asked: LookBeyond | JobMoved, at: datetime) -> None:
        from rightsizer.flows.jobs import look

        look(flows(), asked, at)

    return look


def policy_of(known: Settings) -> Policy:
    """The thresholds of the decision in this deployment."""
    from rightsizer.domain.policy import Policy

    return Policy(
        lookback_days=known.lookback_days,
        minimum_saving_usd=known.minimum_saving_usd,
        by_itself=known.limits.by_itself,
        tests_per_month=known.tests_per_month,
    )


def _account_policy() -> Policy:
    """The thresholds as they hold where an endpoint's environment and owner say nothing else."""
    from rightsizer.domain.policy_document import Subject, effective_policy

    return effective_policy(policy_of(settings()), policy_document(), Subject())


def _permission(known: Settings) -> Callable[[Endpoint], ChangePermission]:
    from rightsizer.recommender.proposal import permission_for_endpoint

    return lambda endpoint: permission_for_endpoint(endpoint, writes=not known.dry_run, untagged=known.change_untagged)


@build_per_policy
def interruption() -> Callable[[Trigger, datetime], Reaction]:
    """The flow of the interruption door."""
    from rightsizer.aws.capacity_changes import InterruptionTable
    from rightsizer.aws.groups import Groups, GroupWrites
    from rightsizer.aws.journal import TableJournal
    from rightsizer.aws.ledger import SavingsTable
    from rightsizer.aws.messaging import SqsPages
    from rightsizer.bootstrap.channels import notifier
    from rightsizer.flows import interruption as flow

    client = session().client
    scaling = client("autoscaling", seconds=SWIFT_S)
    ports = flow.InterruptPorts(
        groups=Groups(scaling, client("ec2", seconds=SWIFT_S), session().region),
        writes=GroupWrites(scaling),
        book=InterruptionTable(table()),
        ledger=SavingsTable(table()),
        notifier=notifier(),
        dry_run=settings().dry_run,
        switch=TableJournal(client("dynamodb"), settings().table).switch,
        queue=SqsPages(client("sqs"), settings().queue_url) if settings().queue_url else None,
    )
    return lambda trigger, at: flow.interrupt(ports, trigger, at)
