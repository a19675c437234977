"""Small endpoints of one owner on one card: who fits with whom, what it saves, and until which load."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.endpoint import EndpointRef, Mode
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Needs, Pack, Recommendation
from rightsizer.domain.report import Report
from rightsizer.recommender import packing
from rightsizer.recommender.packing import find_packs
from rightsizer.render.report_page import report
from rightsizer.reporting.totals import Records, make_report
from rightsizer.wire import dumps, loads
from tests.recommender import kit
from tests.recommender.kit import judge


def small(name: str = "chat", framework: str = "pytorch", instance_type: str = "ml.g6e.xlarge") -> Recommendation:
    """A light endpoint that must keep its card for speed, judged."""
    endpoint = kit.endpoint(instance_type, mode=Mode.PROPOSE, p95_s=0.72, framework=framework)
    window = kit.window(kit.steady(memory=20.0))
    found = judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    return named(found, name)


def named(found: Recommendation, name: str, owner: str = "ml-team") -> Recommendation:
    return replace(found, ref=EndpointRef("111122223333", "us-east-1", name), owner=owner)


ONE = small()


def with_needs(name: str, gib: float = 10.0, busy: Sequence[float] = (0.1,) * 24) -> Recommendation:
    assert ONE.needs is not None
    return replace(named(ONE, name), needs=replace(ONE.needs, gpu_memory_gib=gib, busy=tuple(busy)))


def packed(*found: Recommendation) -> tuple[Pack, ...]:
    return find_packs(found, Policy())


def test_two_light_endpoints_share_one_card_and_save_the_other_instance() -> None:
    (pack,) = packed(ONE, small("faces"))
    assert pack.endpoints == ("chat", "faces")
    assert pack.saving_usd_per_month == ONE.usd_per_month
    assert pack.gpu_memory_gib <= pack.usable_gib
    assert "InferenceComponentName" in pack.client_change
    assert any("execution role" in said for said in pack.not_checked)


def test_memory_is_added_up_and_the_card_is_not_overfilled() -> None:
    assert packed(with_needs("a", 23.0), with_needs("b", 23.0)) == ()
    (pack,) = packed(with_needs("a", 22.0), with_needs("b", 22.0), with_needs("c", 22.0))
    assert len(pack.endpoints) == 2


def test_loads_of_the_same_hour_are_added_and_those_of_other_hours_are_not() -> None:
    day, night = (0.4,) * 12 + (0.0,) * 12, (0.0,) * 12 + (0.4,) * 12
    assert packed(with_needs("a", busy=day), with_needs("b", busy=day)) == ()
    (pack,) = packed(with_needs("a", busy=day), with_needs("b", busy=night))
    assert pack.peak_load == 0.4
    assert pack.headroom == 1.5


def test_the_hosts_memory_and_cores_must_suffice() -> None:
    assert ONE.needs is not None
    hungry = replace(with_needs("b"), needs=replace(ONE.needs, host_memory_gib=30.0))
    busy = replace(with_needs("c"), needs=replace(ONE.needs, vcpu=3.9))
    assert packed(with_needs("a"), hungry) == ()
    assert packed(with_needs("a"), busy) == ()


def test_partners_have_one_named_owner_account_and_card() -> None:
    other = replace(with_needs("b"), ref=EndpointRef("999922223333", "us-east-1", "b"))
    assert packed(with_needs("a"), named(with_needs("b"), "b", "fraud-team")) == ()
    assert packed(named(with_needs("a"), "a", ""), named(with_needs("b"), "b", "")) == ()
    assert packed(with_needs("a"), other) == ()
    assert packed(with_needs("a"), replace(small("b"), needs=replace(_needs(ONE), accelerator="A10G"))) == ()


def test_an_owner_who_says_off_is_left_alone() -> None:
    assert packed(with_needs("a"), replace(with_needs("b"), mode=Mode.OFF)) == ()


def test_a_pack_that_saves_no_more_than_the_partners_own_options_is_not_named() -> None:
    light = kit.endpoint(mode=Mode.PROPOSE, p95_s=60.0)
    window = [kit.window(kit.steady())]
    cheaper = judge(light, window, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert cheaper.saving_usd_per_month > 1000
    assert packed(named(cheaper, "a"), named(cheaper, "b")) == ()


def test_a_multi_model_endpoint_is_named_only_for_one_framework() -> None:
    (same,) = packed(ONE, small("b"))
    (mixed,) = packed(ONE, small("b", framework="triton"))
    assert "multi-model" in same.way
    assert "multi-model" not in mixed.way


def test_several_gpus_hidden_memory_and_fleets_have_no_needs() -> None:
    def needs(**given: object) -> Needs | None:
        endpoint = kit.endpoint(p95_s=0.72, **given)  # type: ignore[arg-type]
        window = [kit.window(kit.steady(swing=0.0, memory=90.0))]
        return judge(endpoint, window, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW).needs

    assert needs(framework="vllm") is None
    assert needs(count=2) is None
    assert needs(instance_type="ml.g5.12xlarge") is None


def test_the_report_says_who_could_share_and_survives_the_wire() -> None:
    found = [ONE, small("faces")]
    at = datetime(2026, 11, 20, tzinfo=UTC)
    told = replace(
        make_report(Records("111122223333", "us-east-1", found, (), (), ()), at, at, at), packs=packed(*found)
    )
    page = report(told)
    assert "chat, faces" in page
    assert "one multi-model endpoint" in page
    assert loads(Report, dumps(told)) == told


def first_fit(found: Sequence[Recommendation]) -> list[tuple[str, ...]]:
    """Each endpoint in the first group that holds it, by trying every group."""
    groups: list[list[Recommendation]] = []
    for one in found:
        for group in groups:
            needs = [_needs(each) for each in (*group, one)]
            loads = [round(sum(hour), 4) for hour in zip(*(n.busy for n in needs), strict=True)]
            if round(sum(n.gpu_memory_gib for n in needs), 2) <= needs[0].usable_gib and max(loads) <= 0.6:
                group.append(one)
                break
        else:
            groups.append([one])
    return sorted(tuple(one.ref.name for one in group) for group in groups if len(group) > 1)


@given(st.lists(st.tuples(st.integers(1, 43), st.integers(0, 60), st.integers(0, 60)), max_size=14))
def test_each_endpoint_joins_the_first_group_with_room(given: list[tuple[int, int, int]]) -> None:
    found = [
        with_needs(f"e{i:02}", gib, (day / 100,) * 12 + (night / 100,) * 12)
        for i, (gib, day, night) in enumerate(given)
    ]
    found = [replace(one, needs=replace(_needs(one), host_memory_gib=0.1, vcpu=0.1)) for one in found]
    packs = find_packs(found, replace(Policy(), minimum_saving_usd=Decimal(0), minimum_saving_share=0.0))
    assert sorted(pack.endpoints for pack in packs) == first_fit(found)


def test_room_is_looked_for_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten thousand endpoints of one owner nobody finds the best partners; that each has some is enough."""
    monkeypatch.setattr(packing, "LOOKS", 1)
    assert packed(with_needs("a"), with_needs("b"), with_needs("c")) == ()


@given(st.lists(st.tuples(st.floats(0.1, 44), st.floats(0, 0.6)), max_size=9))
def test_no_group_ever_overfills_its_card_and_nobody_is_in_two(given: list[tuple[float, float]]) -> None:
    found = [with_needs(f"e{i}", gib, (load,) * 24) for i, (gib, load) in enumerate(given)]
    made = find_packs(found, Policy())
    names = [name for pack in made for name in pack.endpoints]
    assert len(names) == len(set(names))
    for pack in made:
        assert pack.gpu_memory_gib <= pack.usable_gib + 0.05
        assert pack.peak_load <= Policy().rho_one + 1e-9
        assert pack.beyond_usd_per_month >= Decimal(50)


def _needs(one: Recommendation) -> Needs:
    assert one.needs is not None
    return one.needs
