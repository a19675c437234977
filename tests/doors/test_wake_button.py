"""Wake in Slack: a message each night with the stay as a choice, and an answer to whoever presses it, however often."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.aws.hours import HoursTable
from rightsizer.aws.journal import TableJournal
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.domain.policy import Switch
from sandbox.sagemaker.load import Served
from sandbox.slack import Message
from tests.doors.scene import APPROVER, REGION, Scene, scene
from tests.doors.test_hours import EVENING, IMAGE, TAGS
from tests.doors.test_policy import NAME, put

SEED = 23


@contextmanager
def asleep(*, limits: str = "{}", policy: Mapping[str, Any] | None = None) -> Iterator[Scene]:
    """A stack whose one endpoint sleeps since the evening; it is half past eight at night in UTC."""
    with scene(now=EVENING, MayStop="tagged", Limits=limits, PolicyParameter=NAME if policy else "") as at:
        at.stack.quiet.add("Apply.Tick")  # no change is under way that it could look at
        if policy:
            put(at, policy)
        at.box.add_endpoint("chat", tags=TAGS, image=IMAGE)
        at.box.load("chat", lambda minute, kind, count: Served(0))
        at.pass_time(minutes=50)  # its hours end after half of them
        at.stack.quiet.add("Hours.Tick")  # nothing is due before the morning
        at.pass_time(hours=2, minutes=10)
        at.stack.quiet.discard("Hours.Tick")
        assert "chat" not in at.box.world.fleet.endpoints
        yield at


def record(at: Scene) -> HoursRecord:
    with at.box.gate.unrecorded():
        found = HoursTable(bootstrap.table()).load("chat")
    assert found is not None
    return found


def waiting(at: Scene) -> Any:
    with at.box.gate.unrecorded():
        return HoursTable(bootstrap.table()).waiting_wake("chat")


def press(at: Scene, button: str = "Wake for 2 hours", user: str = APPROVER, message: Message | None = None) -> str:
    """What the person who presses is told."""
    request = at.slack.click(message or at.message("chat"), button, user, at.box.clock.now)
    at.slack.acknowledge(at.stack.invoke("respond", request, "url"))
    return at.slack.answers[-1].plain()


def test_a_night_has_one_message_with_the_stays_and_it_follows_the_endpoint_to_the_morning() -> None:
    with asleep() as at:
        (message,) = [one for one in at.slack.messages if "chat" in one.text]
        assert "chat sleeps by its office hours until Tue 17 Nov 2026, 07:00 UTC" in message.plain()
        stays = ["Wake for 1 hour", "Wake for 2 hours", "Wake for 4 hours", "Wake for 8 hours"]
        assert [name for name in message.buttons() if "Wake" in name] == stays
        at.pass_time(hours=11)
        (message,) = [one for one in at.slack.messages if "chat" in one.text]
        assert "chat serves again since Tue 17 Nov 2026" in message.plain()
        assert not message.buttons()
        at.pass_time(hours=13)
        assert len([one for one in at.slack.messages if "chat" in one.text]) == 2, "each night has its own"
        assert at.stack.failures == []


def test_a_press_wakes_the_endpoint_within_a_tick_and_says_when_it_serves_and_until_when() -> None:
    with asleep() as at:
        said = press(at)
        assert "Recorded: chat should serve by Mon 16 Nov 2026, 21:15 UTC" in said
        assert "stays until Mon 16 Nov 2026, 23:15 UTC" in said
        assert "2 of 3 wakes in 24 hours left" in said
        at.pass_time(minutes=5)
        assert record(at).state is HoursState.STARTING
        assert [wake.by for wake in record(at).wakes] == [f"slack:{APPROVER}"]
        assert waiting(at) is None
        assert "chat is being started" in at.message("chat").plain()
        at.pass_time(minutes=30)
        assert at.box.status("chat") == "InService"
        at.pass_time(hours=4)
        assert "chat" not in at.box.world.fleet.endpoints, "at the end of its stay it is stopped again"
        assert "Wake for 2 hours" in at.message("chat").buttons()
        assert (at.stack.failures, at.refused(), at.slack.triangles) == ([], [], 0)


def test_a_second_press_counts_no_second_wake_and_a_longer_stay_extends_the_first() -> None:
    with asleep() as at:
        press(at)
        assert "Ordered already: chat stays until Mon 16 Nov 2026, 23:15 UTC" in press(at)
        assert "Recorded" in press(at, "Wake for 4 hours")
        at.pass_time(minutes=5)
        assert record(at).state is HoursState.STARTING
        assert max(wake.until for wake in record(at).wakes) == datetime(2026, 11, 17, 1, 15, tzinfo=UTC)


def test_an_old_message_that_is_pressed_after_it_woke_or_in_office_hours_says_so() -> None:
    with asleep() as at:
        night = deepcopy(at.message("chat"))
        press(at, message=night)
        at.pass_time(minutes=40)
        assert "Ordered already" in press(at, message=night)
        at.pass_time(hours=12)
        said = press(at, message=night)
        assert "it is not asleep; its hours end on Tue 17 Nov 2026, 18:00 UTC" in said
        assert "change its tag rightsizer:hours" in said
        assert waiting(at) is None


def test_an_endpoint_that_is_still_being_deleted_is_woken_once_it_is_gone() -> None:
    with asleep() as at:
        with at.box.gate.unrecorded():
            HoursTable(bootstrap.table()).save(replace(record(at), state=HoursState.STOPPING))
        assert "Recorded: chat should serve by" in press(at)
        at.pass_time(minutes=40)
        assert (at.box.status("chat"), record(at).state) == ("InService", HoursState.RUNNING)


def test_the_limit_of_a_day_is_that_of_the_terminal() -> None:
    with asleep(limits='{"wakes_per_day": 1}') as at:
        press(at)
        said = press(at, "Wake for 4 hours")
        assert "chat was woken 1 times in 24 hours, and wakes_per_day is 1" in said
        assert "change its tag rightsizer:hours where it is needed longer" in said
        at.pass_time(minutes=5)
        assert len(record(at).wakes) == 1


def test_a_stay_is_cut_to_the_longest_wake_and_longer_ones_are_not_offered() -> None:
    with asleep(limits='{"longest_wake_hours": 2}') as at:
        assert "Wake for 4 hours" not in at.message("chat").buttons()
        assert "stays until Mon 16 Nov 2026, 22:30 UTC" in press(at)


def test_under_a_hard_freeze_nothing_is_recorded_and_the_answer_says_who_froze_and_how_to_lift_it() -> None:
    with asleep() as at:
        with at.box.gate.unrecorded():
            switch = Switch(frozen=True, hard=True, by="ana", at=at.box.clock.now)
            TableJournal(at.box.client("dynamodb"), bootstrap.settings().table).set_switch(switch)
        said = press(at)
        assert "everything is frozen hard by ana" in said
        assert f"rightsizer freeze --off --region {REGION}" in said
        assert waiting(at) is None


def test_with_a_stack_that_stops_nothing_any_more_the_button_says_what_to_do() -> None:
    with asleep() as at:
        message = at.message("chat")
        environment = at.stack.parts.functions["Respond"].environment
        assert environment["RIGHTSIZER_MAY_STOP"] == "tagged"
        environment["RIGHTSIZER_MAY_STOP"] = "nothing"  # type: ignore[index]
        bootstrap.reset()
        bootstrap.set_clock(lambda: at.box.clock.now)
        said = press(at, message=message)
        assert "the stack has MayStop=nothing" in said
        assert "deploy it with MayStop=tagged" in said


@pytest.mark.parametrize("user", ["U0BOB", ""])
def test_who_is_not_on_the_list_wakes_nothing(user: str) -> None:
    with asleep() as at:
        said = press(at, user=user)
        assert "Recorded:" not in said
        assert waiting(at) is None


def test_hostile_presses_wake_nothing_but_what_the_message_offers() -> None:
    chance = random.Random(SEED)
    values: tuple[Any, ...] = (
        "chat~0~0", "chat~0~14", "chat~0~9999", "chat", "chat~0", "nobody~0~120", "../chat~0~120", "chat#x~0~120",
        "PROPOSAL#chat~0~120", "HOURS#chat~0~120", "c" * 64 + "~0~60", "<!channel>~0~60", "", "~0~60", None, 7, [],
    )  # fmt: skip
    with asleep() as at:
        message = at.message("chat")
        for number in range(300):
            action = {"action_id": "rightsizer_wake", "selected_option": {"value": chance.choice(values)}}
            user = APPROVER if number % 3 else f"U{chance.randrange(10**9)}"
            event = at.slack.click(message, "Wake for 1 hour", user, at.box.clock.now, actions=[action])
            answer = at.stack.invoke("respond", event, "url")
            assert answer["statusCode"] == 200
            assert "Recorded:" not in at.slack.answers[-1].plain()
        at.pass_time(minutes=10)
        assert (waiting(at), record(at).wakes, record(at).state) == (None, (), HoursState.STOPPED)
        assert (at.stack.failures, at.stack.dead_letters()) == ([], [])


def test_one_of_three_hundred_presses_counts() -> None:
    with asleep() as at:
        message = at.message("chat")
        said = [press(at, message=message) for _ in range(300)]
        assert sum("Recorded:" in one for one in said) == 1
        assert sum("Ordered already" in one for one in said) == 299
        at.pass_time(minutes=10)
        assert len(record(at).wakes) == 1


@pytest.mark.parametrize(("kind", "key"), [("owners", "search"), ("environments", "development")])
def test_the_list_of_the_owner_or_the_environment_stands_for_the_default_one(kind: str, key: str) -> None:
    policy = {"defaults": {"approvers": ["U0ALL"]}, kind: {key: {"approvers": ["U0ANNA"]}}}
    with asleep(policy=policy) as at:
        tagged = {"rightsizer:owner": "search", "environment": "dev"}
        with at.box.gate.unrecorded():
            found = record(at)
            assert found.before is not None
            before = replace(found.before, tags={**found.before.tags, **tagged})
            HoursTable(bootstrap.table()).save(replace(found, owner="search", before=before))
        said = press(at, user="U0ALL")
        assert f"not on the list {kind}.{key}.approvers of the policy document" in said
        assert waiting(at) is None
        assert "Recorded: chat should serve by" in press(at, user="U0ANNA")
        at.pass_time(minutes=5)
        assert [wake.by for wake in record(at).wakes] == ["slack:U0ANNA"]
        assert (at.refused(), at.stack.failures) == ([], [])
