"""A person presses "Run the test" in Slack: the test runs, an evaluation judges by it, and the change follows."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from rightsizer.domain.proposal import ProposalState
from sandbox.sagemaker.load import Served
from tests.doors.scene import Scene, scene

ASKED, NEW = "product-ranking", "ml.g4dn.xlarge"
"""One of four GPUs works, by their sum; its owner said nothing about serving requests twice."""


@pytest.fixture
def at() -> Iterator[Scene]:
    with scene(Limits='{"probation_hours": 2}') as found:
        found.add(ASKED)
        found.stack.quiet |= {"Sweep.Hourly", "Sweep.Daily", "Report.Weekly", "Report.Monthly"}
        found.sweep()
        found.drive(ASKED)
        found.pass_time(minutes=10)
        yield found


def type_of(at: Scene) -> str:
    with at.box.gate.unrecorded():
        config = at.box.client("sagemaker").describe_endpoint_config(EndpointConfigName=at.box.config_name(ASKED))
    return str(config["ProductionVariants"][0]["InstanceType"])


def has_shadow(at: Scene) -> bool:
    with at.box.gate.unrecorded():
        return "ShadowProductionVariants" in at.box.client("sagemaker").describe_endpoint(EndpointName=ASKED)


def until_tested(at: Scene) -> None:
    """The busiest hour comes (14:00), the shadow runs beside the fleet, and it is over."""
    at.pass_time(minutes=15)
    at.stack.quiet.add("Apply.Tick")  # what a tick finds until then is the same each time
    at.box.clock.advance_to(at.box.clock.now.replace(hour=13, minute=30))
    at.stack.quiet.discard("Apply.Tick")
    assert not has_shadow(at)
    assert at.box.clock.run_until(lambda: has_shadow(at), timedelta(days=5), timedelta(minutes=10))
    assert type_of(at) != NEW
    over = timedelta(hours=8)
    assert at.box.clock.run_until(lambda: not has_shadow(at) and at.proposals()[0].outcome != "", over)
    at.pass_time(minutes=15)


def test_who_runs_the_test_gets_the_change_after_it_and_the_message_follows_to_the_end(at: Scene) -> None:
    assert list(at.message(ASKED).buttons())[:2] == ["Run the test", "Approve without it"]
    assert at.click(ASKED, "Run the test")["statusCode"] == 200
    until_tested(at)
    assert "the change follows by the same approval" in at.message(ASKED).plain()
    assert type_of(at) != NEW
    at.pass_time(hours=4)
    at.sweep()
    (shown,) = at.proposals()
    assert at.box.clock.run_until(lambda: at.proposals()[0].state is ProposalState.PROVEN, timedelta(hours=30))
    assert type_of(at) == NEW
    assert [f"{run.door}: {run.error}" for run in at.stack.failures] == []
    assert at.refused() == []
    told = at.message(ASKED).plain()
    assert "Changed and proven." in told
    assert f"Before the change it was tested: the mean latency on {NEW}" in told
    assert [one.id for one in at.proposals()] == [shown.id]


def test_a_type_that_proves_too_slow_is_not_changed_to_and_the_message_says_what_was_measured(at: Scene) -> None:
    served = at.works[ASKED].served

    def slow_when_new(moment: object, instance_type: str, count: int) -> Served:
        seen = served(moment, instance_type, count)  # type: ignore[arg-type]
        return seen if instance_type != NEW else Served(seen.requests, latency_ms=40 * seen.latency_ms, gpu=seen.gpu)

    at.box.load(ASKED, slow_when_new)
    at.click(ASKED, "Run the test")
    until_tested(at)
    at.pass_time(hours=4)
    at.sweep()
    at.pass_time(hours=2)
    (shown,) = [one for one in at.proposals() if one.is_test_first]
    assert (shown.state, type_of(at)) == (ProposalState.WITHDRAWN, "ml.g5.12xlarge"), shown.outcome
    assert "Before the change it was tested: the mean latency on ml.g4dn.xlarge was" in shown.outcome


def test_who_approves_without_it_gets_the_change_at_once(at: Scene) -> None:
    at.click(ASKED, "Approve without it")
    assert at.box.clock.run_until(lambda: type_of(at) == NEW, timedelta(hours=2))
    assert not has_shadow(at)


def test_a_question_about_a_test_stays_the_same_from_day_to_day_and_its_answer_counts_on_the_third(at: Scene) -> None:
    (asked,) = at.proposals()
    shown = at.message(ASKED)
    for _ in range(2):
        at.pass_time(days=1)
        at.sweep()
    (later,) = at.proposals()
    assert (later.id, later.state) == (asked.id, ProposalState.PENDING)
    assert [one.ts for one in at.slack.messages if ASKED in one.text and one.blocks] == [shown.ts]
    assert at.click(ASKED, "Run the test")["statusCode"] == 200
    until_tested(at)
    assert [one.id for one in at.proposals()] == [asked.id]
