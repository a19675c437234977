"""What a journal says of a write: as it is written now, and as earlier releases wrote it."""

from datetime import UTC, datetime

import pytest

from rightsizer.domain.change import Entry, FailureClass, StepResult, failure_detail

AT = datetime(2026, 11, 1, tzinfo=UTC)


def failed(detail: str) -> Entry:
    return Entry(AT, "UpdateEndpoint chat", "failed", detail)


@pytest.mark.parametrize(
    ("detail", "result", "failure", "answer"),
    [
        ("refused:quota:limit of 2: is 3", StepResult.REFUSED, FailureClass.QUOTA, "limit of 2: is 3"),
        ("refused:unknown:no: really", StepResult.REFUSED, FailureClass.UNKNOWN, "no: really"),
        ("again:permission:not authorized", StepResult.RETRY, FailureClass.PERMISSION, "not authorized"),
        ("again:unknown:slow down", StepResult.RETRY, FailureClass.UNKNOWN, "slow down"),
        ("again:unanswered:read timeout", StepResult.UNANSWERED, FailureClass.UNKNOWN, "read timeout"),
        ("again:unanswered:permission: no", StepResult.UNANSWERED, FailureClass.UNKNOWN, "permission: no"),
        ("refused:UpdateAutoScalingGroup: no", StepResult.REFUSED, FailureClass.UNKNOWN, "UpdateAutoScalingGroup: no"),
        ("again:the group is busy", StepResult.RETRY, FailureClass.UNKNOWN, "the group is busy"),
        ("refused:unknown:", StepResult.REFUSED, FailureClass.UNKNOWN, "refused:unknown:"),
        ("the larger way back was refused", None, FailureClass.NONE, "the larger way back was refused"),
        ("", None, FailureClass.NONE, ""),
    ],
)
def test_the_details_of_each_release_are_read(
    detail: str, result: StepResult | None, failure: FailureClass, answer: str
) -> None:
    entry = failed(detail)
    assert (entry.result, entry.failure, entry.answer) == (result, failure, answer)


@pytest.mark.parametrize("result", [StepResult.REFUSED, StepResult.RETRY])
@pytest.mark.parametrize("failure", [one for one in FailureClass if one is not FailureClass.NONE])
def test_what_is_written_is_read_as_it_was_meant(result: StepResult, failure: FailureClass) -> None:
    entry = failed(failure_detail(result, failure, "a: b"))
    assert (entry.result, entry.failure, entry.answer) == (result, failure, "a: b")


def test_the_stored_words_are_those_of_the_first_release() -> None:
    assert failure_detail(StepResult.REFUSED, FailureClass.QUOTA, "x") == "refused:quota:x"
    assert failure_detail(StepResult.RETRY, FailureClass.NONE, "x") == "again:unknown:x"
    assert failure_detail(StepResult.UNANSWERED, FailureClass.UNKNOWN, "x") == "again:unanswered:x"
    assert len(failure_detail(StepResult.RETRY, FailureClass.UNKNOWN, "x" * 600)) == 500


def test_only_a_write_that_failed_with_an_answer_was_rejected() -> None:
    assert [failed(said).was_rejected for said in ("refused:quota:x", "again:unknown:x", "again:unanswered:x")] == [
        True,
        True,
        False,
    ]
    assert not Entry(AT, "UpdateEndpoint chat", "intended", "sagemaker:UpdateEndpoint").was_rejected


def test_an_intent_and_a_decision_have_no_result_whatever_their_words_are() -> None:
    assert Entry(AT, "steer", "noted", "refused:quota:x").result is None
    assert Entry(AT, "UpdateEndpoint chat", "intended").result is None
    assert Entry(AT, "UpdateEndpoint chat", "done").result is StepResult.DONE
    assert Entry(AT, "steer", "noted", "refused:quota:x").answer == "refused:quota:x"
