"""What a person decides while office hours have stopped the endpoint waits for the morning, and is not lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer import intake
from rightsizer.aws.hours import HoursTable
from rightsizer.aws.table import Table
from rightsizer.domain.change import ChangeState
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.domain.proposal import ProposalState
from rightsizer.errors import ConflictError
from rightsizer.flows.apply_orders import start_approved, start_lost_approvals, start_lost_rollbacks
from tests.changing.test_undo import click, streamed
from tests.changing.world import World, world


def asleep(w: World) -> tuple[HoursTable, HoursRecord]:
    """A stopped record, which holds the lock of the endpoint."""
    book = HoursTable(Table(w.box.client("dynamodb"), "t"))
    return book, book.save(HoursRecord(w.proposal.ref, HoursState.STOPPED))


def test_an_approval_at_night_stands_and_is_carried_out_in_the_morning() -> None:
    with world() as w:
        book, record = asleep(w)
        with pytest.raises(ConflictError):
            w.start()
        assert w.shown().state is ProposalState.APPROVED
        assert start_lost_approvals(w.apply, w.now) == []
        book.save(replace(record, state=HoursState.RUNNING))
        assert start_lost_approvals(w.apply, w.now) == [w.change.id]
        assert w.run(48).state is ChangeState.PROVEN


def test_an_order_to_go_back_at_night_waits_for_the_endpoint_and_is_told_once() -> None:
    with world() as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        w.told.clear()
        book, record = asleep(w)
        click(w)
        assert start_approved(w.apply, intake.moves(streamed(w)), w.now) == []
        w.box.clock.advance(timedelta(minutes=5))
        assert start_lost_rollbacks(w.apply, w.now, everything=False) == []
        ((subject, text),) = w.told
        assert subject.endswith("its rollback waits")
        assert "stopped by its office hours" in text
        book.save(replace(record, state=HoursState.RUNNING))
        start_lost_rollbacks(w.apply, w.now, everything=False)
        assert w.run(48).state is ChangeState.ROLLED_BACK
