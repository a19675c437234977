"""The way back is never smaller than what was stored, nor than the live fleet, within the bounds and the quota."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rightsizer.changes import rollback_size
from rightsizer.changes.rollback import keep_owner_edits
from rightsizer.domain.change import Change, Course, Entry, JournalEvent
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import EndpointSight, LiveState, VariantSight
from rightsizer.domain.plan import Step, StepKind, VariantCount
from tests.changes.test_reconcile import CLEAR, NOW, RESTORE, SETTLE, WHO, change_after, given_back

SIZES = st.integers(1, 12)
TYPE = "ml.g5.4xlarge"


def _needed(
    stored: int, asked: int, live: int, *, most: int | None = None, quota: int | None = None, exchange: str = "1:1"
) -> int:
    made = change_after()
    assert made.before is not None
    limit = () if most is None else (replace(RESTORE, params={**RESTORE.params, "MaxCapacity": most}),)
    old, new = (int(part) for part in exchange.split(":"))
    change = replace(
        made,
        before=replace(made.before, variants=(VariantCount("v", TYPE, stored, 1.0),)),
        plan=replace(
            made.plan,
            settle=(),
            after=(VariantCount("v", "ml.g5.xlarge", asked, 1.0),),
            restore=limit,
            exchange=(old, new),
        ),
    )
    sight = EndpointSight(
        "InService", "new", NOW - timedelta(days=1), "", "", (VariantSight("v", live, live, 1.0, 1.0),)
    )
    (found,) = rollback_size.rollback_counts(change, sight, {} if quota is None else {TYPE: quota})
    assert (found.name, found.instance_type, found.weight) == ("v", TYPE, 1.0)
    return found.count


def test_a_fleet_that_did_not_grow_goes_back_to_what_was_stored() -> None:
    assert _needed(3, 2, 2) == 3
    assert _needed(3, 2, 1) == 3


def test_a_fleet_that_grew_goes_back_as_large_as_it_is() -> None:
    assert _needed(1, 1, 6) == 6


def test_smaller_old_instances_are_exchanged_for_more() -> None:
    assert _needed(4, 2, 5, exchange="4:2") == 10


def test_what_runs_for_its_minimum_is_no_load_and_the_old_minimum_is_kept() -> None:
    change = change_after()
    assert change.before is not None
    settle = replace(SETTLE, params={**SETTLE.params, "MinCapacity": 4, "MaxCapacity": 12})
    restore = replace(RESTORE, params={**RESTORE.params, "MinCapacity": 2, "MaxCapacity": 6})
    due = replace(change, plan=replace(change.plan, settle=(settle,), restore=(restore,), exchange=(1, 2)))
    for live, wanted in ((4, 2), (6, 6)):
        sight = EndpointSight("InService", "new", NOW, "", "", (VariantSight("v", live, live, 1.0, 1.0),))
        assert [v.count for v in rollback_size.rollback_counts(due, sight, {})] == [wanted]


def test_the_old_bounds_would_take_more_away_again() -> None:
    assert _needed(4, 2, 5, most=8, exchange="4:2") == 8


def test_a_quota_that_would_refuse_the_return_is_kept() -> None:
    assert _needed(1, 1, 6, quota=4) == 4
    assert _needed(3, 1, 6, quota=2) == 3, "so many ran before"


@given(SIZES, SIZES, SIZES, st.none() | SIZES, st.none() | SIZES, SIZES, SIZES)
def test_the_way_back_takes_nothing_away_that_the_load_needs(
    stored: int, asked: int, live: int, most: int | None, quota: int | None, old: int, new: int
) -> None:
    count = _needed(stored, asked, live, most=most, quota=quota, exchange=f"{old}:{new}")
    assert count >= stored
    allowed = min([live, *(limit for limit in (most, quota) if limit is not None)])
    assert count >= allowed or live <= asked
    if live <= asked:
        assert count == stored
    if most is not None:
        assert count <= max(stored, most)


@given(SIZES, SIZES, SIZES)
def test_a_look_never_asks_for_fewer_than_an_earlier_one(stored: int, grown: int, live: int) -> None:
    change = change_after()
    assert change.before is not None
    earlier = replace(change, plan=replace(change.plan, grown=(VariantCount("v", TYPE, grown, 1.0),)))
    sight = EndpointSight("InService", "new", NOW, "", "", (VariantSight("v", live, live, 1.0, 1.0),))
    (found,) = rollback_size.rollback_counts(earlier, sight, {})
    assert found.count >= grown


def _returning(*done: Step) -> Change:
    return replace(change_after(*done), turned_at=NOW - timedelta(hours=5), course=Course.BACK)


def _shown(least: int, most: int, **known: Any) -> LiveState:
    target = ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], least, most, **known)
    return LiveState(EndpointSight("InService", "new", NOW, "", "", ()), scaling=(target,))


def test_an_edit_is_seen_while_autoscaling_is_the_owners() -> None:
    change = given_back(_returning(CLEAR, SETTLE))
    assert rollback_size.owner_edits(change, _shown(2, 4)) == ()
    assert rollback_size.owner_edits(change, _shown(2, 9)) == (SETTLE.key,)
    added = _shown(2, 4, policies=({"PolicyName": "mine"},))
    assert rollback_size.owner_edits(change, added) == (f"{WHO['ResourceId']} mine",)


def test_what_the_return_took_away_itself_is_no_edit() -> None:
    taken = LiveState(EndpointSight("InService", "new", NOW, "", "", ()), scaling=())
    again = given_back(_returning(CLEAR, SETTLE))
    again = replace(again, journal=(*again.journal, *_returning(CLEAR).journal))
    assert rollback_size.owner_edits(again, taken) == ()
    assert rollback_size.owner_edits(_returning(CLEAR), taken) == (), "it was never given back"


def test_edits_are_noted_once_by_a_line_of_their_own() -> None:
    change = given_back(_returning(CLEAR, SETTLE))
    other = Entry(NOW, JournalEvent.WAY_BACK, "noted", "autoscaling was looked at, and the fleet grew")
    change = replace(change, journal=(*change.journal, other))
    noted = keep_owner_edits(change, _shown(2, 9), NOW)
    assert noted.journal[:-1] == change.journal
    assert noted.journal[-1].step == JournalEvent.OWNER_EDITS
    assert "autoscaling was edited since the change" in noted.journal[-1].detail
    assert keep_owner_edits(noted, _shown(2, 9), NOW) == noted


def test_what_was_not_given_back_yet_is_no_edit() -> None:
    policy = Step(StepKind.PUT_POLICY, WHO["ResourceId"], {**WHO, "PolicyName": "track"})
    change = _returning(CLEAR, SETTLE)
    change = replace(change, plan=replace(change.plan, settle=(SETTLE, policy)))
    assert rollback_size.owner_edits(change, _shown(2, 4)) == (), "its policy is missing because we took it"


@given(SIZES, SIZES, SIZES, SIZES)
def test_bounds_of_the_way_back_are_raised_and_never_lowered(least: int, more: int, old: int, new: int) -> None:
    change = _returning(CLEAR, SETTLE)
    change = replace(change, plan=replace(change.plan, exchange=(old, new)))
    (step,) = rollback_size.raise_bounds(change, _shown(least, least + more))
    assert step.params["MinCapacity"] >= RESTORE.params["MinCapacity"]
    assert step.params["MaxCapacity"] >= max(RESTORE.params["MaxCapacity"], step.params["MinCapacity"])
    if least + more > SETTLE.params["MaxCapacity"]:
        assert step.params["MaxCapacity"] * new >= (least + more) * old
    scheduled = _shown(least, least + more, scheduled=({"ScheduledActionName": "night"},))
    assert rollback_size.raise_bounds(change, scheduled) == change.plan.restore, "the schedule's, not the owner's hand"


@given(SIZES, SIZES)
def test_what_was_put_back_in_place_is_not_raised_by_the_next_look(least: int, more: int) -> None:
    change = _returning(SETTLE)
    alone = replace(change, plan=replace(change.plan, turn=None, back=None, clear=(), exchange=(0, 0)))
    (first,) = rollback_size.raise_in_place(alone, _shown(least, least + more)).plan.restore
    (second,) = rollback_size.raise_in_place(
        alone, _shown(first.params["MinCapacity"], first.params["MaxCapacity"])
    ).plan.restore
    assert first == second
    assert first.params["MaxCapacity"] >= RESTORE.params["MaxCapacity"]


def test_a_change_that_deploys_goes_back_by_its_own_plan() -> None:
    change = _returning(CLEAR, SETTLE)
    assert rollback_size.raise_in_place(change, _shown(3, 99)) == change


def test_a_change_that_nobody_approved_runs_its_maximum_and_a_return_in_a_peak_keeps_it() -> None:
    """Its fleet began at the maximum, so that what runs cannot be told from growth: nothing is taken away."""
    change = change_after()
    assert change.before is not None
    settle = replace(SETTLE, params={**SETTLE.params, "MinCapacity": 1, "MaxCapacity": 4})
    restore = replace(RESTORE, params={**RESTORE.params, "MinCapacity": 1, "MaxCapacity": 4})
    before = replace(change.before, variants=(VariantCount("v", TYPE, 2, 1.0),))
    after = (VariantCount("v", "ml.g5.xlarge", 4, 1.0),)
    plan = replace(change.plan, settle=(settle,), restore=(restore,), after=after, exchange=(1, 1))
    due = replace(change, before=before, plan=plan)
    for live, wanted in ((4, 4), (3, 3), (2, 2), (1, 2)):
        sight = EndpointSight("InService", "new", NOW, "", "", (VariantSight("v", live, live, 1.0, 1.0),))
        assert [v.count for v in rollback_size.rollback_counts(due, sight, {})] == [wanted]
