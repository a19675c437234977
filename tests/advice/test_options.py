"""What the options say: hosting by traffic, Spot and deadlines in training, contradictions, the optimiser's bound."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

import rightsizer
from rightsizer.advice.advise import advise
from rightsizer.advice.answer import Action, Advice, HardwareClass, Hosting, Purchase
from rightsizer.advice.market import class_of, dollars, known_types, snapshot
from rightsizer.advice.memory import Precision
from rightsizer.advice.models import architectures
from rightsizer.advice.rules import Rule
from rightsizer.domain.policy import Policy
from rightsizer.errors import InputError
from rightsizer.recommender.slowdown import expected_slowdown

LLM = {"kind": "llm", "name": "llama-3-8b"}


def on(task: str, model: Mapping[str, Any] = LLM, **parts: Any) -> Advice:
    return advise({"task": task, "model": model, **parts})


def test_the_library_offers_advice_by_its_name() -> None:
    assert rightsizer.advise is advise
    with pytest.raises(AttributeError, match="no attribute 'advice_on'"):
        _ = rightsizer.advice_on


def test_a_class_comes_from_the_processor_and_not_from_the_first_letter() -> None:
    wanted = {
        "ml.trn1.2xlarge": HardwareClass.TRN,
        "ml.inf2.xlarge": HardwareClass.INF,
        "ml.c6g.xlarge": HardwareClass.CPU_COMP,
        "ml.t2.medium": HardwareClass.CPU_BURST,
        "ml.r8g.medium": HardwareClass.CPU_MEM,
        "ml.g6e.xlarge": HardwareClass.GPU_G,
        "ml.p5.48xlarge": HardwareClass.GPU_P,
    }
    for name, hardware in wanted.items():
        found = known_types().find(name)
        assert found is not None
        assert class_of(found) is hardware, name


def test_a_notebook_is_advised_for_working_hours_unless_others_are_given() -> None:
    (notebook,) = on("notebook").options
    (always,) = on("notebook", traffic={"hours_per_day": 24}).options
    assert "176 of 730 hours a month, 76 % fewer" in notebook.words
    assert notebook.cost.usd_per_month is not None
    assert always.cost.usd_per_month is not None
    assert notebook.cost.usd_per_month < always.cost.usd_per_month / 4


def test_a_copy_that_needs_the_last_of_the_memory_is_tried_first() -> None:
    tight, ample = on("real-time", {"name": "deepseek-r1"}).options[:2]
    assert tight.memory is not None
    assert tight.memory.needed_gib / tight.memory.usable_gib > 0.97
    assert (tight.action, ample.action) == (Action.TEST, Action.APPLY)


def test_a_region_without_prices_is_named() -> None:
    with pytest.raises(InputError, match="mars-north-1"):
        on("real-time", constraints={"region": "mars-north-1"})


def test_prices_of_another_region_are_that_regions() -> None:
    here = on("real-time").options[0]
    there = on("real-time", constraints={"region": "eu-central-1"}).options[0]
    assert there.cost.region == "eu-central-1"
    assert there.cost.usd_per_hour != here.cost.usd_per_hour
    assert here.cost.as_of


def test_more_traffic_needs_more_instances_and_a_dearer_month() -> None:
    one, many = (on("real-time", traffic={"requests_per_second": rate}) for rate in (1, 60))
    assert float(many.options[0].cost.usd_per_month or 0) > float(one.options[0].cost.usd_per_month or 0)


def test_serverless_wins_at_little_traffic_and_loses_at_much() -> None:
    advice = on("real-time", {"kind": "classical", "memory_gib": 0.5}, data={"seconds_per_request": 0.2})
    cheapest = [row["cheapest_online"] for row in advice.costs_by_traffic]
    assert cheapest[0] == "serverless"
    assert cheapest[-1] == "real-time"


def test_rare_requests_of_unknown_duration_have_the_most_that_serverless_can_cost() -> None:
    encoder = {"kind": "transformer", "name": "bert-base"}
    first = on("real-time", encoder, traffic={"requests_per_month": 3600}).options[0]
    assert first.hosting is Hosting.SERVERLESS
    assert first.cost.at_most
    assert first.cost.usd_per_month == Decimal("8.64")  # 3,600 requests of 60 s and 2 GB at USD 0.00002 a GB and second
    advice = on("real-time", encoder, traffic={"requests_per_month": 3600})
    assert advice.costs_by_traffic[0]["serverless at most"] == 0.24
    assert any("requests a month of 60 s each, and below more of shorter ones" in each.text for each in advice.notes)
    measured = on("real-time", encoder, traffic={"requests_per_month": 3600}, data={"seconds_per_request": 0.5})
    assert not measured.options[0].cost.at_most
    assert measured.options[0].cost.usd_per_month == Decimal("0.07")


def test_nothing_with_a_gpu_is_serverless_and_no_endpoint_is_on_spot() -> None:
    advice = on("real-time", traffic={"shape": "intermittent", "requests_per_month": 500}, ask=["serverless", "spot"])
    assert {each.subject for each in advice.refused} >= {"serverless", "spot"}
    assert all(each.hosting is not Hosting.SERVERLESS for each in advice.options)
    assert all(each.purchase is not Purchase.SPOT for each in advice.options)
    assert advice.options[0].hosting is Hosting.ASYNC


def test_heads_that_cannot_be_shared_rule_a_type_out() -> None:
    model = {"kind": "llm", "name": "qwen2.5-7b", "precision": "fp32"}
    assert architectures()["qwen2.5-7b"].heads % 8
    for each in on("real-time", model).options:
        assert "over 8" not in each.plan


def test_neuron_pads_heads_that_its_chips_do_not_divide() -> None:
    model = {"name": "llama-3.3-70b", "neuron": True}
    asked = advise({"task": "real-time", "model": model, "objectives": {"goal": "cost"}, "ask": ["ml.inf2.48xlarge"]})
    assert [each.plan for each in asked.options if each.hardware is HardwareClass.INF] == ["tensor parallel over 6"]
    assert "ml.inf2.48xlarge" not in [each.subject for each in asked.refused]


def test_an_objective_that_nothing_can_meet_leaves_no_option_and_says_so() -> None:
    advice = on("real-time", objectives={"first_token_ms": 0.5})
    assert advice.options == ()
    assert any("none meets the objective" in text for text in advice.contradictions)
    assert any("hopeful end" in each.reason.text for each in advice.refused)


def test_a_tighter_objective_serves_fewer_at_once() -> None:
    loose, tight = (on("real-time", objectives={"tokens_per_second": each}).options for each in (2, 30))
    dear = {each.instance_type: each for each in tight}
    for each in loose:
        if each.instance_type in dear and each.estimates:
            assert dear[each.instance_type].estimates[0].interval.middle <= each.estimates[0].interval.middle


def test_a_deadline_adds_nodes() -> None:
    model, data = {"kind": "llm", "parameters": 7e9}, {"tokens": 1e11}
    slow = on("training", model, data=data).options[0]
    fast = on("training", model, data=data, objectives={"deadline_hours": 100}).options[0]
    assert fast.count > slow.count
    assert fast.estimates[0].interval.high <= 100, "also at the slow end of the range"
    assert fast.action is Action.APPLY
    assert "EFA" in fast.words


def test_a_deadline_that_may_be_missed_needs_a_test_and_says_so() -> None:
    model, data = {"kind": "llm", "parameters": 7e9}, {"tokens": 1e11}
    late = on("training", model, data=data, objectives={"deadline_hours": 0.1}).options
    assert all(each.action is not Action.APPLY for each in late)
    assert "beyond the deadline of 0.1 h" in late[0].words
    between = 1.01 * late[0].estimates[0].interval.middle
    found = on("training", model, data=data, objectives={"deadline_hours": between}).options
    near = next(each for each in found if each.instance_type == late[0].instance_type)
    assert (near.action, near.count) == (Action.TEST, late[0].count)
    assert "at its slow end: it may miss the deadline" in near.words
    assert near.estimates[0].interval.middle <= between < near.estimates[0].interval.high


def test_checkpoints_open_spot_and_their_lack_closes_it() -> None:
    data = {"tokens": 1e8}
    with_them = on("fine-tuning", data=data, constraints={"checkpoints": True}).options[0]
    without = on("fine-tuning", data=data, constraints={"checkpoints": False}).options[0]
    assert (with_them.purchase, without.purchase) == (Purchase.SPOT, Purchase.ON_DEMAND)
    assert "MaxWaitTimeInSeconds" in with_them.words
    spot, full = with_them.cost.usd_per_run, without.cost.usd_per_run
    assert spot is not None
    assert full is not None
    assert spot.middle < full.middle < 1000


def test_adapters_need_less_hardware_than_full_training() -> None:
    full = on("training", objectives={"goal": "experiment"}).options[0]
    lora = on("fine-tuning", {**LLM, "method": "lora"}, objectives={"goal": "experiment"}).options[0]
    qlora = on("fine-tuning", {**LLM, "method": "qlora"}, objectives={"goal": "experiment"}).options[0]
    prices = [float(each.cost.usd_per_hour or 0) for each in (qlora, lora, full)]
    assert prices == sorted(prices)
    assert prices[0] < prices[2] / 4


def test_adapters_go_on_one_accelerator_where_a_working_day_is_enough_and_else_to_the_cheapest_run() -> None:
    large = {**LLM, "name": "llama-3-70b", "method": "qlora"}
    few = on("fine-tuning", large, data={"tokens": 10e6}).options
    many = on("fine-tuning", large, data={"tokens": 100e6}).options
    by_cost = on("fine-tuning", large, data={"tokens": 10e6}, objectives={"goal": "cost"}).options
    counts = [each[0].count * each[0].accelerators for each in (few, many, by_cost)]
    assert counts[0] == 1
    assert min(counts[1:]) >= 8
    assert any(reason.source == Rule.ADAPTERS_BY_HOUR for reason in few[0].reasons)


def test_an_endpoint_that_runs_is_bounded_as_the_optimiser_bounds_it() -> None:
    running = {"instance_type": "ml.g5.xlarge", "p95_ms": 100, "gpu_memory_max_gib": 6, "gpu_memory_days": 14}
    advice = on("real-time", {"kind": "vision"}, running=running, objectives={"p95_ms": 500})
    old, new = known_types().find("ml.g5.xlarge"), known_types().find("ml.g4dn.xlarge")
    assert old is not None
    assert new is not None
    assert old.accelerator is not None
    assert new.accelerator is not None
    bound = expected_slowdown(old.accelerator, new.accelerator, Policy()).bound * 100
    assert advice.options[0].instance_type == "ml.g4dn.xlarge"
    assert f"at most {bound:.0f} ms" in advice.options[0].words


def test_an_unknown_running_type_is_an_error_that_names_it() -> None:
    with pytest.raises(InputError, match=r"ml\.moon\.large"):
        on("real-time", running={"instance_type": "ml.moon.large"})


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"traffic": {"requests_per_second": 5, "peak_requests_per_second": 1}}, "below the mean rate"),
        ({"model": {"kind": "llm", "parameters": 7e9, "cpu_only": True}, "ask": ["gpu"]}, "rules GPUs out"),
        ({"data": {"seconds_per_request": 90}}, "ends after 60 s"),
        ({"data": {"payload_mb": 20}}, "6 MB at most"),
        ({"model": {"kind": "llm", "name": "llama-3-8b", "parameters": 70e9}}, "model.name says 8.0 billion"),
        ({"model": {"kind": "llm", "name": "gpt-9"}}, "no known model"),
        ({"objectives": {"p95_ms": 100, "first_token_ms": 200}}, "later than the whole answer"),
        ({"traffic": {"shape": "steady", "idle_share": 0.9}}, "steady, but half"),
        ({"objectives": {"budget_usd": 10}}, "budget_usd is 10"),
        ({"model": {"kind": "llm", "parameters": 500}}, "is 500M or 500B meant?"),
        ({"model": {"kind": "llm", "parameters": 5e13}}, "holds 50000 billion parameters"),
    ],
)
def test_a_contradiction_is_named(parts: dict[str, Any], says: str) -> None:
    advice = advise({"task": "real-time", "model": LLM, **parts})
    assert any(says in text for text in advice.contradictions), advice.contradictions


def test_a_description_that_holds_together_has_no_contradiction() -> None:
    assert on("real-time", traffic={"requests_per_second": 2}).contradictions == ()


def test_inferentia_is_always_a_proposal_with_its_break_even_and_phases() -> None:
    found = [each for each in on("real-time").options if each.hardware is HardwareClass.INF]
    assert found
    for each in found:
        assert each.action is Action.PROPOSE
        assert "times the requests" in each.words
        assert len(each.phases) == 3


def test_eight_bits_halve_what_the_weights_take() -> None:
    wide, narrow = (on("real-time", {**LLM, "precision": each.value}) for each in (Precision.BF16, Precision.FP8))
    memory = wide.options[0].memory, narrow.options[0].memory
    assert memory[0] is not None
    assert memory[1] is not None
    assert memory[1].parts[0][1] == pytest.approx(memory[0].parts[0][1] / 2)


def test_hourly_prices_keep_their_digits() -> None:
    found = snapshot("us-east-1").find("ml.p4d.24xlarge")
    assert found is not None
    assert dollars(found.price.usd_per_hour) == "25.2513"
    assert dollars(2.5) == "2.50"


def test_a_deadline_that_is_near_closes_spot() -> None:
    parts: dict[str, Any] = {"data": {"tokens": 1e8}, "constraints": {"checkpoints": True}}
    far = on("fine-tuning", objectives={"deadline_hours": 1000}, **parts).options[0]
    near = on("fine-tuning", objectives={"deadline_hours": 1.1 * far.estimates[0].interval.middle}, **parts).options[0]
    assert far.purchase is Purchase.SPOT
    assert near.purchase is Purchase.ON_DEMAND
    assert "deadline" in near.words


def test_a_short_run_that_may_start_again_goes_on_spot() -> None:
    model = {"kind": "vision", "parameters": 25.6e6}
    short = on("training", model, data={"known_hours": 0.4}, constraints={"retriable": True}).options[0]
    long = on("training", model, data={"known_hours": 9}, constraints={"retriable": True}).options[0]
    assert (short.purchase, long.purchase) == (Purchase.SPOT, Purchase.ON_DEMAND)


def test_development_may_run_in_working_hours_only() -> None:
    options = on("real-time", constraints={"environment": "development"}).options
    assert options[1].purchase is Purchase.SCHEDULE
    assert (options[1].cost.usd_per_month or 0) < (options[0].cost.usd_per_month or 0) / 3


def test_a_small_model_with_rare_calls_may_share_an_accelerator() -> None:
    model = {"kind": "deep-learning", "parameters": 0.5e9}
    options = on("real-time", model, traffic={"shape": "intermittent", "requests_per_month": 2000}).options
    packed = [each for each in options if each.hosting is Hosting.PACKED]
    assert len(packed) == 1
    assert (packed[0].cost.usd_per_month or 0) < 100
    asleep = next(each for each in options if each.hosting is Hosting.ASYNC)
    assert any(each.name.startswith("cold start") for each in asleep.estimates)


def test_the_break_even_of_serverless_is_said_and_right() -> None:
    advice = on("real-time", {"kind": "classical", "memory_gib": 0.5}, data={"seconds_per_request": 1})
    (text,) = (each.text for each in advice.notes if each.text.startswith("serverless is cheaper"))
    requests = float(text.split(" below ")[1].split(" ")[0].replace(",", ""))
    assert requests * 0.00002 * 2 == pytest.approx(float(advice.options[0].cost.usd_per_month or 0), rel=0.01)


def test_weights_pass_through_the_host_that_loads_them() -> None:
    options = on("real-time").options
    assert "ml.g5.2xlarge" in {each.instance_type for each in options}
    for each in options:
        found = known_types().find(each.instance_type)
        assert found is not None
        assert found.memory_gib > 1.1 * architectures()["llama-3-8b"].parameters * 2 / 2**30
    (refused,) = (each for each in on("real-time", ask=["ml.g5.xlarge"]).refused if each.subject == "ml.g5.xlarge")
    assert "host memory" in refused.reason.text


def test_accelerators_that_share_a_copy_leave_room_for_a_batch() -> None:
    model = {"kind": "llm", "name": "llama-3-70b", "precision": "fp8"}
    for each in on("real-time", model, objectives={"goal": "performance"}).options:
        at_once = next(figure for figure in each.estimates if figure.name.startswith("sequences"))
        assert at_once.interval.middle >= 16, each.instance_type


def test_an_llm_on_a_cpu_is_refused_where_its_first_token_comes_late() -> None:
    model = {"kind": "llm", "parameters": 7e9}
    advice = on("real-time", model, constraints={"no_gpu": True}, objectives={"first_token_ms": 100})
    assert advice.options == ()
    assert advice.contradictions
    assert on("real-time", model, constraints={"no_gpu": True}).options


def test_a_tiny_network_is_tried_on_a_cpu_first() -> None:
    tiny, larger = (on("real-time", {"kind": "deep-learning", "parameters": each}).options[0] for each in (5e6, 60e6))
    assert tiny.hardware is not None
    assert tiny.hardware.is_cpu
    assert tiny.action is Action.TEST
    assert larger.hardware is HardwareClass.GPU_G


def test_data_beyond_one_instance_is_spread() -> None:
    (option,) = advise({"task": "preprocessing", "data": {"size_gib": 500}}).options
    assert option.count > 1
    assert option.memory is not None
    assert option.memory.needed_gib <= option.memory.usable_gib
    assert "Spark" in option.words


def test_rates_are_said_once_and_with_their_noun() -> None:
    answer = on("real-time", traffic={"requests_per_second": 5})
    estimates = [each for option in answer.options for each in option.estimates]
    rates = {(each.name, each.unit) for each in estimates if "a second" in each.name}
    assert rates == {("tokens a second of one instance", ""), ("requests a second of one instance", "")}
    said = [reason.text for option in answer.options for reason in option.reasons if " for 5 requests" in reason.text]
    assert said
    assert all(text.split(" for ")[0].endswith((" instance", " instances")) for text in said)


WHISPER = {"name": "whisper-large-v3"}


@pytest.mark.parametrize(
    ("described", "first"),
    [
        pytest.param({"traffic": {"requests_per_month": 20_000}}, False, id="no hour to save"),
        pytest.param({"traffic": {"requests_per_month": 500}}, True, id="most hours to save"),
        pytest.param(
            {"traffic": {"requests_per_month": 500}, "objectives": {"p95_ms": 10_000}}, False, id="nobody may wait"
        ),
        pytest.param(
            {"traffic": {"requests_per_month": 500}, "objectives": {"p95_ms": 3_600_000}}, True, id="an hour to wait"
        ),
        pytest.param({"traffic": {"idle_share": 0.9}, "objectives": {"first_token_ms": 500}}, False, id="first token"),
        pytest.param({"traffic": {"shape": "intermittent", "requests_per_month": 20_000}}, True, id="in bursts"),
    ],
)
def test_instances_are_given_back_between_requests_where_that_saves_and_a_cold_start_is_allowed(
    described: dict[str, Any], first: bool
) -> None:
    """An asynchronous endpoint changes the callers and makes them wait for minutes: never for nothing."""
    options = on("real-time", WHISPER, **described).options
    assert (options[0].hosting is Hosting.ASYNC) is first
    assert any(each.hosting is Hosting.ASYNC for each in options), "it is said all the same"
