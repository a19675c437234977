"""GPUs that do nothing: said in the finding and the evidence, and offered as fewer of the same kind."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Effort, Option, OptionKind, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.recommender import options
from rightsizer.recommender.recommend import add_daily_usage
from rightsizer.render import sentences
from tests.recommender import kit
from tests.recommender.kit import judge, judge_digests

type Usage = Mapping[tuple[str, str], Callable[[int], float] | float]
IDLE: Usage = kit.steady(gpu=8.0, memory=20.0, per_slot=48.0, cpu=100.0, host=4.0)
"""Of four A10G one works: 8 of 400 % utilisation, 20 of 400 % memory."""


def judged(quotas: Mapping[str, int] | None = None, usage: Usage = IDLE) -> Recommendation:
    """An endpoint on four A10G whose types to move to were tested already."""
    then = kit.NOW.replace(day=5)
    past = tuple(
        PastChange(then, "ml.g5.12xlarge", to, 1, 1, PastEnd.TESTED, realised_slowdown=1.0, latency_ratio=1.0)
        for to in kit.TYPES
    )
    endpoint = kit.endpoint("ml.g5.12xlarge", 1, Mode.AUTO, 60.0)
    types, asked = kit.catalogue(), quotas or {}
    return judge(endpoint, [kit.window(usage)], kit.prices(), types, asked, History(past), Policy(), kit.NOW)


def only(found: Recommendation, instance_type: str) -> Option:
    return next(o for o in found.options if o.target.instance_type == instance_type and o.kind is not OptionKind.DELETE)


def test_the_finding_and_the_evidence_say_how_many_gpus_are_used() -> None:
    found = judged()
    assert "it uses at most 1 of the 4 GPUs of ml.g5.12xlarge" in found.reason.sentence
    assert found.evidence is not None
    assert found.evidence.figures["GPUs"] == "uses at most 1 of the 4 GPUs of ml.g5.12xlarge"


def test_what_was_counted_on_another_type_is_not_said_of_the_one_that_runs() -> None:
    """The count is of the days before our own first change; the eight GPUs of today were never counted."""
    bigger = {"ml.g5.48xlarge": (192, 768, 8, "20.36")}
    catalogue, prices = kit.catalogue(bigger), kit.prices()
    prices = replace(prices, prices={**prices.prices, "ml.g5.48xlarge": replace(prices.prices["ml.g5.12xlarge"])})
    moved = kit.NOW - timedelta(days=4)
    past = History((PastChange(moved, "ml.g5.12xlarge", "ml.g5.48xlarge", 1, 1, PastEnd.PROVEN),))
    today, then = kit.endpoint("ml.g5.48xlarge"), kit.endpoint("ml.g5.12xlarge")
    old, new = catalogue.find("ml.g5.12xlarge"), catalogue.find("ml.g5.48xlarge")
    assert old is not None
    assert new is not None
    first = add_daily_usage(then, [kit.window(IDLE)], old, past, Policy()).days
    usage = add_daily_usage(
        today, [kit.window(IDLE, days=3)], new, past, Policy(), [d for d in first if d.day < moved.date()]
    )
    found = judge_digests(today, usage, prices, catalogue, {}, past, Policy(), kit.NOW)
    assert "it uses" not in found.reason.sentence
    assert found.evidence is not None
    assert found.evidence.figures["GPUs"] == "uses at most 1 of the 4 GPUs of ml.g5.12xlarge"


def test_where_all_may_work_nothing_is_claimed() -> None:
    found = judged(usage=kit.steady(gpu=380.0, memory=380.0, per_slot=48.0, host=4.0))
    assert "it uses" not in found.reason.sentence
    assert found.evidence is not None
    assert found.evidence.figures["GPUs"] == "uses perhaps all of the 4 GPUs of ml.g5.12xlarge"


def test_one_gpu_is_no_matter_of_how_many() -> None:
    found = judge(
        kit.endpoint(), [kit.window(kit.steady())], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    assert found.evidence is not None
    assert "GPUs" not in found.evidence.figures
    assert not found.chosen_option or not any("in place of" in note for note in found.chosen_option.notes)


def test_the_same_card_fewer_times_is_fewer_gpus_and_asks_a_person() -> None:
    others = {name: 0 for name in kit.TYPES if name != "ml.g5.2xlarge"}
    found = judged(others)
    option = only(found, "ml.g5.2xlarge")
    assert (option.kind, option.effort) == (OptionKind.FEWER_GPUS, Effort.MEDIUM)
    assert option.in_place
    assert "1 in place of 4 GPUs" in option.notes[0]
    assert "CUDA_VISIBLE_DEVICES" in option.notes[0]
    assert sentences.change(option) == "run on 1 × ml.g5.2xlarge, which has fewer GPUs of the same kind"
    assert found.chosen_option == option
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.NEEDS_APPROVAL)
    assert "1 in place of 4 GPUs in an instance" in found.gate_reason.sentence


@pytest.mark.parametrize("name", ["ml.g6.2xlarge", "ml.g6e.2xlarge"])
def test_another_card_is_another_type_and_its_server_has_to_be_told_too(name: str) -> None:
    found = judged({other: 0 for other in kit.TYPES if other != name})
    option = only(found, name)
    assert option.kind is OptionKind.INSTANCE_TYPE
    assert "1 in place of 4 GPUs" in option.notes[0]


def test_as_many_gpus_keep_their_kind_and_effort() -> None:
    endpoint = kit.endpoint("ml.g5.2xlarge", 1, Mode.AUTO, 60.0)
    others = {name: 0 for name in kit.TYPES if name != "ml.g5.xlarge"}
    found = judge(
        endpoint, [kit.window(kit.steady())], kit.prices(), kit.catalogue(), others, History(), Policy(), kit.NOW
    )
    option = only(found, "ml.g5.xlarge")
    assert (option.kind, option.effort, option.notes) == (OptionKind.INSTANCE_TYPE, Effort.LOW, ())


@pytest.mark.parametrize(
    ("name", "used", "chance", "known"),
    [
        ("ml.g5.12xlarge", None, 0.29, False),
        ("ml.g5.12xlarge", None, 0.30, True),
        ("ml.g5.12xlarge", 1, 0.29, True),
        ("ml.g5.xlarge", None, 0.29, True),
    ],
)
def test_where_several_gpus_work_together_only_a_likely_type_is_tested(
    name: str, used: int | None, chance: float, known: bool
) -> None:
    """The measured moves are of one GPU; what the links between four do they do not tell."""
    context: Any = SimpleNamespace(
        inputs=SimpleNamespace(catalogue=kit.catalogue(kit.OTHERS)),
        demand=SimpleNamespace(gpus_used=used),
        reference=SimpleNamespace(accelerator_count=4),
    )
    test: Any = SimpleNamespace(option=SimpleNamespace(target=Target(name, 1)), chance=chance)
    assert options._is_chance_known(context, test) is known
