"""A lack of capacity: the old type is the fallback, the next try is later, and the third one is the last."""

from datetime import timedelta

import pytest

from rightsizer.model.change import ChangeState, FailureClass
from rightsizer.model.option import OptionKind
from rightsizer.model.proposal import ProposalState
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


def test_the_third_lack_of_capacity_is_the_end_and_is_remembered() -> None:
    with world() as w:
        lacking(w, 3)
        w.start()
        change = w.run(60)
        updates = w.box.calls.of("sagemaker", "UpdateEndpoint")
        past = w.store.history(NAME).endpoint
    assert change.state is ChangeState.ROLLED_BACK
    assert change.failure is FailureClass.CAPACITY
    assert len(updates) == 3
    assert [p.failure for p in past] == ["capacity"]


def test_who_asks_back_between_two_tries_ends_the_change() -> None:
    from rightsizer.flows.orders import Orders

    with world() as w:
        lacking(w, 1)
        w.start()
        w.run(3)
        Orders(w.journal).ask_back(w.change.id, "U1", w.now)
        change = w.run(12)
    assert change.state in (ChangeState.REFUSED, ChangeState.ROLLED_BACK), change.state
    assert "U1" in change.outcome


def test_the_realised_saving_counts_the_instances_that_really_ran() -> None:
    """Somebody doubles the fleet while the change is watched: the saving of those hours is smaller."""
    with world() as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.25)
        who = {"VariantName": "AllTraffic", "DesiredInstanceCount": 2}
        with w.box.gate.unrecorded():
            w.box.client("sagemaker").update_endpoint_weights_and_capacities(
                EndpointName=NAME, DesiredWeightsAndCapacities=[who]
            )
        change = w.run(12)
        entry = next(e for e in w.ledger.entries(change.created_at, w.now + timedelta(days=1)) if e.kind == "realised")
    plain = float(change.saving_usd_per_month) / 730 * entry.hours
    each = float(change.option.usd_per_month) / 730
    assert change.state is ChangeState.PROVEN, change.outcome
    assert change.instance_hours > 1.5 * entry.hours
    assert float(entry.usd) == pytest.approx(plain - each * (change.instance_hours - entry.hours), rel=1e-3)


def test_a_proven_change_teaches_how_the_new_type_served() -> None:
    with world() as w:
        w.box.clock.advance(timedelta(hours=2))
        w.start()
        change = w.run(12)
        (past,) = w.store.history(NAME).endpoint
    assert change.measured["mean_s"] > 0
    assert past.latency_ratio is not None
    assert past.latency_ratio > 0
