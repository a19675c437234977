"""An approval that waited is carried out only while the newest judgement is known and still allows it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import time, timedelta
from decimal import Decimal

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.policy import ChangeLimits, ChangeWindow
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding
from rightsizer.errors import PermissionMissingError, ThrottledError
from tests.changes.account import MONDAY, NAME, NEW_TYPE, OLD
from tests.changes.memory import SAVING, World, an_option, autoscaled, world

SATURDAY = ChangeLimits(
    window=ChangeWindow(days=frozenset({5}), start=time(8), end=time(18)), probation=timedelta(hours=2)
)
SUFFERS = {"finding": Finding.UNDER_PROVISIONED, "reason": Reason(Code.UNDER_PROVISIONED, "requests wait")}
WAITS = f"{NAME}: approved, and waits for a new recommendation"
THROTTLED = ThrottledError("updating chat: Rate exceeded")
SCALING = pytest.mark.parametrize("scaling", [None, autoscaled()], ids=["plain", "autoscaled"])


def updates(w: World) -> int:
    return len(w.account.writes(StepKind.UPDATE_ENDPOINT))


def test_traffic_that_grew_while_the_change_waited_for_its_window_withdraws_it() -> None:
    w = world(limits=SATURDAY)
    assert w.start().state is ChangeState.PLANNED
    w.advance(timedelta(days=3))
    w.judged(options=(an_option(target=Target(NEW_TYPE, 2), saving_usd_per_month=SAVING * 2 / 5),))
    change = w.run(24 * 5)
    assert (change.state, w.account.done) == (ChangeState.REFUSED, [])
    assert change.reason is not None
    assert change.reason.code is Code.NEWER_JUDGEMENT
    assert w.shown().state is ProposalState.WITHDRAWN
    assert "needs 2 instance(s)" in w.shown().outcome
    assert any("needs 2 instance(s)" in text for _, text in w.told)


def test_an_instance_more_is_covered_by_the_approval_while_most_of_the_saving_is_left() -> None:
    w = world(limits=SATURDAY)
    w.start()
    w.advance(timedelta(days=3))
    w.judged(options=(an_option(target=Target(NEW_TYPE, 2), saving_usd_per_month=SAVING * 4 / 5),))
    change = w.run(24 * 5)
    assert change.state is ChangeState.PROVEN
    assert [v.count for v in change.plan.after] == [2]
    assert (change.option.target.instance_count, change.saving_usd_per_month) == (2, SAVING * 4 / 5)
    said = next(entry.detail for entry in change.journal if "in place of" in entry.detail)
    assert "needs 2 instance(s) of ml.g5.xlarge in place of 1 instance(s); the approval covers it" in said


def test_an_approval_that_waits_on_covers_no_fleet_that_lost_half_of_what_was_approved_step_by_step() -> None:
    w = world(limits=SATURDAY)
    w.start()
    for count, left in ((2, Decimal("0.7")), (3, Decimal("0.4"))):
        w.advance(timedelta(days=1))
        w.judged(options=(an_option(target=Target(NEW_TYPE, count), saving_usd_per_month=SAVING * left),))
        w.run(1)
    change = w.run(24 * 5)
    assert (change.state, w.account.done) == (ChangeState.REFUSED, [])
    assert "needs 3 instance(s)" in change.outcome


def test_a_newer_judgement_that_needs_no_more_lets_the_change_begin_in_its_window() -> None:
    w = world(limits=SATURDAY)
    w.start()
    w.advance(timedelta(days=3))
    w.judged(1)
    change = w.run(24 * 5)
    assert change.state is ChangeState.PROVEN
    assert change.journal[-1].at >= MONDAY + timedelta(days=4, hours=23), "it waited for Saturday"


def test_a_thaw_does_not_carry_out_what_was_overruled_in_the_freeze() -> None:
    w = world()
    w.freeze()
    w.start()
    w.judged(**SUFFERS)
    w.thaw()
    assert (w.run(2).state, w.account.done) == (ChangeState.REFUSED, [])


@SCALING
def test_a_judgement_that_comes_between_two_writes_stops_the_next_one(scaling: ScalableTarget | None) -> None:
    w = world(scaling=scaling)
    w.start()
    assert w.account.known_alarms, "the roll-back alarms were put"
    w.judged(**SUFFERS)
    assert w.run(5).state is ChangeState.REFUSED
    assert (updates(w), w.account.config_name) == (0, OLD)
    assert w.account.known_alarms == {}


def test_what_brings_room_back_waits_for_no_judgement() -> None:
    w = world(an_option(restores=True))
    w.judged(**SUFFERS)
    w.start()
    assert w.run(12).state is ChangeState.PROVEN


def made_unreadable(w: World) -> None:
    """A newer release wrote the newest judgement, and was rolled back."""
    w.kept.unreadable = True


def restored(w: World) -> None:
    """The rows of now, in a table that is made a day later."""
    w.advance(timedelta(days=1))
    w.kept.made = w.now


LOST = pytest.mark.parametrize("lost", [made_unreadable, restored])
type Lost = Callable[[World], None]


@LOST
def test_an_approval_waits_while_nobody_knows_the_newest_judgement_and_is_told_once(lost: Lost) -> None:
    w = world()
    lost(w)
    w.start()
    assert (w.run(12).state, w.account.done) == (ChangeState.PLANNED, [])
    assert [subject for subject, _ in w.told] == [WAITS]
    w.judged(1)
    assert w.run(12).state is ChangeState.PROVEN


def test_the_wait_after_a_restore_names_both_dates() -> None:
    w = world()
    restored(w)
    w.start()
    ((_, text),) = w.told
    assert "is of Mon 2 Nov 2026, 09:00 UTC and older than the table" in text
    assert "restored or copied on Tue 3 Nov 2026, 09:00 UTC" in text


@LOST
def test_an_approval_for_which_no_judgement_comes_expires_after_a_week_and_is_told(lost: Lost) -> None:
    w = world()
    lost(w)
    w.start()
    change = w.run(24 * 8)
    assert (change.state, w.account.done) == (ChangeState.REFUSED, [])
    assert change.reason is not None
    assert change.reason.code is Code.EXPIRED
    assert w.shown().state is ProposalState.EXPIRED
    assert "waited 7 days" in w.told[-1][1]


@LOST
def test_a_change_that_has_written_already_waits_before_its_next_write(lost: Lost) -> None:
    w = world()
    w.start()
    lost(w)
    assert not w.run(5).is_closed
    assert updates(w) == 0
    assert [subject for subject, _ in w.told] == [WAITS]
    w.judged(1)
    assert w.run(12).state is ChangeState.PROVEN


def test_a_change_that_has_written_already_and_gets_no_judgement_for_a_week_is_ended_and_told() -> None:
    w = world()
    w.start()
    made_unreadable(w)
    change = w.run(24 * 8)
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.EXPIRED)
    assert updates(w) == 0
    assert "waited 7 days" in w.told[-1][1]


def forbidden(w: World) -> None:
    """The permission to see when the table was made is gone."""

    def made_at() -> None:
        raise PermissionMissingError("dynamodb:DescribeTable", "looking at the table")

    w.kept.created_at = made_at  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize("lost", [made_unreadable, forbidden])
def test_autoscaling_that_was_taken_away_waits_for_no_judgement_and_for_no_permission_to_read_it(lost: Lost) -> None:
    w = world(scaling=autoscaled())
    w.refuse(StepKind.UPDATE_ENDPOINT, THROTTLED)
    w.start()
    w.upto(StepKind.DEREGISTER_TARGET)
    lost(w)
    w.heal()
    change = w.run(5)
    assert change.is_closed
    assert len(w.account.targets) == 1
    assert lost is made_unreadable or "dynamodb:DescribeTable" in change.outcome


def test_a_table_that_cannot_be_described_lets_a_change_wait_that_has_taken_nothing() -> None:
    w = world()
    forbidden(w)
    w.start()
    assert (w.run(1).state, w.account.done) == (ChangeState.PLANNED, [])


@SCALING
def test_an_update_that_aws_refused_is_not_tried_again_against_a_newer_judgement(
    scaling: ScalableTarget | None,
) -> None:
    w = world(scaling=scaling)
    w.refuse(StepKind.UPDATE_ENDPOINT, THROTTLED)
    w.start()
    w.upto(StepKind.UPDATE_ENDPOINT)
    w.judged(**SUFFERS)
    w.heal()
    change = w.run(12)
    assert (w.account.config_name, updates(w)) == (OLD, 0)
    assert (change.is_closed, change.state is ChangeState.PROVEN) == (True, False)
    assert len(w.account.targets) == (scaling is not None)


def test_a_wait_for_a_judgement_is_told_once_however_often_a_new_one_says_too_little() -> None:
    w = world()
    for day in range(3):
        w.judged(finding=Finding.NOT_ENOUGH_DATA, reason=Reason(Code.NO_DATAPOINTS, f"{day} days of data"))
        if day == 0:
            w.start()
        w.run(24)
    assert [subject for subject, _ in w.told].count(WAITS) == 1


def test_a_question_that_nobody_answers_for_a_week_refuses_the_change_and_is_named() -> None:
    w = world()
    w.account.unseen = "asking iam:SimulatePrincipalPolicy: Rate exceeded"
    w.start()
    change = w.run(24 * 8)
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.EXPIRED)
    assert "waited 7 days" in change.outcome
    assert "SimulatePrincipalPolicy" in change.outcome, "what could not be read is named"


def test_a_look_that_fails_is_tried_again_and_told_at_the_third() -> None:
    w = world()
    w.account.unseen = "describing chat: Rate exceeded"
    assert not w.start().is_closed
    w.run(0.3)
    assert [subject for subject, _ in w.told] == [f"change {w.change.id} of {NAME} cannot be looked at"]
    w.account.unseen = ""
    assert w.run(12).state is ChangeState.PROVEN


def test_a_refused_approval_that_is_delivered_again_begins_nothing() -> None:
    w = world(tags={"rightsizer:mode": "off"})
    first = w.start()
    assert (first.state, w.shown().state) == (ChangeState.REFUSED, ProposalState.WITHDRAWN)
    w.account.endpoint_tags["rightsizer:mode"] = "propose"
    w.advance(timedelta(hours=30))
    assert (w.start().id, list(w.kept.open_changes())) == (first.id, [])


def test_what_was_refused_and_is_approved_again_is_carried_out_once() -> None:
    w = world(tags={"rightsizer:mode": "off"})
    first = w.start()
    w.account.endpoint_tags["rightsizer:mode"] = "propose"
    w.advance(timedelta(hours=30))
    decision = w.proposal.decision
    assert decision is not None
    w.kept.proposals[w.proposal.id] = replace(w.proposal, decision=replace(decision, at=w.now))
    second = w.start()
    assert (second.state, second.id != first.id) == (ChangeState.RUNNING, True), second.outcome
    assert w.start().id == second.id
    assert len(list(w.kept.open_changes())) == 1
    assert (w.shown().state, w.shown().change_id) == (ProposalState.APPLYING, second.id)


def test_an_endpoint_that_cannot_be_seen_is_not_gone() -> None:
    w = world()
    w.account.unseen = "describing chat: Rate exceeded"
    assert w.start().state is ChangeState.PLANNED
    w.account.unseen, w.account.gone = "", True
    assert w.run(1).state is ChangeState.REFUSED
