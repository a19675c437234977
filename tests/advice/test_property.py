"""1,000 generated descriptions: nothing crashes, and no option is advised that cannot hold the model."""

import dataclasses
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rightsizer.advice.advise import advise
from rightsizer.advice.answer import Advice, AdvisedOption, HardwareClass, Hosting, Purchase
from rightsizer.advice.asks import WORDS
from rightsizer.advice.capacity import need_of
from rightsizer.advice.market import known_types, snapshot
from rightsizer.advice.memory import Method, Precision
from rightsizer.advice.models import architectures
from rightsizer.advice.plans import plan_of, training_model
from rightsizer.advice.workload import (
    Constraints,
    Data,
    Goal,
    Model,
    ModelKind,
    Objectives,
    Running,
    Shape,
    Task,
    TrackedRun,
    Traffic,
    Workload,
)
from rightsizer.domain.environment import Environment

TYPES = sorted(snapshot("us-east-1").prices)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


MODELS = st.builds(
    Model,
    kind=st.sampled_from(ModelKind),
    name=st.sampled_from(["", "", "no-such-model", *architectures()]),
    parameters=maybe(st.floats(1e3, 2e12)),
    precision=st.sampled_from(Precision),
    framework=st.sampled_from(["", "pytorch", "tensorflow", "xgboost", "jax"]),
    method=st.sampled_from(Method),
    memory_gib=maybe(st.floats(0.001, 3000)),
    tokens_in=st.floats(1, 200_000),
    tokens_out=st.floats(1, 20_000),
    context_tokens=maybe(st.integers(1, 1_000_000)),
    cpu_only=st.booleans(),
    neuron=maybe(st.booleans()),
)
TRAFFIC = st.builds(
    Traffic,
    requests_per_second=maybe(st.floats(0, 1e5)),
    peak_requests_per_second=maybe(st.floats(0, 1e5)),
    requests_per_month=maybe(st.floats(0, 1e11)),
    shape=st.sampled_from(Shape),
    idle_share=maybe(st.floats(0, 1)),
    hours_per_day=maybe(st.floats(0, 24)),
    days_per_month=maybe(st.floats(0, 31)),
    runs_per_month=maybe(st.floats(0, 1000)),
)
OBJECTIVES = st.builds(
    Objectives,
    goal=st.sampled_from(Goal),
    p95_ms=maybe(st.floats(0.1, 1e6)),
    first_token_ms=maybe(st.floats(0.1, 1e5)),
    tokens_per_second=maybe(st.floats(0.1, 1e4)),
    deadline_hours=maybe(st.floats(0.01, 1e4)),
    budget_usd=maybe(st.floats(0, 1e7)),
    required_quality=maybe(st.floats(0, 1)),
)
DATA = st.builds(
    Data,
    size_gib=maybe(st.floats(0, 1e6)),
    payload_mb=maybe(st.floats(0, 1e4)),
    seconds_per_request=maybe(st.floats(1e-5, 1e5)),
    tokens=maybe(st.floats(1, 1e14)),
    known_hours=maybe(st.floats(0, 1e4)),
)
CONSTRAINTS = st.builds(
    Constraints,
    region=st.sampled_from(["us-east-1", "eu-west-1", "ap-southeast-3", "us-gov-east-1"]),
    environment=st.sampled_from(Environment),
    no_gpu=st.booleans(),
    compiled_models=maybe(st.booleans()),
    checkpoints=maybe(st.booleans()),
    retriable=maybe(st.booleans()),
    several_nodes=st.booleans(),
    edge=st.booleans(),
    right_sized=st.booleans(),
    new_launch=st.booleans(),
    in_one_step=st.booleans(),
    shares_fleet_with_application=st.booleans(),
    serverless_memory_gb=maybe(st.floats(1, 6)),
)
RUNNING = st.builds(
    Running,
    instance_type=st.sampled_from(
        ["ml.g5.xlarge", "ml.p3.2xlarge", "ml.m5.xlarge", "ml.inf2.xlarge", "ml.g6e.12xlarge"]
    ),
    count=st.integers(1, 50),
    p95_ms=maybe(st.floats(1, 1e5)),
    gpu_utilisation_percent=maybe(st.floats(0, 800)),
    gpu_memory_max_gib=maybe(st.floats(0, 200)),
    gpu_memory_days=st.integers(1, 60),
    metrics_missing=st.booleans(),
    alarm=st.sampled_from(["", "GPUUtilization"]),
)
RUNS = st.builds(TrackedRun, name=st.text(max_size=5), quality=st.floats(0, 1), cost_usd=st.floats(0, 1000))
WORKLOADS = st.builds(
    Workload,
    task=st.sampled_from(Task),
    model=MODELS,
    traffic=TRAFFIC,
    objectives=OBJECTIVES,
    data=DATA,
    constraints=CONSTRAINTS,
    running=st.none(),
    runs=st.lists(RUNS, max_size=3).map(tuple),
    ask=st.lists(st.sampled_from([*WORDS, "ml.t3.medium", "nonsense", *TYPES]), max_size=3).map(tuple),
    compare=st.lists(st.sampled_from(TYPES), max_size=3).map(tuple),
)


def holds(option: AdvisedOption, workload: Workload) -> bool:
    """Whether the option's own hardware holds the model, computed anew."""
    found = known_types().find(option.instance_type) if option.instance_type else None
    need = need_of(workload.model)
    if found is None:
        return need.host_gib <= (6.0 if option.hosting is Hosting.SERVERLESS else 10.0)
    if found.accelerator is None:
        if option.hosting is Hosting.JOB:
            return option.memory is None or option.memory.needed_gib <= found.memory_gib
        return need.host_gib <= found.memory_gib
    if workload.task.is_training:
        offer = snapshot(workload.constraints.region).find(option.instance_type)
        assert offer is not None
        plan = plan_of(offer, training_model(workload.model), option.count)
        return plan is not None and plan.memory.total_gib <= found.accelerator.usable_gib
    return need.gib <= found.accelerator.usable_gib * found.accelerator_count


def check(advice: Advice, workload: Workload) -> None:
    for option in advice.options:
        assert holds(option, workload), option
        if workload.task.is_inference:
            assert option.purchase is not Purchase.SPOT
        if option.hosting in (Hosting.SERVERLESS, Hosting.LAMBDA):
            assert option.hardware is None
        if workload.constraints.no_gpu or workload.model.cpu_only:
            assert option.hardware is None or option.hardware.is_cpu
        if workload.model.neuron is False or workload.objectives.goal is Goal.FLEXIBILITY:
            assert option.hardware not in (HardwareClass.TRN, HardwareClass.INF)
        for figure in option.estimates:
            assert figure.interval.low <= figure.interval.middle <= figure.interval.high
            assert figure.interval.reasons
    assert advice.options or advice.contradictions


@pytest.mark.slow
@settings(max_examples=10 * settings().max_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(WORKLOADS)
def test_no_description_crashes_and_every_option_holds_the_model(workload: Workload) -> None:
    check(advise(workload), workload)


@settings(max_examples=200, deadline=None)
@given(WORKLOADS, RUNNING)
def test_an_endpoint_that_runs_is_never_moved_where_its_memory_does_not_fit(workload: Workload, now: Running) -> None:
    here = dataclasses.replace(workload.constraints, region="us-east-1")
    described = dataclasses.replace(workload, task=Task.REAL_TIME, constraints=here, running=now)
    for option in advise(described).options:
        assert option.purchase is not Purchase.SPOT
        if option.memory is not None and option.instance_type != now.instance_type:
            assert option.memory.needed_gib <= option.memory.usable_gib
