"""What a person decides while office hours have stopped the endpoint waits for the morning, and is not lost."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from rightsizer import intake
from rightsizer.aws import decisions
from rightsizer.aws.hours import HoursTable
from rightsizer.aws.table import Table
from rightsizer.domain.change import ChangeState
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.domain.proposal import ProposalState
from rightsizer.errors import ConflictError, InputError
from rightsizer.flows.apply_orders import start_approved, start_lost_approvals, start_lost_rollbacks
from rightsizer.flows.orders import Orders
from tests.changing.test_undo import click, streamed
from tests.changing.world import NAME, World, world


def asleep(w: World) -> tuple[HoursTable, HoursRecord]:
    """A stopped endpoint: deleted, with a record that holds its lock."""
    book = HoursTable(Table(w.box.client("dynamodb"), "t"))
    record = book.save(HoursRecord(w.proposal.ref, HoursState.STOPPED))
    with w.box.gate.unrecorded():
        w.box.client("sagemaker").delete_endpoint(EndpointName=NAME)
        w.box.clock.advance(timedelta(minutes=5))
    assert NAME not in w.box.world.fleet.endpoints
    return book, record


def awake(w: World, book: HoursTable, record: HoursRecord, config: str, tags: list[dict[str, str]]) -> None:
    """The morning: created from the same configuration, and its lock given back."""
    with w.box.gate.unrecorded():
        w.box.client("sagemaker").create_endpoint(EndpointName=NAME, EndpointConfigName=config, Tags=tags)
        w.box.clock.advance(timedelta(minutes=10))
    book.save(replace(record, state=HoursState.RUNNING))


def identity(w: World) -> tuple[str, list[dict[str, str]]]:
    """Configuration and tags of the endpoint."""
    with w.box.gate.unrecorded():
        sagemaker = w.box.client("sagemaker")
        seen = sagemaker.describe_endpoint(EndpointName=NAME)
        return seen["EndpointConfigName"], sagemaker.list_tags(ResourceArn=seen["EndpointArn"])["Tags"]


def test_an_approval_at_night_stands_and_is_carried_out_in_the_morning() -> None:
    with world() as w:
        config, tags = identity(w)
        book, record = asleep(w)
        with pytest.raises(ConflictError):
            w.start()
        assert w.shown().state is ProposalState.APPROVED
        assert start_lost_approvals(w.apply, w.now) == []
        assert w.shown().state is ProposalState.APPROVED
        awake(w, book, record, config, tags)
        w.box.clock.advance(timedelta(days=1))  # what it published of the new fleet
        assert start_lost_approvals(w.apply, w.now) == [w.change.id]


def test_an_order_to_go_back_at_night_waits_for_the_endpoint_and_is_told_once() -> None:
    with world() as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        w.told.clear()
        config, tags = identity(w)
        book, record = asleep(w)
        click(w)
        assert start_approved(w.apply, intake.moves(streamed(w)), w.now) == []
        for _ in range(3):
            w.box.clock.advance(timedelta(minutes=5))
            assert start_lost_rollbacks(w.apply, w.now, everything=False) == []
        ((subject, text),) = w.told
        assert subject.endswith("its rollback waits")
        assert "stopped by its office hours" in text
        awake(w, book, record, config, tags)
        assert start_lost_rollbacks(w.apply, w.now, everything=False) == [w.change.id]
        assert w.run(48).state is ChangeState.ROLLED_BACK


def test_an_order_that_a_terminal_gives_at_night_is_kept_on_the_proposal() -> None:
    with world() as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        config, tags = identity(w)
        book, record = asleep(w)
        stop = partial(decisions.request_rollback, Table(w.box.client("dynamodb"), "t"))
        desk = Orders(w.journal, w.apply.changer.endpoint, stop)
        assert desk.request_rollback(w.change.id, "cli:somebody", w.now).state is ChangeState.PROVEN
        assert [p.id for p in w.apply.store.rollback_requests(everything=False)] == [w.proposal.id]
        awake(w, book, record, config, tags)
        start_lost_rollbacks(w.apply, w.now, everything=False)
        assert w.run(48).state is ChangeState.ROLLED_BACK


def test_an_endpoint_that_is_gone_for_good_has_nothing_to_go_back_to() -> None:
    with world() as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        book, record = asleep(w)
        book.save(replace(record, state=HoursState.HANDED_OVER))
        with pytest.raises(InputError, match="does not exist any more"):
            Orders(w.journal, w.apply.changer.endpoint).request_rollback(w.change.id, "U1", w.now)
