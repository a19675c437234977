"""A lack of capacity: the next option of automatic mode, the pools, or the same type later; three tries at most."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rightsizer.changes.reconcile import leftover_configs
from rightsizer.domain.change import ChangeState, FailureClass
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.recommendation import Gate
from tests.changes.account import NEW_TYPE, OLD_TYPE
from tests.changes.memory import World, an_option, autoscaled, world

OTHER = "ml.g5.2xlarge"
FIRST = an_option()
SECOND = an_option(target=Target(OTHER, 1), saving_usd_per_month=Decimal(321), by_itself=True)


def lacking(w: World, times: int) -> World:
    w.account.endings = ["capacity"] * times
    w.start()
    return w


def offered(*options: Option, by: str = "policy") -> World:
    return world(by=by, tags={"rightsizer:mode": "auto"}, gate=Gate.APPLY, options=options)


def test_after_a_lack_of_capacity_the_pools_are_tried_six_hours_later() -> None:
    w = lacking(world(), 1)
    began = w.now
    waiting = w.run(3)
    shown = w.shown()
    change = w.run(12)
    rows = w.account.configs[w.account.config_name]["ProductionVariants"][0]["InstancePools"]
    assert (waiting.state, shown.state) == (ChangeState.PLANNED, ProposalState.APPLYING)
    assert waiting.next_due is not None
    assert waiting.next_due - began > timedelta(hours=6)
    assert "want of capacity" in shown.outcome
    assert (change.state, change.option.kind) == (ChangeState.PROVEN, OptionKind.INSTANCE_POOLS), change.outcome
    assert {row["Priority"]: row["InstanceType"] for row in rows} == {1: NEW_TYPE, 2: OLD_TYPE}
    assert len(leftover_configs(change)) == 2, "the configuration of the first try stays too"


def test_no_event_and_no_click_begins_the_next_try_before_its_time() -> None:
    w = lacking(world(scaling=autoscaled()), 1)
    waiting = w.until(lambda change: change.tries)
    made = len(w.account.done)
    for minutes in (5, 15, 300):
        w.advance(timedelta(minutes=minutes))
        w.apply.advance_endpoint("chat", w.now)
        w.start()
        w.apply.tick(w.now)
    assert (w.change, len(w.account.done)) == (waiting, made)
    assert waiting.next_due == waiting.not_before
    assert w.run(12).state is ChangeState.PROVEN, w.change.outcome


def test_the_third_lack_of_capacity_is_the_end_and_is_remembered() -> None:
    w = lacking(world(), 3)
    change = w.run(60)
    assert (change.state, change.failure) == (ChangeState.ROLLED_BACK, FailureClass.CAPACITY)
    assert len(w.account.writes(StepKind.UPDATE_ENDPOINT)) == 3
    assert [past.failure for past in w.past()] == ["capacity"]


def test_who_asks_back_between_two_tries_ends_the_change() -> None:
    w = lacking(world(), 1)
    w.run(3)
    w.ask_back()
    change = w.run(12)
    assert change.state in (ChangeState.REFUSED, ChangeState.ROLLED_BACK)
    assert "U1" in change.outcome


def test_a_further_try_that_may_not_begin_ends_as_rolled_back_and_gives_every_lock_back() -> None:
    """Its owner released between two tries. An earlier try was written, so it is no refusal, which touches nothing."""
    w = lacking(world(), 1)
    assert w.run(3).models
    w.account.release()
    change = w.run(12)
    assert (change.state, change.failure) == (ChangeState.ROLLED_BACK, FailureClass.CAPACITY)
    assert "try 2, after a want of capacity, could not begin" in change.outcome
    assert (w.shown().state, w.kept.locks) == (ProposalState.ROLLED_BACK, {})


def test_automatic_mode_goes_on_with_the_next_option_an_hour_later() -> None:
    w = lacking(offered(FIRST, SECOND), 1)
    began = w.now
    waiting = w.run(1)
    change = w.run(12)
    assert waiting.state is ChangeState.PLANNED
    assert waiting.next_due is not None
    assert waiting.next_due - began < timedelta(hours=3)
    assert OTHER in waiting.outcome
    assert (change.state, change.option.target.instance_type) == (ChangeState.PROVEN, OTHER)
    assert change.saving_usd_per_month == 321
    past = {p.to_type: (p.ended, p.failure) for p in w.past()}
    assert past == {NEW_TYPE: ("update-failed", "capacity"), OTHER: ("proven", "")}


@pytest.mark.parametrize("by", ["policy", "slack:U1"])
def test_what_automatic_mode_may_not_apply_and_what_a_person_did_not_approve_is_left_to_the_pools(by: str) -> None:
    w = lacking(offered(FIRST, replace(SECOND, by_itself=by != "policy"), by=by), 1)
    change = w.run(24)
    assert (change.state, change.option.kind) == (ChangeState.PROVEN, OptionKind.INSTANCE_POOLS), change.outcome
    assert change.option.target.pools == (NEW_TYPE, OLD_TYPE)


def test_where_the_next_option_has_no_quota_the_chosen_type_is_tried_again_later() -> None:
    w = lacking(offered(FIRST, SECOND), 1)
    w.account.quotas[OTHER] = 0
    waiting = w.run(3)
    asked = w.shown()
    change = w.run(24)
    assert (asked.state, asked.outcome) == (ProposalState.APPLYING, waiting.outcome)
    assert (waiting.state, waiting.option.target.instance_type) == (ChangeState.PLANNED, NEW_TYPE)
    assert "is 0" in waiting.outcome
    assert (change.state, change.option.target.instance_type) == (ChangeState.PROVEN, NEW_TYPE), change.outcome
    assert change.saving_usd_per_month == FIRST.saving_usd_per_month


def test_where_the_next_option_lacks_too_its_pools_are_the_last_try() -> None:
    w = lacking(offered(FIRST, SECOND), 3)
    change = w.run(60)
    assert (change.state, change.failure) == (ChangeState.ROLLED_BACK, FailureClass.CAPACITY)
    assert change.option.target.pools == (OTHER, OLD_TYPE)
    assert len(w.account.writes(StepKind.UPDATE_ENDPOINT)) == 3
    assert sorted((p.to_type, p.failure) for p in w.past()) == sorted([(NEW_TYPE, "capacity"), (OTHER, "capacity")])


def test_the_proposal_says_why_a_further_try_waits() -> None:
    w = lacking(offered(FIRST, SECOND), 1)
    w.run(1)
    w.freeze()
    waiting = w.run(3)
    asked = w.shown()
    w.thaw()
    assert "frozen by U1" in waiting.outcome
    assert (asked.state, asked.outcome) == (ProposalState.APPLYING, waiting.outcome)
    assert (w.run(24).state, w.shown().state) == (ChangeState.PROVEN, ProposalState.PROVEN)


def test_a_model_that_does_not_start_is_remembered_by_its_name() -> None:
    w = world()
    w.account.endings = ["health_check"]
    w.start()
    w.run(24)
    (past,) = w.past()
    assert (past.has_failed_start, past.models) == (True, ("chat-model",))


def test_a_roll_back_alarm_that_fires_on_the_new_fleet_is_remembered_against_the_type() -> None:
    w = world()
    w.account.endings = ["alarm"]
    w.start()
    w.run(6)
    (past,) = w.past()
    assert (past.is_refuted, past.failure) == (True, "alarm")


def test_pools_that_find_no_capacity_three_times_end_with_the_old_type() -> None:
    w = world(an_option(kind=OptionKind.INSTANCE_POOLS, target=Target(NEW_TYPE, 1, pools=(NEW_TYPE, OLD_TYPE))))
    lacking(w, 3)
    change = w.run(72)
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert w.account.instance_type("AllTraffic") == OLD_TYPE
    assert any("capacity" in text.lower() for _, text in w.told)
