"""Each component is judged by its own metrics; what is not known is never idle."""

import pytest

from rightsizer.domain.component import Component, ComponentUsage
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import ComponentFinding, Finding
from rightsizer.recommender.component_finding import judge_component
from tests.recommender.component_kit import component, load, scaled

UNREAD = Reason(Code.READ_FAILED, "CloudWatch did not answer")


def found(one: Component, p95_s: float | None = None) -> ComponentFinding:
    objective = LatencyObjective(p95_s, True, "tag rightsizer:p95-ms") if p95_s is not None else None
    return judge_component(one, "us-east-1", objective, Policy())


@pytest.mark.parametrize(
    ("one", "finding", "code"),
    [
        (component(usage=UNREAD), Finding.NOT_ENOUGH_DATA, Code.READ_FAILED),
        (component(scaling=UNREAD), Finding.NOT_ENOUGH_DATA, Code.READ_FAILED),
        (component(status="Updating"), Finding.NOT_ENOUGH_DATA, Code.NOT_IN_SERVICE),
        (component(usage=load(days=0.5)), Finding.NOT_ENOUGH_DATA, Code.TOO_FEW_DAYS),
        (component(usage=load(valid_share=0.5)), Finding.NOT_ENOUGH_DATA, Code.TOO_MANY_GAPS),
        (component(usage=load(requests=0.0, days=5.0)), Finding.NOT_ENOUGH_DATA, Code.TOO_FEW_DAYS),
        (component(usage=load(requests=0.0)), Finding.IDLE, Code.IDLE),
        (component(usage=load(without_capacity=2.0)), Finding.UNDER_PROVISIONED, Code.UNDER_PROVISIONED),
        (component(scaling=scaled("chat", 1, 4)), Finding.OPTIMIZED, Code.AUTOSCALED),
        (component(usage=load(concurrency=None)), Finding.OPTIMIZED, Code.NO_DATAPOINTS),
        (component(usage=load(gpu=0.8)), Finding.OPTIMIZED, Code.ALREADY_RIGHT),
        (component(usage=load()), Finding.OVER_PROVISIONED, Code.CHEAPER_OPTION),
    ],
)
def test_each_is_judged_on_its_own_evidence(one: Component, finding: Finding, code: Code) -> None:
    said = found(one)
    assert (said.finding, said.reason.code) == (finding, code)


def test_the_declared_objective_of_the_endpoint_holds_for_each() -> None:
    slow = component(usage=load(p95_s=1.2))
    assert found(slow, 1.0).finding is Finding.UNDER_PROVISIONED
    assert found(slow, 2.0).finding is Finding.OVER_PROVISIONED
    assert found(slow).finding is Finding.OVER_PROVISIONED


@pytest.mark.parametrize(
    ("usage", "needed"),
    [
        (load(gpu=0.1, concurrency=0.1), 1),
        (load(gpu=0.2, concurrency=0.4), 2),
        (load(gpu=0.2, concurrency=0.7), 4),
        (load(gpu=0.5, concurrency=0.1), 3),
        (load(gpu=0.05, concurrency=6.0), 4),
    ],
)
def test_copies_carry_requests_at_once_and_the_utilisation_with_room(usage: ComponentUsage, needed: int) -> None:
    assert found(component(copies=4, usage=usage)).needed == needed


def test_no_gpu_metric_of_a_component_with_a_gpu_is_no_idle_gpu() -> None:
    said = found(component(usage=load(gpu=0.0, concurrency=0.1)))
    assert said.needed == 1
    blind = found(component(usage=ComponentUsage(14.0, 1.0, 9000.0, 5.0, 0.1, 0.0, 0.3, None, None, load().cpu, None)))
    assert (blind.finding, blind.reason.code, blind.needed) == (Finding.OPTIMIZED, Code.NO_GPU_METRICS, None)


def test_an_idle_one_keeps_a_copy_and_its_owner_gets_the_command() -> None:
    said = found(component(usage=load(requests=0.0)))
    assert said.needed == 1
    assert "aws sagemaker delete-inference-component --region us-east-1 --inference-component-name chat" in said.advice
    moved = found(component(usage=load(requests=0.0), scaling=scaled("chat", 1, 4)))
    assert moved.needed is None
    assert "--min-capacity 0" in moved.advice


def test_an_adapter_is_judged_by_its_calls_alone() -> None:
    part = {"BaseInferenceComponentName": "chat"}
    used = found(component("tone", 1, specification=part))
    assert (used.finding, used.base, used.needed) == (Finding.OPTIMIZED, "chat", None)
    assert "shares the copies of chat" in used.reason.sentence
    silent = found(component("tone", 1, load(requests=0.0), specification=part))
    assert (silent.finding, silent.advice) == (Finding.IDLE, "")


def test_one_that_may_sleep_has_pauses_and_failing_calls_by_design() -> None:
    asleep = load(valid_share=0.3, without_capacity=4.0)
    sleeper = found(component("chat", 1, asleep, scaled("chat", 0, 2)))
    assert (sleeper.finding, sleeper.reason.code) == (Finding.OPTIMIZED, Code.AUTOSCALED)
    assert found(component("chat", 1, asleep, scaled("chat", 1, 2))).finding is Finding.NOT_ENOUGH_DATA


def test_one_without_a_copy_now_is_told_so() -> None:
    assert found(component("chat", 0)).reason.sentence == "no copy of it runs now"
