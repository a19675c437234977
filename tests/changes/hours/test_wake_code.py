"""A morning that brings other code or another model than the evening had is noticed, and named."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.changes.hours import Settle, next_hours_action
from rightsizer.changes.hours.steps import commands_by_hand
from rightsizer.changes.hours.wake import code_differences, data_differences, model_problem
from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.live_state import VariantSight
from rightsizer.domain.policy import Switch
from tests.changes.hours.kit import IMAGE, MODEL, MORNING, before, demand, endpoint, gone, record

HAD = before(models=(MODEL,))


def test_other_code_than_before_is_named_with_both_digests() -> None:
    name, new = IMAGE[0], "chat@sha256:" + "b" * 64
    moved = endpoint(variants=(VariantSight("AllTraffic", 2, 2, 1.0, 1.0, ((name, new),)),))
    assert code_differences(before(), endpoint()) == ()
    (said,) = code_differences(before(), moved)
    assert IMAGE[1] in said
    assert new in said


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({MODEL.name: MODEL}, ""),
        ({MODEL.name: replace(MODEL, data="b2")}, ""),
        ({}, "model chat-model was deleted"),
        (
            {MODEL.name: replace(MODEL, body={**MODEL.body, "Mode": "x"})},
            "model chat-model was made anew",
        ),
    ],
)
def test_a_model_that_is_gone_or_other_is_named(now: Any, said: str) -> None:
    found = model_problem(HAD, now)
    assert found.startswith(said)
    assert bool(found) is bool(said)


def test_model_data_that_was_written_at_night_is_named_and_unknown_data_is_not() -> None:
    assert data_differences(HAD, {MODEL.name: MODEL}) == ()
    (said,) = data_differences(HAD, {MODEL.name: replace(MODEL, data="b2")})
    assert "the model data of chat-model was written" in said
    assert data_differences(HAD, {MODEL.name: replace(MODEL, data="")}) == ()
    assert data_differences(before(models=(replace(MODEL, data=""),)), {MODEL.name: MODEL}) == ()


def test_an_endpoint_of_which_the_model_is_gone_is_handed_over_with_the_model() -> None:
    one = record(HoursState.STARTING, before=HAD)
    seen = gone(model_problem="model chat-model was deleted while it was stopped", fallback_exists=True)
    action = next_hours_action(one, seen, demand(one, MORNING), MORNING, Switch())
    assert isinstance(action, Settle)
    assert (action.state, action.tell) == (HoursState.HANDED_OVER, True)
    commands = commands_by_hand(one, MORNING, seen.state)
    assert any("aws sagemaker create-model" in line and "chat-model" in line for line in commands)


def test_a_model_that_is_read_in_another_order_or_with_a_date_is_the_same() -> None:
    body = {"ModelName": "chat-model", "Mode": "x", "CreationTime": MORNING}
    was = before(models=(replace(MODEL, body=body),))
    assert model_problem(was, {MODEL.name: replace(MODEL, body=dict(reversed(body.items())))}) == ""
    assert model_problem(was, {MODEL.name: replace(MODEL, body={**body, "CreationTime": None})}) != ""
