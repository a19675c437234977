"""Alternatives that are not done on the same endpoint: when, at what price and risk, and never by themselves."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.dimensions.asynchronous import ASYNC_TAG, async_refusal
from rightsizer.domain.endpoint import Endpoint, EndpointKind, EndpointRef
from rightsizer.domain.history import History
from rightsizer.domain.option import Option, OptionKind, Risk
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Commitment
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.usage import MetricWindow
from rightsizer.recommender.proposal import ChangePermission, permission_for_option
from rightsizer.recommender.scale_to_zero import COLD_TAG
from rightsizer.wire import dumps, loads
from tests.recommender import kit
from tests.recommender.kit import judge

OPEN = Policy(by_itself=frozenset(OptionKind), several_at_once=True, ask_without_objective=False)
"""An account that lets every dimension be applied."""


def bursts(**usage: float) -> MetricWindow:
    """Two hours of long requests a day."""
    made = kit.steady(**{"per_slot": 4.0, "latency_s": 15.0, "gpu": 20.0, "memory": 90.0} | usage)
    quiet = ("Invocations", "Sum"), ("GPUUtilization", "Average")
    for key in quiet:
        value = made[key]
        assert isinstance(value, float)
        made[key] = lambda i, value=value: value if 108 <= i % 288 < 132 else 0.0  # type: ignore[misc]
    return kit.window(made)


def judged(
    endpoint: Endpoint, window: MetricWindow, policy: Policy | None = None, quotas: Mapping[str, int] | None = None
) -> Recommendation:
    types = kit.catalogue(kit.OTHERS)
    return judge(endpoint, [window], kit.prices(), types, quotas or {}, History(), policy or Policy(), kit.NOW)


def tolerant(p95_s: float = 22.0) -> Endpoint:
    return replace(kit.endpoint(p95_s=p95_s), tags={ASYNC_TAG: "true"})


def only(found: Recommendation, kind: OptionKind) -> Option:
    return next(option for option in found.options if option.kind is kind)


def test_asynchronous_is_priced_at_the_hours_that_it_is_awake() -> None:
    option = only(judged(tolerant(), bursts()), OptionKind.ASYNC)
    awake = float(option.usd_per_month / (option.usd_per_month + option.saving_usd_per_month))
    assert pytest.approx(awake, abs=0.01) == 2.25 / 24
    assert "4 requests per hour" in option.facts["break-even"]
    assert "InvokeEndpointAsync" in option.client_change
    assert (option.target.minimum, option.target.idle_minutes) == (0, 15)


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
    found = judged(tolerant(300.0), bursts(memory=20.0, per_slot=1.0, gpu=5.0))
    assert found.chosen_option is not None
    assert found.chosen_option.kind is OptionKind.INSTANCE_TYPE
    assert only(found, OptionKind.ASYNC).saving_usd_per_month > found.chosen_option.saving_usd_per_month
    kinds = [option.kind for option in found.options]
    assert kinds.index(OptionKind.INSTANCE_POOLS) < kinds.index(OptionKind.ASYNC)


def test_a_pool_names_the_new_type_first_and_costs_what_today_costs_while_the_fallback_serves() -> None:
    found = judged(kit.endpoint(p95_s=60.0), kit.window(kit.steady()))
    pool, chosen = only(found, OptionKind.INSTANCE_POOLS), found.chosen_option
    assert chosen is not None
    assert pool.target.pools == (chosen.target.instance_type, "ml.g6e.xlarge")
    assert pool.saving_usd_per_month == chosen.saving_usd_per_month
    assert f"USD {found.usd_per_month}" in pool.facts["while the fallback serves"]
    assert "InstancePools" in pool.client_change


def test_no_pool_is_offered_in_a_region_that_has_none() -> None:
    away = replace(kit.endpoint(p95_s=60.0), ref=EndpointRef("111122223333", "af-south-1", "chat"))
    found = judged(away, kit.window(kit.steady()))
    assert OptionKind.INSTANCE_POOLS not in {option.kind for option in found.options}
    assert "af-south-1" in _why(found, OptionKind.INSTANCE_POOLS)


def test_another_chip_is_at_least_a_medium_risk_and_names_the_compiler() -> None:
    quotas = {name: 0 for name in kit.TYPES if name != "ml.g5.xlarge"}
    found = judged(kit.endpoint("ml.g5.xlarge", p95_s=0.72), kit.window(kit.steady(memory=90.0)), quotas=quotas)
    option = found.chosen_option
    assert option is not None
    assert option.target.instance_type == "ml.inf2.xlarge"
    assert option.risk >= Risk.MEDIUM
    assert "AWS Neuron" in option.client_change
    assert any("engineering time" in said for said in option.not_checked)
    assert "1.42 times" in option.facts["break-even"]


def test_another_chip_that_is_too_slow_by_its_datasheet_is_ruled_out_with_both_figures() -> None:
    types = kit.catalogue({"ml.inf2.xlarge": (4, 16, 1, "0.99")})
    chip = types.types["ml.inf2.xlarge"]
    assert chip.accelerator is not None
    slow = replace(chip, accelerator=replace(chip.accelerator, fp16_tflops=20.0))
    known = replace(types, types={**types.types, slow.name: slow})
    window = [kit.window(kit.steady(memory=90.0))]
    tight = kit.endpoint("ml.g5.xlarge", p95_s=0.72)
    found = judge(tight, window, kit.prices(), known, {}, History(), Policy(), kit.NOW)
    assert found.chosen_option is None
    assert "4.38 times slower" in _why(found, OptionKind.OTHER_ARCHITECTURE, slow.name)


def test_burstable_types_are_never_named_and_the_host_must_hold_the_model() -> None:
    small = judged(kit.endpoint(p95_s=0.66), kit.window(kit.steady(gpu=0.02, memory=30.0)))
    large = judged(kit.endpoint(p95_s=0.66), kit.window(kit.steady(gpu=0.02, memory=90.0)))
    assert {o.target.instance_type for o in small.options if not o.in_place} == {"ml.m8g.2xlarge", "ml.m5.2xlarge"}
    assert {o.target.instance_type for o in large.options if not o.in_place} == {"ml.m8g.4xlarge", "ml.m5.4xlarge"}


def test_types_without_a_gpu_say_why_not_for_each_architecture() -> None:
    works = judged(kit.endpoint(p95_s=0.72), kit.window(kit.steady(gpu=30.0)))
    assert "its GPU works (up to 30.0 %)" in _why(works, OptionKind.OTHER_ARCHITECTURE, works.instance_type)
    unused = kit.window(kit.steady(gpu=0.02, memory=90.0))
    quotas = {"ml.m5.4xlarge": 0}
    found = judged(kit.endpoint(p95_s=0.66), unused, quotas=quotas)
    assert "quota for ml.m5.4xlarge endpoints is 0" in _why(found, OptionKind.OTHER_ARCHITECTURE, "ml.m5")
    assert [o.target.instance_type for o in found.options if not o.in_place] == ["ml.m8g.4xlarge"]
    assert not [out for out in found.excluded if ".m8g." in out.instance_type], "offered, so not ruled out"
    full = judged(kit.endpoint(p95_s=0.66), kit.window(kit.steady(gpu=0.02, memory=90.0, host=90.0)))
    assert "ml.m5.4xlarge has 64 GiB" in _why(full, OptionKind.OTHER_ARCHITECTURE, "ml.m5")
    assert "ml.m8g.4xlarge has 64 GiB" in _why(full, OptionKind.OTHER_ARCHITECTURE, "ml.m8g")
    cheapest = judge(
        kit.endpoint("ml.g4dn.xlarge"), [unused], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    assert "no arm64 type without a GPU is sold here for less" in str(cheapest.excluded)


DIMENSIONS = frozenset(OptionKind) - {
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


@pytest.mark.parametrize(
    ("endpoint", "window", "code", "said"),
    [
        pytest.param(kit.endpoint(), kit.window(kit.steady()), Code.NOT_CHEAPER, "0 quiet minutes a day", id="steady"),
        pytest.param(
            kit.endpoint(count=3), bursts(), Code.NOT_OPTED_IN, "callers would wait for a cold start", id="several"
        ),
        pytest.param(
            kit.endpoint(),
            bursts(),
            Code.NOT_OPTED_IN,
            "even after 240 minutes without a request, 56 of 1344 callers",
            id="cold",
        ),
    ],
)
def test_sleep_that_is_not_offered_says_why(endpoint: Endpoint, window: MetricWindow, code: Code, said: str) -> None:
    found = judged(endpoint, window)
    outs = [out for out in found.excluded if out.dimension is OptionKind.SCALE_TO_ZERO]
    assert [out.reason.code for out in outs] == [code]
    assert said in outs[0].reason.sentence


def test_sleep_that_a_commitment_pays_for_anyway_says_so() -> None:
    committed = Commitment(Decimal(9), 0.5, known=True)
    cold = replace(kit.endpoint(), tags={COLD_TAG: "true"})
    found = judge(cold, [bursts()], kit.prices(commitment=committed), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    said = _why(found, OptionKind.SCALE_TO_ZERO)
    assert "committed: $9 an hour" in said
    assert f"${found.usd_per_month:,.2f} a month" in said


@pytest.mark.parametrize(
    ("given", "usage", "said"),
    [
        pytest.param({"count": 2}, {}, "2 x ml.g6e.xlarge", id="two instances"),
        pytest.param({"instance_type": "ml.g5.12xlarge"}, {}, "with 4 GPU each", id="four GPUs"),
        pytest.param({"framework": "vllm"}, {"memory": 90.0, "swing": 0.0}, "pre-allocates", id="hidden memory"),
        pytest.param({}, {"per_slot": 400.0, "gpu": 70.0}, "works 74 % of its card", id="busy"),
        pytest.param({}, {}, "the endpoints of ml-team that fit beside it", id="it could share"),
    ],
)
def test_packing_says_why_no_partner_is_named(given: dict[str, Any], usage: dict[str, float], said: str) -> None:
    found = judged(kit.endpoint(**{"p95_s": 0.72} | given), kit.window(kit.steady(**usage)))
    assert said in _why(found, OptionKind.PACKING)
    assert (found.needs is None) is ("beside it" not in said)


def test_serverless_names_the_price_below_which_it_would_pay() -> None:
    found = judged(kit.endpoint(p95_s=0.72), kit.window(kit.steady(gpu=0.02, memory=90.0)))
    # 6 GB for 0.5 s of 0.02 requests a second of a month (26,280 s) against USD 1,698.71
    assert "26280 s" in _why(found, OptionKind.SERVERLESS)
    assert "USD 0.01077 per GB-second" in _why(found, OptionKind.SERVERLESS)


@pytest.mark.parametrize("kind", [EndpointKind.MULTI_MODEL, EndpointKind.MIG, EndpointKind.INFERENCE_COMPONENTS])
def test_other_kinds_are_told_that_nobody_looked(kind: EndpointKind) -> None:
    found = judged(replace(tolerant(), kind=kind, kinds=(kind,)), bursts())
    assert not [o for o in found.options if o.kind is OptionKind.ASYNC]
    assert kind.value in _why(found, OptionKind.ASYNC)


def test_alternatives_survive_the_wire() -> None:
    found = judged(tolerant(300.0), bursts(memory=20.0, per_slot=1.0, gpu=5.0))
    assert loads(Recommendation, dumps(found)) == found


def test_an_endpoint_that_was_changed_an_hour_ago_gets_no_alternative() -> None:
    fresh = replace(tolerant(), modified_at=kit.NOW - timedelta(minutes=20))
    assert judged(fresh, bursts()).options == ()


@given(p95=st.floats(0, 1e6), asleep=st.floats(0, 1), tag=st.sampled_from(["", "true", "TRUE", "yes", "false", "1"]))
def test_asynchronous_is_refused_unless_long_tolerated_and_with_pauses(p95: float, asleep: float, tag: str) -> None:
    refused = async_refusal(tag, p95, asleep, 15, 14, Policy()) is not None
    assert refused is not (p95 > 10 and tag.lower() == "true" and asleep > 0)


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


def _why(found: Recommendation, kind: OptionKind, of: str = "") -> str:
    outs = [out for out in found.excluded if out.dimension is kind and of in out.instance_type]
    return outs[0].reason.sentence
