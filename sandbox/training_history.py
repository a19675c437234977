"""A believable month: 200 finished training jobs of seven teams' work and 32 processing jobs, with the use of hosts.

Each line of `WORK` says what the work is there to show. The same seed gives the same account.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rightsizer.aws.training import NAMESPACE, PROCESSING_NAMESPACE
from sandbox.cloudwatch.store import Sample
from sandbox.traffic import hardware

if TYPE_CHECKING:
    from sandbox.account import Sandbox
    from sandbox.spot_jobs import Jobs

DAYS = 28


@dataclass(frozen=True, slots=True)
class Work:
    """Runs of one script on one type. Shares are of one vCPU, host memory, GPU and GPU memory, 0 to 1."""

    name: str
    runs: int
    instance_type: str
    hours: float
    cpu: float
    memory: float
    gpu: float = 0.0
    gpu_memory: float = 0.0
    count: int = 1
    spot: bool = False
    checkpoints: bool = False
    interruptions: int = 0
    failed: int = 0
    retained_s: int = 0
    """Seconds that a warm pool was billed for after each run."""
    tags: Mapping[str, str] = field(default_factory=dict)
    over: Mapping[str, Any] = field(default_factory=dict)


WORK = (
    Work("churn-xgboost", 40, "ml.g5.xlarge", 0.8, 0.7, 0.30, tags={"team": "growth"}),  # a GPU that does nothing
    Work("bert-finetune", 26, "ml.g5.2xlarge", 2.0, 0.4, 0.35, 0.90, 0.60, checkpoints=True, spot=True),
    Work("bert-finetune", 10, "ml.g5.12xlarge", 1.6, 0.2, 0.15, 0.30, 0.25, checkpoints=True, spot=True),  # dearer
    Work("bert-finetune", 8, "ml.g4dn.xlarge", 4.4, 0.5, 0.60, 0.95, 0.80, checkpoints=True, spot=True),
    Work(
        "resnet-train",
        30,
        "ml.g5.12xlarge",
        6.0,
        0.5,
        0.40,
        0.85,
        0.70,
        checkpoints=True,
        tags={"rightsizer:owner": "vision"},
    ),  # never on Spot
    Work("llm-sft", 16, "ml.p4d.24xlarge", 9.0, 0.2, 0.30, 0.75, 0.85, spot=True, checkpoints=True, interruptions=2),
    Work("rank-nightly", 30, "ml.m5.4xlarge", 1.5, 0.10, 0.12, tags={"owner": "search"}),  # a host that is too large
    Work(
        "segment-study",
        24,
        "ml.g5.4xlarge",
        0.4,
        0.3,
        0.2,
        0.55,
        0.4,
        retained_s=1800,
        failed=4,
        tags={"team": "imaging"},
    ),  # idle warm pools
    Work("speech-encoder", 16, "ml.g5.8xlarge", 3.0, 0.3, 0.25, 0.12, 0.18, failed=1),  # a GPU that is too large
)
"""200 runs in all."""


def seed_training(box: "Sandbox", jobs: "Jobs", seed: int = 7) -> int:
    """Put the finished jobs and their metrics into the account; returns their number."""
    dice, number = random.Random(seed), 0
    for work in WORK:
        for run in range(work.runs):
            _train(box, jobs, work, run, dice)
            number += 1
    return number


@dataclass(frozen=True, slots=True)
class Processing:
    """Runs of one processing script."""

    name: str
    runs: int
    instance_type: str
    hours: float
    cpu: float
    memory: float
    gpu: float = 0.0
    tags: Mapping[str, str] = field(default_factory=dict)


PROCESSING = (
    Processing(
        "features-daily", 28, "ml.m5.12xlarge", 0.5, 0.08, 0.10, tags={"team": "growth"}
    ),  # a host that is too large
    Processing("embed-weekly", 4, "ml.g5.4xlarge", 2.0, 0.5, 0.20, 0.0),  # a GPU that does nothing
)


def seed_processing(box: "Sandbox", jobs: "Jobs", seed: int = 7) -> int:
    """Put the finished processing jobs and their metrics into the account; returns their number."""
    dice = random.Random(seed)
    for work in PROCESSING:
        for run in range(work.runs):
            begun = box.clock.now - timedelta(hours=DAYS * 24 * (1 - (run + 1) / (work.runs + 1)) + 1.2 * work.hours)
            name = f"{work.name}-{begun:%Y-%m-%d-%H-%M-%S}-{run:03d}"
            hours = work.hours * dice.uniform(0.92, 1.08)
            cluster = {"InstanceCount": 1, "InstanceType": work.instance_type, "VolumeSizeInGB": 30}
            ended = begun + timedelta(hours=hours)
            resources = {"ClusterConfig": cluster}
            jobs.process(name, begun, ended, tags=dict(work.tags), ProcessingResources=resources)
            used = Work(work.name, 1, work.instance_type, work.hours, work.cpu, work.memory, work.gpu)
            _measure(box, used, name, begun, hours, dice, PROCESSING_NAMESPACE)
    return sum(work.runs for work in PROCESSING)


def _train(box: "Sandbox", jobs: "Jobs", work: Work, run: int, dice: random.Random) -> None:
    """One run: it begins at some hour of the month, takes about as long as the others, and ends."""
    ago = DAYS * 24 * (1 - (run + 1) / (work.runs + 1)) + 1.2 * work.hours
    fails = run < work.failed
    hours = work.hours * dice.uniform(0.92, 1.08) * (0.3 if fails else 1.0)
    begun = box.clock.now - timedelta(hours=ago)
    ended = begun + timedelta(hours=hours * (1.15 if work.interruptions else 1.0))
    name = f"{work.name}-{begun:%Y-%m-%d-%H-%M-%S}-{run:03d}"
    trained = int(hours * 3600)
    status = "Failed" if fails else "Completed"
    resources = {"InstanceType": work.instance_type, "InstanceCount": work.count, "VolumeSizeInGB": 100}
    stopping = {"MaxRuntimeInSeconds": 86_400, **({"MaxWaitTimeInSeconds": 172_800} if work.spot else {})}
    more: dict[str, Any] = {}
    if work.retained_s:
        resources["KeepAlivePeriodInSeconds"] = 1800
        more["WarmPoolStatus"] = {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": work.retained_s}
    if fails:
        more["FailureReason"] = "AlgorithmError: ExecuteUserScriptError: RuntimeError"
    described = jobs.train(
        name,
        hours_ago=ago,
        tags=dict(work.tags),
        TrainingJobStatus=status,
        SecondaryStatus=status,
        ResourceConfig=resources,
        StoppingCondition=stopping,
        EnableManagedSpotTraining=work.spot,
        SecondaryStatusTransitions=_transitions(begun, ended, work.interruptions),
        TrainingStartTime=begun,
        TrainingEndTime=ended,
        TrainingTimeInSeconds=trained,
        BillableTimeInSeconds=int(trained * (dice.uniform(0.33, 0.45) if work.spot else 1.0)),
        **more,
        **work.over,
    )
    if not work.checkpoints:
        described.pop("CheckpointConfig")
    _measure(box, work, name, begun, hours, dice)


def _transitions(begun: Any, ended: Any, interruptions: int) -> list[dict[str, Any]]:
    """Training, with interruptions at equal distances."""
    part = (ended - begun) / (interruptions + 1)
    rows: list[dict[str, Any]] = []
    for number in range(interruptions + 1):
        start = begun + number * part
        rows.append({"Status": "Training", "StartTime": start, "EndTime": start + 0.9 * part})
        if number < interruptions:
            rows.append({"Status": "Interrupted", "StartTime": start + 0.9 * part, "EndTime": start + part})
    return rows


def _measure(
    box: "Sandbox", work: Work, name: str, begun: Any, hours: float, dice: random.Random, namespace: str = NAMESPACE
) -> None:
    """Datapoints of each ten minutes, as CloudWatch has them for a host."""
    kind = hardware().find(work.instance_type)
    assert kind is not None, work.instance_type
    levels = {"CPUUtilization": work.cpu * 100 * kind.vcpu, "MemoryUtilization": work.memory * 100}
    if kind.accelerator_count:
        levels["GPUUtilization"] = work.gpu * 100 * kind.accelerator_count
        levels["GPUMemoryUtilization"] = work.gpu_memory * 100 * kind.accelerator_count
    host = {"Host": f"{name}/algo-1"}
    for minute in range(0, max(10, int(hours * 60)), 10):
        at = (begun + timedelta(minutes=minute)).replace(second=0, microsecond=0)
        for metric, level in levels.items():
            spread = 0.0 if level == 0 else dice.uniform(0.96, 1.04)
            box.world.metrics.add(namespace, metric, host, at, Sample.even(level * spread, 10))
