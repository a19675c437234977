"""Each candidate as an option: which fleets are computed, what a test could tell, and what rules a fleet out."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.option import Option, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.slowdown import Slowdown, SlowdownSource
from rightsizer.recommender import options
from rightsizer.recommender.candidates import CandidateType
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.options import Options, options_for, stand_ins
from rightsizer.recommender.shadow_test import ShadowTestCandidate
from rightsizer.recommender.slowdown import Ratio
from tests.recommender import kit, plain
from tests.recommender.plain_context import OTHER, TYPE, context, stub

SIZE, SMALL = "ml.g6.2xlarge", "ml.g4dn.xlarge"
BUSY = Reason(Code.TOO_BUSY, "too busy")
TYPES = kit.catalogue({"ml.g6.48xlarge": (192, 768, 8, "16.69")}).types


def candidate(name: str = SMALL, usd: float = 100.0, **more: Any) -> CandidateType:
    """A type that is known to serve as fast, at that cost at least."""
    price = kit.prices().find(name)
    assert price is not None
    speed = Slowdown(1.5, 1.2, 1.0, 1.5, SlowdownSource.DATASHEET)
    made = CandidateType(TYPES[name], price, speed, Ratio(1.0, 1.0), 1, 1.0, 1.0, True, usd)
    return replace(made, **more)


def unsure(name: str = SMALL, usd: float = 100.0, **more: Any) -> CandidateType:
    return candidate(name, usd, **{"fast": 0.5, "ratio": Ratio(1.2, 1.5), **more})


def priced(name: str, usd: float, **more: Any) -> Option:
    return plain.option(target=Target(name, 1), usd_per_month=Decimal(str(usd)), **more)


def shadow(name: str = SMALL, chance: float = 0.5) -> ShadowTestCandidate:
    return ShadowTestCandidate(priced(name, 100.0), chance, 5.0)


# which fleets are computed


def given(
    monkeypatch: pytest.MonkeyPatch,
    candidates: list[CandidateType],
    size: Callable[[CandidateType], Option | Reason],
    hopeful: Callable[[CandidateType], ShadowTestCandidate | None] = lambda _: None,
) -> list[str]:
    """Have these candidates sized so; the names of those that were."""
    sized: list[str] = []

    def size_one(_: EvaluationContext, one: CandidateType) -> Option | Reason:
        sized.append(one.hardware.name)
        return size(one)

    stub(monkeypatch, options, "check_candidates", lambda _: (candidates, []))
    stub(monkeypatch, options, "size_and_price", size_one)
    stub(monkeypatch, options, "_assume_faster", lambda _, one: hopeful(one))
    stub(monkeypatch, options, "_find_test_candidates", lambda *_: [])
    return sized


def as_least(one: CandidateType) -> Option:
    return priced(one.hardware.name, one.least_usd, switch_usd=Decimal(0))


def test_a_type_that_cannot_be_cheaper_than_the_best_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    cheap, alike, dear = candidate(SMALL, 100.0), candidate(SIZE, 100.0), candidate(OTHER, 99.0)
    sized = given(monkeypatch, [cheap, alike, dear], as_least)
    found = options_for(context())
    assert sized == [SMALL, OTHER]
    assert [option.target.instance_type for option in found.sure] == [OTHER, SMALL], "the cheapest first"
    assert found.later == (alike,)
    short = context()
    vars(short)["types_without_capacity"] = frozenset({SMALL})
    sized.clear()
    options_for(short)
    assert sized == [SMALL, SIZE, OTHER], "what has no capacity says nothing about what is worth a look"
    stub(monkeypatch, options, "check_candidates", lambda _: ([candidate(SMALL, 5000.0)], []))
    assert options_for(context()).sure == (), "nothing above today's cost is of interest"


def test_the_switch_counts_in_the_order_of_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    once = {SMALL: 50, OTHER: 0}
    given(
        monkeypatch, [candidate(OTHER, 40.0), candidate(SMALL, 30.0)],
        lambda one: priced(one.hardware.name, one.least_usd, switch_usd=Decimal(once[one.hardware.name])),
    )  # fmt: skip
    assert [option.target.instance_type for option in options_for(context()).sure] == [OTHER, SMALL]


def test_from_four_options_on_only_another_card_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["ml.g4dn.xlarge", "ml.g5.xlarge", "ml.g6e.xlarge", "ml.g6.2xlarge"]
    first = [candidate(name, 100.0 - 5 * n) for n, name in enumerate(names)]
    same, other = candidate("ml.g4dn.2xlarge", 50.0), candidate("ml.g5.12xlarge", 40.0)
    sized = given(monkeypatch, [*first, same, other], as_least)
    found = options_for(context())
    assert sized == [*names, "ml.g5.12xlarge"], "four cards are another thing than one"
    assert found.later == (same,)
    assert [option.target.instance_type for option in found.sure] == ["ml.g5.12xlarge", *names[:0:-1]]
    sized = given(monkeypatch, [*first[:3], same], as_least)
    options_for(context())
    assert "ml.g4dn.2xlarge" in sized


def test_what_is_too_busy_is_ruled_out_or_a_hope_and_no_more_than_four_are(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["ml.g4dn.xlarge", "ml.g4dn.2xlarge", "ml.g5.xlarge", "ml.g5.2xlarge", "ml.g6e.xlarge"]
    given(monkeypatch, [candidate(name) for name in names], lambda _: BUSY, lambda one: shadow(one.hardware.name))
    found = options_for(context())
    assert [one.option.target.instance_type for one in found.unsure] == names[:4]
    assert [(one.instance_type, one.reason) for one in found.excluded] == [(names[4], BUSY)]
    given(monkeypatch, [candidate(names[0])], lambda _: BUSY)
    assert [one.instance_type for one in options_for(context()).excluded] == names[:1]


def test_a_smaller_size_of_what_runs_that_is_not_looked_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    running = TYPES[SIZE]
    price = kit.prices().find(SIZE)
    assert price is not None
    seen = replace(context(), runs=running, price=price)
    given(monkeypatch, [candidate(SMALL, 100.0), candidate(TYPE, 500.4), candidate(SIZE, 600.0)], as_least)
    (said,) = options_for(seen).excluded
    assert (said.instance_type, said.reason) == (
        TYPE,
        Reason(
            Code.DEARER_THAN_OFFERED,
            "ml.g6.xlarge, the same GPU in a smaller size, would cost at least $500 a month, and what is offered costs"
            " less",
        ),
    )
    assert options._is_smaller_size(seen, candidate(TYPE))
    assert not options._is_smaller_size(seen, candidate(SIZE))
    assert not options._is_smaller_size(seen, candidate(SMALL))
    assert not options._is_smaller_size(context(), candidate(SIZE)), "it is dearer"
    eight = replace(candidate(TYPE), hardware=TYPES["ml.g6.48xlarge"])
    assert not options._is_smaller_size(seen, eight)


@pytest.mark.parametrize(
    ("name", "used", "chance", "known"),
    [
        (SMALL, None, 0.01, True),
        ("ml.g6.48xlarge", None, 0.29, False),
        ("ml.g6.48xlarge", None, 0.3, True),
        ("ml.g6.48xlarge", 1, 0.01, True),
        ("ml.g6.48xlarge", 2, 0.29, False),
        ("ml.unknown", None, 0.01, True),
    ],
)
def test_a_low_chance_of_several_gpus_together_means_little(
    name: str, used: int | None, chance: float, known: bool
) -> None:
    seen = context(reference=TYPES["ml.g6.48xlarge"])
    seen = replace(seen, demand=replace(seen.demand, gpus_used=used))
    seen = replace(seen, inputs=replace(seen.inputs, catalogue=kit.catalogue({"ml.g6.48xlarge": (192, 768, 8, "1")})))
    assert options._is_chance_known(seen, shadow(name, chance)) is known


def test_two_types_behind_the_best_may_stand_in_where_they_can_be_cheaper_than_today(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = context()
    today = seen.usd_ceiling
    later = tuple(candidate(name, usd) for name, usd in ((OTHER, today), (SMALL, today - 1), (SIZE, 1.0)))
    sized = given(monkeypatch, [], as_least)
    assert [option.target.instance_type for option in stand_ins(seen, Options((), (), (), later))] == [SMALL]
    assert sized == [SMALL]
    given(monkeypatch, [], lambda _: BUSY)
    assert list(stand_ins(seen, Options((), (), (), later))) == []
