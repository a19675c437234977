"""The key of a target: the text that the first release made of it, whatever its fields and its class are called."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.option import ScaleIn, Target
from rightsizer.recommender.proposal import proposal_key
from tests.frozen.ids import TARGETS

NAMES = st.text("abcxyz019.-", min_size=1, max_size=12)
COUNTS = st.integers(0, 10**6)
FIGURES = st.floats(allow_nan=False, allow_infinity=False)


def first_release(target: Target) -> str:
    """What the first release took for the text of a target: Python's own. What came later stands behind it."""
    if target.metric:  # its text stands before variants and days; the first release added no policy
        plain = replace(target, metric=None, target_value=None, others=(), day_counts=())
        first = f"{first_release(plain)}|metric='{target.metric}'"
        return "|".join([first, *_later(target)])
    later = (target.scale_in, target.placement)
    return "|".join([repr(target), *(repr(each) for each in later if each), *_later(target)])


def _later(target: Target) -> list[str]:
    others = tuple((one.name, one.instance_type, one.instance_count) for one in target.others)
    least = [f"least_copies={target.least_copies}"] if target.least_copies else []
    return [*(repr(each) for each in (others, *target.day_counts) if each), *least]


@pytest.mark.parametrize("name", TARGETS)
def test_the_text_is_that_of_the_first_release(name: str) -> None:
    assert proposal_key(TARGETS[name]) == first_release(TARGETS[name])


@given(
    st.builds(
        Target,
        NAMES,
        COUNTS,
        hourly_counts=st.none() | st.tuples(*[COUNTS] * 24),
        minimum=st.none() | COUNTS,
        maximum=st.none() | COUNTS,
        routing=st.none() | NAMES,
        pools=st.lists(NAMES, max_size=3).map(tuple),
        target_value=st.none() | FIGURES,
        per_instance=st.none() | FIGURES,
        copies=st.lists(st.tuples(NAMES, COUNTS), max_size=3).map(tuple),
        idle_minutes=st.none() | COUNTS,
        scale_in=st.none() | st.builds(ScaleIn, NAMES, st.just("CONSOLIDATION"), st.none() | st.integers(1, 100)),
        placement=st.lists(st.tuples(NAMES, st.sampled_from(["SPREAD", "BINPACK"])), max_size=2).map(tuple),
    )
)
def test_the_text_of_any_target_is_that_of_the_first_release(target: Target) -> None:
    assert proposal_key(target) == first_release(target)


def test_every_field_of_a_target_is_in_the_key() -> None:
    """A field that is not in it would give two proposals one id."""
    everything = proposal_key(TARGETS["a policy and a placement"])
    shown = {field.name for field in fields(Target)} - {"scale_in", "placement", "metric", "others", "day_counts"}
    shown -= {"least_copies"}
    assert "DayCounts(weekdays=(0, 1, 2, 3, 4), counts=(4, 4" in proposal_key(TARGETS["counts of the week"])
    assert all(f"{name}=" in everything for name in shown | {field.name for field in fields(ScaleIn)})
    assert "|metric=" in proposal_key(TARGETS["added target tracking"])
    assert proposal_key(TARGETS["a lower minimum of copies"]).endswith("|least_copies=(('tags', 1),)")
    others = {name: proposal_key(target) for name, target in TARGETS.items()}
    assert len(set(others.values())) == len(TARGETS)
    assert {field.name for field in fields(Target)} == {
        field.name
        for field in fields(Target)
        if any(
            getattr(target, field.name) != getattr(TARGETS["a type and a count"], field.name)
            for target in TARGETS.values()
        )
    }, "each field differs in one of the frozen targets"
