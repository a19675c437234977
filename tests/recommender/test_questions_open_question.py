"""What a person was asked stays the answer while nothing but chance speaks against it, and goes with a reason."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.history import OpenQuestion
from rightsizer.domain.option import Option, OptionKind, Target, VariantTarget
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.schedule import DayCounts
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.questions import with_open_question
from tests import labelled
from tests.recommender import kit
from tests.recommender.plain import option

SIZE = "ml.g5.xlarge"


def judged(
    monkeypatch: pytest.MonkeyPatch, per_slot: float, asked: OpenQuestion | None = None, **tags: Any
) -> Recommendation:
    """Four instances with so many requests in five minutes, about which that was asked the day before."""
    plain: Callable[..., Recommendation] = kit.judge

    def judge(*given: Any) -> Recommendation:
        history = replace(given[5], asked=asked)
        return plain(*given[:5], history, *given[6:])

    endpoint = {"type": SIZE, "count": 4, "p95_s": 2.0, "mode": "propose"} | tags
    usage = {"per_slot": per_slot, "latency_s": 0.5, "gpu": per_slot / 24, "memory": 60}
    with monkeypatch.context() as patch:
        patch.setattr(labelled, "judge", judge)
        return labelled.judged({"endpoint": endpoint, "usage": usage})


def count_of(found: Recommendation) -> int:
    assert found.chosen_option is not None
    return found.chosen_option.target.instance_count


def question(found: Recommendation, count: int = 2, **more: Any) -> OpenQuestion:
    """The option of the recommendation as what was asked, on so many instances."""
    assert found.chosen_option is not None
    option = replace(found.chosen_option, target=Target(SIZE, count))
    return replace(OpenQuestion(option, found.fingerprint), **more)


JUST_TOO_MANY, BY_CHANCE, FAR_TOO_MANY = 620, 860, 900
"""Requests for which the replay asks for an instance more than two: a little, within chance, more."""


@pytest.mark.parametrize("requests", [JUST_TOO_MANY, BY_CHANCE])
def test_a_question_stands_on_the_day_after_though_the_fleet_is_just_too_small(
    monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    alone = judged(monkeypatch, requests)
    assert count_of(alone) == 3, "or this load shows nothing"
    asked = question(alone)
    told = replace(asked, option=replace(asked.option, notes=("as was told",)))
    found = judged(monkeypatch, requests, told)
    assert count_of(found) == 2
    assert found.chosen_option is not None
    assert (found.chosen_option.risk, found.chosen_option.late_share) == (1, None)
    assert "as was told" in found.chosen_option.notes
    assert alone.chosen_option is not None
    assert (found.chosen_option.p95_s or 0.0) > 1.3 * (alone.chosen_option.p95_s or 9.0), "of the smaller fleet"


def test_a_load_that_the_fleet_does_not_carry_ends_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = judged(monkeypatch, FAR_TOO_MANY)
    assert judged(monkeypatch, FAR_TOO_MANY, question(alone)) == alone


def test_a_question_about_another_configuration_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = judged(monkeypatch, JUST_TOO_MANY)
    assert judged(monkeypatch, JUST_TOO_MANY, question(alone, fingerprint="another")) == alone


def test_what_saves_a_tenth_of_the_cost_more_takes_its_place_and_leaves_it_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = judged(monkeypatch, 500)
    found = judged(monkeypatch, 500, question(alone, 3))
    assert count_of(found) == count_of(alone) == 2
    assert Target(SIZE, 3) in [option.target for option in found.options], "so that an approval of it may begin"


def test_automatic_mode_does_nothing_that_only_chance_excuses(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = judged(monkeypatch, JUST_TOO_MANY, mode="auto")
    assert (count_of(alone), alone.gate) == (3, Gate.APPLY)
    assert judged(monkeypatch, JUST_TOO_MANY, question(alone), mode="auto") == alone


def test_a_question_about_fewer_instances_than_its_owner_wants_since_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = judged(monkeypatch, JUST_TOO_MANY, min_instances=3)
    assert judged(monkeypatch, JUST_TOO_MANY, question(alone), min_instances=3) == alone


def of_four_gpus(monkeypatch: pytest.MonkeyPatch, per_slot: float, asked: OpenQuestion | None = None) -> Recommendation:
    """One machine with four GPUs at work, after a test of the same GPU singly."""
    plain: Callable[..., Recommendation] = kit.judge
    four = "ml.g5.12xlarge"
    tested = {"days_ago": 1, "from": four, "to": SIZE, "ended": "tested", "slowdown": 1.0, "latency_ratio": 1.0}
    usage = {"per_slot": per_slot, "latency_s": 0.5, "gpu": per_slot / 6, "memory": 80, "cpu": 100, "host": 4}
    case = {
        "endpoint": {"type": four, "p95_s": 2.0, "mode": "propose"},
        "usage": usage,
        "history": [tested | {"framework": "pytorch"}],
    }
    with monkeypatch.context() as patch:
        patch.setattr(labelled, "judge", lambda *given: plain(*given[:5], replace(given[5], asked=asked), *given[6:]))
        return labelled.judged(case)


def test_a_question_about_fewer_gpus_in_each_instance_does_not_stand_on_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = of_four_gpus(monkeypatch, 800)
    assert alone.chosen_option is not None
    assert alone.chosen_option.target.instance_type != SIZE, "or this load shows nothing"
    assert of_four_gpus(monkeypatch, 800, question(alone)) == alone


def a_test_of(monkeypatch: pytest.MonkeyPatch, kind: str = "", fingerprint: str = "") -> Recommendation:
    """One instance whose two smaller cards may be fast enough; a test of that type was asked about the day before."""
    plain: Callable[..., Recommendation] = kit.judge
    case = {"endpoint": {"p95_s": 0.9, "mode": "propose"}}
    alone = labelled.judged(case)
    assert alone.chosen_option is not None
    asked = (
        OpenQuestion(replace(alone.chosen_option, target=Target(kind, 1)), fingerprint or alone.fingerprint)
        if kind
        else None
    )
    with monkeypatch.context() as patch:
        patch.setattr(labelled, "judge", lambda *given: plain(*given[:5], replace(given[5], asked=asked), *given[6:]))
        return labelled.judged(case)


def type_of(found: Recommendation) -> str:
    assert found.chosen_option is not None
    assert found.offers_test
    return found.chosen_option.target.instance_type


def test_a_test_that_was_asked_about_stays_first_while_another_brings_little_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert type_of(a_test_of(monkeypatch)) == "ml.g6.xlarge"
    assert type_of(a_test_of(monkeypatch, "ml.g6.2xlarge")) == "ml.g6.2xlarge"
    assert type_of(a_test_of(monkeypatch, "ml.g6.2xlarge", "another")) == "ml.g6.xlarge", "it is over"
    assert type_of(a_test_of(monkeypatch, "ml.g4dn.xlarge")) == "ml.g6.xlarge", "that one is no candidate"


def saves(usd: str, kind: str = SIZE, **more: Any) -> Option:
    """Two instances of a type that save so much a month."""
    return option(**{"target": Target(kind, 2), "saving_usd_per_month": Decimal(usd)} | more)


def order(asked: Option, *sure: Option, owner_minimum: int = 1, scaling: Any = None, too_small: bool = False) -> str:
    """The types in their order, of an endpoint that costs USD 1,000 a month; a least saving is a tenth of that."""
    history = SimpleNamespace(asked=OpenQuestion(asked, "as now"))
    context = SimpleNamespace(
        inputs=SimpleNamespace(history=history, catalogue=kit.catalogue()),
        runs=kit.catalogue().types[SIZE],
        owner_minimum=owner_minimum,
        endpoint=SimpleNamespace(scaling=scaling, mode=Mode.AUTO),
        within_objective=False,
        is_fleet_too_small=too_small,
        usd_per_month=Decimal(1000),
        policy=SimpleNamespace(minimum_saving_share=0.1),
    )
    found = with_open_question(cast("EvaluationContext", context), "as now", sure)
    return " ".join(each.target.instance_type.removeprefix("ml.") for each in found)


OTHERS = (saves("400", "ml.g4dn.xlarge"), saves("350", "ml.g6.xlarge"))


def test_what_was_asked_stays_first_until_another_saves_a_tenth_of_the_cost_more() -> None:
    assert order(saves("301"), *OTHERS, saves("301")) == "g5.xlarge g4dn.xlarge g6.xlarge"
    assert order(saves("300"), *OTHERS, saves("300")) == "g4dn.xlarge g5.xlarge g6.xlarge", "a tenth exactly"
    assert order(saves("300"), saves("300")) == "g5.xlarge", "nothing else saves"


@pytest.mark.parametrize(
    "asked",
    [
        saves("390", in_place=False),
        saves("390", restores=True),
        saves("390", growth_usd=Decimal(1)),
        saves("0"),
        saves("390", kind="ml.odd.large"),
        saves("390", kind="ml.g5.12xlarge"),
        replace(saves("390"), kind=OptionKind.AUTOSCALING),
        saves("390", target=Target(SIZE, 2, day_counts=(DayCounts((5, 6), (1,) * 24),))),
        saves("390", target=Target(SIZE, 2, others=(VariantTarget("b", SIZE, 1, Decimal(1)),))),
    ],
    ids=["moves callers", "restores", "grows", "no saving", "unknown", "more GPUs", "scales", "days", "variants"],
)
def test_a_question_of_another_sort_is_answered_anew(asked: Option) -> None:
    assert order(asked, *OTHERS, asked).startswith("g4dn.xlarge g6.xlarge ")


def test_a_question_is_over_where_the_fleet_scales_is_too_small_or_its_owner_wants_more() -> None:
    kept = saves("390")
    assert order(kept, *OTHERS, kept, owner_minimum=2).startswith("g5")
    assert order(kept, *OTHERS, kept, owner_minimum=3).startswith("g4dn")
    assert order(kept, *OTHERS, kept, scaling=({"MinCapacity": 1},)).startswith("g4dn")
    assert order(kept, *OTHERS, kept, too_small=True).startswith("g4dn")


def test_only_the_same_kind_with_the_same_target_is_what_was_asked() -> None:
    nights = Target(SIZE, 2, hourly_counts=(1,) * 24)
    schedule = replace(saves("390"), kind=OptionKind.SCHEDULE, target=nights)
    assert order(schedule, *OTHERS, schedule).startswith("g5.xlarge g4dn")
    assert order(replace(schedule, target=Target(SIZE, 2)), *OTHERS, schedule).startswith("g4dn")
    assert order(replace(schedule, kind=OptionKind.INSTANCE_COUNT), *OTHERS, schedule).startswith("g4dn")
