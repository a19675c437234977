"""Training jobs: interruptions counted, MaxWait projected, Spot proposed for the next run, idle warm pools released.

Looked at when SageMaker says that a job moved, and each hour while it runs: waiting for capacity sends no event.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rightsizer.domain.capacity_change import Errand
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.job import Handover, NoHandover, ReleaseWarmPool, TrainingJob, WaitProjection
from rightsizer.domain.outcome import Occurrence
from rightsizer.errors import VanishedError
from rightsizer.ports.changes import SavingsLedger
from rightsizer.ports.spot import ErrandBook, JobReader
from rightsizer.spot.group_options import stand_ins
from rightsizer.spot.jobs import projection, restart, spot_next_time, warm_pool, warning
from rightsizer.spot.proposal import hand_errand, pool_errand
from rightsizer.telemetry import logger


@dataclass(frozen=True, slots=True)
class TrainingPorts:
    """What it needs."""

    jobs: JobReader
    errands: ErrandBook
    ledger: SavingsLedger
    catalogue: Catalogue
    writes: bool = True
    proposal_days: int = 14


def look_at_job(ports: TrainingPorts, name: str, now: datetime) -> tuple[Errand, ...]:
    """Record what happened to the job and ask what there is to ask; returns the errands that are new.

    A job that is gone is nothing to do. ReadError goes up, so that the queue delivers the message again.
    """
    try:
        job = ports.jobs.job(name)
    except VanishedError:
        logger.info("a training job is gone", extra={"job": name})
        return ()
    _count(ports, job)
    if job.mode is Mode.OFF:
        return ()
    found = [
        errand for errand in (_wait(ports, job, now), _next_time(ports, job, now), _pool(ports, job, now)) if errand
    ]
    return tuple(errand for errand in found if ports.errands.ask(errand))


def _count(ports: TrainingPorts, job: TrainingJob) -> None:
    """Each Interrupted transition once, however often the job is looked at."""
    for seen in job.transitions:
        if seen.status == "Interrupted":
            text = (
                f"Spot capacity was taken from the training job {job.name} ({job.instance_count} x {job.instance_type})"
            )
            key = f"{job.arn}|interrupted|{seen.start.isoformat()}"
            ports.ledger.note(Occurrence(key, seen.start, "training-interrupted", job.name, text))


def _wait(ports: TrainingPorts, job: TrainingJob, now: datetime) -> Errand | None:
    """The owner is told once that MaxWait will run out, with the requests that go on from the checkpoint."""
    if projection(job, now) is None:
        return None
    seen = projection(job, now, ports.jobs.usual_s(job))
    if seen is None or not seen.runs_out:
        return None
    reason = warning(job, seen)
    ports.ledger.note(Occurrence(f"{job.arn}|max-wait", now, "training-wait", job.name, str(reason)))
    found = restart(job)
    facts = [("MaxWait leaves", f"{seen.left_s / 3600:.1f} h"), ("Still needed", f"{seen.needs_s / 3600:.1f} h")]
    if isinstance(found, Handover):
        other = _other_type(ports.catalogue, job.instance_type)
        again = restart(job, other, spot=True) if other else None
        if isinstance(again, Handover):
            facts.append((f"Or on Spot of {other}", again.command))
    headline = f"{job.name} will not be done before MaxWait ends it"
    return hand_errand(
        found, job.arn, job.owner, headline, reason, now=now, expires_at=_end_of(seen, now), facts=tuple(facts)
    )


def _end_of(seen: WaitProjection, now: datetime) -> datetime:
    return now + timedelta(seconds=max(3600.0, seen.left_s))


def _other_type(catalogue: Catalogue, name: str) -> str:
    """Another type that can do the work of this one: another Spot pool. Empty when there is none."""
    present = catalogue.find(name)
    others = stand_ins(present, catalogue) if present is not None and present.has_gpu else []
    return others[0] if others else ""


def _next_time(ports: TrainingPorts, job: TrainingJob, now: datetime) -> Errand | None:
    """A finished On-Demand job that checkpoints is proposed for Spot, once for all runs of its name."""
    found = spot_next_time(job)
    if isinstance(found, NoHandover):
        return None
    headline = f"{job.name} can train on Spot the next time"
    expires = now + timedelta(days=ports.proposal_days)
    return hand_errand(found, job.base_arn, job.owner, headline, found.reason, now=now, expires_at=expires)


def _pool(ports: TrainingPorts, job: TrainingJob, now: datetime) -> Errand | None:
    found = warm_pool(job, now)
    if not isinstance(found, ReleaseWarmPool):
        return None
    return pool_errand(job, found, writes=ports.writes, days=ports.proposal_days, now=now)
