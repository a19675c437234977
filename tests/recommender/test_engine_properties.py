"""Properties of the decision that hold for any load, and the replay that stands behind a proposal."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import NoPrice, PriceTable
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.demand import latency_of
from rightsizer.recommender.latency import find_service_time
from tests.recommender import kit
from tests.recommender.kit import judge

memory = st.floats(1, 99)
few = settings(max_examples=12, deadline=None)


def run(catalogue: Catalogue | None = None, prices: PriceTable | None = None, **usage: float) -> Recommendation:
    return judge(
        kit.endpoint(),
        [kit.window(kit.steady(**usage))],
        prices or kit.prices(),
        catalogue or kit.catalogue(),
        {},
        History(),
        Policy(),
        kit.NOW,
    )


@few
@given(memory)
def test_a_chosen_type_always_fits_the_memory_that_was_seen(share: float) -> None:
    found = run(memory=share)
    if found.chosen_option is not None:
        hardware = kit.catalogue().types[found.chosen_option.target.instance_type]
        assert hardware.accelerator is not None
        seen = share / 100 * 44.7
        assert hardware.accelerator.usable_gib >= min(seen, 44.5)


def test_a_type_without_a_price_is_never_a_saving() -> None:
    table = kit.prices()
    reason = Reason(Code.NO_PRICE, "not sold here")
    unpriced = {name: NoPrice(name, "us-east-1", reason) for name in table.prices if "g4dn" in name}
    found = run(prices=replace(table, prices={**table.prices, **unpriced}))
    assert all("g4dn" not in o.target.instance_type for o in found.options)
    assert {e.reason.code for e in found.excluded if "g4dn" in e.instance_type} == {Code.NO_PRICE}


def test_the_order_of_the_catalogue_does_not_matter() -> None:
    turned = Catalogue(dict(reversed(list(kit.catalogue().types.items()))))
    assert run(turned).chosen_option == run().chosen_option


@few
@given(st.floats(5, 40), st.floats(0, 40))
def test_more_memory_in_use_never_picks_a_smaller_card(share: float, more: float) -> None:
    def usable(found: Recommendation) -> float:
        name = found.chosen_option.target.instance_type if found.chosen_option else "ml.g6e.xlarge"
        chip = kit.catalogue().types[name].accelerator
        return chip.usable_gib if chip else math.inf

    assert usable(run(memory=share + more)) >= usable(run(memory=share))


def test_the_same_days_always_give_the_same_answer() -> None:
    assert run() == run()


def test_duplicated_windows_do_not_double_the_evidence() -> None:
    window = kit.window(kit.steady())
    once = judge(kit.endpoint(), [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert once.evidence is not None
    twice = judge(kit.endpoint(), [window, window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert twice.evidence is not None
    assert twice.evidence.requests == once.evidence.requests


def test_a_proposal_carries_the_replay_of_its_fortnight() -> None:
    found = run()
    assert found.replay is not None
    assert found.replay.days == 14
    assert len(found.replay.hourly_load) == 14 * 24
    assert found.replay.requests_over_objective == 0
    assert found.replay.requests == 14 * 288 * 6
    assert found.replay.objective_s == 60.0


def test_a_test_carries_the_replay_at_the_speed_that_it_is_to_show() -> None:
    slower = kit.window(kit.steady(latency_s=8.0))
    tight = replace(kit.endpoint(p95_s=30.0), framework="vllm")
    tested = judge(tight, [slower], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert tested.gate is Gate.TEST
    assert tested.chosen_option is not None
    assert tested.chosen_option.p95_s is not None
    assert tested.replay is not None
    assert tested.replay.worst_p95_s is not None
    assert tested.chosen_option.p95_s <= tested.replay.worst_p95_s <= 30.0, "waiting included, within the objective"


def test_a_test_and_the_change_after_it_are_priced_apart_and_paid_back_together() -> None:
    tight = replace(kit.endpoint(p95_s=30.0), framework="vllm")
    days = [kit.window(kit.steady(latency_s=8.0))]
    option = judge(tight, days, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW).chosen_option
    assert option is not None
    policy, hours = Policy(), option.test_hours
    assert hours is not None
    provision, fleet = policy.provision_minutes / 60, kit.prices().find(tight.variants[0].instance_type)
    assert fleet is not None
    test = float(option.price.usd_per_hour) * (hours + provision) + 2 * provision * float(fleet.usd_per_hour)
    overlap = float(option.price.usd_per_hour) * option.target.instance_count * provision
    once = option.switch_usd + option.test_usd
    assert float(option.test_usd) == pytest.approx(test, abs=0.01)
    assert float(option.switch_usd) == pytest.approx(overlap, abs=0.01)
    assert option.payback_days == pytest.approx(30 * float(once / option.saving_usd_per_month), abs=0.01)


def test_waiting_is_taken_out_of_a_busy_queue_and_left_alone_in_an_idle_one() -> None:
    found = run(per_slot=6.0)
    assert found.evidence is not None
    days = daily_usage(kit.window(kit.steady()), VariantSetup(kit.catalogue().types["ml.g6e.xlarge"], 1))
    latency = latency_of(days)
    assert latency is not None
    assert find_service_time(latency, [(0.0001, 1.0)], 1).mean_s > 0.99 * latency.mean_s
    assert find_service_time(latency, [(1.2, 1.0)], 1).mean_s < 0.8 * latency.mean_s
