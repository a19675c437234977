"""Training jobs and HyperPod clusters, and the messages that ask for a look at them or at a group.

Interruptions are counted, MaxWait projected, Spot proposed for the next run, idle warm pools released. A job is looked
at when SageMaker says that it moved, and each hour while it runs: waiting for capacity sends no event. What a cluster
or a node says is recorded; a lack of capacity becomes a request for a person to send.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, assert_never

from rightsizer.domain.capacity_change import CapacityChange
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.job import Handover, NoHandover, ReleaseWarmPool, TrainingJob, WaitProjection
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.plan import region_of_arn
from rightsizer.domain.trigger import JobMoved, LookBeyond, LookReason
from rightsizer.errors import InputError, ReadError, VanishedError
from rightsizer.flows.group_options import CapacityPorts, StandInPorts, propose_capacity, propose_stand_in
from rightsizer.ports.changes import SavingsLedger
from rightsizer.ports.spot import CapacityChangeStore, ClusterReader, JobReader
from rightsizer.spot.group_options import stand_ins
from rightsizer.spot.jobs import (
    further_group_request,
    is_capacity_text,
    is_short,
    is_spot,
    more_types_request,
    restart_request,
    spot_request,
    wait_projection,
    wait_warning,
    warm_pool_release,
)
from rightsizer.spot.proposal import ManualWork, manual_capacity_change, pool_capacity_change
from rightsizer.telemetry import Failure, attempt, logger

MOST_NEW_TYPES = 3

type Ports = tuple[CapacityPorts, TrainingPorts, HyperPodPorts, StandInPorts]


@dataclass(frozen=True, slots=True)
class TrainingPorts:
    """Ports for training jobs."""

    jobs: JobReader
    capacity_changes: CapacityChangeStore
    ledger: SavingsLedger
    catalogue: Catalogue
    writes: bool = True
    proposal_days: int = 14


def look_at_job(ports: TrainingPorts, name: str, now: datetime) -> tuple[CapacityChange, ...]:
    """Record what happened to the job and ask what there is to ask; returns the capacity changes that are new.

    A job that is gone is nothing to do. ReadError goes up, so that the queue delivers the message again.
    """
    try:
        job = ports.jobs.job(name)
    except VanishedError:
        logger.info("a training job is gone", extra={"job": name})
        return ()
    _count_interruptions(ports, job)
    if job.mode is Mode.OFF:
        return ()
    capacity_changes = [
        capacity_change
        for capacity_change in (
            _ask_about_wait(ports, job, now),
            _ask_about_spot(ports, job, now),
            _ask_about_pool(ports, job, now),
        )
        if capacity_change
    ]
    return tuple(capacity_change for capacity_change in capacity_changes if ports.capacity_changes.add(capacity_change))


def _count_interruptions(ports: TrainingPorts, job: TrainingJob) -> None:
    """Each Interrupted transition once, however often the job is looked at."""
    for transition in job.transitions:
        if transition.status == "Interrupted":
            text = (
                f"Spot capacity was taken from the training job {job.name} ({job.instance_count} x {job.instance_type})"
            )
            key = f"{job.arn}|interrupted|{transition.start.isoformat()}"
            ports.ledger.note(Occurrence(key, transition.start, "training-interrupted", job.name, text))


def _ask_about_wait(ports: TrainingPorts, job: TrainingJob, now: datetime) -> CapacityChange | None:
    """The owner is told once that MaxWait will run out, with the requests that go on from the checkpoint."""
    if wait_projection(job, now) is None:
        return None
    seen = wait_projection(job, now, ports.jobs.usual_s(job))
    if seen is None or not seen.is_stopped_early:
        return None
    reason = wait_warning(job, seen)
    ports.ledger.note(Occurrence(f"{job.arn}|max-wait", now, "training-wait", job.name, str(reason)))
    found = restart_request(job)
    facts = [("MaxWait leaves", f"{seen.left_s / 3600:.1f} h"), ("Still needed", f"{seen.needs_s / 3600:.1f} h")]
    if isinstance(found, Handover):
        other = _other_type(ports.catalogue, job.instance_type)
        again = restart_request(job, other, spot=True) if other else None
        if isinstance(again, Handover):
            facts.append((f"Or on Spot of {other}", again.command(region_of_arn(job.arn))))
    headline = f"{job.name} will not be done before MaxWait ends it"
    manual_work = ManualWork(found, job.arn, job.owner, headline, reason, tuple(facts))
    return manual_capacity_change(manual_work, now, _expiry_of(seen, now))


def _expiry_of(seen: WaitProjection, now: datetime) -> datetime:
    return now + timedelta(seconds=max(3600.0, seen.left_s))


def _other_type(catalogue: Catalogue, name: str) -> str:
    """Another type that can do the work of this one: another Spot pool. Empty when there is none."""
    present = catalogue.find(name)
    others = stand_ins(present, catalogue) if present is not None and present.has_gpu else []
    return others[0] if others else ""


def _ask_about_spot(ports: TrainingPorts, job: TrainingJob, now: datetime) -> CapacityChange | None:
    """A finished On-Demand job that checkpoints is proposed for Spot, once for all runs of its name."""
    found = spot_request(job)
    if isinstance(found, NoHandover):
        return None
    headline = f"{job.name} can train on Spot the next time"
    expires = now + timedelta(days=ports.proposal_days)
    manual_work = ManualWork(found, job.base_arn, job.owner, headline, found.reason)
    return manual_capacity_change(manual_work, now, expires)


def _ask_about_pool(ports: TrainingPorts, job: TrainingJob, now: datetime) -> CapacityChange | None:
    found = warm_pool_release(job, now)
    if not isinstance(found, ReleaseWarmPool):
        return None
    return pool_capacity_change(job, found, writes=ports.writes, days=ports.proposal_days, now=now)


@dataclass(frozen=True, slots=True)
class HyperPodPorts:
    """Ports for HyperPod clusters."""

    clusters: ClusterReader
    capacity_changes: CapacityChangeStore
    ledger: SavingsLedger
    catalogue: Catalogue
    proposal_days: int = 14


def look_at_cluster(ports: HyperPodPorts, moved: JobMoved, now: datetime) -> tuple[CapacityChange, ...]:
    """Ask about each group that is short for lack of capacity; returns the capacity changes that are new.

    A sick node is HyperPod's to replace where node recovery is on; where it is off, the record says so. ReadError
    goes up, so that the queue delivers the message again.
    """
    name = moved.name.partition("/")[0]
    sick = moved.resource == "hyperpod-node" and moved.status != "Healthy"
    if not sick and not is_capacity_text(moved.detail):
        return ()
    try:
        cluster = ports.clusters.cluster(name)
    except VanishedError:
        logger.info("a cluster is gone", extra={"cluster": name})
        return ()
    if sick:
        _note_sick_nodes(ports, moved, cluster)
        return ()
    return tuple(
        capacity_change
        for capacity_change in _ask_about_short_groups(ports, cluster, now)
        if ports.capacity_changes.add(capacity_change)
    )


def _note_sick_nodes(ports: HyperPodPorts, moved: JobMoved, cluster: Mapping[str, Any]) -> None:
    replaces = cluster.get("NodeRecovery") == "Automatic"
    then = "HyperPod replaces it" if replaces else "node recovery is off: replace it (BatchReplaceClusterNodes)"
    text = f"the node {moved.name} is {moved.status} ({moved.detail or 'no cause given'}): {then}"
    ports.ledger.note(Occurrence(f"{moved.key}|node", moved.at, "hyperpod-node-health", moved.name, text))


def _ask_about_short_groups(
    ports: HyperPodPorts, cluster: Mapping[str, Any], now: datetime
) -> Iterator[CapacityChange]:
    name = str(cluster["ClusterName"])
    for row in cluster.get("InstanceGroups", ()):
        if not is_short(row):
            continue
        group = str(row.get("InstanceGroupName", "?"))
        found = _capacity_request(ports.catalogue, cluster, row)
        text = f"the group {group} of {name} has {row.get('CurrentCount')} of {row.get('TargetCount')} instances"
        key = f"{cluster.get('ClusterArn', name)}|{group}|short|{now:%Y-%m-%d}"
        kind, said = "hyperpod-short", f"{text}, for lack of capacity: {found.reason}"
        ports.ledger.note(Occurrence(key, now, kind, f"{name}/{group}", said))
        if isinstance(found, Handover):
            headline = f"{name}/{group} lacks capacity: {row.get('CurrentCount')} of {row.get('TargetCount')}"
            expires = now + timedelta(days=ports.proposal_days)
            scope = f"{cluster.get('ClusterArn', name)}/{group}"
            yield manual_capacity_change(ManualWork(found, scope, "", headline, found.reason), now, expires)


def _capacity_request(
    catalogue: Catalogue, cluster: Mapping[str, Any], row: Mapping[str, Any]
) -> Handover | NoHandover:
    """More types where the group takes several, else a further group: On-Demand beside Spot, another type beside it."""
    group, missing = str(row["InstanceGroupName"]), int(row["TargetCount"]) - int(row["CurrentCount"])
    held = row.get("InstanceRequirements") or {}
    types = [*(held.get("DesiredInstanceTypes") or held.get("CurrentInstanceTypes") or ()), row.get("InstanceType", "")]
    others = _other_types(catalogue, next((kind for kind in types if kind), ""))
    if held:
        return more_types_request(cluster, group, others[:MOST_NEW_TYPES])
    if is_spot(row):
        return further_group_request(cluster, group, str(row["InstanceType"]), missing, spot=False)
    return further_group_request(cluster, group, others[0] if others else str(row["InstanceType"]), missing, spot=False)


def _other_types(catalogue: Catalogue, name: str) -> list[str]:
    present = catalogue.find(name)
    return stand_ins(present, catalogue) if present is not None and present.has_gpu else []


def look(ports: Ports, asked: LookBeyond | JobMoved, now: datetime) -> None:
    """Look at each thing that the message names, one by one. ReadError when one failed: the message comes again.

    A thing that cannot be understood is logged and stops no other.
    """
    names = asked.names if isinstance(asked, LookBeyond) else (asked.name,)
    tried = [attempt(f"looking at a {asked.kind}", name, partial(_look, ports, asked, name, now)) for name in names]
    failed = [failure for failure in tried if isinstance(failure, Failure)]
    if failed:
        raise ReadError(f"looking at {len(names)} beside the endpoints: {len(failed)} failed: {failed[0]}")


def _look(ports: Ports, asked: LookBeyond | JobMoved, name: str, now: datetime) -> None:
    capacity, training, hyperpod, capacity_now = ports
    match asked:
        case LookBeyond(subject="group", because=LookReason.NO_CAPACITY):
            propose_stand_in(capacity_now, name, now)
        case LookBeyond(subject="group"):
            propose_capacity(capacity, (name,), now)
        case LookBeyond(subject="training-job") | JobMoved(resource="training-job"):
            _job(training, name, now)
        case JobMoved():
            look_at_cluster(hyperpod, asked, now)
        case LookBeyond():
            raise InputError(f"looking at a {asked.subject}: nobody does")
        case _:
            assert_never(asked)


def _job(ports: TrainingPorts, name: str, now: datetime) -> None:
    try:
        look_at_job(ports, name, now)
    except InputError as error:
        logger.warning("a training job is not understood", extra={"job": name, "why": str(error)})
