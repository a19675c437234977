"""What a person decided and no event brought: the tick takes it up, or ends it with a message."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer import intake
from rightsizer.aws import decisions
from rightsizer.aws.table import Table
from rightsizer.domain.change import ChangeState
from rightsizer.domain.policy import ChangeLimits, ChangeWindow
from rightsizer.domain.proposal import ProposalMoved, ProposalState, change_id_of
from rightsizer.domain.recommendation import Gate
from rightsizer.flows.apply_orders import advance_changes, start_approved
from rightsizer.flows.orders import Orders
from tests.changing.test_budget import tick
from tests.changing.world import World, world

TICK = timedelta(minutes=5)


def ticks(w: World, span: timedelta, every: timedelta = TICK) -> None:
    """The scheduler's ticks, and not one record of the stream."""
    end = w.now + span
    while w.now < end:
        w.box.clock.advance(every)
        advance_changes(w.apply, intake.parse(tick(w.now)), w.now)


def row(w: World) -> dict[str, Any]:
    key = {"pk": {"S": f"PROPOSAL#{w.proposal.id}"}, "sk": {"S": "PROPOSAL"}}
    found: dict[str, Any] = w.box.client("dynamodb").get_item(TableName="t", Key=key)["Item"]
    return found


@contextmanager
def journal_throttled(w: World) -> Iterator[None]:
    """No change can be written, while everything else of the table works."""
    for operation in ("PutItem", "TransactWriteItems"):
        w.box.gate.fail("dynamodb", operation, "ThrottlingException", times=10_000, where=lambda p: "CHANGE#" in str(p))
    yield
    w.box.gate.heal()


@pytest.mark.parametrize("by", ["slack:U1", "policy"])
def test_an_approval_that_no_event_brought_is_started_by_the_tick(by: str) -> None:
    image = f"111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat@sha256:{'0' * 64}"
    with world(by=by, tags={"rightsizer:mode": "auto"}, image=image, judged={"gate": Gate.APPLY}) as w:
        ticks(w, timedelta(hours=8))
        assert (w.change.state, w.shown().state) == (ChangeState.PROVEN, ProposalState.PROVEN)


def test_an_approval_whose_journal_is_throttled_is_told_once_and_started_when_it_works_again() -> None:
    with world() as w:
        with journal_throttled(w):
            ticks(w, timedelta(hours=3))
            assert w.journal.load(change_id_of(w.proposal)) is None
            assert [subject for subject, _ in w.told] == ["chat: approved, and not started yet"]
        ticks(w, timedelta(hours=8))
        subjects = [subject for subject, _ in w.told]
        assert w.change.state is ChangeState.PROVEN
    assert subjects == ["chat: approved, and not started yet", "chat: started late"]


def test_an_approval_that_could_not_start_in_seven_days_expires_with_a_message() -> None:
    with world() as w:
        w.box.clock.advance(timedelta(days=7, hours=1))
        ticks(w, TICK)
        assert w.journal.load(change_id_of(w.proposal)) is None
        shown = w.shown()
        assert [call.action for call in w.box.calls.writes() if call.service == "sagemaker"] == []
        fresh = replace(
            w.proposal, state=ProposalState.PENDING, decision=None, created_at=w.now, expires_at=w.now + timedelta(14)
        )
        assert w.store.save(w.proposal.recommendation, fresh), "the endpoint is free for the next proposal"
    assert shown.state is ProposalState.EXPIRED
    assert "approved on Mon 2 Nov 2026, 09:00 UTC and could not be started within 7 days" in shown.outcome
    assert [subject for subject, _ in w.told] == ["chat: approval expired"]


def test_a_change_that_waits_for_its_window_costs_one_read_a_tick_and_no_look_at_the_endpoint() -> None:
    closed = ChangeLimits(window=ChangeWindow(days=frozenset({5})))
    with world(limits=closed) as w:
        w.start()
        before = len(w.box.calls.of("sagemaker"))
        ticks(w, timedelta(hours=2))
        assert len(w.box.calls.of("sagemaker")) == before
        assert w.change.state is ChangeState.PLANNED


