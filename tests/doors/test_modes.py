"""What may be changed is what the owner's tag and the operator's parameter say, from the sweep to the message."""

import pytest

from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate
from tests.doors.scene import AUTO, BIG, PROPOSE, Scene, scene, states

SERVING = ("sagemaker", "application-autoscaling", "cloudwatch", "autoscaling")


def nothing_was_written(at: Scene) -> bool:
    return at.writes(*SERVING) == [] and at.refused() == []


@pytest.mark.parametrize("tags", [AUTO, PROPOSE])
@pytest.mark.parametrize("may_change", ["nothing", "read-only"])
def test_with_nothing_to_change_it_is_proposed_without_an_approve_button_and_says_how_to_allow_it(
    may_change: str,
    tags: dict[str, str],
) -> None:
    with scene(MayChange=may_change) as at:
        at.add(BIG, tags=tags | {"rightsizer:p95-ms": "250"})
        at.sweep()
        at.pass_time(hours=1)
        (asked,) = at.proposals()
        assert (asked.state, asked.approvable) == (ProposalState.PENDING, False)
        message = at.message(BIG)
        assert set(message.buttons()) == {"Reject", "Snooze 7 days", "Snooze 30 days", "Snooze 90 days", "Details"}
        assert "deploy the stack with MayChange=tagged; this one changes nothing" in message.plain()
        assert "It cannot be approved here:" in message.plain()
        assert nothing_was_written(at)


def test_an_approval_from_before_is_refused_when_the_stack_may_change_nothing_any_more() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.stack.redeploy(MayChange="nothing")
        at.click(BIG, "Approve")
        at.pass_time(minutes=10)
        (asked,) = at.proposals()
        assert asked.state is ProposalState.WITHDRAWN
        assert "MayChange=nothing" in at.message(BIG).plain()
        assert nothing_was_written(at)


@pytest.mark.parametrize(
    ("mode", "code"), [("off", Code.MODE_OFF), ("report", Code.MODE_REPORT)], ids=["off", "report"]
)
@pytest.mark.parametrize("may_change", ["nothing", "tagged", "tagged-and-untagged"])
def test_off_and_report_are_observed_and_never_asked_about(mode: str, code: Code, may_change: str) -> None:
    with scene(MayChange=may_change) as at:
        at.add(BIG, tags={"rightsizer:mode": mode})
        at.sweep()
        at.pass_time(minutes=10)
        found = at.recommendations()[BIG]
        assert (found.gate, found.gate_reason.code) == (Gate.SILENT, code)
        if mode == "report":
            assert found.finding is Finding.OVER_PROVISIONED
            assert found.saving_usd_per_month > 0
        assert at.proposals() == []
        assert at.slack.messages == []
        assert nothing_was_written(at)


@pytest.mark.parametrize("mode", ["off", "report"])
def test_a_change_that_was_approved_is_refused_when_the_owner_says_off_or_report_before_it_starts(mode: str) -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        with at.box.gate.unrecorded():
            arn = at.proposals()[0].ref.arn
            at.box.client("sagemaker").add_tags(ResourceArn=arn, Tags=[{"Key": "rightsizer:mode", "Value": mode}])
        at.click(BIG, "Approve")
        at.pass_time(minutes=10)
        assert states(at.proposals()) == {BIG: ProposalState.WITHDRAWN}
        assert f"the tag rightsizer:mode is {mode}" in at.message(BIG).plain()
        assert nothing_was_written(at)


def test_an_untagged_endpoint_is_asked_about_and_carries_the_command_that_opts_it_in() -> None:
    with scene() as at:
        at.add(BIG, tags={})
        at.sweep()
        (asked,) = at.proposals()
        assert not asked.approvable
        assert "Approve" not in at.message(BIG).buttons()
        assert "Key=rightsizer:mode,Value=propose" in at.message(BIG).plain()
