"""The judgement of one endpoint, from datapoints to gate."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.domain.endpoint import EndpointKind, Mode
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import MetricWindow, NoMetrics
from rightsizer.wire import dumps, loads
from tests.recommender import kit
from tests.recommender.kit import judge


def run(metrics: MetricWindow | NoMetrics, **given: object) -> Recommendation:
    history = given.pop("history", History())
    assert isinstance(history, History)
    endpoint = kit.endpoint(**given)  # type: ignore[arg-type]
    return judge(endpoint, [metrics], kit.prices(), kit.catalogue(), {}, history, Policy(), kit.NOW)


def test_an_oversized_endpoint_moves_to_a_cheaper_type_that_fits() -> None:
    found = run(kit.window(kit.steady()))
    assert found.finding is Finding.OVER_PROVISIONED
    assert found.chosen_option is not None
    assert found.chosen_option.kind is OptionKind.INSTANCE_TYPE
    assert found.chosen_option.saving_usd_per_month > 500
    assert found.gate is Gate.APPLY


def test_an_endpoint_without_datapoints_is_unknown_not_idle() -> None:
    found = run(NoMetrics("chat", "AllTraffic", Reason(Code.NO_DATAPOINTS, "nothing was published")))
    assert found.finding is Finding.NOT_ENOUGH_DATA
    assert found.gate is Gate.SILENT


def test_an_endpoint_changed_an_hour_ago_is_unknown_and_says_when() -> None:
    changed = replace(kit.endpoint(), modified_at=kit.NOW - timedelta(minutes=20))
    windows = [kit.window(kit.steady())]
    found = judge(changed, windows, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert found.finding is Finding.NOT_ENOUGH_DATA
    assert "it was changed on" in found.reason.sentence


def test_utilisation_without_requests_for_a_fortnight_is_idle() -> None:
    found = run(kit.window({("GPUUtilization", "Average"): 0.0, ("Invocations", "Sum"): 0.0}, days=15))
    assert found.finding is Finding.IDLE
    assert found.chosen_option is not None
    assert found.chosen_option.kind is OptionKind.DELETE
    assert found.gate is Gate.PROPOSE


def test_a_look_back_without_a_month_end_says_so() -> None:
    unseen = "the load of a month end: none is in the look-back"
    assert unseen in run(kit.window(kit.steady(), days=14)).open_questions
    long = replace(Policy(), lookback_days=30)
    month = kit.window(kit.steady(), days=25)
    whole = judge(kit.endpoint(), [month], kit.prices(), kit.catalogue(), {}, History(), long, kit.NOW)
    assert unseen not in whole.open_questions


def test_an_idle_asynchronous_endpoint_sleeps_instead_of_going() -> None:
    asked = kit.endpoint(kind=EndpointKind.ASYNC, mode=Mode.PROPOSE)
    silent = {("GPUUtilization", "Average"): 0.0, ("ApproximateBacklogSize", "Maximum"): 0.0}
    windows = [kit.window(silent, days=15)]
    found = judge(asked, windows, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert found.finding is Finding.IDLE
    assert found.chosen_option is not None
    assert found.chosen_option.kind is OptionKind.SCALE_TO_ZERO
    assert found.chosen_option.in_place
    assert found.gate is Gate.PROPOSE


def test_requests_without_utilisation_are_not_enough_data() -> None:
    found = run(kit.window({("Invocations", "Sum"): 6.0}))
    assert found.finding is Finding.NOT_ENOUGH_DATA
    assert found.reason.code is Code.NO_GPU_METRICS


def test_low_utilisation_with_gpu_bound_requests_and_a_tight_objective_keeps_the_type() -> None:
    signals = kit.steady(per_slot=1.0, latency_s=15.0, gpu=4.0, memory=80.0)
    found = run(kit.window(signals), p95_s=None)
    assert found.finding is Finding.OPTIMIZED


def test_memory_that_needs_the_card_keeps_the_card() -> None:
    found = run(kit.window(kit.steady(memory=90.0)))
    assert all(o.target.instance_type.startswith("ml.g6e") for o in found.options)
    assert {e.reason.code for e in found.excluded} >= {Code.MEMORY_TOO_SMALL}


def test_a_preallocating_server_is_unknown_need_and_never_applied_to_a_smaller_card() -> None:
    found = run(kit.window(kit.steady(memory=90.0, swing=0.0)), framework="vllm")
    assert found.gate is not Gate.APPLY
    assert any("pre-allocates" in text for text in found.not_checked)


@pytest.mark.parametrize("kind", [EndpointKind.MULTI_MODEL, EndpointKind.SHADOW, EndpointKind.INFERENCE_COMPONENTS])
def test_other_kinds_are_never_applied_and_say_their_kind(kind: EndpointKind) -> None:
    found = run(kit.window(kit.steady()), kind=kind)
    assert found.gate in (Gate.PROPOSE, Gate.SILENT)
    assert kind.value in found.gate_reason.sentence


def test_a_failed_type_rests() -> None:
    moved = PastChange(
        kit.NOW - timedelta(days=10), "ml.g6e.xlarge", "ml.g4dn.xlarge", 1, 1, PastEnd.ROLLED_BACK, failure="alarm"
    )
    best = run(kit.window(kit.steady())).chosen_option
    assert best is not None
    again = PastChange(moved.at, "ml.g6e.xlarge", best.target.instance_type, 1, 1, PastEnd.ROLLED_BACK, failure="alarm")
    found = run(kit.window(kit.steady()), history=History((again,)))
    assert (
        found.chosen_option is None
        or found.chosen_option.target != best.target
        or found.gate_reason.code is Code.BLACKLISTED
    )


def test_mode_propose_waits_for_a_person() -> None:
    found = run(kit.window(kit.steady()), mode=Mode.PROPOSE)
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.NOT_OPTED_IN)


def test_a_recommendation_survives_the_wire() -> None:
    found = run(kit.window(kit.steady()))
    assert loads(Recommendation, dumps(found)) == found


def test_a_busy_fleet_moves_to_a_type_that_is_no_slower_though_it_has_no_room_to_grow() -> None:
    def gpu(i: int) -> float:
        return 40.0 + 30 * ((i // 12) % 3)

    metrics = kit.steady(latency_s=2.0, memory=60.0) | {
        ("Invocations", "Sum"): lambda i: gpu(i) / 100 * 3 * 300 / 1.9,
        ("GPUUtilization", "Average"): gpu,
        ("CPUUtilization", "Average"): lambda i: 30 + 0.5 * gpu(i),
    }
    found = run(kit.window(metrics), instance_type="ml.g6e.2xlarge", count=3, p95_s=2.8)
    assert found.chosen_option is not None
    assert (found.chosen_option.target.instance_type, found.chosen_option.target.instance_count) == ("ml.g6e.xlarge", 3)
    assert found.gate is Gate.APPLY


def test_elastic_inference_is_named_as_gone() -> None:
    endpoint = replace(kit.endpoint(), elastic_inference=("ml.eia2.medium",))
    window = kit.window(kit.steady())
    found = judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    (note,) = (n for n in found.notes if n.code is Code.ELASTIC_INFERENCE_GONE)
    assert "ml.eia2.medium" in note.sentence
    assert "no longer offers Elastic Inference" in note.sentence
    plain = judge(kit.endpoint(), [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert all(n.code is not Code.ELASTIC_INFERENCE_GONE for n in plain.notes)
