"""Growth on the simulated account: the second instance, its proof, its cost in the ledger, and the way back."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate
from rightsizer.flows.orders import Orders
from tests import samples
from tests.changing.test_books import days
from tests.changing.world import NAME, OLD_TYPE, World, an_option, steady, world

SECOND = an_option(
    kind=OptionKind.INSTANCE_COUNT,
    target=Target(OLD_TYPE, 2),
    restart_needed=False,
    usd_per_month=Decimal(2000),
    saving_usd_per_month=Decimal(-1000),
    switch_usd=Decimal(0),
    growth_usd=Decimal(1000),
)
SHORT: dict[str, Any] = {"finding": Finding.UNDER_PROVISIONED, "gate": Gate.APPLY, "instance_type": OLD_TYPE}
LATE = {"rightsizer:mode": "auto", "rightsizer:p95-ms": "300"}


def entries(w: World) -> list[LedgerEntry]:
    return list(w.ledger.entries(w.change.created_at, w.now + timedelta(days=1)))


def test_a_second_instance_is_proven_within_the_objective_and_booked_as_a_cost_alone() -> None:
    with world(SECOND, judged=SHORT, tags=LATE) as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        assert w.box.counts(NAME) == {"AllTraffic": 2}
        days(w, 5)
        booked = entries(w)
    assert {one.kind for one in booked} == {"growth-cost"}
    assert all(one.usd >= 0 for one in booked)
    cost = 1000 / 730 * sum(one.hours for one in booked)
    assert float(sum((one.usd for one in booked), Decimal(0))) == pytest.approx(cost, rel=0.02)


def test_growth_that_is_still_too_slow_stays_and_is_never_called_proven() -> None:
    with world(SECOND, judged=SHORT, tags=LATE, load=steady(p95_ms=900)) as w:
        w.start()
        change = w.run(48)
        assert change.state is ChangeState.APPLIED
        assert w.box.counts(NAME) == {"AllTraffic": 2}
        change = w.run(24 * 15)
    assert change.state is ChangeState.APPLIED
    assert "p95 was above the objective of 300 ms" in change.outcome


def test_who_asks_for_it_gets_the_old_count_back() -> None:
    with world(SECOND, judged=SHORT, tags=LATE) as w:
        w.start()
        w.run(4)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        assert w.run(12).state is ChangeState.ROLLED_BACK
        assert w.box.counts(NAME) == {"AllTraffic": 1}


@pytest.mark.parametrize(("tag", "grows"), [("1000", True), ("999", False), ("a lot", False)])
def test_automatic_mode_grows_within_the_tag_as_it_is_when_it_begins(tag: str, grows: bool) -> None:
    with world(SECOND, judged=SHORT, by="policy", tags={**LATE, "rightsizer:may-grow": tag}) as w:
        change = w.start()
        w.run(4)
        assert w.box.counts(NAME) == {"AllTraffic": 2 if grows else 1}
        assert (w.change.state is ChangeState.REFUSED) is not grows
        assert grows or "rightsizer:may-grow" in change.outcome


def test_growth_that_nothing_asks_for_any_more_is_withdrawn_before_a_write() -> None:
    with world(SECOND, judged=SHORT, tags=LATE) as w:
        calm = samples.recommendation(NAME, evaluated_at=w.now + timedelta(seconds=1), finding=Finding.OPTIMIZED)
        w.store.save(calm, None)
        change = w.start()
        assert w.box.counts(NAME) == {"AllTraffic": 1}
        assert w.shown().state is ProposalState.WITHDRAWN
    assert change.reason is not None
    assert change.reason.code is Code.NEWER_JUDGEMENT