def test_a_proposal_of_a_change_that_is_not_in_the_table_is_withdrawn_and_told() -> None:
    with world() as w:
        w.store.follow(w.proposal.id, ProposalState.APPLYING, "c-none", "baking")
        ticks(w, timedelta(hours=1))
        shown = w.shown()
    assert shown.state is ProposalState.WITHDRAWN
    assert "c-none is not in the table" in shown.outcome
    assert [subject for subject, _ in w.told] == ["chat: approval withdrawn"]


def test_an_order_to_go_back_that_no_event_brought_is_taken_by_the_tick() -> None:
    with world() as w:
        ticks(w, timedelta(hours=8))
        decisions.request_rollback(Table(w.box.client("dynamodb"), "t"), w.proposal.id, "slack:U1", w.now)
        assert [p.id for p in w.store.proposals((ProposalState.PROVEN,))] == [w.proposal.id]
        ticks(w, timedelta(hours=8))
        assert w.change.state is ChangeState.ROLLED_BACK
        assert row(w)["gsi1pk"]["S"] == "PROPOSAL#rolled-back"
        assert "asked_back" not in row(w)


def test_an_order_that_the_first_release_wrote_is_found_within_a_day() -> None:
    with world() as w:
        ticks(w, timedelta(hours=8))
        decisions.request_rollback(Table(w.box.client("dynamodb"), "t"), w.proposal.id, "slack:U1", w.now)
        old = row(w) | {"gsi1pk": {"S": "PROPOSAL#proven"}}
        w.box.client("dynamodb").put_item(TableName="t", Item=old)
        ticks(w, timedelta(days=1))
        assert w.change.state is ChangeState.ROLLED_BACK


def test_an_order_that_cannot_be_taken_is_told_once() -> None:
    with world() as w:
        ticks(w, timedelta(hours=8))
        w.box.add_endpoint("other", instance_type="ml.g5.xlarge", count=1)
        with w.box.gate.unrecorded():
            w.box.gate.judge, judge = (lambda call: None), w.box.gate.judge
            w.box.client("sagemaker").update_endpoint(EndpointName="chat", EndpointConfigName="other-config")
            w.box.gate.judge = judge
        w.box.clock.advance(timedelta(hours=1))
        decisions.request_rollback(Table(w.box.client("dynamodb"), "t"), w.proposal.id, "slack:U1", w.now)
        ticks(w, timedelta(hours=1))
        subjects = [subject for subject, _ in w.told]
    assert subjects == ["chat: the rollback was not taken"]


def test_an_order_that_waits_is_told_too_where_its_approval_had_waited_before() -> None:
    with world() as w:
        with journal_throttled(w):
            ticks(w, timedelta(hours=1))
        ticks(w, timedelta(hours=8))
        known = len(w.told)
        decisions.request_rollback(Table(w.box.client("dynamodb"), "t"), w.proposal.id, "slack:U1", w.now)
        with journal_throttled(w):
            ticks(w, timedelta(minutes=15))
            assert w.told[known:] == [], "it has not waited for long"
            ticks(w, timedelta(hours=1))
            ((subject, text),) = w.told[known:]
        ticks(w, timedelta(hours=8))
        assert w.change.state is ChangeState.ROLLED_BACK
    assert subject == "chat: its rollback was asked, and not started yet"
    assert text.startswith(f"the rollback of {change_id_of(w.proposal)}, of proposal {w.proposal.id}, could not")


def deployed(w: World, config: str) -> None:
    """The endpoint's owner deploys a configuration."""
    with w.box.gate.unrecorded():
        w.box.gate.judge, judge = (lambda call: None), w.box.gate.judge
        w.box.client("sagemaker").update_endpoint(EndpointName="chat", EndpointConfigName=config)
        w.box.gate.judge = judge
    w.box.clock.advance(timedelta(hours=1))


