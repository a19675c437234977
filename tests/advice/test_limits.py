"""Limits of the world in the options: the longest job, the longest request, a budget, a Region without GPUs."""

from rightsizer.advice.answer import Action, Hosting
from tests.advice.test_options import on


def test_a_run_beyond_the_longest_job_is_several_jobs_from_checkpoints_and_is_tried_first() -> None:
    shape = {"kind": "llm", "parameters": 70e9}
    long = on("training", shape, data={"tokens": 1e12}, constraints={"checkpoints": True}).options[0]
    short = on("training", shape, data={"tokens": 1e9}, constraints={"checkpoints": True}).options[0]
    assert "SageMaker ends a training job after 28 days" in long.words
    assert "MaxWaitTimeInSeconds about 720 h" in long.words
    assert "which the script must write" not in long.words
    assert "which the script must write" in on("training", shape, data={"tokens": 1e12}).options[0].words
    assert "28 days" not in short.words
    assert (long.action, short.action) == (Action.TEST, Action.APPLY)


def test_ten_instances_or_more_that_train_together_are_tried_first() -> None:
    answer = on("training", {"kind": "llm", "parameters": 1e12})
    assert answer.options[0].count >= 10
    assert answer.options[0].action is Action.TEST


def test_memory_that_large_inputs_take_is_not_known_of_a_network_on_a_gpu() -> None:
    network = {"kind": "deep-learning", "memory_gib": 5.6}
    served, trained = on("asynchronous", network), on("training", {"kind": "vision", "parameters": 60e6})
    assert any("counted as 20 % of the weights" in each for each in served.unknown)
    assert any("long inputs, not counted" in each for each in trained.unknown)
    for other in (on("real-time"), on("real-time", {"kind": "classical"}), on("training", {"framework": "xgboost"})):
        assert not any("memory for the work" in each for each in other.unknown)


def test_a_budget_comes_before_the_goal_and_nothing_above_it_is_ready_to_be_bought() -> None:
    free = on("real-time", objectives={"goal": "performance"}).options
    limit = sorted(each.cost.usd_per_month for each in free if each.cost.usd_per_month)[1]
    held = on("real-time", objectives={"goal": "performance", "budget_usd": float(limit)}).options
    above = [(each.cost.usd_per_month or 0) > limit for each in held]
    assert above == sorted(above)
    assert not above[0]
    assert any(above)
    assert not any(each.action is Action.APPLY for each, over in zip(held, above, strict=True) if over)
    assert "is above the budget of" in held[-1].words


def test_a_region_without_accelerators_sends_a_model_that_needs_one_to_another_region() -> None:
    answer = on("real-time", constraints={"region": "eu-south-2"})
    assert any("choose another Region" in each for each in answer.contradictions)
    assert not any("deploy the first option" in each for each in answer.unknown)
    table = on("real-time", {"kind": "classical"}, constraints={"region": "eu-south-2"})
    assert table.options
    assert not any("choose another Region" in each for each in table.contradictions)


def test_an_asynchronous_endpoint_is_not_measured_with_a_shadow_variant() -> None:
    answer = on("asynchronous", data={"seconds_per_request": 90})
    assert "shadow" not in answer.options[0].measure


def test_a_decoder_whose_answer_may_outlast_a_serverless_request_goes_on_an_instance_first() -> None:
    parts = {"traffic": {"requests_per_second": 0.02}, "constraints": {"no_gpu": True}}
    small = {"kind": "llm", "parameters": 1e9, "precision": "int8"}
    doubtful = on("real-time", small, **parts)
    assert doubtful.options[0].hosting is Hosting.REALTIME
    serverless = next(each for each in doubtful.options if each.hosting is Hosting.SERVERLESS)
    assert serverless.action is Action.TEST
    assert "a serverless request ends after 60 s: measure it first" in serverless.words
    few = on("real-time", {**small, "tokens_in": 50, "tokens_out": 8}, **parts)
    assert (few.options[0].hosting, few.options[0].action) == (Hosting.SERVERLESS, Action.PROPOSE)
    measured = on("real-time", small, **parts, data={"seconds_per_request": 20})
    assert measured.options[0].hosting is Hosting.SERVERLESS
    long = on("real-time", {**small, "tokens_out": 4000}, **parts, ask=["serverless"])
    assert any("at the hopeful end on 6 GB" in each.reason.text for each in long.refused)
    assert not any(each.hosting is Hosting.SERVERLESS for each in long.options)


def test_a_decoder_on_a_cpu_is_not_said_to_answer_within_a_second() -> None:
    answer = on("real-time", {"kind": "llm", "parameters": 1e9}, constraints={"no_gpu": True})
    assert "a CPU generates token by token" in answer.options[0].words
    assert "1000 ms" not in answer.words
