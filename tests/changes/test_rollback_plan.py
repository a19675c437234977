"""The plan of a rollback: how it is deployed, when the stored one stands, and what autoscaling it gives back."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.autoscaling.scheduled_actions import DueChange
from rightsizer.changes import rollback
from rightsizer.changes.reconcile import is_given_back
from rightsizer.changes.rollback import RollbackInput
from rightsizer.domain.change import (
    PREFIXES,
    Change,
    ChangeState,
    Course,
    Entry,
    FailureClass,
    JournalEvent,
    StepResult,
)
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import EndpointSight, LiveState, VariantSight
from rightsizer.domain.plan import Plan, PlanKind, Step, StepKind, VariantCount
from tests.changes.test_reconcile import BACK, CLEAR, CONFIG, NOW, RESTORE, SETTLE, TURN, WHO, change_after, given_back
from tests.changes.test_rollback import CATALOGUE, OLD, ROLLING, SIX, live, returning

TYPE = "ml.g5.4xlarge"
TWO = VariantCount("v", TYPE, 2, 1.0)


def batch(size: int) -> dict[str, Any]:
    return {"RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": size}}}


def rolling(size: int = 9, **plan_fields: Any) -> Change:
    """A change to a cheaper type by batches of `size`, of two instances before, whose rollback rolls too."""
    made = returning()
    assert made.before is not None
    turn, back = (replace(step, params={**step.params, "DeploymentConfig": batch(size)}) for step in (TURN, BACK))
    fields: dict[str, Any] = {"turn": turn, "back": back, "grown": ()} | plan_fields
    return replace(made, before=replace(made.before, variants=(TWO,)), plan=replace(made.plan, **fields))


def size_of(change: Change) -> int | None:
    assert change.plan.back is not None
    policy = change.plan.back.params.get("DeploymentConfig", {}).get("RollingUpdatePolicy")
    return None if policy is None else int(policy["MaximumBatchSize"]["Value"])


def fleet_in_flux(current: int, desired: int) -> EndpointSight:
    return replace(live(1), variants=(VariantSight("v", current, desired, 1.0, 1.0),))


def test_a_rollback_rolls_in_batches_for_which_the_quota_has_room() -> None:
    change = rolling()
    change = replace(change, before=replace(change.before, variants=(replace(TWO, count=8),)))  # type: ignore[type-var]
    assert size_of(rollback.limit_batches(change, live(8), {})) == 4, "half of the fleet at most"
    assert size_of(rollback.limit_batches(change, live(8), {TYPE: 3})) == 3, "another type has its quota for itself"
    after = (VariantCount("v", TYPE, 8, 1.0),)
    same = replace(change, plan=replace(change.plan, after=after))
    assert size_of(rollback.limit_batches(same, live(8), {TYPE: 10})) == 2, "what runs takes up the quota"
    assert size_of(rollback.limit_batches(same, fleet_in_flux(8, 6), {TYPE: 10})) == 2
    assert size_of(rollback.limit_batches(same, fleet_in_flux(6, 8), {TYPE: 10})) == 2
    assert size_of(rollback.limit_batches(rolling(1), live(8), {})) == 1, "no more than forward"


def test_the_batches_of_a_larger_rollback_are_those_of_its_own_count() -> None:
    grown = rolling(grown=(replace(TWO, count=6),))
    assert size_of(rollback.limit_batches(grown, live(6), {})) == 3
    assert size_of(rollback.limit_batches(rolling(), live(6), {})) == 1, "two before: one at a time"


def test_a_rollback_that_keeps_the_live_counts_rolls_by_the_live_fleet() -> None:
    turn = replace(TURN, params={**TURN.params, "DeploymentConfig": batch(9), "RetainAllVariantProperties": True})
    assert size_of(rollback.limit_batches(rolling(turn=turn), live(6), {})) == 3


def test_a_fleet_too_small_for_batches_is_replaced_at_once() -> None:
    made = rollback.limit_batches(rolling(), live(1), {})
    assert made.plan.back == BACK, "everything but the batches stays"


def test_batches_are_limited_only_where_the_rollback_rolls_and_something_is_known_of_before() -> None:
    for change in (returning(), rolling(back=None), replace(rolling(), before=None)):
        assert rollback.limit_batches(change, live(6), {}) is change
    for turn in (None, TURN):
        assert size_of(rollback.limit_batches(rolling(turn=turn), live(6), {})) is None, "the turn was at once"


def test_the_quota_is_needed_for_batches_and_for_a_fleet_that_grew_and_not_without_a_rollback() -> None:
    assert rollback.is_quota_needed(rolling(), live(2), NOW)
    at_once = [rolling(back=BACK), rolling(turn=TURN), rolling(turn=None), rolling(back=None)]
    for change in (*at_once, replace(rolling(), before=None)):
        assert not rollback.is_quota_needed(change, live(1), NOW)
    assert not rollback.is_quota_needed(rolling(back=None), live(9), NOW)
    keeps = replace(TURN, params={**TURN.params, "RetainAllVariantProperties": True})
    assert not rollback.is_quota_needed(returning(turn=keeps), live(9), NOW)
    assert rollback.is_quota_needed(returning(grown=SIX), live(1), NOW), "a larger one was planned already"


def test_no_other_counts_are_needed_where_nothing_is_known_or_the_counts_stay() -> None:
    keeps = replace(TURN, params={**TURN.params, "RetainAllVariantProperties": True})
    for change in (replace(returning(), before=None), returning(turn=keeps), returning(grown=SIX)):
        assert rollback.needed_counts(change, live(6), {}, NOW) == ()
    eight = (replace(SIX[0], count=8),)
    assert rollback.needed_counts(returning(grown=SIX), live(8), {}, NOW) == eight
    assert rollback.needed_counts(returning(grown=SIX), live(2), {}, NOW) == (), "never fewer than asked for before"


def test_a_fleet_that_a_schedule_raised_since_has_not_grown_with_its_load() -> None:
    at_ten = {"ScheduledActionName": "ten", "Schedule": "cron(0 10 * * ? *)"}
    bounds = {"ScalableTargetAction": {"MinCapacity": 6, "MaxCapacity": 8}}
    action = Step(StepKind.PUT_SCHEDULED, WHO["ResourceId"], {**WHO, **at_ten, **bounds})
    change = returning()
    change = replace(change, plan=replace(change.plan, settle=(SETTLE, action)))
    for hours, wanted in ((0.5, SIX), (2, ())):
        now = NOW + timedelta(hours=hours)
        assert rollback.needed_counts(change, live(6), {}, now) == wanted
        assert rollback.is_quota_needed(change, live(6), now) is bool(wanted)


def failed(step: Step, result: StepResult, kind: FailureClass, minutes: int = 1) -> Entry:
    return Entry(NOW - timedelta(minutes=minutes), step.key, "failed", f"{PREFIXES[result]}:{kind.value}:no")


def larger(*entries: Entry) -> Change:
    """A change whose rollback was made larger by a clone, and what came of that."""
    made = rollback.enlarge(returning(), live(6), SIX, RollbackInput({}, CATALOGUE, OLD), NOW)
    return replace(made, journal=(*made.journal, *entries))


def create_of(change: Change) -> Step:
    return next(s for s in change.plan.prepare if s.subject == change.plan.back_config)


@pytest.mark.parametrize("made", ["create", "deploy"])
def test_a_larger_rollback_that_aws_refuses_gives_way_to_the_stored_one_with_a_line(made: str) -> None:
    plan = larger().plan
    step = create_of(larger()) if made == "create" else plan.back
    assert step is not None
    for result, kind in (
        (StepResult.REFUSED, FailureClass.QUOTA),
        (StepResult.RETRY, FailureClass.PERMISSION),
    ):
        change = larger(failed(step, result, kind))
        found = rollback.settled_change(change, LiveState(live(6)), NOW)
        assert found is not None
        assert (found.plan.back, found.plan.back_config, found.plan.grown, found.plan.first_back) == (
            BACK,
            "old",
            (),
            None,
        )
        said = "the larger rollback was refused; it is as large as when the change was planned"
        assert found.journal == (*change.journal, Entry(NOW, JournalEvent.WAY_BACK, "failed", said))


def test_a_larger_rollback_is_tried_again_after_a_fault_that_passes_and_after_one_that_was_overcome() -> None:
    create, back = create_of(larger()), larger().plan.back
    assert back is not None
    throttled = larger(failed(create, StepResult.RETRY, FailureClass.UNKNOWN))
    overcome = larger(failed(create, StepResult.REFUSED, FailureClass.QUOTA, 2), Entry(NOW, create.key, "done"))
    for change in (throttled, overcome):
        assert rollback.settled_change(change, LiveState(live(6)), NOW) is None
    other = replace(create, subject="theirs")
    elsewhere = larger(failed(other, StepResult.REFUSED, FailureClass.QUOTA))
    elsewhere = replace(elsewhere, plan=replace(elsewhere.plan, prepare=(*elsewhere.plan.prepare, other)))
    assert rollback.settled_change(elsewhere, LiveState(live(6)), NOW) is None, "another configuration"
    asked = larger(failed(back, StepResult.RETRY, FailureClass.UNKNOWN))
    assert rollback.settled_change(asked, LiveState(live(6)), NOW) is asked, "AWS was asked for it"


def test_a_larger_rollback_that_aws_took_back_gives_way_to_the_stored_one() -> None:
    back = larger().plan.back
    assert back is not None
    sent = Entry(NOW - timedelta(hours=1), back.key, "done")
    change = replace(larger(sent), turn_mark=NOW - timedelta(hours=2))
    found = rollback.settled_change(change, LiveState(replace(live(6), modified_at=NOW)), NOW)
    assert found is not None
    assert found.plan.back == BACK
    never = returning()
    stored = replace(never, turn_mark=change.turn_mark, journal=(*never.journal, replace(sent, step=BACK.key)))
    assert rollback.settled_change(stored, LiveState(replace(live(6), modified_at=NOW)), NOW) is stored, "it is stored"


@pytest.mark.parametrize("status", ["intended", "done", "failed"])
def test_nothing_is_decided_once_the_rollback_was_begun(status: Any) -> None:
    change = returning()
    begun = replace(change, journal=(*change.journal, Entry(NOW, BACK.key, status, "again:unknown:x")))
    assert rollback.settled_change(begun, LiveState(live(6)), NOW) is begun


def test_nothing_is_decided_for_a_test_a_pending_update_or_a_rollback_that_is_done() -> None:
    change = returning()
    pending = replace(live(6), pending_config="new")
    for settled, seen in (
        (returning(kind=PlanKind.SHADOW_TEST), live(6)),
        (returning(back=None), live(6)),
        (change, pending),
        (change, live(1, config="old")),
    ):
        assert rollback.settled_change(settled, LiveState(seen), NOW) is settled
    counts = returning(new_config="", back=Step(StepKind.SET_CAPACITY, "chat to v=1", capacity("v", 1)))
    assert rollback.settled_change(counts, LiveState(live(6, config="theirs")), NOW) is None, "no configuration is ours"


def test_only_a_line_that_failed_settles_the_stored_rollback() -> None:
    change = returning()
    for step, status, is_settled in (
        (JournalEvent.WAY_BACK, "failed", True),
        (JournalEvent.WAY_BACK, "noted", False),
        (JournalEvent.STEER, "failed", False),
    ):
        line = Entry(NOW, step, status, "x")  # type: ignore[arg-type]
        noted = replace(change, journal=(*change.journal, line))
        found = rollback.settled_change(noted, LiveState(live(6)), NOW)
        assert (found is noted) is is_settled


def test_a_larger_rollback_is_noted_with_what_it_runs() -> None:
    change = returning()
    made = rollback.enlarge(change, live(6), SIX, RollbackInput({}, CATALOGUE, OLD), NOW)
    said = "the fleet or its bounds grew since the plan; the rollback runs v 6 x ml.g5.4xlarge"
    assert made.journal == (*change.journal, Entry(NOW, JournalEvent.WAY_BACK, "noted", said))
    two = (*SIX, VariantCount("w", TYPE, 1, 1.0))
    gone = rollback.enlarge(change, live(6), two, RollbackInput({}, CATALOGUE), NOW)
    assert gone.plan == change.plan
    assert gone.journal[-1].detail == (
        "the fleet grew to need v 6 x ml.g5.4xlarge, w 1 x ml.g5.4xlarge, and the rollback cannot be cloned:"
        " configuration old does not exist any more"
    )


def test_a_source_that_cannot_be_cloned_leaves_the_stored_rollback_with_the_reason() -> None:
    (variant,) = OLD.body["ProductionVariants"]
    odd = replace(OLD, body={**OLD.body, "ProductionVariants": [{**variant, "Unheard": 1}]})
    made = rollback.enlarge(returning(), live(6), SIX, RollbackInput({}, CATALOGUE, odd), NOW)
    assert (made.plan.back, made.journal[-1].status) == (BACK, "failed")
    assert "Unheard" in made.journal[-1].detail


def test_the_clone_of_a_larger_rollback_carries_the_change_the_batches_and_what_was_prepared() -> None:
    made = rollback.enlarge(rolling(), live(6), SIX, RollbackInput({TYPE: 9}, CATALOGUE, OLD), NOW)
    create = create_of(made)
    assert {"Key": "rightsizer:change", "Value": "c-1"} in create.params["Tags"]
    assert made.plan.back is not None
    assert made.plan.back.params["EndpointName"] == "chat"
    assert made.plan.back.subject == f"chat to {made.plan.back_config}"
    assert size_of(made) == 3
    assert made.plan.prepare == (*rolling().plan.prepare, create)
    again = rollback.enlarge(made, live(6), SIX, RollbackInput({TYPE: 9}, CATALOGUE, OLD), NOW)
    assert again.plan == made.plan, "the same clone is made once"
    assert CONFIG in again.plan.prepare


def test_data_capture_that_was_stopped_by_hand_stays_stopped_in_the_clone() -> None:
    capture = {"EnableCapture": True, "InitialSamplingPercentage": 5}
    source = replace(OLD, body={**OLD.body, "DataCaptureConfig": capture})
    for stopped in (True, False):
        seen = replace(live(6), capture_stopped=stopped)
        made = rollback.enlarge(returning(), seen, SIX, RollbackInput({}, CATALOGUE, source), NOW)
        assert create_of(made).params["DataCaptureConfig"]["EnableCapture"] is not stopped


def capacity(*rows: Any) -> dict[str, Any]:
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return {"DesiredWeightsAndCapacities": [{"VariantName": n, "DesiredInstanceCount": c} for n, c in pairs]}


def test_counts_alone_go_back_for_the_variants_that_moved_and_for_those_of_the_first_rollback() -> None:
    change = returning(new_config="", back=Step(StepKind.SET_CAPACITY, "chat to v=1", capacity("v", 1)))
    assert change.before is not None
    fleet = tuple(VariantCount(name, TYPE, 2, 1.0) for name in ("v", "w", "x"))
    change = replace(change, before=replace(change.before, variants=fleet))
    wanted = (fleet[0], fleet[1], replace(fleet[2], count=5))
    made = rollback.enlarge(change, live(6), wanted, RollbackInput({}, CATALOGUE), NOW)
    assert made.plan.back is not None
    assert made.plan.back.params == {"EndpointName": "chat", **capacity("v", 2, "x", 5)}
    assert (made.plan.grown, made.plan.first_back) == (wanted, change.plan.back)
    more = (fleet[0], fleet[1], replace(fleet[2], count=6))
    again = rollback.enlarge(made, live(6), more, RollbackInput({}, CATALOGUE), NOW)
    assert again.plan.first_back == change.plan.back, "the first one is kept"
    without = rollback.enlarge(returning(new_config="", back=None), live(6), SIX, RollbackInput({}, CATALOGUE), NOW)
    assert without.plan.back is not None
    assert without.plan.back.params == {"EndpointName": "chat", **capacity("v", 6)}


def test_the_stored_rollback_comes_back_whole_and_a_plan_that_has_it_is_left_alone() -> None:
    plan = returning().plan
    assert rollback.stored_rollback(plan) is plan
    assert rollback.stored_rollback(larger().plan) == replace(plan, prepare=larger().plan.prepare)
    counts = Plan(back=BACK, first_back=Step(StepKind.SET_CAPACITY, "x", capacity("v", 1)), grown=SIX, back_config="c")
    assert rollback.stored_rollback(counts) == Plan(back=counts.first_back)


def shown(least: int, most: int, **known: Any) -> LiveState:
    target = ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], least, most, **known)
    return LiveState(live(3), scaling=(target,))


def taken_over(**known: Any) -> Change:
    """A change that applied, was given back its autoscaling, and is to be rolled back."""
    made = given_back(change_after(CLEAR, SETTLE))
    return replace(made, course=Course.BACK, state=ChangeState.APPLIED, turned_at=NOW - timedelta(hours=5), **known)


def test_bounds_that_the_owner_raised_are_kept_and_told_and_lower_ones_are_only_told() -> None:
    change = taken_over()
    raised = rollback.keep_owner_edits(change, shown(3, 9), NOW)
    edited = f"autoscaling was edited since the change ({SETTLE.key}); the rollback gives back what was stored"
    assert raised.journal == (
        *change.journal,
        Entry(NOW, JournalEvent.OWNER_EDITS, "noted", f"{edited}, with bounds as large as yours"),
    )
    assert [step.params["MaxCapacity"] for step in raised.plan.restore] == [9]
    lowered = rollback.keep_owner_edits(change, shown(1, 3), NOW)
    assert lowered.plan == change.plan
    assert lowered.journal[-1].detail == edited
    assert rollback.keep_owner_edits(raised, shown(3, 9), NOW) is raised
    assert rollback.keep_owner_edits(change, shown(2, 4), NOW) is change, "nothing was edited"


def test_a_rollback_that_keeps_the_counts_keeps_bounds_too() -> None:
    keeps = replace(TURN, params={**TURN.params, "RetainAllVariantProperties": True})
    change = taken_over()
    change = replace(change, plan=replace(change.plan, turn=keeps))
    assert rollback.keep_owner_edits(change, shown(3, 9), NOW) is change


def test_autoscaling_is_stored_before_a_rollback_takes_it_away_and_only_then() -> None:
    change = taken_over()
    assert rollback.is_taking_autoscaling(change, shown(1, 2))
    nothing = replace(change, plan=replace(change.plan, clear=()))
    began = replace(change, state=ChangeState.RUNNING, journal=change_after(CLEAR).journal)
    for other in (nothing, began, replace(change, course=Course.FORWARD)):
        assert not rollback.is_taking_autoscaling(other, shown(1, 2))


def test_what_is_met_is_stored_with_its_alarms_and_the_later_look_counts() -> None:
    change, alarm = taken_over(), {"AlarmName": "a"}
    met = rollback.with_autoscaling(change, shown(3, 9), (alarm,), NOW)
    assert met.met is not None
    assert (met.met.at, met.met.scaling, met.met.alarms) == (NOW, shown(3, 9).scaling, (alarm,))
    said = "autoscaling is stored as it is before the rollback takes it away"
    assert met.journal == (*change.journal, Entry(NOW, JournalEvent.MET, "noted", said))
    later = NOW + timedelta(minutes=5)
    again = rollback.with_autoscaling(met, replace(shown(3, 9), scaling=None), (), later)
    assert again.met is not None
    assert (again.met.at, again.met.scaling, again.met.alarms, again.journal) == (later, (), (), met.journal)


def midway(**known: Any) -> Change:
    """A rollback that met bounds of 3 to 9 with an action at ten o'clock, and took them away at nine."""
    action = {
        "ScheduledActionName": "ten",
        "Schedule": "cron(0 10 * * ? *)",
        "ScalableTargetAction": {"MinCapacity": 5, "MaxCapacity": 12},
    }
    change = rollback.with_autoscaling(taken_over(), shown(3, 9, scheduled=(action,)), (), NOW)
    taken = Entry(NOW + timedelta(seconds=1), CLEAR.key, "done")
    return replace(change, state=ChangeState.RETURNING, journal=(*change.journal, taken), **known)