def test_a_record_with_an_order_that_was_refused_and_settled_changes_nothing_when_it_comes_again() -> None:
    """As the stream's retries bring it, or a stack that adopts the table and reads a day of its stream."""
    with world() as w:
        ticks(w, timedelta(hours=8))
        ours = w.box.config_name("chat")
        w.box.add_endpoint("other", instance_type="ml.g5.xlarge", count=1)
        deployed(w, "other-config")
        decisions.request_rollback(Table(w.box.client("dynamodb"), "t"), w.proposal.id, "slack:U1", w.now)
        record = ProposalMoved("1", w.shown())
        ticks(w, timedelta(hours=1))
        assert "asked_back" not in row(w)
        deployed(w, ours)
        before, told = len(w.box.calls.of("sagemaker", "UpdateEndpoint")), list(w.told)
        assert start_approved(w.apply, [record], w.now) == []
        ticks(w, timedelta(hours=2))
        assert len(w.box.calls.of("sagemaker", "UpdateEndpoint")) == before
        assert (w.change.state, w.told) == (ChangeState.PROVEN, told)


def test_a_record_with_an_order_that_still_stands_is_acted_on_at_once() -> None:
    with world() as w:
        ticks(w, timedelta(hours=8))
        decisions.request_rollback(Table(w.box.client("dynamodb"), "t"), w.proposal.id, "slack:U1", w.now)
        assert start_approved(w.apply, [ProposalMoved("1", w.shown())], w.now) == []
        assert w.change.asked_back_by == "slack:U1"
        assert "asked_back" not in row(w)


def newer(w: World) -> None:
    """A newer release wrote the proposal's row since."""
    found = row(w)
    found["doc"] = {"S": json.dumps(json.loads(found["doc"]["S"]) | {"schema": 99})}
    w.box.client("dynamodb").put_item(TableName="t", Item=found)


def test_an_order_that_cannot_be_read_is_told_once_by_the_tick() -> None:
    with world() as w:
        ticks(w, timedelta(hours=8))
        decisions.request_rollback(Table(w.box.client("dynamodb"), "t"), w.proposal.id, "slack:U1", w.now)
        newer(w)
        known = len(w.told)
        ticks(w, timedelta(hours=2))
        assert w.change.state is ChangeState.PROVEN
        (told,) = w.told[known:]
        assert w.proposal.id in f"{told}"


def test_a_record_with_an_order_on_a_row_of_a_newer_release_holds_up_no_other_record() -> None:
    with world() as w:
        ticks(w, timedelta(hours=8))
        decisions.request_rollback(Table(w.box.client("dynamodb"), "t"), w.proposal.id, "slack:U1", w.now)
        record = ProposalMoved("1", w.shown())
        newer(w)
        known = len(w.told)
        for _ in range(2):
            assert start_approved(w.apply, [record], w.now) == []
        assert len(w.told) == known + 1


def test_a_change_whose_proposal_somebody_deleted_ends_and_frees_its_endpoint() -> None:
    with world() as w:
        Orders(w.journal).freeze("U1", w.now)
        w.start()
        key = {"pk": {"S": f"PROPOSAL#{w.proposal.id}"}, "sk": {"S": "PROPOSAL"}}
        w.box.client("dynamodb").delete_item(TableName="t", Key=key)
        Orders(w.journal).thaw("U1", w.now)
        ticks(w, timedelta(hours=2))
        assert (w.change.state, w.journal.holder_of(w.proposal.ref.name)) == (ChangeState.REFUSED, "")
        assert "does not exist any more" in w.change.outcome


def test_a_search_that_fails_does_not_stop_the_tick() -> None:
    with world() as w:
        w.start()
        w.box.gate.fail(
            "dynamodb", "Query", "ThrottlingException", times=10_000, where=lambda p: "PROPOSAL#approved" in str(p)
        )
        ticks(w, timedelta(hours=8))
        assert w.change.state is ChangeState.PROVEN
