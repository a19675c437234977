"""The ledger books each hour of the cheaper fleet once, for as long as it stands."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rightsizer import intake
from rightsizer.domain.change import ChangeState
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.flows.apply_orders import advance_changes
from rightsizer.flows.orders import Orders
from tests.changing.test_budget import tick
from tests.changing.world import NAME, World, world


def days(w: World, count: int) -> None:
    """So many days with a few ticks each, at the full hour."""
    w.box.clock.advance(timedelta(minutes=60 - w.now.minute))
    for _ in range(count * 4):
        w.box.clock.advance(timedelta(hours=6))
        advance_changes(w.apply, intake.parse(tick(w.now)), w.now)


def realised(w: World) -> list[LedgerEntry]:
    found = w.ledger.entries(w.change.created_at, w.now + timedelta(days=1))
    return [entry for entry in found if entry.kind == "realised"]


def hours(w: World) -> float:
    return sum(entry.hours for entry in realised(w))


def test_a_proven_change_goes_on_saving_and_each_day_is_booked_once() -> None:
    with world() as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        first = hours(w)
        days(w, 10)
        change, entries = w.change, realised(w)
        assert change.turned_at is not None
        assert change.booked_until is not None
    assert 9 * 24 <= sum(e.hours for e in entries) - first <= 10 * 24
    assert sum(e.hours for e in entries) == pytest.approx(
        (change.booked_until - change.turned_at).total_seconds() / 3600
    )
    assert all(e.proven for e in entries)
    plain = float(change.saving_usd_per_month) / 730 * sum(e.hours for e in entries)
    assert float(sum((e.usd for e in entries), Decimal(0))) == pytest.approx(plain, rel=0.02)


def test_the_way_back_after_the_proof_books_only_the_rest() -> None:
    with world() as w:
        w.start()
        w.run(48)
        days(w, 3)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(12)
        total = hours(w)
        days(w, 2)
        after = hours(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert change.turned_at is not None
    assert change.returned_at is not None
    assert total == pytest.approx((change.returned_at - change.turned_at).total_seconds() / 3600)
    assert after == total


def test_what_somebody_else_deployed_since_is_not_our_saving() -> None:
    with world() as w:
        w.start()
        w.run(48)
        first = hours(w)
        with w.box.gate.unrecorded():
            w.box.client("sagemaker").update_endpoint(EndpointName=NAME, EndpointConfigName=f"{NAME}-config")
        days(w, 3)
        assert hours(w) == first
        assert not w.change.saves


def test_a_day_that_was_booked_before_a_crash_is_not_booked_again() -> None:
    with world() as w:
        w.start()
        w.run(48)
        before = w.change
        days(w, 2)
        total = hours(w)
        w.journal.save_booking(replace(before, version=w.change.version))
        days(w, 1)
        change = w.change
        assert change.turned_at is not None
        assert change.booked_until is not None
        assert hours(w) > total
        assert hours(w) == pytest.approx((change.booked_until - change.turned_at).total_seconds() / 3600)
