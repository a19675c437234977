"""The next action of a change, whole: which step, which wait, which end, and the sentence that an operator reads."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from rightsizer.changes.reconcile import next_action
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import AlarmSight, EndpointSight, Gone, LiveState, ProofVerdict, VariantSight
from rightsizer.domain.next_action import Do, Finish, NextAction, Steer, Wait
from rightsizer.domain.plan import PlanKind, Step, StepKind, VariantCount
from rightsizer.domain.policy import Switch
from rightsizer.domain.reason import Code, Reason
from tests.changes.test_reconcile import (
    ALARM,
    BACK,
    BEFORE,
    CLEAR,
    CONFIG,
    NOW,
    PLAN,
    SETTLE,
    TIDY,
    TURN,
    WHO,
    change_after,
)

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
EARLIER = NOW - 2 * HOUR
IN_PLACE = replace(PLAN, turn=None, back=None, new_config="", back_config="", prepare=(), clear=(), alarms=(), tidy=())
"""A plan that registers other bounds, and deploys nothing."""
KEEPING = replace(TURN, params={**TURN.params, "RetainAllVariantProperties": True})
OLD_BOUNDS = ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], 1, 2)
NEW_BOUNDS = replace(OLD_BOUNDS, minimum=2, maximum=4)
BACK_WANTED: dict[str, Any] = {"asked_back_by": "slack:U1"}


def seen(config: str = "old", count: int = 1, current: int | None = None, **known: Any) -> EndpointSight:
    variant = VariantSight("v", count if current is None else current, count, 1.0, 1.0)
    endpoint = EndpointSight("InService", config, EARLIER, "", "", (variant,))
    return replace(endpoint, **known)


def live(endpoint: EndpointSight | Gone | None = None, *bounds: ScalableTarget, **known: Any) -> LiveState:
    """AWS shows the new configuration made and its alarm OK."""
    alarms = {"a": AlarmSight("a", "OK", {"AlarmName": "a"})}
    shown: dict[str, Any] = {"configs": frozenset({"new"}), "alarms": alarms, "scaling": bounds, **known}
    return LiveState(endpoint or seen(), **shown)


def after(*done: Step, minutes: float = 120, **known: Any) -> Change:
    """A running change that did these steps two hours ago."""
    lines = tuple(Entry(NOW - minutes * MINUTE, step.key, "done") for step in done)
    return replace(change_after(), **{"journal": lines, **known})


def turned(**known: Any) -> Change:
    """A change whose configuration arrived an hour ago, with its autoscaling."""
    return after(CLEAR, TURN, SETTLE, **{"state": ChangeState.APPLIED, "turned_at": NOW - HOUR, **known})


def closing(ending: ChangeState | None, *done: Step, **known: Any) -> Change:
    return after(*done, **{"course": Course.CLOSE, "ending": ending, **known})


def act(
    change: Change, shown: LiveState | None = None, switch: Switch | None = None, now: datetime = NOW
) -> NextAction:
    return next_action(change, shown or live(), now, switch or Switch())


def back(code: Code, text: str, failure: FailureClass) -> Steer:
    return Steer(Reason(code, text), Course.CLOSE, ChangeState.ROLLED_BACK, failure)


# what holds everything


def test_a_hard_freeze_takes_no_step_at_all() -> None:
    wait = Wait(NOW + 5 * MINUTE, "frozen hard by U1: no step at all is taken")
    for change in (after(), turned(**BACK_WANTED), closing(ChangeState.ROLLED_BACK, CLEAR)):
        assert act(change, switch=Switch(True, True, "slack:U1")) == wait
    assert act(after(CLEAR), switch=Switch(False, True, "slack:U1")) == Do(TURN)


@pytest.mark.parametrize("endpoint", [seen(status="Updating"), seen(pending_config="new")])
def test_an_endpoint_on_the_move_is_waited_for_but_not_by_what_is_handed_over(endpoint: EndpointSight) -> None:
    wait = Wait(NOW + 2 * MINUTE, f"endpoint chat is {endpoint.status}")
    for change in (after(), turned(), after(course=Course.BACK), closing(ChangeState.ROLLED_BACK, CLEAR)):
        assert act(change, live(endpoint)) == wait
    assert act(closing(ChangeState.HANDED_OVER), live(endpoint)) == Do(TIDY)


def test_an_endpoint_that_is_gone_is_handed_over_and_then_its_change_is_closed() -> None:
    gone = live(Gone("chat"), alarms={})
    lost = act(after(CLEAR), gone)
    assert isinstance(lost, Steer)
    assert (lost.ending, lost.reason.code) == (ChangeState.HANDED_OVER, Code.VANISHED)
    reason = Reason(Code.VANISHED, "it is gone")
    assert act(closing(ChangeState.HANDED_OVER, CLEAR, reason=reason), gone) == Finish(ChangeState.HANDED_OVER, reason)


# forward, before it has arrived


def test_the_steps_before_the_update_are_taken_in_order_and_then_the_update() -> None:
    nothing = live(seen(), OLD_BOUNDS, configs=frozenset(), alarms={})
    assert act(after(), nothing) == Do(CONFIG)
    assert act(after(), live(seen(), OLD_BOUNDS, alarms={})) == Do(ALARM)
    assert act(after(), live(seen(), OLD_BOUNDS)) == Do(CLEAR)
    assert act(after(CLEAR), live()) == Do(TURN)


def test_where_nothing_is_deployed_bounds_are_set_and_then_it_has_to_serve() -> None:
    change = after(plan=IN_PLACE, before=replace(BEFORE, scaling=(OLD_BOUNDS,)))
    assert act(change, live(seen(), OLD_BOUNDS)) == Do(SETTLE)
    text = "autoscaling of chat is as asked; now it has to serve"
    assert act(change, live(seen(), NEW_BOUNDS)) == Steer(Reason(Code.UNPROVEN, text), turned=True)


def test_a_deletion_is_a_mark_and_a_watch() -> None:
    plan = replace(IN_PLACE, kind=PlanKind.DELETE, settle=(), restore=())
    text = "chat is marked for deletion; from now on it is watched"
    assert act(after(plan=plan)) == Steer(Reason(Code.UNPROVEN, text), turned=True)
    text = "chat is marked for deletion; nothing else was changed, and any request ends it"
    watched = after(plan=plan, turned_at=NOW)
    assert act(watched) == Steer(Reason(Code.UNPROVEN, text), applied=True)


def test_the_new_configuration_in_service_at_its_counts_has_arrived() -> None:
    text = "chat runs what was asked; now it has to serve"
    assert act(after(CLEAR, TURN), live(seen("new"))) == Steer(Reason(Code.UNPROVEN, text), turned=True)


def test_a_count_that_its_owner_set_since_it_arrived_is_told() -> None:
    text = (
        "chat runs what was asked, with counts that somebody set since (v has 3 and 1 were asked); now it has to serve"
    )
    assert act(after(CLEAR, TURN), live(seen("new", 3))) == Steer(Reason(Code.UNPROVEN, text), turned=True)


def test_one_instance_is_a_count_that_an_owner_sets() -> None:
    asked = (VariantCount("v", "ml.g5.xlarge", 2, 1.0),)
    found = act(after(CLEAR, TURN, plan=replace(PLAN, after=asked)), live(seen("new", 1)))
    assert isinstance(found, Steer)
    assert found.turned


def test_counts_of_each_variant_that_moved_are_told_and_of_no_other() -> None:
    rows = tuple(VariantSight(name, n, n, 1.0, 1.0) for name, n in (("v", 3), ("w", 2), ("x", 9), ("y", 4)))
    asked = tuple(VariantCount(name, "", n, 1.0) for name, n in (("v", 1), ("w", 2), ("y", 5)))
    change = after(CLEAR, TURN, plan=replace(PLAN, after=asked))
    found = act(change, live(seen("new", variants=rows)))
    assert isinstance(found, Steer)
    assert "(v has 3 and 1 were asked, y has 4 and 5 were asked)" in found.reason.sentence


def test_a_deployment_that_keeps_the_live_counts_says_nothing_of_them() -> None:
    plan = replace(PLAN, turn=KEEPING)
    found = act(after(CLEAR, KEEPING, plan=plan), live(seen("new", 3)))
    text = "chat runs what was asked; now it has to serve"
    assert found == Steer(Reason(Code.UNPROVEN, text), turned=True)
    none = act(after(CLEAR, KEEPING, plan=plan), live(seen("new", 0)))
    assert none == Steer(Reason(Code.UNPROVEN, text), turned=True), "autoscaling may have moved it to none"


@pytest.mark.parametrize(
    ("endpoint", "counts"),
    [
        (seen("new", 2, 1), "v 1 of 2"),
        (seen("new", 0), "v 0 of 0"),
        (seen("new", variants=()), ""),
        (
            seen("new", variants=(VariantSight("w", 1, 1, 1.0, 1.0), VariantSight("x", 2, 3, 1, 1))),
            "w 1 of 1, x 2 of 3",
        ),
    ],
)
def test_the_new_configuration_at_other_counts_goes_back(endpoint: EndpointSight, counts: str) -> None:
    text = f"chat carries the new configuration, but not the counts that were asked: {counts}"
    wanted = Steer(Reason(Code.CHANGED_SINCE, text), Course.BACK, failure=FailureClass.OUTSIDE)
    assert act(after(CLEAR, TURN), live(endpoint)) == wanted


def test_an_asynchronous_endpoint_may_have_gone_to_no_instance_since_it_arrived() -> None:
    found = act(after(CLEAR, TURN), live(seen("new", 0, asynchronous=True)))
    assert isinstance(found, Steer)
    assert found.turned


def test_counts_alone_have_arrived_only_where_each_is_as_asked() -> None:
    rows = [{"VariantName": "v", "DesiredInstanceCount": 1}]
    turn = Step(StepKind.SET_CAPACITY, "chat to v=1", {"EndpointName": "chat", "DesiredWeightsAndCapacities": rows})
    before = replace(BEFORE, variants=(VariantCount("v", "ml.g5.xlarge", 2, 1.0),))
    change = after(plan=replace(IN_PLACE, turn=turn, settle=()), before=before)
    there = act(change, live(seen(count=1)))
    assert isinstance(there, Steer)
    assert there.turned
    assert act(change, live(seen(count=2))) == Do(turn)


def test_an_update_that_was_just_sent_may_not_show_yet() -> None:
    wait = Wait(NOW + MINUTE, "UpdateEndpoint of chat was asked and does not show yet")
    assert act(after(TURN, minutes=2, turn_mark=EARLIER), live()) == wait


@pytest.mark.parametrize("why", ["no capacity", ""])
def test_an_update_that_aws_rolled_back_ends_with_the_reason_that_aws_gave(why: str) -> None:
    change = after(TURN, turn_mark=EARLIER)
    found = act(change, live(seen(modified_at=NOW, failure_reason=why)))
    assert found == back(Code.ROLLED_BACK, why or "AWS gave no reason", FailureClass.UNKNOWN)


def test_who_asks_before_it_arrived_gets_the_old_configuration() -> None:
    text = "U1 asked for the rollback"
    assert act(after(CLEAR, **BACK_WANTED)) == back(Code.ROLLED_BACK, text, FailureClass.ASKED)


def test_an_approval_that_became_too_old_refuses_a_change_that_wrote_nothing() -> None:
    late = act(after(created_at=NOW - timedelta(days=8), outcome="it waits"))
    assert isinstance(late, Steer)
    assert (late.ending, late.reason.code) == (ChangeState.REFUSED, Code.EXPIRED)


def test_a_freeze_waits_before_autoscaling_is_touched_and_gives_it_back_after() -> None:
    frozen = Switch(True, False, "slack:U1")
    wait = Wait(NOW + 15 * MINUTE, "frozen by U1: no forward step is taken")
    assert act(after(), switch=frozen) == wait
    text = "frozen between two steps; autoscaling goes back as it was"
    assert act(after(CLEAR), switch=frozen) == back(Code.FROZEN, text, FailureClass.NONE)


@pytest.mark.parametrize(
    ("step", "change", "shown"),
    [
        (CONFIG, after(), live(configs=frozenset())),
        (CLEAR, after(), live(seen(), OLD_BOUNDS)),
        (TURN, after(CLEAR), live()),
        (SETTLE, after(CLEAR, TURN, turned_at=NOW), live(seen("new"))),
        (CLEAR, after(TURN, course=Course.BACK), live(seen("new"), NEW_BOUNDS)),
        (BACK, after(CLEAR, course=Course.BACK), live(seen("new"))),
    ],
)
def test_a_step_that_failed_for_now_is_tried_again_after_a_minute(step: Step, change: Change, shown: LiveState) -> None:
    failed = (Entry(NOW, step.key, "intended"), Entry(NOW, step.key, "failed", "again:unknown:throttled"))
    change = replace(change, journal=(*change.journal, *failed))
    found = act(change, shown)
    assert isinstance(found, Wait)
    assert found.until == NOW + MINUTE
    assert act(change, shown, now=NOW + MINUTE) == Do(step)


# alarms before the start


def shown(*states: str) -> dict[str, AlarmSight]:
    return {name: AlarmSight(name, state, {"AlarmName": name}) for name, state in zip("abc", states, strict=False)}


WATCHED = replace(PLAN, alarms=("a", "b"))


def test_an_alarm_without_data_is_waited_for_half_an_hour_from_when_it_was_put() -> None:
    change, alarms = after(ALARM, minutes=30, plan=WATCHED), shown("OK", "INSUFFICIENT_DATA", "ALARM")
    text = "alarm b is INSUFFICIENT_DATA since Mon 2 Nov 2026, 08:30 UTC; it must be OK before the start, "
    assert act(change, live(alarms=alarms)) == Wait(NOW + 2 * MINUTE, f"{text}and is waited for until 09:00")
    over = "the roll-back alarm b is INSUFFICIENT_DATA before the start, so it would protect nothing"
    late = after(ALARM, minutes=31, plan=WATCHED)
    assert act(late, live(alarms=alarms)) == back(Code.ALARM_NOT_OK, over, FailureClass.ALARM)


def test_an_alarm_that_rings_ends_the_change_though_another_one_only_has_no_data() -> None:
    found = act(after(ALARM, minutes=1, plan=WATCHED), live(alarms=shown("INSUFFICIENT_DATA", "ALARM")))
    text = "the roll-back alarm a is INSUFFICIENT_DATA before the start, so it would protect nothing"
    assert found == back(Code.ALARM_NOT_OK, text, FailureClass.ALARM)


def test_alarms_that_were_there_already_are_waited_for_from_the_begin_of_the_change() -> None:
    change = after(CONFIG, minutes=1, plan=WATCHED, created_at=NOW - 20 * MINUTE)
    found = act(change, live(alarms=shown("OK", "INSUFFICIENT_DATA")))
    assert isinstance(found, Wait)
    assert found.why.endswith("waited for until 09:10")


# forward, after it has arrived


def test_autoscaling_comes_before_the_word_that_it_runs() -> None:
    change = after(CLEAR, TURN, turned_at=NOW - MINUTE)
    assert act(change, live(seen("new"))) == Do(SETTLE)
    text = "chat runs what was asked, with its autoscaling; it is not proven yet"
    assert act(change, live(seen("new"), NEW_BOUNDS)) == Steer(Reason(Code.UNPROVEN, text), applied=True)
    text = "chat runs what was asked; it is not proven yet"
    bare = replace(change, plan=replace(PLAN, settle=()))
    assert act(bare, live(seen("new"))) == Steer(Reason(Code.UNPROVEN, text), applied=True)


def test_a_configuration_that_somebody_brought_back_is_the_end() -> None:
    text = "somebody brought chat back to old after the change"
    assert act(turned(), live(seen("old"))) == back(Code.ROLLED_BACK, text, FailureClass.OUTSIDE)


def test_who_asks_during_the_probation_turns_the_course() -> None:
    wanted = Steer(Reason(Code.ROLLED_BACK, "U1 asked for the rollback"), Course.BACK, failure=FailureClass.ASKED)
    assert act(turned(**BACK_WANTED), live(seen("new"))) == wanted


def test_without_a_verdict_the_next_look_is_in_an_hour() -> None:
    wait = Wait(NOW + HOUR, "nothing is known yet about the requests served")
    assert act(turned(), live(seen("new"))) == wait


SAID = Reason(Code.UNPROVEN, "what was seen")
CHANGE, TEST, DELETE = PlanKind.CHANGE, PlanKind.SHADOW_TEST, PlanKind.DELETE
TO_BACK = Steer(SAID, Course.BACK, failure=FailureClass.ERRORS)
BY_HAND = ("aws sagemaker delete-endpoint --region eu-west-1 --endpoint-name chat",)


@pytest.mark.parametrize(
    ("judgement", "kind", "found"),
    [
        ("bad", CHANGE, TO_BACK),
        ("bad", TEST, TO_BACK),
        ("proven", TEST, TO_BACK),
        ("given-up", TEST, TO_BACK),
        ("proven", DELETE, Steer(SAID, Course.CLOSE, ChangeState.HANDED_OVER, remaining=BY_HAND)),
        ("given-up", DELETE, Steer(SAID, Course.CLOSE, ChangeState.ROLLED_BACK)),
        ("proven", CHANGE, Steer(SAID, Course.CLOSE, ChangeState.PROVEN)),
        ("given-up", CHANGE, Steer(SAID, Course.CLOSE, ChangeState.APPLIED)),
    ],
)
def test_a_verdict_ends_each_kind_of_change_in_its_own_way(judgement: Any, kind: PlanKind, found: Steer) -> None:
    verdict = ProofVerdict(judgement, SAID, FailureClass.ERRORS)
    change = turned(plan=replace(PLAN, kind=kind))
    assert act(change, live(seen("new"), NEW_BOUNDS, verdict=verdict)) == found


DEPLOYED_BARE = replace(PLAN, alarms=())


@pytest.mark.parametrize(
    ("plan", "since", "wait"),
    [
        (PLAN, 29.9 * MINUTE, 15 * MINUTE),
        (PLAN, 30 * MINUTE, HOUR),
        (DEPLOYED_BARE, 1 * MINUTE, HOUR),
        (IN_PLACE, 1 * MINUTE, HOUR),
        (replace(IN_PLACE, alarms=("a",)), 1 * MINUTE, HOUR),
        (PLAN, 23.9 * HOUR, HOUR),
        (PLAN, 24 * HOUR, 48 * HOUR),
    ],
)
def test_looks_are_soon_after_a_deployment_then_hourly_and_after_a_day_every_second_day(
    plan: Any, since: timedelta, wait: timedelta
) -> None:
    verdict = ProofVerdict("not-yet", SAID)
    change = turned(plan=plan, turned_at=NOW - since)
    endpoint = seen("new" if plan.new_config else "old")
    assert act(change, live(endpoint, NEW_BOUNDS, verdict=verdict)) == Wait(NOW + wait, "what was seen")
