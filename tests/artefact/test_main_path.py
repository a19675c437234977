"""The built functions do the whole job, over HTTP for every service, with the pinned and the oldest botocore."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rightsizer.aws.session import OLDEST_BOTOCORE, botocore_warning
from rightsizer.domain.proposal import ProposalState
from tests.artefact.conftest import ROOT
from tests.artefact.course import (
    ALARMED,
    ASKED,
    GROUP,
    PROVEN,
    Course,
    Outcome,
    course,
    expected,
    operations,
    play,
    table_of,
)
from tests.artefact.further import play_further
from tests.doors.scene import APPROVER
from tests.template.stack import BY_DEFAULT as DOORS

pytestmark = [pytest.mark.artefact, pytest.mark.slow]
PINNED = pytest.mark.parametrize("played", ["runtime_python"], indirect=True)
EITHER = pytest.mark.parametrize(
    "played", ["runtime_python", pytest.param("oldest_python", marks=pytest.mark.grid)], indirect=True
)
"""With the oldest botocore the path is played by `make artefact` and `make faults` alone."""
NORMAL: dict[tuple[str, str], str] = {
    ("s3:GetObject", "NoSuchKey"): "evaluate: no usage is stored yet",
    ("dynamodb:PutItem", "ConditionalCheckFailedException"): "evaluate, interruption: it was noted before",
    ("sagemaker:DescribeEndpointConfig", "ValidationException"): "apply: its configuration is not created yet",
}
"""Action and error of the answers that are no failures, with the door and the reason. Each is seen in the run."""
NOT_SEEN: dict[tuple[str, str], str] = {
    ("sweep", "cloudwatch:DescribeAlarms"): "asked where the alarm on idle endpoints has no contributor; it had some",
    ("report", "sagemaker:ListTags"): "asked where tags cannot be read a hundred at a time; they could",
    ("evaluate", "sagemaker:Search"): "asked of five endpoints or models and more at once; there were fewer",
    ("sweep", "dynamodb:BatchGetItem"): "asked where a proposal expires or a message was lost; none did",
    ("report", "ce:GetCostAndUsage"): "asked in a stack with a bill; tests/doors/test_report.py has one",
    (
        "sweep",
        "events:PutEvents",
    ): "asked where EventBridge refused a report's event; tests/doors/test_events_out.py has one",
    (
        "report",
        "dynamodb:PutItem",
    ): "asked where EventBridge refused a report's event; tests/doors/test_events_out.py has one",
    ("report", "tag:GetResources"): "asked where an endpoint is quiet at night; none was",
    **{
        (door, "ssm:GetParameter"): "asked in a stack with a policy document; tests/doors/test_policy.py has one"
        for door in DOORS
    },
    **{
        ("report", action): "asked of an account that has such a thing; tests/doors/test_report.py has one"
        for action in (
            "sagemaker:DescribeInferenceComponent",
            "sagemaker:DescribeProcessingJob",
            "sagemaker:DescribeTrainingJob",
            "savingsplans:DescribeSavingsPlans",
            "savingsplans:DescribeSavingsPlansOfferingRates",
        )
    },
}
"""Allowed to a door, named in its adapters and not made by it in this run, with the reason. An entry that is seen
fails the test, as does an operation that is neither seen nor here."""


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, build: Path) -> Iterator[tuple[Course, Outcome]]:
    """The course after its main path, and what that left; with the pinned botocore the rest was played too."""
    with course(build, request.getfixturevalue(request.param)) as on:
        outcome = play(on)
        if request.param == "runtime_python":
            play_further(on)
        yield on, outcome


@pytest.fixture
def on(played: tuple[Course, Outcome]) -> Course:
    return played[0]


@pytest.fixture
def outcome(played: tuple[Course, Outcome]) -> Outcome:
    return played[1]


@EITHER
def test_every_door_ran_and_none_failed_or_gave_anything_up(on: Course) -> None:
    assert {run.door for run in on.at.stack.invocations} == set(DOORS)
    assert [f"{run.door} at {run.at:%a %H:%M}: {run.error}" for run in on.at.stack.failures] == []
    assert on.at.stack.dead_letters() == []
    assert on.at.stack.peek("EvaluationQueue") == []
    assert {(call.action, call.error) for call in on.at.box.calls if call.error is not None} == NORMAL.keys()
    assert [run.answer for run in on.at.stack.invocations if (run.answer or {}).get("batchItemFailures")] == []


@EITHER
def test_the_sweep_fills_the_queue_and_evaluate_stores_usage_and_recommendations(on: Course, outcome: Outcome) -> None:
    assert len(on.made("sweep", "sqs:SendMessage")) >= 1
    assert [name for name in outcome.files if name.startswith("digests/")] != []
    assert {PROVEN, ALARMED, ASKED} <= set(on.at.recommendations())


@EITHER
def test_each_proposal_has_a_details_page_a_message_in_slack_and_a_notice(on: Course, outcome: Outcome) -> None:
    for name, proposal in outcome.proposals.items():
        assert name.encode() in outcome.files[f"pages/{proposal.id}.html"]
        assert any(name in message for message in outcome.messages)
        assert any(name in str(call.params["Message"]) for call in on.made("propose", "sns:Publish"))
    assert len(on.made("propose", "events:PutEvents")) >= 3


@EITHER
def test_a_signed_click_is_recorded_and_its_change_proven(outcome: Outcome) -> None:
    asked = outcome.proposals[ASKED]
    assert asked.state is ProposalState.PROVEN
    assert asked.decision is not None
    assert asked.decision.state is ProposalState.APPROVED
    assert APPROVER in asked.decision.by


@EITHER
def test_an_opted_in_endpoint_is_changed_and_proven_and_another_brought_back_by_its_alarm(outcome: Outcome) -> None:
    assert outcome.proposals[PROVEN].state is ProposalState.PROVEN
    assert outcome.types[PROVEN] != outcome.before[PROVEN]
    assert outcome.types[ASKED] != outcome.before[ASKED]
    assert outcome.proposals[ALARMED].state is ProposalState.ROLLED_BACK
    assert outcome.types[ALARMED] == outcome.before[ALARMED]


@EITHER
def test_a_spot_warning_asks_for_a_replacement_records_it_and_tells_the_topic(on: Course, outcome: Outcome) -> None:
    assert outcome.detached == [GROUP]
    assert outcome.serving == 4
    assert any(GROUP in str(call.params["Subject"]) for call in on.made("interruption", "sns:Publish"))


@EITHER
def test_the_weekly_report_is_a_page_a_table_and_data_and_is_told_in_slack_and_by_mail(
    on: Course, outcome: Outcome
) -> None:
    (page,), (rows,), (data,) = (
        [body for name, body in outcome.files.items() if name.startswith("reports/") and name.endswith(suffix)]
        for suffix in (".html", ".csv", ".json")
    )
    for name in (PROVEN, ALARMED, ASKED):
        assert name.encode() in page
        assert name.encode() in rows
    assert {one["ref"]["name"] for one in json.loads(data)["recommendations"]} >= {PROVEN, ALARMED, ASKED}
    assert len(on.made("report", "sns:Publish")) == 1
    assert outcome.told_by_report > 0


@EITHER
def test_the_log_has_no_word_against_this_botocore(on: Course) -> None:
    assert OLDEST_BOTOCORE not in on.functions.log()


def test_the_oldest_supported_botocore_is_the_one_that_is_tested() -> None:
    assert f"botocore=={OLDEST_BOTOCORE}" in (ROOT / "requirements" / "lambda-oldest.in").read_text()
    assert botocore_warning(OLDEST_BOTOCORE) == ""


@PINNED
def test_every_operation_that_a_role_allows_and_the_doors_adapters_name_is_made(on: Course) -> None:
    seen, wanted = operations(on), expected()
    sys.stdout.write(f"{table_of(seen)}\n")
    missing = {(door, action) for door in DOORS for action in wanted[door] - seen[door]}
    assert missing - NOT_SEEN.keys() == set(), table_of(seen)
    assert NOT_SEEN.keys() - missing == set(), "seen, or not expected any more: take it out of the table"
