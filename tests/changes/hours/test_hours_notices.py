"""Who waits for an endpoint is told once for each hour what stands against it, with the commands; and who is first."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from rightsizer.changes.hours import HoursDemand, LateNotice, blind_notice, by_urgency, late_notice
from rightsizer.changes.hours.steps import LiveHours, commands_by_hand
from rightsizer.domain.hours_record import HoursRecord, HoursState, LetGo, Wake
from tests.changes.hours.kit import (
    MORNING,
    NAME,
    NIGHT,
    REF,
    TARGET,
    before,
    demand,
    endpoint,
    gone,
    live,
    record,
    rejected,
)
from tests.changes.hours.test_hours_sentences import (
    AGAIN,
    CREATE,
    EARLY,
    HOUR,
    MINUTE,
    RUNNING,
    STARTING,
    STOPPED,
    TICK,
    starting,
    stopping,
)

FIVE_PAST = MORNING + TICK
ACTION = {
    "ScheduledActionName": "morning",
    "Schedule": "cron(0 6 * * ? *)",
    "ScalableTargetAction": {"MinCapacity": 3, "MaxCapacity": 6},
    "ServiceNamespace": "sagemaker",
    "ResourceId": TARGET.resource_id,
    "ScalableDimension": TARGET.dimension,
}
NIGHTLY = replace(TARGET, policies=(), scheduled=(ACTION,))
"""Autoscaling with a scheduled action that fired while the endpoint was stopped."""


def late(one: HoursRecord, seen: LiveHours, now: datetime = FIVE_PAST, why: str = "it waits") -> LateNotice | None:
    return late_notice(one, seen, demand(one, now), now, why)


def test_the_message_about_a_late_start_is_keyed_by_its_hour_and_has_the_commands() -> None:
    one = starting(*rejected(CREATE, EARLY, "refused:capacity:none is left"))
    found = late(one, gone())
    assert found is not None
    assert (found.key, found.subject) == (
        "late#2026-11-03T07:00:00+00:00",
        f"{NAME} does not serve yet, {AGAIN}",
    )
    assert found.text.splitlines() == [
        f"{NAME} had to serve on {AGAIN} and does not serve yet: it is gone; it waits.",
        "AWS answered: none is left",
        "It is tried again every five minutes. By hand:",
        *commands_by_hand(one, FIVE_PAST, gone().state),
    ]


def test_the_commands_are_those_that_are_left_at_that_moment() -> None:
    scaled = starting(before=before(scaling=(NIGHTLY,), alarms=()))
    found = late(scaled, live(endpoint(status="Failed")))
    assert found is not None
    assert tuple(found.text.splitlines()[2:]) == commands_by_hand(
        scaled, FIVE_PAST, live(endpoint(status="Failed")).state
    )
    blind = blind_notice(scaled, demand(scaled, MORNING), MORNING, "denied")
    assert blind is not None
    assert tuple(blind.text.splitlines()[2:]) == commands_by_hand(scaled, MORNING)
    assert '"MinCapacity": 3' in blind.text, "the bounds of the morning"


def test_what_serves_without_everything_says_so_and_no_answer_of_aws_is_no_line() -> None:
    found = late(starting(), live(endpoint(failure_reason="odd")), why="it is InService odd")
    assert found is not None
    assert found.subject == f"{NAME} serves, but not everything is put back, {AGAIN}"
    first = f"{NAME} had to serve on {AGAIN} and serves, but not everything is put back: it is InService odd."
    assert found.text.splitlines()[:2] == [first, "It is tried again every five minutes. By hand:"]


def test_nobody_is_told_before_five_past_of_what_may_rest_or_of_what_serves_while_it_is_stopped() -> None:
    assert late(starting(), gone(), FIVE_PAST - timedelta(seconds=1)) is None
    assert late(starting(), gone(), NIGHT) is None
    assert late(record(RUNNING), gone()) is None
    assert late(stopping(), live()) is None
    assert late(stopping(), live(endpoint(status="Failed"))) is not None
    assert late_notice(starting(), gone(), HoursDemand(True), FIVE_PAST, "x") is None


def test_an_endpoint_that_cannot_be_looked_at_is_told_from_its_hour() -> None:
    one = starting()
    found = blind_notice(one, demand(one, MORNING), MORNING, "access denied")
    assert found is not None
    assert (found.key, found.subject) == ("blind#2026-11-03T07:00:00+00:00", f"{NAME} may not serve")
    assert found.text.splitlines() == [
        f"{NAME} had to serve on {AGAIN}, and it cannot be looked at: access denied.",
        "It is tried again every five minutes. By hand:",
        *commands_by_hand(one, MORNING),
    ]
    soon = MORNING - timedelta(seconds=1)
    for other, asked, now in (
        (one, demand(one, soon), soon),
        (replace(one, before=None), demand(one, MORNING), MORNING),
        (replace(one, state=RUNNING), demand(one, MORNING), MORNING),
        (one, HoursDemand(True), MORNING),
        (one, HoursDemand(False, MORNING), MORNING),
    ):
        assert blind_notice(other, asked, now, "x") is None


def named(name: str, state: HoursState, **known: Any) -> HoursRecord:
    return record(state, ref=replace(REF, name=name), **known)


def test_what_has_to_serve_first_is_looked_at_first_and_what_waits_for_nothing_last() -> None:
    noon = MORNING + 5 * HOUR
    wake = Wake(noon - 2 * HOUR, noon + 2 * HOUR, "U1")
    rows = [
        named("runs", RUNNING, next_due=noon),
        named("runs-older", RUNNING, next_due=noon - HOUR),
        named("runs-never", RUNNING),
        named("stuck", STARTING),
        named("woken", STOPPED, wakes=(wake,), hours="tue-tue 15:00-19:00 Europe/Berlin"),
        named("let-go", STARTING, let_go=LetGo(noon, "U1", "")),
        named("rests", STOPPED, hours="wed-wed 08:00-19:00 Europe/Berlin", next_due=noon + HOUR),
    ]
    order = [one.ref.name for one in by_urgency(rows, noon, frozenset())]
    assert order == ["woken", "let-go", "stuck", "runs-never", "runs-older", "runs", "rests"]


def test_what_is_late_for_four_hours_still_has_its_turn_before_the_others() -> None:
    rows = [named("a", STARTING), named("b", STARTING, let_go=LetGo(MORNING + 3 * HOUR, "U1", ""))]
    for now, order in ((MORNING + 4 * HOUR, ["a", "b"]), (MORNING + 4 * HOUR + MINUTE, ["b", "a"])):
        assert [one.ref.name for one in by_urgency(rows, now, frozenset())] == order
