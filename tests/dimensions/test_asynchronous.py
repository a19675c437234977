"""A new asynchronous endpoint: when it is offered, and at what price."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.dimensions.asynchronous import Asynchronous, async_refusal
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from tests.dimensions.kit import TYPE, bursts, judged, only, planned, said, tolerant, why


def test_asynchronous_is_priced_at_the_hours_that_it_is_awake() -> None:
    option = only(judged(tolerant(), bursts()), OptionKind.ASYNC)
    awake = float(option.usd_per_month / (option.usd_per_month + option.saving_usd_per_month))
    assert pytest.approx(awake, abs=0.01) == 2.25 / 24
    assert "4 requests per hour" in option.facts["break-even"]
    assert "InvokeEndpointAsync" in option.client_change
    assert (option.target.minimum, option.target.idle_minutes) == (0, 15)


@pytest.mark.parametrize("kind", [EndpointKind.MULTI_MODEL, EndpointKind.INFERENCE_COMPONENTS])
def test_other_kinds_are_told_that_nobody_looked(kind: EndpointKind) -> None:
    found = judged(replace(tolerant(), kind=kind, kinds=(kind,)), bursts())
    assert not [o for o in found.options if o.kind is OptionKind.ASYNC]
    assert kind.value in why(found, OptionKind.ASYNC)


@given(p95=st.floats(0, 1e6), asleep=st.floats(0, 1), tag=st.sampled_from(["", "true", "TRUE", "yes", "false", "1"]))
def test_asynchronous_is_refused_unless_long_tolerated_and_with_pauses(p95: float, asleep: float, tag: str) -> None:
    refused = async_refusal(tag, p95, asleep, 15, 14, Policy()) is not None
    assert refused is not (p95 > 10 and tag.lower() in ("true", "yes") and asleep > 0)


def test_its_owner_makes_the_endpoint_and_keeps_the_old_one() -> None:
    assert said(Asynchronous()) == (
        "become an asynchronous endpoint",
        "sends the callers back to this endpoint, as long as it is kept",
    )
    assert planned(Asynchronous(), Target(TYPE, 1)) is Code.NOT_IN_PLACE
