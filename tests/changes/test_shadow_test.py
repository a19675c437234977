"""A shadow test: beside the fleet at the busiest hour, for as long as was asked, and gone after it."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.changes.plan import shadow_name
from rightsizer.changes.plan import test_hours as hours_of
from rightsizer.domain.change import ChangeState, FailureClass
from rightsizer.domain.demand import Peak
from rightsizer.domain.plan import StepKind
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.recommendation import Gate
from tests.changes.account import MONDAY, NAME, NEW_TYPE, OLD, OLD_TYPE, Load
from tests.changes.memory import World, an_option, autoscaled, world
from tests.changes.test_ground import paged

OPTION = an_option(test_hours=1.0, switch_usd=Decimal(80), test_usd=Decimal("4.5"))
TAGS = {"rightsizer:mode": "auto", "rightsizer:shadow-ok": "true"}
PEAK = Peak(14, (0, 1, 2, 3, 4))


def shadowed(option: Any = OPTION, **known: Any) -> World:
    return world(option, **{"tags": TAGS, "gate": Gate.TEST, "scaling": autoscaled(1, 4), "count": 2, **known})


def test_a_shadow_takes_a_copy_of_the_requests_and_leaves_the_endpoint_as_it_was() -> None:
    w = shadowed()
    w.start()
    w.until(lambda change: change.turned_at)
    (shadow,) = w.account.configs[w.account.config_name]["ShadowProductionVariants"]
    change = w.run(8)
    assert (shadow["VariantName"], shadow["InstanceType"], shadow["InitialInstanceCount"]) == (
        "AllTraffic-shadow",
        NEW_TYPE,
        1,
    )
    assert (change.state, w.account.config_name) == (ChangeState.ROLLED_BACK, OLD)
    assert w.account.writes(StepKind.DEREGISTER_TARGET) == [], "production keeps its type"
    (entry,) = w.kept.booked_entries.values()
    assert (entry.kind, entry.usd, entry.note) == ("switch-cost", Decimal("4.5"), "price of the shadow test")
    assert [usd for _, usd in w.kept.budgets.values()] == [Decimal("4.5")]
    assert w.told[-1][0] == f"{NAME}: shadow test ended"


def test_a_fleet_that_grew_before_and_beside_a_shadow_stays_grown() -> None:
    w = shadowed(count=1)
    w.account.scale(4)
    w.start()
    w.until(lambda change: change.turned_at)
    assert w.account.counts["AllTraffic"][1] == 4
    w.account.scale(6)
    w.run(8)
    assert (w.account.counts["AllTraffic"][1], w.account.config_name) == (6, OLD)


def test_a_shadow_test_waits_for_the_busiest_hour_says_so_once_and_sees_it() -> None:
    w = shadowed(replace(OPTION, test_hours=2.0), peak=PEAK)
    waiting = w.start()
    assert w.account.done == []
    assert "to see the busiest hour, 14:00 UTC" in waiting.outcome
    assert "begins on Mon 2 Nov 2026, 13:00 UTC" in waiting.outcome
    change = w.run(24)
    assert sum(1 for entry in change.journal if entry.step == "wait") == 1
    assert change.turned_at is not None
    begins, ends = change.turned_at, change.turned_at + timedelta(seconds=change.plan.test_s)
    assert begins <= begins.replace(hour=14, minute=0) < begins.replace(hour=15, minute=0) <= ends


def test_a_shadow_test_that_missed_every_peak_for_days_begins_all_the_same() -> None:
    w = shadowed(limits=ChangeLimits(incident_alarms=("pager",)), peak=PEAK)
    paged(w, "ALARM")
    w.start()
    w.run(24 * 6 + 0.25)
    assert w.change.turned_at is None
    paged(w, "OK")
    turned = w.run(6).turned_at
    assert turned is not None
    assert turned.date() == (MONDAY + timedelta(days=6)).date()


def test_a_shadow_test_that_waits_gives_way_where_users_suffer_meanwhile() -> None:
    w = shadowed(peak=PEAK)
    w.start()
    back = replace(w.proposal.recommendation, options=(replace(OPTION, restores=True),), gate=Gate.PROPOSE)
    w.kept.judge(back)
    change = w.run(1.5)
    assert change.state is ChangeState.REFUSED
    assert "the shadow test gives way to what brings room back" in change.outcome
    assert w.account.done == []


def test_a_tag_that_was_taken_away_since_the_decision_stops_a_shadow_test_before_it_begins() -> None:
    w = shadowed(tags={"rightsizer:mode": "auto"})
    change = w.start()
    assert (change.state, w.account.done) == (ChangeState.REFUSED, [])
    assert "only the tag rightsizer:shadow-ok=true allows" in change.outcome


def test_a_shadow_whose_removal_fails_is_an_incident_with_the_line() -> None:
    w = shadowed()
    w.start()
    w.until(lambda change: change.turned_at)
    w.account.endings = ["health_check"]
    change = w.run(12)
    assert (change.state, change.failure) == (ChangeState.HANDED_OVER, FailureClass.HEALTH_CHECK)
    assert w.told[-1][0].startswith(f"INCIDENT {NAME}")
    assert any("update-endpoint" in line for line in change.remaining)
    assert [(past.ended, past.is_refuted) for past in w.past()] == [("tested", False)], "it says nothing about the type"


def test_a_shadow_states_no_risk_for_nobody_is_served_by_it() -> None:
    w = shadowed()
    w.account.endings = ["health_check"]
    w.start()
    w.run(12)
    (past,) = w.past()
    assert (past.ended, past.failure, past.stated_risk) == ("update-failed", "health-check", None)


def test_a_shadow_that_is_slower_teaches_by_how_much() -> None:
    def slower(at: datetime, variant: str, kind: str) -> Load:
        return Load(p95_s=0.2 if kind == OLD_TYPE else 0.3)

    w = shadowed()
    w.account.load = slower
    w.start()
    change = w.run(8)
    (past,) = w.past()
    assert "tested: the mean latency on ml.g5.xlarge was 1.5" in change.outcome
    assert past.latency_ratio == pytest.approx(1.5, rel=0.05)


@pytest.mark.parametrize(("asked", "hours"), [(None, 2.0), (0.2, 1.0), (5.0, 5.0), (99.0, 24.0)])
def test_a_test_takes_between_an_hour_and_a_day(asked: float | None, hours: float) -> None:
    assert hours_of(an_option(test_hours=asked)) == hours


def test_the_name_of_a_shadow_fits() -> None:
    assert shadow_name("v" * 63) == "v" * 56 + "-shadow"
    assert shadow_name("v" * 55 + "-x") == "v" * 55 + "-shadow"
