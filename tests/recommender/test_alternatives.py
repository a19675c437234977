"""Alternatives that are not done on the same endpoint: when, at what price and risk, and never by themselves."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.option import OptionKind, Risk
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.usage import MetricWindow
from rightsizer.recommender.proposal import ChangePermission, permission_for_option
from rightsizer.recommender.queued_sleep import COLD_TAG
from rightsizer.wire import dumps, loads
from tests.dimensions.kit import bursts, judged, only, tolerant
from tests.recommender import kit

OPEN = Policy(by_itself=frozenset(OptionKind))
"""An account that lets every dimension be applied."""


@pytest.mark.parametrize("window", [bursts(), bursts(gpu=0.02)])
def test_no_alternative_is_applied_even_where_every_dimension_may_be(window: MetricWindow) -> None:
    found = judged(tolerant(), window, OPEN)
    assert found.chosen_option is not None
    assert not found.chosen_option.in_place
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.NOT_IN_PLACE)


def test_no_approve_button_is_shown_for_an_alternative() -> None:
    chosen = judged(tolerant(), bursts()).chosen_option
    assert chosen is not None
    assert not permission_for_option(chosen, ChangePermission(True, "")).approvable


def test_an_alternative_that_saves_more_stays_behind_what_is_done_in_place() -> None:
    found = judged(tolerant(60.0), bursts(memory=20.0, per_slot=1.0, gpu=5.0, latency_s=11.0))
    assert found.chosen_option is not None
    assert found.chosen_option.kind is OptionKind.INSTANCE_TYPE
    assert only(found, OptionKind.ASYNC).saving_usd_per_month > found.chosen_option.saving_usd_per_month
    kinds = [option.kind for option in found.options]
    assert kinds.index(OptionKind.INSTANCE_POOLS) < kinds.index(OptionKind.ASYNC)


DIMENSIONS = frozenset(OptionKind) - {
    OptionKind.REMOVE_VARIANT,  # of several variants only
    OptionKind.INSTANCE_TYPE,
    OptionKind.INSTANCE_COUNT,
    OptionKind.TYPE_AND_COUNT,
    OptionKind.FEWER_GPUS,
    OptionKind.COPIES,
    OptionKind.SCALE_IN,
    OptionKind.PLACEMENT,
}
"""All but plain changes of type and count, which are ruled out type by type, and what only a person orders."""


@pytest.mark.parametrize(
    ("endpoint", "window"),
    [
        pytest.param(tolerant(), bursts(), id="asynchronous is offered"),
        pytest.param(kit.endpoint(p95_s=0.72), kit.window(kit.steady()), id="nothing cheaper is fast enough"),
        pytest.param(kit.endpoint(p95_s=60.0), kit.window(kit.steady()), id="a smaller type"),
        pytest.param(kit.endpoint(p95_s=0.72), kit.window(kit.steady(gpu=0.02)), id="its GPU is not used"),
        pytest.param(kit.endpoint(count=4, p95_s=2.0), kit.window(kit.steady(per_slot=200.0)), id="a fleet"),
        pytest.param(replace(tolerant(), tags={COLD_TAG: "true"}), bursts(), id="it may sleep"),
        pytest.param(kit.endpoint(kind=EndpointKind.ASYNC), kit.window(kit.steady()), id="asynchronous already"),
        pytest.param(kit.endpoint(kind=EndpointKind.MULTI_MODEL), kit.window(kit.steady()), id="another kind"),
    ],
)
def test_every_dimension_is_offered_or_says_why_not(endpoint: Endpoint, window: MetricWindow) -> None:
    found = judged(endpoint, window)
    offered = {option.kind for option in found.options}
    ruled_out = {out.dimension for out in found.excluded}
    assert not DIMENSIONS - offered - ruled_out
    whole = (OptionKind.SCALE_TO_ZERO, OptionKind.PACKING, OptionKind.DELETE)
    assert not {kind for kind in whole if kind in offered} & ruled_out, "not both"


def test_alternatives_survive_the_wire() -> None:
    found = judged(tolerant(60.0), bursts(memory=20.0, per_slot=1.0, gpu=5.0, latency_s=11.0))
    assert loads(Recommendation, dumps(found)) == found


def test_an_endpoint_that_was_changed_an_hour_ago_gets_no_alternative() -> None:
    fresh = replace(tolerant(), modified_at=kit.NOW - timedelta(minutes=20))
    assert judged(fresh, bursts()).options == ()


@given(memory=st.floats(1, 99), gpu=st.floats(0.1, 99), latency=st.floats(0.05, 60), per_slot=st.floats(0.2, 20))
def test_every_alternative_saves_asks_its_owner_and_says_what_was_not_checked(
    memory: float, gpu: float, latency: float, per_slot: float
) -> None:
    usage = kit.steady(memory=memory, gpu=gpu, latency_s=latency, per_slot=per_slot)
    found = judged(tolerant(), kit.window(usage, days=14))
    for option in (o for o in found.options if not o.in_place and o.kind is not OptionKind.SCALE_TO_ZERO):
        assert option.saving_usd_per_month > Decimal(0)
        assert option.client_change
        assert option.not_checked
        assert option.risk >= Risk.MEDIUM
        assert "break-even" in option.facts
    places = [o.in_place for o in found.options if o.kind is not OptionKind.SCALE_TO_ZERO]
    assert places == sorted(places, reverse=True)
