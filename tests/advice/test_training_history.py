"""Advice from finished training jobs: the frontier, and each finding with its bound."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rightsizer.advice.answer import Action
from rightsizer.advice.market import snapshot
from rightsizer.advice.rules import Rule
from rightsizer.advice.training_history import WorkAdvice, advise_runs, training_finding
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.job import TrainingJob, TrainingRun

NOW = datetime(2026, 11, 20, tzinfo=UTC)
MARKET = snapshot("us-east-1")


def job(number: int = 0, kind: str = "ml.g5.2xlarge", hours: float = 2.0, **over: Any) -> TrainingJob:
    fields: dict[str, Any] = {
        "name": f"bert-2026-11-10-09-00-00-{number:03d}",
        "arn": "arn",
        "mode": Mode.REPORT,
        "owner": "",
        "status": "Completed",
        "spot": True,
        "instance_type": kind,
        "instance_count": 1,
        "created_at": NOW - timedelta(days=10) + timedelta(hours=number),
        "max_runtime_s": 86_400.0,
        "max_wait_s": None,
        "transitions": (),
        "trained_s": hours * 3600,
        "billable_s": hours * 3600,
        "checkpoint_uri": "s3://out/ckpt/",
    }
    return TrainingJob(**{**fields, **over})


def run(
    made: TrainingJob, cpu: float = 200, memory: float = 30, gpu: float = 90, gpu_memory: float = 60
) -> TrainingRun:
    return TrainingRun(made, cpu, memory, gpu, gpu_memory)


def advised(*runs: TrainingRun) -> WorkAdvice:
    (made,) = advise_runs(runs, MARKET)
    return made


def rules_of(made: WorkAdvice) -> set[str]:
    return {str(each.reason.source) for each in made.findings}


def test_runs_of_one_work_are_found_by_name_and_the_frontier_by_hours_and_price() -> None:
    quick, slow, dear = job(0, "ml.g5.2xlarge", 2.0), job(1, "ml.g4dn.xlarge", 5.0), job(2, "ml.g5.12xlarge", 1.9)
    worse = job(3, "ml.g5.4xlarge", 2.5)
    made = advised(run(quick), run(slow), run(dear), run(worse))
    assert (made.name, made.runs) == ("bert", 4)
    marks = {each.instance_type: each.is_on_frontier for each in made.results}
    assert marks == {"ml.g5.2xlarge": True, "ml.g4dn.xlarge": False, "ml.g5.12xlarge": True, "ml.g5.4xlarge": False}
    usd = {each.instance_type: each.usd for each in made.results}
    assert usd["ml.g5.2xlarge"] == pytest.approx(2.0 * float(MARKET.prices["ml.g5.2xlarge"].usd_per_hour))


def test_a_busy_gpu_on_spot_has_nothing_to_change() -> None:
    assert advised(run(job())).findings == ()


def test_a_gpu_that_does_nothing_becomes_a_cpu_type_that_holds_what_was_used() -> None:
    made = advised(run(job(), cpu=300, memory=50, gpu=0.0, gpu_memory=0.0))
    (found,) = made.findings
    assert (found.action, found.reason.source) == (Action.PROPOSE, Rule.CLASSICAL_ON_CPU)
    kind = MARKET.types.find(found.instance_type)
    assert kind is not None
    assert kind.accelerator is None
    assert kind.vcpu >= 1.15 * 3
    assert kind.memory_gib >= 1.15 * 0.5 * 32
    assert made.saving_usd == pytest.approx(found.usd_per_run)


def test_a_lightly_used_gpu_is_tested_on_a_cheaper_one_that_holds_its_memory() -> None:
    (found,) = advised(run(job(kind="ml.g5.8xlarge"), gpu=12, gpu_memory=20)).findings
    assert (found.action, found.instance_type) == (Action.TEST, "ml.g4dn.xlarge")
    held = advised(run(job(kind="ml.g5.8xlarge"), gpu=12, gpu_memory=90)).findings
    assert [each.instance_type for each in held] != ["ml.g4dn.xlarge"]


def test_use_is_counted_for_each_gpu_of_a_host() -> None:
    busy = advised(run(job(kind="ml.g5.12xlarge"), gpu=4 * 85.0, gpu_memory=4 * 60.0))
    assert busy.findings == ()
    idle = advised(run(job(kind="ml.g5.12xlarge"), gpu=85.0, gpu_memory=4 * 20.0))
    assert Rule.LOW_USE_IS_A_HINT in rules_of(idle)


def test_a_host_that_feeds_too_slowly_is_said_and_no_smaller_gpu_is_named() -> None:
    made = advised(run(job(), cpu=8 * 95.0, gpu=35))
    assert rules_of(made) == {Rule.PREPROCESSING_ON_CPU}


@pytest.mark.parametrize(
    ("over", "action", "saves"),
    [
        ({"spot": False}, Action.PROPOSE, True),
        ({"spot": False, "checkpoint_uri": "", "trained_s": 1800.0, "billable_s": 1800.0}, Action.PROPOSE, True),
        ({"spot": False, "checkpoint_uri": ""}, Action.TEST, False),
    ],
)
def test_spot_is_proposed_where_a_run_goes_on_or_starts_again_cheaply(
    over: dict[str, Any], action: Action, saves: bool
) -> None:
    (found,) = advised(run(job(**over))).findings
    assert (found.action, found.usd_per_run > 0) == (action, saves)
    assert Rule.SPOT_NEEDS_CHECKPOINTS in str(found.reason.source)


@pytest.mark.parametrize(("reused", "found"), [(0, True), (1, True), (3, False)])
def test_warm_pools_that_wait_for_nobody_are_counted(reused: int, found: bool) -> None:
    def pool(number: int) -> dict[str, Any]:
        taken = {"ReusedByJob": "next"} if number < reused else {}
        return {"WarmPoolStatus": {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 900, **taken}}

    runs = [run(replace(job(number), raw=pool(number))) for number in range(4)]
    assert (Rule.WARM_POOL in rules_of(advised(*runs))) is found


def test_only_the_newest_type_and_completed_runs_are_judged() -> None:
    old = run(job(0, "ml.g5.12xlarge", spot=False), gpu=10, gpu_memory=10)
    failed = run(job(2, status="Failed", spot=False))
    made = advised(old, run(job(1)), failed)
    assert (made.findings, made.failed, made.runs) == ((), 1, 3)


@pytest.mark.parametrize(("runs", "action"), [(2, Action.TEST), (3, Action.PROPOSE)])
def test_a_cheaper_type_that_the_work_ran_on_is_named_with_what_its_runs_took(runs: int, action: Action) -> None:
    cheap = [run(job(number, "ml.g5.2xlarge", 2.0)) for number in range(runs)]
    now = [run(job(10 + number, "ml.g5.12xlarge", 1.6), gpu=340, gpu_memory=100) for number in range(2)]
    (found,) = advised(*cheap, *now).findings
    assert (found.action, found.instance_type, found.reason.source) == (action, "ml.g5.2xlarge", Rule.MEASURED_RUNS)
    hourly = {kind: float(MARKET.prices[kind].usd_per_hour) for kind in ("ml.g5.2xlarge", "ml.g5.12xlarge")}
    assert found.usd_per_run == pytest.approx(1.6 * hourly["ml.g5.12xlarge"] - 2.0 * hourly["ml.g5.2xlarge"])
    assert f"{runs} runs of it on 1 × ml.g5.2xlarge took 2.0 h and cost" in found.reason.text


def test_a_measured_type_that_is_dearer_or_much_slower_is_not_guessed_at_again() -> None:
    now = run(job(10, "ml.g5.8xlarge", 3.0), gpu=12, gpu_memory=20)
    (guessed,) = advised(now).findings
    assert guessed.instance_type == "ml.g4dn.xlarge"
    slow = advised(run(job(0, "ml.g4dn.xlarge", 6.1)), now)
    assert slow.findings == ()
    dear = advised(run(job(0, "ml.g4dn.xlarge", 5.9, instance_count=4)), now)
    assert dear.findings == ()


def test_a_type_on_which_memory_ran_out_is_not_gone_back_to() -> None:
    small = [run(job(number, "ml.g5.2xlarge", 2.0)) for number in range(3)]
    gone = {"status": "Failed", "raw": {"FailureReason": "AlgorithmError: CUDA out of memory"}}
    failed = run(job(5, "ml.g5.2xlarge", 0.3, **gone))
    now = run(job(10, "ml.g5.12xlarge", 1.6), gpu=340, gpu_memory=300)
    assert Rule.MEASURED_RUNS in rules_of(advised(*small, now))
    assert Rule.MEASURED_RUNS not in rules_of(advised(*small, failed, now))


def test_fewer_instances_of_the_same_type_are_named_with_their_number() -> None:
    one = [run(job(number, "ml.g5.2xlarge", 3.0)) for number in range(3)]
    two = run(job(10, "ml.g5.2xlarge", 2.0, instance_count=2, trained_s=7200.0, billable_s=7200.0))
    (found,) = advised(*one, two).findings
    assert found.next_step == "use 1 × ml.g5.2xlarge in place of 2 × ml.g5.2xlarge"


def test_a_spot_discount_is_no_reason_to_change_the_type() -> None:
    spot = [run(job(number, "ml.g5.4xlarge", 2.0, billable_s=2_000.0)) for number in range(3)]
    assert Rule.MEASURED_RUNS not in rules_of(advised(*spot, run(job(9, "ml.g5.2xlarge", 2.0))))


def test_runs_without_metrics_or_price_lead_to_no_type() -> None:
    assert advised(TrainingRun(job())).findings == ()
    made = advised(run(job(kind="ml.p99.xlarge")))
    assert (made.unpriced, made.results, made.findings) == (("ml.p99.xlarge",), (), ())


def test_the_account_is_told_the_best_change_of_each_work_by_the_month() -> None:
    idle = [run(job(number, hours=10.0), gpu=0.1) for number in range(3)]
    made = advised(*idle)
    found = training_finding([made], 3, 30)
    assert found is not None
    best = max(each.usd_per_run for each in made.findings)
    assert float(found.usd_per_month or 0) == pytest.approx(best * 3 * 730 / 720, abs=0.01)
    assert found.items[0].next_step == "use ml.m5.xlarge in place of ml.g5.2xlarge"
    assert found.items[0].detail.endswith("; 3 runs in 30 days")
    assert found.what == "the next runs of 1 training work can cost less"


def test_the_account_is_told_nothing_where_little_or_only_a_warm_pool_is_to_be_saved() -> None:
    pool = {"WarmPoolStatus": {"ResourceRetainedBillableTimeInSeconds": 36_000}}
    kept = advised(*(run(job(number, raw=pool)) for number in range(4)))
    assert {str(each.reason.source) for each in kept.findings} == {Rule.WARM_POOL}
    assert training_finding([kept], 4, 30) is None
    small = advised(run(job(0, hours=0.1), gpu=0.1))
    assert small.saving_usd > 0
    assert training_finding([small], 1, 30) is None


def test_runs_of_one_experiment_are_one_work_whatever_their_names() -> None:
    of = {"ExperimentConfig": {"ExperimentName": "bert-sizes", "TrialName": "a"}}
    small = run(job(0, "ml.g4dn.xlarge", 5.0, name="try-small", raw=of))
    large = run(job(1, name="bert-large-2026-11-10-09-00-00-001", raw=of))
    made = advised(small, large)
    assert (made.name, {each.instance_type for each in made.results}) == (
        "bert-sizes",
        {"ml.g4dn.xlarge", "ml.g5.2xlarge"},
    )


@pytest.mark.parametrize(
    ("kind", "said", "larger"),
    [
        ("ml.g5.2xlarge", "AlgorithmError: RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", "ml.g6e.xlarge"),
        ("ml.m5.4xlarge", "AlgorithmError: , exit code: 137", "ml.r5.4xlarge"),
    ],
)
def test_a_run_that_lacked_memory_is_tried_on_a_type_with_more(kind: str, said: str, larger: str) -> None:
    failed = run(job(1, kind, status="Failed", trained_s=60.0, billable_s=60.0, raw={"FailureReason": said}))
    made = advised(run(job(0, kind)), failed)
    (found,) = [each for each in made.findings if each.reason.source == Rule.TRAINING_MEMORY]
    assert (found.action, found.instance_type) == (Action.TEST, larger)
    assert "1 of 2 runs" in found.reason.text


def test_a_run_that_failed_otherwise_asks_for_no_memory() -> None:
    failed = run(job(status="Failed", raw={"FailureReason": "AlgorithmError: ExecuteUserScriptError: KeyError"}))
    assert advised(failed).findings == ()
