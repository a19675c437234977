"""What the journal alone proves: what was taken, whether it was given back, and what is left to undo."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.changes.reconcile import drift
from rightsizer.domain.change import Change, ChangeState, Entry, JournalEvent
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import EndpointSight, Gone, LiveState
from rightsizer.domain.plan import Step
from tests.changes.test_reconcile import (
    ALARM,
    BACK,
    CLEAR,
    CONFIG,
    NOW,
    PLAN,
    REGION,
    RESTORE,
    SETTLE,
    TIDY,
    TURN,
    WHO,
    change_after,
)

LOST, REFUSED = "again:unanswered:read timeout", "refused:quota:too many"
TARGET = ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], 2, 4)


def lines(*rows: tuple[Step, str, str]) -> Change:
    at = NOW - timedelta(minutes=9)
    return replace(change_after(), journal=tuple(Entry(at, s.key, status, text) for s, status, text in rows))  # type: ignore[arg-type]


def seen(*targets: ScalableTarget) -> LiveState:
    return LiveState(EndpointSight("InService", "new", NOW, "", "", ()), scaling=targets)


@pytest.mark.parametrize(
    ("rows", "touched", "written"),
    [
        ([], False, False),
        ([(CONFIG, "done", ""), (ALARM, "done", "")], False, False),
        ([(CLEAR, "intended", "")], True, True),
        ([(CLEAR, "intended", ""), (CLEAR, "failed", REFUSED)], True, False),
        ([(CLEAR, "intended", ""), (CLEAR, "failed", LOST)], True, True),
        ([(CLEAR, "intended", ""), (CLEAR, "done", "")], True, True),
        ([(SETTLE, "intended", "")], True, True),
        ([(CONFIG, "done", ""), (CLEAR, "intended", "")], True, True),
        ([(CLEAR, "intended", ""), (SETTLE, "intended", ""), (SETTLE, "failed", REFUSED)], True, True),
        ([(CLEAR, "failed", REFUSED), (CLEAR, "intended", "")], True, True),
        ([(CLEAR, "failed", LOST), (CLEAR, "intended", ""), (CLEAR, "failed", REFUSED)], True, True),
    ],
)
def test_an_intent_alone_and_a_lost_answer_count_as_made(
    rows: list[tuple[Step, str, str]], touched: bool, written: bool
) -> None:
    change = lines(*rows)
    assert (drift.may_have_changed_autoscaling(change), drift.may_have_written(change)) == (touched, written)


@pytest.mark.parametrize(
    ("rows", "tries", "turned"),
    [
        ([], 0, False),
        ([(TURN, "intended", "")], 0, True),
        ([(TURN, "intended", ""), (TURN, "failed", REFUSED)], 0, False),
        ([(TURN, "intended", ""), (TURN, "failed", LOST)], 0, True),
        ([], 1, True),
    ],
)
def test_an_update_of_this_try_or_of_an_earlier_one_may_have_turned(
    rows: list[tuple[Step, str, str]], tries: int, turned: bool
) -> None:
    change = replace(lines(*rows), tries=tries)
    assert drift.may_have_turned(change) is turned
    assert drift.may_have_turned(replace(change, plan=replace(PLAN, turn=None)))


def marked(*steps: str) -> Change:
    return replace(change_after(), journal=tuple(Entry(NOW, step, "noted") for step in steps))


@pytest.mark.parametrize(
    ("steps", "given", "over"),
    [
        ((), False, False),
        ((JournalEvent.APPLIED,), True, False),
        ((JournalEvent.FINISH,), True, True),
        ((JournalEvent.APPLIED, CLEAR.key), False, False),
        ((JournalEvent.FINISH, CLEAR.key), False, False),
        ((CLEAR.key, JournalEvent.APPLIED), True, False),
    ],
)
def test_what_was_given_back_whole_and_not_taken_since_is_the_owners(
    steps: tuple[str, ...], given: bool, over: bool
) -> None:
    assert (drift.is_given_back(marked(*steps)), drift.is_reopened(marked(*steps))) == (given, over)
    assert drift.is_given_back(replace(marked(*steps), state=ChangeState.APPLIED))


@pytest.mark.parametrize(
    ("rows", "again"),
    [
        ([(CLEAR, "done", "")], True),
        ([(CLEAR, "intended", "")], False),
        ([(CLEAR, "done", ""), (SETTLE, "intended", "")], False),
        ([(CLEAR, "done", ""), (RESTORE, "intended", "")], False),
    ],
)
def test_a_target_that_we_took_and_that_is_there_again_is_the_owners_after_three_minutes(
    rows: list[tuple[Step, str, str]], again: bool
) -> None:
    change, at = lines(*rows), NOW - timedelta(minutes=9)
    assert drift.targets_registered_again(change, seen(TARGET)) == ({CLEAR.subject: at} if again else {})
    assert drift.targets_registered_again(change, seen()) == {}
    soon, later = at + drift.GONE_AFTER - timedelta(seconds=1), at + drift.GONE_AFTER
    assert drift.targets_of_owner(change, seen(TARGET), soon) == frozenset()
    assert drift.targets_of_owner(change, seen(TARGET), later) == ({CLEAR.subject} if again else frozenset())


def test_what_is_left_open_are_the_lines_that_undo_what_was_begun_and_no_others() -> None:
    assert drift.undo_commands(change_after(CONFIG)) == ()
    assert drift.undo_commands(change_after(CONFIG, ALARM)) == (TIDY.command(REGION),)
    assert drift.undo_commands(change_after(ALARM, CLEAR)) == (RESTORE.command(REGION), TIDY.command(REGION))
    turned = change_after(ALARM, CLEAR, TURN)
    assert drift.undo_commands(turned) == (
        BACK.command(REGION),
        RESTORE.command(REGION),
        TIDY.command(REGION),
    )
    assert drift.undo_commands(replace(turned, returned_at=NOW)) == (
        RESTORE.command(REGION),
        TIDY.command(REGION),
    )
    over = replace(turned, state=ChangeState.HANDED_OVER, remaining=("aws x",))
    assert drift.undo_commands(over) == ("aws x",)


def test_configurations_of_every_try_stay() -> None:
    rows = ("CreateEndpointConfig one", "CreateEndpointConfig one", "AddTags one", "CreateEndpointConfig two")
    assert drift.leftover_configs(marked(*rows)) == ("one", "two")


@pytest.mark.parametrize(
    ("ending", "found"),
    [
        (ChangeState.PROVEN, ()),
        (ChangeState.APPLIED, ()),
        (ChangeState.ROLLED_BACK, (RESTORE.key,)),
        (ChangeState.HANDED_OVER, ()),
    ],
)
def test_what_differs_from_the_end_is_reported(ending: ChangeState, found: tuple[str, ...]) -> None:
    change = change_after()
    assert drift.differences(change, seen(TARGET), ending) == found
    other = seen(replace(TARGET, maximum=9))
    assert drift.differences(change, other, ChangeState.PROVEN) == (SETTLE.key,)
    scheduled = seen(replace(TARGET, maximum=9, scheduled=({"ScheduledActionName": "day"},)))
    assert drift.differences(change, scheduled, ChangeState.PROVEN) == (), "a schedule moves bounds"
    assert drift.differences(change, replace(other, scaling=None), ending) == (), "it was not looked at"
    assert drift.differences(change, LiveState(Gone("chat")), ending) == ()
