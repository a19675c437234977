"""Rows of other releases: what is unknown survives, what cannot be read waits, is told once, and stops nothing."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from rightsizer import intake, telemetry
from rightsizer.aws.recommendations import Recommendations
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import day_text
from rightsizer.errors import ReadError, UnreadableError
from rightsizer.flows.apply import BOOKS_RESERVE_MS, RESERVE_MS, Apply
from rightsizer.flows.apply_orders import advance_changes
from rightsizer.flows.orders import Orders
from tests import samples
from tests.changing.test_books import days, hours
from tests.changing.test_budget import tick
from tests.changing.world import World, world
from tests.notifiers import Told

TYPED: dict[str, Any] = {"novel_row": {"M": {"a": {"S": "b"}}}}


def row(w: World, change_id: str = "") -> dict[str, Any]:
    key = {"pk": {"S": f"CHANGE#{change_id or w.change.id}"}, "sk": {"S": "CHANGE"}}
    with w.box.gate.unrecorded():
        found: dict[str, Any] = w.box.client("dynamodb").get_item(TableName="t", Key=key)["Item"]
    return found


def edit(w: World, found: dict[str, Any], **fields: Any) -> None:
    """Another release wrote these fields of the document."""
    doc = json.loads(found["doc"]["S"]) | fields
    put(w, found | {"doc": {"S": json.dumps(doc)}})


def put(w: World, item: Mapping[str, Any]) -> None:
    with w.box.gate.unrecorded():
        judge, w.box.gate.judge = w.box.gate.judge, lambda call: None
        w.box.client("dynamodb").put_item(TableName="t", Item=dict(item))
        w.box.gate.judge = judge


def unreadable(w: World, number: int, kind: str = "DUE") -> str:
    """A change of a release that knows another state, due long ago."""
    one = samples.change(w.now - timedelta(days=2), id=f"c-new-{number:02}", ref=EndpointRef("1", "r", f"e{number}"))
    one = replace(one, next_due=w.now - timedelta(days=2))
    w.journal.create(one)
    found = row(w, one.id)
    if kind == "SAVING":
        found["gsi1pk"] = {"S": "SAVING"}
    edit(w, found, state="paused")
    return one.id


def test_a_field_of_a_newer_program_is_there_after_a_tick_at_every_depth() -> None:
    with world() as w:
        w.start()
        found = row(w)
        doc = json.loads(found["doc"]["S"])
        doc["novel"] = {"deep": [1, 2]}
        doc["plan"]["novel"] = "p"
        doc["option"]["target"]["novel"] = "t"
        doc["before"]["variants"][0]["novel"] = "v"
        doc["journal"][0]["novel"] = "j"
        put(w, found | {"doc": {"S": json.dumps(doc)}} | TYPED)
        w.run(48)
        after = row(w)
        again = json.loads(after["doc"]["S"])
    assert (again["state"], again["schema"]) == ("proven", 1)
    assert again["novel"] == {"deep": [1, 2]}
    assert again["plan"]["novel"] == "p"
    assert again["option"]["target"]["novel"] == "t"
    assert again["before"]["variants"][0]["novel"] == "v"
    assert [line.get("novel") for line in again["journal"]] == ["j", *[None] * (len(again["journal"]) - 1)]
    assert after["novel_row"] == TYPED["novel_row"]
    assert not {"unknown", "@row"} & set(again)


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"state": "paused"}, "state: 'paused' is no value that this release knows"),
        ({"schema": 3}, "its schema number is 3"),
        ({"id": None}, "id"),
    ],
)
def test_a_change_that_cannot_be_read_is_told_once_looked_at_each_hour_and_goes_on_when_it_can(
    fields: dict[str, Any], cause: str
) -> None:
    with world() as w, patch.object(telemetry, "_invocation") as counted:
        w.start()
        good = row(w)
        edit(w, good, **fields)
        looks = []
        for _ in range(72):  # six hours
            w.box.clock.advance(timedelta(minutes=5))
            before = counted.get().add_metric.call_count
            assert w.apply.tick(w.now) == ()
            looks.append(counted.get().add_metric.call_count - before)
        waiting = row(w, json.loads(good["doc"]["S"])["id"])
        assert len(w.told) == 1
        assert "cannot be read and waits" in w.told[0][0]
        assert cause in w.told[0][1]
        assert sum(looks) == 6
        assert counted.get().add_metric.call_args.args[0] == "RowsUnreadable"
        assert waiting["gsi1sk"]["S"] > w.now.isoformat()
        assert json.loads(waiting["doc"]["S"]) == json.loads(good["doc"]["S"]) | fields, "the row is left as it is"
        put(w, waiting | {"doc": good["doc"]})
        assert w.run(48).state is ChangeState.PROVEN


def test_a_spoilt_budget_is_told_once_with_the_remedy_and_the_change_starts_when_it_is_gone() -> None:
    with world() as w, patch.object(telemetry, "_invocation") as counted:
        key = {"pk": {"S": f"BUDGET#{w.now:%Y-%m-%d}"}, "sk": {"S": "BUDGET"}}
        put(w, key | {"changes": {"S": "some"}, "usd": {"N": "1"}})
        w.start()
        for _ in range(24):  # two hours
            w.box.clock.advance(timedelta(minutes=5))
            w.apply.tick(w.now)
        assert w.change.state is ChangeState.PLANNED
        assert "its attribute changes is no number" in w.change.outcome
        assert [subject for subject, _ in w.told] == [f"no change starts on {day_text(w.now)}"]
        assert f"Remedy: delete the row BUDGET#{w.now:%Y-%m-%d} BUDGET of the table t" in w.told[0][1]
        assert [call.args[0] for call in counted.get().add_metric.call_args_list].count("RowsUnreadable") > 1
        with w.box.gate.unrecorded():
            judge, w.box.gate.judge = w.box.gate.judge, lambda call: None
            w.box.client("dynamodb").delete_item(TableName="t", Key=key)
            w.box.gate.judge = judge
        assert w.run(48).state is ChangeState.PROVEN


def test_a_message_that_was_not_taken_is_tried_again_at_the_next_look() -> None:
    with world() as w:
        w.start()
        edit(w, row(w), state="paused")

        def refuse(subject: str, text: str) -> None:
            raise ReadError("the topic refuses")

        w.box.clock.advance(timedelta(minutes=5))
        replace(w.apply, notifier=Told(refuse)).tick(w.now)
        assert w.told == []
        w.box.clock.advance(timedelta(hours=1))
        w.apply.tick(w.now)
        assert len(w.told) == 1


def test_thirty_changes_that_cannot_be_read_starve_no_other() -> None:
    with world() as w:
        for number in range(30):
            unreadable(w, number)
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        assert len(w.told) == 30


def test_an_event_about_a_change_that_cannot_be_read_is_no_error() -> None:
    with world() as w:
        w.start()
        edit(w, row(w), state="paused")
        assert w.apply.advance_endpoint("chat", w.now) is None
        assert w.apply.advance_endpoint("chat", w.now) is None
        assert len(w.told) == 1


def test_a_freeze_lists_the_changes_that_it_can_read_and_names_the_others() -> None:
    with world() as w:
        w.start()
        lost = unreadable(w, 1)
        assert [one.id for one in Orders(w.journal).freeze("U1", w.now)] == [w.change.id]
        unread: list[Any] = []
        assert [one.id for one in w.journal.open_changes(unread)] == [w.change.id]
        assert [one.key for one in unread] == [f"CHANGE#{lost} CHANGE"]
        assert w.journal.switch().frozen


def test_a_switch_that_cannot_be_read_holds_changes_back_and_an_order_writes_it_anew() -> None:
    with world() as w:
        Orders(w.journal).freeze("U1", w.now)
        item = {"pk": {"S": "CONTROL"}, "sk": {"S": "FREEZE"}}
        put(w, item | {"doc": {"S": '{"schema":7,"frozen":"until-monday"}'}})
        assert w.journal.switch().frozen
        assert not w.journal.switch().hard
        Orders(w.journal).thaw("U2", w.now)
        assert (w.journal.switch().frozen, w.journal.switch().by) == (False, "U2")


def test_thirty_savings_that_cannot_be_booked_stop_no_other() -> None:
    with world() as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        for number in range(30):
            unreadable(w, number, "SAVING")
        first = hours(w)
        days(w, 3)
        assert hours(w) - first >= 48
        assert len(w.told) == 30


def test_a_saving_whose_booking_fails_gets_a_later_look() -> None:
    with world() as w:
        w.start()
        w.run(48)
        w.box.clock.advance(timedelta(days=1, minutes=60 - w.now.minute))
        with patch("rightsizer.flows.apply_orders.book_savings", side_effect=ReadError("no")):
            advance_changes(w.apply, intake.parse(tick(w.now)), w.now)
        assert w.journal.changes_to_book(w.now) == ()
        assert w.journal.changes_to_book(w.now + timedelta(hours=1)) == (w.change.id,)
        days(w, 1)
        assert hours(w) > 24


class Left:
    """Time that each look uses up."""

    def __init__(self, looks: int, reserve: int = RESERVE_MS) -> None:
        self.ms, self.each = reserve + looks * 1000 - 500, 1000

    def __call__(self) -> int:
        self.ms -= self.each
        return self.ms + self.each


def test_a_tick_looks_at_as_many_as_it_has_time_for_and_the_next_tick_begins_with_the_rest() -> None:
    seen: list[str] = []

    def look(self: Apply, change_id: str, now: Any) -> Change | None:
        change = self.journal.load(change_id)
        assert change is not None
        seen.append(change_id)
        return self.journal.save(replace(change, next_due=now + timedelta(minutes=5)))

    with world() as w, patch.object(Apply, "advance", look):
        for number in range(60):
            one = samples.change(w.now, id=f"c-{number:02}", ref=EndpointRef("1", "r", f"e{number}"))
            w.journal.create(replace(one, next_due=w.now - timedelta(seconds=60 - number)))
        assert len(w.apply.tick(w.now, Left(looks=40))) == 40
        w.box.clock.advance(timedelta(minutes=5))
        w.apply.tick(w.now, Left(looks=40))
    assert seen[:60] == [f"c-{number:02}" for number in range(60)], "fair: each once before any twice"
    assert len(seen) == 80


def test_savings_leave_time_for_the_errands() -> None:
    with world() as w:
        w.start()
        w.run(48)
        w.box.clock.advance(timedelta(days=1, minutes=60 - w.now.minute))
        before = hours(w)
        advance_changes(w.apply, intake.parse(tick(w.now)), w.now, lambda: BOOKS_RESERVE_MS - 1)
        assert hours(w) == before
        advance_changes(w.apply, intake.parse(tick(w.now)), w.now, lambda: BOOKS_RESERVE_MS + 1)
        assert hours(w) == before + 24


def test_a_proposal_that_cannot_be_read_stops_neither_its_change_nor_the_expiry_of_others() -> None:
    with world() as w:
        w.start()
        key = {"pk": {"S": f"PROPOSAL#{w.proposal.id}"}, "sk": {"S": "PROPOSAL"}}
        found = w.box.client("dynamodb").get_item(TableName="t", Key=key)["Item"]
        put(w, found | {"doc": {"S": "no JSON"}})
        assert w.run(48).state is ChangeState.PROVEN
        pending = samples.proposal("p-2", "other", created_at=w.now, expires_at=w.now + timedelta(days=1))
        store: Recommendations = w.store
        store.save(pending.recommendation, pending)
        put(w, found | {"doc": {"S": "no JSON"}, "gsi1pk": {"S": "PROPOSAL#pending"}, "expires_at": {"N": "1"}})
        closed = store.expire(w.now + timedelta(days=2))
        assert [one.id for one in closed] == ["p-2"]
        assert [one.id for one in store.proposals([ProposalState.EXPIRED])] == ["p-2"]


def test_an_endpoint_whose_question_cannot_be_read_is_judged_and_asked_nothing_new() -> None:
    with world() as w:
        asked = samples.proposal("p-2", "other", created_at=w.now, expires_at=w.now + timedelta(days=1))
        assert w.store.save(asked.recommendation, asked)
        key = {"pk": {"S": "PROPOSAL#p-2"}, "sk": {"S": "PROPOSAL"}}
        found = w.box.client("dynamodb").get_item(TableName="t", Key=key)["Item"]
        edit(w, found, schema=9)
        newer = replace(asked.recommendation, evaluated_at=w.now + timedelta(hours=1), fingerprint="other|2")
        assert w.store.save(newer, replace(asked, id="p-3", recommendation=newer)) is False
        assert w.store.last_evaluated(["other"]) == {"other": newer.evaluated_at}
        with pytest.raises(UnreadableError, match="its schema number is 9"):
            w.store.proposal("p-2")


def test_a_look_costs_as_many_requests_as_the_page_says() -> None:
    looks: dict[ChangeState, int] = {}
    with world() as w:
        w.start()
        while not w.change.is_closed:
            w.box.clock.advance(max((w.change.next_due or w.now) - w.now, timedelta(minutes=1)))
            state, before = w.change.state, len(w.box.calls)
            w.apply.tick(w.now)
            looks[state] = min(looks.get(state, 99), len(w.box.calls) - before)
        before = len(w.box.calls)
        w.box.clock.advance(timedelta(days=1, minutes=60 - w.now.minute))
        advance_changes(w.apply, intake.parse(tick(w.now)), w.now)
        booking = len(w.box.calls) - before
    assert looks == {ChangeState.RUNNING: 11, ChangeState.APPLIED: 8}
    assert booking <= 6 + 7, "six lists, and the look itself"
