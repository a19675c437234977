"""A lack of capacity: the old type is the fallback, the next try is later, and the third one is the last."""

from datetime import timedelta

import pytest

from rightsizer.changes.reconcile import leftover_configs
from rightsizer.domain.change import ChangeState
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import OptionKind
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.proposal import ProposalState
from tests.changing import scenarios
from tests.changing.world import NAME, NEW_TYPE, OLD_TYPE, World, world


def lacking(w: World, times: int) -> None:
    w.box.script_deployment(NAME, *["capacity"] * times)


def test_after_a_lack_of_capacity_the_pools_are_tried_six_hours_later() -> None:
    with world() as w:
        lacking(w, 1)
        began = w.now
        w.start()
        w.run(3)
        waiting, shown = w.change, w.shown()
        change = w.run(12)
        config = w.box.client("sagemaker").describe_endpoint_config(EndpointConfigName=w.box.config_name(NAME))
    assert waiting.state is ChangeState.PLANNED
    assert waiting.next_due is not None
    assert waiting.next_due - began > timedelta(hours=6)
    assert "want of capacity" in shown.outcome
    assert shown.state is ProposalState.APPLYING
    assert change.state is ChangeState.PROVEN, change.outcome
    assert change.option.kind is OptionKind.INSTANCE_POOLS
    pools = {p["Priority"]: p["InstanceType"] for p in config["ProductionVariants"][0]["InstancePools"]}
    assert pools == {1: NEW_TYPE, 2: OLD_TYPE}
    assert len(leftover_configs(change)) == 2, "the configuration of the first try stays too"


def test_a_proven_change_teaches_how_the_new_type_served() -> None:
    with world() as w:
        w.box.clock.advance(timedelta(hours=2))
        w.start()
        change = w.run(12)
        (past,) = w.store.history(NAME).endpoint
    assert change.measured["mean_s"] > 0
    assert past.latency_ratio is not None
    assert past.latency_ratio > 0


def watched_on(w: World, pool: str) -> None:
    """The change has turned, and this pool is the one that had capacity."""
    w.start()
    while w.change.turned_at is None:
        w.run(0.25)
    w.box.world.fleet.endpoint(NAME).variants["AllTraffic"].pool = pool


def realised(w: World) -> list[LedgerEntry]:
    found = w.ledger.entries(w.change.created_at, w.now + timedelta(days=1))
    return [entry for entry in found if entry.kind == "realised"]


def test_the_first_pool_is_booked_and_proven_as_the_new_type() -> None:
    with world(scenarios.POOLS.option) as w:
        watched_on(w, "")
        change = w.run(12)
        (entry,) = realised(w)
    assert change.state is ChangeState.PROVEN
    assert change.fallback_hours == change.unseen_hours == 0
    assert float(entry.usd) == pytest.approx(float(change.saving_usd_per_month) / 730 * entry.hours, rel=0.02)


def test_an_endpoint_with_pools_is_refused_and_says_what_to_deploy_first() -> None:
    with world(kind=EndpointKind.INSTANCE_POOLS) as w:
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "deploy a configuration with one type first" in change.outcome
