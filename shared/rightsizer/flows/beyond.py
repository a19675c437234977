"""What `evaluate` looks at beside the endpoints: Auto Scaling groups, training jobs, HyperPod clusters."""

from datetime import datetime
from functools import partial
from typing import assert_never

from rightsizer.domain.trigger import JobMoved, LookBeyond
from rightsizer.errors import InputError, ReadError
from rightsizer.flows.group_options import CapacityPorts, propose_capacity
from rightsizer.flows.hyperpod import HyperPodPorts, cluster_moved
from rightsizer.flows.jobs import TrainingPorts, look_at_job
from rightsizer.flows.spot_stand_in import StandInPorts, stand_in
from rightsizer.telemetry import Failed, attempt, logger

type Ports = tuple[CapacityPorts, TrainingPorts, HyperPodPorts, StandInPorts]


def look(ports: Ports, asked: LookBeyond | JobMoved, now: datetime) -> None:
    """Look at each thing that the message names, one by one. ReadError when one failed: the message comes again.

    A thing that cannot be understood is logged and stops no other.
    """
    names = asked.names if isinstance(asked, LookBeyond) else (asked.name,)
    tried = [attempt(f"looking at a {asked.kind}", name, partial(_look, ports, asked, name, now)) for name in names]
    failed = [one for one in tried if isinstance(one, Failed)]
    if failed:
        raise ReadError(f"looking at {len(names)} beside the endpoints: {len(failed)} failed: {failed[0]}")


def _look(ports: Ports, asked: LookBeyond | JobMoved, name: str, now: datetime) -> None:
    capacity, training, hyperpod, capacity_now = ports
    match asked:
        case LookBeyond(subject="group", because="no-capacity"):
            stand_in(capacity_now, name, now)
        case LookBeyond(subject="group"):
            propose_capacity(capacity, (name,), now)
        case LookBeyond(subject="training-job") | JobMoved(resource="training-job"):
            _job(training, name, now)
        case JobMoved():
            cluster_moved(hyperpod, asked, now)
        case LookBeyond():
            raise InputError(f"looking at a {asked.subject}: nobody does")
        case _:
            assert_never(asked)


def _job(ports: TrainingPorts, name: str, now: datetime) -> None:
    try:
        look_at_job(ports, name, now)
    except InputError as error:
        logger.warning("a training job is not understood", extra={"job": name, "why": str(error)})
