"""Plain data to a workload: words for numbers, and errors that name field, value and remedy."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.advice.advise import advise
from rightsizer.advice.describe import workload_of
from rightsizer.advice.market import snapshot
from rightsizer.advice.workload import ModelKind, Task
from rightsizer.errors import InputError


def test_numbers_may_be_written_as_people_write_them() -> None:
    made = workload_of({"task": "training", "model": {"kind": "llm", "parameters": "7B"}, "data": {"tokens": "1.5t"}})
    assert made.model.parameters == 7e9
    assert made.data.tokens == 1.5e12


def test_classical_ml_is_training_of_a_classical_model() -> None:
    made = workload_of({"task": "classical-ml", "model": {"framework": "xgboost"}})
    assert (made.task, made.model.kind, made.model.framework) == (Task.TRAINING, ModelKind.CLASSICAL, "xgboost")


@pytest.mark.parametrize(
    ("described", "says"),
    [
        ({}, "workload.task is missing"),
        ({"task": "trainig"}, "must be one of training"),
        ({"task": "training", "model": {"paramters": 1}}, "did you mean parameters"),
        ({"task": "training", "moon": 1}, "workload.moon is no field"),
        ({"task": "training", "model": {"parameters": "many"}}, "must be a number such as 7e9"),
        ({"task": "training", "model": {"parameters": -1}}, "model.parameters must be from 1"),
        ({"task": "training", "model": {"parameters": "nan"}}, "finite number"),
        ({"task": "training", "model": {"cpu_only": "yes"}}, "must be true or false"),
        ({"task": "training", "model": 7}, "workload.model must be a mapping"),
        ({"task": "training", "ask": "spot"}, "workload.ask must be a list"),
        ({"task": "training", "traffic": {"idle_share": 2}}, "traffic.idle_share must be from 0 to 1"),
        ({"task": "real-time", "running": {"count": 2}}, "workload.running.instance_type is missing"),
        ({"task": "real-time", "model": {"context_tokens": 1.5}}, "must be a whole number"),
        ({"task": "real-time", "model": {"name": 5}}, "must be text"),
    ],
)
def test_what_is_wrong_is_named(described: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        workload_of(described)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["task", "model", "traffic", "ask", "kind", "parameters", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["task", "model", "traffic", "ask", "runs", "data", "x"]), JSON, max_size=5))
def test_any_data_is_a_workload_or_an_input_error(described: dict[str, object]) -> None:
    with suppress(InputError):
        assert workload_of(described).task in Task


@pytest.mark.parametrize(
    ("described", "meant"),
    [
        ({"task": "realtime"}, "did you mean real-time?"),
        ({"task": "real-time", "objectives": {"goal": "chepest"}}, "got 'chepest'"),
        ({"task": "real-time", "model": {"precision": "fp-8"}}, "did you mean fp8?"),
    ],
)
def test_a_word_that_is_nearly_known_is_told_with_the_known_one(described: dict[str, object], meant: str) -> None:
    with pytest.raises(InputError, match=re.escape(meant)):
        workload_of(described)


def test_what_is_asked_for_by_a_wrong_name_is_told_with_the_near_one() -> None:
    answer = advise({"task": "real-time", "model": {"name": "llama-3-8b"}, "ask": ["sopt", "ml.g5.xlarg"]})
    said = [each.reason.text for each in answer.refused[:2]]
    assert "did you mean spot?" in said[0]
    assert "did you mean ml.g5.xlarge?" in said[1]
    with pytest.raises(InputError, match=r"did you mean eu-west-\d\?"):
        snapshot("eu-west-9")


def test_what_is_not_known_is_about_the_task() -> None:
    prepared = advise({"task": "preprocessing", "data": {"size_gib": 20}}).unknown
    assert not any("size of the model" in each for each in prepared), "nothing is loaded on a GPU"
    unpriced = advise({"task": "training", "model": {"name": "llama-3-8b"}, "objectives": {"budget_usd": 0}})
    assert any(each.startswith("whether objectives.budget_usd holds") for each in unpriced.unknown)
    priced = advise({"task": "real-time", "model": {"name": "llama-3-8b"}, "objectives": {"budget_usd": 1}})
    assert any("objectives.budget_usd is 1" in each for each in priced.contradictions)