def test_a_rollback_that_does_not_arrive_gives_back_what_it_met_as_its_schedule_has_it_now() -> None:
    change = midway()
    assert not is_given_back(change)
    for hours, wanted in ((0.5, (3, 9)), (2, (5, 12))):
        due = rollback.change_with_recorded_autoscaling(DueChange(change, {"x": "y"}), NOW + timedelta(hours=hours))
        register, action = due.change.plan.settle
        assert (register.params["MinCapacity"], register.params["MaxCapacity"]) == wanted
        assert action.kind is StepKind.PUT_SCHEDULED
        assert due.said["x"] == "y"
        moved = due.said.get(register.text, "")
        assert ("the scheduled action ten" in moved) is (hours == 2)
        assert set(due.said) - {"x"} <= {register.text}


def test_nothing_else_is_given_back_where_nothing_was_met_or_autoscaling_is_back() -> None:
    for change in (replace(midway(), met=None), replace(midway(), state=ChangeState.APPLIED)):
        due = DueChange(change)
        assert rollback.change_with_recorded_autoscaling(due, NOW) is due


def test_what_the_owner_added_is_put_again_by_a_person_and_bounds_are_not() -> None:
    lines = rollback.owner_additions(midway())
    assert [line.split(" --")[0] for line in lines] == ["aws application-autoscaling put-scheduled-action"]
    ours = replace(RESTORE, kind=StepKind.PUT_SCHEDULED, subject=f"{WHO['ResourceId']} ten")
    known = midway()
    assert rollback.owner_additions(replace(known, plan=replace(known.plan, restore=(ours,)))) == ()
    assert rollback.owner_additions(replace(known, met=None)) == ()


def test_only_a_rolling_deployment_is_rolling() -> None:
    assert rollback.is_rolling(replace(TURN, params={**TURN.params, "DeploymentConfig": ROLLING}))
    blue = {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE"}}}
    for step in (TURN, replace(TURN, params={**TURN.params, "DeploymentConfig": blue})):
        assert not rollback.is_rolling(step)
